// Step 10: the processes that the parts are in, and what these do together. Here: one process,
// which has all parts. mpi/ranks.hpp: a process for each part.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "sparse/matrix.hpp"

namespace spmv::multigpu {

// What parts tell each other: lists[p][q] goes from part p to part q.
using Lists = std::vector<std::vector<std::vector<Index>>>;

// All processes call each of the last three together, in the same order.
class Processes {
 public:
  virtual ~Processes() = default;

  // Whether part p is in this process.
  virtual bool has(int) const { return true; }
  // The numbers of those of `parts` parts that are.
  std::vector<int> here(std::size_t parts) const {
    std::vector<int> numbers;
    for (int p = 0; p < static_cast<int>(parts); ++p) {
      if (has(p)) numbers.push_back(p);
    }
    return numbers;
  }
  // Does `work`. Where it fails in one process, all of them throw: none waits for one that has
  // given up.
  virtual void together(const std::function<void()>& work) const { work(); }
  // of_parts: `bytes` bytes of each part; what this process does not have is filled in.
  virtual void gather(void* /*of_parts*/, std::size_t /*bytes*/) const {}
  // Returns what the parts of this process receive: [p][q] is the list that part q sends to part p.
  virtual Lists tell(Lists lists) const {
    for (std::size_t p = 0; p < lists.size(); ++p) {
      for (std::size_t q = 0; q < p; ++q) std::swap(lists[p][q], lists[q][p]);
    }
    return lists;
  }
};

inline const Processes kOneProcess;

}  // namespace spmv::multigpu
