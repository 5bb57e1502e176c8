#include <algorithm>

#include "coursework/drawing.hpp"
#include "coursework/protocol.hpp"
#include "tests/catch.hpp"
#include "tests/kernel_matrices.hpp"

using namespace spmv;
using namespace spmv::coursework;

namespace {

Coo<double> matrix_named(const std::string& name) {
  for (const test::NamedMatrix& matrix : test::adversarial_matrices()) {
    if (matrix.name == name) return matrix.triplets;
  }
  return {};
}

}  // namespace

TEST_CASE("a failure shrinks to what it needs", "[coursework]") {
  const auto shrunk = [](const std::string& name, auto fails) {
    const Coo<double> matrix = matrix_named(name);
    REQUIRE(fails(matrix));
    const Coo<double> small = shrink(matrix, fails);
    CHECK(fails(small));
    for (Index k = 0; k < small.nnz(); ++k) {
      CHECK((small.row_indices[k] >= 0 && small.row_indices[k] < small.rows));
      CHECK((small.column_indices[k] >= 0 && small.column_indices[k] < small.cols));
    }
    return small;
  };
  Coo<double> small = shrunk("tall", [](const auto& m) { return m.rows >= 33; });
  CHECK(small.rows == 33);
  CHECK(small.cols == 0);
  CHECK(small.nnz() == 0);

  // A row without nonzeros after one that has some.
  small = shrunk("rows of 0 and 1 in turn", [](const auto& m) {
    std::vector<bool> has(m.rows);
    for (const Index row : m.row_indices) has[row] = true;
    for (Index row = 1; row < m.rows; ++row) {
      if (has[row - 1] && !has[row]) return true;
    }
    return false;
  });
  CHECK(small.rows == 2);
  CHECK(small.nnz() == 1);
  CHECK(small.row_indices[0] == 0);
}

TEST_CASE("shrinking stops after so many attempts", "[coursework]") {
  int calls = 0;
  shrink(
      matrix_named("tall"),
      [&calls](const Coo<double>&) {
        ++calls;
        return false;
      },
      17);
  CHECK(calls == 17);
}

TEST_CASE("a wrong product is drawn", "[coursework]") {
  const Coo<double> small{2, 3, {0, 0, 1}, {0, 2, 1}, {1.5, -2, 0.25}};
  const std::string text = draw(small, {1, 2, 3}, {}, {-4.5, 0.5}, {-4.5, 0.75}, {false, true});
  CHECK(text == R"(   row  A                           expected       got
     0       1.5       .      -2        -4.5      -4.5
     1         .    0.25       .         0.5      0.75  <-- wrong
     x         1       2       3
)");

  // As many digits as tell two numbers apart.
  const std::string near = draw({1, 1, {0}, {0}, {1}}, {1}, {}, {-0.3501012}, {-0.3501013}, {true});
  CHECK(near.find("-0.3501012  -0.3501013  <-- wrong") != std::string::npos);

  std::vector<bool> wrong(4001);
  wrong[39] = true;
  const std::vector<double> y(4001);
  const std::string large = draw(matrix_named("tall"), {}, {}, y, y, wrong);
  CHECK(std::count(large.begin(), large.end(), '\n') == 2);
  CHECK(large.find("    39      3 nonzeros") != std::string::npos);
}

TEST_CASE("an answer of the runner is read, and one that is none is refused", "[coursework]") {
  Reply reply{"done", "", {}, {}, {}, 7, 5, "3 us\x1b"};
  reply.lines.push_back({"values", "global", "load", "k.cuh", 17, 1, 2, 3, 4, 5, 6});
  Json sent = reply;
  const Json line = sent["lines"][0];
  const Reply got = read_reply(sent.dump());
  REQUIRE(got.lines.size() == 1);
  CHECK(Json(got.lines[0]) == line);
  CHECK(got.steps == 7);
  CHECK(got.mean_steps == 5);
  CHECK(got.time == "3 us?");
  const auto answered = [](const Json& name, const char* text) {
    Json other = Reply{};
    other["answer"] = name, other["text"] = text;
    return read_reply(other.dump());
  };
  CHECK(answered("failed", "why").text == "why");
  CHECK_THROWS_AS(answered("fine", ""), ProtocolError);
  CHECK_THROWS_AS(answered(1, ""), ProtocolError);

  const std::string good = sent.dump();
  for (std::size_t size = 0; size < good.size(); ++size) {
    CHECK_THROWS_AS(read_reply(good.substr(0, size)), ProtocolError);
  }
  for (const char* bad : {"[]", "1", R"({"answer": "failed"})"}) {
    CHECK_THROWS_AS(read_reply(bad), ProtocolError);
  }
  for (const auto& [name, value] : sent.items()) {
    for (const Json& other : {Json(-1), Json(true), Json("x"), Json(nullptr)}) {
      if (other.type() == value.type()) continue;
      Json bad = sent;
      bad[name] = other;
      CHECK_THROWS_AS(read_reply(bad.dump()), ProtocolError);
      bad.erase(name);
      CHECK_THROWS_AS(read_reply(bad.dump()), ProtocolError);
    }
  }
  for (const auto& [name, value] : line.items()) {
    for (const Json& other : {Json(-1), Json(1e300), Json(std::uint64_t{1} << 60), Json::array()}) {
      sent["lines"][0] = line;
      sent["lines"][0][name] = other;
      CHECK_THROWS_AS(read_reply(sent.dump()), ProtocolError);
    }
  }
  sent["lines"] = Json::array();
  for (std::size_t i = 0; i <= kMostCounts; ++i) sent["lines"].push_back(line);
  CHECK_THROWS_AS(read_reply(sent.dump()), ProtocolError);
  CHECK_THROWS_AS(read_reply(std::string(kMostAnswer, '[')), ProtocolError);
}

TEST_CASE("text from the runner is printable and short", "[coursework]") {
  const std::string text = printable("a\x1b[2Jb\xff\n" + std::string(5000, 'c'));
  CHECK(text.size() == kMostText);
  CHECK(text.substr(0, 9) == "a?[2Jb?\nc");
}
