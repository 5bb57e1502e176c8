// libFuzzer target for what the judge reads from the process with a student's kernels
// (coursework/protocol.hpp); built and run by fuzz.sh.
//
// The first byte of an input is the size of y, the rest a frame. A frame is refused with a
// ProtocolError, or it is a reply whose every field is bounded, and that comes back the same when
// it is written and read again.
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
  if (size == 0) return 0;
  const std::size_t y_bytes = data[0];
  const std::string_view frame(reinterpret_cast<const char*>(data + 1), size - 1);
  Reply reply;
  try {
    reply = read_reply(frame, y_bytes);
  } catch (const ProtocolError& error) {
    REQUIRE(*error.what() != '\0');
    return 0;
  }
  require_printable(reply.text, kMostText);
  if (reply.answer == Answer::kDone) REQUIRE(reply.y.size() == y_bytes);
  REQUIRE(reply.counts.size() <= kMostCounts);
  for (const Count& c : reply.counts) {
    for (const std::string* name : {&c.array, &c.space, &c.access, &c.file}) {
      require_printable(*name, 200);
    }
    REQUIRE(c.requests >> 53 == 0);
  }
  const std::string written = write_reply(reply);
  REQUIRE(written.size() == frame.size() &&
          written.size() <= most_reply_bytes(y_bytes) + kMostText);
  REQUIRE(write_reply(read_reply(written, y_bytes)) == written);
  return 0;
}
