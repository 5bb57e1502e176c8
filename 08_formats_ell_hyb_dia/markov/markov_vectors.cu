#include "markov_vectors.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "device/launch.hpp"
#include "markov.cuh"

namespace spmv {
namespace {

template <typename T>
class DeviceVectors final : public MarkovVectors<T> {
 public:
  explicit DeviceVectors(Index n)
      : n_(n),
        grid_(static_cast<int>(device::divide_up<long long>(n, kThreads))),
        reducing_(std::min(grid_, kReducingBlocks)),
        before_("x", n),
        x_("x", n),
        total_("total", n),
        parts_("parts", 2 * static_cast<std::size_t>(reducing_)),
        sums_("sums", 2) {}

  void start(const std::vector<T>& x) override {
    wait();
    x_.upload(x);
    total_.upload(std::vector<T>(x.size(), T{0}));
  }
  void step(Spmv<T>& a) override {
    std::swap(before_, x_);
    a.multiply(T{1}, before_.data(), T{0}, x_.data(), stream_.get());
  }
  void rescale(T factor) override {
    device::launch(rescale_kernel<kThreads, T>, shape(grid_), n_, factor, x_.data());
  }
  void add_to_total(T weight) override {
    device::launch(add_weighted_kernel<kThreads, T>, shape(grid_), n_, weight, x_.data(),
                   total_.data());
  }
  typename MarkovVectors<T>::Change change() override {
    device::launch(change_parts_kernel<kThreads, T>, shape(reducing_), n_, before_.data(),
                   x_.data(), parts_.data());
    device::launch(change_kernel<kThreads>, shape(1), reducing_, parts_.data(), sums_.data());
    wait();
    const std::vector<double> sums = sums_.download();
    return {sums[0], sums[1]};
  }
  void wait() override { stream_.synchronize(); }
  std::vector<T> x() override {
    wait();
    return x_.download();
  }
  std::vector<T> total() override {
    wait();
    return total_.download();
  }

 private:
  static constexpr int kThreads = 256;
  static constexpr int kReducingBlocks = 1024;  // a few for each multiprocessor

  device::Shape shape(int blocks) const { return {dim3(blocks), dim3(kThreads), 0, stream_.get()}; }

  Index n_;
  int grid_, reducing_;
  device::Buffer<T> before_, x_, total_;
  device::Buffer<double> parts_, sums_;
  device::Stream stream_;
};

template <typename T>
class HostVectors final : public MarkovVectors<T> {
 public:
  explicit HostVectors(Index n) : before_(n), x_(n), total_(n) {}

  void start(const std::vector<T>& x) override {
    x_ = x;
    total_.assign(x.size(), T{0});
  }
  void step(Spmv<T>& a) override {
    std::swap(before_, x_);
    a.multiply(T{1}, before_.data(), T{0}, x_.data(), nullptr);
  }
  void rescale(T factor) override {
    for (T& value : x_) value *= factor;
  }
  void add_to_total(T weight) override {
    for (std::size_t i = 0; i < x_.size(); ++i) total_[i] += weight * x_[i];
  }
  typename MarkovVectors<T>::Change change() override {
    typename MarkovVectors<T>::Change result;
    for (std::size_t i = 0; i < x_.size(); ++i) {
      result.change += std::abs(static_cast<double>(x_[i]) - static_cast<double>(before_[i]));
      result.sum += static_cast<double>(x_[i]);
    }
    return result;
  }
  void wait() override {}
  std::vector<T> x() override { return x_; }
  std::vector<T> total() override { return total_; }

 private:
  std::vector<T> before_, x_, total_;
};

}  // namespace

template <typename T>
std::unique_ptr<MarkovVectors<T>> make_markov_vectors(RunsOn where, Index n) {
  if (where == RunsOn::kHost) return std::make_unique<HostVectors<T>>(n);
  return std::make_unique<DeviceVectors<T>>(n);
}

template std::unique_ptr<MarkovVectors<float>> make_markov_vectors(RunsOn, Index);
template std::unique_ptr<MarkovVectors<double>> make_markov_vectors(RunsOn, Index);

}  // namespace spmv
