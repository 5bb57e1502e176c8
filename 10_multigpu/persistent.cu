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

constexpr int kMostWarps = kPersistentThreads / 32;  // of a block

// The boundary rows, then the interior ones.
template <typename T>
Csr<T> all_rows(const Part<T>& part) {
  Csr<T> all = part.boundary;
  const Csr<T>& interior = part.interior;
  all.rows = part.rows();
  for (Index row = 0; row < interior.rows; ++row) {
    all.row_offsets.push_back(part.boundary.nnz() + interior.row_offsets[row + 1]);
  }
  all.column_indices.insert(all.column_indices.end(), interior.column_indices.begin(),
                            interior.column_indices.end());
  all.values.insert(all.values.end(), interior.values.begin(), interior.values.end());
  return all;
}

// Lanes for a row of the mean length: a power of two that leaves each at least two nonzeros.
int lanes_for(long long rows, long long nnz) {
  int lanes = 2;
  while (lanes < 32 && 2 * (2 * lanes) * rows <= nnz) lanes *= 2;
  return lanes;
}

template <typename T>
using KernelOf = void (*)(PartsHere<T>, int);

template <typename T>
KernelOf<T> function_of(PersistentKernel kernel) {
  return kernel == PersistentKernel::kSimple ? persistent_kernel<T> : persistent_fast_kernel<T>;
}

}  // namespace

template <typename T>
struct PersistentMachine<T>::OnGpu {
  Index first_row = 0, boundary_rows = 0;
  std::vector<Index> order;
  std::vector<Halo> halos;
  std::vector<T> first_x;   // step 0's, with its ghost entries
  unsigned window = 0;      // the length of a share, in rows and nonzeros
  int boundary_blocks = 0;  // blocks that have boundary rows

  device::DeviceCsr<T> csr;
  device::Buffer<T> x[2];
  device::Buffer<unsigned> arrivals;  // of each part
  device::Buffer<Neighbour> neighbours;
  device::Buffer<int> send_offsets;
  device::Buffer<Share> shares;
  device::Buffer<PartialSum<T>> partial_sums;
  device::Buffer<unsigned> unstarted;
  device::Buffer<Send<T>> sends;
  device::Buffer<double> block_sums;
  device::Buffer<Word> norms;
  device::Buffer<unsigned> stuck;
};

// --- Setting up ---------------------------------------------------------------------------------

template <typename T>
PersistentMachine<T>::PersistentMachine(const std::vector<Part<T>>& parts,
                                        const PersistentSetup& setup)
    : setup_(setup), on_gpu_(parts.size()) {
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
  long long nnz = 0;
  for (const Part<T>& part : parts) rows_ += part.rows(), nnz += part.nnz();
  if (setup_.lanes_per_row == 0) setup_.lanes_per_row = lanes_for(rows_, nnz);
  choose_grid(parts);
  for (int p = 0; p < count; ++p) allocate(parts[p], p);
  here_.resize(devices_);
  for (int d = 0; d < devices_; ++d) {
    const device::OnDevice on(d);
    streams_.emplace_back();
    here_[d].blocks = blocks_;
    here_[d].parts = count;
    here_[d].lanes_per_row = setup_.lanes_per_row;
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

// One share per warp, of as many warps as can be resident, or as are of use; more where shares
// would be so long that the whole matrix and x would be read at the same time (step 06).
template <typename T>
void PersistentMachine<T>::choose_grid(const std::vector<Part<T>>& parts) {
  constexpr std::size_t kSharedBytes = kMostWarps * sizeof(OnePassShared<T>);
  for (int d = 0; d < devices_; ++d) {
    const device::OnDevice on(d);
    device::check(
        cudaFuncSetAttribute(persistent_fast_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(kSharedBytes)),
        "shared memory");
    device::limit_shared_memory(persistent_fast_kernel<T>, 1, kSharedBytes);
  }
  long long most = 1;
  for (const Part<T>& part : parts) most = std::max(most, part.rows() + part.nnz());
  const int useful = static_cast<int>(
      std::min<long long>(device::divide_up<long long>(most, kOnePassLeastWindow), 1 << 20));
  const int fit =
      device::resident_blocks(persistent_fast_kernel<T>, kPersistentThreads, kSharedBytes) /
      device::divide_up(static_cast<int>(parts.size()), devices_);
  blocks_ = setup_.blocks > 0 ? setup_.blocks : std::clamp(useful, 1, std::max(fit, 1));
  threads_ = 32 * std::clamp(device::divide_up(useful, blocks_), 1, kMostWarps);
}

template <typename T>
void PersistentMachine<T>::allocate(const Part<T>& from, int p) {
  const device::OnDevice on(device_of(p));
  on_gpu_[p] = std::make_unique<OnGpu>();
  OnGpu& mine = *on_gpu_[p];
  mine.first_row = from.first_row;
  mine.boundary_rows = from.boundary.rows;
  mine.order = from.order;
  mine.halos = from.halos;
  mine.csr = device::DeviceCsr<T>(all_rows(from));
  for (auto& x : mine.x) x = device::Buffer<T>("x", from.local_cols);
  mine.arrivals = device::Buffer<unsigned>("arrivals", on_gpu_.size());
  find_shares(mine);
  mine.block_sums = device::Buffer<double>("block_sums", blocks_);
  mine.norms = device::Buffer<Word>("norms", 4 * on_gpu_.size());
  mine.stuck = device::Buffer<unsigned>("stuck", 4);
}

template <typename T>
void PersistentMachine<T>::find_shares(OnGpu& mine) {
  const long long positions = 0LL + mine.csr.rows + mine.csr.nnz;
  const int warps = threads_ / 32;  // of a block
  const bool x_fits =
      mine.x[0].bytes() <= static_cast<std::size_t>(device::attribute(cudaDevAttrL2CacheSize));
  const long long longest = x_fits ? kOnePassWindow : kOnePassWindowFarX;
  const long long all_warps = 1LL * blocks_ * warps;
  const long long rounds = std::max(device::divide_up(positions, all_warps * longest), 1LL);
  mine.window = static_cast<unsigned>(
      std::max<long long>(device::divide_up(positions, all_warps * rounds), kOnePassLeastWindow));
  const int count = static_cast<int>(device::divide_up<long long>(positions, mine.window));
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
  int with_boundary = 0;
  while (with_boundary < count && (shares[with_boundary].row & ~kCutRow) < mine.boundary_rows) {
    ++with_boundary;
  }
  mine.boundary_blocks = std::min(device::divide_up(with_boundary, warps), blocks_);
}

// Fills in here_[].part[] for part p, with its neighbours and what it sends.
template <typename T>
void PersistentMachine<T>::describe(int p) {
  const device::OnDevice on(device_of(p));
  OnGpu& mine = *on_gpu_[p];
  std::set<int> neighbours;
  for (const Halo& halo : mine.halos) neighbours.insert(halo.owner);
  std::vector<std::vector<Send<T>>> sends(mine.boundary_rows);  // of each boundary row
  for (int q = 0; q < parts(); ++q) {
    OnGpu& receiver = *on_gpu_[q];
    for (const Halo& halo : receiver.halos) {
      if (halo.owner != p) continue;
      neighbours.insert(q);
      for (Index j = 0; j < halo.count(); ++j) {
        const Index place = halo.ghost_begin + j;
        sends[halo.sources[j]].push_back(
            {{receiver.x[0].data() + place, receiver.x[1].data() + place}});
      }
    }
  }
  std::vector<int> offsets{0};
  std::vector<Send<T>> all;
  for (const auto& of_row : sends) {
    all.insert(all.end(), of_row.begin(), of_row.end());
    offsets.push_back(static_cast<int>(all.size()));
  }
  mine.send_offsets = device::Buffer<int>("send_offsets", offsets);
  mine.sends = device::Buffer<Send<T>>("sends", all);
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
  for (int i = 0; i < 2; ++i) view.x[i] = mine.x[i].data();
  view.own_part = p;
  view.neighbours = static_cast<int>(table.size());
  view.neighbour = mine.neighbours.data();
  view.send_offsets = mine.send_offsets.data();
  view.sends = mine.sends.data();
  for (int k = 0; k < 2; ++k) {
    view.product[k] = {static_cast<int>(mine.unstarted.size()),
                       mine.window,
                       mine.shares.data(),
                       view.row_offsets,
                       view.column_indices,
                       view.values,
                       T{1},
                       view.x[k],
                       T{0},
                       view.x[1 - k],
                       mine.partial_sums.data(),
                       mine.unstarted.data()};
  }
  view.boundary_blocks = mine.boundary_blocks;
  view.arrivals = mine.arrivals.data() + p;
  view.block_sums = mine.block_sums.data();
  for (int q = 0; q < parts(); ++q) view.norms[q] = on_gpu_[q]->norms.data();
}

// --- Running ------------------------------------------------------------------------------------

template <typename T>
void PersistentMachine<T>::start(const std::vector<T>& x) {
  for (const auto& mine : on_gpu_) {
    mine->first_x.assign(mine->x[0].size(), std::numeric_limits<T>::quiet_NaN());
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
    mine.x[0].upload(mine.first_x);
    fill(mine.x[1], 0xff);
    fill(mine.arrivals, 0);
    fill(mine.norms, 0);
    fill(mine.stuck, 0);
    device::check(cudaDeviceSynchronize(), "preparing a run");
  }
}

template <typename T>
double PersistentMachine<T>::run(int steps, PersistentKernel kernel) {
  return run(steps, function_of<T>(kernel));
}

template <typename T>
double PersistentMachine<T>::run(int steps, void (*kernel)(PartsHere<T>, int)) {
  const bool is_simple = kernel == function_of<T>(PersistentKernel::kSimple);
  if (is_simple && factor_ == 0) {
    throw Unsuitable("the simple persistent kernel has no norm");
  }
  const std::size_t shared_bytes = is_simple ? 0 : threads_ / 32 * sizeof(OnePassShared<T>);
  reset();
  const auto before = std::chrono::steady_clock::now();
  // All are launched before any is waited for: they wait for each other.
  for (int d = 0; d < devices_; ++d) {
    const device::OnDevice on(d);
    const int parts_here = device::divide_up(parts() - d, devices_);
    here_[d].factor = factor_;
    device::launch_cooperative(
        kernel, {dim3(blocks_ * parts_here), dim3(threads_), shared_bytes, streams_[d].get()},
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
    const std::vector<T> x = mine.x[k % 2].download();
    for (std::size_t i = 0; i < mine.order.size(); ++i) {
      whole[mine.first_row + mine.order[i]] = scale * x[i];
    }
  }
  return whole;
}

template class PersistentMachine<float>;
template class PersistentMachine<double>;

}  // namespace spmv::multigpu
