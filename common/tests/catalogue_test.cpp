#include "sparse/catalogue.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "sparse/generators.hpp"
#include "sparse/load.hpp"
#include "sparse/statistics.hpp"
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

int count_in(unsigned paper) {
  int count = 0;
  for (const CatalogueEntry& entry : catalogue()) count += (entry.papers & paper) != 0;
  return count;
}

}  // namespace

TEST_CASE("the catalogue has every matrix of the papers' tables", "[catalogue]") {
  CHECK(count_in(kPcsr) == 26);
  CHECK(count_in(kMarkov) == 20);
  CHECK(count_in(kLightSpmv) == 14);
  std::set<std::string> names;
  for (const CatalogueEntry& entry : catalogue()) {
    CAPTURE(entry.name);
    CHECK(names.insert(entry.name).second);
    CHECK(find_in_catalogue(entry.name) == &entry);
    CHECK(entry.papers != 0);
    CHECK(*entry.kind != '\0');
    CHECK_NOTHROW(full_specification(entry.source));
  }
  CHECK(find_in_catalogue("conf5_4-8x8-05") == find_in_catalogue("qcd5_4"));
  CHECK(find_in_catalogue("") == nullptr);
  CHECK(find_in_catalogue("nosuch") == nullptr);
}

TEST_CASE("the catalogue's sizes are those that the papers print", "[catalogue]") {
  // plots/published/: name, rows and further on nonzeros, of one triangle or without stored zeros
  // where a paper counts so.
  int printed = 0;
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
      if (cells[0] == "rail4284") continue;  // not square, and of another count (its note)
      CHECK(entry->cols == entry->rows);
      const Index nnz = std::stoi(cells.at(static_cast<std::size_t>(nnz_column)));
      // A triangle has the diagonal, which is full in these, and half of the rest.
      const long long triangle = (static_cast<long long>(entry->nnz) + entry->rows) / 2;
      CHECK((nnz == entry->nnz || nnz == triangle || nnz == entry->nnz - entry->explicit_zeros));
      if (nnz != entry->nnz) CHECK(*entry->note != '\0');
      ++printed;
    }
  }
  CHECK(printed == 59);
}

TEST_CASE("every generated matrix of up to 3 million nonzeros is as near as promised",
          "[catalogue]") {
  int checked = 0;
  for (const CatalogueEntry& entry : catalogue()) {
    if (entry.nnz > 3'000'000) continue;
    CAPTURE(entry.name);
    const Statistics s = compute_statistics(generate<float>(entry.source));
    CHECK(s.rows == entry.rows);
    CHECK(s.cols == entry.cols);
    CHECK(s.nnz == Approx(entry.nnz).epsilon(0.01));
    if (entry.exact) CHECK(s.nnz == entry.nnz);
    if (entry.row_stddev >= 0) {
      CHECK(s.stddev_row <= 1.5 * entry.row_stddev);
      CHECK(s.stddev_row >= entry.row_stddev / 1.5);
    }
    if (entry.max_row >= 0) {
      const bool is_mesh = std::string(entry.stand_in).find("mesh") != std::string::npos;
      CHECK(s.max_row <= (is_mesh ? 1 : 1.5) * entry.max_row);
      CHECK(s.max_row >= entry.max_row / 1.5);
    }
    ++checked;
  }
  CHECK(checked >= 26);
}

TEST_CASE("the list for downloading is tab-separated", "[catalogue]") {
  std::ostringstream out;
  print_catalogue(out);
  std::istringstream lines(out.str());
  std::map<std::string, std::string> by_name;
  for (std::string line; std::getline(lines, line);) {
    CHECK(std::count(line.begin(), line.end(), '\t') == 5);
    by_name[line.substr(0, line.find('\t'))] = line;
  }
  CHECK(by_name.size() == catalogue().size() - 13);  // dense2 and m_* are not in the collection
  CHECK(by_name["scircuit"] == "scircuit\tHamm\tscircuit\t170998\t170998\t958936");
  CHECK(by_name["qcd5_4"] == "qcd5_4\tQCD\tconf5_4-8x8-05\t49152\t49152\t1916928");
  CHECK(by_name.count("dense2") == 0);
}

TEST_CASE("a name of the catalogue is its file where there is one, else a stand-in", "[load]") {
  const DataDirectory data;
  {
    const Matrix<double> matrix = load_matrix<double>("epb2");
    CHECK(matrix.source.name == "epb2");
    CHECK(matrix.source.origin == MatrixSource::Origin::kStandIn);
    CHECK(matrix.source.detail == full_specification(find_in_catalogue("epb2")->source));
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
  LoadOptions options;
  options.keep_coo = true;
  const Matrix<double> matrix = load_matrix<double>(path.string(), options);
  CHECK(matrix.source.name == "odd");
  CHECK(matrix.source.origin == MatrixSource::Origin::kFile);
  CHECK(matrix.duplicates == 1);
  CHECK(matrix.explicit_zeros == 2);
  CHECK(matrix.non_finite == 2);
  CHECK(matrix.csr.nnz() == 5);
  CHECK(matrix.coo.row_indices == std::vector<Index>{0, 2, 0, 1, 1, 2});
  CHECK(load_matrix<double>(path.string()).coo.nnz() == 0);
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
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("kitten", "SITTING") == 3);
  CHECK(suggestion("csr", {"coo", "dia"}).empty());
  CHECK(suggestion("cell", {"ell", "sell", "hyb"}) == "; did you mean ell or sell?");
}

TEST_CASE("the plots know every stand-in as it is made now", "[catalogue]") {
  // Records of a stand-in that was made differently are not shown (plots/measure/records.py).
  std::ifstream file(fs::path(SPMV_SOURCE_DIR) / "plots/measure/stand_ins.tsv");
  std::map<std::string, std::string> known;
  for (std::string line; std::getline(file, line);) {
    known[line.substr(0, line.find('\t'))] = line.substr(line.find('\t') + 1);
  }
  std::size_t stand_ins = 0;
  for (const CatalogueEntry& entry : catalogue()) {
    if (entry.exact) continue;
    ++stand_ins;
    // `spmv stand-in >plots/measure/stand_ins.tsv` writes them.
    CHECK(known[entry.name] == full_specification(entry.source) + '\t' + entry.stand_in);
  }
  CHECK(known.size() == stand_ins);
}
