#include "sparse/matrix_market.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "sparse/convert.hpp"
#include "tests/bits.hpp"
#include "tests/catch.hpp"
#include "tests/matrix_text.hpp"
#include "tests/scratch.hpp"
#include "tests/sound.hpp"

using namespace spmv;
using namespace spmv::test;

namespace {

namespace fs = std::filesystem;

// `text` must hold exactly `entries`, "row column value, ...", in this order.
template <typename T>
void check_entries_as(const std::string& text, Index rows, Index cols, const std::string& entries,
                      const LoadOptions& options) {
  const Coo<T> coo = parse<T>(text, options);
  CHECK(coo.rows == rows);
  CHECK(coo.cols == cols);
  REQUIRE(coo.row_indices.size() == coo.values.size());
  REQUIRE(coo.column_indices.size() == coo.values.size());
  std::istringstream all(entries);
  std::size_t k = 0;
  for (std::string entry; std::getline(all, entry, ','); ++k) {
    CAPTURE(k, entry);
    REQUIRE(k < coo.values.size());
    std::istringstream in(entry);
    Index row = 0, column = 0;
    std::string number;
    in >> row >> column >> number;
    CHECK(coo.row_indices[k] + 1 == row);
    CHECK(coo.column_indices[k] + 1 == column);
    const T expected = static_cast<T>(std::strtod(number.c_str(), nullptr));
    CHECK((std::isnan(expected) ? std::isnan(coo.values[k]) : same_bits(coo.values[k], expected)));
  }
  CHECK(k == coo.values.size());
}

// In both precisions.
void check_entries(const std::string& text, Index rows, Index cols, const std::string& entries,
                   const LoadOptions& options = {}) {
  CAPTURE(text);
  check_entries_as<double>(text, rows, cols, entries, options);
  check_entries_as<float>(text, rows, cols, entries, options);
}

template <typename T = double>
std::string message_of(std::string_view text, const LoadOptions& options = {}) {
  return error_of([&] { parse<T>(text, options); });
}

std::string banner(const std::string& field, const std::string& symmetry) {
  return "%%MatrixMarket matrix coordinate " + field + " " + symmetry + "\n";
}

const std::string kRealGeneral = "%%MatrixMarket matrix coordinate real general\n";

constexpr LoadOptions kRealPart{.real_part = true};

}  // namespace

TEST_CASE("coordinate files of every field", "[matrix_market]") {
  check_entries(kRealGeneral + "3 4 3\n1 1 1.5\n3 4 -2e3\n2 1 0.1\n", 3, 4,
                "1 1 1.5, 3 4 -2000, 2 1 0.1");
  check_entries(banner("double", "general") + "1 1 1\n1 1 2.5\n", 1, 1, "1 1 2.5");
  check_entries(
      banner("integer", "general") + "2 2 4\n1 1 7\n1 2 -3\n2 1 +4\n2 2 123456789012345678901\n", 2,
      2, "1 1 7, 1 2 -3, 2 1 4, 2 2 123456789012345678901");
  check_entries(banner("pattern", "general") + "3 3 2\n3 1\n1 3\n", 3, 3, "3 1 1, 1 3 1");
}

TEST_CASE("complex files give their real parts where that was asked for", "[matrix_market]") {
  const std::string text = banner("complex", "general") + "2 2 2\n1 1 3 4\n2 1 -5 12.0\n";
  check_entries(text, 2, 2, "1 1 3, 2 1 -5", kRealPart);
  CHECK(message_of(text) ==
        "FILE:1: the values are complex; give --complex real to read their real parts");
}

TEST_CASE("a stored triangle is expanded, each mirror image after its original",
          "[matrix_market]") {
  check_entries(banner("real", "symmetric") + "3 3 4\n3 1 2.5\n2 2 7\n3 3 0\n2 1 -1\n", 3, 3,
                "3 1 2.5, 1 3 2.5, 2 2 7, 3 3 0, 2 1 -1, 1 2 -1");
  check_entries(banner("pattern", "symmetric") + "2 2 2\n2 1\n1 1\n", 2, 2, "2 1 1, 1 2 1, 1 1 1");
  check_entries(banner("integer", "skew-symmetric") + "3 3 3\n3 1 2\n2 2 0\n3 2 -4\n", 3, 3,
                "3 1 2, 1 3 -2, 2 2 0, 3 2 -4, 2 3 4");
  check_entries(banner("real", "skew-symmetric") + "3 3 3\n1 1 -0.0e5 \r\n2 2 +.00D9\n3 3 0\n", 3,
                3, "1 1 -0.0, 2 2 0, 3 3 0");

  const std::string hermitian = banner("complex", "Hermitian") + "2 2 2\n1 1 2 0\n2 1 3 -4\n";
  check_entries(hermitian, 2, 2, "1 1 2, 2 1 3, 1 2 3", kRealPart);

  const std::string skew = banner("complex", "skew-symmetric") + "2 2 1\n2 1 3 -4\n";
  check_entries(skew, 2, 2, "2 1 3, 1 2 -3", kRealPart);
}

TEST_CASE("matrices without entries, rows or columns", "[matrix_market]") {
  check_entries(kRealGeneral + "0 0 0\n", 0, 0, "");
  check_entries(kRealGeneral + "0 0 0", 0, 0, "");
  check_entries(kRealGeneral + "5 0 0\n% nothing\n\n", 5, 0, "");
  check_entries(kRealGeneral + "3 3 0\n", 3, 3, "");
  check_entries(kRealGeneral + "1 4 2\n1 4 1\n1 2 2\n", 1, 4, "1 4 1, 1 2 2");
  check_entries(kRealGeneral + "4 1 2\n4 1 1\n2 1 2\n", 4, 1, "4 1 1, 2 1 2");
}

TEST_CASE("white space, comments and letter case as files have them", "[matrix_market]") {
  const std::string entries = "1 1 1.5, 2 3 -2";
  const std::string plain = kRealGeneral + "2 3 2\n1 1 1.5\n2 3 -2\n";
  check_entries(plain, 2, 3, entries);
  check_entries(plain.substr(0, plain.size() - 1), 2, 3, entries);  // last line lacks its end

  std::string crlf;
  for (const char c : plain) crlf += c == '\n' ? std::string("\r\n") : std::string(1, c);
  check_entries(crlf, 2, 3, entries);
  check_entries(crlf.substr(0, crlf.size() - 1), 2, 3, entries);

  check_entries(
      "%%matrixMARKET\t MATRIX Coordinate REAL General  \n%\n%comment 1 1 1\n\n  % another\n"
      "\t 2  3\t2 \n\n  \n% between\n \t1\t1  1.5  \t\n   % and\n%\n2 3 -2 \n%the end\n\n \t",
      2, 3, entries);
  check_entries("\xef\xbb\xbf" + plain, 2, 3, entries);
  check_entries(kRealGeneral + "+2 +3 +2\n+1 01 +1.5\n0000000000000000000000002 +03 -2.\n", 2, 3,
                entries);
}

TEST_CASE("values in every notation", "[matrix_market]") {
  check_entries(kRealGeneral +
                    "1 1 16\n1 1 5.\n1 1 .5\n1 1 -.25e1\n1 1 1E+3\n1 1 1e-3\n1 1 1.5D+03\n"
                    "1 1 1.5d-1\n1 1 2d0\n1 1 +0.0\n1 1 -0\n1 1 1e400\n1 1 -1e400\n1 1 1e-400\n"
                    "1 1 -1D-400\n1 1 Inf\n1 1 -infinity\n",
                1, 1,
                "1 1 5, 1 1 0.5, 1 1 -2.5, 1 1 1000, 1 1 0.001, 1 1 1500, 1 1 0.15, 1 1 2, 1 1 0, "
                "1 1 -0.0, 1 1 inf, 1 1 -inf, 1 1 0, 1 1 -0.0, 1 1 inf, 1 1 -inf");
  check_entries(kRealGeneral + "1 1 3\n1 1 nan\n1 1 NaN\n1 1 -nan\n", 1, 1,
                "1 1 nan, 1 1 nan, 1 1 nan");
  // Beyond float, within double; and the smallest double.
  const Coo<float> narrow = parse<float>(kRealGeneral + "1 1 3\n1 1 -1e39\n1 1 1e-50\n1 1 1e-45");
  CHECK(same_bits(narrow.values, std::vector<float>{-std::numeric_limits<float>::infinity(), 0.0f,
                                                    std::numeric_limits<float>::denorm_min()}));
  const Coo<double> tiny = parse<double>(kRealGeneral + "1 1 1\n1 1 4.9e-324");
  CHECK(tiny.values[0] == std::numeric_limits<double>::denorm_min());
}

TEST_CASE("values are rounded once, to the nearest", "[matrix_market]") {
  // Against the C library, which is slow and right.
  std::mt19937_64 random(7);
  std::istringstream known(
      "9007199254740993 9007199254740992 0.1 1e22 1e23 123456e-22 8388609.5 16777217 "
      "16777219 33554434.0000000001 1.00000005960464477539 1.000000059604644775390625 "
      "1e-22 1.000000059604644775390626 1.000000178813934326171875 "
      "3.4028235677973366e38 179769313486231580793e289 "
      "0.000000000000000000000000000000000000011754942 ");
  std::vector<std::string> numbers(std::istream_iterator<std::string>(known), {});
  for (int k = 0; k < 20000; ++k) {
    std::string digits = std::to_string(random() >> (random() % 64));
    if (random() % 2) digits.insert(random() % (digits.size() + 1), ".");
    if (random() % 2) digits += "e" + std::to_string(static_cast<int>(random() % 60) - 30);
    numbers.push_back((random() % 2 ? "-" : "") + digits);
    // Halfway between two floats, or a little off.
    const float low =
        std::bit_cast<float>(static_cast<std::uint32_t>(0x3f000000u + (random() & 0x07ffffffu)));
    const double halfway = (static_cast<double>(low) + std::nextafter(low, 1e30f)) / 2;
    std::ostringstream exact;
    exact.precision(12 + static_cast<int>(random() % 14));
    exact << halfway;
    numbers.push_back(exact.str());
  }
  std::string text = kRealGeneral + "1 1 " + std::to_string(numbers.size()) + "\n";
  for (const std::string& number : numbers) text += "1 1 " + number + "\n";
  const std::vector<double> doubles = parse<double>(text).values;
  const std::vector<float> floats = parse<float>(text).values;
  REQUIRE(doubles.size() == numbers.size());
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    CAPTURE(numbers[k]);
    REQUIRE(same_bits(doubles[k], std::strtod(numbers[k].c_str(), nullptr)));
    REQUIRE(same_bits(floats[k], std::strtof(numbers[k].c_str(), nullptr)));
  }
}

TEST_CASE("entries keep the order of the file, duplicates and zeros", "[matrix_market]") {
  check_entries(kRealGeneral + "3 3 5\n3 3 1\n1 1 2\n3 3 0\n2 1 0\n1 1 -2\n", 3, 3,
                "3 3 1, 1 1 2, 3 3 0, 2 1 0, 1 1 -2");
}

TEST_CASE("gzip is recognised by its content", "[matrix_market]") {
  const ScratchDirectory scratch;
  const std::string head = kRealGeneral + "2 2 3\n1 1 1\n";
  const std::string rest = "2 1 2\n2 2 3\n";
  const std::string entries = "1 1 1, 2 1 2, 2 2 3";
  check_entries(gzip(head + rest), 2, 2, entries);
  check_entries(gzip(head) + gzip(rest), 2, 2, entries);                     // two members
  check_entries(gzip(head) + gzip("") + gzip(rest), 2, 2, entries);          // one of them empty
  check_entries(gzip(head + rest) + std::string(512, '\0'), 2, 2, entries);  // padded for a tape

  write_bytes(scratch / "compressed.mtx", gzip(head + rest));
  write_bytes(scratch / "plain.mtx.gz", head + rest);
  for (const char* name : {"compressed.mtx", "plain.mtx.gz"}) {
    CHECK(read_matrix_market<double>(scratch / name).values == std::vector<double>{1, 2, 3});
  }
}

TEST_CASE("a file of several pieces, and its first fault", "[matrix_market]") {
  const int kEntries = 300000;
  std::string text = kRealGeneral + "100 100 300000\n";
  for (int k = 0; k < kEntries; ++k) {
    text += "1 " + std::to_string(k % 100 + 1) + " " + std::to_string(k) + "\n";
  }
  for (const std::string& file : {text, gzip(text)}) {
    const Coo<double> coo = parse<double>(file);
    REQUIRE(coo.nnz() == kEntries);
    bool is_right = true;
    for (int k = 0; k < kEntries; ++k) {
      is_right &= coo.column_indices[k] == k % 100 && coo.values[k] == k;
    }
    CHECK(is_right);
  }
  text.replace(text.find(" 250000\n"), 7, " 25000x");
  text.replace(text.find(" 270000\n"), 7, " 27000x");
  CHECK(message_of(text).starts_with("FILE:250003: the value '25000x' is not of the field real; "));
}

TEST_CASE("a matrix that does not fit in memory is refused before it is allocated",
          "[matrix_market]") {
  const std::string text = kRealGeneral + "1000 1000 2\n1 1 1\n2 2 2\n";
  LoadOptions options;
  options.memory_limit_bytes = 8063;
  CHECK(message_of(text, options) ==
        "FILE:2: the matrix needs 7.9 KiB of memory, more than the limit of 7.9 KiB; use a smaller "
        "matrix, or give --memory-limit 1M if this machine has as much");
  options.memory_limit_bytes = 8064;  // 2 x (4 x 4 + 2 x 8) + 2 x 4 x 1000
  CHECK(message_of(text, options) == "no error");
  CHECK(message_of(gzip(text), options) == "no error");
  options.memory_limit_bytes = 8048;  // values of 4 bytes
  CHECK(message_of<float>(text, options) == "no error");
  CHECK(message_of<double>(text, options) != "no error");
  options.memory_limit_bytes = std::size_t{1} << 40;  // nothing in the file backs its size line
  CHECK(message_of(kRealGeneral + "9 9 900000\n1 1 1\n", options) ==
        "FILE:2: the size line announces 900000 entries, but the file holds 1; correct the size "
        "line, or fetch the file again if it is cut short");
}

TEST_CASE("what cannot be opened as a file", "[matrix_market]") {
  const ScratchDirectory scratch;
  const auto message = [](const fs::path& path) {
    return error_of([&] { read_matrix_market<double>(path); });
  };
  const fs::path missing = scratch / "missing.mtx";
  CHECK(message(missing) == missing.string() + ": no such file; check the path");
  CHECK(message(scratch.path()) ==
        scratch.path().string() + ": is a directory; give a .mtx or .mtx.gz file in it");
  CHECK(message("/dev/null") ==
        "/dev/null: is neither a file nor a pipe; give a .mtx or .mtx.gz file");
  write_bytes(scratch / "file", "");
  const fs::path below_file = (scratch / "file") / "x.mtx";
  CHECK(message(below_file) == below_file.string() +
                                   ": cannot be opened (Not a directory); check the path and its "
                                   "permissions");
  CHECK(message(scratch / "file") ==
        (scratch / "file").string() + ": the file is empty; fetch it again");
  CHECK(message(scratch / "two\nlines.mtx") ==
        (scratch / "two?lines.mtx").string() + ": no such file; check the path");
  if (::geteuid() != 0) {  // root may read everything
    REQUIRE(::chmod((scratch / "file").c_str(), 0) == 0);
    CHECK(message(scratch / "file") ==
          (scratch / "file").string() +
              ": cannot be opened (Permission denied); check the path and its permissions");
  }
}

TEST_CASE("a pipe is read like a file", "[matrix_market]") {
  const ScratchDirectory scratch;
  const fs::path pipe = scratch / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  std::thread writer([&] { write_bytes(pipe, gzip(kRealGeneral + "2 2 1\n2 1 4.5\n")); });
  const Coo<double> coo = read_matrix_market<double>(pipe);
  writer.join();
  REQUIRE(coo.values.size() == 1);
  CHECK(coo.values[0] == 4.5);
}

// Each file of the corpus names one way in which a file can be wrong; expected.tsv holds, for each,
// what must be said about it.
TEST_CASE("malformed files are refused with one line that helps", "[matrix_market]") {
  const fs::path corpus = fs::path(SPMV_SOURCE_DIR) / "common" / "tests" / "malformed";
  std::set<std::string> listed;
  for (const auto& row : read_table("malformed/expected.tsv")) {
    const std::string& name = row.at(0);
    REQUIRE(row.at(1).starts_with("FILE:"));
    const std::string expected = (corpus / name).string() + row[1].substr(4);
    listed.insert(name);
    REQUIRE(fs::exists(corpus / name));

    const LoadOptions options{.real_part = name.starts_with("real_part_"),
                              .memory_limit_bytes = 16 << 20};
    const auto message = [&]<typename T>(T) {
      return error_of([&] { read_matrix_market<T>(corpus / name, options); });
    };
    CHECK(message(double{}) == expected);
    CHECK(message(float{}) == expected);
  }
  CHECK(listed.size() >= 60);
  for (const auto& file : fs::directory_iterator(corpus)) {
    const std::string name = file.path().filename().string();
    if (name == "expected.tsv" || name == ".gitattributes") continue;
    CAPTURE(name);
    CHECK(listed.count(name) == 1);
  }
}

TEMPLATE_TEST_CASE("COO to CSR and back, against a map", "[convert]", float, double) {
  std::mt19937_64 random(5);
  for (int k = 0; k < 400; ++k) {
    Index rows = static_cast<Index>(random() % 30);
    Index cols = static_cast<Index>(random() % 30);
    if (k % 10 == 0) rows = 1;
    if (k % 10 == 1) cols = 1;
    if (k == 2) rows = cols = 0;
    std::size_t nnz = rows == 0 || cols == 0 ? 0 : random() % 200;
    if (k % 7 == 0) nnz = std::min<std::size_t>(nnz, 5);  // mostly empty rows
    Coo<TestType> coo;
    coo.rows = rows;
    coo.cols = cols;
    std::map<std::pair<Index, Index>, TestType> expected;
    for (std::size_t entry = 0; entry < nnz; ++entry) {
      const Index row = static_cast<Index>(random() % static_cast<unsigned>(rows));
      const Index col = static_cast<Index>(random() % static_cast<unsigned>(cols));
      // Sums of these depend on their order, and the order is promised.
      const TestType value = static_cast<TestType>(static_cast<double>(random() % 2001) / 1000 - 1);
      coo.add(row, col, value);
      const auto [place, is_new] = expected.emplace(std::pair(row, col), value);
      if (!is_new) place->second += value;
    }

    Index duplicates = -1;
    const Csr<TestType> csr = to_csr(coo, &duplicates);
    CAPTURE(k, rows, cols, nnz);
    REQUIRE(csr.rows == rows);
    REQUIRE(csr.cols == cols);
    REQUIRE(is_sound(csr));
    REQUIRE(csr.values.size() == expected.size());
    CHECK(duplicates == static_cast<Index>(nnz - expected.size()));

    // A map iterates in the order of (row, column): the order of CSR.
    const Coo<TestType> sorted = to_coo(csr);
    REQUIRE(sorted.rows == rows);
    REQUIRE(sorted.cols == cols);
    REQUIRE(sorted.row_indices.size() == expected.size());
    std::size_t entry = 0;
    for (const auto& [position, value] : expected) {
      REQUIRE(sorted.row_indices[entry] == position.first);
      REQUIRE(sorted.column_indices[entry] == position.second);
      REQUIRE(same_bits(sorted.values[entry], value));
      ++entry;
    }

    const Csr<TestType> again = to_csr(sorted, &duplicates);
    CHECK(duplicates == 0);
    CHECK(again.row_offsets == csr.row_offsets);
    CHECK(again.column_indices == csr.column_indices);
    CHECK(same_bits(again.values, csr.values));
  }
}
