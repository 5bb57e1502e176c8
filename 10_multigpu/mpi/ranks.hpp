// Step 10 past one machine: a process per GPU, with one part of the rows each. What all ranks do
// together, how they fail together, and what moves entries of x between them.
#pragma once

#include <mpi.h>

#include <exception>
#include <new>
#include <string>

#include "../machine.hpp"
#include "../part.hpp"

namespace spmv::multigpu {

#ifdef HAVE_NCCL
inline constexpr bool kHaveNccl = true;
#else
inline constexpr bool kHaveNccl = false;
#endif

// Of MPI_COMM_WORLD; set once, by main().
inline int g_rank = 0, g_ranks = 1;

template <typename T>
MPI_Datatype mpi_type() {
  return sizeof(T) == 4 ? MPI_FLOAT : MPI_DOUBLE;
}

// What went wrong on one of the ranks, as all of them know it.
struct Failure {
  int status;
  std::string text;
};

// Every rank does its `work`. If it fails on one, all ranks throw that one's Failure: no rank waits
// for a rank that has given up.
template <typename Work>
void together(const Work& work) {
  Failure failure{0, {}};
  try {
    work();
  } catch (const InputError& error) {
    failure = {2, error.what()};
  } catch (const std::bad_alloc&) {
    failure = {2, "out of memory; use more ranks"};
  } catch (const std::exception& error) {
    failure = {1, error.what()};
  }
  const int mine = failure.status ? g_rank : g_ranks;
  int first = g_ranks;
  MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (first == g_ranks) return;
  MPI_Bcast(&failure.status, 1, MPI_INT, first, MPI_COMM_WORLD);
  auto length = static_cast<int>(failure.text.size());
  MPI_Bcast(&length, 1, MPI_INT, first, MPI_COMM_WORLD);
  failure.text.resize(static_cast<std::size_t>(length));
  MPI_Bcast(failure.text.data(), length, MPI_CHAR, first, MPI_COMM_WORLD);
  throw failure;
}

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
