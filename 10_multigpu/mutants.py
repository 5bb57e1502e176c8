#!/usr/bin/env python3
"""Versions of minimal.cu and of the persistent kernels with one mistake each, for tests that must find it.

    mutants.py DIRECTORY    prints C++: one namespace per mistake, which holds the changed code

A mistake is a text of a source and what stands in its place. A text that does not occur exactly once
in its file is an error: then the kernel has changed, and the mistake with it.
"""

import re
import sys
from pathlib import Path

MINIMAL, FAST, SOLVER = "minimal.cu", "persistent.cuh", "conjugate_gradients.cu"

MISTAKES = {
    "no_mistake": [(MINIMAL, "int argc", "int argc")],
    "flag_before_data": [
        (MINIMAL, "    multiply(0, part.boundary_rows);\n    grid.sync();", "    grid.sync();"),
        (MINIMAL, "    multiply(part.boundary_rows, part.rows);", "    multiply(0, part.rows);"),
    ],
    "relaxed_flag": [
        (
            MINIMAL,
            "flag.store(k + 1, cuda::memory_order_release)",
            "flag.store(k + 1, cuda::memory_order_relaxed)",
        )
    ],
    "relaxed_wait": [
        (MINIMAL, "flag.load(cuda::memory_order_acquire)", "flag.load(cuda::memory_order_relaxed)")
    ],
    "fence_of_the_device_only": [
        (
            MINIMAL,
            "cuda::atomic_ref<unsigned> flag(part.flags[thread][part.gpu])",
            "cuda::atomic_ref<unsigned, cuda::thread_scope_device> flag(part.flags[thread][part.gpu])",
        )
    ],
    "no_barrier_before_flag": [(MINIMAL, "    grid.sync();  // all ghost", "    // all ghost")],
    "step_before": [
        (
            MINIMAL,
            "flag.load(cuda::memory_order_acquire) < k + 1u",
            "flag.load(cuda::memory_order_acquire) + 1 < k + 1u",
        )
    ],
    "one_buffer": [
        (MINIMAL, "part.x[g][next + row] = sum", "part.x[g][row] = sum"),
        (
            MINIMAL,
            "x[part.column_indices[j]]",
            "(part.is_own(part.column_indices[j]) ? x : part.x[part.gpu])[part.column_indices[j]]",
        ),
        (
            MINIMAL,
            "  double* x[kMaxGpus]; ",
            "  int first_row;\n  __device__ bool is_own(int row) const { return first_row <= row && row < first_row + rows; }\n  double* x[kMaxGpus]; ",
        ),
        (MINIMAL, "    part.rows = cuts", "    part.first_row = cuts[g];\n    part.rows = cuts"),
    ],
    "forgotten_neighbour": [(MINIMAL, "thread < part.gpus && (", "thread + 1 < part.gpus && (")],
    "ghosts_in_wrong_order": [
        (
            MINIMAL,
            "part.x[g][next + row] = sum",
            "part.x[g][next + part.order[part.boundary_rows - 1 - i]] = sum",
        )
    ],
    "relaxed_arrival": [
        (
            FAST,
            "    arrivals.fetch_add(1, cuda::memory_order_release)",
            "    arrivals.fetch_add(1, cuda::memory_order_relaxed)",
        )
    ],
    "arrival_before_data": [
        (
            FAST,
            "      multiply_tile(agent);",
            "      if (block * warps + warp < part.boundary_warps) frame.boundary_done(k);\n"
            "      multiply_tile(agent);",
        ),
        (
            FAST,
            "    if (block * warps + warp < part.boundary_warps) frame.boundary_done(k);\n    frame",
            "    frame",
        ),
    ],
    "relaxed_warps_done": [
        (
            FAST,
            "warps_done.fetch_add(1, cuda::memory_order_acq_rel)",
            "warps_done.fetch_add(1, cuda::memory_order_relaxed)",
        )
    ],
    "step_before_fast": [
        (FAST, "neighbour.arrivals_per_step * k,", "neighbour.arrivals_per_step * (k - 1),")
    ],
    "own_step_before": [
        (
            FAST,
            "static_cast<unsigned>(here_.blocks) * k,",
            "static_cast<unsigned>(here_.blocks) * (k - 1),",
        )
    ],
    "one_buffer_of_rows": [
        (FAST, "row - run.begin + (step + 1) % 2 * part.x_distance", "row - run.begin"),
        (
            FAST,
            "T element(int column) { return x[column]; }",
            "T element(int column) { return (column < part.rows ? x : part.x[0])[column]; }",
        ),
    ],
    "solver": [(SOLVER, "struct Sums {", "struct Sums {")],
    "solver_relaxed_word": [
        (
            SOLVER,
            "(bits >> i % 2 * 32 & kAll), cuda::memory_order_release)",
            "(bits >> i % 2 * 32 & kAll), cuda::memory_order_relaxed)",
        )
    ],
    "solver_relaxed_flag": [
        (
            SOLVER,
            "there.fetch_add(1, cuda::memory_order_release)",
            "there.fetch_add(1, cuda::memory_order_relaxed)",
        )
    ],
    "solver_half_a_sum": [(SOLVER, "a >> 32 != k + 1 || b >> 32 != k + 1 || ", "")],
    "solver_one_set_of_words": [(SOLVER, "set = k % 2 * 4;", "set = 0;")],
    "solver_own_step_before": [
        (
            SOLVER,
            "wait_for<cuda::thread_scope_device>(part, part.gpu, k + 1)",
            "wait_for<cuda::thread_scope_device>(part, part.gpu, k)",
        )
    ],
    "solver_no_wait_for_ghosts": [
        (SOLVER, "wait_for<cuda::thread_scope_system>(part, lane, k)", "(void)k")
    ],
}


RUN = """
Vector run(int rows, int steps, int gpus) {
  Vector x(rows);
  for (int i = 0; i < rows; ++i) x[i] = std::sin(i + 1.0);
  for (int pair = 0; pair < gpus * gpus; ++pair) {
    if (pair / gpus != pair % gpus) spmv::device::enable_peer_access(pair / gpus, pair % gpus);
  }
  const Csr a = make_band(rows);
  const std::vector<int> cuts = cut_by_nonzeros(a, gpus);
  return iterate(make_parts(a, cuts, x), cuts, steps);
}
"""
NAMES = "using Csr = spmv::Csr<double>;\n"  # not the template, which is nearer there
RUN_SOLVER = """
Vector run(int rows, int, int gpus) {
  const std::string grid = "stencil2d:16x" + std::to_string(rows / 4) + ",points=9";
  for (int pair = 0; pair < gpus * gpus; ++pair) {
    if (pair / gpus != pair % gpus) spmv::device::enable_peer_access(pair / gpus, pair % gpus);
  }
  const Csr a = load(grid.c_str());
  const Vector b = make_b(a.rows);
  const Problem problem = prepare(a, b, gpus);
  if (solve(problem, 1e-4 * dot(b, b)).iterations < 0) throw std::runtime_error("not definite");
  return x_of(problem, a.rows);
}
"""


def body(file, text):
    """What stands in a kernel file's own namespace; of a program all behind its includes, for several calls in a process
    that must survive a failure, and without its say."""
    if file == FAST:
        return re.search(r"namespace spmv::multigpu \{\n(.*)\n\}  // namespace", text, re.S).group(
            1
        )
    text = text[
        text.index("constexpr int kMaxGpus") : text.index(
            "#ifndef" if file == SOLVER else "int main("
        )
    ]
    for old, new in (
        ("std::exit(1)", "throw std::runtime_error(what)"),
        ('  std::fprintf(stderr, "error: %s: %s\\n", what, cudaGetErrorString(status));\n', ""),
    ):
        if text.count(old) != 1:
            sys.exit(f"mutants.py: {file} does not hold exactly once: {old}")
        text = text.replace(old, new)
    if file == SOLVER:
        return NAMES + text + RUN_SOLVER
    return re.sub(r"    std::printf\(.*\n", "", text) + RUN


def main():
    directory = Path(sys.argv[1]).resolve()
    print("// Made by mutants.py.\n#pragma once\n")
    for header in (
        "cooperative_groups.h",
        "cuda_runtime.h",
        "algorithm",
        "cmath",
        "cuda/atomic",
        "stdexcept",
        "string",
        "vector",
    ):
        print(f"#include <{header}>")
    for header in (
        "../06_pcsr/one_pass/spmv/rows.cuh",
        "../06_pcsr/one_pass/spmv/agent.cuh",
        "../common/device/devices.hpp",
        "persistent_part.cuh",
        "sequential.hpp",
    ):
        print(f'#include "{directory}/{header}"')
    for name, changes in MISTAKES.items():
        file = changes[0][0]
        text = (directory / file).read_text(encoding="utf-8")
        for _, old, new in changes:
            if text.count(old) != 1:
                sys.exit(f"mutants.py: {name}: {file} does not hold exactly once: {old}")
            text = text.replace(old, new)
        print(f"\nnamespace spmv::multigpu::{name} {{\n{body(file, text)}\n}}")


main()
