# How everything is compiled. The top Makefile and every step's include this.
#
#   BACKEND=cuda|cpu   default: cuda where nvcc and a GPU are, else cpu
#   COUNT=1|0          cpu backend: count and check every memory access of kernels (default), or not
#   SANITIZE=1         cpu backend: AddressSanitizer and UndefinedBehaviorSanitizer; implies COUNT=0
#   CUDA_ARCHS="75 90" cuda backend: compute capabilities; default: that of the GPU here
#   CXX                g++ 11 or later, clang++ 14 or later

ifneq ($(words $(CURDIR))$(findstring ',$(CURDIR))$(findstring $$,$(CURDIR)),1)
  $(error make cannot work in '$(CURDIR)', whose name has a space, an apostrophe or a dollar sign: move it to a place without)
endif
ROOT := $(abspath $(dir $(lastword $(MAKEFILE_LIST)))../..)
STEPS := $(sort $(notdir $(wildcard $(ROOT)/[0-9][0-9]_*)))
MAKEFLAGS += --no-print-directory
ifeq ($(MAKELEVEL)$(words $(MAKECMDGOALS)),01)
  MAKEFLAGS += -j$(shell nproc)  # a -j on the command line has precedence
endif
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# COMMAND $(or_quit): where the program has said what is wrong, make ends with status 1 and adds nothing.
# On SIGQUIT it waits for its children, deletes what is half made and exits; the pause lets it receive the
# signal before its child ends. Where it ignores the signal (in the background of a script, say), it goes on
# with the command's status and its own line.
or_quit = || { status=$$?; case $$(sed -n 's/^SigCgt:.*\(.\)$$/\1/p' /proc/$$PPID/status) in \
  [4-7c-f]) kill -QUIT $$PPID; sleep 0.1 ;; *) exit $$status ;; esac; }
# $(call refuse,TEXT): make ends with `error: TEXT`.
refuse = $(shell { printf '%s\n' $(call quoted,error: $(1)) >&2; false; } $(or_quit))$(error $(1))
# $(call quoted,TEXT): a word for the shell, whatever is in it. $(call typed,NAME): the value of a variable as it was typed,
# a $ included.
quoted = '$(subst ','\'',$(1))'
typed = $(call quoted,$(value $(1)))
# $(call found,NAME): the file that a variable names, looked for from here, and from where `make -C` was called.
found = $(shell for file in $(call typed,$(1)) $(call quoted,$(PWD))/$(call typed,$(1)); do \
  [ ! -e "$$file" ] || { printf '%s' "$$file"; exit; }; done; printf '%s' $(call typed,$(1)))

# --- Backend --------------------------------------------------------------------------------------

NVCC ?= $(shell command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
HAS_GPU := $(if $(wildcard /dev/nvidia0 /dev/dxg),yes,$(shell nvidia-smi -L >/dev/null 2>&1 && echo yes))
ifdef BACKEND
  BACKEND_REASON := asked for with BACKEND=$(BACKEND)
else ifeq ($(NVCC),)
  BACKEND := cpu
  BACKEND_REASON := no nvcc on this machine
else ifeq ($(HAS_GPU),)
  BACKEND := cpu
  BACKEND_REASON := nvcc is here but no GPU
else
  BACKEND := cuda
  BACKEND_REASON := nvcc and a GPU are here
endif
ifeq ($(filter $(BACKEND),cpu cuda),)
  $(call refuse,BACKEND=$(BACKEND): give cpu or cuda)
endif
ifeq ($(BACKEND)$(NVCC),cuda)
  $(call refuse,BACKEND=cuda needs nvcc: install the CUDA Toolkit or set NVCC)
endif
export SPMV_BACKEND_REASON := $(BACKEND_REASON)

# KERNELS="csr_scalar csr_vector" for the program.
comma := ,
kernel_option = $(if $(KERNELS),--kernel '$(subst $() ,$(comma),$(strip $(KERNELS)))')

ifeq ($(BACKEND)$(filter 1,$(PROFILE)),cuda1)
  $(call refuse,PROFILE=1: the profile comes from the CPU backend; ask for it with BACKEND=cpu PROFILE=1)
endif

# --- Flags ----------------------------------------------------------------------------------------

ifeq ($(origin CXX),default)
  CXX := g++
endif
CLANG := $(findstring clang,$(CXX))
COUNT ?= 1
SANITIZE ?= 0
ifeq ($(SANITIZE),1)
  override COUNT := 0
endif
OUT := $(ROOT)/build/$(BACKEND)
ifeq ($(BACKEND),cpu)
  OUT := $(OUT)$(if $(filter 0,$(COUNT)),-uncounted)$(if $(filter 1,$(SANITIZE)),-sanitized)
endif
OUT := $(OUT)$(subst $() ,,$(patsubst %,-%,$(filter-out g++,$(notdir $(CXX)))))

# What another user has built, or a tree of another user. (With TO nothing but kernels is built, and they go there.)
ifeq ($(TO),)
OWNER := $(shell for place in $(OUT) $(ROOT)/build $(ROOT); do [ ! -e $$place ] || { \
  [ -w $$place ] || stat -c '%n belongs to %U' $$place; exit; }; done)
ifneq ($(OWNER),)
  $(call refuse,$(OWNER)$(comma) and you cannot write to it: copy the tree to a place of your own)
endif
endif

# setup.sh installs what is missing and says where it is (EXTRA_INCLUDES, EXTRA_LIBRARIES,
# TEST_LIBRARIES, THRUST_INCLUDES, MKL_LIBRARIES, NCCL_LIBRARIES, MPI_LIBRARIES) and whether there is an Eigen, an
# NCCL, an fmt to link (EXTRA_DEFINES), a Thrust and an MPI (HAVE_THRUST, HAVE_MPI).
NEEDS_NOTHING := help setup size browser learn hint program test-learn slides questions test-questions clean try mkl cusparse check handout grade test-coursework format check-format lint compile_commands figures report site test-site notebook test-notebook test-plots
ifneq ($(filter-out $(NEEDS_NOTHING),$(or $(MAKECMDGOALS),help)),)
  # What was built names its sources by their full paths: in a directory that was moved, copied or
  # unpacked it would not notice that they change, and goes.
  BUILT := $(wildcard $(ROOT)/build/cpu* $(ROOT)/build/cuda* $(ROOT)/build/setup-*.mk $(ROOT)/build/mine)
  $(if $(BUILT),$(shell record=$$(find $(BUILT) -name '*.d' -print -quit); [ -z "$$record" ] || \
    case $$(head -n 1 "$$record") in ('$(ROOT)/build/'*) ;; \
      (*) echo '  built in another place: everything is compiled again' >&2; rm -rf $(BUILT) ;; esac))
  # A source that was unpacked over an older one has the date of its packing, by which make would
  # take what was built before for newer. It gets the date at which it came here.
  $(if $(wildcard $(OUT)),$(shell { find $(ROOT)/common $(addprefix $(ROOT)/,$(STEPS)) -type f \
    -newercm $(OUT)/looked ! -newer $(OUT)/looked -exec touch {} + ; touch $(OUT)/looked; } 2>/dev/null))
  include $(ROOT)/build/setup-$(BACKEND).mk
endif
$(ROOT)/build/setup-%.mk: $(ROOT)/common/build/setup.sh
	@$(ROOT)/common/build/setup.sh $* $@ $(or_quit)

WARNINGS := -Wall -Wextra -Wpedantic -Wshadow
ifeq ($(CLANG),)
  # g++ 12 and 13 see overruns in the growing of buffers of the standard library and of fmt,
  # and with sanitizers uninitialised state in std::regex.
  WARNINGS += -Wno-array-bounds -Wno-stringop-overflow
  WARNINGS += $(if $(filter 1,$(SANITIZE)),-Wno-maybe-uninitialized)
else
  WARNINGS += -Wno-pass-failed  # where it does not unroll a loop as a kernel asks
endif
DEFINES := -DSPMV_SOURCE_DIR='"$(ROOT)"' $(EXTRA_DEFINES)
INCLUDES := -I$(ROOT)/common $(EXTRA_INCLUDES)
OPENMP := $(if $(COUNTING),,$(shell echo | $(CXX) -fopenmp -include omp.h -xc++ -fsyntax-only - 2>/dev/null && echo -fopenmp))
CXXFLAGS ?= $(if $(filter 1,$(SANITIZE)),-O0,-O2) -g1
ALL_CXXFLAGS = -std=c++20 $(CXXFLAGS) $(OPENMP) $(WARNINGS) $(DEFINES) -I$(PARSED) $(INCLUDES) -pthread -MMD -MP
# What is made is whole when it gets its name: another make may be at work in this tree.
NEW = $@.$$$$
NAMED = -MF $(NEW).d -MT $@ -c $< -o $(NEW) && mv $(NEW).d $(@:%.o=%).d && mv $(NEW) $@ || { rm -f $(NEW)*; false; }
LIBRARIES := $(EXTRA_LIBRARIES) $(MKL_LIBRARIES) -lz -pthread

ifeq ($(BACKEND),cpu)
  INCLUDES += -I$(ROOT)/common/simt/include
  LIBRARIES += -lboost_context
  DEVICE_FLAGS := -x c++ -Wno-unknown-pragmas  # nvcc's #pragma unroll
  # Found last: headers that say in a line what simt does not have.
  MISSING := $(OUT)/missing
  $(if $(wildcard $(MISSING)),,$(shell mkdir -p $(OUT) && sh $(ROOT)/common/simt/missing.sh $(MISSING)))
  DEVICE_FLAGS += -idirafter $(MISSING)
  # For one's own kernels and programs found first: the compiler may know a toolkit's headers.
  $(OUT)/build/mine/%.o: DEVICE_FLAGS += -isystem $(MISSING)
  # Of DWARF 5, addr2line 2.40 names the including file for a function's first lines, up to its first change of file.
  DEVICE_FLAGS += -gdwarf-4 -g1
  ifeq ($(CLANG),)
    # An `extern __shared__` array needs no initialization; in a template g++ would call one that is
    # not there.
    DEVICE_FLAGS += -fno-extern-tls-init
  endif
  ifeq ($(COUNT),1)
    DEFINES += -DSIMT_INSTRUMENTED
    # The compiler announces every load and store; simt counts them. One optimisation level for
    # all, so that the counts are the same everywhere. And every basic block, laid out in the order
    # of the source, by which simt tells where lanes wait for each other.
    DEVICE_FLAGS += -O1 -fsanitize=thread -DSIMT_OBSERVED_COPIES
    DEVICE_FLAGS += -fno-builtin-memcpy -fno-builtin-memmove -fno-builtin-memset
    # Ubuntu's g++ defines this macro, with which the C library renames the same functions.
    DEVICE_FLAGS += -U_FORTIFY_SOURCE
    ifeq ($(CLANG),)
      DEVICE_FLAGS += -fsanitize-coverage=trace-pc -fno-reorder-blocks
      # A lane that knows the outcome of a test ahead would go on in a copy of the code of its own, where it would not
      # meet the others any more.
      DEVICE_FLAGS += -fno-thread-jumps
      DEVICE_FLAGS += --param tsan-instrument-func-entry-exit=0 --param tsan-distinguish-volatile=1
    else
      DEVICE_FLAGS += -fsanitize-coverage=trace-pc,no-prune -mllvm -tsan-distinguish-volatile=1
    endif
  endif
  ifeq ($(SANITIZE),1)
    CXXFLAGS += -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
    # clang++ minds an offset to the null pointer of an empty array, too, which kernels compute and do not follow.
    CXXFLAGS += $(if $(CLANG),-fno-sanitize=pointer-overflow)
    LINK_FLAGS += -fsanitize=address,undefined
  endif
  LINK = $(CXX) $(OPENMP) $(LINK_FLAGS)
else
  DEFINES += -DSPMV_CUDA
  CUDA_HOME := $(abspath $(dir $(NVCC))/..)
  # Before .deps/, whose Thrust and CUB are those of the CPU backend; CUDA 13 keeps its own in cccl/.
  INCLUDES := -I$(ROOT)/common -isystem $(CUDA_HOME)/include/cccl -isystem $(CUDA_HOME)/include $(EXTRA_INCLUDES)
  # Given ones compile again what was compiled for others.
  ifneq ($(origin CUDA_ARCHS),undefined)
    ifneq ($(file <$(OUT)/archs),$(CUDA_ARCHS))
      $(shell mkdir -p $(OUT))$(file >$(OUT)/archs,$(CUDA_ARCHS))
    endif
  endif
  CUDA_ARCHS ?= native
  # Not compressed, so that the program can hash its own machine code (harness/machine_code.hpp).
  NVCC_FLAGS := -std=c++20 $(filter -O%,$(CXXFLAGS)) -lineinfo --no-compress -ccbin $(CXX) --expt-relaxed-constexpr $(DEFINES) \
    $(INCLUDES) -Xcompiler "-Wall -Wextra -Wshadow $(OPENMP)" -MMD -MP \
    $(if $(filter native,$(CUDA_ARCHS)),-arch=native,\
      $(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$(a),code=sm_$(a)))
  # In the place of the toolkit's, after `make cusparse`. Only the source that calls it needs its header.
  NEW_CUSPARSE := $(wildcard $(ROOT)/.deps/cusparse)
$(OUT)/common/peers/cusparse.cu.o: private NVCC_FLAGS += $(NEW_CUSPARSE:%=-I%/include)
  LIBRARIES += $(NEW_CUSPARSE:%=-L%/lib) -L$(CUDA_HOME)/lib64 -lcusparse -lcudart
  # Its launches go through functions that can note them.
  LOGGED := cudaLaunchKernelExC cudaLaunchKernel __cudaLaunchKernel
  LINK = $(CXX) $(OPENMP) $(NEW_CUSPARSE:%=-Wl,-rpath,%/lib) -Wl,-rpath,$(CUDA_HOME)/lib64 \
    $(if $(filter %/machine_code.cpp.o,$^),$(LOGGED:%=-Wl,--wrap=%))
endif

# Tests start many small parallel loops. Threads that spin after each would keep the cores busy.
test: export OMP_WAIT_POLICY := passive

# --- Sources --------------------------------------------------------------------------------------

COMMON_SOURCES := $(filter-out %/fuzz_%,\
  $(wildcard $(ROOT)/common/sparse/*.cpp $(foreach d,harness device,$(ROOT)/common/$(d)/*.cpp $(ROOT)/common/$(d)/*.cu)\
    $(if $(filter cpu,$(BACKEND)),$(ROOT)/common/simt/*.cpp)\
    $(ROOT)/common/peers/*.cpp $(if $(filter cuda,$(BACKEND)),$(ROOT)/common/peers/*.cu)))
# (simt's own tests are of what it checks and counts.)
TEST_SOURCES := $(wildcard $(ROOT)/common/tests/*_test.cpp $(if $(filter cpu1,$(BACKEND)$(COUNT)),$(ROOT)/common/simt/tests/*_test.cu))
MAIN := $(ROOT)/common/harness/main.cpp
TEST_MAIN := $(if $(filter -lCatch2WithMain,$(TEST_LIBRARIES)),,$(ROOT)/common/tests/main.cpp) \
  $(addprefix $(ROOT)/common/tests/kernel_,suite.cpp matrices.cpp)
TEST_SOURCES += $(addprefix $(ROOT)/common/coursework/,drawing.cpp protocol.cpp)

object = $(patsubst $(ROOT)/%,$(OUT)/%.o,$(1))
# A step is its .cu and .cpp files; test*.cu are its tests. What it calls of Thrust is in thrust.cu,
# of CUB, which is for GPUs alone, in cub.cu. Step 10 has programs of their own, step 06 a library for other languages.
NO_STAGE := %/minimal.cu %/conjugate_gradients.cu %/solvers_compared.cu %/c_interface.cu $(if $(HAVE_THRUST),,%/thrust.cu) $(if $(filter cpu,$(BACKEND)),%/cub.cu)
# What a step has besides its kernels may be in a folder of its own, which is compiled with it.
STEP_FOLDERS := 06_pcsr/one_pass 08_formats_ell_hyb_dia/markov
folders = $(foreach s,$(1),$(s) $(filter $(s)/%,$(STEP_FOLDERS)))
step_test_sources = $(wildcard $(patsubst %,$(ROOT)/%/test*.cu,$(call folders,$(1))))
stage_sources = $(filter-out $(NO_STAGE) $(call step_test_sources,$(1)),\
  $(wildcard $(foreach f,$(call folders,$(1)),$(ROOT)/$(f)/*.cu $(ROOT)/$(f)/*.cpp)))
common_objects := $(call object,$(filter-out $(MAIN),$(COMMON_SOURCES)))

# All of Catch2 in one file: its own speed does not matter, nor is it what the sanitizers are for.
$(OUT)/common/tests/main.cpp.o: private CXXFLAGS := -O0
# At -O1: the host's tests, and what reads the command line or JSON, whose speed is that of the compiler alone.
test_objects := $(call object,$(ROOT)/common/tests/kernel_suite.cpp $(filter %_test.cpp %_test.cu,$(TEST_SOURCES)) \
  $(call step_test_sources,$(STEPS)))
light_objects := $(filter %.cpp.o,$(test_objects)) $(call object,$(shell grep -lE \
  '^#include (<(CLI|nlohmann)/|"harness/(command|options|profile|records)[.])' \
  $(ROOT)/common/*/*.cpp $(ROOT)/[01]*/*.cpp $(ROOT)/[01]*/*/*.cpp 2>/dev/null))
# With sanitizers, the engine alone is worth optimising.
ifeq ($(SANITIZE),1)
$(call object,$(wildcard $(ROOT)/common/simt/*.cpp)): private CXXFLAGS := $(patsubst -O0,-O1,$(CXXFLAGS))
endif
LIGHT_CXXFLAGS := $(patsubst -O2,-O1,$(CXXFLAGS))
$(light_objects): private CXXFLAGS := $(LIGHT_CXXFLAGS)

# What is compiled, of how much: counted by `make -n` when the first is.
BUILD_OPTIONS = $(foreach v,BACKEND COUNT SANITIZE CUDA_ARCHS CXX CXXFLAGS NVCC KERNEL SOURCE,$(if $(filter command,$(origin $v)),$v=$(subst $$,$$$$,$(call typed,$v))))
to_compile = $(eval to_compile := $$(shell $(MAKE) -n COUNTING=1 PWD="$(PWD)" $(BUILD_OPTIONS) $(MAKECMDGOALS) 2>/dev/null | grep -c "&& echo '  compile "))$(to_compile)
progress = $(if $(COUNTING),,$(eval compiled += x)$(words $(compiled))/$(to_compile) )

# Precompiled headers: g++ takes a file in HEADER.gch/ in place of a HEADER that it would find later in its list of
# directories, and reads the header itself if none there was compiled with its options. It does not notice another
# -O, so the light objects have a directory of their own. `private`, above and below, keeps the options of one
# object from the headers it needs. (-fpch-preprocess is for ccache, which keeps none of these headers: it takes
# sources that differ in comments for the same, but g++ knows a #pragma once header by its text.) clang++ is told
# the file; for the device it has none, since simt names memcpy and memset anew (simt/builtins.hpp).
PARSED := $(OUT)/precompiled
LIGHT_PARSED := $(PARSED)$(if $(filter -O2,$(CXXFLAGS)),-light)
$(light_objects): private PARSED := $(LIGHT_PARSED)
INCLUDED := build/precompiled.hpp
INCLUDED_IN_TESTS := tests/precompiled_tests.hpp
parsed = $(PARSED)/$(INCLUDED).gch/$(1)
PARSED_FOR_DEVICE := $(if $(CLANG)$(filter cuda,$(BACKEND)),,yes)
$(light_objects): $(LIGHT_PARSED)/$(INCLUDED).gch/host
$(filter %.cpp.o,$(test_objects)): $(LIGHT_PARSED)/$(INCLUDED_IN_TESTS).gch/host
$(if $(PARSED_FOR_DEVICE),$(filter %.cu.o,$(test_objects))): $(PARSED)/$(INCLUDED_IN_TESTS).gch/device
$(test_objects): private INCLUDED := $(INCLUDED_IN_TESTS)
# Those with flags of their own have none; nor, at -O0, what includes Eigen: g++ 12 takes __OPTIMIZE__ for defined then.
WITHOUT := common/tests/main.cpp common/peers/mkl.cpp %/thrust.cu $(if $(filter -O0,$(CXXFLAGS)),\
  common/simt/%.cpp common/peers/eigen.cpp 08_formats_ell_hyb_dia/markov/markov.cpp)
$(WITHOUT:%=$(OUT)/%.o): private INCLUDED :=
USE_PRECOMPILED = $(if $(INCLUDED),$(if $(CLANG),$(if $(filter %.cpp,$<),-include-pch $(PARSED)/$(INCLUDED).gch/host),\
  -include $(INCLUDED) -fpch-preprocess))

define precompile  # DIRECTORY, host or device, FLAGS
$(addprefix $(1)/,$(addsuffix .gch/$(2),$(INCLUDED) $(INCLUDED_IN_TESTS))): $(1)/%.gch/$(2): $(ROOT)/common/%
	@mkdir -p $$(@D) && echo '  compile $$(progress)common/$$* for the $(2)' >&2
	$$(QUIET)CCACHE_DISABLE=1 $$(CXX) $$(ALL_CXXFLAGS) $(3) $$(NAMED)
endef
$(foreach d,$(sort $(PARSED) $(LIGHT_PARSED)),$(eval $(call precompile,$(d),host,-x c++-header)))
$(eval $(call precompile,$(PARSED),device,$$(patsubst c++,c++-header,$$(DEVICE_FLAGS))))
$(LIGHT_PARSED)/%: private CXXFLAGS := $(LIGHT_CXXFLAGS)
# (g++ tries every file of the directory.)
$(PARSED)/% $(LIGHT_PARSED)/%: private NEW = $(@D)-$(@F).$$$$

# The header of `make mkl` is for one source, so that all others stay as they are.
$(OUT)/common/peers/mkl.cpp.o: private INCLUDES += $(if $(MKL_LIBRARIES),-DHAVE_MKL -isystem $(ROOT)/.deps/mkl/include)

$(OUT)/%.cpp.o: $(ROOT)/%.cpp $(call parsed,host)
	@mkdir -p $(@D) && echo '  compile $(progress)$(patsubst $(ROOT)/%,%,$<)' >&2
	$(QUIET)$(CXX) $(ALL_CXXFLAGS) $(USE_PRECOMPILED) $(NAMED)

ifeq ($(BACKEND),cpu)
# On the CPU backend Thrust works on the host's memory: nothing for simt to count. (Its references to
# a null pointer, which it never follows, are undefined behaviour; AddressSanitizer stays.)
$(OUT)/%/thrust.cu.o: private DEVICE_FLAGS := -x c++ $(THRUST_INCLUDES) \
  -DTHRUST_DEVICE_SYSTEM=THRUST_DEVICE_SYSTEM_$(if $(OPENMP),OMP,CPP) -fno-sanitize=undefined

# A warning in a template, once and not per instantiation.
ONCE := python3 $(ROOT)/common/build/once.py
$(OUT)/%.cu.o: $(ROOT)/%.cu $(if $(PARSED_FOR_DEVICE),$(call parsed,device))
	@mkdir -p $(@D) && echo '  compile $(progress)$(patsubst $(ROOT)/%,%,$<)' >&2
	$(QUIET)$(ONCE) $(CXX) $(ALL_CXXFLAGS) $(DEVICE_FLAGS) $(USE_PRECOMPILED) $(NAMED)
else
$(OUT)/%.cu.o: $(ROOT)/%.cu $(wildcard $(OUT)/archs)
	@mkdir -p $(@D) && echo '  compile $(progress)$(patsubst $(ROOT)/%,%,$<)' >&2
	$(QUIET)$(NVCC) $(NVCC_FLAGS) $(NAMED)
endif

# An `extern __shared__ T name[]` is declared in a kernel and defined nowhere: on the CPU backend
# each such name becomes an array as large as a block's shared memory can be (simt/types.hpp).
define link
@mkdir -p $(@D) && echo '  link    $(patsubst $(ROOT)/%,%,$@)' >&2
$(QUIET)$(if $(filter cpu,$(BACKEND)),{ readelf -sW $(filter %.cu.o,$^) /dev/null 2>/dev/null | awk \
  '$$4 == "TLS" && $$7 == "UND" && $$8 !~ /^(threadIdx|blockIdx|blockDim|gridDim|_ZN4simt)/ \
   { print "__thread unsigned char __attribute__((aligned(128))) " $$8 "[227 * 1024];" }' \
  | sort -u >$(NEW).c; } && $(CXX) -w -x c -c $(NEW).c -o $(NEW).o && )$(LINK) $(filter %.o,$^) \
  $(if $(filter cpu,$(BACKEND)),$(NEW).o) $(LIBRARIES) -o $(NEW) && mv $(NEW) $@; status=$$?; rm -f $(NEW)*; exit $$status
endef

-include $(shell find $(OUT) -name '*.d' 2>/dev/null)

# V=1 shows the commands.
V ?= 0
QUIET := $(if $(filter 0,$(V)),@)
