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

# NAME: FILE, then lines with - and, in their place, with +.
MISTAKES = """
no_mistake: minimal.cu
flag_before_data: minimal.cu
-    multiply(0, part.boundary_rows);
-    grid.sync();
+    grid.sync();
-    multiply(part.boundary_rows, part.rows);
+    multiply(0, part.rows);
relaxed_flag: minimal.cu
-flag.store(k + 1, cuda::memory_order_release)
+flag.store(k + 1, cuda::memory_order_relaxed)
relaxed_wait: minimal.cu
-flag.load(cuda::memory_order_acquire)
+flag.load(cuda::memory_order_relaxed)
fence_of_the_device_only: minimal.cu
-cuda::atomic_ref<unsigned> flag(part.flags[thread][part.gpu])
+cuda::atomic_ref<unsigned, cuda::thread_scope_device> flag(part.flags[thread][part.gpu])
no_barrier_before_flag: minimal.cu
-    grid.sync();  // all ghost
+    // all ghost
step_before: minimal.cu
-flag.load(cuda::memory_order_acquire) < k + 1u
+flag.load(cuda::memory_order_acquire) + 1 < k + 1u
one_buffer: minimal.cu
-part.x[g][next + row] = sum
+part.x[g][row] = sum
-x[part.column_indices[j]]
+(part.is_own(part.column_indices[j]) ? x : part.x[part.gpu])[part.column_indices[j]]
-  double* x[kMaxGpus];
+  int first_row;
+  __device__ bool is_own(int row) const { return first_row <= row && row < first_row + rows; }
+  double* x[kMaxGpus];
-    part.rows = cuts
+    part.first_row = cuts[g];
+    part.rows = cuts
forgotten_neighbour: minimal.cu
-thread < part.gpus && (
+thread + 1 < part.gpus && (
ghosts_in_wrong_order: minimal.cu
-part.x[g][next + row] = sum
+part.x[g][next + part.order[part.boundary_rows - 1 - i]] = sum
relaxed_arrival: persistent.cuh
-    arrivals.fetch_add(1, cuda::memory_order_release)
+    arrivals.fetch_add(1, cuda::memory_order_relaxed)
arrival_before_data: persistent.cuh
-      multiply_tile(agent);
+      if (block * warps + warp < part.boundary_warps) frame.boundary_done(k);
+      multiply_tile(agent);
-    if (block * warps + warp < part.boundary_warps) frame.boundary_done(k);
-    frame
+    frame
relaxed_warps_done: persistent.cuh
-warps_done.fetch_add(1, cuda::memory_order_acq_rel)
+warps_done.fetch_add(1, cuda::memory_order_relaxed)
step_before_fast: persistent.cuh
-neighbour.arrivals_per_step * k,
+neighbour.arrivals_per_step * (k - 1),
own_step_before: persistent.cuh
-static_cast<unsigned>(here_.blocks) * k,
+static_cast<unsigned>(here_.blocks) * (k - 1),
one_buffer_of_rows: persistent.cuh
-row - run.begin + (step + 1) % 2 * part.x_distance
+row - run.begin
-T element(int column) { return x[column]; }
+T element(int column) { return (column < part.rows ? x : part.x[0])[column]; }
solver: conjugate_gradients.cu
solver_relaxed_word: conjugate_gradients.cu
-(bits >> i % 2 * 32 & kAll), cuda::memory_order_release)
+(bits >> i % 2 * 32 & kAll), cuda::memory_order_relaxed)
solver_relaxed_flag: conjugate_gradients.cu
-there.fetch_add(1, cuda::memory_order_release)
+there.fetch_add(1, cuda::memory_order_relaxed)
solver_half_a_sum: conjugate_gradients.cu
-a >> 32 != k + 1 || b >> 32 != k + 1 || c
+c
solver_one_set_of_words: conjugate_gradients.cu
-set = k % 2 * 4;
+set = 0;
solver_own_step_before: conjugate_gradients.cu
-wait_for<cuda::thread_scope_device>(part, part.gpu, k + 1)
+wait_for<cuda::thread_scope_device>(part, part.gpu, k)
solver_no_wait_for_ghosts: conjugate_gradients.cu
-wait_for<cuda::thread_scope_system>(part, lane, k)
+(void)k
"""

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


def mistakes():
    """(name, file, [[old, new], ...]) of each."""
    for text in re.split(r"\n(?=\w)", MISTAKES)[1:]:
        head, _, lines = text.partition("\n")
        name, file = head.split(": ")
        pairs = re.findall(r"((?:^-.*\n)+)((?:^\+.*\n?)+)", lines + "\n", re.M)
        yield name, file, [[re.sub("^.", "", t.strip("\n"), flags=re.M) for t in p] for p in pairs]


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
    for name, file, changes in mistakes():
        text = (directory / file).read_text(encoding="utf-8")
        for old, new in changes:
            text = replaced(f"{name}: {file}", text, old, new)
        print(f"\nnamespace spmv::multigpu::{name} {{\n{body(file, text)}\n}}")


main()
