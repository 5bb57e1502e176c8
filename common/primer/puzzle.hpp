// What a puzzle needs: arrays, a launch, the expected result. The puzzle of one file
// (puzzles/NN_name.cu) is run and judged as an exercise is (common/coursework); its targets stand
// in puzzles.ini.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <string>
#include <vector>

#include "device/buffer.hpp"
#include "device/launch.hpp"

namespace primer {

using spmv::device::launch;

// Elements of device memory, and what the host has put there. A kernel gets the pointer to them.
template <typename T>
class Array {
 public:
  Array(const std::string& name, const std::vector<T>& host)
      : name_(name), host_(host), device_(name, host) {}

  operator T*() const { return device_.data(); }
  operator const T*() const { return device_.data(); }
  const T& at(std::size_t i) const { return host_.at(i); }  // as before the launch
  std::size_t size() const { return host_.size(); }
  const std::string& name() const { return name_; }
  std::vector<T> download() const { return device_.download(); }

 private:
  std::string name_;
  std::vector<T> host_;
  mutable spmv::device::Buffer<T> device_;  // a kernel may write to it
};

// cudaMalloc, and cudaMemcpy of whole numbers from -8 to 8, none of them 0, of which sums are exact
// in a float.
Array<float> input(const std::string& name, int count);
// cudaMalloc, and cudaMemcpy of NaN, which shows in the result where nothing is written.
Array<float> output(const std::string& name, int count);

// The puzzle is solved if the array holds `expected` after the launch.
template <typename T>
void expect(const Array<T>& array, const std::vector<T>& expected);

// The number that the program was called with, from 1 to 1024, or `otherwise`.
int argument(int otherwise);

}  // namespace primer

// Defined in the puzzle's file: allocates, launches, and says what is expected.
void puzzle();
