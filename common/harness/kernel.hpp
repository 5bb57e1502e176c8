// What a step gives to the harness: kernels, each with a name, where it comes from, how it is set
// up for a matrix and how it multiplies.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "device/csr.hpp"
#include "sparse/load.hpp"
#include "sparse/matrix.hpp"

namespace spmv {

// One matrix, on the host and, as CSR, on the device.
template <typename T>
struct Problem {
  using Value = T;
  const Matrix<T>& host;
  const device::DeviceCsr<T>& csr;
  // Formats that pad refuse a matrix of which they would store more entries for each nonzero.
  double padding_limit = 3;
};

// A kernel set up for one matrix A (rows x cols). The constructor converts from CSR to the storage
// format that the kernel needs; its time is reported as setup.
template <typename T>
class Spmv {
 public:
  virtual ~Spmv() = default;

  // What the kernel wants to know of the matrix before the first product, and may keep for all that
  // follow. Its time is reported apart from setup and from the product.
  virtual void preprocess(cudaStream_t) {}

  // y = alpha A x + beta y, asynchronously on `stream`. x has cols elements, y has rows; both are
  // device memory, or host memory for a kernel that runs on the host. y is not read if beta is 0.
  virtual void multiply(T alpha, const T* x, T beta, T* y, cudaStream_t stream) = 0;

  // Lets later products start while the kernel before them in the stream ends (programmatic
  // dependent launch), or not. Returns whether they will: kernels that cannot stay as they are.
  virtual bool overlap(bool) { return false; }

  // Bytes of A that one product must read, in the format of this kernel: values, indices, offsets.
  virtual std::size_t matrix_bytes() const = 0;

  // What setup chose for this matrix ("8 lanes per row"), for the table. Empty: nothing to choose.
  virtual std::string choice() const { return {}; }
};

// Thrown by the constructor of a kernel whose format does not suit a matrix; the text says why.
class Unsuitable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class RunsOn { kDevice, kHost };

// Whether a product of the same data gives the same bits in every run. Sums by atomics may not:
// their order is that in which threads arrive. kNotSaid: of a library whose documentation is
// silent.
enum class RunToRun { kSame, kMayDiffer, kNotSaid };
const char* name_of(RunToRun bits);  // "same bits", "may differ", "not said"

struct KernelInfo {
  int step = 0;        // 1 to 10; 0 for what is not ours
  std::string name;    // unique: "csr_scalar"
  std::string format;  // storage: "CSR", "COO", ...
  std::string idea;    // a line
  std::string source;  // paper, and algorithm or section
  RunsOn runs_on = RunsOn::kDevice;
  bool needs_triplets = false;      // Matrix::coo, in the order of the file (triplets_of())
  bool in_ladder = false;           // stands for its step in `spmv --ladder`
  RunToRun bits = RunToRun::kSame;  // tested for every kernel that is ours
  void (*open)() = nullptr;         // one-time library initialisation, excluded from setup time
};

struct Kernel {
  KernelInfo info;
  std::function<std::unique_ptr<Spmv<float>>(const Problem<float>&)> set_up_f32;
  std::function<std::unique_ptr<Spmv<double>>(const Problem<double>&)> set_up_f64;

  template <typename T>
  std::unique_ptr<Spmv<T>> set_up(const Problem<T>& problem) const {
    if constexpr (sizeof(T) == 4) {
      return set_up_f32(problem);
    } else {
      return set_up_f64(problem);
    }
  }
};

// Called while the program starts, by the stage.cu of each step:
//
//   const bool registered = add_kernel({.step = 2, .name = "csr_scalar", ...},
//                                      [](const auto& problem) { return make<CsrScalar>(problem);
//                                      });
//
// `set_up` takes a Problem<float> or a Problem<double>. Returns true.
template <typename SetUp>
bool add_kernel(KernelInfo info, SetUp set_up) {
  extern void register_kernel(Kernel kernel);
  register_kernel({std::move(info), set_up, set_up});
  return true;
}

// A Class<T> for the precision of `problem`, constructed from it and `arguments`.
template <template <typename> class Class, typename T, typename... Arguments>
std::unique_ptr<Spmv<T>> make(const Problem<T>& problem, Arguments&&... arguments) {
  return std::make_unique<Class<T>>(problem, std::forward<Arguments>(arguments)...);
}

// All kernels, in the order of the steps and, within a step, in that of registration.
const std::vector<Kernel>& kernels();

// One kernel per step, in the order of the steps: those with KernelInfo::in_ladder.
std::vector<const Kernel*> ladder_kernels();

// Those whose name matches one of the patterns ('*' and '?' as in a shell, commas between
// patterns). Throws InputError when a pattern matches none.
std::vector<const Kernel*> find_kernels(const std::string& patterns);

}  // namespace spmv
