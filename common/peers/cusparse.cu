// NVIDIA's cuSPARSE, set up as its documentation asks: every algorithm it offers for CSR and COO,
// with and without its preprocess, its product with a plan (SpMVOp), its sliced ELL and block CSR,
// and its product with half of a symmetric matrix (SpMVGeneric).
#define CUSPARSE_ENABLE_EXPERIMENTAL_API  // SpMVOp, SpMVGeneric
#include <cusparse.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "device/buffer.hpp"
#include "harness/kernel.hpp"
#include "sparse/bsr.hpp"

namespace spmv {
namespace {

void check(cusparseStatus_t status, const std::string& call) {
  if (status == CUSPARSE_STATUS_SUCCESS) return;
  throw device::DeviceError(call.substr(0, call.find('(')) +
                            ": cuSPARSE: " + cusparseGetErrorString(status));
}
#define CHECK(...) check(__VA_ARGS__, #__VA_ARGS__)

template <typename T>
constexpr cudaDataType kType = sizeof(T) == 4 ? CUDA_R_32F : CUDA_R_64F;

// One library handle for all: making the first takes a third of a second, with which no kernel
// should be charged.
cusparseHandle_t library() {
  static const cusparseHandle_t handle = [] {
    cusparseHandle_t created = nullptr;
    CHECK(cusparseCreate(&created));
    return created;
  }();
  return handle;
}

// The library's descriptors take pointers to data that it will not change.
template <typename T>
void* unconst(const T* pointer) {
  return const_cast<T*>(pointer);
}

// What all formats have in common; a format fills matrix_ and says what its storage takes.
template <typename T>
class Cusparse : public Spmv<T> {
 public:
  Cusparse(const Problem<T>& problem, cusparseSpMVAlg_t algorithm, bool preprocesses)
      : csr_(problem.csr), algorithm_(algorithm), preprocesses_(preprocesses) {
    if (csr_.rows == 0 || csr_.cols == 0 || csr_.nnz == 0) {
      throw Unsuitable("cuSPARSE takes no empty matrix");
    }
    // Its stream is still the one of the last product, which may be gone.
    CHECK(cusparseSetStream(library(), nullptr));
  }
  ~Cusparse() override {
    if (x_) cusparseDestroyDnVec(x_);
    if (y_) cusparseDestroyDnVec(y_);
    if (matrix_) cusparseDestroySpMat(matrix_);
  }

  void preprocess(cudaStream_t stream) override {
    // The vectors' descriptors need memory to point at; multiply() gives them the real one.
    device::Buffer<T> placeholder("placeholder", std::max(csr_.rows, csr_.cols));
    CHECK(cusparseCreateDnVec(&x_, csr_.cols, placeholder.data(), kType<T>));
    CHECK(cusparseCreateDnVec(&y_, csr_.rows, placeholder.data(), kType<T>));
    CHECK(cusparseSetStream(library(), stream));
    analyse();
    device::check(cudaStreamSynchronize(stream), "preprocess");
  }

  void multiply(T alpha, const T* x, T beta, T* y, cudaStream_t stream) override {
    CHECK(cusparseSetStream(library(), stream));
    CHECK(cusparseDnVecSetValues(x_, const_cast<T*>(x)));
    CHECK(cusparseDnVecSetValues(y_, y));
    launch(alpha, beta);
  }
  std::size_t matrix_bytes() const override { return matrix_bytes_; }

 protected:
  // The matrix in CSR, which stays its owner's.
  void use(const device::DeviceCsr<T>& a) {
    CHECK(cusparseCreateCsr(&matrix_, a.rows, a.cols, a.nnz, unconst(a.row_offsets.data()),
                            unconst(a.column_indices.data()), unconst(a.values.data()),
                            CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
                            kType<T>));
    matrix_bytes_ = a.bytes();
  }
  // The workspace, and what the library wants to know of the matrix before the first product.
  virtual void analyse() {
    const T one = 1;
    const T zero = 0;
    std::size_t bytes = 0;
    CHECK(cusparseSpMV_bufferSize(library(), CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix_, x_,
                                  &zero, y_, kType<T>, algorithm_, &bytes));
    work_ = device::Buffer<char>("cusparse_work", bytes);
    if (!preprocesses_) return;
    CHECK(cusparseSpMV_preprocess(library(), CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix_, x_,
                                  &zero, y_, kType<T>, algorithm_, work_.data()));
  }
  // One product, from x_ into y_.
  virtual void launch(T alpha, T beta) {
    CHECK(cusparseSpMV(library(), CUSPARSE_OPERATION_NON_TRANSPOSE, &alpha, matrix_, x_, &beta, y_,
                       kType<T>, algorithm_, work_.data()));
  }

  const device::DeviceCsr<T>& csr_;
  cusparseSpMatDescr_t matrix_ = nullptr;
  std::size_t matrix_bytes_ = 0;
  cusparseDnVecDescr_t x_ = nullptr;
  cusparseDnVecDescr_t y_ = nullptr;
  device::Buffer<char> work_;

 private:
  cusparseSpMVAlg_t algorithm_;
  bool preprocesses_;
};

template <typename T>
class CusparseCsr : public Cusparse<T> {
 public:
  CusparseCsr(const Problem<T>& problem, cusparseSpMVAlg_t algorithm, bool preprocesses)
      : Cusparse<T>(problem, algorithm, preprocesses) {
    this->use(problem.csr);
  }
};

#if CUSPARSE_VERSION >= \
    12801  // of CUDA 13.3; before, SpMVOp has no choice of algorithm, or is missing
// z = alpha A x + beta y by a plan made once for a CSR matrix; here z is y. No epilogue is given,
// so nothing is compiled at run time.
template <typename T>
class CusparseSpmvOp final : public CusparseCsr<T> {
 public:
  CusparseSpmvOp(const Problem<T>& problem, cusparseSpMVOpAlg_t algorithm)
      : CusparseCsr<T>(problem, CUSPARSE_SPMV_ALG_DEFAULT, true), algorithm_(algorithm) {}
  ~CusparseSpmvOp() override {
    if (plan_) cusparseSpMVOp_destroyPlan(plan_);
    if (description_) cusparseSpMVOp_destroyDescr(description_);
  }

 protected:
  void analyse() override {
    constexpr auto kAsItStands = CUSPARSE_OPERATION_NON_TRANSPOSE;
    std::size_t bytes = 0;
    CHECK(cusparseSpMVOp_bufferSize(library(), kAsItStands, this->matrix_, this->x_, this->y_,
                                    this->y_, kType<T>, algorithm_, &bytes));
    this->work_ = device::Buffer<char>("cusparse_work", bytes);
    CHECK(cusparseSpMVOp_createDescr(library(), &description_, kAsItStands, this->matrix_, this->x_,
                                     this->y_, this->y_, kType<T>, algorithm_, this->work_.data()));
    CHECK(cusparseSpMVOp_createPlan(library(), description_, &plan_, nullptr, 0));
  }
  void launch(T alpha, T beta) override {
    CHECK(cusparseSpMVOp(library(), plan_, &alpha, &beta, this->x_, this->y_, this->y_));
  }

 private:
  cusparseSpMVOpAlg_t algorithm_;
  cusparseSpMVOpDescr_t description_ = nullptr;
  cusparseSpMVOpPlan_t plan_ = nullptr;
};
#endif

template <typename T>
class CusparseCoo final : public Cusparse<T> {
 public:
  CusparseCoo(const Problem<T>& problem, cusparseSpMVAlg_t algorithm, bool preprocesses)
      : Cusparse<T>(problem, algorithm, preprocesses),
        row_indices_("row_indices", problem.csr.nnz) {
    const auto& a = problem.csr;
    CHECK(cusparseXcsr2coo(library(), a.row_offsets.data(), a.nnz, a.rows, row_indices_.data(),
                           CUSPARSE_INDEX_BASE_ZERO));
    CHECK(cusparseCreateCoo(&this->matrix_, a.rows, a.cols, a.nnz, row_indices_.data(),
                            unconst(a.column_indices.data()), unconst(a.values.data()),
                            CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, kType<T>));
    this->matrix_bytes_ = row_indices_.bytes() + a.column_indices.bytes() + a.values.bytes();
  }

 private:
  device::Buffer<Index> row_indices_;
};

// Sliced ELL: slices of `slice` rows, each padded to its longest row and stored column by column.
template <typename T>
class CusparseSell final : public Cusparse<T> {
 public:
  CusparseSell(const Problem<T>& problem, Index slice)
      : Cusparse<T>(problem, CUSPARSE_SPMV_SELL_ALG1, false) {
    const Csr<T>& a = problem.host.csr;
    const Index slices = a.rows / slice + (a.rows % slice != 0);
    std::vector<Index> offsets{0};
    std::int64_t stored = 0;
    for (Index s = 0; s < slices; ++s) {
      Index longest = 0;
      for (Index row = s * slice; row < std::min(a.rows, (s + 1) * slice); ++row) {
        longest = std::max(longest, a.row_length(row));
      }
      stored += std::int64_t{longest} * slice;
      if (stored > kMaxNonzeros || stored > 10 * (std::int64_t{a.nnz()} + a.rows)) {
        throw Unsuitable("padding every slice to its longest row would store over " +
                         std::to_string(stored) + " entries for " + std::to_string(a.nnz()));
      }
      offsets.push_back(static_cast<Index>(stored));
    }
    std::vector<Index> columns(stored, -1);  // cuSPARSE's mark for padding
    std::vector<T> values(stored, T{0});
    for (Index row = 0; row < a.rows; ++row) {
      Index place = offsets[row / slice] + row % slice;
      for (Index k = a.row_offsets[row]; k < a.row_offsets[row + 1]; ++k, place += slice) {
        columns[place] = a.column_indices[k];
        values[place] = a.values[k];
      }
    }
    offsets_ = device::Buffer<Index>("sell_offsets", offsets);
    columns_ = device::Buffer<Index>("sell_columns", columns);
    values_ = device::Buffer<T>("sell_values", values);
    CHECK(cusparseCreateSlicedEll(&this->matrix_, a.rows, a.cols, a.nnz(), stored, slice,
                                  offsets_.data(), columns_.data(), values_.data(),
                                  CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
                                  kType<T>));
    this->matrix_bytes_ = offsets_.bytes() + columns_.bytes() + values_.bytes();
  }

 private:
  device::Buffer<Index> offsets_, columns_;
  device::Buffer<T> values_;
};

#if CUSPARSE_VERSION >= 12600  // of CUDA 13.0; before, there is no product with BSR
// Block CSR with square dense blocks, where one size of block stores at most half as many zeros as
// the matrix has nonzeros.
template <typename T>
class CusparseBsr final : public Cusparse<T> {
 public:
  explicit CusparseBsr(const Problem<T>& problem)
      : Cusparse<T>(problem, CUSPARSE_SPMV_BSR_ALG1, false) {
    const Csr<T>& a = problem.host.csr;
    block_ = best_block(a);
    if (block_ == 0) throw Unsuitable("no square block from 2 to 8 stores less than half zeros");
    const Bsr<T> bsr = to_bsr(a, block_);
    offsets_ = device::Buffer<Index>("bsr_offsets", bsr.row_offsets);
    columns_ = device::Buffer<Index>("bsr_columns", bsr.column_indices);
    values_ = device::Buffer<T>("bsr_values", bsr.values);
    CHECK(cusparseCreateBsr(&this->matrix_, a.rows / block_, a.cols / block_,
                            static_cast<std::int64_t>(columns_.size()), block_, block_,
                            offsets_.data(), columns_.data(), values_.data(), CUSPARSE_INDEX_32I,
                            CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, kType<T>,
                            CUSPARSE_ORDER_ROW));
    this->matrix_bytes_ = offsets_.bytes() + columns_.bytes() + values_.bytes();
  }
  std::string choice() const override {
    return std::to_string(block_) + "x" + std::to_string(block_) + " blocks";
  }

 private:
  Index block_ = 0;
  device::Buffer<Index> offsets_, columns_;
  device::Buffer<T> values_;
};
#endif

#if CUSPARSE_VERSION >= 12904  // of CUDA 13.4; before, a symmetric matrix is stored whole
// Of a symmetric matrix the entries on and below the diagonal, each used for two rows of y.
template <typename T>
class CusparseSymmetric final : public Cusparse<T> {
 public:
  explicit CusparseSymmetric(const Problem<T>& problem)
      : Cusparse<T>(problem, CUSPARSE_SPMV_CSR_ALG1, true) {
    const Csr<T>& a = problem.host.csr;
    if (!is_symmetric(a)) throw Unsuitable("the matrix is not symmetric");
    Csr<T> half{.rows = a.rows, .cols = a.cols};
    for (Index row = 0; row < a.rows; ++row) {
      for (Index k = a.row_offsets[row]; k < a.row_offsets[row + 1]; ++k) {
        if (a.column_indices[k] > row) break;
        half.column_indices.push_back(a.column_indices[k]);
        half.values.push_back(a.values[k]);
      }
      half.row_offsets.push_back(half.nnz());
    }
    half_ = device::DeviceCsr<T>(half);
    this->use(half_);
    describe(CUSPARSE_SPMAT_SYMMETRY_TYPE, CUSPARSE_SYMMETRIC);
    describe(CUSPARSE_SPMAT_STORAGE, CUSPARSE_STORE_LOWER);
  }
  ~CusparseSymmetric() override {
    if (description_) cusparseSpMV_destroyDescr(description_);
  }

 protected:
  void analyse() override {
    const T one = 1;
    const T zero = 0;
    CHECK(cusparseSpMV_createDescr(&description_));
    set(CUSPARSE_PARAM_OP, CUSPARSE_OPERATION_NON_TRANSPOSE);
    set(CUSPARSE_PARAM_ALG, CUSPARSE_SPMV_CSR_ALG1);
    std::size_t bytes = 0;
    CHECK(cusparseSpMVGeneric_bufferSize(library(), &one, this->matrix_, this->x_, &zero, this->y_,
                                         this->y_, kType<T>, description_, &bytes));
    this->work_ = device::Buffer<char>("cusparse_work", bytes);
    set<void*>(CUSPARSE_PARAM_BUFFER, this->work_.data());
    CHECK(cusparseSpMVGeneric_preprocess(library(), &one, this->matrix_, this->x_, &zero, this->y_,
                                         this->y_, kType<T>, description_));
  }
  void launch(T alpha, T beta) override {
    CHECK(cusparseSpMVGeneric(library(), &alpha, this->matrix_, this->x_, &beta, this->y_, this->y_,
                              kType<T>, description_));
  }

 private:
  // Row by row, the next unread entry of row c must mirror each entry (row, c).
  static bool is_symmetric(const Csr<T>& a) {
    if (a.rows != a.cols) return false;
    std::vector<Index> next(a.row_offsets.begin(), a.row_offsets.end() - 1);
    for (Index row = 0; row < a.rows; ++row) {
      for (Index k = a.row_offsets[row]; k < a.row_offsets[row + 1]; ++k) {
        const Index column = a.column_indices[k];
        const Index mirror = next[column]++;
        if (mirror >= a.row_offsets[column + 1] || a.column_indices[mirror] != row ||
            a.values[mirror] != a.values[k]) {
          return false;
        }
      }
    }
    return true;
  }
  template <typename Value>
  void describe(cusparseSpMatAttribute_t attribute, Value value) {
    CHECK(cusparseSpMatSetAttribute(this->matrix_, attribute, &value, sizeof value));
  }
  template <typename Value>
  void set(cusparseApiParam_t parameter, Value value) {
    CHECK(cusparseSpMVDescrSetParam(description_, parameter, &value, sizeof value));
  }

  device::DeviceCsr<T> half_;
  cusparseSpMVDescr_t description_ = nullptr;
};
#endif

// What NVIDIA's documentation of cusparseSpMV() says of an algorithm's bits.
RunToRun documented_bits(const std::string& name) {
  if (name.starts_with("csr_alg2") || name.starts_with("coo_alg2") || name.starts_with("sell")) {
    return RunToRun::kSame;
  }
  return name == "symmetric" ||
                 (name.find("_alg1") != std::string::npos && !name.starts_with("spmvop"))
             ? RunToRun::kMayDiffer
             : RunToRun::kNotSaid;
}

KernelInfo info(const std::string& name, const std::string& format, const std::string& idea) {
  std::string function = "cusparseSpMV";
  if (name.starts_with("spmvop")) function += "Op";
  if (name == "symmetric") function += "Generic";
  return {.step = 0,
          .name = "cusparse_" + name,
          .format = format,
          .idea = "cuSPARSE, " + idea,
          .source = "NVIDIA's library, " + function,
          .in_ladder = name == "csr_alg1_pre",
          .bits = documented_bits(name),
          .open = [] { library(); }};
}

bool register_all() {
  for (const bool preprocesses : {false, true}) {
    const std::string suffix = preprocesses ? "_pre" : "";
    const std::string with = preprocesses ? " with preprocess" : "";
    for (const auto& [name, algorithm] :
         {std::pair{"alg1", CUSPARSE_SPMV_CSR_ALG1}, {"alg2", CUSPARSE_SPMV_CSR_ALG2}}) {
      add_kernel(info("csr_" + (name + suffix), "CSR", "CSR " + (name + with)),
                 [algorithm = algorithm, preprocesses](const auto& problem) {
                   return make<CusparseCsr>(problem, algorithm, preprocesses);
                 });
    }
    for (const auto& [name, algorithm] :
         {std::pair{"alg1", CUSPARSE_SPMV_COO_ALG1}, {"alg2", CUSPARSE_SPMV_COO_ALG2}}) {
      add_kernel(info("coo_" + (name + suffix), "COO", "COO " + (name + with)),
                 [algorithm = algorithm, preprocesses](const auto& problem) {
                   return make<CusparseCoo>(problem, algorithm, preprocesses);
                 });
    }
  }
#if CUSPARSE_VERSION >= 12801
  for (const auto& [name, algorithm] : {std::pair{"default", CUSPARSE_SPMVOP_ALG_DEFAULT},
                                        {"alg1", CUSPARSE_SPMVOP_ALG1},
                                        {"alg2", CUSPARSE_SPMVOP_ALG2}}) {
    add_kernel(info(std::string("spmvop_") + name, "CSR", std::string("CSR with a plan, ") + name),
               [algorithm = algorithm](const auto& problem) {
                 return make<CusparseSpmvOp>(problem, algorithm);
               });
  }
#endif
  for (const Index slice : {8, 32}) {
    add_kernel(info("sell_" + std::to_string(slice), "SELL",
                    "sliced ELL, " + std::to_string(slice) + " rows a slice"),
               [slice](const auto& problem) { return make<CusparseSell>(problem, slice); });
  }
#if CUSPARSE_VERSION >= 12600
  add_kernel(info("bsr", "BSR", "block CSR, block size by the matrix"),
             [](const auto& problem) { return make<CusparseBsr>(problem); });
#endif
#if CUSPARSE_VERSION >= 12904
  add_kernel(info("symmetric", "CSR", "half of a symmetric matrix in CSR"),
             [](const auto& problem) { return make<CusparseSymmetric>(problem); });
#endif
  return true;
}

[[maybe_unused]] const bool registered = register_all();

}  // namespace
}  // namespace spmv
