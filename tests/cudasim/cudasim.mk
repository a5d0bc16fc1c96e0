# The kernels of kernels/cuda as C++ (cudasim.h), for checks where there is no GPU. SIM_KERNEL_OBJ: to be linked with
# -lstdc++. Wanted: the toolkit's headers (kernels/cuda/cuda.mk finds them) and g++; without them the tests say so.

SIM_NO_HEADERS := $(if $(filter %/cuda_runtime_api.h,$(cuda_headers)),,the headers of the CUDA toolkit (CUDA_HOME))
SIM_NO_CXX := $(if $(shell $(CXX) -dumpversion 2>/dev/null),,a C++ compiler (CXX))
SIM_MISSING := $(strip $(SIM_NO_HEADERS)$(if $(SIM_NO_HEADERS),$(if $(SIM_NO_CXX),$(comma)))$(if $(SIM_NO_CXX), $(SIM_NO_CXX)))
SIM_CXXFLAGS := -std=c++17 -Wall -Wextra -Wshadow -Wno-unknown-pragmas $(if $(filter 1,$(WERROR)),-Werror) $(SANFLAGS) \
    -O2 -g -fPIC -fvisibility=hidden -MMD -MP -pthread -I. -D_GNU_SOURCE $(CUDA_INCLUDES)
SIM_KERNEL_OBJ := $(patsubst %.cu,$(B)/sim/%.cu.o,$(wildcard kernels/cuda/*.cu)) $(B)/sim/tests/cudasim/cudasim.o
SIM_RUNTIME_BIN := $(B)/tests/cudasim/test_runtime
SIM_TEST_BIN := $(patsubst %.c,$(B)/%,$(wildcard tests/cudasim/test_kernels_*.c tests/cudasim/test_shim.c))

$(B)/sim/flags: flags := $(CXX) $(filter-out -Werror,$(SIM_CXXFLAGS))
$(B)/sim/%.cu.o: %.cu tests/cudasim/cudasim.h $(B)/sim/flags
	@mkdir -p $(@D)
	$(call say,CXX,$< (simulated))
	$(Q)$(CXX) $(SIM_CXXFLAGS) -MF $(@:.o=.d) -x c++ -include tests/cudasim/cudasim.h -c $< -o $@
$(B)/sim/%.o: %.cpp $(B)/sim/flags
	@mkdir -p $(@D)
	$(call say,CXX,$<)
	$(Q)$(CXX) $(SIM_CXXFLAGS) -c $< -o $@

ifeq ($(SIM_MISSING),)
SIM_TEST_OBJ := $(SIM_KERNEL_OBJ) $(B)/sim/tests/cudasim/faulty.cu.o $(B)/tests/cudasim/room.o
$(SIM_TEST_BIN:%=%.o): CPPFLAGS += $(CUDA_INCLUDES)
$(SIM_TEST_BIN): $(SIM_TEST_OBJ)
$(SIM_TEST_BIN): TEST_OBJ := $(SIM_TEST_OBJ) -lstdc++
else
$(SIM_TEST_BIN:%=%.o): $(B)/%.o: tests/cudasim/without.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -DMISSING='"$(SIM_MISSING)"' -c $< -o $@
endif

# The whole plugin on simulated GPUs: $(B)/sim/backend_sim.so, the host's files of kernels/cuda with the simulated runtime
# and libraries. It does not lie beside the program: TOWERSCOPE_PLUGINS=$(B)/sim makes --devices sim:0 known.
ifeq ($(SIM_MISSING),)
ifeq ($(words $(cuda_headers)),4)
SIM_PLUGIN := $(B)/sim/backend_sim.so
SIM_HOST_OBJ := $(patsubst %.c,$(B)/sim/%.o,$(wildcard kernels/cuda/*.c) kernels/op.c)
SIM_FAKE_OBJ := $(patsubst %.cpp,$(B)/sim/%.o,$(wildcard tests/cudasim/fake_*.cpp))
$(B)/sim/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,CC,$< (simulated))
	$(Q)$(CC) -DCUDASIM $(CPPFLAGS) $(CUDA_INCLUDES) $(ALL_CFLAGS) -fPIC -fvisibility=hidden -c $< -o $@
$(SIM_PLUGIN): $(SIM_HOST_OBJ) $(SIM_KERNEL_OBJ) $(SIM_FAKE_OBJ)
	$(call say,LD,$@)
	$(Q)$(CXX) $(SANFLAGS) -shared -o $@.tmp $^ -lm -pthread && mv $@.tmp $@
tests: $(SIM_PLUGIN)
endif
endif
# The simulated runtime itself, whose functions have the real ones' names.
ifneq ($(SIM_PLUGIN),)
$(SIM_RUNTIME_BIN).o: CPPFLAGS += $(CUDA_INCLUDES)
SIM_RUNTIME_OBJ := $(SIM_FAKE_OBJ) $(SIM_KERNEL_OBJ) $(B)/sim/kernels/cuda/gemm.o $(B)/sim/kernels/cuda/runtime.o
$(SIM_RUNTIME_BIN): $(SIM_RUNTIME_OBJ)
$(SIM_RUNTIME_BIN): TEST_OBJ := $(SIM_RUNTIME_OBJ) -lstdc++
else
$(SIM_RUNTIME_BIN).o: tests/cudasim/without.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -DMISSING='"the headers of CUDA and NCCL, or a C++ compiler"' -c $< -o $@
endif
# They load the plugin, where there is one.
SIM_PLUGIN_TESTS := $(patsubst %.c,$(B)/%,$(wildcard tests/cudasim/test_plugin*.c))
$(SIM_PLUGIN_TESTS): $(B)/tests/cudasim/sim.o | $(SIM_PLUGIN)
$(SIM_PLUGIN_TESTS): TEST_OBJ := $(B)/tests/cudasim/sim.o
