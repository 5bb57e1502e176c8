#include "coursework/protocol.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

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

// These throw what nlohmann::json throws where something is missing or of another kind.
std::string text_of(const Json& json, const char* name) {
  return printable(json.at(name).get_ref<const std::string&>());
}

std::uint64_t number_of(const Json& json, const char* name) {
  const auto number = json.at(name).get_ref<const Json::number_unsigned_t&>();
  if (number >> 53) throw ProtocolError("a number is too large");
  return number;
}

// Empty where there is none.
Json list_of(const Json& json, const char* name, std::size_t most) {
  Json list = json.value(name, Json::array());
  if (!list.is_array() || list.size() > most) throw ProtocolError(std::string("bad ") + name);
  return list;
}

Json remarks_of(const Json& json, const char* name) {
  Json found = Json::array();
  for (const Json& remark : list_of(json, name, kMostRemarks)) {
    found.push_back(printable(remark.get_ref<const std::string&>()));
  }
  return found;
}

// What a line asked of an array in one way, with the fields that this has, and no others.
Json count_of(const Json& json) {
  constexpr std::array kSpaces{"global", "shared", "none"};
  constexpr std::array kAccesses{"load", "store", "atomic", "texture", "barrier", "warp operation"};
  Json count;
  for (const char* name : {"array", "space", "access", "file"}) count[name] = text_of(json, name);
  for (const char* name :
       {"line", "requests", "lanes", "sectors", "ideal_sectors", "addresses", "bank_passes"}) {
    count[name] = number_of(json, name);
  }
  if (std::find(kSpaces.begin(), kSpaces.end(), count["space"]) == kSpaces.end() ||
      std::find(kAccesses.begin(), kAccesses.end(), count["access"]) == kAccesses.end()) {
    throw ProtocolError("a counter of no known kind");
  }
  return count;
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

Json read_reply(std::string_view text) try {
  const Json json = Json::parse(text, nullptr, false);
  Json reply{{"lines", Json::array()}, {"steps", 0}, {"mean_steps", 0}, {"time", ""}};
  for (const char* name : {"remarks", "if_wrong"}) reply[name] = remarks_of(json, name);
  const Json& answer = reply["answer"] = text_of(json, "answer");
  if (answer == "refused" || answer == "failed") {
    reply["text"] = text_of(json, "text");
    return reply;
  }
  if (answer != "done") throw ProtocolError("an answer of no known kind");
  if (!json.contains("lines")) return reply;
  for (const Json& line : list_of(json, "lines", kMostCounts)) {
    reply["lines"].push_back(count_of(line));
  }
  for (const char* name : {"steps", "mean_steps"}) reply[name] = number_of(json, name);
  reply["time"] = text_of(json, "time");
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
