// The chain of wireless nodes: what makes it a chain, and table 3. (That it is the same on every
// machine: generators_test.cpp.)
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "sparse/catalogue.hpp"
#include "sparse/generators.hpp"
#include "tests/catch.hpp"
#include "tests/scratch.hpp"
#include "tests/sound.hpp"

using namespace spmv;

namespace {

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

TEST_CASE("a chain of wireless nodes can run empty from every state, and come back", "[wlan]") {
  for (const std::string spec :
       {"wlan:C=3,m=2,W=3,p=0.25", "wlan:C=2,m=2,W=2,nodes=2,lambda=0.7,mu=1.5",
        "wlan:C=1,m=1,W=1,nodes=2,p=0.5", "wlan:C=1,m=1,W=1,nodes=4", "wlan:C=2,m=0,W=2,nodes=3"}) {
    CAPTURE(spec);
    const Csr<double> reachable = generate<double>(spec);
    const Csr<double> all = generate<double>(spec + ",states=all");
    for (const Csr<double>* chain : {&reachable, &all}) {
      check_rates(*chain);
      CHECK(reached_from_0(*chain, true) == static_cast<std::size_t>(chain->rows));
      CHECK(reached_from_0(*chain, false) == static_cast<std::size_t>(reachable.rows));
    }
    check_rates(generate<float>(spec));
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

TEST_CASE("a chain that needs more memory than there is is refused", "[wlan]") {
  CHECK(error_of("wlan:C=1000,m=6,W=6", 1'000'000)
            .find("of memory, more than the limit of 976.6 KiB") != std::string::npos);
}
