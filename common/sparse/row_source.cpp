#include "sparse/row_source.hpp"

#include <algorithm>
#include <utility>

#include "sparse/convert.hpp"
#include "sparse/generators.hpp"
#include "sparse/matrix_market.hpp"

namespace spmv {
namespace {

using Origin = MatrixSource::Origin;

template <typename T>
class Generator final : public RowSource<T> {
 public:
  explicit Generator(MatrixSource source)
      : source_(std::move(source)), rows_(source_.detail, sizeof(T)) {}
  Index rows() const override { return rows_.rows(); }
  Index cols() const override { return rows_.cols(); }
  const MatrixSource& source() const override { return source_; }
  bool by_rows() const { return rows_.by_rows(); }
  std::vector<Index> lengths(Index first, Index end) const override {
    // A stretch at a time: the columns are made to be counted, and not kept.
    const Index stretch = rows_.by_rows() ? 1 << 22 : std::max(end - first, Index{1});
    std::vector<Index> lengths;
    for (Index row = first; row < end;) {
      const Index next = row + std::min(stretch, end - row);
      const std::vector<Index> some = rows_.lengths(row, next);
      lengths.insert(lengths.end(), some.begin(), some.end());
      row = next;
    }
    return lengths;
  }
  Csr<T> read(Index first, Index end, long long nonzeros_before) const override {
    return rows_.template rows<T>(first, end, nonzeros_before);
  }

 private:
  MatrixSource source_;
  GeneratedRows rows_;
};

template <typename T>
class Whole final : public RowSource<T> {
 public:
  explicit Whole(Matrix<T> matrix) : matrix_(std::move(matrix)) {}
  Index rows() const override { return matrix_.csr.rows; }
  Index cols() const override { return matrix_.csr.cols; }
  const MatrixSource& source() const override { return matrix_.source; }
  std::vector<Index> lengths(Index first, Index end) const override {
    std::vector<Index> lengths;
    for (Index row = first; row < end; ++row) lengths.push_back(matrix_.csr.row_length(row));
    return lengths;
  }
  Csr<T> read(Index first, Index end, long long) const override {
    return slice_of(matrix_.csr, first, end);
  }

 private:
  Matrix<T> matrix_;
};

template <typename T>
class File final : public RowSource<T> {
 public:
  File(MatrixSource source, const LoadOptions& options)
      : source_(std::move(source)), options_(options) {
    const Coo<T> nothing = read_matrix_market_rows<T>(source_.detail, 0, 0, options_, &lengths_);
    cols_ = nothing.cols;
  }
  Index rows() const override { return static_cast<Index>(lengths_.size()); }
  Index cols() const override { return cols_; }
  const MatrixSource& source() const override { return source_; }
  std::vector<Index> lengths(Index first, Index end) const override {
    return {lengths_.begin() + first, lengths_.begin() + end};
  }
  Csr<T> read(Index first, Index end, long long) const override {
    return to_csr(read_matrix_market_rows<T>(source_.detail, first, end, options_));
  }

 private:
  MatrixSource source_;
  LoadOptions options_;
  std::vector<Index> lengths_;  // of all rows
  Index cols_ = 0;
};

}  // namespace

template <typename T>
std::unique_ptr<RowSource<T>> open_rows(const std::string& spec, const LoadOptions& options,
                                        bool streamed) {
  MatrixSource source = find_matrix(spec);
  const bool is_file = source.origin == Origin::kFile;
  if (is_file && streamed) return std::make_unique<File<T>>(std::move(source), options);
  if (!is_file) {
    auto generator = std::make_unique<Generator<T>>(std::move(source));
    if (streamed || generator->by_rows()) return generator;
  }
  return std::make_unique<Whole<T>>(load_matrix<T>(spec, options));
}

template <typename T>
Csr<T> slice_of(const Csr<T>& a, Index first, Index end) {
  const Index begin = a.row_offsets[first], stop = a.row_offsets[end];
  Csr<T> slice;
  slice.rows = end - first;
  slice.cols = a.cols;
  slice.row_offsets.assign(a.row_offsets.begin() + first, a.row_offsets.begin() + end + 1);
  for (Index& offset : slice.row_offsets) offset -= begin;
  slice.column_indices.assign(a.column_indices.begin() + begin, a.column_indices.begin() + stop);
  slice.values.assign(a.values.begin() + begin, a.values.begin() + stop);
  return slice;
}

template std::unique_ptr<RowSource<float>> open_rows(const std::string&, const LoadOptions&, bool);
template std::unique_ptr<RowSource<double>> open_rows(const std::string&, const LoadOptions&, bool);
template Csr<float> slice_of(const Csr<float>&, Index, Index);
template Csr<double> slice_of(const Csr<double>&, Index, Index);

}  // namespace spmv
