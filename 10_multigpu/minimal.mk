# The program of one file: under nvcc the one line that its first comment names. Included by this step's
# Makefile and by that of all steps.
MINIMAL := $(OUT)/10_multigpu/minimal
MINIMAL_SOURCE := $(ROOT)/10_multigpu/minimal.cu
ifeq ($(BACKEND),cuda)
$(MINIMAL): $(MINIMAL_SOURCE)
	@mkdir -p $(@D) && $(NVCC) -std=c++20 $(filter -arch%,$(NVCC_FLAGS)) $(if $(filter native,$(CUDA_ARCHS)),,-arch=sm_$(firstword $(CUDA_ARCHS))) $< -o $@
else
$(MINIMAL): $(filter $(OUT)/common/simt/%,$(common_objects)) $(call object,$(MINIMAL_SOURCE))
	$(link)
endif
