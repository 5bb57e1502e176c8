# Step 10 as an MPI program, where there is an MPI: included by the step's Makefile and by that of all
# steps.
SPMV_MPI := $(OUT)/10_multigpu/spmv_mpi
MPI_SOURCES := $(addprefix $(ROOT)/10_multigpu/,mpi/spmv_mpi.cpp mpi/ranks.cu machine.cu measure.cpp part.cpp persistent.cu)

$(call object,$(addprefix $(ROOT)/10_multigpu/mpi/,spmv_mpi.cpp ranks.cu)): private DEFINES += -DOMPI_SKIP_MPICXX
$(SPMV_MPI): LIBRARIES += $(MPI_LIBRARIES) $(NCCL_LIBRARIES)
$(SPMV_MPI): $(common_objects) $(call object,$(MPI_SOURCES) $(call stage_sources,06_pcsr))
	$(link)

# Ranks that share cores are no mistake here. OpenMPI will not start as root unless it is told to.
MPIRUN ?= mpirun --oversubscribe $(if $(filter 0,$(shell id -u)),--allow-run-as-root)
NO_MPI := step 10: no MPI was found when this was set up: apt-get install libopenmpi-dev openmpi-bin, and make clean
