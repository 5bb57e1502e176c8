#include "sparse/npz.hpp"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
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

constexpr std::size_t kPiece = std::size_t{1} << 20;
constexpr const char* kDamaged = "the archive is damaged; save or fetch the file again";
constexpr const char* kHowToSave = "save it with scipy.sparse.save_npz(file, A.tocsr())";

// The number that begins `at` bytes into `bytes`, which has so many.
template <typename Number>
Number number_at(std::string_view bytes, std::size_t at) {
  Number number;
  std::memcpy(&number, bytes.data() + at, sizeof(number));
  return number;
}

// --- The archive ---------------------------------------------------------------------------------

// A ZIP archive of at most 2^16 members, whose directory stands at its end.
class Archive {
 public:
  struct Member {
    std::uint64_t begin = 0;  // of its local header
    std::uint64_t stored_bytes = 0, bytes = 0;
    std::uint32_t crc = 0;
    bool is_deflated = false;
  };

  explicit Archive(const std::filesystem::path& path)
      : name_(printable(path.string())), file_(path, std::ios::binary) {
    std::error_code error;
    if (!std::filesystem::exists(path, error)) fail("no such file; check the path");
    if (!std::filesystem::is_regular_file(path, error)) fail("is no file; give an .npz file");
    if (!file_) fail("cannot be opened; check its permissions");
    size_ = std::filesystem::file_size(path);
    read_directory();
  }

  const Member& member(const std::string& name) const {
    const auto found = members_.find(name + ".npy");
    if (found == members_.end()) {
      fail(fmt::format("has no array \"{}\", so it is no sparse matrix; {}", name, kHowToSave));
    }
    return found->second;
  }

  // `count` bytes from `begin` on.
  std::string read(std::uint64_t begin, std::uint64_t count) {
    if (begin > size_ || count > size_ - begin) fail(kDamaged);
    std::string bytes(count, '\0');
    file_.seekg(static_cast<std::streamoff>(begin));
    if (!file_.read(bytes.data(), static_cast<std::streamsize>(count))) {
      fail("cannot be read; check the file");
    }
    return bytes;
  }

  [[noreturn]] void fail(const std::string& what) const { throw InputError(name_ + ": " + what); }

 private:
  void read_directory() {
    constexpr std::size_t kEndBytes = 22, kLongestComment = 0xffff;
    constexpr std::uint32_t kAbove32Bits = 0xffffffff;
    const std::uint64_t tail_begin =
        size_ - std::min<std::uint64_t>(size_, kEndBytes + kLongestComment);
    const std::string tail = read(tail_begin, size_ - tail_begin);
    const std::size_t end = tail.rfind("PK\5\6");
    if (end == std::string::npos || tail.size() - end < kEndBytes) {
      fail(size_ == 0 ? "the file is empty; save or fetch it again"
                      : fmt::format("is no .npz archive, or cut short; {}, or fetch it again",
                                    kHowToSave));
    }
    const auto entries = number_at<std::uint16_t>(tail, end + 10);
    std::uint64_t bytes = number_at<std::uint32_t>(tail, end + 12);
    std::uint64_t begin = number_at<std::uint32_t>(tail, end + 16);
    if (begin ==
        kAbove32Bits) {  // then a longer record of the end precedes it, and a pointer there
      constexpr std::size_t kPointerBytes = 20, kLongEndBytes = 56;
      if (end < kPointerBytes || tail.compare(end - kPointerBytes, 4, "PK\6\7") != 0)
        fail(kDamaged);
      const std::string long_end =
          read(number_at<std::uint64_t>(tail, end - kPointerBytes + 8), kLongEndBytes);
      if (!long_end.starts_with("PK\6\6")) fail(kDamaged);
      bytes = number_at<std::uint64_t>(long_end, 40);
      begin = number_at<std::uint64_t>(long_end, 48);
    }
    const std::string directory = read(begin, bytes);
    std::size_t at = 0;
    for (unsigned entry = 0; entry < entries; ++entry) at = read_entry(directory, at);
  }

  // The entry that begins at `at`; returns where it ends.
  std::size_t read_entry(const std::string& directory, std::size_t at) {
    constexpr std::size_t kBytes = 46;
    if (directory.size() - at < kBytes || directory.compare(at, 4, "PK\1\2") != 0) fail(kDamaged);
    const auto flags = number_at<std::uint16_t>(directory, at + 8);
    const auto method = number_at<std::uint16_t>(directory, at + 10);
    Member member{number_at<std::uint32_t>(directory, at + 42),
                  number_at<std::uint32_t>(directory, at + 20),
                  number_at<std::uint32_t>(directory, at + 24),
                  number_at<std::uint32_t>(directory, at + 16), method == Z_DEFLATED};
    const std::size_t name_bytes = number_at<std::uint16_t>(directory, at + 28);
    const std::size_t extra_bytes = number_at<std::uint16_t>(directory, at + 30);
    const std::size_t comment_bytes = number_at<std::uint16_t>(directory, at + 32);
    const std::size_t extra = at + kBytes + name_bytes;
    if (directory.size() - at < kBytes + name_bytes + extra_bytes + comment_bytes) fail(kDamaged);
    const std::string name = directory.substr(at + kBytes, name_bytes);
    if ((method != 0 && !member.is_deflated) || (flags & 1)) {
      fail(fmt::format("{} is encrypted, or compressed in a way that cannot be read; {}",
                       in_quotes(name), kHowToSave));
    }
    read_long_sizes(std::string_view(directory).substr(extra, extra_bytes), member);
    if (!members_.emplace(name, member).second) fail(kDamaged);
    return extra + extra_bytes + comment_bytes;
  }

  // In place of each number of `member` that has all bits set, the next one of the field for
  // numbers of 64 bits.
  void read_long_sizes(std::string_view fields, Member& member) {
    while (fields.size() >= 4) {
      const auto kind = number_at<std::uint16_t>(fields, 0);
      const std::size_t bytes = number_at<std::uint16_t>(fields, 2);
      if (bytes > fields.size() - 4) fail(kDamaged);
      std::string_view field = fields.substr(4, bytes);
      fields.remove_prefix(4 + bytes);
      if (kind != 1) continue;
      for (std::uint64_t* number : {&member.bytes, &member.stored_bytes, &member.begin}) {
        if (*number != 0xffffffff) continue;
        if (field.size() < 8) fail(kDamaged);
        *number = number_at<std::uint64_t>(field, 0);
        field.remove_prefix(8);
      }
    }
  }

  std::string name_;
  std::ifstream file_;
  std::uint64_t size_ = 0;
  std::map<std::string, Member> members_;
};

// The bytes of a member, inflated, one after the other.
class Stream {
 public:
  Stream(Archive& archive, const Archive::Member& member) : archive_(archive), member_(member) {
    constexpr std::size_t kBytes = 30;
    const std::string header = archive.read(member.begin, kBytes);
    if (!header.starts_with("PK\3\4")) archive.fail(kDamaged);
    at_ = member.begin + kBytes + number_at<std::uint16_t>(header, 26) +
          number_at<std::uint16_t>(header, 28);
    if (!member.is_deflated && member.bytes != member.stored_bytes) archive.fail(kDamaged);
    if (member.is_deflated && ::inflateInit2(&inflater_, -MAX_WBITS) != Z_OK)
      throw std::bad_alloc();
  }
  ~Stream() {
    if (member_.is_deflated) ::inflateEnd(&inflater_);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // The next `count` bytes, at most kPiece.
  std::string next(std::size_t count) {
    if (count > member_.bytes - given_) archive_.fail(kDamaged);
    std::string bytes;
    if (member_.is_deflated) {
      bytes.resize(count);
      inflate(bytes);
    } else {
      bytes = archive_.read(at_, count);
      at_ += count;
    }
    given_ += count;
    crc_ = ::crc32(crc_, reinterpret_cast<const Bytef*>(bytes.data()),
                   static_cast<uInt>(bytes.size()));
    return bytes;
  }

  // Nothing may be left, and all of it must have been right.
  void finish() const {
    if (given_ != member_.bytes || crc_ != member_.crc) archive_.fail(kDamaged);
  }

 private:
  void inflate(std::string& bytes) {
    inflater_.next_out = reinterpret_cast<Bytef*>(bytes.data());
    inflater_.avail_out = static_cast<uInt>(bytes.size());
    while (inflater_.avail_out > 0) {
      if (inflater_.avail_in == 0) {
        const std::uint64_t left = member_.stored_bytes - taken_;
        stored_ = archive_.read(at_ + taken_, std::min<std::uint64_t>(left, kPiece));
        taken_ += stored_.size();
        inflater_.next_in = reinterpret_cast<Bytef*>(stored_.data());
        inflater_.avail_in = static_cast<uInt>(stored_.size());
      }
      const int status = ::inflate(&inflater_, Z_NO_FLUSH);
      const bool is_stuck = inflater_.avail_in == 0 && taken_ == member_.stored_bytes;
      if (inflater_.avail_out > 0 && (status != Z_OK || is_stuck)) archive_.fail(kDamaged);
    }
  }

  Archive& archive_;
  Archive::Member member_;
  std::uint64_t at_ = 0, given_ = 0, taken_ = 0;
  uLong crc_ = 0;
  std::string stored_;
  ::z_stream inflater_{};
};

// --- An array ------------------------------------------------------------------------------------

// One array of an archive: what its header says, and its elements.
class Array {
 public:
  Array(Archive& archive, const std::string& name)
      : archive_(archive), name_(name), stream_(archive, archive.member(name)) {
    const std::string magic = stream_.next(8);
    if (!magic.starts_with("\x93NUMPY") || magic[6] < 1 || magic[6] > 3) fail_in_array();
    const bool is_long = magic[6] > 1;
    const std::string length = stream_.next(is_long ? 4 : 2);
    const std::size_t bytes =
        is_long ? number_at<std::uint32_t>(length, 0) : number_at<std::uint16_t>(length, 0);
    if (bytes > kPiece) fail_in_array();
    const std::string header = stream_.next(bytes);
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

  const std::string& type() const { return type_; }
  bool is_integer() const { return type_[1] == 'i' || type_[1] == 'u' || type_[1] == 'b'; }
  bool is_complex() const { return type_[1] == 'c'; }

  // Of an array of one dimension.
  std::uint64_t size() const {
    std::uint64_t size = 0;
    const char* p = shape_.data() + 1;
    const char* const end = shape_.data() + shape_.size();
    for (; p < end && *p >= '0' && *p <= '9' && size < (1ull << 40); ++p)
      size = 10 * size + (*p - '0');
    if (p == shape_.data() + 1 || std::string_view(p, end) != ",)") {
      archive_.fail(fmt::format("the array \"{}\" has the shape {}, not one dimension; {}", name_,
                                in_quotes(shape_), kHowToSave));
    }
    return size;
  }

  // All elements as numbers of type To, each given to `check` first; of complex ones the real part.
  template <typename To, typename Check>
  std::vector<To> elements(const Check& check) {
    std::vector<To> numbers;
    const std::string_view type = std::string_view(type_).substr(1);
    const bool is_known = (type == "i4" && take<std::int32_t>(numbers, check)) ||
                          (type == "i8" && take<std::int64_t>(numbers, check)) ||
                          (type == "f8" && take<double>(numbers, check)) ||
                          (type == "f4" && take<float>(numbers, check)) ||
                          (type == "c16" && take<double>(numbers, check, 2)) ||
                          (type == "c8" && take<float>(numbers, check, 2)) ||
                          ((type == "i1") && take<std::int8_t>(numbers, check)) ||
                          ((type == "b1" || type == "u1") && take<std::uint8_t>(numbers, check)) ||
                          (type == "i2" && take<std::int16_t>(numbers, check)) ||
                          (type == "u2" && take<std::uint16_t>(numbers, check)) ||
                          (type == "u4" && take<std::uint32_t>(numbers, check)) ||
                          (type == "u8" && take<std::uint64_t>(numbers, check));
    if (!is_known) fail_of_type();
    stream_.finish();
    return numbers;
  }

  // A text of at most kPiece bytes.
  std::string text() {
    if (shape_ != "()" || type_[1] == 'f') fail_in_array();
    const std::size_t bytes =
        (type_[1] == 'U' ? 4 : 1) *
        std::min<std::size_t>(std::strtoul(type_.c_str() + 2, nullptr, 10), 64);
    const std::string raw = stream_.next(bytes);
    stream_.finish();
    std::string text;
    for (const char c : raw) {
      if (c != '\0') text += c;
    }
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

  // What stands behind a key of the header, which is a Python dictionary. Never empty.
  std::string_view value_of(const std::string& header, const char* key) const {
    const std::size_t at = header.find(key);
    const std::size_t begin =
        at == std::string::npos ? at : header.find_first_not_of(' ', at + std::strlen(key));
    if (begin == std::string::npos) fail_in_array();
    return std::string_view(header).substr(begin);
  }

  // Elements of `parts` numbers, of which the first counts. True.
  template <typename From, typename To, typename Check>
  bool take(std::vector<To>& numbers, const Check& check, std::size_t parts = 1) {
    const std::uint64_t count = size();
    numbers.resize(count);
    const std::size_t bytes = parts * sizeof(From);
    for (std::uint64_t k = 0; k < count;) {
      const std::size_t some = std::min<std::uint64_t>(count - k, kPiece / bytes);
      const std::string piece = stream_.next(some * bytes);
      for (std::size_t i = 0; i < some; ++i, ++k) {
        const From number = number_at<From>(piece, i * bytes);
        check(k, number);
        numbers[k] = static_cast<To>(number);
      }
    }
    return true;
  }

  Archive& archive_;
  std::string name_;
  Stream stream_;
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

// Sorts the rows by column, stably, where they are not.
template <typename T>
void sort_rows(Csr<T>& csr) {
  std::vector<std::pair<Index, T>> entries;
  for (Index row = 0; row < csr.rows; ++row) {
    const auto begin = csr.column_indices.begin() + csr.row_offsets[row];
    const auto end = csr.column_indices.begin() + csr.row_offsets[row + 1];
    if (std::is_sorted(begin, end)) continue;
    entries.clear();
    for (Index k = csr.row_offsets[row]; k < csr.row_offsets[row + 1]; ++k) {
      entries.emplace_back(csr.column_indices[k], csr.values[k]);
    }
    std::stable_sort(entries.begin(), entries.end(),
                     [](const auto& one, const auto& other) { return one.first < other.first; });
    for (Index k = csr.row_offsets[row]; const auto& [column, value] : entries) {
      csr.column_indices[k] = column;
      csr.values[k++] = value;
    }
  }
}

template <typename T>
Csr<T> read_csr(const std::filesystem::path& path, const LoadOptions& options, Index* duplicates) {
  Archive archive(path);
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
  sort_rows(csr);
  const Index merged = sum_repeated_columns(csr);
  if (duplicates) *duplicates = merged;
  return csr;
}

}  // namespace

bool is_npz(const std::filesystem::path& path) {
  return path.extension() == ".npz";
}

template <typename T>
Csr<T> read_npz(const std::filesystem::path& path, const LoadOptions& options, Index* duplicates) {
  return read_csr<T>(path, options, duplicates);
}

template Csr<float> read_npz(const std::filesystem::path&, const LoadOptions&, Index*);
template Csr<double> read_npz(const std::filesystem::path&, const LoadOptions&, Index*);

}  // namespace spmv
