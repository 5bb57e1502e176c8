// Step 10 in one file: y = A x on several GPUs, again and again, where y is the next x.
//   nvcc -std=c++20 -arch=native minimal.cu -o minimal
//   ./minimal [ROWS [STEPS]]        all GPUs of this machine (CUDA_VISIBLE_DEVICES=0,1: these two)
//
// Each GPU owns rows with as many nonzeros as the others', and their entries of x. *Ghost entries*
// are those that its rows read and another GPU owns. A *boundary row* reads a ghost entry, or its
// entry is one elsewhere; the others are *interior rows*. One kernel per GPU does all steps. It
//   1. multiplies boundary rows, and stores results into the x of the GPUs that need them;
//   2. after a barrier of its grid, sets a flag in each neighbour's memory: step k has arrived;
//   3. multiplies interior rows, while those entries travel;
//   4. waits for its neighbours' flags: its ghost entries for the next step have arrived.
// The flag is stored with release and loaded with acquire, at system scope: a GPU that sees it sees
// the entries stored before it; the barrier extends that to the stores of all threads of the grid.
// Two buffers of x suffice: step k overwrites entries of step k - 1. Own ones were read before the
// barrier at its end, ghost entries before the neighbour's flag k, which this GPU has waited for.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cuda/atomic>
#include <vector>

constexpr int kMaxGpus = 16;   // bits of a mask, and elements of the tables in Part
constexpr int kLanes = 4;      // per row
constexpr int kThreads = 256;  // per block; at least kMaxGpus

// What the kernel on one GPU knows.
struct Part {
  int gpu, gpus;
  unsigned neighbours;  // a bit per GPU that receives from this one, or sends to it
  int rows, boundary_rows, first_nonzero;
  std::size_t columns;
  const int* order;           // the numbers of the part's rows in the matrix: boundary rows first
  const unsigned* receivers;  // of each row of the matrix: a bit per other GPU that needs its entry
  const int* row_offsets;     // of the whole matrix; the next two begin at first_nonzero
  const int* column_indices;
  const double* values;
  double* x[kMaxGpus];        // on every GPU: two buffers, each with all `columns` entries
  unsigned* flags[kMaxGpus];  // on every GPU: how many steps of each other GPU have arrived
};

// Grid: all blocks are resident (a cooperative launch), since they wait for each other.
__global__ void iterate_kernel(const __grid_constant__ Part part, int steps) {
  const auto grid = cooperative_groups::this_grid();
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  const int lane = thread % kLanes;
  const int groups = gridDim.x * blockDim.x / kLanes;  // of kLanes threads, one row at a time each
  const unsigned group_mask = ((1u << kLanes) - 1) << (threadIdx.x % 32 - lane);
  const bool has_flag = thread < part.gpus && (part.neighbours >> thread & 1) != 0;
  for (int k = 0; k < steps; ++k) {
    const double* x = part.x[part.gpu] + k % 2 * part.columns;
    const std::size_t next = (k + 1) % 2 * part.columns;
    const auto multiply = [&](int begin, int end) {
      for (int i = begin + thread / kLanes; i < end; i += groups) {
        const int row = part.order[i];
        const int row_end = part.row_offsets[row + 1] - part.first_nonzero;
        double sum = 0;
        for (int j = part.row_offsets[row] - part.first_nonzero + lane; j < row_end; j += kLanes) {
          sum += part.values[j] * x[part.column_indices[j]];
        }
        for (int distance = kLanes / 2; distance > 0; distance /= 2) {
          sum += __shfl_down_sync(group_mask, sum, distance, kLanes);
        }
        if (lane != 0) continue;
        part.x[part.gpu][next + row] = sum;
        for (int g = 0; g < part.gpus && i < part.boundary_rows; ++g) {
          if (part.receivers[row] >> g & 1) part.x[g][next + row] = sum;
        }
      }
    };
    multiply(0, part.boundary_rows);
    grid.sync();  // all ghost entries of the neighbours are stored
    if (has_flag) {
      cuda::atomic_ref<unsigned> flag(part.flags[thread][part.gpu]);
      flag.store(k + 1, cuda::memory_order_release);
    }
    multiply(part.boundary_rows, part.rows);
    if (has_flag) {
      const cuda::atomic_ref<unsigned> flag(part.flags[part.gpu][thread]);
      while (flag.load(cuda::memory_order_acquire) < k + 1u) continue;
    }
    grid.sync();  // own entries are stored, and the neighbours' have arrived
  }
}

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "error: %s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}

// A copy on the current GPU, which nothing frees before the program ends.
template <typename T>
T* to_gpu(const std::vector<T>& host, int first, std::size_t count) {
  T* data = nullptr;
  check(cudaMalloc(&data, (count + 1) * sizeof(T)), "allocating memory");
  check(cudaMemcpy(data, host.data() + first, count * sizeof(T), cudaMemcpyDefault), "copying");
  return data;
}

using Vector = std::vector<double>;
struct Csr {
  std::vector<int> row_offsets{0}, column_indices;
  Vector values;
};

// A band that widens from 3 to 17 nonzeros per row: equal rows are not equal work. |a| adds up to
// at most 1 per row, so x stays bounded.
Csr make_band(int rows) {
  Csr a;
  for (int row = 0; row < rows; ++row) {
    const int width = 1 + static_cast<int>(8LL * row / rows), end = std::min(row + width + 1, rows);
    for (int column = std::max(row - width, 0); column < end; ++column) {
      a.column_indices.push_back(column);
      a.values.push_back(std::cos(1.7 * static_cast<double>(a.values.size())) / (2 * width + 1));
    }
    a.row_offsets.push_back(static_cast<int>(a.values.size()));
  }
  return a;
}

// GPU g owns rows cuts[g] to cuts[g + 1] - 1, before which are g / gpus of the nonzeros.
std::vector<int> cut_by_nonzeros(const Csr& a, int gpus) {
  std::vector<int> cuts;
  for (int g = 0; g <= gpus; ++g) {
    const auto before = static_cast<int>(a.values.size() * g / gpus);
    const auto row = std::lower_bound(a.row_offsets.begin(), a.row_offsets.end(), before);
    cuts.push_back(static_cast<int>(row - a.row_offsets.begin()));
  }
  return cuts;
}

// The part of each GPU, in its memory, with x of step 0. All entries of x that the GPU neither owns
// nor needs are NaN, and so are those of step 1: one that is missing or late spoils the result.
std::vector<Part> make_parts(const Csr& a, const std::vector<int>& cuts, const Vector& x) {
  const int gpus = static_cast<int>(cuts.size()) - 1, rows = cuts.back();
  std::vector<Part> parts(gpus);
  std::vector<int> owner, is_boundary(x.size(), 0);
  std::vector<unsigned> receivers(x.size(), 0);
  for (int g = 0; g < gpus; ++g) owner.resize(cuts[g + 1], g);
  for (int row = 0; row < rows; ++row) {
    for (int j = a.row_offsets[row]; j < a.row_offsets[row + 1]; ++j) {
      const int column = a.column_indices[j], here = owner[row], there = owner[column];
      if (here == there) continue;
      receivers[column] |= 1u << here;
      is_boundary[row] = is_boundary[column] = 1;
      parts[here].neighbours |= 1u << there;
      parts[there].neighbours |= 1u << here;
    }
  }
  for (int g = 0; g < gpus; ++g) {
    check(cudaSetDevice(g), "choosing a GPU");
    std::vector<int> order, interior;
    for (int row = cuts[g]; row < cuts[g + 1]; ++row) {
      (is_boundary[row] ? order : interior).push_back(row);
    }
    Vector buffers(2 * x.size(), NAN);
    for (int i = 0; i < rows; ++i) {
      if (owner[i] == g || (receivers[i] >> g & 1) != 0) buffers[i] = x[i];
    }
    const int begin = a.row_offsets[cuts[g]], end = a.row_offsets[cuts[g + 1]];
    Part& part = parts[g];
    part.gpu = g, part.gpus = gpus, part.columns = rows, part.first_nonzero = begin;
    part.rows = cuts[g + 1] - cuts[g], part.boundary_rows = static_cast<int>(order.size());
    order.insert(order.end(), interior.begin(), interior.end());
    part.order = to_gpu(order, 0, order.size());
    part.receivers = to_gpu(receivers, 0, receivers.size());
    part.row_offsets = to_gpu(a.row_offsets, 0, a.row_offsets.size());
    part.column_indices = to_gpu(a.column_indices, begin, end - begin);
    part.values = to_gpu(a.values, begin, end - begin);
    double* const there = to_gpu(buffers, 0, buffers.size());
    unsigned* const flags = to_gpu(std::vector<unsigned>(gpus, 0), 0, gpus);
    for (Part& other : parts) other.x[g] = there, other.flags[g] = flags;
    std::printf("GPU %d: %d rows, %d of them boundary rows\n", g, part.rows, part.boundary_rows);
  }
  return parts;
}

// x after `steps` steps; the parts have the x of step 0.
Vector iterate(const std::vector<Part>& parts, const std::vector<int>& cuts, int steps) {
  const int gpus = static_cast<int>(parts.size());
  Vector x(cuts.back());
  std::vector<cudaStream_t> streams(gpus);
  std::vector<int> blocks(gpus);  // all that are resident, or as many as there are rows for
  for (int g = 0; g < gpus; ++g) {
    int fit = 0, processors = 0;
    check(cudaSetDevice(g), "choosing a GPU");
    check(cudaStreamCreateWithFlags(&streams[g], cudaStreamNonBlocking), "a stream");
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fit, iterate_kernel, kThreads, 0), "fit");
    check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, g), "asking");
    blocks[g] = std::min(parts[g].rows / (kThreads / kLanes) + 1, fit * processors);
    check(cudaDeviceSynchronize(), "preparing");  // no kernel starts before all x and flags are set
  }
  for (int g = 0; g < gpus; ++g) {  // all are launched before any is waited for
    cudaLaunchAttribute cooperative{};
    cooperative.id = cudaLaunchAttributeCooperative, cooperative.val.cooperative = 1;
    cudaLaunchConfig_t config{dim3(blocks[g]), dim3(kThreads), 0, streams[g], &cooperative, 1};
    check(cudaSetDevice(g), "choosing a GPU");
    check(cudaLaunchKernelEx(&config, iterate_kernel, parts[g], steps), "launching");
  }
  for (int g = 0; g < gpus; ++g) {
    double* const own = parts[g].x[g] + steps % 2 * x.size() + cuts[g];
    check(cudaStreamSynchronize(streams[g]), "running");
    check(cudaMemcpy(x.data() + cuts[g], own, parts[g].rows * 8L, cudaMemcpyDefault), "copying");
  }
  return x;
}

// How many entries of y are not what the host computes. With at most 17 nonzeros per row, sums of
// |a| up to 1 and |x| <= 1, a step adds less than 2^5 rounding errors of 2^-52. NaN is wrong.
int count_wrong(const Csr& a, Vector x, int steps, const Vector& y) {
  for (int k = 0; k < steps; ++k) {
    Vector next(x.size(), 0);
    for (std::size_t row = 0; row < x.size(); ++row) {
      for (int j = a.row_offsets[row]; j < a.row_offsets[row + 1]; ++j) {
        next[row] += a.values[j] * x[a.column_indices[j]];
      }
    }
    x = next;
  }
  int wrong = 0;
  for (std::size_t i = 0; i < x.size(); ++i) wrong += !(std::abs(y[i] - x[i]) <= steps * 0x1p-47);
  return wrong;
}

int main(int argc, char** argv) {
  const int rows = argc > 1 ? std::atoi(argv[1]) : 1000000;
  const int steps = argc > 2 ? std::atoi(argv[2]) : 10;
  int gpus = 0;
  const bool has_gpus = cudaGetDeviceCount(&gpus) == cudaSuccess && 0 < gpus && gpus <= kMaxGpus;
  if (!has_gpus || rows < 1 || rows > 100000000 || steps < 1) {  // 10 nonzeros per row: an int
    std::fprintf(stderr, "usage: minimal [ROWS [STEPS]], at most 10^8 rows, with 1 to 16 GPUs\n");
    return 2;
  }
  const Csr a = make_band(rows);
  Vector x(rows);
  for (int i = 0; i < rows; ++i) x[i] = std::sin(i + 1.0);
  for (int i = 0; i < gpus * gpus; ++i) {  // each reaches the memory of all
    check(cudaSetDevice(i / gpus), "choosing a GPU");
    if (i / gpus != i % gpus) check(cudaDeviceEnablePeerAccess(i % gpus, 0), "peer access");
  }
  const std::vector<int> cuts = cut_by_nonzeros(a, gpus);
  const int wrong = count_wrong(a, x, steps, iterate(make_parts(a, cuts, x), cuts, steps));
  std::printf("%d steps: %s, %d of %d entries differ\n", steps, wrong ? "WRONG" : "verified", wrong,
              rows);
  return wrong ? 1 : 0;
}
