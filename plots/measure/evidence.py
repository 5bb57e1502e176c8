#!/usr/bin/env python3
"""Which records are of today's machine code, what is missing, and the commands that measure it.

    make evidence                                 of each device in plots/results/
    make evidence BACKEND=cuda CUDA_ARCHS=90      after a change of a kernel: first writes
                                                  machine_code.tsv; needs nvcc and no GPU
    plots/python.sh plots/measure/evidence.py [DEVICE ...] [--summary]     of these; a line each

A record names the CUDA functions that its kernel launched and a hash of their instructions
(common/harness/machine_code.hpp). machine_code.tsv has those of today's build. Records that were
made before they named their code are counted as unknown. What fewer processes measured than its
set asks for is missing. Of a device of which `make bench SET=quick` alone was run, that set is what
is to be there. Exit status 1: with --strict, where
something is to be measured.
"""

import argparse
import collections
import fnmatch
import json
import re
import subprocess
import sys
from pathlib import Path

import measure
from record_format import RecordError, write_whole
from records import NOT_COMPARED, OTHER_CODE, RESULTS, ROOT, UNKNOWN_CODE, code_state, device_names
from records import directory_of, files_in, identity, read, todays_code
from sets import groups_of, is_declared, matrix_name, nonzeros_of

CODE = ROOT / "plots" / "measure" / "machine_code.tsv"
SHOWN = ["full", "setup", "sensitivity", "multigpu"]  # the sets that figures, tables and pages show
ARCHS = [90]  # compute capabilities of the devices in plots/results/


class Planned:
    """What measure.plan() asks of a machine, of a device that is not here: with the kernels of a
    program that is, and with those of cuSPARSE and the real files that records know. What runs on
    the host is what did (Thrust's, only in a program without a GPU)."""

    has_gpu = True
    environment = {"backend": "cuda"}

    def __init__(self, program, records):
        on_host = {record["kernel"]: record["host"] for record in records}
        listed = json.loads(measure.output_of([str(program), "--list", "--json"]))
        kernels = {
            kernel["name"]: {**kernel, "host": on_host.get(kernel["name"], kernel["host"])}
            for kernel in listed
        }
        for record in records:
            if (name := record["kernel"]).startswith("cusparse_"):
                of = {"name": name, "step": 0, "format": record["format"], "host": False}
                kernels.setdefault(name, of)
        self.kernels, self.devices = list(kernels.values()), gpus_of(records)
        self.known = sorted({f"{r['matrix']}.mtx.gz" for r in records if r["source"] == "file"})

    def files(self, pattern):
        return [f"data/{name}" for name in fnmatch.filter(self.known, pattern)]


def gpus_of(records):
    """As many GPUs as the device was measured on at a time: of more it is asked for nothing."""
    return max((record.get("gpus", 1) for record in records), default=1)


def update(program):
    """Writes the machine code of a program for GPUs. Needs no GPU."""
    version = re.search(r"release ([\d.]+)", measure.output_of(["nvcc", "--version"]))
    head = "# compute capability, CUDA function, hash of its instructions"
    lines = [f"{head}; nvcc {version[1] if version else '?'}; make evidence"]
    for arch in ARCHS:
        functions = json.loads(measure.output_of([str(program), "--machine-code", str(arch)]))
        lines += [f"{arch}\t{function}\t{hashed}" for function, hashed in sorted(functions.items())]
    write_whole(CODE, "\n".join(lines) + "\n")
    todays_code.cache_clear()


def summary(device, records):
    """A line: how many records have which state."""
    of = collections.Counter(code_state(record) for record in records)
    text = (
        f"{device}: {len(records):,} records; {of[None]:,} of today's machine code or none of ours"
    )
    text += f", {of[OTHER_CODE]:,} of other code, {of[UNKNOWN_CODE]:,} unknown"
    not_compared = f", {of[NOT_COMPARED]:,} of a compute capability without a list here"
    return text + not_compared * (NOT_COMPARED in of)


def seconds_of(record):
    """What one process takes to measure this again, by the protocol of measure.cu: warm-up and 25
    batches of a millisecond or more, 25 launches on a cold L2, setup once or for 5 ms; and 8 ms for
    the rest."""
    warm, setup = record["warm_ms"], record.get("setup_ms", 0) + record.get("preprocess_ms", 0)
    times = 10 * warm + 25 * max(warm, 1) + 25 * (record.get("cold_ms", 0) + 0.08)
    return 1e-3 * (times + max(setup, min(5 * setup, 5 + setup)) + 8)


def expected_seconds(jobs, records):
    """Of a GPU, for jobs: what was measured before as long as then, the rest as long as a small
    one. A process that has the GPU for itself also prepares meanwhile; a step's program, 6 s and
    0.04 s per million nonzeros (H200s, 32 cores)."""
    known = {identity(r): seconds_of(r) for r in records if "warm_ms" in r}
    total = 0
    for job in jobs:
        thing = matrix_name(job.matrix), job.precision
        seconds = 0.7 if job.alone() else 0
        if "program" in job.keys:
            seconds = 6 + nonzeros_of(job.matrix) / 25e6
        seconds += sum(known.get((*thing, kernel), 0.05) for kernel in job.kernels)
        total += job.processes() * seconds
    return total


def shown_sets(records):
    """The sets that a device is to have: what is shown, or what it was asked for, if that is
    `quick` and no more."""
    asked = {record["command"].partition("make bench SET=")[2].split(" ")[0] for record in records}
    return ["quick"] if asked == {"quick"} else SHOWN


def to_measure(device, records, program):
    """{set: (kernels, jobs)} of what is missing, not of today's code, or of fewer processes than
    the set asks for."""
    machine, found = Planned(program, records), {}
    groups = [group for shown in shown_sets(records) for group in groups_of(shown)]
    for name in [name for name, keys in groups if keys.get("backend") == "cuda"]:
        arguments = measure.arguments_of([name, "--stale"])
        store = measure.Store(directory_of(device).name, RESULTS, True, stale=True)
        if jobs := measure.plan(arguments, machine, store):
            found[name] = sorted({kernel for job in jobs for kernel in job.kernels}), jobs
    return found


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("devices", nargs="*", help="directories of plots/results; default: all")
    parser.add_argument("--summary", action="store_true", help="a line per device")
    parser.add_argument("--strict", action="store_true", help="exit 1 if something is missing")
    about = "first write machine_code.tsv; --spmv is a program for GPUs"
    parser.add_argument("--update", action="store_true", help=about)
    spmv = ROOT / "build/cpu/spmv"
    parser.add_argument("--spmv", type=Path, default=spmv, help="names the kernels")
    arguments = parser.parse_args(argv)
    todo = False
    try:
        if arguments.update:
            update(arguments.spmv)
        for device in arguments.devices or device_names():
            records = read(files_in(directory_of(device)))
            print(summary(device, records))
            if arguments.summary:
                continue
            stale = collections.Counter(r["kernel"] for r in records if code_state(r) == OTHER_CODE)
            for kernel, count in stale.most_common():
                print(f"  other code: {kernel}, {count}")
            found, most = to_measure(device, records, arguments.spmv), gpus_of(records)
            for name, (kernels, jobs) in found.items():
                todo = True
                gpus = max(job.gpus(most) for job in jobs)
                on_files = any(job.matrix.startswith("data/") for job in jobs)
                files = "SPMV_DATA=DIRECTORY_OF_THE_FILES " * on_files
                needs = f"needs {gpus} GPUs; " * (gpus > 1)
                needs += f"about {measure.minutes(expected_seconds(jobs, records))}"
                first = ", ".join(kernels[:4]) + ", ..." * (len(kernels) > 4)
                of = f"{len(jobs)} matrices and precisions, {len(kernels)} kernels: {first}"
                print(f"  {files}make bench SET={name} ARGS=--stale    # {needs}: {of}")
            if left := collections.Counter(r["kernel"] for r in records if not is_declared(r)):
                most = ", ".join(f"{kernel} ({count})" for kernel, count in left.most_common(4))
                of = f"{left.total():,} records of {len(left)} kernels, most of {most}"
                print(f"  in no set, and in no figure or table: {of}")
    except (RecordError, OSError, subprocess.SubprocessError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 1 if todo and arguments.strict else 0


if __name__ == "__main__":
    sys.exit(main())
