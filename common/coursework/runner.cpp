// The process with a student's kernels: runs what the judge asks for, and holds no verdict.
//
// It starts with a step's kernels linked to it, reads requests (protocol.hpp) from its standard
// input and writes answers to its standard output. What a kernel prints goes nowhere.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <tuple>

#include "coursework/filter.hpp"
#include "coursework/protocol.hpp"
#include "device/buffer.hpp"
#include "device/csr.hpp"
#include "harness/kernel.hpp"
#include "sparse/convert.hpp"

#ifndef SPMV_CUDA
#include "simt/engine.hpp"
#include "simt/profile.hpp"
#include "simt/shared_memory.hpp"
#endif

namespace spmv::coursework {
namespace {

constexpr std::size_t kMostRequest = std::size_t{1} << 30;

// One product that is asked for.
struct Product {
  bool counted = false;
  std::string kernel;
  bool single = false;         // precision
  double alpha = 1, beta = 0;  // exact in either precision
  std::uint8_t order = 0;      // 0 forward, 1 reverse, 2 random, 3 in lockstep
  bool again = false;          // a second product on the same arrays, whose y is returned
  bool checked = true;         // races and uninitialised reads end the kernel
  double padding_limit = 0;
  std::string x, y;  // the elements' bytes; y as it is before
};

Product read_product(FrameReader& in, bool counted) {
  Product p;
  p.counted = counted;
  p.kernel = in.text();
  p.single = in.number<std::uint8_t>();
  p.alpha = in.number<double>();
  p.beta = in.number<double>();
  p.order = in.number<std::uint8_t>();
  p.again = in.number<std::uint8_t>();
  p.checked = in.number<std::uint8_t>();
  p.padding_limit = in.number<double>();
  p.x = in.text();
  p.y = in.text();
  return p;
}

template <typename T>
std::vector<T> elements(const std::string& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

template <typename T>
Matrix<T> to_matrix(const Coo<double>& triplets) {
  Matrix<T> matrix;
  matrix.coo = {triplets.rows,
                triplets.cols,
                triplets.row_indices,
                triplets.column_indices,
                {triplets.values.begin(), triplets.values.end()}};
  matrix.csr = to_csr(matrix.coo);
  return matrix;
}

// The matrix that was sent last, in each precision that was asked for.
struct Current {
  Coo<double> triplets;
  std::optional<Matrix<float>> f32;
  std::optional<Matrix<double>> f64;

  template <typename T>
  const Matrix<T>& matrix() {
    auto& converted = [this]() -> auto& {
      if constexpr (sizeof(T) == 4) {
        return f32;
      } else {
        return f64;
      }
    }
    ();
    if (!converted) converted = to_matrix<T>(triplets);
    return *converted;
  }
};

#ifndef SPMV_CUDA
void configure(const Product& product) {
  constexpr simt::Schedule kSchedules[] = {simt::Schedule::kForward, simt::Schedule::kReverse,
                                           simt::Schedule::kRandom, simt::Schedule::kLockstep};
  simt::Settings& settings = simt::settings();
  settings.schedule = kSchedules[std::min<int>(product.order, 3)];
  settings.workers = 1;  // one order of a race, and so one result, on every machine
  settings.check_races = settings.check_uninitialised = product.checked;
  settings.constant_program = true;
  // Small, so that the blocks of a kernel whose threads fetch their work compete for it.
  settings.multiprocessors = product.counted ? simt::Settings{}.multiprocessors : 4;
}

void fill_counts(Reply& reply, const simt::Profile& profile) {
  std::vector<const void*> pcs;
  for (const auto& [key, counts] : profile.accesses) pcs.push_back(key.pc);
  const std::vector<simt::SourceLine> sources = simt::find_sources(pcs);
  std::map<std::tuple<std::string, simt::Space, simt::Access, std::string, unsigned>, Count> lines;
  auto source = sources.begin();
  for (const auto& [key, counts] : profile.accesses) {
    const simt::SourceLine& place = *source++;
    if (key.space == simt::Space::kNone) continue;
    const std::string file = place.file.substr(place.file.find_last_of('/') + 1);
    Count& line = lines[{key.array, key.space, key.access, file, place.line}];
    line.array = key.array;
    line.space = simt::to_string(key.space);
    line.access = simt::to_string(key.access);
    line.file = file;
    line.line = place.line;
    line.requests += counts.requests;
    line.lanes += counts.lanes;
    line.sectors += counts.sectors;
    line.ideal_sectors += counts.ideal_sectors;
    line.addresses += counts.addresses;
    line.bank_passes += counts.passes;
  }
  if (lines.size() > kMostCounts) {
    throw device::DeviceError("it accesses memory in more lines than are counted: " +
                              std::to_string(kMostCounts));
  }
  for (const auto& [kernel, counts] : profile.kernels) reply.steps += counts.warps.most;
  for (auto& [key, count] : lines) reply.counts.push_back(std::move(count));
}
#endif

template <typename T>
bool same_bytes(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || !std::memcmp(a.data(), b.data(), a.size() * sizeof(T)));
}

template <typename T>
Reply multiply(const Kernel& kernel, Current& current, const Product& product) {
  Reply reply;
  try {
    const Matrix<T>& matrix = current.matrix<T>();
    const device::DeviceCsr<T> csr(matrix.csr);
    const Problem<T> problem{matrix, csr, product.padding_limit};
    const device::Buffer<T> x("x", elements<T>(product.x));
    device::Buffer<T> y("y", elements<T>(product.y));
    const device::Stream stream;
    const std::unique_ptr<Spmv<T>> spmv = kernel.set_up(problem);
    device::check(cudaDeviceSynchronize(), "setting up");
    spmv->preprocess(stream.get());
    stream.synchronize();
#ifndef SPMV_CUDA
    if (product.counted) simt::start_profile();
#endif
    const auto run = [&] {
      spmv->multiply(static_cast<T>(product.alpha), x.data(), static_cast<T>(product.beta),
                     y.data(), stream.get());
      stream.synchronize();
    };
    run();
    if (product.again) {
      y.upload(elements<T>(product.y));
      run();
    }
#ifndef SPMV_CUDA
    if (product.counted) fill_counts(reply, simt::stop_profile());
#endif
    const std::vector<T> result = y.download();
    const bool kept = same_bytes(x.download(), elements<T>(product.x)) &&
                      same_bytes(csr.row_offsets.download(), matrix.csr.row_offsets) &&
                      same_bytes(csr.column_indices.download(), matrix.csr.column_indices) &&
                      same_bytes(csr.values.download(), matrix.csr.values);
    if (!kept) throw device::DeviceError("it overwrites its input: x or the matrix");
    reply.answer = Answer::kDone;
    reply.y.assign(reinterpret_cast<const char*>(result.data()), result.size() * sizeof(T));
  } catch (const Unsuitable& reason) {
    reply.answer = Answer::kRefused;
    reply.text = reason.what();
  } catch (const device::DeviceError& error) {
    reply = {};
    reply.text = error.what();
#ifndef SPMV_CUDA
    if (product.counted) simt::stop_profile();
#endif
  }
  return reply;
}

int run() {
  // Answers have a descriptor of their own, so that what a kernel prints is not one.
  const int answers = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (answers < 0 || nowhere < 0 || dup2(nowhere, STDOUT_FILENO) < 0) return 2;
#ifndef SPMV_CUDA
  simt::set_quiet_reports(true);
  simt::find_sources({reinterpret_cast<const void*>(&run)});  // starts what looks for lines
  forbid_attacks();
#endif
  if (!send_frame(answers, kHello)) return 2;
  Current current;
  while (const std::optional<std::string> frame = receive_frame(STDIN_FILENO, kMostRequest)) {
    FrameReader in(*frame);
    const Ask ask = in.number<Ask>();
    if (ask == Ask::kMatrix) {
      current = {};
      current.triplets.rows = in.number<Index>();
      current.triplets.cols = in.number<Index>();
      current.triplets.row_indices = in.array<Index>();
      current.triplets.column_indices = in.array<Index>();
      current.triplets.values = in.array<double>();
      continue;
    }
    const Product product = read_product(in, ask == Ask::kCount);
#ifndef SPMV_CUDA
    configure(product);
#endif
    const Kernel& kernel = *find_kernels(product.kernel).at(0);
    const Reply reply = product.single ? multiply<float>(kernel, current, product)
                                       : multiply<double>(kernel, current, product);
    if (!send_frame(answers, write_reply(reply))) return 2;
  }
  return 0;
}

}  // namespace
}  // namespace spmv::coursework

int main() {
  try {
    return spmv::coursework::run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "runner: %s\n", error.what());
    return 2;
  }
}
