#!/usr/bin/env python3
"""Versions of minimal.cu and of the persistent kernels with one mistake each, for tests that must find it.

    mutants.py DIRECTORY    prints C++: one namespace per mistake, which holds the changed code

They stand in mutants.diff: texts of a source and what takes their place. A text that does not occur exactly once in its
file is an error: then the kernel has changed, and the mistake with it.
"""

import re
import sys
from pathlib import Path

FAST, SOLVER = "persistent.cuh", "conjugate_gradients.cu"

RUN = """
Vector run(int rows, int steps, int gpus) {
  Vector x(rows);
  for (int i = 0; i < rows; ++i) x[i] = std::sin(i + 1.0);
  spmv::device::connect_devices(gpus);
  const Csr a = make_band(rows);
  const std::vector<int> cuts = cut_by_nonzeros(a, gpus);
  return iterate(make_parts(a, cuts, x), cuts, steps);
}
"""
# (Csr, not the template, which is nearer there.)
NAMES = "using Csr = spmv::Csr<double>;\nusing device::check;\n"
RUN_SOLVER = """
Vector run(int rows, int, int gpus) {
  const std::string grid = "stencil2d:16x" + std::to_string(rows / 4) + ",points=9";
  const Csr a = load(grid.c_str()).csr;
  const Vector b = make_b(a.rows);
  const Problem problem = prepare(a, b, gpus);
  if (solve(problem, 1e-4 * dot(b, b)).iterations < 0) throw std::runtime_error("not definite");
  return x_of(problem);
}
"""


def mistakes(directory):
    """(name, file, [[old, new], ...]) of each."""
    text = (directory / "mutants.diff").read_text(encoding="utf-8")
    for section in re.split(r"^--- ", text, flags=re.MULTILINE)[1:]:
        file, *cases = section.strip().split("\n\n")
        for case in cases:
            name, _, lines = case.partition("\n")
            pairs = re.findall(r"((?:^-.*\n)+)((?:^\+.*\n)+)", lines + "\n", re.MULTILINE)
            yield name, file, [[re.sub("(?m)^.", "", text[:-1]) for text in pair] for pair in pairs]


def replaced(file, text, old, new):
    if text.count(old) != 1:
        sys.exit(f"mutants.py: {file} does not hold exactly once: {old}")
    return text.replace(old, new)


def body(file, text):
    """What stands in a kernel file's own namespace; of a program all behind its includes, for several calls in a process
    that must survive a failure, and without its say."""
    if file == FAST:
        return re.search(r"namespace spmv::multigpu \{\n(.*)\n\}  // namespace", text, re.S)[1]
    text = text[text.index("constexpr int kMaxGpus") :]
    if file == SOLVER:
        return NAMES + text[: text.index("#ifndef")] + RUN_SOLVER
    text = text[: text.index("int main(")]
    text = replaced(file, text, "std::exit(1)", "throw std::runtime_error(what)")
    text = re.sub(r"    std::printf\(.*\n|  std::fprintf\(stderr, .*, what, .*\n", "", text)
    return text + RUN


def main():
    directory = Path(sys.argv[1]).resolve()
    print("// Made by mutants.py.")
    for name, file, changes in mistakes(directory):
        text = (directory / file).read_text(encoding="utf-8")
        for old, new in changes:
            text = replaced(f"{name}: {file}", text, old, new)
        print(f"\nnamespace spmv::multigpu::{name} {{\n{body(file, text)}\n}}")


main()
