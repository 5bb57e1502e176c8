#include "persistent.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "../06_pcsr/one_pass.cuh"
#include "device/buffer.hpp"
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

// Where entry i of a part's x, interior rows' first, is when boundary rows' are.
template <typename T>
Index flipped(const Part<T>& part, Index i) {
  if (i >= part.rows()) return i;  // a ghost
  return i < part.interior.rows ? i + part.boundary.rows : i - part.interior.rows;
}

// The boundary rows, then the interior ones.
template <typename T>
Csr<T> boundary_first(const Part<T>& part) {
  Csr<T> all;
  all.rows = part.rows();
  all.cols = part.local_cols;
  all.row_offsets = {0};
  all.column_indices.reserve(part.nnz());
  all.values.reserve(part.nnz());
  for (const Csr<T>* rows : {&part.boundary, &part.interior}) {
    const Index before = all.row_offsets.back();
    for (Index row = 0; row < rows->rows; ++row) {
      all.row_offsets.push_back(before + rows->row_offsets[row + 1]);
    }
    for (const Index column : rows->column_indices) {
      all.column_indices.push_back(flipped(part, column));
    }
    all.values.insert(all.values.end(), rows->values.begin(), rows->values.end());
  }
  return all;
}

// Lanes for a row of the mean length: a power of two that leaves each at least two nonzeros.
int lanes_for(long long rows, long long nnz) {
  int lanes = 2;
  while (lanes < 32 && 2 * (2 * lanes) * rows <= nnz) lanes *= 2;
  return lanes;
}

// What is in the memory of one part's GPU.
template <typename T>
struct Resident {
  device::DeviceCsr<T> csr;
  device::Buffer<T> x[2];
  device::Buffer<unsigned> arrivals;  // of each part
  device::Buffer<Neighbour> neighbours;
  device::Buffer<int> send_offsets;
  device::Buffer<Share> shares;
  device::Buffer<PartialSum<T>> partial_sums;
  device::Buffer<unsigned> unstarted;
  device::Buffer<Send> sends, word_sends;
  device::Buffer<Word> ghost_words;
  device::Buffer<double> block_sums;
  device::Buffer<Word> norms;
  device::Buffer<unsigned> stuck;
};

}  // namespace

template <typename T>
struct PersistentMachine<T>::State {
  static constexpr int kWordsOfEntry = sizeof(T) / 4;

  int parts = 0, devices = 0, blocks = 0, threads = 0;
  PersistentSetup setup;
  double factor = 0;
  Index rows = 0;
  std::vector<Part<T>> part;  // without its matrix
  std::vector<Index> own_ends, interior_rows;
  std::vector<int> boundary_blocks, share_counts;
  std::vector<unsigned> windows;
  std::vector<std::unique_ptr<Resident<T>>> resident;
  std::vector<device::Stream> streams;
  std::vector<PartsHere<T>> here;
  std::vector<std::vector<T>> first_x;  // of each part, with its ghost entries
  int steps = 0;                        // of the last run

  int device_of(int p) const { return p % devices; }
  Resident<T>& of(int p) { return *resident[p]; }

  State(const std::vector<Part<T>>& all, const PersistentSetup& wanted)
      : parts(static_cast<int>(all.size())), setup(wanted) {
    devices = device::available_devices(setup.devices > 0 ? std::min(setup.devices, parts) : parts);
    long long nnz = 0;
    for (const Part<T>& p : all) rows += p.rows(), nnz += p.nnz();
    if (setup.lanes_per_row == 0) setup.lanes_per_row = lanes_for(rows, nnz);
    choose_grid(all);
    connect();
    resident.resize(all.size());
    for (int p = 0; p < parts; ++p) allocate(all[p], p);
    here.resize(devices);
    for (int d = 0; d < devices; ++d) {
      const device::OnDevice on(d);
      streams.emplace_back();
      here[d].blocks = blocks;
      here[d].parts = parts;
      here[d].lanes_per_row = setup.lanes_per_row;
      here[d].most_polls = setup.most_polls;
      here[d].stuck = of(d).stuck.data();
    }
    for (int p = 0; p < parts; ++p) describe(all, p);
  }

  // One share per warp, of as many warps as can be resident, or as are of use; more where shares
  // would be so long that the whole matrix and x would be read at the same time (step 06).
  void choose_grid(const std::vector<Part<T>>& all) {
    for (int d = 0; d < devices; ++d) {
      const device::OnDevice on(d);
      for (const auto kernel :
           {persistent_fast_kernel<Ghosts::kFlags, T>, persistent_fast_kernel<Ghosts::kWords, T>}) {
        device::check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                           static_cast<int>(kMostWarps * sizeof(OnePassShared<T>))),
                      "shared memory");
        device::limit_shared_memory(kernel, 1, kMostWarps * sizeof(OnePassShared<T>));
      }
    }
    long long most = 1;
    for (const Part<T>& p : all) most = std::max(most, p.rows() + p.nnz());
    const int useful = static_cast<int>(
        std::min<long long>(device::divide_up<long long>(most, kOnePassLeastWindow), 1 << 20));
    const int fit =
        device::resident_blocks(persistent_fast_kernel<Ghosts::kWords, T>, kPersistentThreads,
                                kMostWarps * sizeof(OnePassShared<T>)) /
        device::divide_up(parts, devices);
    blocks = setup.blocks > 0 ? setup.blocks : std::clamp(useful, 1, std::max(fit, 1));
    threads = 32 * std::clamp(device::divide_up(useful, blocks), 1, kMostWarps);
  }

  // The length of a share of this part, in rows and nonzeros.
  unsigned window_of(const Part<T>& p) const {
    const long long positions = p.rows() + p.nnz();
    const long long warps = 1LL * blocks * (threads / 32);
    const long long l2_bytes = device::attribute(cudaDevAttrL2CacheSize);
    const long long longest = p.local_cols * static_cast<long long>(sizeof(T)) <= l2_bytes
                                  ? kOnePassWindow
                                  : kOnePassWindowFarX;
    const long long rounds = std::max(device::divide_up(positions, warps * longest), 1LL);
    return static_cast<unsigned>(
        std::max<long long>(device::divide_up(positions, warps * rounds), kOnePassLeastWindow));
  }

  void find_shares(const Part<T>& p, Resident<T>& mine) {
    const unsigned window = window_of(p);
    const int count = static_cast<int>(
        device::divide_up<long long>(p.rows() + p.nnz(), static_cast<long long>(window)));
    windows.push_back(window);
    share_counts.push_back(count);
    mine.shares = device::Buffer<Share>("shares", count + 1);
    mine.partial_sums = device::Buffer<PartialSum<T>>("partial_sums", 2 * count);
    mine.unstarted = device::Buffer<unsigned>("unstarted", count);
    boundary_blocks.push_back(0);
    if (count == 0) return;
    constexpr int kThreads = 128;
    device::launch(find_shares_kernel<T>,
                   {dim3(device::divide_up(count + 1, kThreads / 32)), dim3(kThreads)}, count,
                   window, kOnePassOverhang, p.rows(), mine.csr.nnz, mine.csr.row_offsets.data(),
                   mine.shares.data(), mine.partial_sums.data(), mine.unstarted.data());
    device::check(cudaDeviceSynchronize(), "finding shares");
    const std::vector<Share> shares = mine.shares.download();
    int with_boundary = 0;
    while (with_boundary < count && (shares[with_boundary].row & ~kCutRow) < p.boundary.rows) {
      ++with_boundary;
    }
    boundary_blocks.back() = std::min(device::divide_up(with_boundary, threads / 32), blocks);
  }

  // Those that exchange entries, and with the norm all, must reach each other's memory.
  void connect() {
    for (int p = 0; p < parts; ++p) {
      for (int q = 0; q < parts; ++q) {
        if (device_of(p) == device_of(q) ||
            device::enable_peer_access(device_of(p), device_of(q))) {
          continue;
        }
        throw Unsuitable("GPUs " + std::to_string(device_of(p)) + " and " +
                         std::to_string(device_of(q)) +
                         " have no access to each other's memory, which stores need: use "
                         "--exchange packed");
      }
    }
  }

  void allocate(const Part<T>& from, int p) {
    const device::OnDevice on(device_of(p));
    auto mine = std::make_unique<Resident<T>>();
    const Csr<T> csr = boundary_first(from);
    const Index own_end = from.needs.empty() ? from.local_cols : from.needs.front().ghost;
    own_ends.push_back(own_end);
    const std::size_t ghosts = static_cast<std::size_t>(from.local_cols - own_end);
    mine->csr = device::DeviceCsr<T>(csr);
    for (auto& x : mine->x) x = device::Buffer<T>("x", from.local_cols);
    mine->arrivals = device::Buffer<unsigned>("arrivals", parts);
    find_shares(from, *mine);
    mine->ghost_words = device::Buffer<Word>("ghost_words", 3 * ghosts * kWordsOfEntry);
    mine->block_sums = device::Buffer<double>("block_sums", blocks);
    mine->norms = device::Buffer<Word>("norms", 4 * static_cast<std::size_t>(parts));
    mine->stuck = device::Buffer<unsigned>("stuck", 4);
    resident[p] = std::move(mine);
    Part<T> kept;
    kept.first_row = from.first_row;
    kept.order.resize(from.order.size());
    for (Index i = 0; i < from.rows(); ++i) kept.order[flipped(from, i)] = from.order[i];
    kept.needs = from.needs;  // whose places are those of the owner's rows
    kept.local_cols = from.local_cols;
    part.push_back(std::move(kept));
    interior_rows.push_back(from.interior.rows);
  }

  // Fills in here[].part[] for part p, with its neighbours and what it sends.
  void describe(const std::vector<Part<T>>& all, int p) {
    const device::OnDevice on(device_of(p));
    const Index boundary_rows = all[p].boundary.rows;
    std::set<int> neighbours;
    // Of each boundary row: where its entry goes, as it is, and as words.
    std::vector<std::vector<std::pair<Send, Send>>> sends(boundary_rows);
    for (int q = 0; q < parts; ++q) {
      for (const Need& need : all[q].needs) {
        if (q == p) neighbours.insert(need.owner);
        if (need.owner != p) continue;
        neighbours.insert(q);
        const std::size_t words = of(q).ghost_words.size() / 3;
        for (Index j = 0; j < need.count; ++j) {
          const Index place = need.ghost + j;
          Send entry{}, word{};
          for (int i = 0; i < 2; ++i) entry.place[i] = of(q).x[i].data() + place;
          for (int i = 0; i < 3; ++i) {
            word.place[i] = of(q).ghost_words.data() + i * words +
                            static_cast<std::size_t>(place - own_ends[q]) * kWordsOfEntry;
          }
          sends[need.places[j] - interior_rows[p]].emplace_back(entry, word);
        }
      }
    }
    std::vector<int> offsets{0};
    std::vector<Send> entries, words;
    for (const auto& of_row : sends) {
      for (const auto& [entry, word] : of_row) entries.push_back(entry), words.push_back(word);
      offsets.push_back(static_cast<int>(entries.size()));
    }
    of(p).send_offsets = device::Buffer<int>("send_offsets", offsets);
    of(p).sends = device::Buffer<Send>("sends", entries);
    of(p).word_sends = device::Buffer<Send>("word_sends", words);

    std::vector<Neighbour> table;
    for (const int q : neighbours) {
      table.push_back({q, of(q).arrivals.data() + p, of(p).arrivals.data() + q,
                       static_cast<unsigned>(boundary_blocks[q])});
    }
    of(p).neighbours = device::Buffer<Neighbour>("neighbours", table);
    PersistentPart<T>& view = here[device_of(p)].part[p / devices];
    view.rows = all[p].rows();
    view.boundary_rows = boundary_rows;
    view.row_offsets = of(p).csr.row_offsets.data();
    view.column_indices = of(p).csr.column_indices.data();
    view.values = of(p).csr.values.data();
    for (int i = 0; i < 2; ++i) view.x[i] = of(p).x[i].data();
    view.own_end = own_ends[p];
    view.own_part = p;
    view.neighbours = static_cast<int>(table.size());
    view.neighbour = of(p).neighbours.data();
    view.send_offsets = of(p).send_offsets.data();
    view.sends = of(p).sends.data();
    view.word_sends = of(p).word_sends.data();
    for (int k = 0; k < 2; ++k) {
      view.product[k] = {share_counts[p],
                         windows[p],
                         of(p).shares.data(),
                         view.row_offsets,
                         view.column_indices,
                         view.values,
                         T{1},
                         view.x[k],
                         T{0},
                         view.x[1 - k],
                         of(p).partial_sums.data(),
                         of(p).unstarted.data()};
    }
    view.boundary_blocks = boundary_blocks[p];
    view.arrivals = of(p).arrivals.data() + p;
    view.ghost_words = of(p).ghost_words.data();
    view.ghosts = all[p].local_cols - own_ends[p];
    view.block_sums = of(p).block_sums.data();
    for (int q = 0; q < parts; ++q) view.norms[q] = of(q).norms.data();
  }

  void start(const std::vector<T>& x) {
    first_x.assign(parts, {});
    for (int p = 0; p < parts; ++p) {
      std::vector<T>& mine = first_x[p];
      mine.assign(part[p].local_cols, std::numeric_limits<T>::quiet_NaN());
      for (std::size_t i = 0; i < part[p].order.size(); ++i) {
        mine[i] = x[part[p].first_row + part[p].order[i]];
      }
      for (const Need& need : part[p].needs) {
        const Part<T>& owner = part[need.owner];
        for (Index j = 0; j < need.count; ++j) {
          const Index place = need.places[j] - interior_rows[need.owner];  // boundary rows first
          mine[need.ghost + j] = x[owner.first_row + owner.order[place]];
        }
      }
    }
  }

  // Step 0's x, and no arrivals yet. Ghost entries that are missing or late are NaN or unflagged.
  void reset() {
    for (int p = 0; p < parts; ++p) {
      const device::OnDevice on(device_of(p));
      Resident<T>& mine = of(p);
      mine.x[0].upload(first_x[p]);
      const auto fill = [](auto& buffer, int byte) {
        if (buffer.size() == 0) return;
        device::check(cudaMemset(buffer.data(), byte, buffer.bytes()), "clearing a buffer");
      };
      fill(mine.x[1], 0xff);
      fill(mine.arrivals, 0);
      fill(mine.norms, 0);
      fill(mine.stuck, 0);
      std::vector<Word> words(mine.ghost_words.size(), 0);
      const std::size_t ghosts = words.size() / 3 / kWordsOfEntry;
      for (std::size_t j = 0; j < ghosts; ++j) {
        unsigned bits[kWordsOfEntry];
        std::memcpy(bits, &first_x[p][own_ends[p] + j], sizeof(T));
        for (int i = 0; i < kWordsOfEntry; ++i) words[j * kWordsOfEntry + i] = 1ull << 32 | bits[i];
      }
      mine.ghost_words.upload(words);
      device::check(cudaDeviceSynchronize(), "preparing a run");
    }
  }

  using Kernel = void (*)(PartsHere<T>, int);

  static Kernel function_of(PersistentKernel kernel) {
    if (kernel == PersistentKernel::kSimple) return persistent_kernel<T>;
    if (kernel == PersistentKernel::kFlags) return persistent_fast_kernel<Ghosts::kFlags, T>;
    return persistent_fast_kernel<Ghosts::kWords, T>;
  }

  double run(int wanted_steps, Kernel kernel) {
    if (kernel == function_of(PersistentKernel::kSimple) && factor == 0) {
      throw Unsuitable("the simple persistent kernel has no norm");
    }
    steps = wanted_steps;
    const bool is_simple = kernel == function_of(PersistentKernel::kSimple);
    const std::size_t shared_bytes = is_simple ? 0 : threads / 32 * sizeof(OnePassShared<T>);
    reset();
    const auto before = std::chrono::steady_clock::now();
    // All are launched before any is waited for: they wait for each other.
    for (int d = 0; d < devices; ++d) {
      const device::OnDevice on(d);
      const int parts_here = (parts - d + devices - 1) / devices;
      here[d].factor = factor;
      device::launch_cooperative(
          kernel, {dim3(blocks * parts_here), dim3(threads), shared_bytes, streams[d].get()},
          here[d], steps);
    }
    for (int d = 0; d < devices; ++d) {
      const device::OnDevice on(d);
      streams[d].synchronize();
    }
    const std::chrono::duration<double, std::milli> time =
        std::chrono::steady_clock::now() - before;
    for (int d = 0; d < devices; ++d) {
      const device::OnDevice on(d);
      const std::vector<unsigned> stuck = of(d).stuck.download();
      if (!stuck[0]) continue;
      throw device::DeviceError("part " + std::to_string(stuck[1]) + ", in step " +
                                std::to_string(stuck[2]) + ", has waited in vain for " +
                                (stuck[3] == kAnyPart   ? "entries of other parts"
                                 : stuck[3] == stuck[1] ? "its own blocks"
                                                        : "part " + std::to_string(stuck[3])) +
                                ": another GPU has failed, or is too slow");
    }
    return time.count();
  }

  // The sum of squares of step k's entries, as they are in memory.
  double squares(int k) {
    const device::OnDevice on(device_of(0));
    const std::vector<Word> words = of(0).norms.download();
    double sum = 0;
    for (int p = 0; p < parts; ++p) {
      const Word* const of_part = &words[(k % 2 * parts + p) * 2];
      const Word bits = (of_part[0] & 0xffffffffu) | of_part[1] << 32;
      double value;
      std::memcpy(&value, &bits, sizeof value);
      sum += value;
    }
    return sum;
  }
  // What step k's entries in memory are multiplied by in the next step.
  double factor_after(int k) {
    if (factor != 0) return factor;
    return k == 0 ? 1 : 1 / power_of_norm(squares(k));
  }

  std::vector<T> x_of(int k) {
    std::vector<T> whole(rows);
    const T scale = static_cast<T>(factor != 0 ? 1 : factor_after(k));
    for (int p = 0; p < parts; ++p) {
      const device::OnDevice on(device_of(p));
      const std::vector<T> mine = of(p).x[k % 2].download();
      for (std::size_t i = 0; i < part[p].order.size(); ++i) {
        whole[part[p].first_row + part[p].order[i]] = scale * mine[i];
      }
    }
    return whole;
  }
};

template <typename T>
PersistentMachine<T>::PersistentMachine(const std::vector<Part<T>>& parts,
                                        const PersistentSetup& setup)
    : state_(std::make_unique<State>(parts, setup)) {}
template <typename T>
PersistentMachine<T>::~PersistentMachine() {
  for (std::size_t p = 0; p < state_->resident.size(); ++p) {
    cudaSetDevice(state_->device_of(static_cast<int>(p)));
    state_->resident[p].reset();
  }
  cudaSetDevice(0);
}
template <typename T>
void PersistentMachine<T>::start(const std::vector<T>& x) {
  state_->start(x);
}
template <typename T>
void PersistentMachine<T>::keep_factor(double factor) {
  state_->factor = factor;
}
template <typename T>
double PersistentMachine<T>::run(int steps, PersistentKernel kernel) {
  return state_->run(steps, State::function_of(kernel));
}
template <typename T>
double PersistentMachine<T>::run(int steps, void (*kernel)(PartsHere<T>, int)) {
  return state_->run(steps, kernel);
}
template <typename T>
std::vector<T> PersistentMachine<T>::x_of(int k) {
  return state_->x_of(k);
}
template <typename T>
double PersistentMachine<T>::factor_of(int k) {
  return state_->factor != 0 ? state_->factor : state_->factor_after(k + 1);
}
template <typename T>
int PersistentMachine<T>::devices() const {
  return state_->devices;
}
template class PersistentMachine<float>;
template class PersistentMachine<double>;

}  // namespace spmv::multigpu
