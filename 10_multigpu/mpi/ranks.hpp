// Step 10 past one machine: a process per GPU, with one part of the rows each. What all ranks do
// together, how they fail together, and what moves entries of x between them.
#pragma once

#include <mpi.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "../processes.hpp"

namespace spmv::multigpu {

#ifdef HAVE_NCCL
inline constexpr bool kHaveNccl = true;
#else
inline constexpr bool kHaveNccl = false;
#endif

// What went wrong on one of the ranks, as all of them know it, and what they end with.
struct Failure : std::runtime_error {
  Failure(int ends_with, const std::string& text) : std::runtime_error(text), status(ends_with) {}
  int status;
};

// A process for each part, whose number is the rank in MPI_COMM_WORLD.
class Ranks final : public Processes {
 public:
  Ranks();

  int count() const override { return count_; }
  int number() const override { return rank_; }
  int first_device() const override { return device_; }
  // Every rank does its `work`. If it fails on one, all ranks throw that one's Failure: no rank
  // waits for a rank that has given up.
  void together(const std::function<void()>& work) const override;
  Lists tell(Lists lists) const override;
  std::unique_ptr<Transport<float>> make_transport(const AllGpus<float>&) const override;
  std::unique_ptr<Transport<double>> make_transport(const AllGpus<double>&) const override;

  // Of this rank, from now on.
  void use_device(int device) { device_ = device; }
  // NCCL from GPU to GPU, or MPI from host to host, which it is at first.
  void use_nccl(bool uses) { uses_nccl_ = uses; }

 private:
  void gather_bytes(void* whole, std::size_t bytes,
                    const std::vector<Index>& begins) const override;
  template <typename T>
  std::unique_ptr<Transport<T>> make(const AllGpus<T>& gpus) const;

  int rank_ = 0, count_ = 1, device_ = 0;
  bool uses_nccl_ = false;
};

}  // namespace spmv::multigpu
