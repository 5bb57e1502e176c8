#!/usr/bin/env python3
"""Right and wrong submissions for step 03: mistakes.py DIRECTORY

Writes each as a directory, to be graded: what students get wrong, and what they may try. Each is an
edit of the right kernel.
"""

import sys
from pathlib import Path

from exercises import ROOT, with_holes

GRADED = "03_csr_vector"

LOOP = "for (int k = row_begin + lane; k < row_end; k += lanes_per_row) {"


def right(text):
    return text


def change(old, new):
    def apply(text):
        if old not in text:
            raise AssertionError(f"the kernel has no '{old}' any more: mend the test")
        return text.replace(old, new, 1)

    return apply


VECTOR, SHARED = "csr_vector", "csr_vector_shared"
# name: (exercise, what is done to the right kernel, (correct, safe, targets) as ranges, remark)
FEW, MOST, ALL, NONE = range(0, 25), range(25, 50), range(50, 51), range(0, 1)
MISTAKES = {
    "right": (VECTOR, right, (ALL, [20], [30]), "^$"),
    # Shuffles whose source lanes have returned: their results are undefined, and dropped.
    "right_without_width": (VECTOR, change("distance, lanes_per_row)", "distance)"), (ALL, [20], [30]), "^$"),
    "lane_lost": (VECTOR, lambda text: change("if (lane == 0) y", "if (lane == lanes_per_row / 2) y")(
        change("distance, lanes_per_row)", "distance)")(text)), (FEW, [0], [0]), "csr_vector: .*undefined"),
    "past_the_row": (VECTOR, change(LOOP, LOOP.replace("<", "<=")), (FEW, [0], [0]), r"csr_vector.cuh:\d+.*reads"),
    "last_row": (VECTOR, change("row >= rows", "row >= rows - 1"), (FEW, [0], [0]), "wrong on"),
    "empty_rows": (VECTOR, change("T sum = 0;", "if (row_begin == row_end) return;\n  T sum = 0;"), (MOST, range(0, 21), [30]), "csr_vector: "),
    "one_lane": (VECTOR, change(LOOP, "for (int k = row_begin; lane == 0 && k < row_end; ++k) {"), (ALL, [20], range(0, 10)), "missed values.*lanes"),
    "one_thread": (VECTOR, change("const int row_begin", """if (thread == 0) {
    for (int r = 0; r < rows; ++r) {
      T all = 0;
      for (int k = row_offsets[r]; k < row_offsets[r + 1]; ++k) all += values[k] * x[column_indices[k]];
      y[r] = scale(alpha, all, beta, &y[r]);
    }
  }
  return;
  const int row_begin"""), (ALL, [20], range(0, 10)), "missed values.*lanes"),
    "one_thread_copies": (VECTOR, change("const int row_begin", """if (thread == 0) {
    for (int r = 0; r < rows; ++r) {
      T all = 0;
      for (int k = row_offsets[r]; k < row_offsets[r + 1]; k += 8) {
        T some[8];
        int columns[8];
        const int count = min(8, row_offsets[r + 1] - k);
        memcpy(some, values + k, count * sizeof(T));
        memcpy(columns, column_indices + k, count * sizeof(int));
        for (int i = 0; i < count; ++i) all += some[i] * x[columns[i]];
      }
      y[r] = scale(alpha, all, beta, &y[r]);
    }
  }
  return;
  const int row_begin"""), (ALL, [20], range(0, 10)), "missed values.*lanes"),
    "uncoalesced": (VECTOR, change(LOOP, """const int share = (row_end - row_begin + lanes_per_row - 1) / lanes_per_row;
  const int from = row_begin + lane * share;
  for (int k = from; k < min(from + share, row_end); ++k) {"""), (ALL, [20], [10]), "missed values, columns"),
    "right_with_later_features": (VECTOR, lambda text: change("  T sum = 0;", """  // 50%: of C++20
  struct Range { int begin, end; };
  const auto [first, last] = Range{row_begin, row_end};
  alignas(16) T zeros[4] = {};
  T sum = same(zeros[lane % 4] + T(first - row_begin + last - row_end));""")(
        change("sum += values[k] * x[column_indices[k]];", """union { T value; unsigned char bytes[sizeof(T)]; } both;
    both.value = values[k];
    const auto times_x = [v = both.value, x](int column) { return v * x[column]; };
    sum += times_x(column_indices[k]);""")(
        change("template <int lanes", """template <typename A>
concept Number = std::is_arithmetic_v<A>;
template <Number A>
__device__ A same(A a) {
  return a;
}

template <int lanes""")(text))), (ALL, [20], [30]), "^$"),
    "misaligned": (VECTOR, change("sum += values[k] * x[column_indices[k]];", """if (k + 1 < row_end) {
      using Pair = std::conditional_t<sizeof(T) == 8, double2, float2>;
      const Pair pair = *reinterpret_cast<const Pair*>(values + k);
      sum += pair.x * x[column_indices[k]] + 0 * pair.y;
    } else {
      sum += values[k] * x[column_indices[k]];
    }"""), (FEW, [0], [0]), "misaligned address: reads"),
    "not_initialised": (VECTOR, change("T sum = 0;", "T sum;"), (FEW, [0], [0]), "csr_vector: "),
    "half_a_mask": (VECTOR, change("(0xffffffffu, sum", "(0x0000ffffu, sum"), (FEW, [0], [0]), "mask 0xffff, which does not name the lane"),
    "rounds_too_few": (VECTOR, change("distance > 0", "distance > 1"), (FEW, [0], [0]), "wrong on"),
    "reads_y_for_nothing": (VECTOR, change("scale(alpha, sum, beta, &y[row])", "alpha * sum + beta * y[row]"), (FEW, [0], [0]), "wrong on"),
    "all_lanes_write": (VECTOR, change("if (lane == 0) y", "y"), (FEW, [0], [0]), "csr_vector.cuh:.*(race|wrong)|wrong on"),
    "volatile_race": (VECTOR, change("if (lane == 0) y", "volatile T* own = y;\n  own[row] = sum;\n  if (lane == 0) y"), (range(0, 51), [0], range(0, 31)), "csr_vector: .*race"),
    "shared_by_all": (VECTOR, change("T sum = 0;", """__shared__ T sums[32];
  sums[threadIdx.x % 32] = 0;
  T sum = sums[(threadIdx.x + 1) % 32];"""), (range(0, 51), [0], range(0, 31)), "csr_vector: .*(race|not written)"),
    "narrow_index": (VECTOR, change("for (int k = row_begin", "for (short k = row_begin"), (range(0, 51), [20], [0]), "missed values"),
    "divides_by_length": (VECTOR, change("T sum = 0;", "T sum = T(rows / (row_end - row_begin)) * T{0};"), (range(0, 51), [0], range(0, 31)), "divides an integer by zero"),
    "does_not_compile": (VECTOR, change("T sum = 0;", "T sum = 0"), (NONE, [0], [0]), "does not compile"),
    "for_ever": (VECTOR, change("k += lanes_per_row", "k += 0"), (NONE, [0], [0]), "did not end"),
    "not_started": (VECTOR, lambda text: with_holes(text, VECTOR, iter(["-"])), (NONE, [0], [0]), "not handed in"),
    "missing_barrier": (SHARED, change("+ distance];\n    __syncwarp();", "+ distance];"), ([40], [0], [20]), "csr_vector_shared: .*race"),
    "right_shared": (SHARED, right, ([40], [40], [20]), "^csr_vector: not handed in$"),
}  # fmt: skip


def write_mistake(name, directory):
    exercise, edit, _, _ = MISTAKES[name]
    text = (ROOT / GRADED / f"{exercise}.cuh").read_text(encoding="utf-8")
    place = Path(directory) / name
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{exercise}.cuh").write_text(edit(text), encoding="utf-8")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for name in MISTAKES:
        write_mistake(name, sys.argv[1])
    print(f"{len(MISTAKES)} submissions in {sys.argv[1]}")


if __name__ == "__main__":
    main()
