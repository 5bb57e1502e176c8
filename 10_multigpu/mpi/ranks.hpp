// Step 10 past one machine: a process per GPU, with one part of the rows each. What all ranks do
// together, how they fail together, and what moves entries of x between them.
#pragma once

#include <mpi.h>

#include <cstdio>
#include <exception>
#include <functional>
#include <new>
#include <string>

#include "../machine.hpp"
#include "../processes.hpp"

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

inline constexpr double kPatienceSeconds = 5;

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
  int first = g_ranks, all_here = 0;
  MPI_Request request;
  MPI_Iallreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD, &request);
  // A rank that has failed does not wait for one that hangs.
  const double end = MPI_Wtime() + kPatienceSeconds;
  while (failure.status && !all_here && MPI_Wtime() < end) {
    MPI_Test(&request, &all_here, MPI_STATUS_IGNORE);
  }
  if (failure.status && !all_here) {
    std::fprintf(stderr, "error: %s\n", failure.text.c_str());
    MPI_Abort(MPI_COMM_WORLD, failure.status);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (first == g_ranks) return;
  MPI_Bcast(&failure.status, 1, MPI_INT, first, MPI_COMM_WORLD);
  auto length = static_cast<int>(failure.text.size());
  MPI_Bcast(&length, 1, MPI_INT, first, MPI_COMM_WORLD);
  failure.text.resize(static_cast<std::size_t>(length));
  MPI_Bcast(failure.text.data(), length, MPI_CHAR, first, MPI_COMM_WORLD);
  throw failure;
}

// A process for each part, whose number is the rank.
class Ranks final : public Processes {
 public:
  bool has(int p) const override { return p == g_rank; }
  void together(const std::function<void()>& work) const override { multigpu::together(work); }
  void gather(void* of_parts, std::size_t bytes) const override {
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, of_parts, static_cast<int>(bytes), MPI_BYTE,
                  MPI_COMM_WORLD);
  }
  Lists tell(Lists lists) const override;
};
inline const Ranks kRanks;

// MPI from host to host, or NCCL from GPU to GPU. All ranks call it together, and throw Failure
// when NCCL fails on one.
template <typename T>
typename Machine<T>::MakeTransport transport_between_ranks(bool through_nccl, int device);

}  // namespace spmv::multigpu
