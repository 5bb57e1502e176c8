// Conjugate gradients of conjugate_gradients.cu measured, and beside it the same solver driven by
// the host: products by step 06, dot products by cuBLAS, ghost entries and all-reduce by NCCL.
//   make -C 10_multigpu solvers-compared BACKEND=cuda
//   solvers_compared MATRIX [RUNS [RECORDS]]            on all GPUs; CUDA only
#include <cublas_v2.h>
#include <nccl.h>

#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include "../06_pcsr/one_pass/spmv/one_pass.cuh"
#include "harness/machine_code.hpp"
#include "harness/measure.hpp"
#include "harness/records.hpp"
#define CONJUGATE_GRADIENTS_AS_HEADER
#include "conjugate_gradients.cu"

namespace {

void check(cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS) throw std::runtime_error(cublasGetStatusString(status));
}
void check(ncclResult_t status) {
  if (status != ncclSuccess) throw std::runtime_error(ncclGetErrorString(status));
}
using device::check;

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

// The solver driven by the host. The streams are those of the problem.
class ByHost {
  struct Gpu {
    cudaStream_t stream;
    cublasHandle_t blas;
    ncclComm_t comm = nullptr;
    spmv::OnePassPlan<double> plan;
    double* sums;  // gamma and delta
  };

 public:
  ByHost(const Problem& problem, const Csr& a)
      : problem_(problem),
        gpus_(problem.parts.size()),
        ranges_(gpus_.size(), std::vector<std::pair<int, int>>(gpus_.size(), {a.rows, 0})),
        sums_(2) {
    const int count = static_cast<int>(gpus_.size());
    std::vector<ncclComm_t> comms(count);
    if (count > 1) check(ncclCommInitAll(comms.data(), count, nullptr));
    for (const Part& part : problem.parts) {
      Gpu& gpu = gpus_[part.gpu];
      const device::OnDevice on(part.gpu);
      gpu.comm = comms[part.gpu];
      gpu.stream = problem.streams[part.gpu].get();
      check(cublasCreate(&gpu.blas));
      check(cublasSetStream(gpu.blas, gpu.stream));
      check(cublasSetPointerMode(gpu.blas, CUBLAS_POINTER_MODE_DEVICE));
      gpu.sums = to_gpu(Vector(2));
      const int nnz = a.row_offsets[part.first + part.rows] - a.row_offsets[part.first];
      check(gpu.plan.create({part.rows, a.cols, nnz, part.row_offsets, part.column_indices}),
            "a plan");
      check(gpu.plan.prepare(gpu.stream), "a plan");
      check(cudaDeviceSynchronize(), "preparing");
      for (int row = part.first; row < part.first + part.rows; ++row) {
        for (int g = 0; g < count; ++g) {
          auto& [begin, end] = ranges_[part.gpu][g];
          if (problem.receivers[row] >> g & 1) begin = std::min(begin, row), end = row + 1;
        }
      }
    }
  }

  Result solve(double limit) {
    double gamma_before = 0, alpha = 0;
    for (int k = 0;; ++k) {
      exchange();
      for (const Part& part : problem_.parts) {
        Gpu& gpu = gpus_[part.gpu];
        const device::OnDevice on(part.gpu);
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
      check(cudaMemcpyAsync(sums_.data(), gpus_[0].sums, 16, cudaMemcpyDefault, gpus_[0].stream),
            "copying");
      check(cudaStreamSynchronize(gpus_[0].stream), "waiting");
      const double gamma = sums_.data()[0], delta = sums_.data()[1];
      const double beta = k > 0 ? gamma / gamma_before : 0;
      const double divisor = k > 0 ? delta - beta * gamma / alpha : delta;
      if (gamma <= limit || k == kMostIterations || !(divisor > 0)) {
        for (const device::Stream& stream : problem_.streams) stream.synchronize();
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
      const device::OnDevice on(part.gpu);
      const auto work = [&](cudaStream_t) { multiply(part), update(part, 0, 0); };
      slowest = std::max(slowest, spmv::time_warm(problem_.streams[part.gpu], work).median);
    }
    return 1e3 * slowest;
  }

 private:
  void multiply(const Part& part) {
    Gpu& gpu = gpus_[part.gpu];
    check(gpu.plan.multiply(1.0, part.values, part.r[part.gpu], 0.0, part.w, gpu.stream),
          "a product");
  }
  void update(const Part& part, double alpha, double beta) {
    const device::OnDevice on(part.gpu);
    device::launch(update_kernel,
                   {dim3(device::divide_up(part.rows, 256)), dim3(256), 0, gpus_[part.gpu].stream},
                   part.rows, alpha, beta, part.w, part.p, part.s, part.x,
                   part.r[part.gpu] + part.first);
  }
  // Ghost entries: of each pair of neighbours all entries from the first one needed to the last.
  void exchange() {
    if (gpus_.size() == 1) return;
    check(ncclGroupStart());
    for (const Part& part : problem_.parts) {
      const Gpu& gpu = gpus_[part.gpu];
      double* const r = part.r[part.gpu];
      for (int g = 0; g < part.gpus; ++g) {
        const auto& [begin, end] = ranges_[part.gpu][g];
        const auto& [from, to] = ranges_[g][part.gpu];
        if (begin < end)
          check(ncclSend(r + begin, end - begin, ncclFloat64, g, gpu.comm, gpu.stream));
        if (from < to) check(ncclRecv(r + from, to - from, ncclFloat64, g, gpu.comm, gpu.stream));
      }
    }
    check(ncclGroupEnd());
  }

  const Problem& problem_;
  std::vector<Gpu> gpus_;
  // Of each owner and receiver: from the first entry to the last that the one needs of the other.
  std::vector<std::vector<std::pair<int, int>>> ranges_;
  device::Pinned<double> sums_;
};

// Puts all parts back to what prepare() left.
void restart(const Problem& problem, const Vector& b) {
  for (const Part& part : problem.parts) {
    const int g = part.gpu;
    const device::OnDevice on(g);
    const Vector r = known_entries(b, g, problem.cuts, problem.receivers);
    check(cudaMemcpy(part.r[g], r.data(), r.size() * 8, cudaMemcpyDefault), "copying");
    for (double* v : {part.p, part.s, part.x}) check(cudaMemset(v, 0, part.rows * 8L), "clearing");
    check(cudaMemset(part.words[g], 0, 64L * part.gpus * problem.blocks), "clearing");
    check(cudaMemset(part.arrivals[g], 0, 4L * part.gpus), "clearing");
    check(cudaDeviceSynchronize(), "preparing");
  }
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
  const spmv::Matrix<double> matrix = load(argv[1]);
  const Csr& a = matrix.csr;
  const Vector b = make_b(a.rows);
  const double limit = kTolerance * kTolerance * dot(b, b);
  const Problem problem = prepare(a, b, gpus);
  const double copy = 1e9 * spmv::copy_bandwidth();  // bytes per second
  ByHost by_host(problem, a);
  // The least that an iteration of this form moves: the matrix once; r and w by the product, then
  // r, w, p, s, x read and r, p, s, x written.
  const double bytes = 12.0 * a.nnz() + (4.0 + 11 * 8) * a.rows;
  const double products_and_vectors = by_host.products_and_vectors();
  int host_iterations = 0;
  if (a.nnz() < 30'000'000) host_iterations = sequential_iterations(a, b, limit);
  std::printf(
      "%s: %d rows, %d nonzeros; product and vectors by kernels of their own %.2f us; a copy %.0f "
      "GB/s\n",
      argv[1], a.rows, a.nnz(), products_and_vectors, copy * 1e-9);
  bool right = true;
  spmv::Records records(spmv::describe_environment(argc, argv));
  for (const std::string drive : {"persistent", "host"}) {
    Vector us, first;
    Result result{};
    double residual = 0;
    const spmv::LaunchLog log;
    for (int run = -1; run < runs; ++run) {
      restart(problem, b);
      const auto before = std::chrono::steady_clock::now();
      result = drive == "persistent" ? solve(problem, limit) : by_host.solve(limit);
      const std::chrono::duration<double, std::micro> time =
          std::chrono::steady_clock::now() - before;
      const Vector x = x_of(problem);
      if (run < 0) {
        first = x;
        residual = residual_of(a, b, x);
        right = right && result.iterations >= 0 && residual <= 2 * kTolerance;
      } else {
        us.push_back(time.count() / result.iterations);
      }
      right = right && (drive == "host" || std::memcmp(x.data(), first.data(), 8 * x.size()) == 0);
    }
    std::sort(us.begin(), us.end());
    const double median = us[us.size() / 2];
    std::printf(
        "  %-10s %d GPUs %5d iterations (sequential: %d) %10.2f us each (%.2f-%.2f), %5.1f%% of a "
        "copy, %.2f us beyond products and vectors; residual %.2e: %s\n",
        drive.c_str(), gpus, result.iterations, host_iterations, median, us.front(), us.back(),
        100 * bytes / gpus / (median * 1e-6) / copy, median - products_and_vectors, residual,
        right ? "verified" : "WRONG");
    std::fflush(stdout);
    if (!right || argc < 4) continue;
    const spmv::KernelInfo kernel{
        .step = 10,
        .name = drive,
        .format = "CSR",
        .idea = drive == "persistent" ? "one cooperative launch per GPU holds all iterations"
                                      : "the host launches products, cuBLAS and NCCL",
        .source = "conjugate gradients of Chronopoulos and Gear"};
    nlohmann::ordered_json& line =
        records.add("solver", kernel, "", spmv::facts_of(a, matrix.source));
    line["gpus"] = gpus;
    line["iterations"] = result.iterations;
    line["sequential_iterations"] = host_iterations;
    line["us_per_iteration"] = {{"median", median}, {"lower", us.front()}, {"upper", us.back()}};
    line["us_products_and_vectors"] = products_and_vectors;
    line["bytes_per_iteration"] = bytes;
    line["copy_bytes_per_s"] = copy;
    line["residual"] = residual;
    records.add_code(log.functions());
  }
  if (argc > 3) records.append_to(argv[3]);
  return right ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return 2;
}
