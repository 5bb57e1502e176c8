// libFuzzer target for what the judge reads from the process with a student's kernels
// (coursework/protocol.hpp); built and run by fuzz.sh.
//
// An input is a frame. It is refused with a ProtocolError, or it is a reply whose every field is
// bounded.
#include <cstddef>
#include <cstdint>
#include <string>

#include "coursework/protocol.hpp"
#include "tests/fuzz.hpp"

namespace {

using namespace spmv::coursework;

void require_printable(const std::string& text, std::size_t most) {
  REQUIRE(text.size() <= most);
  for (const char c : text) REQUIRE(c == '\n' || (c >= ' ' && c <= '~'));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Reply reply;
  try {
    reply = read_reply({reinterpret_cast<const char*>(data), size});
  } catch (const ProtocolError& error) {
    REQUIRE(*error.what() != '\0');
    return 0;
  }
  require_printable(reply.text, kMostText);
  REQUIRE(reply.counts.size() <= kMostCounts);
  for (const Json& count : reply.counts) {
    for (const auto& [name, value] : count.items()) {
      if (value.is_string()) {
        require_printable(value.get<std::string>(), kMostText);
      } else {
        REQUIRE(value.get<std::uint64_t>() >> 53 == 0);
      }
    }
  }
  return 0;
}
