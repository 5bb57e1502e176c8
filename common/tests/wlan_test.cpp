// The chain of wireless nodes: against its definition, enumerated naively, and against table 3.
#include "sparse/wlan.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sparse/catalogue.hpp"
#include "sparse/generators.hpp"
#include "tests/catch.hpp"
#include "tests/scratch.hpp"
#include "tests/sound.hpp"

using namespace spmv;

namespace {

// --- The definition, a second time ---------------------------------------------------------------

struct Parameters {
  int C = 1, m = 0, W = 1, nodes = 1;
  double lambda = 0.2, mu = 1, eta = 4, p = 0;
  bool freeze = false, all = false;

  std::string specification() const {
    const auto text = [](double number) { return std::to_string(number).substr(0, 8); };
    return "wlan:C=" + std::to_string(C) + ",m=" + std::to_string(m) + ",W=" + std::to_string(W) +
           ",lambda=" + text(lambda) + ",mu=" + text(mu) + ",p=" + text(p) + ",eta=" + text(eta) +
           ",nodes=" + std::to_string(nodes) + ",freeze=" + std::to_string(freeze) +
           ",states=" + (all ? "all" : "reachable");
  }
};

using One = std::array<int, 4>;  // c, k, f, s
using Joint = std::vector<One>;
using Rows = std::map<Joint, std::map<Joint, double>>;  // rates out of each state

std::vector<std::pair<One, double>> moves_of(const One& node, bool busy, const Parameters& p) {
  const auto [c, k, f, s] = node;
  std::vector<std::pair<One, double>> moves;
  if (c < p.C) moves.push_back({{c + 1, k, f, s}, p.lambda});
  if (c == 0) return moves;
  if (s == 1) {
    moves.push_back({{c - 1, 0, 0, 0}, p.mu});
  } else if (f > 0) {
    if (p.freeze && busy) return moves;
    moves.push_back({f > 1 ? One{c, k, f - 1, 0} : One{c, std::min(k + 1, p.m), 0, 0}, p.eta});
  } else {
    const double taken = busy ? 1 : p.p;
    if (taken < 1) moves.push_back({{c, 0, 0, 1}, p.eta * (1 - taken)});
    const int draws = p.W << k;
    for (int d = 1; d <= draws && taken > 0; ++d)
      moves.push_back({{c, k, d, 0}, p.eta * taken / draws});
  }
  return moves;
}

std::vector<Joint> all_states(const Parameters& p) {
  std::vector<One> ones{{0, 0, 0, 0}};
  for (int c = 1; c <= p.C; ++c) {
    for (int k = 0; k <= p.m; ++k) {
      for (int f = 0; f <= p.W << k; ++f) ones.push_back({c, k, f, 0});
    }
    ones.push_back({c, 0, 0, 1});
  }
  std::vector<Joint> states{{}};
  for (int node = 0; node < p.nodes; ++node) {
    std::vector<Joint> longer;
    for (const Joint& joint : states) {
      for (const One& one : ones) {
        const auto sends = [](const One& other) { return other[3] == 1; };
        if (sends(one) && std::any_of(joint.begin(), joint.end(), sends)) continue;
        longer.push_back(joint);
        longer.back().push_back(one);
      }
    }
    states = std::move(longer);
  }
  return states;
}

Rows rates_of(const Parameters& p) {
  std::vector<Joint> todo = p.all ? all_states(p) : std::vector<Joint>{Joint(p.nodes)};
  Rows rows;
  while (!todo.empty()) {
    const Joint joint = todo.back();
    todo.pop_back();
    if (rows.count(joint)) continue;
    std::map<Joint, double>& row = rows[joint];
    for (std::size_t i = 0; i < joint.size(); ++i) {
      bool busy = false;
      for (std::size_t j = 0; j < joint.size(); ++j) busy |= j != i && joint[j][3] == 1;
      for (const auto& [one, rate] : moves_of(joint[i], busy, p)) {
        Joint next = joint;
        next[i] = one;
        row[next] += rate;
        row[joint] -= rate;
        if (!p.all) todo.push_back(next);
      }
    }
  }
  return rows;
}

// --- What is asked of a matrix -------------------------------------------------------------------

// Which states can be reached from state 0, along the rates or against them.
std::size_t reached_from_0(const Csr<double>& transposed, bool against) {
  std::vector<std::vector<Index>> next(transposed.rows);
  for (Index row = 0; row < transposed.rows; ++row) {
    for (Index k = transposed.row_offsets[row]; k < transposed.row_offsets[row + 1]; ++k) {
      const Index column = transposed.column_indices[k];  // a move from column to row
      next[against ? row : column].push_back(against ? column : row);
    }
  }
  std::vector<bool> seen(transposed.rows, false);
  std::vector<Index> todo{0};
  std::size_t count = 0;
  while (!todo.empty()) {
    const Index state = todo.back();
    todo.pop_back();
    if (seen[state]) continue;
    seen[state] = true;
    ++count;
    todo.insert(todo.end(), next[state].begin(), next[state].end());
  }
  return count;
}

template <typename T>
void check_rates(const Csr<T>& transposed) {
  CHECK(test::is_sound(transposed));
  std::vector<double> sums(transposed.cols, 0), sizes(transposed.cols, 0);
  bool signs = true;
  for (Index row = 0; row < transposed.rows; ++row) {
    for (Index k = transposed.row_offsets[row]; k < transposed.row_offsets[row + 1]; ++k) {
      const Index column = transposed.column_indices[k];
      const T value = transposed.values[k];
      signs &= column == row ? value < 0 : value > 0;
      sums[column] += static_cast<double>(value);
      sizes[column] += std::abs(static_cast<double>(value));
    }
  }
  CHECK(signs);
  double worst = 0;
  for (Index column = 0; column < transposed.cols; ++column) {
    worst = std::max(worst, std::abs(sums[column]) / sizes[column]);
  }
  CHECK(worst <= 2.0 * std::numeric_limits<T>::epsilon());
}

std::string error_of(const std::string& spec, std::uint64_t memory_limit = ~0ull) {
  return test::error_of([&] { generate<double>(spec, memory_limit); });
}

}  // namespace

TEST_CASE("a chain of wireless nodes is what its definition says", "[wlan]") {
  std::vector<Parameters> cases;
  for (const bool all : {false, true}) {
    cases.push_back({.C = 1, .m = 0, .W = 1, .p = 0.3, .all = all});
    cases.push_back({.C = 3, .m = 2, .W = 3, .p = 0.25, .all = all});
    cases.push_back({.C = 2, .m = 1, .W = 2, .p = 0, .all = all});
    cases.push_back({.C = 2, .m = 2, .W = 2, .nodes = 2, .lambda = 0.7, .mu = 1.5, .all = all});
    cases.push_back({.C = 1, .m = 1, .W = 1, .nodes = 2, .p = 0.5, .freeze = true, .all = all});
    cases.push_back({.C = 1, .m = 1, .W = 2, .nodes = 3, .eta = 0.125, .all = all});
    cases.push_back({.C = 2, .m = 0, .W = 1, .nodes = 3, .freeze = true, .all = all});
    cases.push_back({.C = 1, .m = 1, .W = 1, .nodes = 4, .all = all});
  }
  for (const Parameters& p : cases) {
    CAPTURE(p.specification());
    const Rows expected = rates_of(p);
    const Csr<double> got = generate<double>(p.specification());
    REQUIRE(got.rows == static_cast<Index>(expected.size()));
    REQUIRE(got.cols == got.rows);
    std::map<Joint, Index> number;  // lexicographic, as a map's order is
    for (const auto& [state, row] : expected) {
      number.emplace(state, static_cast<Index>(number.size()));
    }
    std::map<std::pair<Index, Index>, double> entries;
    for (const auto& [state, row] : expected) {
      for (const auto& [next, rate] : row) entries[{number[next], number[state]}] = rate;
    }
    REQUIRE(entries.size() == static_cast<std::size_t>(got.nnz()));
    Index k = 0;
    bool same = true;
    for (const auto& [at, rate] : entries) {
      same &= at.first < got.rows && k >= got.row_offsets[at.first] &&
              k < got.row_offsets[at.first + 1] && got.column_indices[k] == at.second &&
              std::abs(got.values[k] - rate) <= 1e-12;
      ++k;
    }
    CHECK(same);
    check_rates(got);
    check_rates(generate<float>(p.specification()));
    // From every state the system can run empty; reachable states, it can come back to.
    CHECK(reached_from_0(got, true) == static_cast<std::size_t>(got.rows));
    if (!p.all) CHECK(reached_from_0(got, false) == static_cast<std::size_t>(got.rows));
  }
}

TEST_CASE("columns of table 3's chains are as long as it prints", "[wlan]") {
  struct Row {
    const char* name;
    Index shortest, longest;
  };
  for (const Row& row :
       {Row{"m_2.1K", 5, 8}, Row{"m_2.3K", 3, 6}, Row{"m_3K", 3, 12}, Row{"m_14K", 6, 10},
        Row{"m_40K", 3, 28}, Row{"m_50K", 4, 21}, Row{"m_68K", 3, 68}, Row{"m_130K", 3, 12}}) {
    CAPTURE(row.name);
    const Csr<double> chain = generate<double>(find_in_catalogue(row.name)->source);
    std::vector<Index> lengths(chain.cols, 0);  // the table's columns are rows of the rates
    for (const Index column : chain.column_indices) ++lengths[column];
    CHECK(*std::min_element(lengths.begin(), lengths.end()) == row.shortest);
    CHECK(*std::max_element(lengths.begin(), lengths.end()) == row.longest);
    check_rates(chain);
    CHECK(reached_from_0(chain, true) == static_cast<std::size_t>(chain.rows));
  }
}

TEST_CASE("parameters of a chain that cannot be are refused in one line", "[wlan]") {
  const std::vector<std::pair<std::string, std::string>> bad{
      {"wlan:C=0", "C must be between 1 and 1000000, not 0"},
      {"wlan:C=1.5", "C must be a whole number, not '1.5'"},
      {"wlan:p=1", "p must be between 0 and 0.999999, not 1"},
      {"wlan:lambda=0", "lambda must be between 0.000001 and 1000000, not 0"},
      {"wlan:mu=-1",
       "mu must be a number such as 0.25, with up to 6 digits after the point, not '-1'"},
      {"wlan:eta=1e3",
       "eta must be a number such as 0.25, with up to 6 digits after the point, not '1e3'"},
      {"wlan:eta=.",
       "eta must be a number such as 0.25, with up to 6 digits after the point, not '.'"},
      {"wlan:eta=0.0000001",
       "eta must be a number such as 0.25, with up to 6 digits after the point, not '0.0000001'"},
      {"wlan:states=some", "states must be reachable or all, not 'some'"},
      {"wlan:q=1",
       "no key is called 'q'; wlan takes C, m, W, lambda, mu, p, eta, nodes, freeze, states"},
      {"wlan:C=1000000,m=10,W=32",
       "would have 65,516,000,001 rows; 32-bit indices allow 2,147,483,646"},
      {"wlan:C=1000000,m=20,W=1048576,nodes=16",
       "would have 3.0e+293 rows; 32-bit indices allow 2,147,483,646"},
  };
  for (const auto& [spec, expected] : bad) CHECK(error_of(spec) == spec + ": " + expected);
  CHECK(error_of("wlan:C=1000,m=6,W=6", 1'000'000)
            .find("of memory, more than the limit of 976.6 KiB") != std::string::npos);
}
