// Is a kernel right and safe, on every matrix and in every order in which its threads may run, and
// what does it ask of memory?
//
// The kernels run in another process (runner.cpp). This one has the matrices, the references and
// the verdict. It reads a JSON object from its standard input,
//
//   {"runner": [7, 8], "kernels": ["csr_vector"...], "also": ["csr_vector_4"...],
//    "seed": 1, "matrices": ["stencil2d:20x20"...], "seconds": 120,
//    "targets": [["csr_vector", "fem:1000,block=3"]...]}
//
// ("runner": the descriptors of the pipes to it and from it; who started it sees how it ends.
// "also": kernels that are tried on few of the matrices, other instances of the same source.
// "finite_x": true where the format stores zeros of its own, whose products with infinity are NaN.)
//
// and writes another one to its standard output: the members of Report, or {"failure": "..."},
// which is not the kernels' fault.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "coursework/drawing.hpp"
#include "coursework/protocol.hpp"
#include "harness/verify.hpp"
#include "sparse/convert.hpp"
#include "sparse/generators.hpp"
#include "sparse/rng.hpp"
#include "tests/kernel_matrices.hpp"

namespace spmv::coursework {
namespace {

// What is only reported may be overlooked: then the product is still of use.
enum class Checks { kAll, kFew };
// Formats that pad are tried where they store no more than so many entries for each nonzero.
constexpr double kPaddingLimit = 10;
// Wrong products of a kernel that are compared with known mistakes.
constexpr int kMostLooks = 12;
// Matrices with more rows are multiplied with once: larger ones by a kernel that has been right and
// safe on all smaller ones, the largest by each.
constexpr Index kMostRowsTwice = 100;
constexpr Index kMostRowsInOrders = 10'000;
// Lanes that advance access by access switch at each of them.
constexpr int kLockstep = 3;
constexpr Index kMostRowsInLockstep = 300;
constexpr int kMostNonzerosInLockstep = 3000;
constexpr int kRandomMatrices = 40;
constexpr std::size_t kOneOf = 8;               // matrices on which kernels of "also" are tried
constexpr std::chrono::seconds kOfWallTime{5};  // per second that is asked for
// Its rows, its columns and its nonzeros are more than 16 bits count; all warps have equal work.
const std::string kLargest = "66000 x 66000, two diagonals";
// One in which no row uses the last column: x is infinite there.
const std::string kZeros = "explicit zeros, and x infinite where no row reads it";

struct Report {
  int tried = 0, right = 0;  // matrices, over all kernels; without those that a format refuses
  int tried_fixed = 0, right_fixed = 0;  // of these, those whose row lengths no seed changes
  // "matrix", "kernel", "right", "case" and "what", where something was found. Its "kind": "result"
  // (wrong in every order), "order" (right in one order of blocks, warps and lanes, wrong in
  // another) or "error" (memory, races, lanes that never arrive), which is no matter of "right" if
  // the product is right when races are overlooked ("shown": what is wrong in lockstep; "if_wrong":
  // where to look). The first of a kernel that is not right comes with "drawing".
  std::vector<Json> found;
  std::string looks;              // what all wrong products of a kernel look like
  std::set<std::string> remarks;  // on what CUDA does not promise, which costs nothing
  std::vector<Json> counted;      // for each target on which the kernel is right, and kLargest
  // Whether and on which matrix the runner was left, and why; "": its pipe was closed. "forged":
  // what came through the pipe was no answer.
  bool left = false, forged = false;
  std::string why, on;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Report, tried, right, tried_fixed, right_fixed, found, looks,
                                   remarks, counted, left, forged, why, on)

void say(const Json& answer) {
  std::cout << answer.dump(-1, ' ', true, Json::error_handler_t::replace) << '\n';
}

// One way to multiply.
struct Case {
  bool single = false;  // precision
  bool scaled = false;  // y = 0.7 A x - 0.3 y; else y = A x
  int order = 0;        // 0 forward, 1 reverse, 2 random (streams, too), 3 in lockstep
  bool again = false;   // the second of two products in a row
  std::uint64_t seed = 1;

  std::string describe() const {
    constexpr const char* kOrders[] = {"", ", blocks, warps and lanes in reverse order",
                                       ", blocks, warps, lanes and streams in random order",
                                       ", the lanes of a warp in lockstep"};
    return fmt::format("{}, {}{}{}", single ? "f32" : "f64",
                       scaled ? "y = 0.7 A x - 0.3 y" : "y = A x", kOrders[order],
                       again ? ", the second of two products in a row" : "");
  }
};

// What a product is made of, and what it has to be.
struct Vectors {
  double alpha, beta;
  std::vector<double> x, y0;
  Reference reference;
};

// The products with a matrix.
class Problems {
 public:
  explicit Problems(Coo<double> triplets, bool infinite_end = false)
      : triplets_(std::move(triplets)), infinite_end_(infinite_end) {}

  const Coo<double>& triplets() const { return triplets_; }
  const Vectors& of(const Case& c) {
    std::optional<Vectors>& vectors = vectors_[c.single][c.scaled];
    if (!vectors) vectors = c.single ? make<float>(c.scaled) : make<double>(c.scaled);
    return *vectors;
  }

 private:
  template <typename T>
  Vectors make(bool scaled) const {
    // Not exact, so that a kernel that keeps one in a float is wrong.
    const T alpha = scaled ? static_cast<T>(0.7) : T{1};
    const T beta = scaled ? static_cast<T>(-0.3) : T{0};
    Csr<T> a = to_csr(Coo<T>{triplets_.rows,
                             triplets_.cols,
                             triplets_.row_indices,
                             triplets_.column_indices,
                             {triplets_.values.begin(), triplets_.values.end()}});
    std::vector<T> x = test_vector<T>(a.cols, 1);
    const bool unused = infinite_end_ && std::count(a.column_indices.begin(),
                                                    a.column_indices.end(), a.cols - 1) == 0;
    if (unused && a.cols > 0) x.back() = std::numeric_limits<T>::infinity();
    std::vector<T> y0 = test_vector<T>(a.rows, 2);
    // Where beta is 0, y may hold anything: NaN, which shows a read, first of all, and numbers, so
    // that NaN does not tell a kernel that it is judged; infinity, which shows a read as well.
    using Limits = std::numeric_limits<T>;
    for (Index row = 0; !scaled && row < a.rows; ++row) {
      if (row == 0 || y0[row] < T(0.5)) {
        y0[row] = row % 4 == 3 ? Limits::infinity() : Limits::quiet_NaN();
      }
    }
    return {alpha,
            beta,
            {x.begin(), x.end()},
            {y0.begin(), y0.end()},
            make_reference(a, alpha, x, beta, y0)};
  }

  Coo<double> triplets_;
  bool infinite_end_;
  std::array<std::array<std::optional<Vectors>, 2>, 2> vectors_;  // by precision, scaled
};

struct Outcome {
  enum class Kind { kRight, kRefused, kWrong, kFailed } kind = Kind::kRight;
  std::string what;
  std::vector<double> y;
  Reply reply;
  bool right() const { return kind == Kind::kRight; }
};

struct Options {
  std::array<int, 2> runner{};
  std::vector<std::string> kernels, also, matrices;
  std::vector<std::pair<std::string, std::string>> targets;
  std::uint64_t seed = 1;
  int seconds = 120;
  bool finite_x = false;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Options, runner, kernels, also, matrices, targets,
                                                seed, seconds, finite_x)

// The runner closed its pipe (the text is empty), takes too long, or lies.
class RunnerEnded : public std::runtime_error {
 public:
  explicit RunnerEnded(const std::string& why = "", bool forged = false)
      : std::runtime_error(why), is_forged(forged) {}
  bool is_forged;
};

// The other end of the runner's pipes: a process that may end, hang or lie. Its processor time is
// limited by who started it. A kernel cannot sleep (confine.cpp), but it can wait for a lock for
// ever: that ends by wall time, which depends on what else the machine does, so generously.
class Runner {
 public:
  Runner(std::array<int, 2> pipes, int seconds)
      : requests_(pipes[0]), answers_(pipes[1]), end_(Clock::now() + kOfWallTime * seconds) {}

  // Whether it has begun to work.
  bool has_started() {
    try {
      return receive_frame(answers_, kHello.size(), end_) == kHello;
    } catch (const std::runtime_error&) {
      return false;
    }
  }
  // Neither waits for an answer. Throws RunnerEnded.
  void send(const std::string& frame) const {
    if (!send_frame(requests_, frame)) throw RunnerEnded();
  }
  // The answer to the product that was asked for last, and its y, of `y_bytes` bytes, if there is
  // one. Throws RunnerEnded.
  std::pair<Reply, std::vector<double>> receive(std::size_t y_bytes) {
    try {
      Reply reply = read_reply(frame(kMostAnswer));
      const std::string y = reply.answer == "done" ? frame(y_bytes) : "";
      if (reply.answer == "done" && y.size() != y_bytes) {
        throw ProtocolError("y has another size");
      }
      return {std::move(reply), elements<double>(y)};
    } catch (const ProtocolError& error) {
      throw RunnerEnded(std::string("its answer is none: ") + error.what(), true);
    } catch (const TimedOut&) {
      throw RunnerEnded(
          "it did not end in time: a loop that no thread leaves, or far too much work");
    }
  }

 private:
  std::string frame(std::size_t limit) {
    if (auto bytes = receive_frame(answers_, limit, end_)) return *std::move(bytes);
    throw RunnerEnded();
  }

  int requests_, answers_;
  Clock::time_point end_;
};

Coo<double> largest() {
  constexpr Index kRows = 66'000;
  Coo<double> triplets{kRows, kRows, {}, {}, {}};
  for (Index row = 0; row < kRows; ++row) {
    for (const Index column : {row - 1, row}) {
      if (column >= 0) triplets.add(row, column, 1.0 / (1 + (row + column) % 7));
    }
  }
  return triplets;
}

// A row with more nonzeros than rows have in other matrices, among short ones.
Coo<double> longest_row(std::uint64_t seed) {
  constexpr Index kColumns = 13'000;
  Coo<double> triplets{5, kColumns, {}, {}, {}};
  for (Index row = 0; row < 5; ++row) {
    for (Index column = row; column < (row == 3 ? kColumns - 500 : 7); ++column) {
      triplets.add(row, column, signed_unit_value<double>(mix64(seed + column)));
    }
  }
  return triplets;
}

Coo<double> explicit_zeros(std::uint64_t seed) {
  Coo<double> triplets{150, 90, {}, {}, {}};
  for (Index row = 0; row < triplets.rows; ++row) {
    for (Index column = row % 7; column + 1 < triplets.cols; column += 1 + row % 11) {
      const auto bits = mix64(seed + 1000 * row + column);
      triplets.add(row, column, bits % 4 == 0 ? 0 : signed_unit_value<double>(bits));
    }
  }
  return triplets;
}

// The kernels of one runner.
class Judge {
 public:
  Judge(Runner& runner, bool finite_x) : runner_(runner), finite_x_(finite_x) {}

  void check(const std::string& kernel, const std::vector<test::NamedMatrix>& matrices) {
    kernel_ = kernel;
    drawn_ = false;
    flawless_ = true;
    looked_ = 0;
    looks_.clear();
    ++checked_;
    expect(matrices_ = static_cast<int>(matrices.size()));
    for (std::size_t m = 0; m < matrices.size(); ++m) {
      take(matrices[m].name, matrices[m].triplets);
      Json line{{"matrix", trying_}, {"kernel", kernel}};
      line.update(check_matrix(m + checked_ - 1));
      const bool is_fixed = !trying_.starts_with("random "), refused = line.contains("refused");
      const bool right = line.value("right", false);
      report.tried -= refused;
      report.tried_fixed -= refused || !is_fixed;
      report.right += right;
      report.right_fixed += right && is_fixed;
      if (!line.contains("kind")) continue;
      flawless_ = false;
      report.found.push_back(std::move(line));
    }
    if (!looks_.empty() && report.looks.empty()) report.looks = looks_.front();
  }

  // Counts in double precision, in an order in which the product is right.
  void count(const std::string& kernel, const std::string& name) {
    kernel_ = kernel;
    take(name, name == kLargest ? largest() : to_coo(generate<double>(name)));
    for (int order = 0; order < kLockstep; ++order) {
      const Outcome outcome = multiply({false, false, order}, Checks::kFew, true);
      if (!outcome.right()) continue;
      Json one = outcome.reply;
      one.update({{"kernel", kernel}, {"matrix", name}, {"nnz", problems_.triplets().nnz()}});
      report.counted.push_back(std::move(one));
      return;
    }
  }

  // When the runner has been left, of so many kernels: what was not tried is not right.
  void leave(const RunnerEnded& why, std::size_t kernels) {
    expect(matrices_ * static_cast<int>(kernels - checked_));
    report.left = true;
    report.why = why.what();
    report.on = trying_;
    report.forged = why.is_forged;
  }

  Report report;

 private:
  void expect(int matrices) {
    report.tried += matrices;
    report.tried_fixed += matrices;
  }

  void send(const Json& request) {
    std::string bytes;
    Json::to_msgpack(request, bytes);
    runner_.send(bytes);
  }

  void take(const std::string& name, const Coo<double>& triplets) {
    trying_ = name;
    problems_ = Problems(triplets, name == kZeros && !finite_x_);
    send({{"rows", triplets.rows},
          {"cols", triplets.cols},
          {"row_indices", bytes_of(triplets.row_indices)},
          {"column_indices", bytes_of(triplets.column_indices)},
          {"values", bytes_of(triplets.values)}});
  }

  // One product with the matrix that was taken last.
  Outcome multiply(const Case& c, Checks checked, bool counted = false) {
    return multiply(c, checked, counted, problems_.of(c));
  }
  Outcome multiply(const Case& c, Checks checked, bool counted, const Vectors& v) {
    send(Product{kernel_, counted, c.single, v.alpha, v.beta, c.order, c.seed, c.again,
                 checked == Checks::kAll, kPaddingLimit, bytes_of(v.x), bytes_of(v.y0)});

    Outcome outcome;
    std::tie(outcome.reply, outcome.y) = runner_.receive(v.y0.size() * sizeof(double));
    for (const std::string& remark : outcome.reply.remarks) {
      if (report.remarks.size() < kMostRemarks) report.remarks.insert(remark);
    }
    const std::string& answer = outcome.reply.answer;
    if (answer != "done") {
      outcome.kind = answer == "refused" ? Outcome::Kind::kRefused : Outcome::Kind::kFailed;
      outcome.what = outcome.reply.text;
    } else {
      const Verdict verdict = verify(outcome.y, v.reference);
      if (!verdict.ok) {
        outcome.kind = Outcome::Kind::kWrong;
        outcome.what = verdict.describe();
      }
    }
    return outcome;
  }

  static std::vector<bool> wrong_rows(const Vectors& v, const std::vector<double>& y) {
    std::vector<bool> wrong(y.size());
    for (std::size_t row = 0; row < y.size(); ++row) {
      wrong[row] = !(std::abs(y[row] - v.reference.y[row]) <= v.reference.bound[row]);
    }
    return wrong;
  }

  Json check_matrix(std::size_t number) {
    for (Case c : cases(number)) {
      Outcome outcome = multiply(c, Checks::kAll);
      if (outcome.kind == Outcome::Kind::kRefused) return {{"refused", true}};
      if (!outcome.right() && c.again) {
        Case first = c;
        first.again = false;
        Outcome of_first = multiply(first, Checks::kAll);
        if (of_first.right()) return overwritten(c, outcome);
        c = first;
        outcome = std::move(of_first);
      }
      if (!outcome.right()) return look_into(c, outcome);
    }
    return {{"right", true}};
  }

  // The products with a matrix: one forwards and one, of the other precision and with the other
  // alpha and beta, in another order. Precision, alpha and beta, and the other order take turns
  // from matrix to matrix, so that each pair of them comes up on a quarter of the matrices or more.
  // Small matrices are tried in lockstep, too. A kernel that has been right and safe on all smaller
  // ones is tried forwards and, by turns, in one of the other ways; on large ones, in one way.
  std::vector<Case> cases(std::size_t number) const {
    const Index rows = problems_.triplets().rows;
    if (rows > kMostRowsInOrders) return {Case{}};
    const bool single = number % 2 != 0, scaled = number / 2 % 2 != 0;
    // (Twice the time: for some small ones, and those on which blocks compete for work.)
    const bool again = number % 5 == 0 || rows > 2'500;
    const int order = number / 4 % 2 != 0 ? 2 : 1;
    // (An odd seed takes of streams that are late what was asked for last.)
    const std::uint64_t seed = order == 2 ? 1 + number / 8 : 1;
    const bool turn = number / 8 % 2 != 0, in_lockstep = orders() > kLockstep;
    if (flawless_ && rows > kMostRowsTwice) {
      return {{single, scaled, turn ? order : 0, again, turn ? seed : 1}};
    }
    std::vector<Case> found{{single, scaled, 0, again}};
    if (!flawless_ || !in_lockstep || !turn)
      found.push_back({!single, !scaled, order, false, seed});
    if (in_lockstep && (!flawless_ || turn)) found.push_back({single, !scaled, kLockstep});
    return found;
  }

  // In which a product with the matrix may be made.
  int orders() const {
    const Coo<double>& triplets = problems_.triplets();
    const bool small =
        triplets.rows <= kMostRowsInLockstep && triplets.nnz() <= kMostNonzerosInLockstep;
    return small ? kLockstep + 1 : kLockstep;
  }

  static Json overwritten(const Case& c, const Outcome& found) {
    return {{"right", false},
            {"kind", "result"},
            {"case", c.describe()},
            {"what",
             "The first product is right, the second on the same arrays is not: the kernel "
             "overwrites its input, or leaves what it keeps between products in another "
             "state.\n" +
                 found.what}};
  }

  // What to say of a matrix on which the case `c` came out as `found`.
  Json look_into(const Case& c, const Outcome& found) {
    const bool failed = found.kind == Outcome::Kind::kFailed;
    // A product for which threads race in global memory is wrong, whatever came out; one for which
    // they race in shared memory, where it is wrong in lockstep, as on a GPU.
    const bool races = failed && found.what.find("race: ") != std::string::npos;
    // In lockstep, too, what comes out wrong does so on a GPU.
    bool lost =
        failed ? races && found.what.find("shared '") == std::string::npos : c.order == kLockstep;
    std::string shown;
    if (races && orders() > kLockstep) {
      const Case together{c.single, c.scaled, kLockstep};
      const Outcome outcome = multiply(together, Checks::kFew);
      if (outcome.kind == Outcome::Kind::kWrong) {
        lost = true;
        shown = together.describe() + ": " + outcome.what;
      }
    }
    const bool right = !lost && right_in_some_order(c, failed);
    Json line{{"right", right},
              {"kind", failed  ? "error"
                       : right ? "order"
                               : "result"},
              {"case", c.describe()},
              {"what", found.what}};
    if (!shown.empty()) line["shown"] = shown;
    line["if_wrong"] = found.reply.if_wrong;
    // In one precision or with one alpha a kernel may be right in some order, and not in another.
    if (!failed && !right && right_in_some_order(c)) line["kind"] = "order";
    if (!right && !failed) look_at(c);
    if (!right && !failed && !std::exchange(drawn_, true)) {
      line["drawing"] = drawing_of(c);
    }
    return line;
  }

  // What a product that gives NaN does with y, which holds NaN where beta is 0: with 1 in its
  // place.
  std::string look_at_beta(const Case& c) {
    Vectors v = problems_.of(c);
    v.y0.assign(v.y0.size(), 1);
    const Outcome outcome = multiply(c, Checks::kFew, false, v);
    if (outcome.right()) {
      return "y is read although beta is 0: what it holds does not count then, and may be NaN, of "
             "which 0 times is NaN";
    }
    const std::vector<double>& y = outcome.y;
    for (std::size_t row = 0; row < y.size(); ++row) {
      const double wanted = v.reference.y[row];
      const double error = std::min(std::abs(y[row] - wanted), std::abs(y[row] - (wanted + 1)));
      if (!(error <= 4 * v.reference.bound[row] + 1e-6 * (1 + std::abs(wanted)))) return "";
    }
    return y.empty() ? ""
                     : "the sum is added to what y held, which counts only where beta is not 0: "
                       "store it, or set y first";
  }

  // Keeps of what wrong products look like what this one does, too.
  void look_at(const Case& c) {
    if (looked_ == kMostLooks) return;
    const Vectors& v = problems_.of(c);
    const std::vector<double> y = multiply(c, Checks::kFew).y;
    std::vector<std::string> found;
    if (!y.empty()) {
      found = diagnose({problems_.triplets(), v.x, v.y0, v.alpha, v.beta, v.reference.y,
                        v.reference.bound, y, wrong_rows(v, y), c.single});
    }
    if (v.beta == 0 && std::any_of(y.begin(), y.end(), [](double e) { return std::isnan(e); })) {
      const std::string look = look_at_beta(c);
      if (!look.empty()) found.insert(found.begin(), look);
    }
    if (looked_++ == 0) looks_ = found;
    std::erase_if(looks_, [&](const std::string& look) {
      return std::find(found.begin(), found.end(), look) == found.end();
    });
  }

  // Whether the product of the case is right in one of the orders, races overlooked.
  bool right_in_some_order(Case c) {
    for (c.order = 0; c.order < orders(); ++c.order) {
      const Outcome outcome = multiply(c, Checks::kFew);
      if (outcome.right()) return true;
      if (outcome.kind == Outcome::Kind::kFailed) return false;  // more than a race
    }
    return false;
  }

  // Whether that holds in both precisions, with and without alpha and beta. `failed`: the case was
  // reported, and it is not known yet whether the product is right all the same.
  bool right_in_some_order(const Case& c, bool failed) {
    if (failed && multiply(c, Checks::kFew).kind == Outcome::Kind::kFailed) {
      return false;
    }
    for (const bool single : {c.single, !c.single}) {
      for (const bool scaled : {c.scaled, !c.scaled}) {
        if (!right_in_some_order(Case{single, scaled, 0, false, c.seed})) return false;
      }
    }
    return true;
  }

  // The smallest matrix found on which `c` goes wrong as it does on the one that was taken last.
  std::string drawing_of(const Case& c) {
    const std::string name = trying_;
    const Coo<double> small = shrink(problems_.triplets(), [&](const Coo<double>& candidate) {
      take(name, candidate);
      return multiply(c, Checks::kAll).kind == Outcome::Kind::kWrong;
    });
    take(name, small);
    const std::vector<double> y = multiply(c, Checks::kAll).y;
    const Vectors& v = problems_.of(c);
    return fmt::format("{} x {} with {} nonzero{}, {}\n{}", small.rows, small.cols, small.nnz(),
                       small.nnz() == 1 ? "" : "s", c.describe(),
                       y.empty() ? "" : draw(small, v.x, v.y0, v.reference.y, y, wrong_rows(v, y)));
  }

  Runner& runner_;
  bool finite_x_;
  std::string kernel_, trying_;  // the kernel, and the matrix's name
  Problems problems_{{}};
  std::size_t checked_ = 0;  // kernels
  int matrices_ = 0;         // on which the last of them is tried
  bool drawn_ = false;
  bool flawless_ = true;            // the kernel, on the matrices so far
  std::vector<std::string> looks_;  // of all wrong products of the kernel that were looked at
  int looked_ = 0;
};

// Those with nonzeros first, small ones before large ones: the first failure is easy to look at.
std::vector<test::NamedMatrix> matrices_of(const Options& options) {
  const std::uint64_t seed = options.seed * 1'000'003;
  std::vector<test::NamedMatrix> matrices = test::adversarial_matrices(seed);
  for (test::NamedMatrix& matrix : test::random_matrices(kRandomMatrices, seed)) {
    matrices.push_back(std::move(matrix));
  }
  for (const std::string& name : options.matrices) {
    matrices.push_back({name, to_coo(generate<double>(name))});
  }
  matrices.push_back({"a row of 12500", longest_row(seed)});
  matrices.push_back({kZeros, explicit_zeros(seed)});
  const auto size = [](const test::NamedMatrix& m) {
    return std::pair(m.triplets.nnz() == 0,
                     std::int64_t{m.triplets.rows} + m.triplets.cols + m.triplets.nnz());
  };
  std::stable_sort(matrices.begin(), matrices.end(),
                   [&](const auto& a, const auto& b) { return size(a) < size(b); });
  matrices.push_back({kLargest, largest()});
  return matrices;
}

void run() {
  std::signal(SIGPIPE, SIG_IGN);
  const auto options = Json::parse(std::cin).get<Options>();
  std::vector<test::NamedMatrix> matrices = matrices_of(options);
  Runner runner(options.runner, options.seconds);
  if (!runner.has_started()) {
    return say({{"failure", "it did not start"}});
  }
  Judge judge(runner, options.finite_x);
  try {
    for (const std::string& kernel : options.kernels) {
      judge.check(kernel, matrices);
      if (&kernel == &options.kernels.front()) matrices.pop_back();  // once is enough
    }
    std::vector<test::NamedMatrix> few;
    for (std::size_t m = 0; m < matrices.size(); ++m) {
      if (m % kOneOf == options.seed % kOneOf) few.push_back(matrices[m]);
    }
    for (const std::string& kernel : options.also) judge.check(kernel, few);
    for (const auto& [kernel, matrix] : options.targets) judge.count(kernel, matrix);
    judge.count(options.kernels.front(), kLargest);
  } catch (const RunnerEnded& why) {
    judge.leave(why, options.kernels.size() + options.also.size());
  }
  say(judge.report);
}

}  // namespace
}  // namespace spmv::coursework

int main() {
  try {
    spmv::coursework::run();
  } catch (const std::exception& error) {
    std::cerr << "judge: " << error.what() << '\n';
    return 2;
  }
}
