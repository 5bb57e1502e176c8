#!/usr/bin/env python3
"""Kernels with a mistake, to be watched: mistakes.py OUTPUT prints the sources to compile.

Of the mistakes that students make (coursework/mistakes.py) one per kind. What of a step includes the kernel is copied to
OUTPUT/NUMBER, in a namespace of its own, and registers one kernel, named KERNEL_mistake, whose idea is the mistake.
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "coursework"))

import mine  # noqa: E402
import mistakes  # noqa: E402

CHOSEN = (  # kernel, step, and the mistake in one of the files that it includes
    ("csr_scalar", "02_csr_scalar", "the guard of the last block is missing"),
    ("csr_vector_4", "03_csr_vector", "one nonzero too many (<=)"),
    ("csr_vector_shared", "03_csr_vector", "__syncwarp() is missing in the loop"),
    ("atomic_coo", "04_atomic_coo", "plain addition in place of atomicAdd"),
    ("segscan_block", "05_segmented_scan", "the barrier after the sums are stored is missing"),
    ("lightspmv_warp", "07_lightspmv", "a plain addition to the row counter"),
)
REGISTER = """#include "harness/kernel.hpp"
namespace spmv::mistake_{number} {{
template <typename SetUp>
bool add_kernel(KernelInfo info, SetUp set_up) {{
  if (info.name != "{kernel}") return true;
  info.name += "_mistake";
  info.idea = "{mistake}";
  return spmv::add_kernel(std::move(info), set_up);
}}
template <typename... Arguments>
bool add_command(Arguments&&...) {{
  return true;
}}
}}  // namespace spmv::mistake_{number}
"""


def main():
    output = Path(sys.argv[1])
    for number, (kernel, directory, name) in enumerate(CHOSEN):
        mistake = next(m for m in mistakes.MISTAKES[directory] if m.name == name)
        step = mistakes.ROOT / directory
        changed = (step / mistake.file).resolve()
        register = REGISTER.format(number=number, kernel=kernel, mistake=mistake.name)
        mine.write_version(
            step,
            changed,
            mistake.apply(changed.read_text(encoding="utf-8")),
            f"mistake_{number}",
            register,
            output / str(number),
        )


if __name__ == "__main__":
    main()
