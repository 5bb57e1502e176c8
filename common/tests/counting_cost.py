#!/usr/bin/env python3
"""What counting costs: the CPU backend with and without its instrumentation, kernel by kernel.

    make counting-cost

Each kernel runs alone on three matrices, on one core, with load, reference, verification and
product: CPU seconds of the whole run, and how many times those of the build that does not count.
Exits with 1 if that is more than 20 for any kernel.
"""

import argparse
import json
import os
import re
import subprocess
import sys

LIMIT = 20
MATRICES = ["stencil2d:400x400", "powerlaw:60000x60000,nnz=800000", "fem:8000,block=3"]


def cpu_seconds(program, kernel):
    command = [program, "--kernel", kernel, "--workers", "1"]
    for matrix in MATRICES:
        command += ["--matrix", matrix]
    # Loading is not what is compared: one thread does that, too.
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=dict(os.environ, OMP_NUM_THREADS="1"))
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{kernel}: exit status {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("counting", help="the spmv that counts")
    parser.add_argument("plain", help="the one that does not")
    parser.add_argument("--kernel", default=".", help="a regular expression: only those")
    arguments = parser.parse_args()
    listing = subprocess.run([arguments.counting, "--list", "--json"], check=True, capture_output=True, text=True).stdout
    kernels = [k["name"] for k in json.loads(listing) if k["step"] >= 2 and re.search(arguments.kernel, k["name"])]
    width = max(map(len, kernels))
    print(f"{'kernel':<{width}} {'counting':>9} {'plain':>9} {'times':>7}")
    worst = 0
    for kernel in kernels:
        counting, plain = cpu_seconds(arguments.counting, kernel), cpu_seconds(arguments.plain, kernel)
        worst = max(worst, counting / plain)
        print(f"{kernel:<{width}} {counting:>7.2f} s {plain:>7.2f} s {counting / plain:>7.1f}", flush=True)
    print(f"at most {worst:.1f} times; allowed are {LIMIT}")
    sys.exit(worst > LIMIT)


if __name__ == "__main__":
    main()
