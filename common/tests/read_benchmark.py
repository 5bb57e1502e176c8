"""Compares the Matrix Market reader with SciPy's: read_benchmark.py PROGRAM [FILE...]

PROGRAM is the compiled read_benchmark.cpp. It is run first, and writes the files if none are named;
then scipy.io.mmread reads the same files in the same way: the median of several readings after one
that is not counted.
"""

import importlib
import os
import statistics
import subprocess
import sys
import time

READINGS = 7


def scipy_readers():
    """(name, threads, function) for each way in which the installed SciPy can read."""
    try:
        import scipy
        import scipy.io
    except ImportError:
        print("SciPy is not installed: nothing to compare with (pip install scipy)")
        return []
    name = "scipy " + scipy.__version__
    try:
        # Since 1.12 mmread is a C++ library with threads; this is where their number is kept.
        fast = importlib.import_module("scipy.io._fast_matrix_market")
        all_threads = len(os.sched_getaffinity(0))
    except ImportError:
        return [(name, 1, scipy.io.mmread)]

    def with_threads(threads):
        def read(path):
            fast.PARALLELISM = threads
            return scipy.io.mmread(path)

        return read

    counts = [1] if all_threads == 1 else [1, all_threads]
    return [(name, count, with_threads(count)) for count in counts]


def median_seconds(read, path):
    read(path)
    seconds = []
    for _ in range(READINGS):
        begin = time.perf_counter()
        read(path)
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


def main():
    if len(sys.argv) < 2:
        sys.exit("error: no program given; usage: read_benchmark.py PROGRAM [FILE...]")
    process = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, text=True)
    print(process.stdout, end="", flush=True)
    if process.returncode != 0:
        sys.exit(process.returncode)

    # Lines of the table: reader, threads, text MB, seconds, MB/s, per core, file.
    ours = {}
    for line in process.stdout.splitlines()[1:]:
        words = line.removeprefix("this reader").split(maxsplit=5)
        threads, megabytes, seconds, path = int(words[0]), words[1], words[2], words[5]
        ours.setdefault(path, {})[threads] = (float(megabytes), float(seconds))

    ratios = []
    for name, threads, read in scipy_readers():
        for path, by_threads in ours.items():
            megabytes = by_threads[1][0]
            seconds = median_seconds(read, path)
            speed = megabytes / seconds
            print(
                f"{name:<12} {threads:7} {megabytes:9.1f} {seconds:9.4f} {speed:9.0f} "
                f"{speed / threads:9.0f}  {path}",
                flush=True,
            )
            # With as many threads as SciPy had.
            ratios.append((name, threads, path, seconds / by_threads[threads][1]))
    for name, threads, path, ratio in ratios:
        noun = "thread" if threads == 1 else "threads"
        print(f"{ratio:.1f} times as fast as {name} with {threads} {noun}: {path}")


if __name__ == "__main__":
    main()
