#include "sparse/catalogue.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "sparse/generators.hpp"
#include "sparse/load.hpp"
#include "sparse/text.hpp"
#include "tests/catch.hpp"
#include "tests/scratch.hpp"

namespace {

namespace fs = std::filesystem;

using namespace spmv;

// An empty data directory, that load_matrix looks into while this lives.
class DataDirectory : public test::ScratchDirectory {
 public:
  // A 2 x 3 matrix whose one value tells files apart, unless `body` is given.
  fs::path write(const std::string& name, int value, const std::string& body = {}) const {
    const fs::path file = *this / name;
    fs::create_directories(file.parent_path());
    test::write_bytes(file,
                      "%%MatrixMarket matrix coordinate real general\n" +
                          (body.empty() ? "2 3 1\n2 3 " + std::to_string(value) + "\n" : body));
    return file;
  }

 private:
  test::EnvironmentVariable variable_{"SPMV_DATA", path().c_str()};
};

std::string error_of(const std::string& spec) {
  return test::error_of([&] { load_matrix<double>(spec); });
}

}  // namespace

TEST_CASE("a matrix of the catalogue is found by its names", "[catalogue]") {
  for (const CatalogueEntry& entry : catalogue()) {
    CAPTURE(entry.name);
    CHECK(find_in_catalogue(entry.name) == &entry);
    CHECK(find_in_catalogue(entry.collection_name) == &entry);
    if (entry.is_made_by_scipy()) {
      CHECK_FALSE(entry.in_collection());
      CHECK(entry.source == "-");
    } else {
      CHECK(full_specification(entry.source) == entry.source);
    }
  }
  CHECK(find_in_catalogue("conf5_4-8x8-05") == find_in_catalogue("qcd5_4"));
  CHECK(find_in_catalogue("") == nullptr);
  CHECK(find_in_catalogue("nosuch") == nullptr);
}

TEST_CASE("the catalogue's sizes are those that the papers print", "[catalogue]") {
  // plots/published/: name, rows and further on nonzeros, of one triangle or without stored zeros
  // where a paper counts so.
  const std::map<std::string, Index> stored_zeros{{"af_shell9", 30}, {"kkt_power", 1841302}};
  std::size_t printed = 0;
  for (const auto& [table, nnz_column] : {std::pair<std::string, int>{"he_gao_2016_table2", 2},
                                          {"bylina_2011_table2", 2},
                                          {"bylina_2011_table3", 2},
                                          {"lightspmv_poster_matrices", 3}}) {
    std::ifstream file(fs::path(SPMV_SOURCE_DIR) / "plots/published" / (table + ".csv"));
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with('#') || line.starts_with("matrix,")) continue;
      CAPTURE(table, line);
      std::vector<std::string> cells;
      std::istringstream in(line);
      for (std::string cell; std::getline(in, cell, ',');) cells.push_back(cell);
      const CatalogueEntry* entry = find_in_catalogue(cells[0]);
      REQUIRE(entry != nullptr);
      CHECK(std::to_string(entry->rows) == cells[1]);
      ++printed;
      if (cells[0] == "rail4284") continue;  // not square, and of another count
      CHECK(entry->cols == entry->rows);
      const Index nnz = std::stoi(cells.at(static_cast<std::size_t>(nnz_column)));
      // A triangle has the diagonal, which is full in these, and half of the rest.
      const long long triangle = (static_cast<long long>(entry->nnz) + entry->rows) / 2;
      const auto zeros = stored_zeros.find(cells[0]);
      const Index stored = zeros == stored_zeros.end() ? 0 : zeros->second;
      CHECK((nnz == triangle || nnz == entry->nnz - stored));
    }
  }
  // Three are in two tables, and large matrices, which follow, in none.
  const auto first_large = std::find_if(catalogue().begin(), catalogue().end(),
                                        [](const auto& e) { return e.name == "kronecker_18"; });
  CHECK(printed == static_cast<std::size_t>(first_large - catalogue().begin()) + 3);
}

TEST_CASE("what stands for a matrix has its size", "[catalogue]") {
  int checked = 0;
  for (const CatalogueEntry& entry : catalogue()) {
    if (entry.nnz > 1'000'000 || entry.is_made_by_scipy()) continue;
    CAPTURE(entry.name);
    const Csr<float> csr = generate<float>(entry.source);
    CHECK(csr.rows == entry.rows);
    CHECK(csr.cols == entry.cols);
    CHECK(csr.nnz() == Approx(entry.nnz).epsilon(entry.in_collection() ? 0.01 : 0));
    ++checked;
  }
  CHECK(checked >= 15);
}

TEST_CASE("a name of the catalogue is its file where there is one, else a stand-in", "[load]") {
  const DataDirectory data;
  {
    const Matrix<double> matrix = load_matrix<double>("epb2");
    CHECK(matrix.source.name == "epb2");
    CHECK(matrix.source.origin == MatrixSource::Origin::kStandIn);
    CHECK(matrix.source.detail == find_in_catalogue("epb2")->source);
    CHECK(matrix.csr.rows == 25228);
    CHECK(matrix.coo.nnz() == 0);
  }
  int value = 0;
  for (const char* file : {"epb2/epb2.mtx.gz", "epb2.mtx.gz", "epb2/epb2.mtx", "epb2.mtx"}) {
    CAPTURE(file);
    const fs::path path = data.write(file, ++value);  // text under a .gz name is read as well
    const Matrix<float> matrix = load_matrix<float>("epb2");
    CHECK(matrix.source.name == "epb2");
    CHECK(matrix.source.origin == MatrixSource::Origin::kFile);
    CHECK(matrix.source.detail == path.string());
    CHECK(matrix.csr.values == std::vector<float>{static_cast<float>(value)});
    fs::remove(path);
  }
  data.write("conf5_4-8x8-05.mtx", 7);
  CHECK(load_matrix<double>("qcd5_4").csr.values == std::vector<double>{7});
  CHECK(load_matrix<double>("m_2.1K").source.origin == MatrixSource::Origin::kGenerated);
  CHECK(load_matrix<double>("dense2").source.origin == MatrixSource::Origin::kGenerated);
}

TEST_CASE("a path is read and its oddities are counted", "[load]") {
  const DataDirectory data;
  const fs::path path =
      data.write("odd.mtx", 0, "3 3 6\n1 1 1\n3 2 0\n1 1 2\n2 2 nan\n2 1 inf\n3 3 -0\n");
  const Matrix<double> matrix = load_matrix<double>(path.string(), {.keep_coo = true});
  CHECK(matrix.source.name == "odd");
  CHECK(matrix.source.origin == MatrixSource::Origin::kFile);
  CHECK(matrix.duplicates == 1);
  CHECK(matrix.explicit_zeros == 2);
  CHECK(matrix.non_finite == 2);
  CHECK(matrix.csr.nnz() == 5);
  CHECK(matrix.coo.row_indices == std::vector<Index>{0, 2, 0, 1, 1, 2});
  CHECK(load_matrix<double>(path.string()).coo.nnz() == 0);
}

// An entry outside of the diagonal and its mirror image are one entry of the file.
TEST_CASE("the oddities of a symmetric file are counted as they stand in it", "[load]") {
  const DataDirectory data;
  const auto load = [&](const std::string& entries) {
    const fs::path path = data.write("odd.mtx", 0, "3 3 " + entries);
    std::ifstream in(path);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    text.replace(text.find("general"), 7, "symmetric");
    std::ofstream(path) << text;
    return load_matrix<double>(path.string());
  };
  const Matrix<double> all =
      load("8\n1 1 1\n1 1 2\n2 1 3\n2 1 4\n3 1 0\n3 3 0\n3 2 nan\n2 2 inf\n");
  CHECK(all.duplicates == 2);
  CHECK(all.explicit_zeros == 2);
  CHECK(all.non_finite == 2);
  CHECK(all.csr.nnz() == 9);
  const Matrix<double> thrice = load("3\n2 1 1\n2 1 1\n2 1 1\n");
  CHECK(thrice.duplicates == 2);
  CHECK(thrice.csr.values == std::vector<double>{3, 3});
}

TEST_CASE("what is no matrix is refused with what was tried", "[load]") {
  const DataDirectory data;
  const std::string tried =
      ": neither a file, nor a generator such as stencil2d:100x100, nor a matrix of the papers";
  CHECK(error_of("") == "no matrix given; name a file, a generator or a matrix of the papers");
  CHECK(error_of("xyzzy") == "xyzzy" + tried);
  CHECK(error_of(std::string(10000, 'x')) == std::string(200, 'x') + "..." + tried);
  CHECK(error_of("scircut") == "scircut" + tried + "; did you mean scircuit?");
  CHECK(error_of("CANT") == "CANT" + tried + "; did you mean cant?");
  CHECK(error_of("webbase") == "webbase" + tried + "; did you mean webbase-1M?");
  CHECK(error_of("Freescal1") == "Freescal1" + tried + "; did you mean Freescale1?");
  CHECK(error_of("foo:3x3").find("foo:3x3: no generator is called 'foo'; there are stencil2d, ") ==
        0);
  CHECK(error_of("no/such.mtx").find("no/such.mtx: ") == 0);
  CHECK(error_of("stencil2d:3") ==
        "stencil2d:3: needs 2 sizes after the colon, as in stencil2d:NXxNY");
}

TEST_CASE("text for people", "[text]") {
  CHECK(with_commas(0) == "0");
  CHECK(with_commas(999) == "999");
  CHECK(with_commas(1000) == "1,000");
  CHECK(with_commas(18446744073709551615ull) == "18,446,744,073,709,551,615");
}
