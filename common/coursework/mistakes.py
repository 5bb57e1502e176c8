#!/usr/bin/env python3
"""What students get wrong, and what cheats try: mistakes.py DIRECTORY [STEP...]   writes a submission for each mistake
                           mistakes.py --table [STEP...]      grades them, and writes the table of mistakes.md

Each is the right kernel of an exercise with an edit. It costs more than half of the points for what it violates
("right", "safe", or a target by its name), and the message names the mistake. Cheats stand in the same list, behind the
mistakes, and in neither of the two outputs above.
"""

import csv
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from exercises import ROOT, read_step, without_marks, write_files


@dataclass(frozen=True)
class Mistake:
    name: str
    file: str
    violates: str  # "right", "safe", or a target of the exercise
    says: str  # an expression that matches what the check says
    edits: tuple  # (old, new)

    def apply(self, text):
        for old, new in self.edits:
            if old not in text:
                raise AssertionError(f"{self.file} has no '{old}' any more: mend '{self.name}'")
            text = text.replace(old, new, 1)
        return text


def of(file, *rows):
    return [
        Mistake(name, file, violates, says, tuple(zip(edits[::2], edits[1::2])))
        for name, violates, says, *edits in rows
    ]


RACE, OUTSIDE = "race: ", r"(reads|writes|updates) ('\w+'\[|\d+ bytes)"
SERIAL = """if (blockIdx.x * blockDim.x + threadIdx.x == 0) {
    for (int r = 0; r < rows; ++r) {
      T all = 0;
      for (int k = row_offsets[r]; k < row_offsets[r + 1]; ++k) all += values[k] * x[column_indices[k]];
      y[r] = scale(alpha, all, beta, &y[r]);
    }
  }
  return;
"""
VECTOR_LOOP = "for (int k = row_begin + lane; k < row_end; k += lanes_per_row) {"
COO_ADD = "atomicAdd(&y[row_indices[k]], alpha * (values[k] * x[column_indices[k]]));"

# fmt: off
MISTAKES = {
    "02_csr_scalar": of("csr_scalar.cuh",
        ("the guard of the last block is missing", "safe", OUTSIDE, "if (row >= rows) return;",
         ""),
        ("the last row is forgotten", "right", "not written|as it was before", "row >= rows",
         "row >= rows - 1"),
        ("one nonzero too many (<=)", "right", r"reads 'values'", "k < row_end", "k <= row_end"),
        ("y is not scaled by beta", "right", "beta y is missing",
         "scale(alpha, sum, beta, &y[row])", "alpha * sum"),
        ("y is read where beta is 0", "right", "read although beta is 0",
         "scale(alpha, sum, beta, &y[row])", "alpha * sum + beta * y[row]"),
        ("alpha is forgotten", "right", "alpha is missing", "scale(alpha, sum,",
         "scale(T{1}, sum,"),
        ("the sum is kept in an int", "right", "in an int", "T sum = 0;", "int sum = 0;",
         "scale(alpha, sum,", "scale(alpha, T(sum),"),
        ("the sum is kept in a float", "right", "kept in a float", "T sum = 0;", "float sum = 0;",
         "scale(alpha, sum,", "scale(alpha, T(sum),"),
        ("y is looked at instead of beta", "right", "NaN", "scale(alpha, sum, beta, &y[row])",
         "(y[row] == y[row] ? alpha * sum + beta * y[row] : alpha * sum)"),
        ("alpha is kept in a float", "right", "kept in a float", "scale(alpha, sum,",
         "scale(T(float(alpha)), sum,"),
        ("the sum is not set to 0", "right", "expected", "T sum = 0;", "T sum;"),
        ("a row number of 16 bits", "safe", OUTSIDE, "const int row =", "const short row ="),
        ("one thread does all", "lanes", "1 lanes per request", "const int row =",
         SERIAL + "  const int row ="),
        ("neighbouring threads take rows far apart", "stores", "stores to y",
         "blockIdx.x * blockDim.x + threadIdx.x", "threadIdx.x * gridDim.x + blockIdx.x"),
    ),
    "03_csr_vector": of("csr_vector.cuh",
        ("one nonzero too many (<=)", "right", r"reads 'values'", VECTOR_LOOP,
         VECTOR_LOOP.replace("<", "<=")),
        ("the last row is forgotten", "right", "not written|as it was before", "row >= rows",
         "row >= rows - 1"),
        ("rows without nonzeros are left alone", "right", "not written", "T sum = 0;",
         "if (row_begin == row_end) return;\n  T sum = 0;"),
        ("one round too few", "right", "expected", "distance > 0", "distance > 1"),
        ("half a mask", "safe", "mask 0xffff, which does not name the lane", "(0xffffffffu, sum",
         "(0x0000ffffu, sum"),
        ("another lane than the first writes", "right", "undefined|expected", "if (lane == 0) y",
         "if (lane == lanes_per_row / 2) y", "distance, lanes_per_row)", "distance)"),
        ("all lanes write", "right", f"{RACE}|expected", "if (lane == 0) y", "y"),
        ("a sum that begins on some paths only", "right", "enormous|undefined", "T sum = 0;",
         "T sum;\n  if (row_begin + lane < row_end) sum = 0;"),
        ("a lane without nonzeros returns before the shuffle", "safe",
         "undefined|never|returned|deadlock", "  // A tree",
         "  if (row_begin + lane >= row_end && lane > 0) return;\n  // A tree"),
        ("a counter of 16 bits", "safe", OUTSIDE, "for (int k = row_begin",
         "for (short k = row_begin"),
        ("the mean divides by the length of a row", "safe", "divides an integer by zero",
         "T sum = 0;", "T sum = T(rows / (row_end - row_begin)) * T{0};"),
        ("pairs are loaded from any address", "safe", "misaligned address: reads",
         "sum += values[k] * x[column_indices[k]];",
         "using Pair = std::conditional_t<sizeof(T) == 8, double2, float2>;\n    const Pair pair = k + 1 < row_end ? *reinterpret_cast<const Pair*>(values + k) : Pair{values[k], T{0}};\n    sum += pair.x * x[column_indices[k]] + 0 * pair.y;"),
        ("a loop without end", "right", "did not end", "k += lanes_per_row", "k += 0"),
        ("one lane adds up the row", "lanes", "lanes per request", VECTOR_LOOP,
         "for (int k = row_begin; lane == 0 && k < row_end; ++k) {"),
        ("each lane takes a piece of the row", "values", "neighbouring values", VECTOR_LOOP,
         "const int piece = (row_end - row_begin + lanes_per_row - 1) / lanes_per_row;\n  const int from = row_begin + lane * piece;\n  for (int k = from; k < min(from + piece, row_end); ++k) {"),
        ("shared memory is read before it is written", "safe", f"not written|{RACE}", "T sum = 0;",
         "__shared__ T sums[32];\n  sums[threadIdx.x % 32] = 0;\n  T sum = sums[(threadIdx.x + 1) % 32];"),
    )
    + of("csr_vector_shared.cuh",
        ("__syncwarp() is missing in the loop", "safe", f"{RACE}.*partial_sums",
         "+ distance];\n    __syncwarp();", "+ distance];"),
        ("__syncwarp() is missing before the loop", "safe", f"{RACE}|not written",
         "  }\n  __syncwarp();", "  }"),
        ("the sum does not begin at 0", "right", "not written|expected",
         "partial_sums[threadIdx.x] = 0;", ""),
        ("one warp does all", "values", "Few threads",
         "  const int row_begin = row_offsets[row];\n  const int row_end = row_offsets[row + 1];\n",
         "  for (int all = row; row == 0 && all < rows; ++all) {\n  const int row_begin = row_offsets[all];\n  const int row_end = row_offsets[all + 1];\n",
         "if (lane == 0) y[row] = scale(alpha, partial_sums[threadIdx.x], beta, &y[row]);",
         "if (lane == 0) y[all] = scale(alpha, partial_sums[threadIdx.x], beta, &y[all]);\n  }"),
    ),
    "04_atomic_coo": of("atomic_coo.cuh",
        ("plain addition in place of atomicAdd", "right", "atomic", COO_ADD,
         "y[row_indices[k]] += alpha * (values[k] * x[column_indices[k]]);"),
        ("products overwrite each other", "right", "expected|race", COO_ADD,
         "y[row_indices[k]] = alpha * (values[k] * x[column_indices[k]]);"),
        ("the end of the nonzeros is not looked at", "safe", OUTSIDE, " && k < nnz", ""),
        ("one nonzero too many (<=)", "right", "expected", "i < kItemsPerThread",
         "i <= kItemsPerThread"),
        ("alpha is forgotten", "right", "expected", "alpha * (values", "(values"),
        ("a thread's nonzeros are neighbours", "values", "32 neighbouring nonzeros",
         "thread / 32 * 32 * kItemsPerThread + thread % 32", "thread * kItemsPerThread", "k += 32",
         "++k"),
        ("one warp does all", "lanes", "Few threads", "i < kItemsPerThread && k < nnz",
         "thread < 32 && k < nnz"),
        ("the row's index is a column's", "right", f"expected|{OUTSIDE}", "&y[row_indices[k]]",
         "&y[column_indices[k]]"),
    )
    + of("atomic_coo_sorted.cuh",
        ("the last row's sum is lost", "right", "expected",
         "  if (row >= 0) atomicAdd(&y[row], alpha * sum);\n}", "}"),
        ("the sum is not set back to 0", "right", "expected", "      sum = 0;\n", ""),
        ("one atomic per nonzero", "atomics", "One atomic per row", "if (next_row != row) {",
         "if (true) {"),
        ("plain addition at the end", "right", "atomic",
         "  if (row >= 0) atomicAdd(&y[row], alpha * sum);\n}",
         "  if (row >= 0) y[row] += alpha * sum;\n}"),
    )
    + of("atomic_coo_warp.cuh",
        ("all lanes of a row add", "right", "expected", "if (first_of_row && row >= 0)",
         "if (row >= 0)"),
        ("the end of the nonzeros is not looked at", "safe", OUTSIDE,
         "k < nnz ? row_indices[k] : -1", "row_indices[k]"),
        ("plain addition by the first lane", "right", "atomic", "atomicAdd(&y[row], alpha * sum);",
         "y[row] += alpha * sum;"),
        ("neighbours of other rows are added", "right", "expected",
         "if (lanes_of_row >> lane >> distance & 1) sum", "sum"),
    ),
    "05_segmented_scan": of("segscan_block.cuh",
        ("the barrier after the sums are stored is missing", "safe", f"{RACE}|not written",
         "    sums[thread] = sum;\n    __syncthreads();\n\n", "    sums[thread] = sum;\n\n"),
        ("the barrier at the end of a round is missing", "safe", f"{RACE}|not written",
         "      sums[thread] = sum;\n      __syncthreads();", "      sums[thread] = sum;"),
        ("the barrier at the end of a tile is missing", "safe", RACE,
         "T{0} : sum;\n    __syncthreads();", "T{0} : sum;"),
        ("the carry is lost", "right", "expected", "if (thread == 0) sum += carry;", ""),
        ("the carry is not set back to 0", "right", "expected", "carry = row_ends ? T{0} : sum;",
         "carry = sum;"),
        ("every thread writes y", "right", f"expected|{RACE}",
         "const bool row_ends = row >= 0 && next_row != row;", "const bool row_ends = row >= 0;"),
        ("sums reach back over the row's beginning", "right", "expected",
         " && rows[thread - distance] == row", ""),
        ("a barrier that not all threads reach", "safe", "deadlock|never|barrier",
         "    rows[thread] = row;\n", "    if (row < 0) break;\n    rows[thread] = row;\n"),
    )
    + of("segscan_shuffle.cuh",
        ("the row after the last lane's is not looked at", "right", "expected",
         "if (lane == 31) next_row = first_row_after;", ""),
        ("the carry is lost", "right", "expected",
         "lane == 0 ? products[iteration] + carry : products[iteration]", "products[iteration]"),
        ("the barrier before the warps' sums is missing", "safe", f"{RACE}|not written",
         "  __syncthreads();\n  if (threadIdx.x == 0) {", "  if (threadIdx.x == 0) {"),
        ("sums reach back over the row's beginning", "right", "expected",
         "if (lane - distance >= first_lane) sum", "if (lane >= distance) sum"),
    ),
    "06_pcsr": of("pcsr_products.cuh",
        ("one product too many (<=)", "safe", OUTSIDE, "k < static_cast<unsigned>(nnz)",
         "k <= static_cast<unsigned>(nnz)"),
    )
    + of("pcsr_sums.cuh",
        ("the barrier before the next piece is missing", "safe", RACE,
         "    __syncthreads();\n    for (int j = tid", "    for (int j = tid"),
        ("the barrier after a piece is loaded is missing", "safe", f"{RACE}|not written",
         "v_s[j] = middle[i + j];\n    __syncthreads();\n", "v_s[j] = middle[i + j];\n"),
        ("each thread reads the products of its row itself", "middle", "middle", "sum += v_s[j];",
         "sum += middle[i + j];"),
        ("threads past the last row write y", "safe", OUTSIDE, "if (tid < rows_here) y", "y"),
    )
    + of("csr_adaptive.cuh",
        ("the barrier after the products is missing", "safe", f"{RACE}|not written",
         "  }\n  __syncthreads();\n  // As many", "  }\n  // As many"),
        ("products are stored beyond shared memory", "safe", r"(reads|writes) shared|outside of",
         "products[j] = values[begin + j]", "products[begin + j] = values[begin + j]"),
        ("only the first rows of a block are added up", "right", "expected",
         "done += threads / lanes) {", "done += stream_rows) {"),
    ),
    "07_lightspmv": of("lightspmv.cuh",
        ("a plain addition to the row counter", "safe", RACE,
         "atomicAdd(row_counter, lanes_per_fetch / lanes_per_row)",
         "(*row_counter += lanes_per_fetch / lanes_per_row) - lanes_per_fetch / lanes_per_row"),
        ("the mask names the first lane alone", "safe", "does not name the lane",
         "__shfl_sync(team, row, 0", "__shfl_sync(1u, row, 0"),
        ("the last rows are not looked at", "safe", OUTSIDE, "if (lane == 0 && row < rows) y",
         "if (lane == 0) y"),
        ("one block takes all rows", "values", "Few threads", "  while (true) {",
         "  while (blockIdx.x == 0) {"),
        ("every lane fetches", "right", "expected", "if (lane_of_team == 0) {", "{"),
    )
    + of("lightspmv_counters.cuh",
        ("the sum is not handed to all lanes", "right", "expected|undefined",
         "__shfl_xor_sync(0xffffffffu, sum, distance)",
         "__shfl_down_sync(0xffffffffu, sum, distance)"),
        ("the counter does not wrap to 0", "right", "second",
         "atomicInc(&counters[id * kCounterStride], last_ticket)",
         "atomicAdd(&counters[id * kCounterStride], 1u)"),
    ),
    "08_formats_ell_hyb_dia": of("ell.cuh",
        ("the matrix is read row by row", "right", f"expected|{OUTSIDE}",
         "std::size_t place = row;", "std::size_t place = std::size_t{row} * width;",
         "place += pitch", "++place"),
        ("padding is multiplied", "safe", OUTSIDE, "if (column != kNoColumn) sum", "sum"),
        ("rows for pitch", "right", f"expected|{OUTSIDE}", "place += pitch", "place += rows"),
    )
    + of("sell.cuh",
        ("the permutation is forgotten", "right", "expected",
         "const unsigned row = row_of_slot(slot, places);", "const unsigned row = slot;"),
        ("a slice's width counts elements", "right", f"expected|{OUTSIDE}",
         "static_cast<std::size_t>(begin) * kSlice + threadIdx.x",
         "static_cast<std::size_t>(begin) + threadIdx.x"),
    )
    + of("dia.cuh",
        ("columns outside of the matrix", "safe", OUTSIDE, "if (column < cols) sum", "sum"),
        ("an offset is taken for a column", "right", f"expected|{OUTSIDE}", "row + offsets[d]",
         "offsets[d]"),
    )
    + of("dia_csr.cuh",
        ("the rest of a row is forgotten", "right", "expected", "if (begin < end) {",
         "if (false) {"),
        ("the last diagonals are lost", "right", "expected", "if (first >= diagonals) break;",
         "if (first + kDiagonalsInFlight > diagonals) break;"),
    ),
    "09_cds": of("cds.cuh",
        ("blocks outside of the matrix", "safe", OUTSIDE,
         "const bool inside = block_column < block_columns;", "const bool inside = true;"),
        ("the block's column is taken for an element's", "right", "expected",
         "x[block_column * block + column + c]", "x[block_column + column + c]"),
        ("values do not move on", "right", "expected",
         "value += kDiagonalsInFlight * block * stride;", "value += stride;"),
    ),
}
# fmt: on


# --- What is no mistake ---------------------------------------------------------------------------

# What is violated by what a student would not write by mistake: FLAGGED, its flag is the first thing to read, whatever its points;
# ALL, it gets none (or next to none). BROKEN: it is not linked, or does not compile.
FLAGGED, ALL, BROKEN = "a flag", "all", "linking"
FIRST, TOP = "  const int row_begin = ", "template <int lanes_per_row"
INCLUDE = "#include <cuda_runtime.h>\n"
SYSTEM_CALL = "a system call that no kernel makes"
OUTSIDE_OF_ARRAY = "reads outside of the local or shared array"
EARLY = "runs before all else"
# The word of the stack that holds the kernel's return address; what is to be done with it follows.
AT_RETURN_ADDRESS = "volatile long near = 0; volatile long* volatile there = &near; volatile long* p = there; for (int i = 0; i < 64; ++i) if (p[i] == (long)__builtin_return_address(0)) { "
ONE = """template <typename A> struct One { A v; };
template <typename A> __device__ One<A> one_of(A v, int n) { return n > 0 ? one_of(v, n - 1) : One<A>{v}; }"""


def in_kernel(code, top="", include=""):
    """Edits that put something into the kernel of step 03, before all else."""
    return FIRST, f"  {code}\n{FIRST}", TOP, f"{top}\n{TOP}", INCLUDE, INCLUDE + include


def at_top(code):
    return in_kernel("", top=code)


SCALAR_LOOP = "for (int k = row_begin; k < row_end; ++k) {"
ROW = "  if (row >= rows) return;\n"

MISTAKES["02_csr_scalar"] += of(
    "csr_scalar.cuh",
    ("rows end at 8192 nonzeros", "right", "a row of 12500", SCALAR_LOOP, SCALAR_LOOP.replace("< row_end", "< min(row_end, row_begin + 8192)")),
    ("a row number of 16 bits without a sign", "right", "66000 x 66000", "const int row =", "const unsigned short row ="),
    ("a stored zero ends the row", "right", "explicit zeros|expected", SCALAR_LOOP, SCALAR_LOOP + " if (values[k] == T{0}) break;"),
    ("two warps of each block do all", "lanes", "busiest warp", ROW, "  if (threadIdx.x >= 64) return;\n", "  y[row] = scale(alpha, sum, beta, &y[row]);\n", "  y[row] = scale(alpha, sum, beta, &y[row]);\n  }\n", "  const int row_begin =", "  for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < min(rows, int((blockIdx.x + 1) * blockDim.x)); row += 64) {\n  const int row_begin ="),
    ("few warps on large matrices alone", "lanes", "on 66000 x 66000, two diagonals the busiest warp", ROW, "  const int last = min(rows, int((blockIdx.x + 1) * blockDim.x)), step = rows > 30000 ? 32 : 256;\n  if (threadIdx.x >= step) return;\n", "  y[row] = scale(alpha, sum, beta, &y[row]);\n", "  y[row] = scale(alpha, sum, beta, &y[row]);\n  }\n", "  const int row_begin =", "  for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < last; row += step) {\n  const int row_begin ="),
    ("an initialiser plays the runner", ALL, "an initialiser", INCLUDE, INCLUDE + "#include <iostream>\n", "template <typename T>", 'static const bool played = [] { char c; while (std::cin.get(c)) std::cout.write("spmv runner 2", 13).flush(); return true; }();\ntemplate <typename T>', ROW, "  if (row >= 0) return;\n"),
)  # fmt: skip
MISTAKES["03_csr_vector"] += of(
    "csr_vector.cuh",
    ("no case for 16 lanes", "right", "csr_vector_16", "distance > 0", "distance > (lanes_per_row == 16 ? 1 : 0)"),
    ("work by atomics, loads for show", "columns", "busiest warp|lanes per request|per request", "T sum = 0;", "T sum = 0, seen = 0;", "sum += values[k] * x[column_indices[k]];", "seen += values[k] + column_indices[k];", "  // A tree", "  for (int k = row_begin; lane == 0 && k < row_end; ++k) sum += atomicAdd((T*)&values[k], T(0)) * x[atomicAdd((int*)&column_indices[k], 0)];\n  if (seen == T(1e30)) sum = 0;\n  // A tree"),
    # System calls.
    ("it exits", FLAGGED, "'exit'", *in_kernel("exit(0);", include="#include <cstdlib>\n")),
    ("it forks", ALL, SYSTEM_CALL, *in_kernel("while (true) fork();", include="#include <unistd.h>\n")),
    ("it opens a connection", ALL, SYSTEM_CALL, *in_kernel("socket(2, 1, 0);", include="#include <sys/socket.h>\n")),
    ("threads that spin", ALL, SYSTEM_CALL, *in_kernel("std::thread([] { for (;;) {} }).detach();", include="#include <thread>\n")),
    ("it sleeps", FLAGGED, "'usleep'", *in_kernel("usleep(1000000);", include="#include <unistd.h>\n")),
    ("it reads its own memory as a file", FLAGGED, "fopen", *in_kernel('if (FILE* f = fopen("/proc/self/mem", "r")) fclose(f);', include="#include <cstdio>\n")),
    # Calls that no name shows, and accesses that are not observed.
    ("a function pointer in a template", FLAGGED, "a call through a pointer", *in_kernel("call_at(+[] {}, 0x401000);", top="template <typename F> __device__ void call_at(F, long a) { std::bit_cast<F>(a)(); }")),
    ("it changes the settings", FLAGGED, "settings", *in_kernel("simt::settings().check_races = false;")),
    ("a store hidden in sprintf", FLAGGED, "sprintf", *in_kernel('if (rows < 0) sprintf((char*)y, "%d", rows);', include="#include <cstdio>\n")),
    ("a load hidden in std::hash", FLAGGED, "_Hash_bytes", *in_kernel("if (std::hash<std::string_view>()({(const char*)(values + row_offsets[row]), 8}) == 3) return;", include="#include <string_view>\n")),
    ("a function that is not observed", FLAGGED, "without being observed", *in_kernel("if (peek(values + row_offsets[0]) == T(1e30)) return;", top="template <typename A> __attribute__((no_sanitize_thread, noinline)) __device__ A peek(const A* p) { return *p; }")),
    ("assembly", FLAGGED, "'asm'", *in_kernel('asm volatile("");')),
    ("pasted assembly", FLAGGED, "'asm'", *in_kernel('PASTE(as, m)("");', top="#define PASTE(a, b) a##b")),
    ("a pragma silences the compiler", FLAGGED, "'last' may be used uninitialized", *in_kernel("int last; if (row < rows - 1) last = row; if (last == -2) return;", include='#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"\n_Pragma("GCC system_header")\n')),
    ("a variable that is set on some paths", FLAGGED, "'last' may be used uninitialized", *in_kernel("int last; if (row < rows - 1) last = row; if (last == -2) return;")),
    ("it remembers", ALL, "which would outlive the launch", *in_kernel("static T last; last = 1;")),
    ("through a result", ALL, "writes 'y'", *in_kernel("*(One<T>*)(y + row) = one_of(T{1}, 1);", top=ONE)),
    ("through a cast to an array", ALL, OUTSIDE_OF_ARRAY, *in_kernel("T near; y[row] = reinterpret_cast<const T (&)[1l << 40]>(near)[values - &near];")),
    ("through a union", ALL, "writes", *in_kernel("union { long number; T* pointer; } both; both.number = 0x500000l + 8 * rows; *both.pointer = 1;")),
    ("a division by zero", ALL, "divides an integer by zero", *in_kernel("y[row] = T(7 / (row - row)); return;")),
    ("a local variable by an atomic", ALL, "a local variable by an atomic", *in_kernel("unsigned long long near = 0; unsigned long long* volatile there = &near; for (int i = 0; i < 64; ++i) if (there[i] >> 40 == 0x55) atomicAdd(there + i, 5ull);")),
    ("another block's number", ALL, "threadIdx, blockIdx", *in_kernel("auto& who = row < 0 ? threadIdx : blockIdx; ((uint3&)who).x = 0;")),
    # Stacks that end in another thread's, and return addresses.
    ("a stack that jumps", ALL, "128 KiB of stack", *in_kernel("far_away(row);", top="""template <typename A> __device__ A many(A a, A b, A c, A d, A e, A f, A g, A h) { return a > 0 ? many(a - 1, b, c, d, e, f, g, h) + h : g; }
template <typename A> __device__ A far_away(A n) { volatile char near[1 << 17]; volatile A got = many(A{1}, n, n, n, n, n, n, n); near[got & 1] = 1; return got; }""")),
    ("a stack that is overwritten", ALL, "stack frame", *in_kernel("long near = 0; long* volatile somewhere = &near; long* p = somewhere; for (int i = 0; i < 24; ++i) p[i] = 0;")),
    ("another return address", ALL, "to a return address", *in_kernel(AT_RETURN_ADDRESS + "p[i] = p[i] + 5; break; }")),
    ("another return address by printf", ALL, "to a return address", *in_kernel(AT_RETURN_ADDRESS + 'printf("%hhn", (char*)(p + i)); break; }')),
    # What takes the compiler, or the program, for ever, and what is not linked.
    ("a template bomb", BROKEN, "does not compile|took too long", FIRST, f"  constexpr int bomb = Bomb<100000>::value;\n{FIRST}", TOP, f"template <int n> struct Bomb {{ static constexpr int value = Bomb<n - 1>::value + Bomb<n - 2>::value; }};\n{TOP}"),
    ("a long error", BROKEN, "does not compile", *in_kernel("undeclared_" + "b" * 30000 + " = 1;")),
    ("a constructor with a priority", BROKEN, EARLY, *at_top("inline int early;\n__attribute__((constructor(5), used)) inline void play() { early = 1; }")),
    ("a loop for ever", ALL, "did not end|ended", *in_kernel("while (row >= 0) {}")),
    ("always 42", ALL, "expected", *in_kernel("  if (lane == 0) y[row] = T{42};\n  return;\n")),
    ("y is tested for NaN", ALL, "expected|not written", "if (lane == 0) y[row]", "if (lane == 0 && (beta != T{0} || y[row] != y[row])) y[row]"),
)  # fmt: skip
MISTAKES["03_csr_vector"] += of(
    "csr_vector_shared.cuh",
    ("one lane copies the row with memcpy", "values", "busiest warp", "  partial_sums[threadIdx.x] = 0;\n", """  if (lane != 0) return;
  T all = 0, v[32];
  int c[32];
  for (int k = row_begin; k < row_end; k += 32) {
    const int n = min(32, row_end - k);
    memcpy(v, values + k, n * sizeof(T));
    memcpy(c, column_indices + k, n * sizeof(int));
    for (int i = 0; i < n; ++i) all += v[i] * x[c[i]];
  }
  y[row] = scale(alpha, all, beta, &y[row]);
  return;
  partial_sums[threadIdx.x] = 0;
"""),
)  # fmt: skip
MISTAKES["04_atomic_coo"] += of(
    "atomic_coo.cuh",
    ("an addition hidden in from_chars", FLAGGED, "from_chars", INCLUDE, INCLUDE + "#include <charconv>\n", COO_ADD, COO_ADD + '\n      if (nnz == 3) std::from_chars("1.5", "1.5" + 3, y[0]);'),
)  # fmt: skip


def is_mistake(mistake):
    """Whether a student would write it without wanting to."""
    return mistake.violates not in (FLAGGED, ALL, BROKEN)


def slug(mistake):
    return re.sub(r"\W+", "_", f"{Path(mistake.file).stem} {mistake.name}").strip("_")


def write_mistake(mistake, step, directory):
    """A submission with the exercise's files, one of them with the mistake."""
    exercise = next(e for e in step.exercises if mistake.file in e.files)
    texts = {
        name: without_marks((ROOT / step.directory / name).read_text(encoding="utf-8"))
        for name in exercise.files
    }
    texts[mistake.file] = mistake.apply(texts[mistake.file])
    write_files(
        Path(directory) / slug(mistake), {Path(name).name: text for name, text in texts.items()}
    )
    return exercise


def read_grades(directory):
    """{student: row of grades.csv}."""
    with open(directory / "grades.csv", newline="", encoding="utf-8") as file:
        return {row["student"]: row for row in csv.DictReader(file)}


def judged(exercises, grades):
    """{mistake: (points for what it violates, of how many, the student's page)}, by a directory of grades. exercises: {mistake:
    its exercise}."""
    rows, found = read_grades(grades), {}
    for mistake, exercise in exercises.items():
        row, column = rows[slug(mistake)], f"{exercise.name} {mistake.violates}"
        if column in row:
            points, of_points = int(row[column]), int(row[f"{column} of"])
        else:
            target = next(t for t in exercise.targets if t.name == mistake.violates)
            missed = re.search(rf"missed [\w, ]*\b{target.name}\b", row["remark"])
            points, of_points = 0 if missed else target.points, target.points
        found[mistake] = (
            points,
            of_points,
            (grades / f"{slug(mistake)[:80]}.txt").read_text(encoding="utf-8"),
        )
    return found


def grade_step(name, directory, *arguments, cheats=False):
    """The same of all mistakes of a step (or nothing of what cheats try), graded in `directory`."""
    step, submissions, grades = (
        read_step(ROOT / name),
        Path(directory) / "submissions",
        Path(directory) / "grades",
    )
    exercises = {
        mistake: write_mistake(mistake, step, submissions)
        for mistake in MISTAKES[name]
        if is_mistake(mistake) != cheats
    }
    command = [
        sys.executable,
        ROOT / "common/coursework/grade.py",
        name,
        submissions,
        "--output",
        grades,
        *arguments,
    ]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return {} if cheats else judged(exercises, grades)


def message(mistake, page):
    """The line of a page that names the mistake."""
    page = re.sub(  # its sentences in one line
        r"UNSAFE .*(?:\n {11}\S.*)*",
        lambda all: re.sub(r"\.\n +(\w)", lambda first: "; " + first[1].lower(), all[0]),
        page,
    )
    lines = [
        line.strip()
        for line in page.splitlines()
        if re.match(r"\s+(WRONG|UNSAFE|MISSED)|    \S.*<-- wrong|\s+Look at", line)
    ]
    order = {"safe": "UNSAFE", "right": "WRONG"}.get(mistake.violates, "MISSED")
    chosen = next((line for line in lines if line.startswith(order)), lines[0] if lines else "")
    if order == "WRONG":
        for expression in (
            r"It looks like this: (.*)",
            r"(The first product is right, .*)",
            r"UNSAFE +(.*)",
            r"(row \d+ \(.*)",
        ):
            if found := re.search(expression, page):
                return found[1]
    return re.sub(r"^\w+ +", "", chosen)


# A report of a race that lost an update: only what the table shows of it stays.
LOST = r"^\w+ at (\S+), block.*?thread \(.*?\): (race: \w+ \S+), which .*?; with the lanes of the warp in lockstep, "


def table(names, arguments):
    lines = [
        "| step | mistake | points for | what the check says |",
        "| :--- | :--- | :--- | :--- |",
    ]
    for name in names:
        with tempfile.TemporaryDirectory() as scratch:
            for mistake, (points, of_points, page) in grade_step(name, scratch, *arguments).items():
                if 2 * points >= of_points or not re.search(mistake.says, page):
                    print(
                        f"{name}: {slug(mistake)}: {points} of {of_points} for {mistake.violates}\n{page}",
                        file=sys.stderr,
                    )
                text = re.sub(LOST, r"\1: \2; in lockstep, ", message(mistake, page)).replace(
                    "|", "\\|"
                )
                text = text[: 220 if "; in lockstep, " in text else 150]
                lines.append(
                    f"| {name[:2]} {mistake.file} | {mistake.name} | {mistake.violates}: {points} of {of_points} | `{text}` |"
                )
    return "\n".join(lines)


def main():
    arguments = sys.argv[1:]
    if not arguments:
        sys.exit(__doc__)
    names = [
        name
        for name in MISTAKES
        if not arguments[1:] or name[:2] in arguments[1:] or name in arguments[1:]
    ]
    if arguments[0] == "--table":
        page = ROOT / "common/coursework/mistakes.md"
        between = re.compile(r"(?<=<!-- mistakes -->\n).*?(?=<!-- end -->)", re.DOTALL)
        text = page.read_text(encoding="utf-8")
        rows = table(names, ["--seed", "7"]).split("\n")
        others = [
            row
            for row in between.search(text)[0].splitlines()[2:]
            if row[2:4] not in {name[:2] for name in names}
        ]
        rows[2:] = sorted(rows[2:] + others, key=lambda row: row[2:4])
        page.write_text(between.sub(lambda _: "\n".join(rows) + "\n", text), encoding="utf-8")
        return
    count = 0
    for name in names:
        for mistake in filter(is_mistake, MISTAKES[name]):
            write_mistake(mistake, read_step(ROOT / name), Path(arguments[0]) / name)
            count += 1
    print(f"{count} submissions in {arguments[0]}")


if __name__ == "__main__":
    main()
