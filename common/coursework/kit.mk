# The kit: what judging a step's kernels needs and what is the same for every step and student.
#
#   $(KIT)/judge          matrices, references, verdicts (judge.cpp)
#   $(KIT)/runner.a       all of the runner but the kernels (runner.cpp)
#   $(KIT)/prelude.hpp    what is included before the kernels; compiled, with g++
#
# make kit                               builds it
# make runner SOURCES=03_csr_vector TO=out    compiles the kernels in SOURCES, links out/runner
KIT := $(OUT)/kit
# The same code wherever it is built, so that a compiled prelude fits all handouts: nothing here looks for files of the repository.
DEFINES := $(filter-out -DSPMV_SOURCE_DIR=%,$(DEFINES))
in_common = $(wildcard $(addprefix $(ROOT)/common/,$(1)))

# Matrices are generated here; what reads, writes and describes files is left out.
generators := $(filter-out $(call in_common,$(addprefix sparse/,bsr.cpp catalogue.cpp load.cpp \
  matrix_market.cpp npz.cpp row_source.cpp statistics.cpp)),$(call in_common,sparse/*.cpp))
judge_sources := $(generators) $(call in_common,harness/verify.cpp tests/kernel_matrices.cpp \
  $(addprefix coursework/,judge.cpp protocol.cpp drawing.cpp))
runner_sources := $(call in_common,sparse/convert.cpp device/error.cpp harness/kernel.cpp harness/time_model.cpp \
  simt/*.cpp coursework/confine.cpp coursework/frames.cpp coursework/runner.cpp coursework/protocol.cpp)
# What puzzles need, which a handout has none of. (Two of them read sources, to show their lines.)
puzzle_sources := $(if $(call in_common,primer/puzzle.cpp),$(call in_common,primer/puzzle.cpp harness/trace.cpp harness/profile.cpp))
$(call object,$(puzzle_sources)): private DEFINES += -DSPMV_SOURCE_DIR='"$(ROOT)"'

ifeq ($(KIT_CXXFLAGS),)
  judge_objects := $(call object,$(judge_sources))
  runner_objects := $(call object,$(runner_sources) $(puzzle_sources))
else
  # A kit that is built once and not worked on: all sources of the judge in one, and all of the runner. What they
  # share is parsed and compiled once then, which halves the time.
  judge_objects := $(KIT)/all_of_judge.o
  runner_objects := $(KIT)/all_of_runner.o
$(KIT)/all_of_%.o: private CXXFLAGS := $(KIT_CXXFLAGS)
$(KIT)/all_of_%.o: $(judge_sources) $(runner_sources)
	@mkdir -p $(@D) && printf '#include "%s"\n' $($*_sources) >$(@:.o=.cpp)
	@echo '  compile kit/$*' >&2
	$(QUIET)$(CXX) $(ALL_CXXFLAGS) -c $(@:.o=.cpp) -o $@
endif

$(KIT)/judge: $(judge_objects)
	$(link)
$(KIT)/runner.a: $(runner_objects)
	@mkdir -p $(@D) && rm -f $@ && ar rcs $@ $^
$(KIT)/prelude.hpp: $(ROOT)/common/coursework/prelude.hpp
	@mkdir -p $(@D) && cp $< $@

# What the compiler makes of __builtin_memcpy or of std::copy is observed, too.
copies := memcpy memmove memset
accepted = $(shell $(CXX) $(1) -xc++ -E /dev/null >/dev/null 2>&1 && echo $(1))
prelude := $(KIT)/prelude.hpp
# With g++: accesses outside of a local or shared array call simt, too; a stack that grows touches each of its pages, so
# that it does not go past its end unseen; who writes over its frame's end, or a return address, does not return
# (frames.cpp). Local variables hold enormous numbers at first (g++ 12 or later; of those that are set on some paths only,
# the numbering of values would make constants), and where one may be used before it is set, the compiler says so.
ifeq ($(findstring clang,$(CXX)),)
  prelude += $(KIT)/prelude.hpp.gch
  bounds := -fsanitize=object-size -fstack-clash-protection -fstack-protector-all -fno-omit-frame-pointer \
    --param tsan-instrument-func-entry-exit=1 $(call accepted,-ftrivial-auto-var-init=pattern) -fno-tree-fre \
    -Wuninitialized -Wmaybe-uninitialized
  frames := -Wl,--wrap=__tsan_func_entry,--wrap=__tsan_func_exit
endif
$(KIT)/prelude.hpp.gch: $(KIT)/prelude.hpp $(ROOT)/common/coursework/kit.mk
	@echo '  compile common/coursework/prelude.hpp' >&2
	$(QUIET)CCACHE_DISABLE=1 $(CXX) $(ALL_CXXFLAGS) $(patsubst c++,c++-header,$(DEVICE_FLAGS)) $(bounds) -w -c $< -o $@


.PHONY: kit runner
kit: $(KIT)/judge $(KIT)/runner.a $(prelude)  # its directory is what it prints; what compiles kernels is named there
	@echo '$(CXX)' >$(KIT)/compiler && echo $(KIT)

ifneq ($(TO),)
sources := $(filter-out $(SOURCES)/test% $(NO_STAGE),$(wildcard $(SOURCES)/*.cu $(SOURCES)/*.cpp))
$(shell mkdir -p $(TO))
kernels := $(patsubst $(SOURCES)/%,$(TO)/%.o,$(sources))
.PHONY: preprocessed
runner: $(TO)/runner
preprocessed: $(kernels:.o=.i)
# The kit comes first: of what is defined in both, its own is taken.
$(TO)/runner: LINK_FLAGS += $(frames) -Wl,--whole-archive $(KIT)/runner.a -Wl,--no-whole-archive
$(TO)/runner: $(kernels)
	$(link)
$(TO)/%.cu.o $(TO)/%.cu.i: DEVICE_FLAGS += -isystem $(MISSING)
$(TO)/%.cu.o: $(SOURCES)/%.cu
	$(QUIET)$(CXX) $(ALL_CXXFLAGS) $(DEVICE_FLAGS) $(bounds) -include $(KIT)/prelude.hpp -c $< -o $@
	@[ ! -e $@ ] || objcopy $(foreach name,$(copies),--redefine-sym $(name)=simt_$(name)) $@
$(TO)/%.cu.i: $(SOURCES)/%.cu
	$(QUIET)$(CXX) $(ALL_CXXFLAGS) $(DEVICE_FLAGS) $(bounds) -include $(KIT)/prelude.hpp -E $< -o $@
$(TO)/%.cpp.o: $(SOURCES)/%.cpp
	$(QUIET)$(CXX) $(ALL_CXXFLAGS) -c $< -o $@
endif
