// The harness must find what is wrong: verification, measurement, registry, records.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <sstream>
#include <thread>

#include <fmt/format.h>

#include "harness/kernel.hpp"
#include "harness/report.hpp"
#include "harness/run.hpp"
#include "harness/turn.hpp"
#include "harness/verify.hpp"
#include "sparse/load.hpp"
#include "tests/catch.hpp"
#include "tests/scratch.hpp"

using namespace spmv;

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// A product on the host with a mistake that `spoil` makes in y.
template <typename T>
class Spoiled final : public Spmv<T> {
 public:
  using Spoil = std::function<void(std::vector<T>&)>;
  Spoiled(const Problem<T>& problem, Spoil spoil)
      : a_(problem.host.csr), spoil_(std::move(spoil)) {}
  void multiply(T alpha, const T* x, T beta, T* y, cudaStream_t) override {
    std::vector<T> result(a_.rows);
    for (Index row = 0; row < a_.rows; ++row) {
      T sum = 0;
      for (Index k = a_.row_offsets[row]; k < a_.row_offsets[row + 1]; ++k) {
        sum += a_.values[k] * x[a_.column_indices[k]];
      }
      result[row] = alpha * sum + (beta == T{0} ? T{0} : beta * y[row]);
    }
    spoil_(result);
    // A result left as NaN here means "not written".
    for (Index row = 0; row < a_.rows; ++row) {
      if (!std::isnan(result[row])) y[row] = result[row];
    }
  }
  std::size_t matrix_bytes() const override { return csr_bytes(a_); }

 private:
  const Csr<T>& a_;
  Spoil spoil_;
};

using SetUp = std::function<std::unique_ptr<Spmv<double>>(const Problem<double>&)>;

Record run(const Matrix<double>& matrix, SetUp set_up, const RunOptions& options = {}) {
  const device::DeviceCsr<double> csr(matrix.csr);
  const Problem<double> problem{matrix, csr};
  Kernel kernel;
  kernel.info.runs_on = RunsOn::kHost;
  kernel.set_up_f64 = std::move(set_up);
  return Bench<double>(problem, options).run(kernel);
}

Record run_spoiled(const Matrix<double>& matrix, Spoiled<double>::Spoil spoil,
                   const RunOptions& options = {.measure = false}) {
  const auto set_up = [&](const Problem<double>& problem) {
    return std::make_unique<Spoiled<double>>(problem, spoil);
  };
  return run(matrix, set_up, options);
}

}  // namespace

TEST_CASE("a right product passes and each way of being wrong fails", "[harness]") {
  const Matrix<double> a = load_matrix<double>("random:200x150,nnz_per_row=9");
  CHECK(run_spoiled(a, [](auto&) {}).verified);
  const Spoiled<double>::Spoil mistakes[] = {
      [](auto& y) { y[17] = kNaN; },  // a row is never written
      [](auto& y) { y[199] += 1e-9; },
      [](auto& y) { y[0] = kInf; },
      [](auto& y) { std::swap(y[3], y[4]); },
      [](auto& y) { y.assign(y.size(), 0); },
      [](auto& y) {
        for (double& v : y) v = -v;
      },
  };
  for (const auto& mistake : mistakes) CHECK_FALSE(run_spoiled(a, mistake).verified);
}

TEST_CASE("a kernel that is wrong only the second time fails", "[harness]") {
  const Matrix<double> a = load_matrix<double>("random:50x50,nnz_per_row=5");
  const auto spoil = [calls = 0](auto& y) mutable {
    if (++calls > 1) y[5] += 1;
  };
  CHECK_FALSE(run_spoiled(a, spoil, {}).verified);
}

TEST_CASE("two results are compared bit by bit", "[harness]") {
  const double next = std::nextafter(1.0, 2.0), below = std::nextafter(1.0, 0.0);
  const double tiny = std::numeric_limits<double>::denorm_min();
  const auto check = [](auto a, auto b, std::size_t rows, std::uint64_t ulps) {
    for (const Difference& d : {compare_bits(a, b), compare_bits(b, a)}) {
      CHECK(d.rows == rows);
      CHECK(d.max_ulps == ulps);
    }
  };
  using Doubles = std::vector<double>;
  check(Doubles{}, Doubles{}, 0, 0);
  check(Doubles{1, -2, kInf, kNaN}, Doubles{1, -2, kInf, kNaN}, 0, 0);
  check(Doubles{1, 1, 1}, Doubles{1, next, below}, 2, 1);
  check(Doubles{next}, Doubles{below}, 1, 2);
  check(Doubles{-next, 5}, Doubles{-below, 5}, 1, 2);
  check(Doubles{0.0}, Doubles{-0.0}, 1, 0);
  check(Doubles{tiny}, Doubles{-tiny}, 1, 2);  // on both sides of zero
  check(Doubles{kNaN, 3}, Doubles{1, 3}, 1, 0);
  // From one end of the numbers to the other, without overflow.
  check(Doubles{kInf}, Doubles{-kInf}, 1, 2 * 0x7ff0000000000000u);
  const Difference halves = compare_bits<double>({1, 2, 8}, {1, 2.5, 9}, {1, 1, 4});
  CHECK(halves.rows == 2);
  CHECK(halves.max_of_bound == 0.5);
  check(std::vector<float>{1, 2}, std::vector<float>{1, std::nextafter(2.0f, 3.0f)}, 1, 1);
  check(std::vector<float>{HUGE_VALF}, std::vector<float>{-HUGE_VALF}, 1, 2 * 0x7f800000u);
}

TEST_CASE("a kernel that gives other bits the second time is found out", "[harness]") {
  const Matrix<double> a = load_matrix<double>("random:50x50,nnz_per_row=5");
  for (const double beta : {0.0, 0.5}) {
    for (const bool differs : {false, true}) {
      const auto spoil = [differs, calls = 0](auto& y) mutable {
        if (differs && ++calls > 1) y[5] = std::nextafter(y[5], kInf);
      };
      const Record record = run_spoiled(a, spoil, {.beta = beta});
      REQUIRE(record.verified);
      REQUIRE(record.difference);
      CHECK(record.difference->rows == (differs ? 1 : 0));
      CHECK(record.difference->max_ulps == (differs ? 1 : 0));

      MatrixReport report;
      report.records = {record};
      report.matrix.rows = 50;
      std::ostringstream out;
      print_report(out, report, false);
      const std::string told = "two products differ in 1 of 50 rows, by at most 1 ulp, ";
      CHECK((out.str().find(told) != std::string::npos) == differs);
    }
  }
}

TEST_CASE("a GPU's table fits on a screen, and shows the rest on request", "[harness]") {
  Record record;
  record.kernel.step = 6;
  record.kernel.name = "pcsr_one_pass";
  record.choice = "tiles of 12345 with carries";
  record.verified = true;
  record.flops = 39984000;
  record.compulsory_bytes = 319904004;
  record.setup_ms = 0.552;
  record.preprocess_ms = 0.031;
  record.warm = record.cold = record.overlapped =
      Quartiles{.lower = 0.0852, .median = 0.0854, .upper = 0.0855};
  Record vendor = record;
  vendor.kernel.step = 0;
  vendor.kernel.format = "CSR";
  vendor.kernel.name = "cusparse_spmvop_default";
  vendor.choice.clear();
  vendor.warm->median = 0.131;
  MatrixReport report;
  report.matrix.source.name = "stencil2d:2000x2000";
  report.records = {record, vendor};
  report.copy_gb_per_s = 4216;
  report.baseline = Baseline{.warm = *record.warm, .cold = *record.cold};
  const auto screen = [&](bool wide) {
    std::ostringstream out;
    print_report(out, report, true, wide);
    return out.str();
  };

  std::istringstream lines(screen(false));
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 110);
  CHECK(screen(false).find("1.53") != std::string::npos);  // times as fast as cuSPARSE
  CHECK(screen(false).find("pays off") == std::string::npos);
  for (const char* column : {"setup ms", "prep ms", "quartiles", "GB/s", "pays off"}) {
    CHECK(screen(true).find(column) != std::string::npos);
  }
  CHECK(screen(true).find("3746") != std::string::npos);  // GB/s

  for (const std::size_t matrices : {1, 2}) {
    std::ostringstream out;
    print_ladder(out, std::vector<MatrixReport>(matrices, report), true);
    CHECK((out.str().find("89%  ####") != std::string::npos) == (matrices == 1));  // of copy
    CHECK((out.str().find("85.4      89%  85.4      89%") != std::string::npos) == (matrices == 2));
  }
}

TEST_CASE("the first screen says which kernel is the fastest, or that it is a tie", "[harness]") {
  const auto estimated = [](const std::string& name, double us, double low, double high) {
    Record record;
    record.kernel.name = name;
    record.verified = true;
    Estimate& estimate = record.estimate.emplace();
    estimate.us = us, estimate.low = low, estimate.high = high;
    return record;
  };
  MatrixReport report;
  report.matrix.source.name = "fem:1200";
  report.records = {estimated("apart", 5.4, 4.6, 6.3), estimated("second", 4.2, 3.6, 5.1),
                    estimated("first", 3.7, 3.1, 4.4)};
  const auto said = [&](bool gpu) {
    std::ostringstream out;
    print_fastest(out, {report}, gpu);
    return out.str();
  };
  CHECK(said(false) ==
        "Fastest on fem:1200, us: first 3.7 (3.1 to 4.4); a tie, for intervals overlap:\n"
        "  second 4.2 (3.6 to 5.1)\n");
  report.records[1].verified = false;
  CHECK(said(false) == "Fastest on fem:1200, us: first 3.7 (3.1 to 4.4)\n");
  CHECK(said(true).empty());  // no times
  report.records[2].warm = Quartiles{.lower = 0.0039, .median = 0.004, .upper = 0.0041};
  CHECK(said(true) == "Fastest on fem:1200, us: first 4.00 (3.90 to 4.10)\n");
}

// Two nonzeros in the first row, none in the second.
template <typename T>
Csr<T> two_nonzeros(T first, T second) {
  return {2, 2, {0, 2, 2}, {0, 1}, {first, second}};
}

TEST_CASE("the bound follows the rows' length and the magnitude of their terms", "[harness]") {
  const Csr<double> a = two_nonzeros(1e10, -1e10);
  const Reference r = make_reference<double>(a, 2.0, {1.0, 1.0}, 0.0, {});
  const double epsilon = std::numeric_limits<double>::epsilon();
  CHECK(r.y[0] == 0);
  CHECK(r.bound[0] == Approx((2 + 8) * epsilon * 2 * 2e10));
  CHECK(r.y[1] == 0);
  CHECK(r.bound[1] == 0);
  CHECK(verify<double>({1e-5, 0}, r).ok);
  CHECK_FALSE(verify<double>({1e-4, 0}, r).ok);
  CHECK_FALSE(verify<double>({0, 1e-300}, r).ok);  // an empty row has nothing to round
  CHECK_FALSE(verify<double>({0}, r).ok);          // too short
}

TEST_CASE("a row may be off by the smallest number for each of its products", "[harness]") {
  const Csr<float> a = two_nonzeros(1e-20f, 1e-20f);
  const Reference r = make_reference<float>(a, 1.0f, {1e-25f, 1e-25f}, 0.0f, {});
  const float smallest = std::numeric_limits<float>::denorm_min();
  CHECK(verify<float>({2 * smallest, 0}, r).ok);
  CHECK(verify<float>({smallest, 0}, r).ok);
  CHECK_FALSE(verify<float>({4 * smallest, 0}, r).ok);
  CHECK_FALSE(verify<float>({2 * smallest, smallest}, r).ok);  // an empty row has no products
}

TEST_CASE("NaN and infinity in the matrix are expected in y", "[harness]") {
  const Csr<double> a{3, 1, {0, 1, 2, 3}, {0, 0, 0}, {kNaN, kInf, 1}};
  const Reference r = make_reference<double>(a, 1.0, {2.0}, 0.0, {});
  CHECK(verify<double>({kNaN, kInf, 2}, r).ok);
  CHECK_FALSE(verify<double>({0, kInf, 2}, r).ok);
  CHECK_FALSE(verify<double>({kNaN, -kInf, 2}, r).ok);
  CHECK_FALSE(verify<double>({kNaN, kInf, kNaN}, r).ok);
}

TEST_CASE("x is signed, seeded, not constant, and the same in both precisions", "[harness]") {
  const auto x = test_vector<double>(1000, 1);
  const auto single = test_vector<float>(1000, 1);
  int negative = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    CHECK(std::fabs(x[i]) >= 0.25);
    CHECK(std::fabs(x[i]) < 1);
    CHECK(x[i] == static_cast<double>(single[i]));
    if (i) CHECK(x[i] != x[i - 1]);
    negative += x[i] < 0;
  }
  CHECK(negative > 400);
  CHECK(negative < 600);
  CHECK(x == test_vector<double>(1000, 1));
  CHECK(x != test_vector<double>(1000, 2));
}

TEST_CASE("a kernel may refuse a matrix, and a device error is a failure", "[harness]") {
  const Matrix<double> a = load_matrix<double>("diagonal:4");
  Record record = run(a, [](const Problem<double>&) -> std::unique_ptr<Spmv<double>> {
    throw Unsuitable("too much padding");
  });
  CHECK(record.unsuitable);
  CHECK_FALSE(record.verified);
  CHECK(record.failure == "too much padding");

  record = run(a, [](const Problem<double>&) -> std::unique_ptr<Spmv<double>> {
    throw device::DeviceError("no memory");
  });
  CHECK_FALSE(record.unsuitable);
  CHECK_FALSE(record.verified);
}

TEST_CASE("kernels are found by pattern, in the order of the steps", "[harness]") {
  int last = 0;
  for (const Kernel& kernel : kernels()) {
    const int step = kernel.info.step ? kernel.info.step : 1000;
    CHECK(step >= last);
    last = step;
    CHECK_FALSE(kernel.info.source.empty());
    CHECK_FALSE(kernel.info.idea.empty());
  }
  CHECK(find_kernels("csr_scalar").size() == 1);
  CHECK(find_kernels("csr_*,csr_scalar").size() == find_kernels("csr_*").size());
  CHECK_THROWS_WITH(find_kernels("csr_*,csr_scaler"),
                    Catch::Matchers::StartsWith("--kernel 'csr_scaler': no kernel has this name; "
                                                "near: csr_scalar, csr_vector, "));
}

TEST_CASE("quartiles", "[harness]") {
  const Quartiles q = quartiles({5, 1, 4, 2, 3});
  CHECK(q.lower == 2);
  CHECK(q.median == 3);
  CHECK(q.upper == 4);
  CHECK(q.samples == 5);
  CHECK(quartiles({7}).median == 7);
  CHECK(quartiles({}).samples == 0);
}

TEST_CASE("a spread that is small enough ends a measurement", "[harness]") {
  std::vector<double> steady(kFewestSamples, 2.0);
  steady.back() = 9;  // one outlier moves no quartile
  CHECK(stop_by_spread(steady, 0.01));
  CHECK_FALSE(stop_by_spread(steady, 0));
  CHECK_FALSE(stop_by_spread({steady.begin(), steady.end() - 1}, 0.01));
  std::vector<double> noisy;
  for (int i = 0; i < 2 * kFewestSamples; ++i) noisy.push_back(i % 2 ? 1.0 : 1.1);
  CHECK_FALSE(stop_by_spread(noisy, 0.05));
  CHECK(stop_by_spread(noisy, 0.1));

  const device::Stream stream;
  device::Buffer<char> buffer("buffer", 1 << 16);
  const Launch launch = [&](cudaStream_t s) {
    device::check(cudaMemsetAsync(buffer.data(), 1, buffer.bytes(), s), "filling");
  };
  CHECK(time_warm(stream, launch).samples == 25);
  CHECK(time_warm(stream, launch, kWarmUpLaunches, 1e9).samples == kFewestSamples);
  CHECK(time_cold(stream, launch, 1e9).samples == kFewestSamples);
}

TEST_CASE("the id of a run is when it began and its process", "[harness]") {
  unsetenv("SPMV_RUN");
  std::string program = "spmv";
  char* argv[] = {program.data(), nullptr};
  const std::string id = describe_environment(1, argv).run;
  const std::string example = "2026-01-02T03:04:05.678Z-0000001";
  CHECK(id.size() == example.size());
  CHECK(id.ends_with(fmt::format("Z-{:07}", getpid())));
  CHECK(id > example);
}

TEST_CASE("records are lines of JSON, and only of what was verified", "[harness]") {
  const test::ScratchDirectory scratch;
  const std::string path = scratch / "records.jsonl";
  MatrixReport report;
  report.matrix = {{"tiny", MatrixSource::Origin::kFile, "/some/where/tiny.mtx"}, 4, 4, 4, "f64"};
  Record good;
  good.kernel.name = "good";
  good.verified = true;
  good.traffic = {{{.requests = 10,
                    .lanes = 320,
                    .bytes_used = 2560,
                    .sectors = 80,
                    .ideal_sectors = 80,
                    .addresses = 300},
                   "x",
                   "global",
                   "load"}};
  good.difference = {3, 17, 0.25};
  good.setup_ms = 0.123456789;
  good.compulsory_bytes = 1e9;
  good.warm = {1, 2.5, 3, 25};
  Record bad;
  bad.kernel.name = "bad";
  bad.failure = "row 3 is wrong";
  report.records = {good, bad};
  Environment environment;
  environment.backend = "cpu";
  environment.run = "R";
  append_records(path, report, environment);
  append_records(path, report, environment);
  std::istringstream file(test::read_bytes(path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  // Run, matrix and kernel are described once, however often something is appended.
  REQUIRE(lines.size() == 7);
  CHECK(lines[0].starts_with(R"({"run":{"id":"R","backend":"cpu",)"));
  CHECK(lines[1] ==
        R"({"matrix":{"run":"R","name":"tiny","source":"file","detail":"tiny.mtx","rows":4,)"
        R"("cols":4,"nnz":4}})");
  CHECK(lines[2].starts_with(R"({"kernel":{"run":"R","name":"good",)"));
  CHECK(
      lines[4] ==
      R"({"run":"R","matrix":"tiny","precision":"f64","kernel":"bad","failed":"row 3 is wrong"})");
  for (const std::string& line : {lines[3], lines[5]}) {
    CAPTURE(line);
    CHECK(line.starts_with(
        R"({"run":"R","matrix":"tiny","precision":"f64","kernel":"good","verified":true,)"));
    for (const char* part :
         {R"("setup_ms":0.12346,)", R"("warm_ms":[1,2.5,3,25],)",
          R"("compulsory_bytes":1000000000,)", R"("sectors":80,)", R"("addresses":300,)",
          R"("difference":{"rows":3,"max_ulps":17,"max_of_bound":0.25})"}) {
      CHECK(line.find(part) != std::string::npos);
    }
  }
  CHECK_THROWS_AS(append_records("/nonexistent/x.jsonl", report, environment), InputError);
}

TEST_CASE("a turn is one process's at a time", "[harness]") {
  const test::ScratchDirectory scratch;
  const std::string file = scratch / "turn";
  Turn first(file);
  std::atomic<bool> has_turn = false;
  std::thread other([&] {
    const Turn second(file);  // another open file, as in another process
    has_turn = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK_FALSE(has_turn);
  first.end();
  other.join();
  CHECK(has_turn);
  const Turn nobody_to_wait_for("");
  CHECK_THROWS_AS(Turn("/nonexistent/turn"), InputError);
}
