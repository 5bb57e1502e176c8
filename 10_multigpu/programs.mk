# What step 10 has besides its kernels: included by its Makefile and by that of all steps.

# The program of one file: under nvcc the one line that its first comment names.
MINIMAL_SOURCE := $(ROOT)/10_multigpu/minimal.cu
MINIMAL := $(OUT)/10_multigpu/minimal
ifeq ($(BACKEND),cuda)
$(MINIMAL): $(MINIMAL_SOURCE)
	@mkdir -p $(@D) && $(NVCC) -std=c++20 $(filter -arch%,$(NVCC_FLAGS)) $(if $(filter native,$(CUDA_ARCHS)),,-arch=sm_$(firstword $(CUDA_ARCHS))) $< -o $@
else
$(MINIMAL): $(filter $(OUT)/common/simt/%,$(common_objects)) $(call object,$(MINIMAL_SOURCE))
	$(link)
endif

# The solver, and its comparison with the host's (GPUs only).
SOLVER := $(OUT)/10_multigpu/conjugate_gradients
$(SOLVER): $(foreach d,simt sparse device,$(filter $(OUT)/common/$d/%,$(common_objects))) $(call object,$(ROOT)/10_multigpu/conjugate_gradients.cu)
	$(link)
SOLVERS_COMPARED := $(OUT)/10_multigpu/solvers_compared
$(SOLVERS_COMPARED): LIBRARIES += -lcublas $(NCCL_LIBRARIES)
$(SOLVERS_COMPARED): $(common_objects) $(call object,$(ROOT)/10_multigpu/solvers_compared.cu)
	$(link)

# The kernels with one mistake each, for test_mutants.cu.
MUTANTS := $(OUT)/10_multigpu/mutants.cuh
$(MUTANTS): $(addprefix $(ROOT)/10_multigpu/,mutants.py mutants.diff persistent.cuh persistent_part.cuh minimal.cu conjugate_gradients.cu)
	@mkdir -p $(@D) && python3 $< $(dir $<) >$@
$(call object,$(ROOT)/10_multigpu/test_mutants.cu): private INCLUDES += -I$(OUT)
$(call object,$(ROOT)/10_multigpu/test_mutants.cu): $(MUTANTS)

# The MPI program, where there is an MPI.
SPMV_MPI := $(OUT)/10_multigpu/spmv_mpi
MPI_SOURCES := $(addprefix $(ROOT)/10_multigpu/,mpi/spmv_mpi.cpp machine.cu measure.cpp part.cpp persistent.cu)

$(call object,$(ROOT)/10_multigpu/mpi/spmv_mpi.cpp): private DEFINES += -DOMPI_SKIP_MPICXX
$(SPMV_MPI): LIBRARIES += $(MPI_LIBRARIES) $(NCCL_LIBRARIES)
$(SPMV_MPI): $(common_objects) $(call object,$(MPI_SOURCES) $(call stage_sources,06_pcsr))
	$(link)

# Ranks that share cores are no mistake here. OpenMPI will not start as root unless it is told to.
MPIRUN ?= mpirun --oversubscribe $(if $(filter 0,$(shell id -u)),--allow-run-as-root)
PROGRAMS_10 := $(MINIMAL) $(SOLVER) $(if $(HAVE_MPI),$(SPMV_MPI))
test_10 = bash $(ROOT)/10_multigpu/mpi/test.sh $(SPMV) $(PROGRAMS_10) \
  $(if $(HAVE_MPI),'$(MPIRUN)' && bash $(ROOT)/10_multigpu/mpi/hosts.sh $(SPMV_MPI) '$(firstword $(MPIRUN))')
NO_MPI := step 10: no MPI was found when this was set up: apt-get install libopenmpi-dev openmpi-bin, and make clean
