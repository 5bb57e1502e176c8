// Step 10: NCCL, where the build has found it (HAVE_NCCL).
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <string>
#include <vector>

#include "device/error.hpp"
#include "sparse/matrix.hpp"

#ifdef HAVE_NCCL
#include <nccl.h>
#endif

namespace spmv::multigpu {

#ifdef HAVE_NCCL
inline constexpr bool kHaveNccl = true;

inline void check_nccl(ncclResult_t result, const char* what) {
  if (result != ncclSuccess) {
    throw device::DeviceError(std::string(what) + ": NCCL: " + ncclGetErrorString(result));
  }
}

// The GPUs that talk to each other, or those of them that this process has.
class Nccl {
 public:
  // One process with all devices.
  explicit Nccl(const std::vector<int>& devices) : communicators_(devices.size()) {
    check_nccl(
        ncclCommInitAll(communicators_.data(), static_cast<int>(devices.size()), devices.data()),
        "ncclCommInitAll");
  }
  // One process per device. `id` is rank 0's make_id().
  using Id = ncclUniqueId;
  static Id make_id() {
    Id id{};
    check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
    return id;
  }
  Nccl(int ranks, int rank, const Id& id) : first_(rank), has_all_(ranks == 1), communicators_(1) {
    check_nccl(ncclCommInitRank(communicators_.data(), ranks, id, rank), "ncclCommInitRank");
  }
  Nccl(const Nccl&) = delete;
  Nccl& operator=(const Nccl&) = delete;
  ~Nccl() {
    for (ncclComm_t communicator : communicators_) ncclCommDestroy(communicator);
  }

  // Whether this process has all GPUs.
  bool has_all() const { return has_all_; }

  // Between begin() and end() stand the sends and receives that meet each other.
  static void begin() { check_nccl(ncclGroupStart(), "ncclGroupStart"); }
  static void end() { check_nccl(ncclGroupEnd(), "ncclGroupEnd"); }

  template <typename T>
  void send(int from, int to, const T* data, std::size_t count, cudaStream_t stream) {
    check_nccl(ncclSend(data, count, type<T>(), to, communicators_[from - first_], stream),
               "ncclSend");
  }
  template <typename T>
  void receive(int to, int from, T* data, std::size_t count, cudaStream_t stream) {
    check_nccl(ncclRecv(data, count, type<T>(), from, communicators_[to - first_], stream),
               "ncclRecv");
  }
  // One process per device: each gets the numbers of all.
  void all_gather(const double* own, double* all, cudaStream_t stream) {
    check_nccl(ncclAllGather(own, all, 1, ncclFloat64, communicators_[0], stream), "ncclAllGather");
  }

 private:
  template <typename T>
  static constexpr ncclDataType_t type() {
    return sizeof(T) == 4 ? ncclFloat32 : ncclFloat64;
  }
  int first_ = 0;  // GPU of this process
  bool has_all_ = true;
  std::vector<ncclComm_t> communicators_;
};

#else
inline constexpr bool kHaveNccl = false;

// In its place: says that it is not there.
class Nccl {
 public:
  using Id = std::array<char, 128>;
  static Id make_id() { return {}; }
  explicit Nccl(const std::vector<int>&) { fail(); }
  Nccl(int, int, const Id&) { fail(); }
  bool has_all() const { return true; }
  static void begin() {}
  static void end() {}
  template <typename T>
  void send(int, int, const T*, std::size_t, cudaStream_t) {}
  template <typename T>
  void receive(int, int, T*, std::size_t, cudaStream_t) {}
  void all_gather(const double*, double*, cudaStream_t) {}

 private:
  [[noreturn]] static void fail() {
    throw InputError(
        "--exchange nccl: this program was built without NCCL; use packed, or install libnccl-dev "
        "and build again");
  }
};
#endif

}  // namespace spmv::multigpu
