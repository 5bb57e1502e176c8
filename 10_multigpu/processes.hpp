// Step 10: the processes that the parts are in, and what these do together. Here: one process,
// which has all parts. mpi/ranks.hpp: a process for each part.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "sparse/matrix.hpp"

namespace spmv::multigpu {

class Transport;  // step_on_gpu.cuh

// What parts tell each other: lists[p][q] goes from part p to part q.
using Lists = std::vector<std::vector<std::vector<Index>>>;

// All processes call together(), gather() and tell() together, in the same order.
class Processes {
 public:
  virtual ~Processes() = default;

  virtual int count() const { return 1; }
  virtual int number() const { return 0; }  // this one's
  // The numbers of those of `parts` parts that are in this process. The i-th of them is on device
  // first_device() + i, unless parts share devices.
  std::vector<int> here(std::size_t parts) const {
    if (count() > 1) return {number()};
    std::vector<int> numbers(parts);
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
  }
  virtual int first_device() const { return 0; }
  // How many devices its parts are on, of as many as they are.
  virtual int devices(int parts_here) const;

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
  virtual std::unique_ptr<Transport> make_transport() const;

 private:
  virtual void gather_bytes(void*, std::size_t, const std::vector<Index>&) const {}
};

extern const Processes kOneProcess;

}  // namespace spmv::multigpu
