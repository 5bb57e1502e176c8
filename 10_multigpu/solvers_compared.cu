// Conjugate gradients of conjugate_gradients.cu measured, and beside it the same solver driven by
// the host: products by step 06, dot products by cuBLAS, ghost entries and all-reduce by NCCL.
//   solvers_compared MATRIX [RUNS [RECORDS]]            on all GPUs; CUDA only
#include <cublas_v2.h>
#include <nccl.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <ctime>
#include <string>

#include "../06_pcsr/one_pass/spmv/one_pass.cuh"
#define CONJUGATE_GRADIENTS_AS_HEADER
#include "conjugate_gradients.cu"

namespace {

void check(cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS) throw std::runtime_error(cublasGetStatusString(status));
}
void check(ncclResult_t status) {
  if (status != ncclSuccess) throw std::runtime_error(ncclGetErrorString(status));
}

double seconds_since(std::chrono::steady_clock::time_point before) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
}

// p = r + beta p, s = w + beta s, x += alpha p, r -= alpha s: what follows the dot products.
__global__ void update_kernel(int rows, double alpha, double beta, const double* w, double* p,
                              double* s, double* x, double* r) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows) return;
  const double next_p = r[i] + beta * p[i], next_s = w[i] + beta * s[i];
  p[i] = next_p, s[i] = next_s;
  x[i] += alpha * next_p;
  r[i] -= alpha * next_s;
}

// All parts as they were before the first run.
class Restart {
 public:
  Restart(const Problem& problem, std::size_t rows) : problem_(problem), rows_(rows) {
    for (const Part& part : problem.parts) {
      Vector r(rows_);
      check(cudaSetDevice(part.gpu), "choosing a GPU");
      check(cudaMemcpy(r.data(), part.r[part.gpu], rows_ * 8, cudaMemcpyDefault), "copying");
      first_r_.push_back(to_gpu(r));
    }
  }
  void operator()() const {
    for (const Part& part : problem_.parts) {
      const int gpus = part.gpus, g = part.gpu;
      check(cudaSetDevice(g), "choosing a GPU");
      check(cudaMemcpy(part.r[g], first_r_[g], rows_ * 8, cudaMemcpyDefault), "copying");
      for (double* v : {part.p, part.s, part.x})
        check(cudaMemset(v, 0, part.rows * 8L), "clearing");
      check(cudaMemset(part.words[g], 0, 64L * gpus * problem_.blocks), "clearing");
      check(cudaMemset(part.arrivals[g], 0, 4L * gpus), "clearing");
      check(cudaDeviceSynchronize(), "preparing");
    }
  }

 private:
  const Problem& problem_;
  std::size_t rows_;
  std::vector<double*> first_r_;
};

// The solver driven by the host.
class ByHost {
  struct Gpu {
    cudaStream_t stream;
    cublasHandle_t blas;
    ncclComm_t comm = nullptr;
    spmv::OnePassPlan<double> plan;
    double* sums;  // gamma and delta
  };

 public:
  ByHost(const Problem& problem, const Csr& a,
         const std::vector<std::vector<std::pair<int, int>>>& ranges)
      : problem_(problem), ranges_(ranges), gpus_(problem.parts.size()) {
    std::vector<ncclComm_t> comms(gpus_.size());
    if (gpus_.size() > 1)
      check(ncclCommInitAll(comms.data(), static_cast<int>(comms.size()), nullptr));
    check(cudaMallocHost(&sums_, 2 * sizeof(double)), "allocating memory");
    for (const Part& part : problem.parts) {
      Gpu& gpu = gpus_[part.gpu];
      gpu.comm = comms[part.gpu];
      check(cudaSetDevice(part.gpu), "choosing a GPU");
      check(cudaStreamCreateWithFlags(&gpu.stream, cudaStreamNonBlocking), "a stream");
      check(cublasCreate(&gpu.blas));
      check(cublasSetStream(gpu.blas, gpu.stream));
      check(cublasSetPointerMode(gpu.blas, CUBLAS_POINTER_MODE_DEVICE));
      gpu.sums = to_gpu(Vector(2));
      int nnz = 0;
      check(cudaMemcpy(&nnz, part.row_offsets + part.rows, 4, cudaMemcpyDefault), "copying");
      check(gpu.plan.create({part.rows, a.cols, nnz, part.row_offsets, part.column_indices}),
            "a plan");
      check(gpu.plan.prepare(gpu.stream), "a plan");
      check(cudaDeviceSynchronize(), "preparing");
    }
  }

  Result solve(double limit) {
    double gamma_before = 0, alpha = 0;
    for (int k = 0;; ++k) {
      exchange();
      for (const Part& part : problem_.parts) {
        Gpu& gpu = gpus_[part.gpu];
        check(cudaSetDevice(part.gpu), "choosing a GPU");
        multiply(part);
        double* const own = part.r[part.gpu] + part.first;
        check(cublasDdot(gpu.blas, part.rows, own, 1, own, 1, gpu.sums));
        check(cublasDdot(gpu.blas, part.rows, own, 1, part.w, 1, gpu.sums + 1));
      }
      if (gpus_.size() > 1) {
        check(ncclGroupStart());
        for (const Gpu& gpu : gpus_) {
          check(ncclAllReduce(gpu.sums, gpu.sums, 2, ncclFloat64, ncclSum, gpu.comm, gpu.stream));
        }
        check(ncclGroupEnd());
      }
      check(cudaSetDevice(0), "choosing a GPU");
      check(cudaMemcpyAsync(sums_, gpus_[0].sums, 16, cudaMemcpyDefault, gpus_[0].stream),
            "copying");
      check(cudaStreamSynchronize(gpus_[0].stream), "waiting");
      const double gamma = sums_[0], delta = sums_[1];
      const double beta = k > 0 ? gamma / gamma_before : 0;
      const double divisor = k > 0 ? delta - beta * gamma / alpha : delta;
      if (gamma <= limit || k == kMostIterations || !(divisor > 0)) {
        wait();
        return {divisor > 0 ? k : -1, gamma};
      }
      gamma_before = gamma;
      alpha = gamma / divisor;
      for (const Part& part : problem_.parts) update(part, alpha, beta);
    }
  }

  // Microseconds of a product and an update without anything between them, on the slowest GPU.
  double products_and_vectors() {
    double slowest = 0;
    for (const Part& part : problem_.parts) {
      check(cudaSetDevice(part.gpu), "choosing a GPU");
      for (int i = -5; i < 50; ++i) {
        if (i == 0) {
          check(cudaStreamSynchronize(gpus_[part.gpu].stream), "waiting");
          before_ = std::chrono::steady_clock::now();
        }
        multiply(part);
        update(part, 0, 0);
      }
      check(cudaStreamSynchronize(gpus_[part.gpu].stream), "waiting");
      slowest = std::max(slowest, seconds_since(before_) / 50);
    }
    return slowest * 1e6;
  }

 private:
  void multiply(const Part& part) {
    check(gpus_[part.gpu].plan.multiply(1.0, part.values, part.r[part.gpu], 0.0, part.w,
                                        gpus_[part.gpu].stream),
          "a product");
  }
  void update(const Part& part, double alpha, double beta) {
    check(cudaSetDevice(part.gpu), "choosing a GPU");
    if (part.rows == 0) return;
    update_kernel<<<(part.rows + 255) / 256, 256, 0, gpus_[part.gpu].stream>>>(
        part.rows, alpha, beta, part.w, part.p, part.s, part.x, part.r[part.gpu] + part.first);
    check(cudaGetLastError(), "launching");
  }
  // Ghost entries: of each pair of neighbours all entries from the first one needed to the last.
  void exchange() {
    if (gpus_.size() == 1) return;
    check(ncclGroupStart());
    for (const Part& part : problem_.parts) {
      for (int g = 0; g < part.gpus; ++g) {
        const auto& [begin, end] = ranges_[part.gpu][g];
        if (begin < end) {
          check(ncclSend(part.r[part.gpu] + begin, end - begin, ncclFloat64, g,
                         gpus_[part.gpu].comm, gpus_[part.gpu].stream));
        }
        const auto& [from, to] = ranges_[g][part.gpu];
        if (from < to) {
          check(ncclRecv(part.r[part.gpu] + from, to - from, ncclFloat64, g, gpus_[part.gpu].comm,
                         gpus_[part.gpu].stream));
        }
      }
    }
    check(ncclGroupEnd());
  }
  void wait() {
    for (const Gpu& gpu : gpus_) check(cudaStreamSynchronize(gpu.stream), "waiting");
  }

  const Problem& problem_;
  const std::vector<std::vector<std::pair<int, int>>>& ranges_;
  std::vector<Gpu> gpus_;
  double* sums_ = nullptr;
  std::chrono::steady_clock::time_point before_;
};

// Of each owner and receiver: from the first entry to the last that the one needs of the other.
std::vector<std::vector<std::pair<int, int>>> ranges_of(const Problem& problem) {
  const std::size_t gpus = problem.parts.size();
  std::vector ranges(gpus, std::vector<std::pair<int, int>>(gpus, {1 << 30, 0}));
  for (const Part& part : problem.parts) {
    std::vector<unsigned> receivers(part.rows);
    check(cudaMemcpy(receivers.data(), part.receivers, receivers.size() * 4, cudaMemcpyDefault),
          "copying");
    for (int i = 0; i < part.rows; ++i) {
      for (std::size_t g = 0; g < gpus; ++g) {
        if ((receivers[i] >> g & 1) == 0) continue;
        auto& [begin, end] = ranges[part.gpu][g];
        begin = std::min(begin, part.first + i), end = std::max(end, part.first + i + 1);
      }
    }
  }
  return ranges;
}

// Bytes per second of copies on GPU 0, reads and writes counted.
double copy_bandwidth() {
  constexpr std::size_t kBytes = 1 << 30;
  constexpr int kCopies = 20;
  check(cudaSetDevice(0), "choosing a GPU");
  char *from = nullptr, *to = nullptr;
  check(cudaMalloc(&from, kBytes), "allocating memory");
  check(cudaMalloc(&to, kBytes), "allocating memory");
  std::chrono::steady_clock::time_point before;
  for (int i = -3; i < kCopies; ++i) {
    if (i == 0) {
      check(cudaDeviceSynchronize(), "waiting");
      before = std::chrono::steady_clock::now();
    }
    check(cudaMemcpyAsync(to, from, kBytes, cudaMemcpyDeviceToDevice), "copying");
  }
  check(cudaDeviceSynchronize(), "waiting");
  const double bandwidth = 2.0 * kBytes * kCopies / seconds_since(before);
  check(cudaFree(from), "freeing memory");
  check(cudaFree(to), "freeing memory");
  return bandwidth;
}

// As the other programs' records name it.
std::string driver() {
  char line[64] = "";
  std::FILE* const said = popen("nvidia-smi --query-gpu=driver_version --format=csv,noheader", "r");
  if (!said) return "";
  if (!std::fgets(line, sizeof line, said)) line[0] = '\0';
  pclose(said);
  return std::string(line, std::strcspn(line, "\n"));
}

// Appends descriptions of run, matrix and solvers to a file of records (plots/README.md); the id of
// the run.
std::string describe_run(std::FILE* records, int argc, char** argv, const Csr& a) {
  char time[32], id[48];
  const std::time_t now = std::time(nullptr);
  std::strftime(time, sizeof time, "%Y-%m-%dT%H:%M:%S", std::gmtime(&now));
  std::snprintf(id, sizeof id, "%s.000Z-%07d", time, static_cast<int>(getpid()));
  cudaDeviceProp device{};
  check(cudaGetDeviceProperties(&device, 0), "asking");
  std::string command = "solvers_compared";
  for (int i = 1; i < argc; ++i) command += std::string(" ") + argv[i];
  std::fprintf(records,
               "{\"run\":{\"id\":\"%s\",\"backend\":\"cuda\",\"device\":\"%s\",\"driver\":\"%s\","
               "\"cuda\":\"%d.%d\",\"nccl\":\"%d.%d.%d\",\"command\":\"%s\"}}\n",
               id, device.name, driver().c_str(), CUDART_VERSION / 1000, CUDART_VERSION / 10 % 100,
               NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH, command.c_str());
  std::fprintf(
      records,
      "{\"matrix\":{\"run\":\"%s\",\"name\":\"%s\",\"source\":\"%s\",\"rows\":%d,\"cols\":%d,"
      "\"nnz\":%d}}\n",
      id, argv[1], std::strchr(argv[1], ':') ? "generated" : "file", a.rows, a.rows, a.nnz());
  for (const char* solver : {"persistent", "host"}) {
    std::fprintf(records,
                 "{\"kernel\":{\"run\":\"%s\",\"name\":\"%s\",\"step\":10,\"format\":\"CSR\"}}\n",
                 id, solver);
  }
  return id;
}

}  // namespace

int main(int argc, char** argv) try {
  int gpus = 0;
  check(cudaGetDeviceCount(&gpus), "counting GPUs");
  if (argc < 2 || argc > 4) {
    std::fprintf(stderr, "usage: solvers_compared MATRIX [RUNS [RECORDS]]\n");
    return 2;
  }
  const int runs = argc > 2 ? std::max(std::atoi(argv[2]), 1) : 5;
  const auto started = std::chrono::steady_clock::now();
  const Csr a = load(argv[1]);
  const double loaded = seconds_since(started);
  const Vector b = make_b(a.rows);
  for (int i = 0; i < gpus * gpus; ++i) {
    check(cudaSetDevice(i / gpus), "choosing a GPU");
    if (i / gpus != i % gpus) check(cudaDeviceEnablePeerAccess(i % gpus, 0), "peer access");
  }
  const double limit = kTolerance * kTolerance * dot(b, b);
  const Problem problem = prepare(a, b, gpus);
  const double prepared = seconds_since(started);
  const auto ranges = ranges_of(problem);
  const Restart restart(problem, a.rows);
  const double copy = copy_bandwidth();
  ByHost by_host(problem, a, ranges);
  // The least that an iteration of this form moves: the matrix once; r and w by the product, then
  // r, w, p, s, x read and r, p, s, x written.
  const double bytes = 12.0 * a.nnz() + (4.0 + 11 * 8) * a.rows;
  const double products_and_vectors = by_host.products_and_vectors();
  int host_iterations = 0;
  if (a.nnz() < 30'000'000) host_iterations = sequential_iterations(a, b, limit);
  std::printf(
      "%s: %d rows, %d nonzeros; loaded in %.1f s, prepared in %.1f s; product and vectors by"
      " kernels of their own %.2f us; a copy %.0f GB/s\n",
      argv[1], a.rows, a.nnz(), loaded, prepared - loaded, products_and_vectors, copy * 1e-9);
  bool right = true;
  std::string run_id;
  for (const char* drive : {"persistent", "host"}) {
    Vector us, first;
    Result result{};
    double residual = 0;
    for (int run = -1; run < runs; ++run) {
      restart();
      const auto before = std::chrono::steady_clock::now();
      result = drive[0] == 'p' ? solve(problem, limit) : by_host.solve(limit);
      const double seconds = seconds_since(before);
      const Vector x = x_of(problem, a.rows);
      if (run < 0) {
        first = x;
        residual = residual_of(a, b, x);
        right = right && result.iterations >= 0 && residual <= 2 * kTolerance;
      } else {
        us.push_back(seconds * 1e6 / result.iterations);
      }
      right = right && (drive[0] == 'h' || std::memcmp(first.data(), x.data(), x.size() * 8) == 0);
    }
    std::sort(us.begin(), us.end());
    const double median = us[us.size() / 2];
    std::printf(
        "  %-10s %d GPUs %5d iterations (sequential: %d) %10.2f us each (%.2f-%.2f), %5.1f%% of a "
        "copy,"
        " %.2f us beyond products and vectors; residual %.2e: %s\n",
        drive, gpus, result.iterations, host_iterations, median, us.front(), us.back(),
        100 * bytes / gpus / (median * 1e-6) / copy, median - products_and_vectors, residual,
        right ? "verified" : "WRONG");
    std::fflush(stdout);
    std::FILE* const records = right && argc > 3 ? std::fopen(argv[3], "a") : nullptr;
    if (!records) continue;
    if (run_id.empty()) run_id = describe_run(records, argc, argv, a);
    std::fprintf(records,
                 "{\"run\":\"%s\",\"program\":\"solver\",\"matrix\":\"%s\",\"precision\":\"f64\","
                 "\"kernel\":\"%s\",\"verified\":true,\"gpus\":%d,\"iterations\":%d,"
                 "\"sequential_iterations\":%d,"
                 "\"us_per_iteration\":{\"median\":%.3f,\"lower\":%.3f,\"upper\":%.3f},"
                 "\"us_products_and_vectors\":%.3f,\"bytes_per_iteration\":%.0f,"
                 "\"copy_bytes_per_s\":%.5g,\"residual\":%.3g}\n",
                 run_id.c_str(), argv[1], drive, gpus, result.iterations, host_iterations, median,
                 us.front(), us.back(), products_and_vectors, bytes, copy, residual);
    std::fclose(records);
  }
  return right ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return 2;
}
