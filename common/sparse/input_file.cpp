#include "sparse/input_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <future>
#include <limits>
#include <memory>
#include <new>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sparse/matrix.hpp"
#include "sparse/text.hpp"

namespace spmv {

void fail_in_file(const std::string& name, const std::string& what) {
  throw InputError(printable(name) + ": " + what);
}

void fail_in_file(const std::string& name, std::size_t line, const std::string& what) {
  throw InputError(fmt::format("{}:{}: {}", printable(name), line, what));
}

bool is_gzip(std::string_view content) {
  return content.starts_with("\x1f\x8b");
}

namespace {

constexpr std::size_t kUnknown = std::numeric_limits<std::size_t>::max();

// --- Bytes of a file, of a pipe or of memory ----------------------------------------------------

class Bytes {
 public:
  explicit Bytes(const std::filesystem::path& path) : name_(path.string()) {
    descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor_ < 0) {
      if (errno == ENOENT) fail_in_file(name_, "no such file; check the path");
      fail_in_file(name_, fmt::format("cannot be opened ({}); check the path and its permissions",
                                      std::strerror(errno)));
    }
    struct ::stat status {};
    const bool examined = ::fstat(descriptor_, &status) == 0;
    if (!examined || (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode))) {
      const int reason = errno;
      ::close(descriptor_);
      if (!examined) {
        fail_in_file(name_,
                     fmt::format("cannot be examined ({}); check the path", std::strerror(reason)));
      }
      fail_in_file(name_, S_ISDIR(status.st_mode)
                              ? "is a directory; give a .mtx or .mtx.gz file in it"
                              : "is neither a file nor a pipe; give a .mtx or .mtx.gz file");
    }
    is_file_ = S_ISREG(status.st_mode);
    // (Files that the system makes up, as in /proc, have length 0.)
    if (is_file_ && status.st_size > 0) length_ = static_cast<std::size_t>(status.st_size);
  }
  Bytes(std::string_view content, std::string name)
      : name_(std::move(name)), content_(content), length_(content.size()) {}
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  ~Bytes() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  const std::string& name() const { return name_; }
  std::size_t length() const { return length_; }
  // Whether reading ahead is worth a thread, and cannot wait for a writer.
  bool is_file() const { return is_file_; }

  // Up to `room` bytes; 0: there are no more.
  std::size_t read(char* to, std::size_t room) {
    if (descriptor_ < 0) {
      const std::size_t count = std::min(room, content_.size());
      std::copy_n(content_.data(), count, to);
      content_.remove_prefix(count);
      return count;
    }
    ::ssize_t count = 0;
    do {
      count = ::read(descriptor_, to, room);
    } while (count < 0 && errno == EINTR);
    if (count < 0) {
      fail_in_file(name_, fmt::format("cannot be read ({}); check the file", std::strerror(errno)));
    }
    if (count == 0 && length_ != kUnknown && done_ < length_) {
      fail_in_file(name_, fmt::format("became shorter while it was read, from {} to {}; give it "
                                      "again when it is complete",
                                      byte_count(length_), byte_count(done_)));
    }
    done_ += static_cast<std::size_t>(count);
    return static_cast<std::size_t>(count);
  }

 private:
  std::string name_;
  int descriptor_ = -1;  // or the content itself:
  std::string_view content_;
  bool is_file_ = false;
  std::size_t length_ = kUnknown;
  std::size_t done_ = 0;
};

// --- What they hold -----------------------------------------------------------------------------

class Inflater {
 public:
  Inflater() {
    if (::inflateInit2(&stream_, 16 + MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { ::inflateEnd(&stream_); }

  // Inflates from the front of `input` to `to`, up to `room` bytes. Returns how many.
  std::size_t inflate(std::string_view& input, char* to, std::size_t room) {
    // zlib's interface takes a pointer to non-const and does not write through it.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data()));
    stream_.avail_in = static_cast<uInt>(input.size());
    stream_.next_out = reinterpret_cast<Bytef*>(to);
    stream_.avail_out = static_cast<uInt>(room);
    status_ = ::inflate(&stream_, Z_NO_FLUSH);
    if (status_ == Z_MEM_ERROR) throw std::bad_alloc();
    input.remove_prefix(input.size() - stream_.avail_in);
    if (status_ == Z_STREAM_END) ::inflateReset(&stream_);
    return room - stream_.avail_out;
  }

  bool ended() const { return status_ == Z_STREAM_END; }
  bool is_corrupt() const { return !ended() && status_ != Z_OK && status_ != Z_BUF_ERROR; }

 private:
  z_stream stream_{};
  int status_ = Z_OK;
};

constexpr std::size_t kInputBytes = std::size_t{1} << 18;

class Text {
 public:
  explicit Text(const std::filesystem::path& path) : bytes_(path) { begin(); }
  Text(std::string_view content, std::string name) : bytes_(content, std::move(name)) { begin(); }

  const Bytes& bytes() const { return bytes_; }
  bool is_compressed() const { return inflater_ != nullptr; }
  std::size_t longest() const {
    constexpr std::size_t kLargestRatio = 1032;  // no deflate stream does better
    if (!inflater_) return bytes_.length();
    return bytes_.length() > kUnknown / kLargestRatio ? kUnknown : bytes_.length() * kLargestRatio;
  }

  // Up to `room` bytes of text; 0: there are no more.
  std::size_t read(char* to, std::size_t room) {
    if (inflater_) return inflate(to, std::min(room, std::size_t{1} << 30));  // 32 bits in zlib
    if (input_.empty()) return bytes_.read(to, room);
    const std::size_t count = std::min(room, input_.size());
    std::copy_n(input_.data(), count, to);
    input_.remove_prefix(count);
    return count;
  }

 private:
  void begin() {
    refill();
    if (is_gzip(input_)) inflater_ = std::make_unique<Inflater>();
  }

  bool refill() {
    const std::size_t wanted = std::min(kInputBytes, bytes_.length());
    if (buffer_.empty()) buffer_.resize(std::max<std::size_t>(wanted, 2));
    std::size_t count = 0;
    // Two bytes tell gzip.
    while (count < 2) {
      const std::size_t more = bytes_.read(buffer_.data() + count, buffer_.size() - count);
      if (more == 0) break;
      count += more;
    }
    input_ = {buffer_.data(), count};
    return count > 0;
  }

  std::size_t inflate(char* to, std::size_t room) {
    for (;;) {
      if (inflater_->is_corrupt()) {
        fail_in_file(bytes_.name(), "the gzip data are corrupt; fetch the file again");
      }
      const bool has_input = !input_.empty() || refill();
      if (inflater_->ended()) {
        // A file may be several compressed streams, one after the other: their texts are joined.
        if (!has_input) return 0;
        if (input_.front() == '\0' && !padded_) padded_ = true;
        if (padded_) {
          input_.remove_prefix(std::min(input_.find_first_not_of('\0'), input_.size()));
          if (input_.empty()) continue;
        }
        if (padded_ || !is_gzip(input_)) {
          fail_in_file(
              bytes_.name(),
              "something that is not gzip follows the compressed text; fetch the file again");
        }
      } else if (!has_input) {
        fail_in_file(bytes_.name(),
                     "the gzip data end too early; the file is cut short, fetch it again");
      }
      const std::size_t count = inflater_->inflate(input_, to, room);
      if (count > 0) return count;
    }
  }

  Bytes bytes_;
  std::vector<char> buffer_;
  std::string_view input_;  // of buffer_, not yet used
  std::unique_ptr<Inflater> inflater_;
  bool padded_ = false;  // zeros have followed the last stream
};

// A piece that is filled with no byte written twice.
struct Piece {
  std::unique_ptr<char[]> text;
  std::size_t capacity = 0;
  std::size_t size = 0;
  std::size_t whole_lines = 0;  // how much of it ends in '\n'
  bool open_end = false;        // the last line's end is not the file's

  void reserve(std::size_t wanted) {
    if (wanted <= capacity) return;
    auto larger = std::make_unique_for_overwrite<char[]>(wanted);
    std::copy_n(text.get(), size, larger.get());
    text = std::move(larger);
    capacity = wanted;
  }
  std::string_view rest() const { return {text.get() + whole_lines, size - whole_lines}; }
};

// Where in `text` the first line of more than `longest` bytes begins; npos if there is none. Its
// first `searched` bytes have no line end. A line that long has none either in at least one of the
// parts of half that length; most parts show one at once.
std::size_t find_longer_line(std::string_view text, std::size_t searched, std::size_t longest) {
  for (std::size_t part = searched; part < text.size();) {
    const std::size_t part_end = part + longest / 2;
    std::size_t end = text.find('\n', part);
    if (end < part_end) {
      part = part_end;
      continue;
    }
    end = std::min(end, text.size());
    // npos + 1 is 0
    const std::size_t begin = part == searched ? 0 : text.rfind('\n', part - 1) + 1;
    if (end - begin > longest) return begin;
    part = end + 1;
  }
  return std::string_view::npos;
}

}  // namespace

// --- Whole lines --------------------------------------------------------------------------------

struct TextInPieces::State {
  State(const std::filesystem::path& path, std::size_t bytes)
      : text(path), piece_bytes(std::max<std::size_t>(bytes, 64)) {
    load({});
  }
  State(std::string_view content, std::string name, std::size_t bytes)
      : text(content, std::move(name)), piece_bytes(std::max<std::size_t>(bytes, 64)) {
    load({});
  }

  // Fills `coming` with `carried` and what follows it in the text.
  void load(std::string_view carried) {
    coming.size = 0;
    // One byte more than is left shows that no more is left; one for the end of the last line.
    const std::size_t left = text.longest() - std::min(text.longest(), taken);
    coming.reserve(carried.size() + std::min(piece_bytes, left) + 2);
    std::copy(carried.begin(), carried.end(), coming.text.get());
    coming.size = carried.size();
    std::size_t added = 0;
    coming.whole_lines = 0;
    coming.open_end = false;
    try {
      while (!ended && (added < piece_bytes || coming.whole_lines == 0)) {
        if (coming.size + 1 >= coming.capacity) coming.reserve(2 * coming.capacity);
        const std::size_t wanted = added < piece_bytes ? piece_bytes - added + 1 : piece_bytes;
        const std::size_t room = std::min(coming.capacity - coming.size - 1, wanted);
        const std::size_t count = text.read(coming.text.get() + coming.size, room);
        ended = count == 0;
        const std::size_t searched = coming.rest().size();
        coming.size += count;
        added += count;
        taken += count;
        if (const std::size_t begin = find_longer_line(coming.rest(), searched, kLongestLine);
            begin != std::string_view::npos) {
          coming.whole_lines += begin;
          fail_in_file(text.bytes().name(), fmt::format("a line is longer than {}; check the file",
                                                        byte_count(kLongestLine)));
        }
        const std::string_view fresh(coming.text.get() + coming.size - count, count);
        if (const std::size_t end = fresh.rfind('\n'); end != std::string_view::npos) {
          coming.whole_lines = coming.size - count + end + 1;
        }
      }
    } catch (...) {
      fault = std::current_exception();
      ended = true;
    }
    if (ended && !fault && coming.whole_lines < coming.size) {
      coming.text[coming.size++] = '\n';
      coming.whole_lines = coming.size;
      coming.open_end = true;
    }
    loaded = true;
  }

  void load_ahead() {
    if (ended || !text.bytes().is_file()) return;
    try {
      ahead = std::async(std::launch::async, [this] { load(given.rest()); });
    } catch (const std::system_error&) {
      // The system grants no more threads: then it is loaded when it is needed.
    }
  }

  // Whether there are lines in `coming`. Throws the fault when it is next.
  bool has_more() {
    if (ahead.valid()) ahead.get();
    if (!loaded) {
      coming.size = coming.whole_lines = 0;
      if (!ended) load(given.rest());
    }
    if (coming.whole_lines == 0 && fault) std::rethrow_exception(fault);
    return coming.whole_lines > 0;
  }

  Text text;
  const std::size_t piece_bytes;
  Piece given;
  Piece coming;
  bool loaded = false;    // `coming` holds what follows `given`
  std::size_t taken = 0;  // of the text, so far
  bool ended = false;
  std::exception_ptr fault;  // behind the lines in `coming`
  std::future<void> ahead;   // the last member: it is waited for before the others end
};

TextInPieces::TextInPieces(const std::filesystem::path& path, std::size_t piece_bytes)
    : state_(std::make_unique<State>(path, piece_bytes)) {}
TextInPieces::TextInPieces(std::string_view content, std::string name, std::size_t piece_bytes)
    : state_(std::make_unique<State>(content, std::move(name), piece_bytes)) {}
TextInPieces::~TextInPieces() = default;

const std::string& TextInPieces::name() const {
  return state_->text.bytes().name();
}

bool TextInPieces::is_compressed() const {
  return state_->text.is_compressed();
}

std::size_t TextInPieces::longest() const {
  return state_->text.longest();
}

std::string_view TextInPieces::head() const {
  return {state_->coming.text.get(), state_->coming.size};
}

std::string_view TextInPieces::next() {
  State& state = *state_;
  if (!state.has_more()) return {};
  std::swap(state.given, state.coming);
  state.loaded = false;
  state.load_ahead();
  return {state.given.text.get(), state.given.whole_lines};
}

std::string_view TextInPieces::extend() {
  State& state = *state_;
  if (state.has_more()) {
    Piece& given = state.given;
    const Piece& more = state.coming;
    const std::size_t wanted = given.whole_lines + more.size;
    if (wanted > given.capacity) given.reserve(2 * wanted);
    std::copy_n(more.text.get(), more.size, given.text.get() + given.whole_lines);
    given.size = given.whole_lines + more.size;
    given.whole_lines += more.whole_lines;
    given.open_end = more.open_end;
    state.loaded = false;
  }
  return {state.given.text.get(), state.given.whole_lines};
}

bool TextInPieces::open_end() const {
  return state_->given.open_end;
}

}  // namespace spmv
