# The program as WebAssembly: make -f common/watch/live/live.mk [GOAL]. `make browser` calls it.
BACKEND := cpu
include $(dir $(lastword $(MAKEFILE_LIST)))../../build/build.mk
.DEFAULT_GOAL := module

EMXX ?= $(shell command -v em++)
LIVE := $(ROOT)/build/wasm
HERE := $(ROOT)/common/watch/live
LIVE_STEPS := $(filter-out 01_%,$(STEPS))
# Without the Markov chains, a program of its own, and the CPU's libraries; of step 10 what `spmv steps` needs. Blocks that wait
# for each other have a thread of the host each, which a page has not (one_thread.cpp).
LIVE_SOURCES := $(filter-out %/markov.cpp %/markov_commands.cpp %/markov_vectors.cu %/peers/mkl.cpp %/peers/eigen.cpp %/thrust.cu \
  %/10_multigpu/measure.cpp %/persistent.cu,$(COMMON_SOURCES) $(call stage_sources,$(LIVE_STEPS)))
LIVE_SOURCES += $(HERE)/one_thread.cpp $(shell python3 $(HERE)/mistakes.py $(LIVE)/mistakes)
live_object = $(patsubst $(ROOT)/%,$(LIVE)/%.o,$(1))

# The headers of the three libraries, alone: those beside them in /usr/include are the host's.
LIBRARY_HEADERS := fmt nlohmann CLI
LIVE_INCLUDE := $(LIVE)/include
header_of = $(firstword $(wildcard $(addsuffix /$(1),$(patsubst -isystem%,%,$(patsubst -I%,%,$(EXTRA_INCLUDES))) /usr/include /usr/local/include)))

LIVE_FLAGS = -std=c++20 -fexceptions -DSPMV_SOURCE_DIR='"/spmv"' -ffile-prefix-map=$(ROOT)=/spmv -DSIMT_INSTRUMENTED \
  -DFMT_HEADER_ONLY -include $(HERE)/shim/shim.hpp -I$(HERE)/shim -I$(ROOT)/common -I$(ROOT)/common/simt/include \
  -isystem $(LIVE_INCLUDE) -Wno-unknown-pragmas -MMD -MP
# As clang compiles kernels for the CPU backend (build.mk).
LIVE_DEVICE_FLAGS := -x c++ -O1 -Xclang -debug-info-kind=line-tables-only -Xclang -fsanitize=thread -fno-builtin-memcpy -fno-builtin-memmove \
  -fno-builtin-memset -fsanitize-coverage=trace-pc,no-prune -mllvm -tsan-distinguish-volatile=1 \
  -mllvm -tsan-instrument-func-entry-exit=0

$(LIVE_INCLUDE):
	@mkdir -p $@
	@$(foreach h,$(LIBRARY_HEADERS),ln -sfn $(call header_of,$(h)) $@/$(h);)

# (em++ takes -Os for -fno-inline-functions, too: twice as many functions, and half as fast.)
$(LIVE)/common/simt/%.cpp.o: private LIVE_FLAGS += -fno-exceptions
$(LIVE)/%.cpp.o: $(ROOT)/%.cpp | $(LIVE_INCLUDE)
	@mkdir -p $(@D) && echo '  compile $(patsubst $(ROOT)/%,%,$<)' >&2
	$(QUIET)$(EMXX) -O2 $(LIVE_FLAGS) -c $< -o $@

$(LIVE)/%.cu.o: $(ROOT)/%.cu $(HERE)/sites.py | $(LIVE_INCLUDE)
	@mkdir -p $(@D) && echo '  compile $(patsubst $(ROOT)/%,%,$<)' >&2
	$(QUIET)$(EMXX) $(LIVE_FLAGS) $(LIVE_DEVICE_FLAGS) -MF $(@:.o=.d) -MT $@ -S -emit-llvm $< -o $(@:.o=.plain.ll)
	$(QUIET)python3 $(HERE)/sites.py $(@:.o=.plain.ll) $(@:.o=.ll)
	$(QUIET)$(EMXX) -fexceptions -O2 -Xclang -disable-llvm-passes -c $(@:.o=.ll) -o $@

# Whether all that compiles, which takes a minute where the module takes several.
PARSED := $(patsubst $(ROOT)/%,parsed-%,$(LIVE_SOURCES))
.PHONY: $(PARSED) parsed
parsed: $(PARSED)
$(PARSED): parsed-%: $(ROOT)/% | $(LIVE_INCLUDE)
	$(QUIET)$(EMXX) $(LIVE_FLAGS) $(if $(filter %.cu,$<),$(LIVE_DEVICE_FLAGS)) -MF /dev/null -fsyntax-only $<
-include $(shell find $(LIVE) -name '*.d' 2>/dev/null)

# Asyncify changes the functions from which a lane can be set aside (Context in common/simt/context.hpp): those that lead to
# a switch, and what calls a kernel through a pointer. All others stay as they are. wasm-opt makes what it leaves half as
# large, and faster; with em++ -sASYNCIFY every switch goes through JavaScript, and em++ -O2 fails in Debian's optimizer of that.
ASYNCIFY := --asyncify --pass-arg=asyncify-ignore-imports --pass-arg=asyncify-ignore-indirect \
  '--pass-arg=asyncify-addlist@*fiber_main*,*cudaLaunchKernelEx*'
KERNEL_SOURCES := $(patsubst $(ROOT)/%,%,$(wildcard $(foreach s,$(LIVE_STEPS),$(ROOT)/$(s)/*.cuh $(ROOT)/$(s)/*/*.cuh) \
  $(ROOT)/common/device/*.cuh $(LIVE)/mistakes/*/*/*.cuh))
$(LIVE)/spmv.js: $(call live_object,$(LIVE_SOURCES)) $(addprefix $(HERE)/,live.mk asyncify.js)
	@echo '  link    $(@:$(ROOT)/%.js=%.wasm)' >&2
	@mkdir -p $(@D)/linked
	$(QUIET)python3 $(HERE)/sites.py --shared $(@D)/shared.c $(patsubst %.o,%.ll,$(filter %.cu.o,$^))
	$(QUIET)$(EMXX) -x c -O1 -c $(@D)/shared.c -o $(@D)/shared.o
	$(QUIET)$(EMXX) -O1 --profiling-funcs -fexceptions $(filter %.o,$^) $(@D)/shared.o -o $(@D)/linked/spmv.js --js-library $(HERE)/asyncify.js -sMODULARIZE=1 -sEXPORT_NAME=createSpmv \
	  -sINVOKE_RUN=0 -sEXPORTED_RUNTIME_METHODS=FS,callMain -sALLOW_MEMORY_GROWTH=1 -sINITIAL_MEMORY=67108864 \
	  -sTOTAL_STACK=1048576 $(foreach s,$(KERNEL_SOURCES),--embed-file $(ROOT)/$(s)@/spmv/$(s))
	@echo '  optimize $(@:$(ROOT)/%.js=%.wasm)' >&2
	$(QUIET)wasm-opt $(ASYNCIFY) -Oz --mvp-features $(@D)/linked/spmv.wasm -o $(@:.js=.wasm)
	@mv $(@D)/linked/spmv.js $@

$(LIVE)/live.js: $(LIVE)/spmv.js $(addprefix $(HERE)/,package.py worker.js run.js)
	@python3 $(HERE)/package.py $(@D) $@

module: $(LIVE)/live.js
