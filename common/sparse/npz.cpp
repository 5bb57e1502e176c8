#include "sparse/npz.hpp"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <deque>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sparse/convert.hpp"
#include "sparse/memory.hpp"
#include "sparse/text.hpp"

namespace spmv {
namespace {

static_assert(std::endian::native == std::endian::little, "the files are little-endian");

constexpr const char* kDamaged = "the archive is damaged; save or fetch the file again";
constexpr const char* kHowToSave = "save it with scipy.sparse.save_npz(file, A.tocsr())";

// The number that begins `at` bytes into `bytes`, which has more.
template <typename Number>
Number number_at(std::string_view bytes, std::size_t at) {
  Number number;
  std::memcpy(&number, bytes.data() + at, sizeof(number));
  return number;
}

// --- The archive ---------------------------------------------------------------------------------

// A ZIP archive as NumPy writes it: its members one after the other, each behind a header with its
// sizes. (The directory behind them says the same again, and is not read.)
class Archive {
 public:
  // Members that would be larger than `most_bytes` inflated are not.
  Archive(const std::filesystem::path& path, double most_bytes)
      : name_(printable(path.string())), most_bytes_(most_bytes) {
    std::error_code error;
    if (!std::filesystem::exists(path, error)) fail("no such file; check the path");
    if (!std::filesystem::is_regular_file(path, error)) fail("is no file; give an .npz file");
    std::ifstream file(path, std::ios::binary);
    if (!file) fail("cannot be opened; check its permissions");
    bytes_.resize(std::filesystem::file_size(path));
    if (!file.read(bytes_.data(), static_cast<std::streamsize>(bytes_.size()))) {
      fail("cannot be read; check the file");
    }
    if (bytes_.empty()) fail("the file is empty; save or fetch it again");
    read_members();
  }

  // The bytes of the array `name`, inflated: they must have been right.
  std::string_view content(const std::string& name) {
    const auto found = members_.find(name + ".npy");
    if (found == members_.end()) {
      fail(
          fmt::format("has no array \"{}\", so it is no sparse matrix, or cut short; {}, or fetch "
                      "it again",
                      name, kHowToSave));
    }
    const Member& member = found->second;
    std::string_view content = member.stored;
    if (member.is_deflated) {
      const auto bytes = static_cast<double>(member.bytes);
      if (bytes > most_bytes_) fail("the matrix " + more_than_limit(bytes, most_bytes_));
      content = inflated_.emplace_back(inflated(content, member.bytes));
    }
    const auto* const bytes = reinterpret_cast<const Bytef*>(content.data());
    if (content.size() != member.bytes || ::crc32_z(0, bytes, content.size()) != member.crc) {
      fail(kDamaged);
    }
    return content;
  }

  [[noreturn]] void fail(const std::string& what) const { throw InputError(name_ + ": " + what); }

 private:
  struct Member {
    std::string_view stored;
    std::uint64_t bytes = 0;
    std::uint32_t crc = 0;
    bool is_deflated = false;
  };

  // Of `stored` at most `bytes` bytes; fewer if it is damaged.
  static std::string inflated(std::string_view stored, std::uint64_t bytes) {
    constexpr std::size_t kPiece = std::size_t{1} << 30;
    ::z_stream z{};
    if (::inflateInit2(&z, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
    // No byte of a deflated stream stands for more than 1,032.
    std::string text(std::min<std::uint64_t>(bytes, 1032 * stored.size()), '\0');
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(stored.data()));
    z.next_out = reinterpret_cast<Bytef*>(text.data());
    do {
      z.avail_in = static_cast<uInt>(std::min(stored.size() - z.total_in, kPiece));
      z.avail_out = static_cast<uInt>(std::min(text.size() - z.total_out, kPiece));
    } while (::inflate(&z, Z_NO_FLUSH) == Z_OK);
    text.resize(z.total_out);
    ::inflateEnd(&z);
    return text;
  }

  void read_members() {
    constexpr std::size_t kHeaderBytes = 30;
    constexpr std::uint64_t kInLongField = 0xffffffff;
    std::string_view rest = bytes_;
    const auto next = [&](std::uint64_t count) {
      if (count > rest.size()) fail(kDamaged);
      const std::string_view bytes = rest.substr(0, count);
      rest.remove_prefix(count);
      return bytes;
    };
    if (!rest.starts_with("PK")) {
      fail(fmt::format("is no .npz archive; {}, or fetch it again", kHowToSave));
    }
    while (rest.starts_with("PK\3\4")) {
      const std::string_view header = next(kHeaderBytes);
      const auto flags = number_at<std::uint16_t>(header, 6);
      const auto method = number_at<std::uint16_t>(header, 8);
      Member member{{},
                    number_at<std::uint32_t>(header, 22),
                    number_at<std::uint32_t>(header, 14),
                    method == Z_DEFLATED};
      std::uint64_t stored_bytes = number_at<std::uint32_t>(header, 18);
      const std::string name(next(number_at<std::uint16_t>(header, 26)));
      // A field of kind 1 holds both sizes in 64 bits.
      const std::string_view field = next(number_at<std::uint16_t>(header, 28));
      if (member.bytes == kInLongField && field.size() >= 20 &&
          number_at<std::uint16_t>(field, 0) == 1) {
        member.bytes = number_at<std::uint64_t>(field, 4);
        stored_bytes = number_at<std::uint64_t>(field, 12);
      }
      constexpr unsigned kEncrypted = 1, kSizesBehind = 8;
      if ((method != 0 && !member.is_deflated) || (flags & (kEncrypted | kSizesBehind))) {
        fail(fmt::format(
            "{} cannot be read: encrypted, compressed otherwise, or written to a pipe; {}",
            in_quotes(name), kHowToSave));
      }
      member.stored = next(stored_bytes);
      if (!members_.emplace(name, member).second) fail(kDamaged);
    }
  }

  std::string name_, bytes_;
  double most_bytes_;
  std::map<std::string, Member> members_;
  std::deque<std::string> inflated_;  // of which content() has given views
};

// --- An array ------------------------------------------------------------------------------------

// One array of an archive: what its header says, and its elements.
class Array {
 public:
  Array(Archive& archive, const std::string& name)
      : archive_(archive), name_(name), bytes_(archive.content(name)) {
    const std::string_view magic = next(8);
    if (!magic.starts_with("\x93NUMPY") || magic[6] < 1 || magic[6] > 3) fail_in_array();
    const std::size_t header_bytes =
        magic[6] > 1 ? number_at<std::uint32_t>(next(4), 0) : number_at<std::uint16_t>(next(2), 0);
    const std::string_view header = next(header_bytes);
    const std::string_view type = value_of(header, "'descr':");
    const std::size_t type_end = type.size() > 2 ? type.find(type[0], 1) : std::string::npos;
    if ((type[0] != '\'' && type[0] != '"') || type_end == std::string::npos) fail_in_array();
    type_ = type.substr(1, type_end - 1);
    const std::string_view shape = value_of(header, "'shape':");
    const std::size_t shape_end = shape.find(')');
    if (shape[0] != '(' || shape_end == std::string::npos) fail_in_array();
    shape_ = shape.substr(0, shape_end + 1);
    if (type_.size() < 3 || type_[0] == '>' ||
        std::string_view("biufcSU").find(type_[1]) == std::string::npos) {
      fail_in_array();
    }
  }

  bool is_integer() const { return type_[1] == 'i' || type_[1] == 'u' || type_[1] == 'b'; }
  bool is_complex() const { return type_[1] == 'c'; }

  // Of an array of one dimension.
  std::uint64_t size() const {
    std::uint64_t size = 0;
    const auto [end, error] =
        std::from_chars(shape_.data() + 1, shape_.data() + shape_.size(), size);
    if (error != std::errc() || std::string_view(end) != ",)") {
      archive_.fail(fmt::format("the array \"{}\" has the shape {}, not one dimension; {}", name_,
                                in_quotes(shape_), kHowToSave));
    }
    return size;
  }

  // All elements as numbers of type To, each given to `check` first; of complex ones the real part.
  template <typename To, typename Check>
  std::vector<To> elements(const Check& check) const {
    std::vector<To> numbers;
    const std::string_view type = std::string_view(type_).substr(1);
    const auto take_if = [&]<typename From>(bool is_this, From, std::size_t parts = 1) {
      if (is_this) take<From>(numbers, check, parts);
      return is_this;
    };
    if (take_if(type == "i4", std::int32_t{}) || take_if(type == "i8", std::int64_t{}) ||
        take_if(type == "f8", double{}) || take_if(type == "f4", float{}) ||
        take_if(type == "c16", double{}, 2) || take_if(type == "c8", float{}, 2) ||
        take_if(type == "i1", std::int8_t{}) || take_if(type == "i2", std::int16_t{}) ||
        take_if(type == "b1" || type == "u1", std::uint8_t{}) ||
        take_if(type == "u2", std::uint16_t{}) || take_if(type == "u4", std::uint32_t{}) ||
        take_if(type == "u8", std::uint64_t{})) {
      return numbers;
    }
    fail_of_type();
  }

  // A text of letters.
  std::string text() const {
    if (shape_ != "()" || type_[1] == 'f') fail_in_array();
    std::string text(bytes_);  // of 1 or 4 bytes per letter
    std::erase(text, '\0');
    return text;
  }

  [[noreturn]] void fail_of_type() const {
    archive_.fail(fmt::format("the array \"{}\" is of the type {}, which cannot be read; {}", name_,
                              in_quotes(type_), kHowToSave));
  }

 private:
  [[noreturn]] void fail_in_array() const {
    archive_.fail(fmt::format("the array \"{}\" cannot be read; {}", name_, kHowToSave));
  }

  // The next `count` of the bytes, which end with the last element.
  std::string_view next(std::size_t count) {
    if (count > bytes_.size()) archive_.fail(kDamaged);
    const std::string_view bytes = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return bytes;
  }

  // What stands behind a key of the header, which is a Python dictionary. Never empty.
  std::string_view value_of(std::string_view header, std::string_view key) const {
    const std::size_t at = header.find(key);
    const std::size_t begin =
        at == std::string::npos ? at : header.find_first_not_of(' ', at + key.size());
    if (begin == std::string::npos) fail_in_array();
    return header.substr(begin);
  }

  // Elements of `parts` numbers, of which the first counts.
  template <typename From, typename To, typename Check>
  void take(std::vector<To>& numbers, const Check& check, std::size_t parts) const {
    const std::size_t count = size(), bytes = parts * sizeof(From);
    if (bytes_.size() % bytes != 0 || bytes_.size() / bytes != count) archive_.fail(kDamaged);
    numbers.resize(count);
    for (std::size_t k = 0; k < count; ++k) {
      const auto number = number_at<From>(bytes_, k * bytes);
      check(k, number);
      numbers[k] = static_cast<To>(number);
    }
  }

  Archive& archive_;
  std::string name_;
  std::string_view bytes_;
  std::string type_, shape_;
};

// --- A matrix ------------------------------------------------------------------------------------

// An integer as one that can be compared with any index.
template <typename Number>
long long whole(Number number) {
  if constexpr (sizeof(Number) == 8 && std::is_unsigned_v<Number>) {
    return number >> 63 ? -1 : static_cast<long long>(number);
  } else {
    return static_cast<long long>(number);
  }
}

std::pair<Index, Index> read_shape(Archive& archive) {
  Array array(archive, "shape");
  if (!array.is_integer()) array.fail_of_type();
  if (array.size() != 2) archive.fail(fmt::format("has not two dimensions; {}", kHowToSave));
  const std::vector<Index> shape = array.elements<Index>([&](std::uint64_t, auto number) {
    if (whole(number) >= 0 && whole(number) <= kMaxNonzeros) return;
    archive.fail(fmt::format(
        "its shape has a number that is not from 0 to {}, the most that 32-bit indices allow; "
        "use a smaller matrix",
        kMaxNonzeros));
  });
  return {shape[0], shape[1]};
}

template <typename T>
bool has_sorted_rows(const Csr<T>& csr) {
  const auto columns = csr.column_indices.begin();
  for (Index row = 0; row < csr.rows; ++row) {
    if (!std::is_sorted(columns + csr.row_offsets[row], columns + csr.row_offsets[row + 1])) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool is_npz(const std::filesystem::path& path) {
  return path.extension() == ".npz";
}

template <typename T>
Csr<T> read_npz(const std::filesystem::path& path, const LoadOptions& options, Index* duplicates) {
  // (A value of 16 bytes may become one of 4.)
  Archive archive(path, 4.0 * static_cast<double>(options.memory_limit()));
  const std::string format = Array(archive, "format").text();
  if (format != "csr") {
    archive.fail(fmt::format("the matrix is stored as {}; {}", in_quotes(format), kHowToSave));
  }
  Csr<T> csr;
  std::tie(csr.rows, csr.cols) = read_shape(archive);

  Array offsets(archive, "indptr"), columns(archive, "indices"), values(archive, "data");
  for (const Array* indices : {&offsets, &columns}) {
    if (!indices->is_integer()) indices->fail_of_type();
  }
  if (values.is_complex() && !options.real_part) {
    archive.fail("the values are complex; give --complex real to read their real parts");
  }
  const std::uint64_t nonzeros = values.size();
  if (offsets.size() != static_cast<std::uint64_t>(csr.rows) + 1 || columns.size() != nonzeros) {
    archive.fail(fmt::format("has {} offsets, {} columns and {} values for {} rows; {}",
                             offsets.size(), columns.size(), nonzeros, csr.rows, kHowToSave));
  }
  if (nonzeros > static_cast<std::uint64_t>(kMaxNonzeros)) {
    archive.fail(
        fmt::format("has {} nonzeros, more than {}, the most that 32-bit indices allow; "
                    "use a smaller matrix",
                    nonzeros, kMaxNonzeros));
  }
  const double needed = static_cast<double>(nonzeros) * (sizeof(Index) + sizeof(T)) +
                        static_cast<double>(csr.rows) * sizeof(Index);
  const auto limit = static_cast<double>(options.memory_limit());
  if (needed > limit) archive.fail("the matrix " + more_than_limit(needed, limit));

  long long before = 0;
  csr.row_offsets = offsets.elements<Index>([&](std::uint64_t row, auto number) {
    const long long offset = whole(number);
    const bool is_last = row == static_cast<std::uint64_t>(csr.rows);
    if (offset < before || (row == 0 && offset != 0) || offset > static_cast<long long>(nonzeros) ||
        (is_last && offset != static_cast<long long>(nonzeros))) {
      archive.fail(
          fmt::format("row {} has the offset {}: offsets must ascend from 0 to the number "
                      "of nonzeros, {}; {}",
                      row, offset, nonzeros, kHowToSave));
    }
    before = offset;
  });
  csr.column_indices = columns.elements<Index>([&](std::uint64_t k, auto number) {
    const long long column = whole(number);
    if (column >= 0 && column < csr.cols) return;
    archive.fail(fmt::format("nonzero {} is in column {}, which is not from 0 to {}; {}", k, column,
                             csr.cols - 1, kHowToSave));
  });
  csr.values = values.elements<T>([](std::uint64_t, auto) {});
  if (!has_sorted_rows(csr)) return to_csr(to_coo(csr), duplicates);
  const Index merged = sum_repeated_columns(csr);
  if (duplicates) *duplicates = merged;
  return csr;
}

template Csr<float> read_npz(const std::filesystem::path&, const LoadOptions&, Index*);
template Csr<double> read_npz(const std::filesystem::path&, const LoadOptions&, Index*);

}  // namespace spmv
