#include "coursework/protocol.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <initializer_list>

namespace spmv::coursework {
namespace {

// Reads `size` bytes, or as many as there are before the end; returns how many.
std::size_t receive(int file, char* data, std::size_t size, std::optional<Clock::time_point> end) {
  std::size_t got = 0;
  while (got < size) {
    if (end) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*end - Clock::now());
      pollfd waiting{file, POLLIN, 0};
      const int ready = left.count() > 0 ? poll(&waiting, 1, static_cast<int>(left.count())) : 0;
      if (ready == 0) throw TimedOut();
      if (ready < 0) continue;
    }
    const ssize_t bytes = read(file, data + got, size - got);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) break;
    got += static_cast<std::size_t>(bytes);
  }
  return got;
}

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> known) {
  return std::find(known.begin(), known.end(), text) != known.end();
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
                                         std::optional<Clock::time_point> end) {
  std::uint32_t length = 0;
  const std::size_t got = receive(file, reinterpret_cast<char*>(&length), sizeof length, end);
  if (got == 0) return {};
  if (got < sizeof length) throw ProtocolError("a frame was cut off");
  if (length > limit) throw ProtocolError("a frame is too long");
  std::string bytes(length, '\0');
  if (receive(file, bytes.data(), length, end) < length) {
    throw ProtocolError("a frame was cut off");
  }
  return bytes;
}

Reply read_reply(std::string_view text) try {
  const auto checked = [](int, Json::parse_event_t, Json& value) {
    if (value.is_string()) value = printable(value.get_ref<const std::string&>());
    if (value.is_number() && (!value.is_number_unsigned() || value.get<std::uint64_t>() >> 53)) {
      throw ProtocolError("a number that is no counter's");
    }
    return true;
  };
  const Reply reply = Json::parse(text, checked).get<Reply>();
  if (!is_one_of(reply.answer, {"done", "refused", "failed"})) {
    throw ProtocolError("an answer of no known kind");
  }
  if (reply.lines.size() > kMostCounts || reply.remarks.size() > kMostRemarks ||
      reply.if_wrong.size() > kMostRemarks) {
    throw ProtocolError("it says too much");
  }
  for (const Count& count : reply.lines) {
    if (!is_one_of(count.space, {"global", "shared", "none"}) ||
        !is_one_of(count.access,
                   {"load", "store", "atomic", "texture", "barrier", "warp operation"})) {
      throw ProtocolError("a counter of no known kind");
    }
  }
  return reply;
} catch (const Json::exception& error) {
  throw ProtocolError(error.what());
}

std::string printable(std::string_view text, std::size_t most) {
  std::string result(text.substr(0, most));
  for (char& c : result) {
    if (c != '\n' && (c < ' ' || c > '~')) c = '?';
  }
  return result;
}

}  // namespace spmv::coursework
