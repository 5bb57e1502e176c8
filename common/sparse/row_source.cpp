#include "sparse/row_source.hpp"

#include <algorithm>

#include "sparse/convert.hpp"
#include "sparse/generators.hpp"
#include "sparse/matrix_market.hpp"
#include "sparse/npz.hpp"

namespace spmv {

template <typename T>
RowSource<T>::RowSource(const std::string& spec, const LoadOptions& options, bool streamed)
    : source_(find_matrix(spec)),
      options_(options),
      is_streamed_file_(streamed && source_.origin == MatrixSource::Origin::kFile &&
                        !is_npz(source_.detail)) {
  if (is_streamed_file_) {
    cols_ = read_matrix_market<T>(source_.detail, options_, 0, 0, &lengths_).cols;
    rows_ = static_cast<Index>(lengths_.size());
    return;
  }
  if (source_.origin != MatrixSource::Origin::kFile) {
    generated_.emplace(source_.detail, sizeof(T), options_.memory_limit());
    Specification none = *generated_;
    none.only_rows(0, 0, false);
    const Pattern empty = none.generator().make(none);
    rows_ = empty.rows;
    cols_ = empty.cols;
    if (streamed) return;
    // By rows as well where indices cannot count it, or memory has no room for it and its parts.
    const bool by_rows = generated_->generator().by_rows;
    try {
      whole_ = generate<T>(source_.detail, options_.memory_limit() / (by_rows ? 2 : 1));
    } catch (const InputError&) {
      if (by_rows) return;
      throw;
    }
    generated_.reset();
  } else {
    whole_ = load_matrix<T>(spec, options).csr;
  }
  rows_ = whole_.rows;
  cols_ = whole_.cols;
  for (Index row = 0; row < rows_; ++row) lengths_.push_back(whole_.row_length(row));
}

template <typename T>
std::vector<Index> RowSource<T>::lengths(Index first, Index end) const {
  if (!lengths_.empty() || !generated_) {
    return {lengths_.begin() + first, lengths_.begin() + end};
  }
  // A stretch at a time: the columns are made to be counted, and not kept.
  const Index stretch = generated_->generator().by_rows ? 1 << 22 : std::max(end - first, Index{1});
  std::vector<Index> lengths;
  for (Index row = first; row < end;) {
    const Index next = row + std::min(stretch, end - row);
    const std::vector<Index> some = generated_lengths(*generated_, row, next);
    lengths.insert(lengths.end(), some.begin(), some.end());
    row = next;
  }
  return lengths;
}

template <typename T>
Csr<T> RowSource<T>::read(Index first, Index end, long long nonzeros_before) const {
  if (generated_) return generate_rows<T>(*generated_, first, end, nonzeros_before);
  if (!is_streamed_file_) return slice_of(whole_, first, end);
  return to_csr(read_matrix_market<T>(source_.detail, options_, first, end));
}

template <typename T>
Csr<T> slice_of(const Csr<T>& a, Index first, Index end) {
  const Index begin = a.row_offsets[first], stop = a.row_offsets[end];
  Csr<T> slice{end - first,
               a.cols,
               {a.row_offsets.begin() + first, a.row_offsets.begin() + end + 1},
               {a.column_indices.begin() + begin, a.column_indices.begin() + stop},
               {a.values.begin() + begin, a.values.begin() + stop}};
  for (Index& offset : slice.row_offsets) offset -= begin;
  return slice;
}

template class RowSource<float>;
template class RowSource<double>;
template Csr<float> slice_of(const Csr<float>&, Index, Index);
template Csr<double> slice_of(const Csr<double>&, Index, Index);

}  // namespace spmv
