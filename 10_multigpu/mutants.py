#!/usr/bin/env python3
"""Versions of the persistent kernels with one mistake each, for tests that must find it.

    mutants.py DIRECTORY    prints C++: one namespace per mistake, which holds the changed kernels

A mistake is a text of a kernel's source and what stands in its place. A text that does not occur
exactly once in its file is an error: then the kernel has changed, and the mistake with it.
"""

import re
import sys
from pathlib import Path

SIMPLE, FAST, PART = "persistent.cuh", "persistent_fast.cuh", "persistent_part.cuh"

MISTAKES = {
    "flag_before_data": [(SIMPLE, "    multiply(0, part.boundary_rows);\n    grid.sync();",
                          "    grid.sync();"),
                         (SIMPLE, "    multiply(part.boundary_rows, part.rows);",
                          "    multiply(0, part.rows);")],
    "relaxed_flag": [(SIMPLE, "flag.store(k + 1, cuda::memory_order_release)",
                      "flag.store(k + 1, cuda::memory_order_relaxed)")],
    "fence_of_the_device_only": [(SIMPLE, "cuda::atomic_ref<unsigned> flag(*part.neighbour[thread].arrivals_there)",
                                  "cuda::atomic_ref<unsigned, cuda::thread_scope_device> "
                                  "flag(*part.neighbour[thread].arrivals_there)")],
    "no_barrier_before_flag": [(SIMPLE, "    grid.sync();  // all entries", "    // all entries")],
    "step_before": [(SIMPLE, "neighbour.arrivals_here, k + 1,", "neighbour.arrivals_here, k,")],
    "one_buffer": [(SIMPLE, "i - run.begin + (k + 1) % 2 * part.x_distance", "i - run.begin"),
                   (SIMPLE, "x[part.column_indices[j]]",
                    "(part.column_indices[j] < part.rows ? x : part.x[0])[part.column_indices[j]]")],
    "forgotten_neighbour": [(SIMPLE, "if (thread < part.neighbours) {\n      const",
                             "if (thread + 1 < part.neighbours) {\n      const")],
    "ghosts_in_wrong_order": [(SIMPLE, "run.ghosts[i - run.begin + (k", "run.ghosts[run.end - 1 - i + (k")],
    "relaxed_arrival": [(FAST, "    arrivals.fetch_add(1, cuda::memory_order_release)",
                         "    arrivals.fetch_add(1, cuda::memory_order_relaxed)")],
    "arrival_before_data": [(FAST, "      multiply_tile(agent);",
                             "      if (block * warps + warp < part.boundary_warps) frame.boundary_done(k);\n"
                             "      multiply_tile(agent);"),
                            (FAST, "    if (block * warps + warp < part.boundary_warps) frame.boundary_done(k);\n    frame",
                             "    frame")],
    "relaxed_warps_done": [(FAST, "warps_done.fetch_add(1, cuda::memory_order_acq_rel)",
                            "warps_done.fetch_add(1, cuda::memory_order_relaxed)")],
    "step_before_fast": [(FAST, "neighbour.arrivals_per_step * k,", "neighbour.arrivals_per_step * (k - 1),")],
    "own_step_before": [(FAST, "static_cast<unsigned>(here_.blocks) * k,",
                         "static_cast<unsigned>(here_.blocks) * (k - 1),")],
    "one_buffer_of_rows": [(FAST, "row - run.begin + (step + 1) % 2 * part.x_distance", "row - run.begin"),
                           (FAST, "T element(int column) { return x[column]; }",
                            "T element(int column) { return (column < part.rows ? x : part.x[0])[column]; }")],
}


def body(text):
    """What stands in the file's own namespace."""
    return re.search(r"namespace spmv::multigpu \{\n(.*)\n\}  // namespace", text, re.S).group(1)


def main():
    directory = Path(sys.argv[1]).resolve()
    print("// Made by mutants.py.\n#pragma once\n\n#include <cooperative_groups.h>")
    print(f'#include "{directory}/../06_pcsr/one_pass/rows.cuh"\n#include "{directory}/../06_pcsr/one_pass/agent.cuh"\n#include "{directory}/norm.cuh"\n#include "{directory}/persistent_part.cuh"\n')
    for name, changes in MISTAKES.items():
        file = changes[0][0]
        text = (directory / file).read_text()
        for _, old, new in changes:
            if text.count(old) != 1:
                sys.exit(f"mutants.py: {name}: {file} does not hold exactly once: {old}")
            text = text.replace(old, new)
        print(f"namespace spmv::multigpu::{name} {{\n{body(text)}\n}}\n")


main()
