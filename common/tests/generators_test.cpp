#include "sparse/generators.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <numeric>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sparse/memory.hpp"
#include "sparse/row_source.hpp"
#include "sparse/specification.hpp"
#include "sparse/statistics.hpp"
#include "tests/catch.hpp"
#include "tests/scratch.hpp"
#include "tests/sound.hpp"

using namespace spmv;

namespace {

// FNV-1a over sizes, offsets, columns and values; the same for every byte order and precision.
template <typename T>
std::uint64_t checksum(const Csr<T>& csr) {
  std::uint64_t hash = 0xCBF29CE484222325ull;
  const auto add = [&hash](std::int64_t number) {
    for (int byte = 0; byte < 8; ++byte) {
      hash = (hash ^ (static_cast<std::uint64_t>(number) >> (8 * byte) & 0xFF)) * 0x100000001B3ull;
    }
  };
  add(csr.rows);
  add(csr.cols);
  for (const Index offset : csr.row_offsets) add(offset);
  for (const Index column : csr.column_indices) add(column);
  for (const T value : csr.values) add(static_cast<std::int64_t>(value * (1 << 20)));
  return hash;
}

// What generators promise of a matrix, and of its values.
template <typename T>
void require_valid(const Csr<T>& csr) {
  REQUIRE(test::is_sound(csr));
  REQUIRE(std::all_of(csr.values.begin(), csr.values.end(), [](T value) {
    const T scaled = value * (1 << 20);
    return scaled == std::floor(scaled) && scaled != 0 && std::abs(value) <= 1;
  }));
}

using Positions = std::set<std::pair<Index, Index>>;

Positions positions(const Csr<double>& csr) {
  Positions result;
  for (Index row = 0; row < csr.rows; ++row) {
    for (Index k = csr.row_offsets[row]; k < csr.row_offsets[row + 1]; ++k) {
      result.emplace(row, csr.column_indices[k]);
    }
  }
  return result;
}

bool structure_is_symmetric(const Csr<double>& csr) {
  const Positions all = positions(csr);
  return std::all_of(all.begin(), all.end(), [&all](const auto& at) {
    return all.count({at.second, at.first}) > 0;
  });
}

std::string error_of(const std::string& spec, std::uint64_t memory_limit = ~0ull) {
  return test::error_of([&] { generate<double>(spec, memory_limit); });
}

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

// The rows of a table in generators/.
std::vector<std::vector<std::string>> table(const std::string& name) {
  return test::read_table("generators/" + name + ".tsv");
}

TEST_CASE("a Kronecker graph is an R-MAT graph whose vertices have other numbers", "[generators]") {
  const auto lengths = [](const std::string& spec) {
    const Csr<double> a = generate<double>(spec);
    std::vector<Index> result;
    for (Index row = 0; row < a.rows; ++row) result.push_back(a.row_length(row));
    return result;
  };
  std::vector<Index> graph = lengths("rmat:scale=10,symmetric=1");
  std::vector<Index> kronecker = lengths("rmat:scale=10,symmetric=1,permute=1");
  CHECK(graph != kronecker);
  // Without new numbers vertex 0 has most edges, since every level draws 0 more often.
  CHECK(std::max_element(graph.begin(), graph.end()) == graph.begin());
  CHECK(std::max_element(kronecker.begin(), kronecker.end()) != kronecker.begin());
  std::sort(graph.begin(), graph.end());
  std::sort(kronecker.begin(), kronecker.end());
  CHECK(graph == kronecker);
  CHECK(lengths("rmat:scale=10,symmetric=1,permute=0") == lengths("rmat:scale=10,symmetric=1"));
}

TEST_CASE("some rows of a generated matrix are those of all of it", "[generators]") {
  for (const std::string& spec :
       words("stencil2d:13x7 stencil2d:9x8,dof=3,points=9 stencil3d:5x4x6,points=27 "
             "stencil2d:9x8,dof=2,boundary=constant stencil2d:2x8,boundary=wrap "
             "lattice:3x3x2x2 triangle:14 random:90x70 banded:120,bandwidth=9,nnz_per_row=5 "
             "powerlaw:150x140,nnz=900 rmat:scale=7 rmat:scale=7,symmetric=1,permute=1 fem:40 "
             "kkt:70x30 "
             "dense:20x11 diagonal:40 diagonal:0 banded:21000 "
             "mesh:90 mesh:83,block=4,far=30,disorder=4 "
             "mesh:5000,nnz=60000,max_row=60,stddev=3,far=20 "
             "mesh:21000,nnz=105000,dims=2,max_row=6,stddev=0.2 "
             "graph:90x70 graph:21000x21000,copy=80,group=32 wlan:C=2,m=1,W=2")) {
    CAPTURE(spec);
    const Csr<double> all = generate<double>(spec);
    const RowSource<double> by_rows(spec, {}, true);
    const RowSource<double> held(spec, {}, false);
    CHECK(by_rows.rows() == all.rows);
    CHECK(by_rows.cols() == all.cols);
    const std::vector<Index> lengths = by_rows.lengths(0, all.rows);
    for (const auto& [first, end] :
         std::vector<std::pair<Index, Index>>{{0, all.rows},
                                              {0, 0},
                                              {all.rows, all.rows},
                                              {all.rows / 3, all.rows - all.rows / 4}}) {
      const long long before = std::accumulate(lengths.begin(), lengths.begin() + first, 0LL);
      CHECK(by_rows.read(first, end, before) == slice_of(all, first, end));
      CHECK(held.read(first, end, before) == slice_of(all, first, end));
    }
  }
  // As a whole it has too many nonzeros.
  CHECK_THROWS_AS(generate<double>("stencil3d:450x450x450,points=27"), InputError);
  const RowSource<double> huge("stencil3d:450x450x450,points=27", {}, true);
  CHECK(huge.rows() == 450 * 450 * 450);
  const Csr<double> last = huge.read(huge.rows() - 1, huge.rows(), 2'400'000'000);
  CHECK(last.nnz() == 8);
  CHECK(last.column_indices.back() == huge.rows() - 1);
}

}  // namespace

TEST_CASE("what all rows follow from is found out once, however many threads make them",
          "[generators]") {
  const Specification whole("mesh:90", sizeof(double), available_memory());
  int calls = 0;
  const auto of_copy = [&] {
    Specification piece = whole;
    piece.only_rows(30, 60, true);
    return piece.once([&] {
      if (++calls == 1) throw InputError("not yet");
      return std::string("found");
    });
  };
  CHECK_THROWS_AS(of_copy(), InputError);
  CHECK(of_copy() == "found");
  CHECK(of_copy() == "found");
  CHECK(calls == 2);
}

TEST_CASE("generated matrices are valid CSR, the same in both precisions", "[generators]") {
  for (const auto& row : table("assorted")) {
    const std::string& spec = row[0];
    CAPTURE(spec);
    const Csr<double> wide = generate<double>(spec);
    const Csr<float> narrow = generate<float>(spec);
    require_valid(wide);
    require_valid(narrow);
    CHECK(checksum(narrow) == checksum(wide));
  }
}

TEST_CASE("a specification is the same matrix on every machine", "[generators]") {
  for (const auto& row : table("checksums")) {
    CAPTURE(row[0]);
    CHECK(fmt::format("0x{:016X}", checksum(generate<double>(row[0]))) == row[1]);
  }
}

TEST_CASE("stencils have exactly the published numbers of nonzeros", "[generators]") {
  CHECK(generate<float>("stencil2d:1000x1000").nnz() == 4996000);
  CHECK(generate<float>("stencil3d:100x100x100,points=27").nnz() == 26463592);
}

TEST_CASE("powerlaw meets the figures it is given", "[generators]") {
  const Csr<double> csr = generate<double>(
      "powerlaw:20000x30000,nnz=180000,min_row=2,max_row=2500,stddev=40,empty=10,local=60");
  const Statistics s = compute_statistics(csr);
  CHECK(s.nnz == 180000);
  CHECK(s.max_row == 2500);
  CHECK(s.empty_rows == 2000);
  CHECK(s.stddev_row == Approx(40).epsilon(0.1));

  // By default, a twentieth of the columns has more than a fifth of the nonzeros.
  const Csr<double> skewed = generate<double>("powerlaw:20000x20000");
  std::vector<Index> lengths(skewed.cols, 0);
  for (const Index column : skewed.column_indices) ++lengths[column];
  std::sort(lengths.rbegin(), lengths.rend());
  long long in_hot = 0;
  for (Index k = 0; k < skewed.cols / 20; ++k) in_hot += lengths[k];
  CHECK(in_hot > skewed.nnz() / 5);
  CHECK(compute_statistics(skewed).max_row == 800);
  CHECK(compute_statistics(skewed).empty_rows == 1000);
}

TEST_CASE("meshes, saddle points and undirected graphs are symmetric in structure",
          "[generators]") {
  for (const char* spec :
       {"fem:401", "fem:401,block=1", "fem:57,block=6", "kkt:211x107",
        "kkt:211x107,hessian=5,width=9,nnz=2000,reach=100", "rmat:scale=8,symmetric=1"}) {
    CAPTURE(spec);
    CHECK(structure_is_symmetric(generate<double>(spec)));
  }
}

TEST_CASE("fem and kkt come near the nonzeros asked for", "[generators]") {
  CHECK(generate<double>("fem:5000").nnz() == Approx(15 * 9 * 5000).epsilon(0.01));
  CHECK(generate<double>("kkt:5000x3000,nnz=60000,hessian=3,width=20").nnz() ==
        Approx(60000).epsilon(0.01));
}

TEST_CASE("a full specification names every default", "[generators]") {
  CHECK(full_specification("stencil2d:3x4") == "stencil2d:3x4,points=5,dof=1,boundary=drop,seed=1");
  CHECK(full_specification("stencil2d:3x4,seed=9,dof=2") ==
        "stencil2d:3x4,seed=9,dof=2,points=5,boundary=drop");
  CHECK(full_specification("rmat:edge_factor=4") ==
        "rmat:edge_factor=4,scale=16,symmetric=0,seed=1");
  CHECK(full_specification("rmat:") == "rmat:scale=16,edge_factor=16,symmetric=0,seed=1");
  CHECK(full_specification("wlan:C=3,eta=2.50") ==
        "wlan:C=3,eta=2.50,m=3,W=8,lambda=0.2,mu=1,nodes=1,states=reachable");
  for (const auto& row : table("assorted")) {
    const std::string& spec = row[0];
    CAPTURE(spec);
    CHECK(checksum(generate<double>(full_specification(spec))) == checksum(generate<double>(spec)));
  }
}

TEST_CASE("a generator is recognised by its name and colon", "[generators]") {
  CHECK(is_generator("stencil2d:"));
  CHECK(is_generator("rmat:scale=3"));
  CHECK_FALSE(is_generator("stencil2d"));
  CHECK_FALSE(is_generator("stencil4d:3"));
  CHECK_FALSE(is_generator("C:/matrix.mtx"));
  CHECK_FALSE(is_generator(""));
}

TEST_CASE("a bad specification is refused in one line", "[generators]") {
  for (const auto& row : table("refused")) CHECK(error_of(row[0]) == row[0] + ": " + row[1]);
}

TEST_CASE("a matrix that does not fit in memory is refused before anything is allocated",
          "[generators]") {
  // 1000 * (4 + 8) bytes of nonzeros, 1001 * 4 of offsets.
  CHECK(error_of("diagonal:1000", 16004) == "no error");
  CHECK(error_of("diagonal:1000", 16003) ==
        "diagonal:1000: needs 15.6 KiB of memory, more than the limit of 15.6 KiB; use a smaller "
        "matrix, or give --memory-limit 1M if this machine has as much");
  CHECK(
      error_of("dense:40000x40000", 4'000'000'000) ==
      "dense:40000x40000: needs 17.9 GiB of memory, more than the limit of 3.7 GiB; use a smaller "
      "matrix, or give --memory-limit 18311M if this machine has as much");
  CHECK(available_memory() > 1'000'000);
  // Of a grid 5 nonzeros per row: 12 bytes for each, 4 per row and 4 more.
  CHECK(error_of("stencil2d:10000x10", 0).find("needs 6.1 MiB") != std::string::npos);
}

TEST_CASE("a mesh has a symmetric structure, many diagonals and the figures that are asked for",
          "[generators]") {
  // The longest row: below the longest that the spread alone would give (cut off), above it (hubs),
  // and hardly above the mean (a stencil).
  for (const std::string spec :
       {"mesh:4000,nnz=60000,stddev=5", "mesh:4000,nnz=28000,dims=2,stddev=2",
        "mesh:6001,block=3,nnz=300000,stddev=12,disorder=8,far=40",
        "mesh:5000,nnz=78000,stddev=6,max_row=30,far=40", "mesh:6000,nnz=93000,stddev=3,max_row=80",
        "mesh:9000,nnz=60000,dims=2,stddev=1,max_row=25,disorder=8,far=20",
        "mesh:6000,block=3,nnz=400000,stddev=12,max_row=180,far=40",
        "mesh:20000,nnz=290000,stddev=0.1,max_row=15",
        "mesh:9000,dims=2,nnz=36000,stddev=0,max_row=4"}) {
    CAPTURE(spec);
    const Csr<double> csr = generate<double>(spec);
    CHECK(structure_is_symmetric(csr));
    const auto asked = [&spec](const std::string& key) {
      return std::stod(spec.substr(spec.find(key + "=") + key.size() + 1));
    };
    const Statistics s = compute_statistics(csr);
    CHECK(s.nnz == Approx(asked("nnz")).epsilon(0.02));
    CHECK(s.diagonals > 9 * s.mean_row);
    if (spec.find("max_row") != std::string::npos) {
      CHECK(s.max_row == asked("max_row"));
    } else {
      CHECK(s.stddev_row == Approx(asked("stddev")).epsilon(0.1));
      CHECK(s.min_row > 0);
    }
  }
  // Without irregularities it is a grid: the 7-point stencil's diagonals and a few more,
  // since lines of its last plane may be missing.
  CHECK(
      compute_statistics(generate<float>("mesh:27000,nnz=183600,irregular=0,stddev=0")).diagonals <=
      27);
  for (const char* spec :
       {"mesh:100,block=3,nnz=200", "mesh:1000,nnz=7000,max_row=6", "mesh:10,recipe=1"}) {
    CHECK_THROWS_AS(generate<float>(spec), InputError);
  }
  // The version is part of what records hold.
  CHECK(full_specification("mesh:10").find("recipe=2") != std::string::npos);
}

TEST_CASE("rows of a graph share columns with their neighbours", "[generators]") {
  // Of the nonzeros, those whose column the row before has as well.
  const auto shared = [](const std::string& spec) {
    const Csr<double> csr = generate<double>(spec);
    const Positions all = positions(csr);
    const auto count = std::count_if(all.begin(), all.end(), [&](const auto& at) {
      return all.count({at.first - 1, at.second}) > 0;
    });
    return static_cast<double>(count) / csr.nnz();
  };
  CHECK(shared("graph:5000x5000,copy=0,local=0") < 0.02);
  CHECK(shared("graph:5000x5000,copy=90,local=0,alike=90") > 0.5);
  const Statistics s =
      compute_statistics(generate<double>("graph:3000x5000,nnz=40000,max_row=900,stddev=30"));
  CHECK(s.nnz == 40000);
  CHECK(s.max_row == 900);
  CHECK(s.stddev_row == Approx(30).epsilon(0.15));
}
