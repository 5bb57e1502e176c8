// Step 10 past one machine: a process per GPU, with one part of the rows each.
#pragma once

#include "../machine.hpp"
#include "../part.hpp"

namespace spmv::multigpu {

#ifdef HAVE_NCCL
inline constexpr bool kHaveNccl = true;
#else
inline constexpr bool kHaveNccl = false;
#endif

// Both are called by all ranks together.

// This rank's transfers: tells each owner which of its columns are needed, as part.halos says, and
// receives what to send itself. `part` is prepare_alone()'s.
template <typename T>
Transfers plan_between_ranks(const Part<T>& part);

// MPI from host to host, or NCCL from GPU to GPU. Throws Failure on all ranks when NCCL fails on
// one.
template <typename T>
typename Machine<T>::MakeTransport transport_between_ranks(const Transfers& transfers,
                                                           bool through_nccl, int device);

}  // namespace spmv::multigpu
