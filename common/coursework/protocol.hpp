// What the judge and the runner send each other, through two pipes.
//
// The runner is the process with the kernels that are judged: it gets matrices and vectors and
// returns products, reports and counters. The judge, a process of its own, holds the references and
// trusts nothing that arrives: every length is limited before it is allocated, every field is
// checked, and text is made printable.
//
//   judge -> runner   MessagePack: a matrix, which is not answered, or what to multiply (Product)
//   runner -> judge   first kHello; then for each product one answer, as JSON text, and where that
//                     says "done", y
//
// A frame is its length (4 bytes) and as many bytes; both processes run on one machine, so numbers
// in arrays are in its own byte order.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spmv::coursework {

using Json = nlohmann::json;

inline constexpr std::string_view kHello = "spmv runner 2";
inline constexpr std::size_t kMostText = 2000;       // characters
inline constexpr std::size_t kMostCounts = 1000;     // lines of a kernel
inline constexpr std::size_t kMostRemarks = 20;      // of a product
inline constexpr std::size_t kMostAnswer = 1 << 20;  // bytes, without y

// Thrown for a frame that is not as it should be; the text says what is wrong.
class ProtocolError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Thrown when the time to wait for a frame is up.
class TimedOut : public std::runtime_error {
 public:
  TimedOut() : std::runtime_error("the time is up") {}
};

// An array as its bytes, and back.
template <typename T>
Json bytes_of(const std::vector<T>& values) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(values.data());
  return Json::binary({bytes, bytes + values.size() * sizeof(T)});
}
template <typename T, typename Bytes>
std::vector<T> elements(const Bytes& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

// One product that is asked for.
struct Product {
  std::string kernel;
  bool counted = false;
  bool single = false;         // precision
  double alpha = 1, beta = 0;  // exact in the product's precision
  int order = 0;  // 0 forward, 1 reverse, 2 random (work on streams is late, too), 3 in lockstep
  std::uint64_t seed = 1;  // of orders 2 and 3
  bool again = false;      // a second product on the same arrays, whose y is returned
  bool checked = true;     // races and uninitialised reads end the kernel
  double padding_limit = 0;
  Json x, y;  // the elements' bytes, as doubles in either precision; y as it is before
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Product, kernel, counted, single, alpha, beta, order, seed,
                                   again, checked, padding_limit, x, y)

// What a line of a kernel asked of one array in one way.
struct Count {
  std::string array, space, access, file;
  std::uint64_t line = 0, requests = 0, lanes = 0, sectors = 0, ideal_sectors = 0, addresses = 0,
                bank_passes = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Count, array, space, access, file, line, requests, lanes,
                                   sectors, ideal_sectors, addresses, bank_passes)

// An answer. Its numbers are those of counters: none is negative, and a double holds each.
struct Reply {
  std::string answer, text;                    // "done", "refused" or "failed", and why
  std::vector<std::string> remarks, if_wrong;  // as simt::take_remarks() gives them
  // If they were asked for: counts, requests of the busiest warp, over all launches, those of all,
  // per warp that was launched, and what time_model.hpp says that the product takes on a GPU.
  std::vector<Count> lines;
  std::uint64_t steps = 0, mean_steps = 0;
  std::string time;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Reply, answer, text, remarks, if_wrong, lines, steps, mean_steps,
                                   time)

using Clock = std::chrono::steady_clock;

// Writes all of a frame, or returns false: the other end is closed.
bool send_frame(int file, std::string_view bytes);
// The next frame, of at most `limit` bytes (else ProtocolError). Empty: the other end was closed
// between two frames. Throws TimedOut at `end`; without one it waits for ever.
std::optional<std::string> receive_frame(int file, std::size_t limit,
                                         std::optional<Clock::time_point> end = {});

// An answer, checked, its text printable. Throws ProtocolError unless the text is one, complete,
// and no longer than it may be; other names are left out.
Reply read_reply(std::string_view text);

// Text with everything that is not printable ASCII or a line's end replaced by '?', cut to `most`.
std::string printable(std::string_view text, std::size_t most = kMostText);

}  // namespace spmv::coursework
