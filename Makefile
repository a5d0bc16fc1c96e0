# towerscope. The commands a person needs: make run, make test. All of them: make help.
#
#   V=1            show the commands
#   WERROR=1       warnings are errors (CI)
#   SANITIZE=      address (with undefined behaviour), thread, or fuzz (clang; make fuzz does it)
#   CUDA=          auto, 0 or 1: the GPU plugin (kernels/cuda/cuda.mk: CUDA_HOME, CUDNN_HOME, NCCL_HOME)

.DEFAULT_GOAL := all
SHELL := /bin/bash
MAKEFLAGS += --no-builtin-rules
.SUFFIXES:

V ?= 0
WERROR ?= 0
SANITIZE ?=
CUDA ?= auto
PREFIX ?= /usr/local
DESTDIR ?=
CC ?= cc
ifeq ($(origin CC),default)
CC := cc
endif
Q := $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V)),,@printf '  %-5s %s\n' '$(1)' '$(2)')

ifeq ($(SANITIZE),)
VARIANT := release
SANFLAGS :=
else ifeq ($(SANITIZE),address)
VARIANT := asan
SANFLAGS := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
else ifeq ($(SANITIZE),thread)
VARIANT := tsan
SANFLAGS := -fsanitize=thread
else ifeq ($(SANITIZE),fuzz)
VARIANT := fuzz
CC := clang
SANFLAGS := -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=undefined -fno-omit-frame-pointer
else
$(error SANITIZE=$(SANITIZE): expected address, thread or fuzz)
endif
ifeq ($(filter $(CUDA),auto 0 1),)
$(error CUDA=$(CUDA): expected auto, 0 or 1)
endif

B := build/$(VARIANT)
BIN := $(B)/towerscope

VERSION := 0.1.0
WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla \
            -Wwrite-strings -Wundef -Wformat=2 $(if $(filter 1,$(WERROR)),-Werror)
CPPFLAGS += -I. -I$(B)/gen -D_GNU_SOURCE -DTOWERSCOPE_VERSION='"$(VERSION)"'
CFLAGS ?= -O2 -g
ALL_CFLAGS = -std=c11 $(WARNINGS) $(SANFLAGS) $(CFLAGS) -MMD -MP -pthread
LDLIBS = -ldnnl -lncursesw -ltinfo -ljansson -linih -lz -ldl -lm -pthread
# what a plugin takes from the program that loads it
EXPORTS := kernels/exports.list
ALL_LDFLAGS = $(SANFLAGS) -Wl,--dynamic-list=$(EXPORTS) $(LDFLAGS)
TEST_LDLIBS = -lcmocka -lvterm

# ---- sources: every .c of a folder belongs to it
PLAIN_SRC := $(wildcard kernels/*.c kernels/cpu/*.c kernels/cuda/host/*.c engine/*/*.c datasets/*.c tui/*.c)
REF_SRC := $(wildcard kernels/ref/*.c)
ISA_SRC := $(wildcard kernels/cpu/isa/*.c)
CLI_SRC := $(wildcard cli/*.c)
MODELS := $(sort $(wildcard engine/model/models/*.ini))

PLAIN_OBJ := $(PLAIN_SRC:%.c=$(B)/%.o)
REF_OBJ := $(REF_SRC:%.c=$(B)/%.f32.o) $(REF_SRC:%.c=$(B)/%.f64.o)
ISAS := avx512 avx2 plain
ISA_OBJ := $(foreach i,$(ISAS),$(ISA_SRC:%.c=$(B)/%.$(i).o))
CLI_OBJ := $(CLI_SRC:%.c=$(B)/%.o)
GEN_OBJ := $(B)/gen/models.o $(B)/gen/lessons.o
LESSONS := $(sort $(wildcard cli/lessons/*.lesson))
LIB := $(B)/libtowerscope.a

TEST_SRC := $(wildcard tests/*/test_*.c)
TEST_BIN := $(TEST_SRC:%.c=$(B)/%)
FUZZ_BIN := $(patsubst %.c,$(B)/%,$(wildcard tests/fuzz/fuzz_*.c))
# a fuzz target's main(): the fuzzer's (make fuzz), else one that runs it over files
FUZZ_OBJ := $(B)/tests/fuzz/files.o $(if $(filter fuzz,$(SANITIZE)),,$(B)/tests/fuzz/driver.o)
SUPPORT_OBJ := $(patsubst %.c,$(B)/%.o,$(wildcard tests/support/*.c))

.PHONY: all plugins run test tests test-long fuzz fuzzers bench bench-tui load soak picture golden golden-values \
        golden-screens protocol install uninstall clean help FORCE
.DELETE_ON_ERROR:
all: $(BIN) plugins
	$(if $(SANITIZE),,$(Q)mkdir -p build && ln -sfn $(VARIANT)/towerscope build/towerscope)

# ---- the GPU plugin, where its toolkit is
PLUGINS :=
comma := ,
include kernels/cuda/cuda.mk
include tests/cudasim/cudasim.mk
plugins: $(PLUGINS)

# ---- compiling
# What a person may set for the compiler: objects made with other settings are made again. Warnings change no object.
$(B)/flags: flags := $(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS)
build/%/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(subst ','\'',$(flags))' | cmp -s - $@ || printf '%s\n' '$(subst ','\'',$(flags))' > $@

$(B)/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -c $< -o $@

# functions of their arguments alone, which know no threads but their caller's: under the thread sanitizer every test
# would wait for them (drawing the generated images took three seconds each time)
UNWATCHED := $(if $(filter thread,$(SANITIZE)),-fno-sanitize=thread)
$(B)/datasets/shapes.o $(B)/engine/base/random.o: ALL_CFLAGS += $(UNWATCHED)

# loops over pixels, which -O2 would leave to one value at a time
$(B)/datasets/shapes.o $(B)/datasets/distort.o: ALL_CFLAGS += -O3

# ref is plain C over a `real` type, built twice; -O3 so that gcc turns its plain loops into vectors
REF_CFLAGS := -O3 $(UNWATCHED)
$(B)/kernels/ref/each.f32.o $(B)/kernels/ref/each.f64.o: REF_CFLAGS := -O3
$(B)/%.f32.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,CC,$< (float))
	$(Q)$(CC) $(CPPFLAGS) -DREF_DOUBLE=0 $(ALL_CFLAGS) $(REF_CFLAGS) -c $< -o $@
$(B)/%.f64.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,CC,$< (double))
	$(Q)$(CC) $(CPPFLAGS) -DREF_DOUBLE=1 $(ALL_CFLAGS) $(REF_CFLAGS) -c $< -o $@

# one source per kernel, compiled once per instruction set; chosen at run time
# (unrolled loops with a sanitizer's checks in them take minutes to compile)
ISA_CFLAGS := $(if $(SANITIZE),-O1,-O3) -ffp-contract=fast -fno-math-errno -fno-trapping-math
ISA_avx512 := -mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma -mprefer-vector-width=512
ISA_avx2 := -mavx2 -mfma
ISA_plain :=
define isa_rule
$(B)/%.$(1).o: %.c $(B)/flags
	@mkdir -p $$(@D)
	$$(call say,CC,$$< ($(1)))
	$$(Q)$$(CC) $$(CPPFLAGS) -DISA_$(1)=1 -DISA_NAME=$(1) $$(ALL_CFLAGS) $(ISA_CFLAGS) $(ISA_$(1)) -c $$< -o $$@
endef
$(foreach i,$(ISAS),$(eval $(call isa_rule,$(i))))

# the model files that come with the program, as C strings
$(B)/gen/models.c: engine/model/embed.sh $(MODELS)
	@mkdir -p $(@D)
	$(call say,GEN,$@)
	$(Q)bash engine/model/embed.sh $(MODELS) > $@.tmp && mv $@.tmp $@
$(B)/gen/models.o: $(B)/gen/models.c $(B)/flags
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -c $< -o $@

# the lessons, likewise
$(B)/gen/lessons.c: cli/lessons/embed.sh $(LESSONS)
	@mkdir -p $(@D)
	$(call say,GEN,$@)
	$(Q)bash cli/lessons/embed.sh $(LESSONS) > $@.tmp && mv $@.tmp $@
$(B)/gen/lessons.o: $(B)/gen/lessons.c cli/lesson.h $(B)/flags
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -c $< -o $@

# what is fuzzed computes nothing, and clang takes minutes for the kernels
LIB_OBJ := $(if $(filter fuzz,$(SANITIZE)),$(filter-out $(B)/kernels/cpu/%,$(PLAIN_OBJ)),$(PLAIN_OBJ) $(REF_OBJ) $(ISA_OBJ)) $(GEN_OBJ)
$(LIB): $(LIB_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcs $@ $^

$(BIN): $(CLI_OBJ) $(LIB)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(CLI_OBJ) $(LIB) $(LDLIBS)

$(TEST_BIN): $(B)/%: $(B)/%.o $(SUPPORT_OBJ) $(LIB)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $< $(TEST_OBJ) $(SUPPORT_OBJ) $(LIB) $(TEST_LDLIBS) $(LDLIBS)
# one test turns the pages of lessons, which belong to a command
LESSON_OBJ := $(addprefix $(B)/,cli/lesson_feed.o cli/lesson_run.o cli/lesson_figures.o gen/lessons.o)
$(B)/tests/cli/test_lesson_pages: TEST_OBJ = $(LESSON_OBJ)
$(B)/tests/cli/test_lesson_pages: $(LESSON_OBJ)
# some targets read what belongs to a command, show a run that is made up, or compare events
$(B)/tests/fuzz/fuzz_lesson: $(addprefix $(B)/,cli/lesson_run.o cli/lesson_figures.o tests/support/stream.o)
$(B)/tests/fuzz/fuzz_script: $(B)/cli/script.o
$(B)/tests/fuzz/fuzz_event: $(B)/tests/support/events.o
$(B)/tests/fuzz/fuzz_terminal: $(B)/tests/support/stream.o
# the program with calls that can be made to fail (tests/faults/inject.c)
FAULTS := $(B)/towerscope-faults
FAULT_CALLS := malloc calloc realloc posix_memalign strdup strndup asprintf open_memstream write pwrite send fsync \
               fdatasync rename renameat poll ppoll accept4 open openat fopen clock_gettime
$(FAULTS): $(B)/tests/faults/inject.o $(CLI_OBJ) $(LIB)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $(FAULT_CALLS:%=-Wl,--wrap=%) -o $@ $< $(CLI_OBJ) $(LIB) $(LDLIBS)
$(FUZZ_BIN): $(B)/%: $(B)/%.o $(FUZZ_OBJ) $(LIB)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $(if $(filter fuzz,$(SANITIZE)),-fsanitize=fuzzer) -o $@ $(filter %.o,$^) $(LIB) $(LDLIBS)
.PRECIOUS: $(B)/%.o

# ---- using
# The plugin takes minutes to compile: where no GPU's driver is to load it, the console does not wait for it.
driver := $(wildcard /dev/nvidiactl /dev/nvidia0 /dev/nvhost-ctrl /dev/dxg)
run:
	$(Q).ci/packages run
	$(Q)$(MAKE) --no-print-directory -j$$(nproc) all CUDA=$(if $(driver),$(CUDA),$(CUDA:auto=0))
	$(Q).ci/first-run $(BIN)

test:
	$(Q).ci/packages test
	$(Q)$(MAKE) --no-print-directory -j$$(nproc) all tests
	$(Q)tests/run --bin $(BIN) --build $(B)

test-long:
	$(Q).ci/packages test
	$(Q)$(MAKE) --no-print-directory -j$$(nproc) all tests
	$(Q)tests/run --long --bin $(BIN) --build $(B)

tests: $(TEST_BIN) $(FUZZ_BIN) $(FAULTS) $(CUDA_TESTS) plugins

bench: all
	$(Q)$(BIN) bench

# Each target for TIME seconds from its seeds; what it finds lies in build/fuzz/found.
TIME ?= 60
fuzz:
	$(Q)$(MAKE) --no-print-directory -j$$(nproc) SANITIZE=fuzz fuzzers
	$(Q)tests/fuzz/run build/fuzz $(TIME)
fuzzers: $(FUZZ_BIN)

# a Python that has NumPy
PYTHON ?= $(shell for p in python3 /usr/bin/python3; do $$p -c 'import numpy' 2>/dev/null && echo $$p && break; done)

# what the console costs: a table
BENCH_SECONDS ?= 20
bench-tui: all $(B)/tests/tui/bench_tui
	$(Q)$(B)/tests/tui/bench_tui $(BIN) $(BENCH_SECONDS)
# 200 clients on one run; and a run under random commands: each prints a table, and fails out of its bounds
LOAD_SECONDS ?= 15
load: all $(B)/tests/trials/load
	$(Q)$(B)/tests/trials/load $(BIN) $(LOAD_SECONDS)
MINUTES ?= 10
SEED ?= 1
soak: all $(B)/tests/trials/soak
	$(Q)$(B)/tests/trials/soak $(BIN) $(MINUTES) $(SEED)
$(addprefix $(B)/tests/,tui/bench_tui trials/load trials/soak): %: %.o $(SUPPORT_OBJ) $(LIB)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $< $(SUPPORT_OBJ) $(LIB) $(TEST_LDLIBS) $(LDLIBS)

# the picture of the README: the real screen, from a run that is recorded for it
PICTURE := $(B)/picture
picture: $(BIN)
	$(Q)rm -rf $(PICTURE) && mkdir -p $(PICTURE)
	$(Q)printf '@200 why on\n@200 phase next\n@200 images 0\n@200 phase run\n@201 why off\n' > $(PICTURE)/script
	$(Q)$(BIN) train quiet-harbor --runs $(PICTURE) --script $(PICTURE)/script --data $(PICTURE_DATA) --model cifar10 \
		--towers 4 --batch 128 --lr 0.05 --steps 1000 --seed 3 --eval-every 0 --checkpoint-every 0 >/dev/null
	$(Q)$(BIN) replay quiet-harbor --runs $(PICTURE) --at 201 --screen why --size 120x33 --svg doc/why.svg
PICTURE_DATA ?= generated

golden: golden-values golden-screens
golden-screens:
	$(Q)$(MAKE) --no-print-directory all tests
	$(Q)GENERATE=1 tests/run --bin $(BIN) --build $(B) tui/test_screens tui/test_terminal

golden-values:
	$(Q)[ -n "$(PYTHON)" ] || { echo 'make golden-values needs Python with NumPy (Debian: python3-numpy)'; exit 1; }
	$(Q)$(PYTHON) tests/golden/make_golden.py

# the tables of the stream's description, between its two marks
protocol: all
	$(call say,GEN,engine/wire/PROTOCOL.md)
	$(Q)$(BIN) protocol > $(B)/protocol.tables
	$(Q)sed -i -e '/^<!-- made by/,/^<!-- end/{//!d}' -e '/^<!-- made by/r $(B)/protocol.tables' engine/wire/PROTOCOL.md

install: all
	$(Q)install -D -m 755 $(BIN) $(DESTDIR)$(PREFIX)/bin/towerscope
	$(if $(CUDA_PLUGIN),$(Q)install -D -m 755 $(CUDA_PLUGIN) $(DESTDIR)$(PREFIX)/lib/towerscope/backend_cuda.so)
	@echo 'installed $(DESTDIR)$(PREFIX)/bin/towerscope$(if $(CUDA_PLUGIN), and $(DESTDIR)$(PREFIX)/lib/towerscope/backend_cuda.so): the command is towerscope, where $(PREFIX)/bin is on your PATH'

uninstall:
	$(Q)rm -f $(DESTDIR)$(PREFIX)/bin/towerscope $(DESTDIR)$(PREFIX)/lib/towerscope/backend_cuda.so
	$(Q)rmdir $(DESTDIR)$(PREFIX)/lib/towerscope 2>/dev/null || true
	@echo 'removed $(DESTDIR)$(PREFIX)/bin/towerscope'

clean:
	$(Q)rm -rf build

help:
	@echo 'make             build build/towerscope'
	@echo 'make run         install what is missing, build, open the console on a training run'
	@echo 'make test        install what is missing, build, run the tests'
	@echo 'make test-long   the tests that take minutes'
	@echo 'make fuzz        each reader of foreign bytes for TIME=$(TIME) seconds (clang)'
	@echo 'make load        what 200 clients cost a run'
	@echo 'make soak        MINUTES=$(MINUTES) SEED=$(SEED) of random commands, consoles and full disks on one run'
	@echo 'make picture     make the picture of the README again'
	@echo 'make golden      make the golden screens and values again'
	@echo 'make protocol    make the tables of engine/wire/PROTOCOL.md again'
	@echo 'make bench       measure, beside PyTorch where it is installed'
	@echo 'make bench-tui   measure what the console costs, beside htop and btop'
	@echo 'make bundle      what tests/gpu/check.sh needs on a machine with a GPU, in one file'
	@echo 'make install     PREFIX=$(PREFIX) DESTDIR=; make uninstall takes it away again'
	@echo 'make clean       remove build/'
	@echo 'Knobs: V=1 WERROR=1 SANITIZE=address|thread|fuzz CUDA=auto|0|1'

-include $(shell find $(B) -name '*.d' 2>/dev/null)
