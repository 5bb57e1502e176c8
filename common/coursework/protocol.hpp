// What the judge and the runner send each other, through two pipes.
//
// The runner is the process with the kernels that are judged: it gets matrices and vectors and
// returns products, reports and counters. The judge, a process of its own, holds the references and
// trusts nothing that arrives: every length is limited before it is allocated, every field is
// checked, and text is made printable.
//
//   judge -> runner   kMatrix: rows, cols, row_indices, column_indices, values    no answer
//                     kMultiply, kCount: see Product                              one answer
//   runner -> judge   first kHello; then for each product kDone, kRefused or kFailed
//
// A frame is its length (4 bytes) and as many bytes; both processes run on one machine, so numbers
// are in its own byte order.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace spmv::coursework {

inline constexpr std::string_view kHello = "spmv runner 1";

enum class Ask : std::uint8_t { kMatrix = 1, kMultiply, kCount };
enum class Answer : std::uint8_t { kDone = 1, kRefused, kFailed };

// What kernels may do that is reported, and may be overlooked: then the product is still of use.
inline constexpr std::uint8_t kChecked = 1, kTolerant = 0;

// Thrown for a frame that is not as it should be; the text says what is wrong.
class ProtocolError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Writes a frame, field after field.
class FrameWriter {
 public:
  template <typename T>
  void number(T value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    append(&value, sizeof value);
  }
  void text(std::string_view text) {
    number(static_cast<std::uint32_t>(text.size()));
    append(text.data(), text.size());
  }
  template <typename T>
  void array(const std::vector<T>& values) {
    number(static_cast<std::uint32_t>(values.size()));
    append(values.data(), values.size() * sizeof(T));
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void append(const void* data, std::size_t size) {
    bytes_.append(static_cast<const char*>(data), size);
  }
  std::string bytes_;
};

// Reads one; a field that the frame does not hold whole is a ProtocolError.
class FrameReader {
 public:
  explicit FrameReader(std::string_view bytes) : left_(bytes) {}

  template <typename T>
  T number() {
    T value;
    const std::string_view bytes = take(sizeof value);
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::string_view text() { return take(number<std::uint32_t>()); }
  template <typename T>
  std::vector<T> array() {
    const std::size_t size = number<std::uint32_t>();
    const std::string_view bytes = take(size * sizeof(T));
    std::vector<T> values(size);
    if (size) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  bool at_end() const { return left_.empty(); }

 private:
  std::string_view take(std::size_t size) {
    if (size > left_.size()) throw ProtocolError("a frame ends within a field");
    const std::string_view taken = left_.substr(0, size);
    left_.remove_prefix(size);
    return taken;
  }
  std::string_view left_;
};

using Deadline = std::chrono::steady_clock::time_point;

// Writes all of a frame, or returns false: the other end is closed.
bool send_frame(int file, std::string_view bytes);
// The next frame, of at most `limit` bytes (else ProtocolError). Empty: the other end was closed
// between two frames, or the deadline has passed; `timed_out` says which.
std::optional<std::string> receive_frame(int file, std::size_t limit,
                                         std::optional<Deadline> deadline = {},
                                         bool* timed_out = nullptr);

// --- What the judge takes from the runner
// ---------------------------------------------------------

// What a line of a kernel asked of one array in one way.
struct Count {
  std::string array, space, access, file;
  unsigned line = 0;
  std::uint64_t requests = 0, lanes = 0, sectors = 0, ideal_sectors = 0, addresses = 0,
                bank_passes = 0;
};

struct Reply {
  Answer answer = Answer::kFailed;
  std::string y;              // kDone: the elements' bytes
  std::vector<Count> counts;  // kDone, if counters were asked for
  std::uint64_t steps = 0;    // and the requests of the busiest warp, over all launches
  std::string text;           // kRefused, kFailed: why; printable
};

inline constexpr std::size_t kMostText = 2000;
inline constexpr std::size_t kMostCounts = 5000;

std::string write_reply(const Reply& reply);
// Throws ProtocolError unless the frame is a reply with y of exactly `y_bytes` bytes, or a text of
// at most kMostText bytes, with no more than kMostCounts counts, whose names are short and known.
Reply read_reply(std::string_view frame, std::size_t y_bytes);
// The most bytes that a reply with such a y may have.
std::size_t most_reply_bytes(std::size_t y_bytes);

// Text with everything that is not printable ASCII or a line's end replaced by '?', cut to `most`.
std::string printable(std::string_view text, std::size_t most = kMostText);

}  // namespace spmv::coursework
