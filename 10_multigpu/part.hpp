// Step 10: what the host prepares for one GPU: its rows, and what it needs of the others' x.
#pragma once

#include <vector>

#include "sparse/matrix.hpp"

namespace spmv::multigpu {

enum class Exchange {
  kNone,    // every GPU has all of x, and no y becomes an x
  kParts,   // a GPU copies all the other parts of x to itself
  kPacked,  // a GPU copies the entries that it needs, which their owner has put side by side
  kLoads,   // a GPU's kernel loads them out of the other GPUs' memory
  kStores,  // a GPU stores its entries straight into the memory of those that need them
  kNccl     // as kPacked; NCCL does the copying
};

// What a part needs of another one's x.
struct Need {
  int owner = 0;
  Index count = 0;
  Index ghost = 0;            // where it is put in the part's own x
  std::vector<Index> places;  // where it is in the owner's; empty: from `first` on, side by side
  Index first = 0;
};

// A part's rows stand in an order of its own: first those that need nothing of other parts (the
// interior), then the others (the boundary). So the interior can be multiplied while the rest of x
// is on its way, and each is a CSR matrix of its own, for any kernel. Entry i of the part's y, and
// of its own part of x, which y becomes, is that of row first_row + order[i]. With kStores rows
// that other parts need are boundary rows, too, and Need::places are never empty.
//
// The local x is: the part's own entries; a gap, so that what follows is aligned; what the part
// needs of the others, owner by owner. The local column indices are places in it. With kLoads there
// is nothing behind the part's own, and a boundary column is a place in all parts' x, one after the
// other. With kNone the local x is all of x, and the rows keep their order.
//
// The nonzeros of a row keep theirs, so that a kernel that adds them up in order gets the same
// bits.
template <typename T>
struct Part {
  Index first_row = 0;
  std::vector<Index> order;
  Csr<T> interior;
  Csr<T> boundary;
  std::vector<Need> needs;
  Index local_cols = 0;
  Index remote_cols = 0;  // distinct columns of other parts, in the nonzeros

  Index rows() const { return static_cast<Index>(order.size()); }
  long long nnz() const { return 0LL + interior.nnz() + boundary.nnz(); }
};

// Rows [cuts[p], cuts[p + 1]) of a matrix, their columns those of the whole matrix, for each part
// p. Unless `exchange` is kNone the matrix is square, and x is cut as the rows are.
template <typename T>
std::vector<Part<T>> prepare(const std::vector<Csr<T>>& slices, const std::vector<Index>& cuts,
                             Exchange exchange);

// The same for a part alone, which knows no other part's order: needs[].places are left as columns,
// counted from the owner's first, for the owner to look up.
template <typename T>
Part<T> prepare_alone(const Csr<T>& slice, const std::vector<Index>& cuts, int p);

extern template std::vector<Part<float>> prepare(const std::vector<Csr<float>>&,
                                                 const std::vector<Index>&, Exchange);
extern template std::vector<Part<double>> prepare(const std::vector<Csr<double>>&,
                                                  const std::vector<Index>&, Exchange);
extern template Part<float> prepare_alone(const Csr<float>&, const std::vector<Index>&, int);
extern template Part<double> prepare_alone(const Csr<double>&, const std::vector<Index>&, int);

}  // namespace spmv::multigpu
