# The kernels with one mistake each, for test_mutants.cu. Included by this step's Makefile and by that of
# all steps.
MUTANTS := $(OUT)/10_multigpu/mutants.cuh
$(MUTANTS): $(addprefix $(ROOT)/10_multigpu/,mutants.py persistent.cuh persistent_part.cuh minimal.cu)
	@mkdir -p $(@D) && python3 $< $(dir $<) >$@
$(call object,$(ROOT)/10_multigpu/test_mutants.cu): private INCLUDES += -I$(OUT)
$(call object,$(ROOT)/10_multigpu/test_mutants.cu): $(MUTANTS)
