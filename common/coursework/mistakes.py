#!/usr/bin/env python3
"""What students get wrong: mistakes.py DIRECTORY [STEP...]   writes a submission for each mistake
                           mistakes.py --table [STEP...]      grades them, and writes the table of README.md

Each is the right kernel of an exercise with an edit. It costs more than half of the points for what it violates
("right", "safe", or a target by its name), and the message names the mistake.
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

MISTAKES = {
    "02_csr_scalar": of(
        "csr_scalar.cuh",
        ("the guard of the last block is missing", "safe", OUTSIDE, "if (row >= rows) return;", ""),
        (
            "the last row is forgotten",
            "right",
            "not written|as it was before",
            "row >= rows",
            "row >= rows - 1",
        ),
        ("one nonzero too many (<=)", "right", r"reads 'values'", "k < row_end", "k <= row_end"),
        (
            "y is not scaled by beta",
            "right",
            "beta y is missing",
            "scale(alpha, sum, beta, &y[row])",
            "alpha * sum",
        ),
        (
            "y is read where beta is 0",
            "right",
            "read although beta is 0",
            "scale(alpha, sum, beta, &y[row])",
            "alpha * sum + beta * y[row]",
        ),
        (
            "alpha is forgotten",
            "right",
            "alpha is missing",
            "scale(alpha, sum,",
            "scale(T{1}, sum,",
        ),
        (
            "the sum is kept in an int",
            "right",
            "in an int",
            "T sum = 0;",
            "int sum = 0;",
            "scale(alpha, sum,",
            "scale(alpha, T(sum),",
        ),
        (
            "the sum is kept in a float",
            "right",
            "kept in a float",
            "T sum = 0;",
            "float sum = 0;",
            "scale(alpha, sum,",
            "scale(alpha, T(sum),",
        ),
        (
            "y is looked at instead of beta",
            "right",
            "NaN",
            "scale(alpha, sum, beta, &y[row])",
            "(y[row] == y[row] ? alpha * sum + beta * y[row] : alpha * sum)",
        ),
        (
            "alpha is kept in a float",
            "right",
            "kept in a float",
            "scale(alpha, sum,",
            "scale(T(float(alpha)), sum,",
        ),
        ("the sum is not set to 0", "right", "expected", "T sum = 0;", "T sum;"),
        ("a row number of 16 bits", "safe", OUTSIDE, "const int row =", "const short row ="),
        (
            "one thread does all",
            "lanes",
            "1 lanes per request",
            "const int row =",
            SERIAL + "  const int row =",
        ),
        (
            "neighbouring threads take rows far apart",
            "stores",
            "stores to y",
            "blockIdx.x * blockDim.x + threadIdx.x",
            "threadIdx.x * gridDim.x + blockIdx.x",
        ),
    ),
    "03_csr_vector": of(
        "csr_vector.cuh",
        (
            "one nonzero too many (<=)",
            "right",
            r"reads 'values'",
            VECTOR_LOOP,
            VECTOR_LOOP.replace("<", "<="),
        ),
        (
            "the last row is forgotten",
            "right",
            "not written|as it was before",
            "row >= rows",
            "row >= rows - 1",
        ),
        (
            "rows without nonzeros are left alone",
            "right",
            "not written",
            "T sum = 0;",
            "if (row_begin == row_end) return;\n  T sum = 0;",
        ),
        ("one round too few", "right", "expected", "distance > 0", "distance > 1"),
        (
            "half a mask",
            "safe",
            "mask 0xffff, which does not name the lane",
            "(0xffffffffu, sum",
            "(0x0000ffffu, sum",
        ),
        (
            "another lane than the first writes",
            "right",
            "undefined|expected",
            "if (lane == 0) y",
            "if (lane == lanes_per_row / 2) y",
            "distance, lanes_per_row)",
            "distance)",
        ),
        ("all lanes write", "right", f"{RACE}|expected", "if (lane == 0) y", "y"),
        (
            "a sum that begins on some paths only",
            "right",
            "enormous|undefined",
            "T sum = 0;",
            "T sum;\n  if (row_begin + lane < row_end) sum = 0;",
        ),
        (
            "a lane without nonzeros returns before the shuffle",
            "safe",
            "undefined|never|returned|deadlock",
            "  // A tree",
            "  if (row_begin + lane >= row_end && lane > 0) return;\n  // A tree",
        ),
        (
            "a counter of 16 bits",
            "safe",
            OUTSIDE,
            "for (int k = row_begin",
            "for (short k = row_begin",
        ),
        (
            "the mean divides by the length of a row",
            "safe",
            "divides an integer by zero",
            "T sum = 0;",
            "T sum = T(rows / (row_end - row_begin)) * T{0};",
        ),
        (
            "pairs are loaded from any address",
            "safe",
            "misaligned address: reads",
            "sum += values[k] * x[column_indices[k]];",
            "using Pair = std::conditional_t<sizeof(T) == 8, double2, float2>;\n    const Pair pair = k + 1 < row_end ? *reinterpret_cast<const Pair*>(values + k) : Pair{values[k], T{0}};\n    sum += pair.x * x[column_indices[k]] + 0 * pair.y;",
        ),
        ("a loop without end", "right", "did not end", "k += lanes_per_row", "k += 0"),
        (
            "one lane adds up the row",
            "lanes",
            "lanes per request",
            VECTOR_LOOP,
            "for (int k = row_begin; lane == 0 && k < row_end; ++k) {",
        ),
        (
            "each lane takes a piece of the row",
            "values",
            "neighbouring values",
            VECTOR_LOOP,
            "const int piece = (row_end - row_begin + lanes_per_row - 1) / lanes_per_row;\n  const int from = row_begin + lane * piece;\n  for (int k = from; k < min(from + piece, row_end); ++k) {",
        ),
        (
            "shared memory is read before it is written",
            "safe",
            f"not written|{RACE}",
            "T sum = 0;",
            "__shared__ T sums[32];\n  sums[threadIdx.x % 32] = 0;\n  T sum = sums[(threadIdx.x + 1) % 32];",
        ),
    )
    + of(
        "csr_vector_shared.cuh",
        (
            "__syncwarp() is missing in the loop",
            "safe",
            f"{RACE}.*partial_sums",
            "+ distance];\n    __syncwarp();",
            "+ distance];",
        ),
        (
            "__syncwarp() is missing before the loop",
            "safe",
            f"{RACE}|not written",
            "  }\n  __syncwarp();",
            "  }",
        ),
        (
            "the sum does not begin at 0",
            "right",
            "not written|expected",
            "partial_sums[threadIdx.x] = 0;",
            "",
        ),
        (
            "one warp does all",
            "values",
            "Few threads",
            "  const int row_begin = row_offsets[row];\n  const int row_end = row_offsets[row + 1];\n",
            "  for (int all = row; row == 0 && all < rows; ++all) {\n  const int row_begin = row_offsets[all];\n  const int row_end = row_offsets[all + 1];\n",
            "if (lane == 0) y[row] = scale(alpha, partial_sums[threadIdx.x], beta, &y[row]);",
            "if (lane == 0) y[all] = scale(alpha, partial_sums[threadIdx.x], beta, &y[all]);\n  }",
        ),
    ),
    "04_atomic_coo": of(
        "atomic_coo.cuh",
        (
            "plain addition in place of atomicAdd",
            "right",
            "atomic",
            COO_ADD,
            "y[row_indices[k]] += alpha * (values[k] * x[column_indices[k]]);",
        ),
        (
            "products overwrite each other",
            "right",
            "expected|race",
            COO_ADD,
            "y[row_indices[k]] = alpha * (values[k] * x[column_indices[k]]);",
        ),
        ("the end of the nonzeros is not looked at", "safe", OUTSIDE, " && k < nnz", ""),
        (
            "one nonzero too many (<=)",
            "right",
            "expected",
            "i < kItemsPerThread",
            "i <= kItemsPerThread",
        ),
        ("alpha is forgotten", "right", "expected", "alpha * (values", "(values"),
        (
            "a thread's nonzeros are neighbours",
            "values",
            "32 neighbouring nonzeros",
            "thread / 32 * 32 * kItemsPerThread + thread % 32",
            "thread * kItemsPerThread",
            "k += 32",
            "++k",
        ),
        (
            "one warp does all",
            "lanes",
            "Few threads",
            "i < kItemsPerThread && k < nnz",
            "thread < 32 && k < nnz",
        ),
        (
            "the row's index is a column's",
            "right",
            f"expected|{OUTSIDE}",
            "&y[row_indices[k]]",
            "&y[column_indices[k]]",
        ),
    )
    + of(
        "atomic_coo_sorted.cuh",
        (
            "the last row's sum is lost",
            "right",
            "expected",
            "  if (row >= 0) atomicAdd(&y[row], alpha * sum);\n}",
            "}",
        ),
        ("the sum is not set back to 0", "right", "expected", "      sum = 0;\n", ""),
        (
            "one atomic per nonzero",
            "atomics",
            "One atomic per row",
            "if (next_row != row) {",
            "if (true) {",
        ),
        (
            "plain addition at the end",
            "right",
            "atomic",
            "  if (row >= 0) atomicAdd(&y[row], alpha * sum);\n}",
            "  if (row >= 0) y[row] += alpha * sum;\n}",
        ),
    )
    + of(
        "atomic_coo_warp.cuh",
        (
            "all lanes of a row add",
            "right",
            "expected",
            "if (first_of_row && row >= 0)",
            "if (row >= 0)",
        ),
        (
            "the end of the nonzeros is not looked at",
            "safe",
            OUTSIDE,
            "k < nnz ? row_indices[k] : -1",
            "row_indices[k]",
        ),
        (
            "plain addition by the first lane",
            "right",
            "atomic",
            "atomicAdd(&y[row], alpha * sum);",
            "y[row] += alpha * sum;",
        ),
        (
            "neighbours of other rows are added",
            "right",
            "expected",
            "if (lanes_of_row >> lane >> distance & 1) sum",
            "sum",
        ),
    ),
    "05_segmented_scan": of(
        "segscan_block.cuh",
        (
            "the barrier after the sums are stored is missing",
            "safe",
            f"{RACE}|not written",
            "    sums[thread] = sum;\n    __syncthreads();\n\n",
            "    sums[thread] = sum;\n\n",
        ),
        (
            "the barrier at the end of a round is missing",
            "safe",
            f"{RACE}|not written",
            "      sums[thread] = sum;\n      __syncthreads();",
            "      sums[thread] = sum;",
        ),
        (
            "the barrier at the end of a tile is missing",
            "safe",
            RACE,
            "T{0} : sum;\n    __syncthreads();",
            "T{0} : sum;",
        ),
        ("the carry is lost", "right", "expected", "if (thread == 0) sum += carry;", ""),
        (
            "the carry is not set back to 0",
            "right",
            "expected",
            "carry = row_ends ? T{0} : sum;",
            "carry = sum;",
        ),
        (
            "every thread writes y",
            "right",
            f"expected|{RACE}",
            "const bool row_ends = row >= 0 && next_row != row;",
            "const bool row_ends = row >= 0;",
        ),
        (
            "sums reach back over the row's beginning",
            "right",
            "expected",
            " && rows[thread - distance] == row",
            "",
        ),
        (
            "a barrier that not all threads reach",
            "safe",
            "deadlock|never|barrier",
            "    rows[thread] = row;\n",
            "    if (row < 0) break;\n    rows[thread] = row;\n",
        ),
    )
    + of(
        "segscan_shuffle.cuh",
        (
            "the row after the last lane's is not looked at",
            "right",
            "expected",
            "if (lane == 31) next_row = first_row_after;",
            "",
        ),
        (
            "the carry is lost",
            "right",
            "expected",
            "lane == 0 ? products[iteration] + carry : products[iteration]",
            "products[iteration]",
        ),
        (
            "the barrier before the warps' sums is missing",
            "safe",
            f"{RACE}|not written",
            "  __syncthreads();\n  if (threadIdx.x == 0) {",
            "  if (threadIdx.x == 0) {",
        ),
        (
            "sums reach back over the row's beginning",
            "right",
            "expected",
            "if (lane - distance >= first_lane) sum",
            "if (lane >= distance) sum",
        ),
    ),
    "06_pcsr": of(
        "pcsr_products.cuh",
        (
            "one product too many (<=)",
            "safe",
            OUTSIDE,
            "k < static_cast<unsigned>(nnz)",
            "k <= static_cast<unsigned>(nnz)",
        ),
    )
    + of(
        "pcsr_sums.cuh",
        (
            "the barrier before the next piece is missing",
            "safe",
            RACE,
            "    __syncthreads();\n    for (int j = tid",
            "    for (int j = tid",
        ),
        (
            "the barrier after a piece is loaded is missing",
            "safe",
            f"{RACE}|not written",
            "v_s[j] = middle[i + j];\n    __syncthreads();\n",
            "v_s[j] = middle[i + j];\n",
        ),
        (
            "each thread reads the products of its row itself",
            "middle",
            "middle",
            "sum += v_s[j];",
            "sum += middle[i + j];",
        ),
        ("threads past the last row write y", "safe", OUTSIDE, "if (tid < rows_here) y", "y"),
    )
    + of(
        "csr_adaptive.cuh",
        (
            "the barrier after the products is missing",
            "safe",
            f"{RACE}|not written",
            "  }\n  __syncthreads();\n  // As many",
            "  }\n  // As many",
        ),
        (
            "products are stored beyond shared memory",
            "safe",
            r"(reads|writes) shared|outside of",
            "products[j] = values[begin + j]",
            "products[begin + j] = values[begin + j]",
        ),
        (
            "only the first rows of a block are added up",
            "right",
            "expected",
            "done += threads / lanes) {",
            "done += stream_rows) {",
        ),
    ),
    "07_lightspmv": of(
        "lightspmv.cuh",
        (
            "a plain addition to the row counter",
            "safe",
            RACE,
            "atomicAdd(row_counter, lanes_per_fetch / lanes_per_row)",
            "(*row_counter += lanes_per_fetch / lanes_per_row) - lanes_per_fetch / lanes_per_row",
        ),
        (
            "the mask names the first lane alone",
            "safe",
            "does not name the lane",
            "__shfl_sync(team, row, 0",
            "__shfl_sync(1u, row, 0",
        ),
        (
            "the last rows are not looked at",
            "safe",
            OUTSIDE,
            "if (lane == 0 && row < rows) y",
            "if (lane == 0) y",
        ),
        (
            "one block takes all rows",
            "values",
            "Few threads",
            "  while (true) {",
            "  while (blockIdx.x == 0) {",
        ),
        ("every lane fetches", "right", "expected", "if (lane_of_team == 0) {", "{"),
    )
    + of(
        "lightspmv_counters.cuh",
        (
            "the sum is not handed to all lanes",
            "right",
            "expected|undefined",
            "__shfl_xor_sync(0xffffffffu, sum, distance)",
            "__shfl_down_sync(0xffffffffu, sum, distance)",
        ),
        (
            "the counter does not wrap to 0",
            "right",
            "second",
            "atomicInc(&counters[id * kCounterStride], last_ticket)",
            "atomicAdd(&counters[id * kCounterStride], 1u)",
        ),
    ),
    "08_formats_ell_hyb_dia": of(
        "ell.cuh",
        (
            "the matrix is read row by row",
            "right",
            f"expected|{OUTSIDE}",
            "std::size_t place = row;",
            "std::size_t place = std::size_t{row} * width;",
            "place += pitch",
            "++place",
        ),
        ("padding is multiplied", "safe", OUTSIDE, "if (column != kNoColumn) sum", "sum"),
        ("rows for pitch", "right", f"expected|{OUTSIDE}", "place += pitch", "place += rows"),
    )
    + of(
        "sell.cuh",
        (
            "the permutation is forgotten",
            "right",
            "expected",
            "const unsigned row = row_of_slot(slot, places);",
            "const unsigned row = slot;",
        ),
        (
            "a slice's width counts elements",
            "right",
            f"expected|{OUTSIDE}",
            "static_cast<std::size_t>(begin) * kSlice + threadIdx.x",
            "static_cast<std::size_t>(begin) + threadIdx.x",
        ),
    )
    + of(
        "dia.cuh",
        ("columns outside of the matrix", "safe", OUTSIDE, "if (column < cols) sum", "sum"),
        (
            "an offset is taken for a column",
            "right",
            f"expected|{OUTSIDE}",
            "row + offsets[d]",
            "offsets[d]",
        ),
    )
    + of(
        "dia_csr.cuh",
        (
            "the rest of a row is forgotten",
            "right",
            "expected",
            "if (begin < end) {",
            "if (false) {",
        ),
        (
            "the last diagonals are lost",
            "right",
            "expected",
            "if (first >= diagonals) break;",
            "if (first + kDiagonalsInFlight > diagonals) break;",
        ),
    ),
    "09_cds": of(
        "cds.cuh",
        (
            "blocks outside of the matrix",
            "safe",
            OUTSIDE,
            "const bool inside = block_column < block_columns;",
            "const bool inside = true;",
        ),
        (
            "the block's column is taken for an element's",
            "right",
            "expected",
            "x[block_column * block + column + c]",
            "x[block_column + column + c]",
        ),
        (
            "values do not move on",
            "right",
            "expected",
            "value += kDiagonalsInFlight * block * stride;",
            "value += stride;",
        ),
    ),
}


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


def grade_step(name, directory, *arguments):
    """The same of all mistakes of a step, graded in `directory`."""
    step, submissions, grades = (
        read_step(ROOT / name),
        Path(directory) / "submissions",
        Path(directory) / "grades",
    )
    exercises = {mistake: write_mistake(mistake, step, submissions) for mistake in MISTAKES[name]}
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
    return judged(exercises, grades)


def message(mistake, page):
    """The line of a page that names the mistake."""
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
        page = ROOT / "common/coursework/README.md"
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
    for name in names:
        for mistake in MISTAKES[name]:
            write_mistake(mistake, read_step(ROOT / name), Path(arguments[0]) / name)
    print(f"{sum(len(MISTAKES[name]) for name in names)} submissions in {arguments[0]}")


if __name__ == "__main__":
    main()
