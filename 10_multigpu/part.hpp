// Step 10: which rows each GPU gets, and what the host prepares for such a part: its rows, and the
// entries of x that it needs of other parts; and the processes that the parts are in.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "harness/verify.hpp"
#include "sparse/matrix.hpp"

namespace spmv::multigpu {

inline constexpr int kMaxGpus = 16;  // of one host

// Both ways cut between rows, so that no row's sum is made by two GPUs. (He and Gao 2016, section
// 4; PCSR-I and PCSR-II are section 5.3's names for the kernel on the one and on the other.)
enum class Partition {
  kRows,     // PCSR-I: as many rows each
  kNonzeros  // PCSR-II: as many nonzeros each, as near as whole rows allow
};

// Part p has the rows from cuts[p] up to, but not including, cuts[p + 1]. Parts may be empty.
// nonzeros: rows + 1, how many there are before each row. They have 64 bits: a matrix on several
// GPUs may have more nonzeros than an int holds, as long as no part has.
std::vector<Index> cut(Partition partition, const std::vector<long long>& nonzeros, int parts);

enum class Exchange {
  kNone,    // every GPU has all of x, and no y becomes an x
  kParts,   // a GPU copies all the other parts of x to itself
  kPacked,  // a GPU copies the entries that it needs, which their owner has packed
  kStores   // a GPU stores its entries straight into the ghost entries of those that need them
};

// The ghost entries that a part has of one owner's x, one after the other.
struct Halo {
  int owner = 0;
  Index ghost_begin = 0;       // the first one's place in the part's local x
  std::vector<Index> columns;  // of each, in the matrix

  Index count() const { return static_cast<Index>(columns.size()); }
};

// The same entries as their owner knows them.
struct Send {
  int receiver = 0;
  Index ghost_begin = 0;       // in the receiver's local x
  std::vector<Index> sources;  // of each: its place in the owner's local x
  bool is_packed = false;      // else they are side by side in the owner's x, and sent from there
  Index begin = 0;             // the first one's place among Part::packed, or in the owner's x

  Index count() const { return static_cast<Index>(sources.size()); }
};

// A part of the matrix: where its rows and entries of x stand.
//
// Rows: first the boundary rows, which need entries of other parts' x, then the interior rows. So
// the interior can be multiplied while ghost entries are on their way. Entry i of the part's y, and
// of its own part of x, which y becomes, is that of row first_row + order[i]. With kStores rows
// that other parts need are boundary rows, too; those that the same parts need stand together.
//
// The local x: the part's own entries; a gap, so that what follows is aligned; the ghost entries,
// owner by owner, in the order in which their owner has them. With kNone the local x is all of x,
// all rows are interior ones, and keep their order.
struct Part {
  std::vector<Index> cuts;  // of the matrix (see prepare())
  Index first_row = 0;
  std::vector<Index> order;
  Index boundary_rows = 0;
  std::vector<Halo> halos;    // by owner
  std::vector<Send> sends;    // by receiver
  std::vector<Index> packed;  // the places in local x that are packed, receiver by receiver
  Index local_cols = 0;
  Index remote_cols = 0;  // distinct columns of other parts, in the nonzeros
  // Rows and columns as above. The nonzeros of a row keep their order, so that a kernel that adds
  // them up in order gets the same bits.
  Csr<double> matrix;

  Index rows() const { return static_cast<Index>(order.size()); }
  const Send& send_to(int receiver) const {
    return *std::find_if(sends.begin(), sends.end(),
                         [&](const Send& send) { return send.receiver == receiver; });
  }
  // The part's own entries of a vector of all rows.
  void take(const std::vector<double>& whole, std::vector<double>& x) const {
    for (std::size_t i = 0; i < order.size(); ++i) x[i] = whole[first_row + order[i]];
  }
};

// --- Processes -----------------------------------------------------------------------------------

class Transport;  // step_on_gpu.hpp

// What parts tell each other: lists[p][q] goes from part p to part q.
using Lists = std::vector<std::vector<std::vector<Index>>>;

// The processes that the parts are in, and what these do together, in the same order. Here: one
// process, which has all parts. mpi/spmv_mpi.cpp: a process for each part.
class Processes {
 public:
  virtual ~Processes() = default;

  int count = 1;
  int number = 0;  // this one's
  // Of its devices, which are at most so many: its parts may share them.
  int first_device = 0, most_devices = kMaxGpus;

  // The numbers of those of `parts` parts that are in this process. The i-th of them is on device
  // first_device + i, unless parts share devices.
  std::vector<int> here(std::size_t parts) const {
    if (count > 1) return {number};
    std::vector<int> numbers(parts);
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
  }

  // Does `work`. Where it fails in one process, all of them throw: none waits for one that has
  // given up.
  virtual void together(const std::function<void()>& work) const { work(); }
  // Of `whole`, part p has the elements from begins[p] to begins[p + 1]: what this process does not
  // have is filled in.
  template <typename T>
  void gather(std::vector<T>& whole, const std::vector<Index>& begins) const {
    gather_bytes(whole.data(), sizeof(T), begins);
  }
  // The same with one element per part.
  template <typename T>
  void gather(std::vector<T>& of_parts) const {
    std::vector<Index> begins(of_parts.size() + 1);
    std::iota(begins.begin(), begins.end(), Index{0});
    gather(of_parts, begins);
  }
  // Returns what the parts of this process receive: [p][q] is the list that part q sends to part p.
  virtual Lists tell(Lists lists) const {
    for (std::size_t p = 0; p < lists.size(); ++p) {
      for (std::size_t q = 0; q < p; ++q) std::swap(lists[p][q], lists[q][p]);
    }
    return lists;
  }
  // What moves entries of x from process to process; null within one.
  virtual std::shared_ptr<Transport> make_transport() const { return nullptr; }

 private:
  virtual void gather_bytes(void*, std::size_t, const std::vector<Index>&) const {}
};

inline const Processes kOneProcess;

// --- Preparation ---------------------------------------------------------------------------------

// Rows [cuts[p], cuts[p + 1]) of a matrix, their columns those of the whole matrix, for each part
// p. Unless `exchange` is kNone the matrix is square, and x is cut as the rows are. Of the parts of
// other processes, `slices` and what is returned are empty. Where there are other processes,
// entries that are side by side are packed, too.
std::vector<Part> prepare(const std::vector<Csr<double>>& slices, const std::vector<Index>& cuts,
                          Exchange exchange, const Processes& processes = kOneProcess);

// The same of a matrix that is in memory as a whole, in `count` parts.
std::vector<Part> parts_of(const Csr<double>& matrix, Partition partition, int count,
                           Exchange exchange);

// Throws InputError, which begins with `what`, unless the matrix is square.
inline void require_square(const std::string& what, Index rows, Index cols) {
  if (rows == cols) return;
  throw InputError(what + " has " + std::to_string(rows) + " rows and " + std::to_string(cols) +
                   " columns; only of a square matrix y can be the next x");
}

// The x of step 0: test_vector()'s, divided by 3 so that it has all the digits of a double. (With
// few digits a row's sum is exact in every order, and its bits would show nothing.)
inline std::vector<double> first_x(Index cols, std::uint64_t seed) {
  std::vector<double> x = test_vector<double>(static_cast<std::size_t>(cols), seed);
  for (double& value : x) value /= 3;
  return x;
}

}  // namespace spmv::multigpu
