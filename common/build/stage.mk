# A step's Makefile: `include ../common/build/stage.mk`.
#
#   make run [MATRIX=...] [PRECISION=f32|f64] [ARGS="..."]   build the step, run and verify it
#   make run PROFILE=1 [...]                                  and what each line asks of memory
#   make run ALL=1                                            on a GPU: every column of the table
#   make run KERNEL=path/to/mine.cuh [the same]               my version of a kernel beside the step's
#   make test                                                 its tests
#   make check [KERNEL=path/to/mine.cuh]                      is it right, safe, and does it ask little of
#                                                             memory? (coursework/exercise.ini)
#   make hint [ARGS=exercise]                                 one hint, and the next one when called again
#   make watch [MATRIX=...] [KERNELS="one another"] [KERNEL=path/to/mine.cuh]
#                                                             a page on which one watches one or two kernels
#                                                             run, step by step (watch/README.md)
#   make COMMAND [MATRIX=...] [PRECISION=...] [ARGS="..."]    a program of this step's own
#                                                             (harness/command.hpp), for each of COMMANDS
include $(dir $(lastword $(MAKEFILE_LIST)))build.mk

STEP := $(notdir $(CURDIR))
PRECISION ?= f64
MATRIX_FOUND := $(if $(MATRIX),$(call found,MATRIX))
SPMV := $(OUT)/$(STEP)/spmv
TESTS := $(OUT)/$(STEP)/tests

# A student's kernel beside the step's: a copy of the step around it (coursework/mine.py).
ifneq ($(KERNEL),)
  MINE := $(shell python3 $(ROOT)/common/coursework/mine.py $(CURDIR) $(call typed,KERNEL) $(call quoted,$(PWD)) $(ROOT)/build/mine)
  $(if $(MINE),,$(shell false $(or_quit))$(error KERNEL=$(value KERNEL) cannot be used))
  # build/mine/KEY/STEP/stage.cu
  SPMV := $(OUT)/mine/$(word 3,$(subst /, ,$(patsubst $(ROOT)/%,%,$(firstword $(MINE)))))/spmv
$(call object,$(MINE)): private WARNINGS += -Wfatal-errors -Wno-unused-parameter
  # After a wrong result, where to look.
  where = || { status=$$?; [ $$status != 1 ] || $(if $(filter 1,$(COUNT)),$(moments) --wrong,echo \
    'Where: not looked for with $(if $(filter 1,$(SANITIZE)),SANITIZE=1,COUNT=0). Without it every access is observed, and the one that is wrong is named.'); (exit $$status); }
  # After a right one, what that says.
  shown = $(if $(shell case $(call typed,KERNEL) in (*[!A-Za-z0-9._/+-]*) echo odd ;; esac),$(call typed,KERNEL),$(KERNEL))
  tried = && printf '%s\n' $(call quoted,Tried on what is shown here alone; on hundreds of matrices: make $(if $(filter $(CURDIR),$(PWD)),,-C $(STEP) )check KERNEL=$(shown))
endif
# Where it goes wrong, and the `make watch` that shows it.
moments = python3 $(ROOT)/common/watch/moments.py $(SPMV) $(CURDIR) 'make$(if $(filter $(CURDIR),$(PWD)),, -C $(STEP)) watch' \
  $(if $(KERNEL),--own $(call typed,KERNEL))

# RUN: the step's own program that `make run` stands for, if not the table of its kernels.
# NEEDS: other steps whose kernels this one uses. WATCH_ARGS: in the place of ARGS, for `make watch`.
$(SPMV): $(common_objects) $(call object,$(MAIN) $(call stage_sources,$(STEP) $(NEEDS)) $(MINE))
	$(link)
$(TESTS): LIBRARIES += $(TEST_LIBRARIES)
$(TESTS): $(common_objects) $(call object,$(TEST_MAIN) $(call stage_sources,$(STEP) $(NEEDS)) $(call step_test_sources,$(STEP)))
	$(link)
# The page of `make watch` may show a kernel of another step beside one of this: BESIDE names that step.
WATCH := $(SPMV)
ifneq ($(wildcard $(addprefix $(ROOT)/,$(BESIDE))),)
  WATCH := $(SPMV)-watch
$(WATCH): $(common_objects) $(call object,$(MAIN) $(call stage_sources,$(STEP) $(NEEDS) $(BESIDE)) $(MINE))
	$(link)
endif

# What the page of `make watch` shows `make run KERNELS=` takes, too.
RUN_SPMV := $(if $(KERNELS),$(WATCH),$(SPMV))

.PHONY: run test watch check hint moment build-test help clean $(COMMANDS)
run $(COMMANDS): $(RUN_SPMV)  ## build, run and verify this step
	@$(RUN_SPMV) $(filter $(COMMANDS),$(if $(RUN),$(@:run=$(RUN)),$@)) $(if $(MATRIX),--matrix $(call quoted,$(MATRIX_FOUND))) --precision $(PRECISION) $(kernel_option) $(if $(filter 1,$(PROFILE)),--profile) $(if $(filter 1,$(ALL)),--wide) $(ARGS) $(if $(wildcard exercise.ini),$(tried)) $(if $(filter cpu,$(BACKEND)),$(where)) $(or_quit)
test: $(TESTS)  ## this step's tests
	@OMP_WAIT_POLICY=passive $(TESTS)$(if $(after_test), && $(after_test))
watch: $(WATCH)  ## a page on which one watches kernels run
	@python3 $(ROOT)/common/watch/watch.py $(WATCH) $(ROOT)/build/watch/$(STEP).html --tour tour.txt \
	  $(if $(MATRIX),--matrix $(call quoted,$(MATRIX_FOUND))) --kernels $(call typed,KERNELS) $(if $(KERNEL),--mine) $(if $(FIND),--find $(FIND)) \
	  $(if $(TRACE),--trace $(call quoted,$(call found,TRACE))) --precision $(PRECISION) $(or $(WATCH_ARGS),$(ARGS)) $(or_quit)
check:  ## is it right, safe, and does it ask little of memory?
	+@python3 $(ROOT)/common/coursework/check.py $(ROOT)/$(STEP) $(if $(KERNEL),--kernel $(call quoted,$(call found,KERNEL))) $(ARGS) || { status=$$?; $(MOMENT); (exit $$status); } $(or_quit)
# Where the program that shows it has been built.
MOMENT := $(if $(filter cpu,$(BACKEND)),$(if $(wildcard $(SPMV)),$(MAKE) -s moment PWD=$(call quoted,$(PWD)) 2>/dev/null,:),:)
hint:  ## one hint for an exercise; ARGS=its name
	@python3 $(ROOT)/common/primer/learn.py --hint --step $(STEP) $(ARGS) $(or_quit)
moment: $(SPMV)
	@$(moments)
build-test: $(TESTS)
	@:
help:
	@echo 'make run [MATRIX=file.mtx.gz|stencil2d:1000x1000|scircuit] [PRECISION=f32|f64] [PROFILE=1] [ARGS=...]'
	@$(foreach c,$(COMMANDS),echo 'make $(c) [the same]';)
	@echo 'make run KERNEL=path/to/mine.cuh [the same]'
	@echo 'make watch [MATRIX=stencil2d:16x16] [KERNELS="csr_scalar csr_vector"] [KERNEL=path/to/mine.cuh]'
	@echo 'make check [KERNEL=path/to/mine.cuh]'
	@echo 'make test'
	@echo 'make clean'
clean:
	@rm -rf $(ROOT)/build/*/$(STEP)
