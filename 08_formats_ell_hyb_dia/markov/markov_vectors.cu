#include "markov_vectors.hpp"

#include <algorithm>
#include <utility>

#include "device/launch.hpp"
#include "markov.cuh"

namespace spmv {
namespace {

constexpr int kThreads = 256;
constexpr int kReducingBlocks = 1024;  // at most: a few for each multiprocessor

int blocks_for(Index n) {
  return device::divide_up(n, kThreads);
}
device::Shape shape(int blocks, const device::Stream& stream) {
  return {dim3(blocks), dim3(kThreads), 0, stream.get()};
}

}  // namespace

template <typename T>
MarkovVectors<T>::MarkovVectors(Index n)
    : n_(n),
      before_("x", n),
      x_("x", n),
      total_("total", n),
      parts_("parts", 2 * std::min(blocks_for(n), kReducingBlocks)),
      sums_("sums", 2) {}

template <typename T>
void MarkovVectors<T>::start(const std::vector<T>& x) {
  wait();
  x_.upload(x);
  total_.upload(std::vector<T>(x.size(), T{0}));
}

template <typename T>
void MarkovVectors<T>::step(Spmv<T>& a) {
  std::swap(before_, x_);
  a.multiply(T{1}, before_.data(), T{0}, x_.data(), stream_.get());
}

template <typename T>
void MarkovVectors<T>::rescale(T factor) {
  device::launch(rescale_kernel<kThreads, T>, shape(blocks_for(n_), stream_), n_, factor,
                 x_.data());
}

template <typename T>
void MarkovVectors<T>::add_to_total(T weight) {
  device::launch(add_weighted_kernel<kThreads, T>, shape(blocks_for(n_), stream_), n_, weight,
                 x_.data(), total_.data());
}

template <typename T>
typename MarkovVectors<T>::Change MarkovVectors<T>::change() {
  const auto blocks = static_cast<int>(parts_.size() / 2);
  device::launch(change_parts_kernel<kThreads, T>, shape(blocks, stream_), n_, before_.data(),
                 x_.data(), parts_.data());
  device::launch(change_kernel<kThreads>, shape(1, stream_), blocks, parts_.data(), sums_.data());
  wait();
  const std::vector<double> sums = sums_.download();
  return {sums[0], sums[1]};
}

template <typename T>
std::vector<T> MarkovVectors<T>::x() {
  wait();
  return x_.download();
}

template <typename T>
std::vector<T> MarkovVectors<T>::total() {
  wait();
  return total_.download();
}

template class MarkovVectors<float>;
template class MarkovVectors<double>;

}  // namespace spmv
