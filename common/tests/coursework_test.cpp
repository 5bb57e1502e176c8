#include <algorithm>

#include "coursework/drawing.hpp"
#include "coursework/protocol.hpp"
#include "coursework/shrink.hpp"
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

Index longest_row(const Coo<double>& matrix) {
  std::vector<Index> lengths(matrix.rows);
  for (const Index row : matrix.row_indices) ++lengths[row];
  return lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
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

  small = shrunk("rows of 33", [](const auto& m) { return longest_row(m) > 5; });
  CHECK(small.rows == 1);
  CHECK(small.cols == 6);
  CHECK(small.nnz() == 6);

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

  const Coo<double> wide{40, 100, {39, 39, 39, 39, 39}, {0, 20, 40, 60, 99}, {1, 2, 3, 4, 5}};
  std::vector<bool> wrong(40);
  wrong[39] = true;
  const std::string large =
      draw(wide, {}, {}, std::vector<double>(40), std::vector<double>(40), wrong);
  CHECK(std::count(large.begin(), large.end(), '\n') == 2);
  CHECK(large.find("5 nonzeros  0: [0] 1  ...  4: [99] 5  ") != std::string::npos);

  Coo<double> crossing{1, 300, {}, {}, {}};
  for (int k = 0; k < 300; ++k) {
    crossing.row_indices.push_back(0);
    crossing.column_indices.push_back(k);
    crossing.values.push_back(1);
  }
  const std::string border = draw(crossing, {}, {}, {300}, {256}, {true});
  CHECK(border.find("0: [0] 1  ...  255: [255] 1  256: [256] 1  ...  299: [299] 1") !=
        std::string::npos);
}

TEST_CASE("an answer of the runner comes back as it was sent", "[coursework]") {
  Reply sent;
  sent.answer = Answer::kDone;
  sent.y = std::string(24, 'y');
  sent.counts = {{"values", "global", "load", "k.cuh", 17, 1, 2, 3, 4, 5, 6}};
  const Reply got = read_reply(write_reply(sent), 24);
  CHECK(got.y == sent.y);
  REQUIRE(got.counts.size() == 1);
  CHECK(got.counts[0].array == "values");
  CHECK(got.counts[0].bank_passes == 6);
  CHECK(got.counts[0].file == "k.cuh");
  CHECK(got.counts[0].line == 17);
  CHECK(write_reply(sent).size() <= most_reply_bytes(24));
}

TEST_CASE("an answer that is none is refused, wherever it ends", "[coursework]") {
  Reply reply;
  reply.answer = Answer::kDone;
  reply.y = std::string(8, 'y');
  reply.counts = {{"values", "global", "load", "", 0, 1, 2, 3, 4, 5, 6}};
  const std::string good = write_reply(reply);
  for (std::size_t size = 0; size < good.size(); ++size) {
    CHECK_THROWS_AS(read_reply(good.substr(0, size), 8), ProtocolError);
  }
  CHECK_THROWS_AS(read_reply(good + "x", 8), ProtocolError);
  CHECK_THROWS_AS(read_reply(good, 16), ProtocolError);
  CHECK_THROWS_AS(read_reply(std::string(1, '\x07'), 8), ProtocolError);
  // Any byte may be another: an answer or an error, and nothing else.
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const int byte : {0x00, 0x7f, 0xff}) {
      std::string other = good;
      other[at] = static_cast<char>(byte);
      bool taken_or_refused = false;
      try {
        taken_or_refused = read_reply(other, 8).counts.size() <= 1;
      } catch (const ProtocolError&) {
        taken_or_refused = true;
      }
      CHECK(taken_or_refused);
    }
  }
  reply.counts[0].space = "nowhere";
  CHECK_THROWS_AS(read_reply(write_reply(reply), 8), ProtocolError);
  reply.counts[0].space = "global";
  reply.counts[0].lanes = ~std::uint64_t{0};
  CHECK_THROWS_AS(read_reply(write_reply(reply), 8), ProtocolError);
}

TEST_CASE("text from the runner is printable and short", "[coursework]") {
  Reply reply;
  reply.answer = Answer::kFailed;
  reply.text = "a\x1b[2Jb\xff\n" + std::string(5000, 'c');
  const Reply got = read_reply(write_reply(reply), 0);
  CHECK(got.text.size() == kMostText);
  CHECK(got.text.substr(0, 9) == "a?[2Jb?\nc");
}
