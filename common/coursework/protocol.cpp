#include "coursework/protocol.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace spmv::coursework {
namespace {

constexpr std::size_t kMostName = 200;

// Reads `size` bytes. False: the end came first, or the deadline.
bool receive(int file, char* data, std::size_t size, std::optional<Deadline> deadline,
             bool* timed_out, std::size_t& got) {
  for (got = 0; got < size;) {
    if (deadline) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          *deadline - std::chrono::steady_clock::now());
      pollfd waiting{file, POLLIN, 0};
      const int wait = static_cast<int>(std::clamp<long long>(left.count(), 0, 1'000'000));
      const int ready = poll(&waiting, 1, wait);
      if (ready < 0 && errno == EINTR) continue;
      if (ready <= 0) {
        if (timed_out) *timed_out = true;
        return false;
      }
    }
    const ssize_t bytes = read(file, data + got, size - got);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) return false;
    got += static_cast<std::size_t>(bytes);
  }
  return true;
}

void write_counts(FrameWriter& out, const std::vector<Count>& counts) {
  out.number(static_cast<std::uint32_t>(counts.size()));
  for (const Count& c : counts) {
    for (const std::string* name : {&c.array, &c.space, &c.access, &c.file}) {
      out.text(std::string_view(*name).substr(0, kMostName));
    }
    out.number(c.line);
    for (const std::uint64_t n :
         {c.requests, c.lanes, c.sectors, c.ideal_sectors, c.addresses, c.bank_passes}) {
      out.number(n);
    }
  }
}

std::string read_name(FrameReader& in) {
  const std::string_view name = in.text();
  if (name.size() > kMostName) throw ProtocolError("a name is too long");
  return printable(name);
}

std::uint64_t read_counter(FrameReader& in) {
  const auto count = in.number<std::uint64_t>();
  if (count >> 53) throw ProtocolError("a counter is too large");
  return count;
}

std::vector<Count> read_counts(FrameReader& in) {
  constexpr std::array kSpaces{"global", "shared", "none"};
  constexpr std::array kAccesses{"load", "store", "atomic", "texture", "barrier", "warp operation"};
  const auto known = [](const auto& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const auto size = in.number<std::uint32_t>();
  if (size > kMostCounts) throw ProtocolError("too many counters");
  std::vector<Count> counts;
  for (std::uint32_t i = 0; i < size; ++i) {
    Count& c = counts.emplace_back();
    for (std::string* name : {&c.array, &c.space, &c.access, &c.file}) *name = read_name(in);
    if (!known(kSpaces, c.space) || !known(kAccesses, c.access)) {
      throw ProtocolError("a counter of no known kind");
    }
    c.line = in.number<unsigned>();
    for (std::uint64_t* n :
         {&c.requests, &c.lanes, &c.sectors, &c.ideal_sectors, &c.addresses, &c.bank_passes}) {
      *n = read_counter(in);
    }
  }
  return counts;
}

}  // namespace

bool send_frame(int file, std::string_view bytes) {
  const auto length = static_cast<std::uint32_t>(bytes.size());
  std::string all(reinterpret_cast<const char*>(&length), sizeof length);
  all += bytes;
  for (std::size_t sent = 0; sent < all.size();) {
    const ssize_t done = write(file, all.data() + sent, all.size() - sent);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    sent += static_cast<std::size_t>(done);
  }
  return true;
}

std::optional<std::string> receive_frame(int file, std::size_t limit,
                                         std::optional<Deadline> deadline, bool* timed_out) {
  if (timed_out) *timed_out = false;
  std::uint32_t length = 0;
  std::size_t got = 0;
  if (!receive(file, reinterpret_cast<char*>(&length), sizeof length, deadline, timed_out, got)) {
    if (got > 0 && !(timed_out && *timed_out)) throw ProtocolError("a frame was cut off");
    return {};
  }
  if (length > limit) throw ProtocolError("a frame is too long");
  std::string bytes(length, '\0');
  if (!receive(file, bytes.data(), length, deadline, timed_out, got)) {
    if (timed_out && *timed_out) return {};
    throw ProtocolError("a frame was cut off");
  }
  return bytes;
}

std::string write_reply(const Reply& reply) {
  FrameWriter out;
  out.number(reply.answer);
  if (reply.answer == Answer::kDone) {
    out.text(reply.y);
    write_counts(out, reply.counts);
    out.number(reply.steps);
  } else {
    out.text(std::string_view(reply.text).substr(0, kMostText));
  }
  return out.bytes();
}

Reply read_reply(std::string_view frame, std::size_t y_bytes) {
  FrameReader in(frame);
  Reply reply;
  reply.answer = in.number<Answer>();
  if (reply.answer == Answer::kDone) {
    reply.y = in.text();
    if (reply.y.size() != y_bytes) throw ProtocolError("y has another size");
    reply.counts = read_counts(in);
    reply.steps = read_counter(in);
  } else if (reply.answer == Answer::kRefused || reply.answer == Answer::kFailed) {
    const std::string_view text = in.text();
    if (text.size() > kMostText) throw ProtocolError("a text is too long");
    reply.text = printable(text);
  } else {
    throw ProtocolError("an answer of no known kind");
  }
  if (!in.at_end()) throw ProtocolError("a frame is longer than what it says");
  return reply;
}

std::size_t most_reply_bytes(std::size_t y_bytes) {
  return y_bytes + kMostCounts * (4 * (kMostName + 4) + 6 * 8 + 4) + 64;
}

std::string printable(std::string_view text, std::size_t most) {
  std::string result(text.substr(0, most));
  for (char& c : result) {
    if (c != '\n' && (c < ' ' || c > '~')) c = '?';
  }
  return result;
}

}  // namespace spmv::coursework
