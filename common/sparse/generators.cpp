#include "sparse/generators.hpp"

#include <algorithm>
#include <exception>
#include <limits>
#include <numeric>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "sparse/convert.hpp"
#include "sparse/makers.hpp"
#include "sparse/rng.hpp"
#include "sparse/specification.hpp"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace spmv {
namespace {

constexpr double kAny = kMaxNonzeros;
constexpr Key kSeed{"seed", 1, 0, kAny, "another seed, another matrix of the same kind"};
constexpr Key kRowStddev{
    "stddev", kDerived, 0, 46340, "of the row length, as near as the other keys allow",
    nullptr,  false};
constexpr Key kExactNnz{"nnz", kDerived, 0, kAny, "exactly this many (8 per row)"};
constexpr Key kShortestRow{"min_row", kDerived, 0, kAny,
                           "length of the shortest row that is not empty (1)"};
constexpr Key kLongestRow{"max_row", kDerived, 0, kAny,
                          "length of the longest row (100 x the mean)"};
constexpr Key recipe(double version) {
  return {"recipe", version, version, version,
          "version of the generator: another version, another matrix"};
}
constexpr Key kDof{"dof", 1, 1, 64,
                   "unknowns at a grid point; every coupling is a dense dof x dof block"};
constexpr Key kBoundary{"boundary",
                        0,
                        0,
                        3,
                        "drop, wrap, clamp or constant: what becomes of couplings past the edge",
                        kBoundaryWords};

constexpr Key rate(const char* name, double fallback, const char* meaning) {
  return {name, fallback, 1e-6, 1e6, meaning, nullptr, false};
}

}  // namespace

const std::vector<Generator>& all_generators() {
  static const std::vector<Generator> generators{
      {"stencil2d",
       "NXxNY",
       "2-D grid, every point coupled to its neighbours",
       {{"points", 5, 0, 99, "5 (star) or 9 (box)"}, kDof, kBoundary, kSeed},
       make_stencil2d},
      {"stencil3d",
       "NXxNYxNZ",
       "3-D grid, every point coupled to its neighbours",
       {{"points", 7, 0, 99, "7 (star) or 27 (box)"}, kDof, kBoundary, kSeed},
       make_stencil3d},
      {"lattice",
       "NXxNYxNZxNT",
       "lattice QCD: periodic 4-D grid, 12 rows per site, 39 nonzeros per row",
       {kSeed},
       make_lattice},
      {"triangle",
       "SIDE",
       "Markov chain on the states x + y < SIDE, up to 4 nonzeros per row",
       {kSeed},
       make_triangle,
       false},
      {"random",
       "ROWSxCOLS",
       "uniformly random columns, all rows of the same length",
       {{"nnz_per_row", kDerived, 0, kAny, "at most COLS (16)"}, kSeed},
       make_random},
      {"banded",
       "N",
       "a band around the diagonal",
       {{"bandwidth", 2, 0, kAny, "largest |row - column|"},
        {"nnz_per_row", kDerived, 1, kAny,
         "that many drawn from the band, with the diagonal (all)"},
        kSeed},
       make_banded},
      {"powerlaw",
       "ROWSxCOLS",
       "a few huge rows and columns, some empty rows: graphs, circuits, LP",
       {kExactNnz,
        kShortestRow,
        kLongestRow,
        kRowStddev,
        {"empty", 5, 0, 100, "percentage of rows that are empty"},
        {"local", 0, 0, 100, "percentage of nonzeros near the diagonal"},
        {"bandwidth", 64, 0, kAny, "how near"},
        {"column_skew", 2, 1, 8, "how steeply the popularity of columns falls; 1: all alike"},
        {"diagonal", 0, 0, 1, "1: the diagonal is in every row that is not empty"},
        kSeed},
       make_powerlaw},
      {"rmat",
       "",
       "R-MAT graph of 2^scale vertices with Graph500 probabilities, duplicates merged",
       {{"scale", 16, 0, 30, "binary logarithm of the number of rows"},
        {"edge_factor", 16, 0, 4096, "edges drawn per row"},
        {"symmetric", 0, 0, 1, "1: every edge both ways"},
        {"permute", kDerived, 0, 1, "1: vertices numbered at random, as Graph500 does (0)"},
        kSeed},
       make_rmat,
       false},
      {"fem",
       "NODES",
       "finite elements: dense blocks over a mesh, 15 couplings per node, symmetric structure",
       {{"block", 3, 1, 64, "unknowns per node"}, kSeed},
       make_fem},
      {"mesh",
       "ROWS",
       "nodes in space, coupled with those near them: thousands of diagonals",
       {{"block", 1, 1, 64, "unknowns per node"},
        {"nnz", kDerived, 0, kAny, "about this many (7 couplings per node in 2-D, 15 in 3-D)"},
        {"dims", 3, 2, 3, "2 or 3 dimensions"},
        {"max_row", kDerived, 1, kAny, "length of the longest row, rounded to whole blocks"},
        kRowStddev,
        {"spread", 25, 0, 95, "percentage by which density differs between parts of the mesh"},
        {"irregular", 100, 0, 100, "percentage; 0: a grid"},
        {"disorder", 1, 1, 65536,
         "nodes numbered at random within windows of so many (power of two)"},
        {"far", 0, 0, 100, "percentage of nodes coupled with one far away"},
        recipe(2),
        kSeed},
       make_mesh},
      {"graph",
       "ROWSxCOLS",
       "rows that copy columns from their neighbours: graphs, circuits, linear programs",
       {kExactNnz,
        kShortestRow,
        kLongestRow,
        kRowStddev,
        {"empty", 0, 0, 100, "percentage of rows that are empty"},
        {"group", 16, 1, 1 << 20, "neighbouring rows that copy from the same list"},
        {"alike", 50, 0, 100, "percentage by which rows of a group are alike in length"},
        {"copy", 50, 0, 100, "percentage of columns that are copied"},
        {"run", 150, 100, 100000, "mean number of neighbouring columns drawn together, times 100"},
        {"local", 50, 0, 100, "percentage of runs near the diagonal"},
        {"reach", 4096, 1, kAny, "how near; all orders of magnitude are as likely"},
        {"column_skew", 2, 1, 8, "how steeply the popularity of other columns falls; 1: all alike"},
        {"diagonal", 0, 0, 1, "1: the diagonal is in every row that is not empty"},
        recipe(1),
        kSeed},
       make_graph},
      {"kkt",
       "UNKNOWNSxCONSTRAINTS",
       "saddle point [H A'; A 0] of an optimisation, symmetric structure",
       {{"nnz", kDerived, 0, kAny, "about this many (3 per constraint in A, and H)"},
        {"hessian", 1, 1, 999, "nonzeros per row of H, odd"},
        {"width", kDerived, 0, kAny,
         "positions from which a constraint takes its unknowns (the mean)"},
        {"reach", kDerived, 1, kAny,
         "how far apart the first and the last of them are (side by side)"},
        recipe(1),
        kSeed},
       make_kkt,
       false},
      {"wlan",
       "",
       "Markov chain of wireless nodes that share a channel: its rates, transposed",
       {{"C", 10, 1, 1'000'000, "packets that a node can hold"},
        {"m", 3, 0, 20, "failures after which waits grow no longer"},
        {"W", 8, 1, 1 << 20, "slots of the first wait; after k failures 2^k W"},
        rate("lambda", 0.2, "rate of packets that arrive per node"),
        rate("mu", 1, "rate at which a packet is sent"),
        {"p", kDerived, 0, 0.999999,
         "chance that another device has the channel (0.1; 0 if nodes > 1)", nullptr, false},
        rate("eta", 4, "rate of slots"),
        {"nodes", 1, 1, 16, "that share the channel"},
        {"states", 0, 0, 1, "reachable or all: from the empty system", kWlanStates}},
       make_wlan,
       false},
      {"dense", "ROWSxCOLS", "every position is a nonzero", {kSeed}, make_dense},
      {"diagonal", "N", "the diagonal and nothing else", {kSeed}, make_diagonal},
  };
  return generators;
}

bool is_generator(const std::string& spec) {
  const std::size_t colon = spec.find(':');
  return colon != std::string::npos && find_generator(std::string_view(spec).substr(0, colon));
}

std::string full_specification(const std::string& spec) {
  return Specification(spec, 0, std::numeric_limits<std::uint64_t>::max()).full();
}

namespace {

// Of a generator that always makes all rows, those from `first` up to `end`.
Pattern only_these(Pattern pattern, long long first, long long end) {
  if (static_cast<long long>(pattern.row_offsets.size()) - 1 == end - first) return pattern;
  std::vector<Index>& offsets = pattern.row_offsets;
  const Index from = offsets[first], to = offsets[end];
  const auto cut = [&](auto& array) {
    if (array.empty()) return;
    array.erase(array.begin() + to, array.end());
    array.erase(array.begin(), array.begin() + from);
  };
  cut(pattern.column_indices);
  cut(pattern.values);
  offsets.erase(offsets.begin() + end + 1, offsets.end());
  offsets.erase(offsets.begin(), offsets.begin() + first);
  for (Index& offset : offsets) offset -= from;
  return pattern;
}

// The rows [first, end) of what `spec` describes, made by all cores where that is of use.
Pattern make_rows(const Specification& spec, long long first, long long end, bool of_whole) {
  constexpr long long kWorthwhile = 20000;  // rows
  [[maybe_unused]] constexpr int kMostThreads = 64;
  int threads = 1;
#ifdef _OPENMP
  threads = std::min(omp_get_max_threads(), kMostThreads);
#endif
  const long long rows = end - first;
  if (!spec.generator().by_rows || rows < kWorthwhile) threads = 1;
  std::vector<Pattern> pieces(threads);
  std::vector<std::exception_ptr> errors(threads);
#pragma omp parallel for schedule(static, 1) num_threads(threads)
  for (int k = 0; k < threads; ++k) {
    try {
      Specification piece = spec;
      piece.only_rows(first + rows * k / threads, first + rows * (k + 1) / threads, of_whole);
      pieces[k] = piece.generator().make(piece);
    } catch (...) {
      errors[k] = std::current_exception();
    }
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  if (threads == 1) return only_these(std::move(pieces[0]), first, end);

  std::size_t count = 0;
  for (const Pattern& piece : pieces) count += piece.column_indices.size();
  spec.check_nonzeros(count);
  Pattern all = std::move(pieces[0]);
  all.row_offsets.reserve(static_cast<std::size_t>(rows) + 1);
  all.column_indices.reserve(count);
  for (std::size_t k = 1; k < pieces.size(); ++k) {
    const Pattern piece = std::move(pieces[k]);
    const Index before = all.row_offsets.back();
    all.column_indices.insert(all.column_indices.end(), piece.column_indices.begin(),
                              piece.column_indices.end());
    for (std::size_t row = 1; row < piece.row_offsets.size(); ++row) {
      all.row_offsets.push_back(before + piece.row_offsets[row]);
    }
  }
  return all;
}

// Value k of the matrix is the k-th draw, whoever makes it.
template <typename T>
Csr<T> with_values(Pattern pattern, const Specification& spec, long long nonzeros_before) {
  Csr<T> csr{static_cast<Index>(pattern.row_offsets.size()) - 1, pattern.cols,
             std::move(pattern.row_offsets), std::move(pattern.column_indices),
             std::vector<T>(pattern.values.begin(), pattern.values.end())};
  if (!csr.values.empty()) return csr;
  csr.values.resize(csr.column_indices.size());
  constexpr long long kTurn = 1 << 16;
  const auto count = static_cast<long long>(csr.values.size());
#pragma omp parallel for schedule(static) if (count > 4 * kTurn)
  for (long long turn = 0; turn < (count + kTurn - 1) / kTurn; ++turn) {
    Rng rng(spec.seed(), 0xA5A5A5A5ull << 32);
    rng.skip(static_cast<std::uint64_t>(nonzeros_before + turn * kTurn));
    for (long long k = turn * kTurn; k < std::min((turn + 1) * kTurn, count); ++k) {
      csr.values[k] = signed_unit_value<T>(rng.bits64());
    }
  }
  if (pattern.repeats) sum_repeated_columns(csr);
  return csr;
}

}  // namespace

template <typename T>
Csr<T> generate(const std::string& spec, std::uint64_t memory_limit) {
  const Specification parsed(spec, sizeof(T), memory_limit);
  Specification sizes = parsed;
  sizes.only_rows(0, 0, true);
  const bool by_rows = parsed.generator().by_rows;
  const long long rows = by_rows ? parsed.generator().make(sizes).rows : 0;
  return with_values<T>(
      by_rows ? make_rows(parsed, 0, rows, true) : parsed.generator().make(parsed), parsed, 0);
}

std::vector<Index> generated_lengths(const Specification& spec, Index first, Index end) {
  const Pattern pattern = make_rows(spec, first, end, false);
  std::vector<Index> lengths(static_cast<std::size_t>(end - first));
  std::adjacent_difference(pattern.row_offsets.begin() + 1, pattern.row_offsets.end(),
                           lengths.begin());
  return lengths;
}

template <typename T>
Csr<T> generate_rows(const Specification& spec, Index first, Index end, long long nonzeros_before) {
  return with_values<T>(make_rows(spec, first, end, false), spec, nonzeros_before);
}

std::string generator_help() {
  std::string help;
  for (const Generator& generator : all_generators()) {
    help += fmt::format("  {}:{}\n      {}\n", generator.name, generator.sizes, generator.summary);
    for (const Key& key : generator.keys) {
      const std::string value = key.fallback == kDerived ? "..." : key.text_of(key.fallback);
      help += fmt::format("      {:<18}{}\n", fmt::format("{}={}", key.name, value), key.meaning);
    }
  }
  return help;
}

template Csr<float> generate(const std::string&, std::uint64_t);
template Csr<double> generate(const std::string&, std::uint64_t);
template Csr<float> generate_rows(const Specification&, Index, Index, long long);
template Csr<double> generate_rows(const Specification&, Index, Index, long long);

}  // namespace spmv
