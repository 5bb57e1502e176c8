#include "persistent.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "../06_pcsr/one_pass.cuh"
#include "device/csr.hpp"
#include "device/devices.hpp"
#include "device/launch.hpp"
#include "harness/kernel.hpp"
#include "persistent.cuh"
#include "persistent_fast.cuh"

namespace spmv::multigpu {
namespace {

using Word = unsigned long long;

// What step 06 asks of row lengths: as prepare_one_pass_kernel counts them.
template <typename T>
RowsStatistics statistics_of(const Csr<T>& a) {
  RowsStatistics found{};
  for (int w = 0; w < kRowsWidths; ++w) {
    const Index together = std::max(32 >> w, 1), items = kRowsItems << w;
    for (Index first = 0; first < a.rows; first += together) {
      int longest = 0;
      for (Index row = first; row < std::min(first + together, a.rows); ++row) {
        longest = std::max(longest, a.row_length(row));
      }
      found.longest = std::max(found.longest, longest);
      found.rounds[w] += std::max(device::divide_up(longest, items), 1);
    }
  }
  return found;
}

// A power of two, so that each lane has at least two nonzeros of a row of the mean length.
int lanes_for(long long rows, long long nnz) {
  int lanes = 2;
  while (lanes < 32 && 2 * (2 * lanes) * rows <= nnz) lanes *= 2;
  return lanes;
}

template <typename T>
auto rows_kernel(int lanes) {
  switch (lanes) {
    case 1:
      return persistent_rows_kernel<1, T>;
    case 2:
      return persistent_rows_kernel<2, T>;
    case 4:
      return persistent_rows_kernel<4, T>;
    case 8:
      return persistent_rows_kernel<8, T>;
    case 16:
      return persistent_rows_kernel<16, T>;
    default:
      return persistent_rows_kernel<32, T>;
  }
}

}  // namespace

template <typename T>
struct PersistentMachine<T>::OnGpu {
  Index first_row = 0, boundary_rows = 0, local_cols = 0;
  std::vector<Index> order;
  std::vector<Halo> halos;
  std::vector<T> first_x;   // step 0's, with its ghost entries
  unsigned window = 0;      // the length of a share, in rows and nonzeros
  int boundary_blocks = 0;  // blocks that have boundary rows

  device::DeviceCsr<T> csr;
  device::Buffer<T> x;                // both buffers
  device::Buffer<unsigned> arrivals;  // of each part
  device::Buffer<Neighbour> neighbours;
  device::Buffer<int> send_offsets;
  device::Buffer<Share> shares;
  device::Buffer<PartialSum<T>> partial_sums;
  device::Buffer<unsigned> unstarted;
  device::Buffer<T*> sends;
  device::Buffer<double> block_sums;
  device::Buffer<Word> norms;
  device::Buffer<unsigned> stuck;
};

// --- Setting up ---------------------------------------------------------------------------------

template <typename T>
PersistentMachine<T>::PersistentMachine(const std::vector<Part<T>>& parts,
                                        const PersistentSetup& setup)
    : setup_(setup), kernel_(setup.kernel), on_gpu_(parts.size()) {
  const int count = static_cast<int>(parts.size());
  devices_ = device::available_devices(setup.devices > 0 ? std::min(setup.devices, count) : count);
  for (int d = 0; d < devices_; ++d) {
    for (int e = 0; e < devices_; ++e) {
      if (d == e || device::enable_peer_access(d, e)) continue;
      throw Unsuitable("GPUs " + std::to_string(d) + " and " + std::to_string(e) +
                       " have no access to each other's memory, which stores need: use "
                       "--exchange packed");
    }
  }
  for (const Part<T>& part : parts) {
    rows_ += part.rows();
    x_distance_ = std::max(x_distance_, static_cast<std::size_t>(part.local_cols + 31) / 32 * 32);
  }
  choose_kernel(parts);
  choose_grid(parts);
  for (int p = 0; p < count; ++p) allocate(parts[p], p);
  here_.resize(devices_);
  for (int d = 0; d < devices_; ++d) {
    const device::OnDevice on(d);
    streams_.emplace_back();
    here_[d].blocks = blocks_;
    here_[d].parts = count;
    here_[d].lanes_per_row = lanes_;
    here_[d].most_polls = setup_.most_polls;
    here_[d].stuck = on_gpu_[d]->stuck.data();
  }
  for (int p = 0; p < count; ++p) describe(p);
}

template <typename T>
PersistentMachine<T>::~PersistentMachine() {
  for (int p = 0; p < parts(); ++p) {
    cudaSetDevice(device_of(p));
    on_gpu_[p].reset();
  }
  cudaSetDevice(0);
}

template <typename T>
void PersistentMachine<T>::choose_kernel(const std::vector<Part<T>>& parts) {
  long long nnz = 0;
  bool rows_suit = true;
  int width = 0;
  for (const Part<T>& part : parts) {
    nnz += part.matrix.nnz();
    if (kernel_ != PersistentKernel::kFast || part.rows() == 0) continue;
    const int wanted = rows_width(part.rows(), part.matrix.nnz(), statistics_of(part.matrix));
    rows_suit = rows_suit && wanted >= 0 && wanted <= 5;
    width = std::max(width, wanted);
  }
  lanes_ = setup_.lanes_per_row;
  if (kernel_ == PersistentKernel::kFast) {
    kernel_ = rows_suit ? PersistentKernel::kRows : PersistentKernel::kShares;
    if (lanes_ == 0) lanes_ = 1 << width;
  }
  if (lanes_ == 0) lanes_ = lanes_for(rows_, nnz);
  if (kernel_ == PersistentKernel::kSimple) {
    function_ = persistent_kernel<T>;
  } else if (kernel_ == PersistentKernel::kRows) {
    function_ = rows_kernel<T>(lanes_);
  } else {
    const bool one_part = devices_ == static_cast<int>(parts.size());
    function_ = one_part ? persistent_shares_kernel<true, T> : persistent_shares_kernel<false, T>;
    warp_bytes_ = sizeof(OnePassShared<T>);
  }
}

template <typename T>
std::string PersistentMachine<T>::choice() const {
  if (kernel_ == PersistentKernel::kShares) return "equal shares";
  return std::to_string(lanes_) + (lanes_ == 1 ? " lane" : " lanes") + " per row";
}

// As many warps as can be resident, or as are of use.
template <typename T>
void PersistentMachine<T>::choose_grid(const std::vector<Part<T>>& parts) {
  const int most_threads =
      kernel_ == PersistentKernel::kShares ? kPersistentSharesThreads : kPersistentRowsThreads;
  const std::size_t bytes = most_threads / 32 * warp_bytes_;
  for (int d = 0; d < devices_ && bytes > 0; ++d) {
    const device::OnDevice on(d);
    device::check(cudaFuncSetAttribute(function_, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       static_cast<int>(bytes)),
                  "shared memory");
    device::limit_shared_memory(function_, 1, bytes);
  }
  long long most = 1;  // warps
  for (const Part<T>& part : parts) {
    const bool by_rows = kernel_ != PersistentKernel::kShares;
    const long long wanted = by_rows
                                 ? device::divide_up(1LL * lanes_ * part.rows(), 32LL)
                                 : device::divide_up<long long>(
                                       0LL + part.rows() + part.matrix.nnz(), kOnePassLeastWindow);
    most = std::max(most, wanted);
  }
  const int useful = static_cast<int>(std::min(most, 1LL << 20));
  const int fit = device::resident_blocks(function_, most_threads, bytes) /
                  device::divide_up(static_cast<int>(parts.size()), devices_);
  blocks_ = setup_.blocks > 0 ? setup_.blocks : std::clamp(useful, 1, std::max(fit, 1));
  threads_ = 32 * std::clamp(device::divide_up(useful, blocks_), 1, most_threads / 32);
}

template <typename T>
void PersistentMachine<T>::allocate(const Part<T>& from, int p) {
  const device::OnDevice on(device_of(p));
  on_gpu_[p] = std::make_unique<OnGpu>();
  OnGpu& mine = *on_gpu_[p];
  mine.first_row = from.first_row;
  mine.boundary_rows = from.boundary_rows;
  mine.order = from.order;
  mine.halos = from.halos;
  mine.csr = device::DeviceCsr<T>(from.matrix);
  mine.local_cols = from.local_cols;
  mine.x = device::Buffer<T>("x", 2 * x_distance_);
  mine.arrivals = device::Buffer<unsigned>("arrivals", on_gpu_.size());
  find_shares(mine);
  mine.block_sums = device::Buffer<double>("block_sums", blocks_);
  mine.norms = device::Buffer<Word>("norms", 4 * on_gpu_.size());
  mine.stuck = device::Buffer<unsigned>("stuck", 4);
}

// Also finds out how many blocks have boundary rows, which stand first.
template <typename T>
void PersistentMachine<T>::find_shares(OnGpu& mine) {
  mine.boundary_blocks =
      std::min(device::divide_up(mine.boundary_rows, threads_ / lanes_), blocks_);
  if (kernel_ != PersistentKernel::kShares) return;
  // As many shares as one pass has on as many warps, in blocks of its own size.
  const OnePassShape shape =
      one_pass_shape<T>(mine.csr.rows, mine.local_cols, mine.csr.nnz,
                        std::max(blocks_ * threads_ / OnePassPolicy<T>::kThreads, 1),
                        device::attribute(cudaDevAttrL2CacheSize));
  const int count = shape.share_count;
  mine.window = shape.window;
  mine.shares = device::Buffer<Share>("shares", count + 1);
  mine.partial_sums = device::Buffer<PartialSum<T>>("partial_sums", 2 * count);
  mine.unstarted = device::Buffer<unsigned>("unstarted", count);
  if (count == 0) return;
  constexpr int kThreads = 128;
  device::launch(find_shares_kernel<T>,
                 {dim3(device::divide_up(count + 1, kThreads / 32)), dim3(kThreads)}, count,
                 mine.window, kOnePassOverhang, mine.csr.rows, mine.csr.nnz,
                 mine.csr.row_offsets.data(), mine.shares.data(), mine.partial_sums.data(),
                 mine.unstarted.data());
  device::check(cudaDeviceSynchronize(), "finding shares");
  const std::vector<Share> shares = mine.shares.download();
  const auto interior = std::find_if(shares.begin(), shares.end() - 1, [&](const Share& share) {
    return (share.row & ~kCutRow) >= mine.boundary_rows;
  });
  const int with_boundary = static_cast<int>(interior - shares.begin());
  mine.boundary_blocks = std::min(device::divide_up(with_boundary, threads_ / 32), blocks_);
}

// Fills in here_[].part[] for part p, with its neighbours and what it sends.
template <typename T>
void PersistentMachine<T>::describe(int p) {
  const device::OnDevice on(device_of(p));
  OnGpu& mine = *on_gpu_[p];
  std::set<int> neighbours;
  for (const Halo& halo : mine.halos) neighbours.insert(halo.owner);
  std::vector<std::vector<T*>> sends(mine.boundary_rows);  // of each boundary row
  for (int q = 0; q < parts(); ++q) {
    OnGpu& receiver = *on_gpu_[q];
    for (const Halo& halo : receiver.halos) {
      if (halo.owner != p) continue;
      neighbours.insert(q);
      for (Index j = 0; j < halo.count(); ++j) {
        sends[halo.sources[j]].push_back(receiver.x.data() + halo.ghost_begin + j);
      }
    }
  }
  std::vector<int> offsets{0};
  std::vector<T*> all;
  for (const auto& of_row : sends) {
    all.insert(all.end(), of_row.begin(), of_row.end());
    offsets.push_back(static_cast<int>(all.size()));
  }
  mine.send_offsets = device::Buffer<int>("send_offsets", offsets);
  mine.sends = device::Buffer<T*>("sends", all);
  std::vector<Neighbour> table;
  for (const int q : neighbours) {
    table.push_back({q, on_gpu_[q]->arrivals.data() + p, mine.arrivals.data() + q,
                     static_cast<unsigned>(on_gpu_[q]->boundary_blocks)});
  }
  mine.neighbours = device::Buffer<Neighbour>("neighbours", table);

  PersistentPart<T>& view = here_[device_of(p)].part[p / devices_];
  view.rows = mine.csr.rows;
  view.boundary_rows = mine.boundary_rows;
  view.row_offsets = mine.csr.row_offsets.data();
  view.column_indices = mine.csr.column_indices.data();
  view.values = mine.csr.values.data();
  for (int i = 0; i < 2; ++i) view.x[i] = mine.x.data() + i * x_distance_;
  view.x_distance = static_cast<long long>(x_distance_);
  view.own_part = p;
  view.neighbours = static_cast<int>(table.size());
  view.neighbour = mine.neighbours.data();
  view.send_offsets = mine.send_offsets.data();
  view.sends = mine.sends.data();
  view.product = {static_cast<int>(mine.unstarted.size()),
                  mine.window,
                  mine.shares.data(),
                  view.row_offsets,
                  view.column_indices,
                  view.values,
                  T{1},
                  view.x[0],
                  T{0},
                  view.x[1],
                  mine.partial_sums.data(),
                  mine.unstarted.data()};
  view.boundary_blocks = mine.boundary_blocks;
  view.arrivals = mine.arrivals.data() + p;
  view.block_sums = mine.block_sums.data();
  for (int q = 0; q < parts(); ++q) view.norms[q] = on_gpu_[q]->norms.data();
}

// --- Running ------------------------------------------------------------------------------------

template <typename T>
void PersistentMachine<T>::start(const std::vector<T>& x) {
  for (const auto& mine : on_gpu_) {
    mine->first_x.assign(2 * x_distance_, std::numeric_limits<T>::quiet_NaN());
    for (std::size_t i = 0; i < mine->order.size(); ++i) {
      mine->first_x[i] = x[mine->first_row + mine->order[i]];
    }
    for (const Halo& halo : mine->halos) {
      const OnGpu& owner = *on_gpu_[halo.owner];
      for (Index j = 0; j < halo.count(); ++j) {
        mine->first_x[halo.ghost_begin + j] = x[owner.first_row + owner.order[halo.sources[j]]];
      }
    }
  }
}

// Step 0's x, and no arrivals yet. Ghost entries are NaN, so that one that is missing or late
// shows.
template <typename T>
void PersistentMachine<T>::reset() {
  const auto fill = [](auto& buffer, int byte) {
    if (buffer.size() == 0) return;
    device::check(cudaMemset(buffer.data(), byte, buffer.bytes()), "clearing a buffer");
  };
  for (int p = 0; p < parts(); ++p) {
    const device::OnDevice on(device_of(p));
    OnGpu& mine = *on_gpu_[p];
    mine.x.upload(mine.first_x);
    fill(mine.arrivals, 0);
    fill(mine.norms, 0);
    fill(mine.stuck, 0);
    device::check(cudaDeviceSynchronize(), "preparing a run");
  }
}

template <typename T>
double PersistentMachine<T>::run(int steps, Function function) {
  if (kernel_ == PersistentKernel::kSimple && factor_ == 0) {
    throw Unsuitable("the simple persistent kernel has no norm");
  }
  reset();
  const auto before = std::chrono::steady_clock::now();
  // All are launched before any is waited for: they wait for each other.
  for (int d = 0; d < devices_; ++d) {
    const device::OnDevice on(d);
    const int parts_here = device::divide_up(parts() - d, devices_);
    here_[d].factor = factor_;
    device::launch_cooperative(function,
                               {dim3(blocks_ * parts_here), dim3(threads_),
                                threads_ / 32 * warp_bytes_, streams_[d].get()},
                               here_[d], steps);
  }
  for (int d = 0; d < devices_; ++d) {
    const device::OnDevice on(d);
    streams_[d].synchronize();
  }
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - before;
  for (int d = 0; d < devices_; ++d) {
    const device::OnDevice on(d);
    const std::vector<unsigned> stuck = on_gpu_[d]->stuck.download();
    if (!stuck[0]) continue;
    const std::string awaited = stuck[3] == kAnyPart   ? "entries of other parts"
                                : stuck[3] == stuck[1] ? "its own blocks"
                                                       : "part " + std::to_string(stuck[3]);
    throw device::DeviceError("part " + std::to_string(stuck[1]) + ", in step " +
                              std::to_string(stuck[2]) + ", timed out waiting for " + awaited +
                              ": another GPU has failed, or is too slow");
  }
  return time.count();
}

// --- Results ------------------------------------------------------------------------------------

// What the entries of step k's x, as they are in memory, are multiplied by.
template <typename T>
double PersistentMachine<T>::factor_before(int k) {
  if (factor_ != 0) return factor_;
  if (k == 0) return 1;
  const device::OnDevice on(device_of(0));
  const std::vector<Word> words = on_gpu_[0]->norms.download();
  double squares = 0;
  for (int p = 0; p < parts(); ++p) {
    const Word* const of_part = &words[(k % 2 * parts() + p) * 2];
    const Word bits = (of_part[0] & 0xffffffffu) | of_part[1] << 32;
    double value;
    std::memcpy(&value, &bits, sizeof value);
    squares += value;
  }
  return 1 / power_of_norm(squares);
}

template <typename T>
std::vector<T> PersistentMachine<T>::x_of(int k) {
  std::vector<T> whole(rows_);
  const T scale = static_cast<T>(factor_ != 0 ? 1 : factor_before(k));
  for (int p = 0; p < parts(); ++p) {
    const device::OnDevice on(device_of(p));
    const OnGpu& mine = *on_gpu_[p];
    const std::vector<T> x = mine.x.download();
    for (std::size_t i = 0; i < mine.order.size(); ++i) {
      whole[mine.first_row + mine.order[i]] = scale * x[k % 2 * x_distance_ + i];
    }
  }
  return whole;
}

template class PersistentMachine<float>;
template class PersistentMachine<double>;

}  // namespace spmv::multigpu
