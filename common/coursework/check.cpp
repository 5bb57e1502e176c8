// `spmv check`: is a kernel right, on every matrix and in every order in which its threads may run?
//
// What check.py and grade.py ask: JSON Lines on what was tried and what came out.
//
//   {"kernel": "csr_vector", "matrices": 160}    how many there will be
//   {"trying": "5 x 0"}                          before each: what runs if nothing follows
//   {"right": "5 x 0"}, {"refused": "5 x 0"} or {"wrong": "5 x 0", "kind": ..., "what": ...}
//   {"done": "csr_vector"}
//
// "kind" is "result", "order" (right in one order of blocks, warps and lanes, wrong in another) or
// "error" (memory, races, lanes that never arrive). The first wrong result of a kernel comes with
// "drawing": the smallest matrix found on which it is wrong, drawn.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "coursework/drawing.hpp"
#include "coursework/shrink.hpp"
#include "device/buffer.hpp"
#include "harness/command.hpp"
#include "harness/kernel.hpp"
#include "harness/verify.hpp"
#include "sparse/convert.hpp"
#include "tests/kernel_matrices.hpp"

#ifndef SPMV_CUDA
#include "simt/engine.hpp"
#endif

namespace spmv::coursework {
namespace {

using Json = nlohmann::ordered_json;

// Formats that pad are tried where they store no more than so many entries a nonzero.
constexpr double kPaddingLimit = 10;

// One way to run a kernel.
struct Case {
  bool single = false;  // precision
  bool scaled = false;  // y = 0.75 A x - 0.5 y; else y = A x
  int order = 0;        // 0 forward, 1 reverse, 2 random

  std::string describe() const {
    constexpr const char* kOrders[] = {"", ", blocks, warps and lanes in reverse order",
                                       ", blocks, warps and lanes in random order"};
    return fmt::format("{}, {}{}", single ? "f32" : "f64",
                       scaled ? "y = 0.75 A x - 0.5 y" : "y = A x", kOrders[order]);
  }
};

// Each order in each precision, with alpha and beta in one of the two, turn and turn about.
std::vector<Case> cases_of(std::size_t matrix) {
  std::vector<Case> cases;
#ifdef SPMV_CUDA
  constexpr int kOrders = 1;
#else
  constexpr int kOrders = 3;
#endif
  for (int order = 0; order < kOrders; ++order) {
    const bool scaled = (matrix + static_cast<std::size_t>(order)) % 2 != 0;
    cases.push_back({false, scaled, order});
    cases.push_back({true, !scaled, order});
  }
  return cases;
}

struct Outcome {
  enum class Kind { kRight, kRefused, kResult, kError } kind = Kind::kRight;
  std::string what;
  std::string drawing;
  bool failed() const { return kind == Kind::kResult || kind == Kind::kError; }
};

void set_order([[maybe_unused]] int order) {
#ifndef SPMV_CUDA
  constexpr simt::Schedule kSchedules[] = {simt::Schedule::kForward, simt::Schedule::kReverse,
                                           simt::Schedule::kRandom};
  simt::settings().schedule = kSchedules[order];
#endif
}

template <typename T>
std::vector<double> widened(const std::vector<T>& values) {
  return {values.begin(), values.end()};
}

template <typename T>
Outcome try_kernel(const Kernel& kernel, const Coo<double>& triplets, bool scaled, bool drawn) {
  const T alpha = scaled ? T{0.75} : T{1};
  const T beta = scaled ? T{-0.5} : T{0};
  Matrix<T> matrix;
  matrix.coo = {triplets.rows,
                triplets.cols,
                triplets.row_indices,
                triplets.column_indices,
                {triplets.values.begin(), triplets.values.end()}};
  matrix.csr = to_csr(matrix.coo);
  const Csr<T>& a = matrix.csr;
  const std::vector<T> x = test_vector<T>(a.cols, 1);
  const std::vector<T> y0 = scaled ? test_vector<T>(a.rows, 2)
                                   : std::vector<T>(a.rows, std::numeric_limits<T>::quiet_NaN());
  const Reference reference = make_reference(a, alpha, x, beta, y0);
  try {
    const device::DeviceCsr<T> csr(a);
    const Problem<T> problem{matrix, csr, kPaddingLimit};
    const device::Buffer<T> x_device("x", x);
    device::Buffer<T> y_device("y", y0);
    const device::Stream stream;
    const std::unique_ptr<Spmv<T>> spmv = kernel.set_up(problem);
    device::check(cudaDeviceSynchronize(), "setting up");
    spmv->preprocess(stream.get());
    spmv->multiply(alpha, x_device.data(), beta, y_device.data(), stream.get());
    stream.synchronize();
    const std::vector<T> y = y_device.download();
    const Verdict verdict = verify(y, reference);
    if (verdict.ok) return {};
    Outcome outcome{Outcome::Kind::kResult, verdict.describe(), ""};
    if (drawn) {
      std::vector<bool> wrong(y.size());
      for (std::size_t row = 0; row < y.size(); ++row) {
        const double error = std::abs(static_cast<double>(y[row]) - reference.y[row]);
        wrong[row] = !(error <= reference.bound[row]);
      }
      outcome.drawing = draw(triplets, widened(x), scaled ? widened(y0) : std::vector<double>{},
                             reference.y, widened(y), wrong);
    }
    return outcome;
  } catch (const Unsuitable& reason) {
    return {Outcome::Kind::kRefused, reason.what(), ""};
  } catch (const device::DeviceError& error) {
    return {Outcome::Kind::kError, error.what(), ""};
  }
}

Outcome try_case(const Kernel& kernel, const Coo<double>& triplets, const Case& c,
                 bool drawn = false) {
  set_order(c.order);
  return c.single ? try_kernel<float>(kernel, triplets, c.scaled, drawn)
                  : try_kernel<double>(kernel, triplets, c.scaled, drawn);
}

// The smallest matrix found on which `c` fails as it does on `triplets`.
std::string drawing_of(const Kernel& kernel, const Coo<double>& triplets, const Case& c) {
  const Coo<double> small = shrink(triplets, [&](const Coo<double>& candidate) {
    return try_case(kernel, candidate, c).kind == Outcome::Kind::kResult;
  });
  const Outcome outcome = try_case(kernel, small, c, true);
  return fmt::format("{} x {} with {} nonzero{}, {}\n{}", small.rows, small.cols, small.nnz(),
                     small.nnz() == 1 ? "" : "s", c.describe(), outcome.drawing);
}

Json wrong_line(const Kernel& kernel, const test::NamedMatrix& matrix, const Case& c,
                const Outcome& outcome, bool drawn) {
  Json line{{"wrong", matrix.name}, {"kind", "result"}, {"case", c.describe()}};
  if (outcome.kind == Outcome::Kind::kError) {
    line["kind"] = "error";
  } else if (c.order > 0 && !try_case(kernel, matrix.triplets, {c.single, c.scaled, 0}).failed()) {
    line["kind"] = "order";
  }
  line["what"] = outcome.what;
  if (drawn && outcome.kind == Outcome::Kind::kResult) {
    line["drawing"] = drawing_of(kernel, matrix.triplets, c);
  }
  return line;
}

struct Options {
  int random = 60;
  bool all = false;
};

// Small matrices first: the first failure is easy to look at.
std::vector<test::NamedMatrix> matrices_of(const Options& options,
                                           const CommandArguments& arguments) {
  const std::uint64_t seed = arguments.run.seed * 1'000'003;
  std::vector<test::NamedMatrix> matrices = test::adversarial_matrices(seed);
  for (test::NamedMatrix& matrix : test::random_matrices(options.random, seed)) {
    matrices.push_back(std::move(matrix));
  }
  for (const std::string& name : arguments.matrices) {
    matrices.push_back({name, load_matrix<double>(name, arguments.load).coo});
  }
  const auto size = [](const test::NamedMatrix& m) {
    return std::int64_t{m.triplets.rows} + m.triplets.cols + m.triplets.nnz();
  };
  std::stable_sort(matrices.begin(), matrices.end(),
                   [&](const auto& a, const auto& b) { return size(a) < size(b); });
  return matrices;
}

// Returns whether the kernel is right on all of them. The first wrong one ends it, unless `all`.
bool check_kernel(const Kernel& kernel, const std::vector<test::NamedMatrix>& matrices, bool all,
                  const std::function<void(const Json&)>& say) {
  bool right = true;
  say({{"kernel", kernel.info.name}, {"matrices", matrices.size()}});
  for (std::size_t m = 0; m < matrices.size(); ++m) {
    const std::string& name = matrices[m].name;
    say({{"trying", name}});
    Json line{{"right", name}};
    for (const Case& c : cases_of(m)) {
      const Outcome outcome = try_case(kernel, matrices[m].triplets, c);
      if (outcome.kind == Outcome::Kind::kRefused) line = {{"refused", name}};
      if (!outcome.failed()) continue;
      line = wrong_line(kernel, matrices[m], c, outcome, right);
      right = false;
      break;
    }
    say(line);
    if (!right && !all) break;
  }
  say({{"done", kernel.info.name}});
  return right;
}

int run(const Options& options, const CommandArguments& arguments) {
  std::ofstream file;
  if (!arguments.json.empty()) {
    file.open(arguments.json, std::ios::app);
    if (!file) throw InputError(arguments.json + ": cannot be written; give another --json");
  }
  // Each line at once: a kernel may end the process.
  const auto say = [&](const Json& line) {
    (arguments.json.empty() ? std::cout : file) << line.dump() << std::endl;
  };
#ifndef SPMV_CUDA
  simt::set_quiet_reports(true);
#endif
  const std::vector<test::NamedMatrix> matrices = matrices_of(options, arguments);
  bool right = true;
  for (const Kernel* kernel : find_kernels(arguments.kernels)) {
    if (kernel->info.step == 0 || kernel->info.runs_on == RunsOn::kHost) continue;
    right &= check_kernel(*kernel, matrices, options.all, say);
  }
  return right ? 0 : 1;
}

[[maybe_unused]] const bool registered = add_command(
    "check", "is a kernel right, on matrices made to break it and on those of --matrix?",
    [](CLI::App& app) {
      auto options = std::make_shared<Options>();
      app.add_option("--random", options->random, "random matrices, besides those made by hand");
      app.add_flag("--all", options->all, "go on after the first wrong result of a kernel");
      return [options](const CommandArguments& arguments) { return run(*options, arguments); };
    });

}  // namespace
}  // namespace spmv::coursework
