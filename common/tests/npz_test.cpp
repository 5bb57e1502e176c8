#include "sparse/npz.hpp"

#include <zlib.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sparse/load.hpp"
#include "sparse/row_source.hpp"
#include "tests/catch.hpp"
#include "tests/matrix_text.hpp"
#include "tests/scratch.hpp"
#include "tests/sound.hpp"

using namespace spmv;
using namespace spmv::test;

namespace {

// --- Archives as NumPy writes them
// -----------------------------------------------------------------

template <typename Number>
std::string bytes_of(Number number) {
  return {reinterpret_cast<const char*>(&number), sizeof(number)};
}

template <typename Number>
std::string array_of(const std::string& type, const std::vector<Number>& numbers,
                     std::string shape = "") {
  if (shape.empty()) shape = "(" + std::to_string(numbers.size()) + ",)";
  std::string header =
      "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }";
  header.resize(118 - 1, ' ');
  std::string bytes =
      "\x93NUMPY\1" + std::string(1, '\0') + bytes_of(std::uint16_t{118}) + header + "\n";
  for (const Number number : numbers) bytes += bytes_of(number);
  return bytes;
}

std::string text_array(const std::string& type, const std::string& text) {
  return array_of<char>(type, {text.begin(), text.end()}, "()");
}

using Members = std::vector<std::pair<std::string, std::string>>;

enum class Form { kStored, kDeflated, kLong };  // kLong: with sizes in a field of 64 bits

std::string archive_of(const Members& members, Form form = Form::kStored) {
  std::string archive;
  for (const auto& [name, bytes] : members) {
    const auto crc = static_cast<std::uint32_t>(
        ::crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
    const std::string stored = form == Form::kDeflated ? deflated(bytes, -MAX_WBITS) : bytes;
    const std::string field = form != Form::kLong
                                  ? ""
                                  : bytes_of(std::uint16_t{1}) + bytes_of(std::uint16_t{16}) +
                                        bytes_of(std::uint64_t{bytes.size()}) +
                                        bytes_of(std::uint64_t{stored.size()});
    const auto short_size = [&](std::size_t size) {
      return bytes_of(field.empty() ? static_cast<std::uint32_t>(size) : 0xffffffffu);
    };
    archive += "PK\3\4" + bytes_of(std::uint16_t{45}) + bytes_of(std::uint16_t{0}) +
               bytes_of(std::uint16_t(form == Form::kDeflated ? 8 : 0)) +
               bytes_of(std::uint32_t{0x210000}) + bytes_of(crc) + short_size(stored.size()) +
               short_size(bytes.size()) + bytes_of(static_cast<std::uint16_t>(name.size())) +
               bytes_of(static_cast<std::uint16_t>(field.size())) + name + field + stored;
  }
  return archive + "PK\1\2 and the rest of the directory";
}

// (1 0 2; 0 0 0; 0 -3 0; 4 5 6)
Members members_of_small() {
  return {{"indices.npy", array_of<std::int32_t>("<i4", {0, 2, 1, 0, 1, 2})},
          {"indptr.npy", array_of<std::int32_t>("<i4", {0, 2, 2, 3, 6})},
          {"format.npy", text_array("|S3", "csr")},
          {"shape.npy", array_of<std::int64_t>("<i8", {4, 3})},
          {"data.npy", array_of<double>("<f8", {1, 2, -3, 4, 5, 6})}};
}
const Csr<double> kSmall{4, 3, {0, 2, 2, 3, 6}, {0, 2, 1, 0, 1, 2}, {1, 2, -3, 4, 5, 6}};

Members with(const std::string& name, const std::string& bytes) {
  Members members = members_of_small();
  for (auto& [member, old] : members) {
    if (member == name) old = bytes;
  }
  return members;
}

template <typename T = double>
Csr<T> read(const std::string& bytes, const LoadOptions& options = {},
            Index* duplicates = nullptr) {
  static const ScratchDirectory scratch;  // making one takes long
  write_bytes(scratch / "FILE.npz", bytes);
  return read_npz<T>(scratch / "FILE.npz", options, duplicates);
}

// Without the directory.
std::string refusal(const std::string& bytes, const LoadOptions& options = {}) {
  const std::string error = error_of([&] { read(bytes, options); });
  const std::size_t name = error.find("FILE.npz: ");
  return name == std::string::npos ? "not refused: " + error : error.substr(name + 10);
}

const std::string kSave = "save it with scipy.sparse.save_npz(file, A.tocsr())";
const std::string kDamaged = "the archive is damaged; save or fetch the file again";

}  // namespace

TEST_CASE("an .npz file is read, stored, compressed or with numbers of 64 bits", "[npz]") {
  for (const Form form : {Form::kStored, Form::kDeflated, Form::kLong}) {
    CAPTURE(static_cast<int>(form));
    CHECK(read(archive_of(members_of_small(), form)) == kSmall);
    CHECK(read<float>(archive_of(members_of_small(), form)).values ==
          std::vector<float>{1, 2, -3, 4, 5, 6});
  }
  // Another member, a header of NumPy's version 2.
  Members more = members_of_small();
  more.emplace_back("_is_array.npy", text_array("|b1", "\1"));
  CHECK(read(archive_of(more)) == kSmall);
  std::string longer = array_of<double>("<f8", {1, 2, -3, 4, 5, 6});
  longer =
      longer.substr(0, 6) + "\2" + longer.substr(7, 3) + std::string(2, '\0') + longer.substr(10);
  CHECK(read(archive_of(with("data.npy", longer))) == kSmall);
}

TEST_CASE("values of every type become those of the matrix", "[npz]") {
  const auto values = [](const std::string& array, const LoadOptions& options = {}) {
    return read(archive_of(with("data.npy", array)), options).values;
  };
  const std::vector<double> small{1, 2, 3, 4, 5, 6};
  CHECK(values(array_of<float>("<f4", {1, 2, 3, 4, 5, 6})) == small);
  CHECK(values(array_of<std::int8_t>("|i1", {1, 2, 3, 4, 5, -6})) ==
        std::vector<double>{1, 2, 3, 4, 5, -6});
  CHECK(values(array_of<std::uint8_t>("|b1", {1, 1, 0, 1, 1, 1})) ==
        std::vector<double>{1, 1, 0, 1, 1, 1});
  CHECK(values(array_of<std::uint8_t>("|u1", {1, 2, 3, 4, 5, 255}))[5] == 255);
  CHECK(values(array_of<std::int16_t>("<i2", {1, 2, 3, 4, 5, -6}))[5] == -6);
  CHECK(values(array_of<std::uint16_t>("<u2", {1, 2, 3, 4, 5, 65535}))[5] == 65535);
  CHECK(values(array_of<std::int32_t>("<i4", {1, 2, 3, 4, 5, -6}))[5] == -6);
  CHECK(values(array_of<std::uint32_t>("<u4", {1, 2, 3, 4, 5, 4294967295u}))[5] == 4294967295.0);
  CHECK(values(array_of<std::int64_t>("<i8", {1, 2, 3, 4, 5, -6}))[5] == -6);
  CHECK(values(array_of<std::uint64_t>("<u8", {1, 2, 3, 4, 5, 1ull << 63}))[5] == 0x1p63);
  const std::string complex =
      array_of<double>("<c16", {1, 9, 2, 9, 3, 9, 4, 9, 5, 9, 6, 9}, "(6,)");
  CHECK(values(complex, {.real_part = true}) == small);
  CHECK(refusal(archive_of(with("data.npy", complex))) ==
        "the values are complex; give --complex real to read their real parts");
  const std::string extreme = array_of<double>("<f8", {1e300, NAN, -INFINITY, 1, 1, 1});
  const std::vector<float> single = read<float>(archive_of(with("data.npy", extreme))).values;
  CHECK(single[0] == std::numeric_limits<float>::infinity());
  CHECK(std::isnan(single[1]));
  CHECK(single[2] == -std::numeric_limits<float>::infinity());
}

TEST_CASE("indices of 64 bits, rows in any order, columns that stand twice", "[npz]") {
  Members members = with("indices.npy", array_of<std::int64_t>("<i8", {2, 0, 1, 2, 0, 2}));
  members[1].second = array_of<std::int64_t>("<i8", {0, 2, 2, 3, 6});
  Index duplicates = -1;
  const Csr<double> matrix = read(archive_of(members), {}, &duplicates);
  CHECK(is_sound(matrix));
  CHECK(matrix == Csr<double>{4, 3, {0, 2, 2, 3, 5}, {0, 2, 1, 0, 2}, {2, 1, -3, 5, 10}});
  CHECK(duplicates == 1);
}

TEST_CASE("empty matrices", "[npz]") {
  for (const auto& [rows, cols] : {std::pair(0, 0), {0, 5}, {3, 0}, {3, 5}}) {
    const Members members{
        {"indices.npy", array_of<std::int32_t>("<i4", {})},
        {"indptr.npy", array_of<std::int32_t>("<i4", std::vector(rows + 1, 0))},
        {"format.npy", text_array("<U3", std::string("c\0\0\0s\0\0\0r\0\0\0", 12))},
        {"shape.npy", array_of<std::int64_t>("<i8", {rows, cols})},
        {"data.npy", array_of<double>("<f8", {})}};
    const Csr<double> matrix = read(archive_of(members));
    CHECK(matrix.rows == rows);
    CHECK(matrix.cols == cols);
    CHECK(is_sound(matrix));
  }
}

TEST_CASE("what is no matrix in CSR is refused", "[npz]") {
  CHECK(refusal("") == "the file is empty; save or fetch it again");
  CHECK(refusal("%%MatrixMarket matrix coordinate real general\n") ==
        "is no .npz archive; " + kSave + ", or fetch it again");
  CHECK(refusal(archive_of({})) ==
        "has no array \"format\", so it is no sparse matrix, or cut short; " + kSave +
            ", or fetch it again");
  std::string streamed = archive_of(members_of_small());
  streamed[6] = 8;  // its sizes stand behind it
  CHECK(refusal(streamed) ==
        "'indices.npy' cannot be read: encrypted, compressed otherwise, or written to a pipe; " +
            kSave);
  const std::vector<double> small{1, 2, 3, 4, 5, 6};
  for (const auto& [member, bytes, said] : std::vector<std::array<std::string, 3>>{
           {"format.npy", text_array("|S3", "csc"), "the matrix is stored as 'csc'"},
           {"data.npy", array_of(">f8", small), "the array \"data\" cannot be read"},
           {"data.npy", array_of<std::uint16_t>("<f2", {1, 2, 3, 4, 5, 6}),
            "the array \"data\" is of the type '<f2', which cannot be read"},
           {"data.npy", array_of("<f8", small, "(2, 3)"),
            "the array \"data\" has the shape '(2, 3)', not one dimension"},
           {"indices.npy", array_of("<f8", small),
            "the array \"indices\" is of the type '<f8', which cannot be read"},
           {"shape.npy", array_of<std::int64_t>("<i8", {4, 3, 1}), "has not two dimensions"},
           {"data.npy", array_of<double>("<f8", {1, 2, 3}),
            "has 5 offsets, 6 columns and 3 values for 4 rows"}}) {
    CHECK(refusal(archive_of(with(member, bytes))) == said + "; " + kSave);
  }
  CHECK(refusal(archive_of(with("shape.npy", array_of<std::int64_t>("<i8", {1ll << 40, 3})))) ==
        "its shape has a number that is not from 0 to 2147483647, the most that 32-bit indices "
        "allow; use a smaller matrix");
  CHECK(refusal(archive_of(with("shape.npy", array_of<std::int64_t>("<i8", {4, -3}))))
            .find("its shape has a number") == 0);
  const ScratchDirectory scratch;
  CHECK(error_of([&] { read_npz<double>(scratch / "none.npz"); }).find("no such file") !=
        std::string::npos);
  CHECK(error_of([&] { read_npz<double>(scratch.path()); }).find("is no file") !=
        std::string::npos);
}

TEST_CASE("offsets and columns that are wrong are refused, and named", "[npz]") {
  const auto offsets = [](std::vector<std::int32_t> numbers) {
    return refusal(archive_of(with("indptr.npy", array_of("<i4", numbers))));
  };
  const auto said = [](int row, int offset) {
    return "row " + std::to_string(row) + " has the offset " + std::to_string(offset) +
           ": offsets must ascend from 0 to the number of nonzeros, 6; " + kSave;
  };
  CHECK(offsets({1, 2, 2, 3, 6}) == said(0, 1));
  CHECK(offsets({0, 2, 1, 3, 6}) == said(2, 1));
  CHECK(offsets({0, 7, 7, 7, 6}) == said(1, 7));
  CHECK(offsets({0, 2, 2, 3, 5}) == said(4, 5));
  CHECK(offsets({0, -2, 2, 3, 6}) == said(1, -2));
  for (const std::int64_t column :
       {std::int64_t{3}, std::int64_t{-1}, (std::int64_t{1} << 32) + 1}) {
    CHECK(refusal(archive_of(
              with("indices.npy", array_of<std::int64_t>("<i8", {0, 2, 1, 0, column, 2})))) ==
          "nonzero 4 is in column " + std::to_string(column) + ", which is not from 0 to 2; " +
              kSave);
  }
  CHECK(refusal(
            archive_of(with("indices.npy", array_of<std::uint64_t>("<u8", {0, 2, 1, 0, ~0ull, 2}))))
            .find("nonzero 4 is in column -1") == 0);
}

TEST_CASE("a matrix larger than the limit is refused before it is read", "[npz]") {
  CHECK(refusal(archive_of(members_of_small()), {.memory_limit_bytes = 50})
            .find("the matrix needs 88 bytes of memory, more than the limit of 50 bytes") == 0);
  // A header that promises what the file has not: nothing of that size is allocated.
  std::string many = array_of<double>("<f8", {1, 2, -3, 4, 5, 6}, "(6,)");
  CHECK(refusal(archive_of(with("data.npy", many.substr(0, many.size() - 8)))) == kDamaged);
}

TEST_CASE("an archive that is cut short or damaged is refused, or nothing of the matrix differs",
          "[npz]") {
  for (const Form form : {Form::kStored, Form::kDeflated, Form::kLong}) {
    const std::string whole = archive_of(members_of_small(), form);
    const auto is_refused_or_same = [&](const std::string& bytes) {
      try {
        return read(bytes) == kSmall;
      } catch (const InputError& error) {
        return std::string(error.what()).find("; ") != std::string::npos;
      }
    };
    std::size_t wrong = 0, refused = 0;
    const std::size_t of_members = whole.rfind("PK\1\2");
    for (std::size_t length = 0; length < of_members; ++length) {
      refused += refusal(whole.substr(0, length)).find("not refused") != 0;
    }
    CHECK(refused == of_members);
    for (std::size_t at = 0; at < whole.size(); ++at) {
      for (const int bits : {1, 0x80, 0xff}) {
        std::string damaged = whole;
        damaged[at] = static_cast<char>(damaged[at] ^ bits);
        wrong += !is_refused_or_same(damaged);
      }
    }
    CHECK(wrong == 0);
  }
  // The bytes of a value.
  std::string bytes = archive_of(members_of_small());
  const std::size_t value = bytes.find(bytes_of(-3.0));
  bytes[value] = 1;
  CHECK(refusal(bytes) == kDamaged);
}

TEST_CASE("load_matrix reads an .npz file by its path and by a name of the catalogue", "[npz]") {
  const ScratchDirectory data;
  const EnvironmentVariable variable("SPMV_DATA", data.path().c_str());
  CHECK(error_of([] { load_matrix<double>("rgg_2e20"); }) ==
        "rgg_2e20: not made yet; `make data ARGS=large` makes it, with SciPy");
  write_bytes(data / "rgg_2e20.npz", archive_of(members_of_small()));
  const Matrix<double> named = load_matrix<double>("rgg_2e20");
  CHECK(named.source.name == "rgg_2e20");
  CHECK(named.source.origin == MatrixSource::Origin::kFile);
  CHECK(named.csr == kSmall);
  write_bytes(data / "my.matrix.npz",
              archive_of(with("data.npy", array_of<double>("<f8", {0, NAN, -3, 0, 5, 6}))));
  const Matrix<double> mine = load_matrix<double>((data / "my.matrix.npz").string());
  CHECK(mine.source.name == "my.matrix");
  CHECK(mine.explicit_zeros == 2);
  CHECK(mine.non_finite == 1);
}

TEST_CASE("parts of an .npz file are rows of the whole, streamed or not", "[npz]") {
  const ScratchDirectory data;
  const std::string path = (data / "small.npz").string();
  write_bytes(path, archive_of(members_of_small()));
  for (const bool streamed : {false, true}) {
    const RowSource<double> source(path, {}, streamed);
    CHECK(source.rows() == 4);
    CHECK(source.cols() == 3);
    CHECK(source.lengths(0, 4) == std::vector<Index>{2, 0, 1, 3});
    CHECK(source.read(2, 4, 2) == Csr<double>{2, 3, {0, 1, 4}, {1, 0, 1, 2}, {-3, 4, 5, 6}});
  }
}
