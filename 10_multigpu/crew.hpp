// Step 10: a thread of the host for each GPU; they wait for work between two runs.
#pragma once

#include <cuda_runtime.h>

#include <barrier>
#include <cstddef>
#include <exception>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

namespace spmv::multigpu {

class Crew {
 public:
  // devices: the current one of each thread.
  explicit Crew(const std::vector<int>& devices)
      : start_(static_cast<std::ptrdiff_t>(devices.size()) + 1),
        end_(static_cast<std::ptrdiff_t>(devices.size()) + 1),
        meeting_(static_cast<std::ptrdiff_t>(devices.size())),
        errors_(devices.size()) {
    for (std::size_t i = 0; i < devices.size(); ++i) {
      threads_.emplace_back([this, i, device = devices[i]] {
        cudaSetDevice(device);
        while (true) {
          start_.arrive_and_wait();
          if (!work_) return;
          try {
            work_(static_cast<int>(i));
          } catch (...) {
            errors_[i] = std::current_exception();
          }
          end_.arrive_and_wait();
        }
      });
    }
  }
  ~Crew() {
    work_ = nullptr;
    start_.arrive_and_wait();
    for (std::thread& thread : threads_) thread.join();
  }

  // Thread i does work(i). Rethrows what one of them throws; `work` must reach every meet() all the
  // same.
  void run(const std::function<void(int)>& work) {
    work_ = work;
    start_.arrive_and_wait();
    end_.arrive_and_wait();
    for (std::exception_ptr& error : errors_) {
      if (error) std::rethrow_exception(std::exchange(error, nullptr));
    }
  }
  // Waits for all threads; called by each.
  void meet() { meeting_.arrive_and_wait(); }

 private:
  std::barrier<> start_, end_, meeting_;
  std::function<void(int)> work_;
  std::vector<std::exception_ptr> errors_;
  std::vector<std::thread> threads_;
};

}  // namespace spmv::multigpu
