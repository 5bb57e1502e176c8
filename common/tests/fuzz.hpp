// What libFuzzer's targets assert.
#pragma once

#include <cstdio>
#include <cstdlib>

#define REQUIRE(condition) require(condition, #condition, __FILE__, __LINE__)

inline void require(bool holds, const char* condition, const char* file, int line) {
  if (holds) return;
  std::fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, condition);
  std::abort();
}
