# The GPU plugin, build/cuda/backend_cuda.so: compiled once, whatever the sanitizer, and linked beside each program.
#
#   CUDA=auto    build it where the CUDA toolkit, cuDNN and NCCL are found (the default)
#   CUDA=1       build it, and stop where something is missing;  CUDA=0: leave it out
#   CUDA_HOME, CUDNN_HOME, NCCL_HOME   folders with include/ and lib/ (or lib64/): the system's, the toolkit's, or
#                those that Python's packages bring (site-packages/nvidia/...)
#   CUDA_ARCHS   the architectures to compile for; the last one also as PTX, for what comes after it
#
# kernels/cuda/*.c and *.cu are the plugin. kernels/cuda/host/*.c belong to the program (finding devices, telemetry) and
# know no header of the toolkit. The plugin takes status_*() from the program that loads it: one text per thread.

# Python's folders with NVIDIA's packages: an active environment first, then the user's, then the system's.
cuda_python := $(wildcard $(foreach p,$(VIRTUAL_ENV) $(CONDA_PREFIX) $(HOME)/.local /usr/local /usr,\
    $(foreach k,site-packages dist-packages,$(p)/lib/python3*/$(k)/nvidia)))
cuda_folders := $(foreach p,$(cuda_python),$(wildcard $(p)/cu13 $(p)/cudnn $(p)/nccl $(p)/cublas $(p)/cuda_runtime))
cuda_nvcc := $(shell command -v nvcc 2>/dev/null)
ifndef CUDA_HOME
CUDA_HOME := $(firstword $(foreach h,$(patsubst %/bin/nvcc,%,$(realpath $(cuda_nvcc))) /usr/local/cuda /opt/cuda \
    $(foreach p,$(cuda_python),$(p)/cu13),$(if $(wildcard $(h)/bin/nvcc),$(h))) $(if $(cuda_nvcc),/usr))
endif
NVCC ?= $(CUDA_HOME)/bin/nvcc

# A header or a library in the first of some homes that has it (Debian keeps both under the processor's name).
cuda_machine := $(shell $(CC) -print-multiarch 2>/dev/null)
cuda_header = $(firstword $(foreach h,$(2),$(wildcard $(h)/include/$(1) $(h)/include/$(cuda_machine)/$(1))))
cuda_library = $(firstword $(foreach h,$(2),$(foreach l,lib64 lib lib/$(cuda_machine) targets/x86_64-linux/lib,\
    $(wildcard $(h)/$(l)/lib$(1).so) $(wildcard $(h)/$(l)/lib$(1).so.*))))
cuda_homes := $(CUDA_HOME) $(cuda_folders) /usr
cudnn_homes := $(if $(CUDNN_HOME),$(CUDNN_HOME),$(cuda_homes))
nccl_homes := $(if $(NCCL_HOME),$(NCCL_HOME),$(cuda_homes))
cuda_headers := $(call cuda_header,cuda_runtime_api.h,$(cuda_homes)) $(call cuda_header,cublas_v2.h,$(cuda_homes)) \
    $(call cuda_header,cudnn.h,$(cudnn_homes)) $(call cuda_header,nccl.h,$(nccl_homes))
cuda_libraries := $(call cuda_library,cudart,$(cuda_homes)) $(call cuda_library,cublas,$(cuda_homes)) \
    $(call cuda_library,cudnn,$(cudnn_homes)) $(call cuda_library,nccl,$(nccl_homes))
cuda_missing := $(if $(CUDA_HOME),,nvcc (CUDA_HOME)) $(if $(wildcard $(NVCC)),,$(if $(CUDA_HOME),$(NVCC))) \
    $(foreach f,cuda_runtime_api.h cublas_v2.h cudnn.h nccl.h,$(if $(filter %/$(f),$(cuda_headers)),,$(f))) \
    $(foreach l,cudart cublas cudnn nccl,$(if $(findstring /lib$(l).so,$(cuda_libraries)),,lib$(l)))
cuda_missing := $(strip $(cuda_missing))

ifeq ($(CUDA),1)
ifneq ($(cuda_missing),)
$(error CUDA=1: not found: $(cuda_missing). Set CUDA_HOME, CUDNN_HOME or NCCL_HOME to folders that have them)
endif
endif

# What the checks without a device need as well (tests/cudasim): the toolkit's headers.
CUDA_INCLUDES := $(addprefix -isystem ,$(sort $(filter-out /usr/include/,$(dir $(cuda_headers)))))
CUDA_SRC := $(wildcard kernels/cuda/*.c)
CUDA_FOUND := $(if $(filter 0,$(CUDA)),,$(if $(cuda_missing),,$(if $(CUDA_SRC),1)))

ifeq ($(CUDA_FOUND),1)
cuda_rpath := $(addprefix -Wl$(comma)-rpath$(comma),$(sort $(filter-out /usr/lib/ /usr/lib/$(cuda_machine)/,\
    $(dir $(cuda_libraries)))))
C := build/cuda
CUDA_PLUGIN := $(C)/backend_cuda.so
CUDA_CU := $(wildcard kernels/cuda/*.cu)
CUDA_OBJ := $(CUDA_SRC:%.c=$(C)/%.o) $(C)/kernels/op.o $(CUDA_CU:%.cu=$(C)/%.cu.o)
CUDA_CFLAGS := -std=c11 $(WARNINGS) -O2 -g -MMD -MP -fPIC -fvisibility=hidden -pthread
# A GPU runs code of its own major version and a minor one up to its own.
cuda_known := $(shell $(NVCC) --list-gpu-code 2>/dev/null)
ifndef CUDA_ARCHS
CUDA_ARCHS := $(patsubst sm_%,%,$(filter $(cuda_known),sm_75 sm_80 sm_86 sm_89 sm_90 sm_100 sm_120))
endif
NVCC_FLAGS := -std=c++17 -O3 -lineinfo --threads 0 -Xcompiler -fPIC,-fvisibility=hidden,-Wall,-Wextra \
    $(if $(filter 1,$(WERROR)),-Werror all-warnings) \
    $(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$(a)$(comma)code=sm_$(a)) \
    -gencode arch=compute_$(lastword $(CUDA_ARCHS))$(comma)code=compute_$(lastword $(CUDA_ARCHS))

# objects made with other settings are made again, as in the Makefile
$(C)/flags: flags := $(VERSION) $(CUDA_INCLUDES) $(CC) $(filter-out $(WARNINGS),$(CUDA_CFLAGS)) \
    $(NVCC) $(filter-out -Werror all-warnings,$(NVCC_FLAGS))
$(C)/%.o: %.c $(C)/flags
	@mkdir -p $(@D)
	$(call say,CC,$< (plugin))
	$(Q)$(CC) -I. -D_GNU_SOURCE -DTOWERSCOPE_VERSION='"$(VERSION)"' $(CUDA_INCLUDES) $(CUDA_CFLAGS) -c $< -o $@
$(C)/%.cu.o: %.cu $(C)/flags
	@mkdir -p $(@D)
	$(call say,NVCC,$<)
	$(Q)$(NVCC) -I. $(CUDA_INCLUDES) $(NVCC_FLAGS) -MMD -MP -MF $(@:.o=.d) -c $< -o $@

# for tests/house/test_includes.sh
$(C)/includes: kernels/cuda/cuda.mk
	@mkdir -p $(@D)
	$(Q)echo '$(CUDA_INCLUDES)' > $@

# Never -lcuda: the driver is found by the runtime, and a machine without one can load the plugin and be told so.
$(CUDA_PLUGIN): $(CUDA_OBJ) $(C)/includes
	$(call say,LD,$@)
	$(Q)$(CC) -shared -o $@.tmp $(CUDA_OBJ) $(cuda_libraries) -lstdc++ -lm -pthread \
		$(cuda_rpath)
	$(Q)mv $@.tmp $@
$(B)/backend_cuda.so: $(CUDA_PLUGIN)
	@mkdir -p $(@D)
	$(Q)ln -sfn ../cuda/backend_cuda.so $@
PLUGINS += $(B)/backend_cuda.so

# What cuDNN would do on GPUs that are not here (tests/cuda/test_plans.sh). Other people's libraries are not run
# under sanitizers.
ifeq ($(SANITIZE),)
CUDA_TESTS := $(B)/tests/cuda/plans
$(B)/tests/cuda/plans.o: CPPFLAGS += $(CUDA_INCLUDES)
$(B)/tests/cuda/plans: $(B)/tests/cuda/plans.o $(C)/kernels/cuda/cudnn_graph.o $(C)/kernels/cuda/engines.o $(LIB)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(cuda_libraries) $(cuda_rpath) $(LDLIBS)
endif
$(B)/tests/cuda/probe.o $(B)/tests/cuda/runtime.o: CPPFLAGS += $(CUDA_INCLUDES)
$(B)/tests/cuda/runtime.o: kernels/cuda/runtime.c $(B)/flags
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -c $< -o $@
$(B)/tests/cuda/probe: $(B)/tests/cuda/probe.o $(B)/tests/cuda/runtime.o $(SUPPORT_OBJ) $(LIB)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(TEST_LDLIBS) $(LDLIBS)
CUDA_TESTS += $(B)/tests/cuda/probe
-include $(shell find $(C) -name '*.d' 2>/dev/null)
endif

# A library that tests load in place of the driver's telemetry: needs no toolkit.
$(B)/tests/cuda/libfake_nvml.so: tests/cuda/fake_nvml.c tests/cuda/fake_nvml.h $(B)/flags
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -shared -fPIC $(filter-out -MMD -MP,$(ALL_CFLAGS)) $(CPPFLAGS) -o $@ $<
CUDA_TESTS += $(B)/tests/cuda/libfake_nvml.so

# What proves the rest on a machine with a GPU: tests/gpu/check.sh build/towerscope-gpu.tar.gz there.
GPU_CHECKS := $(B)/tests/gpu/operations $(B)/tests/gpu/throughput
$(B)/tests/gpu/operations: $(B)/tests/gpu/operations.o $(SUPPORT_OBJ) $(LIB)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(TEST_LDLIBS) $(LDLIBS)
$(B)/tests/gpu/throughput: $(B)/tests/gpu/throughput.o $(B)/cli/bench_step.o $(LIB)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LDLIBS)
CUDA_TESTS += $(if $(SANITIZE),,$(GPU_CHECKS))
.PHONY: bundle
bundle: all $(GPU_CHECKS)
	$(Q)[ -n "$(CUDA_PLUGIN)" ] || { echo 'make bundle needs the CUDA toolkit: $(cuda_missing)'; exit 1; }
	$(Q)tests/gpu/bundle.sh $(B) build/towerscope-gpu.tar.gz
