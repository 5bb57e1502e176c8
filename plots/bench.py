#!/usr/bin/env python3
"""Measures kernels on the papers' matrices and appends what was verified to plots/results/DEVICE/.

    make bench                          SET=quick: small matrices, one kernel an idea
    make bench SET=full                 every kernel on the papers' whole catalogue
    make bench SET=full LIMIT=600       start nothing new after 600 s; call again to go on
    make bench MATRICES=cant,rma10 KERNELS='csr_*,cusparse_*' PRECISIONS=f64
    make bench SET=shapes               no times: what each matrix looks like, for figures and tables

Each matrix and precision is a process of its own with a time limit: what goes wrong there costs no
other. What has a record already, or was refused by a kernel (skipped.tsv beside the records says
why), is left out, so an interrupted run goes on where it stopped; --fresh measures again. Without a
GPU the records hold the counters of the CPU backend, of small matrices.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from record_format import append, join
from records import COUNTERS, RESULTS, RecordError, fits, published, records_in

# --- What there is to measure ---------------------------------------------------------------------

# A kernel an idea, and what to compare with.
QUICK_KERNELS = [
    "csr_scalar", "csr_vector", "csr_vector_shared", "atomic_coo_warp", "segscan_shuffle",
    "pcsr_texture", "csr_adaptive", "pcsr_one_pass", "lightspmv_vector", "lightspmv_warp",
    "lightspmv_counters", "ell*", "hyb*", "dia*", "sell*", "cds*", "cusparse_csr_alg1",
    "cusparse_csr_alg1_pre", "cusparse_csr_alg2_pre", "cusparse_coo_alg1", "cusparse_sell_32",
    "eigen_csr",
]
QUICK_NONZEROS = 5_000_000
# One of a kind each, on which the steps differ most: large ones to time, small ones to count.
KINDS = {
    "stencil2d:2000x2000": 19992000,
    "stencil3d:100x100x100,points=27": 26463592,
    "fem:100000,block=3": 13514724,
    "powerlaw:1000000x1000000,nnz=12000000": 12000000,
    "rmat:scale=19": 7968058,
}
SMALL_KINDS = {
    "stencil2d:300x300": 448800,
    "stencil3d:30x30x30,points=27": 681472,
    "fem:5000,block=3": 670000,
    "powerlaw:60000x60000,nnz=400000": 400000,
}
SHAPE_NONZEROS = 30_000_000


def grids(largest):
    """The structured grids of the CDS paper: two of two dimensions, two of three, 1 to 8 unknowns."""
    sizes = {"stencil2d:256x256": 5 * 256**2, "stencil2d:512x512": 5 * 512**2,
             "stencil3d:32x32x32": 7 * 32**3, "stencil3d:64x64x64": 7 * 64**3}
    return {f"{name},dof={dof}": couplings * dof * dof
            for name, couplings in sizes.items() for dof in range(1, 9)
            if couplings * dof * dof <= largest}


def catalogue():
    """{paper: {matrix: nonzeros}} of the tables of matrices."""
    tables = {"he_gao": ["he_gao_2016_table2"],
              "bylina": ["bylina_2011_table2", "bylina_2011_table3"],
              "lightspmv": ["lightspmv_poster_matrices"]}
    return {paper: {row["matrix"]: int(row["nonzeros"]) for name in names for row in published(name)}
            for paper, names in tables.items()}


def in_turn(groups):
    """One {name: nonzeros} of several, the smallest of each first, so that a run that is cut short
    has something of all."""
    rows = [sorted(group.items(), key=lambda item: item[1]) for group in groups]
    turns = [(rank / max(len(group), 1), name, nnz)
             for group in rows for rank, (name, nnz) in enumerate(group)]
    return {name: nnz for _, name, nnz in sorted(turns, key=lambda turn: turn[0])}


def matrices_of(which, gpu):
    papers = list(catalogue().values())
    if which == "shapes":
        return {m: n for m, n in in_turn(papers).items() if n <= SHAPE_NONZEROS}
    if not gpu:
        return in_turn([SMALL_KINDS] + ([{m: n for m, n in p.items() if n <= 1_000_000} for p in papers]
                                        if which == "full" else []))
    largest = QUICK_NONZEROS if which == "quick" else 200_000_000
    everything = in_turn(papers + [grids(largest), KINDS])
    return {m: n for m, n in everything.items() if which == "full" or n <= largest}


# --- The program ----------------------------------------------------------------------------------


def output_of(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise RecordError(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def kernels_of(spmv):
    return [kernel["name"] for kernel in json.loads(output_of([spmv, "--list", "--json"]))]


def device_of(spmv):
    """The directory of this machine's records, and whether it has a GPU."""
    environment = json.loads(output_of([spmv, "--environment", "--json"]))
    gpu = environment["backend"] == "cuda"
    return environment["device"].replace(" ", "_") if gpu else COUNTERS, gpu


class Child:
    """A process that ends when its time is over or this program is interrupted."""

    def __init__(self, command, seconds):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, start_new_session=True)
        try:
            self.out, self.errors = self.process.communicate(timeout=seconds)
            # Status 1 without an error: a kernel was wrong, and the output says which.
            status = self.process.returncode
            fine = status == 0 or (status == 1 and "error:" not in self.errors)
            self.why = None if fine else self.last_words()
        except subprocess.TimeoutExpired:
            self.kill()
            self.why = f"took longer than {seconds:g} s"
        except BaseException:
            self.kill()
            raise

    def kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.out, self.errors = self.process.communicate()

    def last_words(self):
        words = (self.errors.strip().splitlines() or [""])[-1].removeprefix("error: ")
        return words or f"ended with status {self.process.returncode}"


# --- What is done already -------------------------------------------------------------------------


class Store:
    """Records and refusals of one device: those that are there, and where new ones go."""

    def __init__(self, device, results, fresh):
        self.directory = results / device
        self.directory.mkdir(parents=True, exist_ok=True)
        self.records, self.skipped = self.directory / "bench.jsonl", self.directory / "skipped.tsv"
        self.done = set()
        if fresh:
            return
        for directory in {RESULTS / device, self.directory}:
            for file in directory.glob("*.jsonl"):
                self.done |= {(r["matrix"], r["precision"], r["kernel"])
                              for r in records_in(file) if "kernel" in r and not r.get("program")}
            if (directory / "skipped.tsv").exists():
                lines = (directory / "skipped.tsv").read_text().splitlines()
                self.done |= {tuple(line.split("\t")[:3]) for line in lines}

    def wanted(self, matrix, precision, kernels):
        if (matrix, precision, "*") in self.done:
            return []
        return [k for k in kernels if (matrix, precision, k) not in self.done]

    def skip(self, matrix, precision, kernel, why):
        self.done.add((matrix, precision, kernel))
        with open(self.skipped, "a", encoding="utf-8") as file:
            file.write("\t".join((matrix, precision, kernel, " ".join(why.split()))) + "\n")

    def append(self, lines):
        append(self.records, lines)


def measure(spmv, matrix, precision, kernels, store, seconds):
    """Returns a line on what came of it."""
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        child = Child([spmv, "-m", matrix, "-p", precision, "-k", ",".join(kernels),
                       "--json", file.name], seconds)
        lines = Path(file.name).read_text(encoding="utf-8").splitlines() if child.why is None else []
    if child.why is not None:
        store.skip(matrix, precision, "*", child.why)
        return f"FAILED: {child.why}"
    store.append(lines)
    told = re.findall(r"^(\S+) (does not suit this matrix|FAILED): (.*)$", child.out, re.MULTILINE)
    for kernel, what, why in told:
        if kernel in kernels:
            store.skip(matrix, precision, kernel, ("" if what.startswith("does") else "FAILED: ") + why)
    wrong = sum(what == "FAILED" for _, what, _ in told)
    measured = sum(1 for _ in join(map(json.loads, lines)))
    return (f"{measured} records, {len(told) - wrong} refused"
            + (f", {wrong} FAILED" if wrong else ""))


def looks_in(file):
    """{matrix: its line}"""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return {json.loads(line)["matrix"]["name"]: line for line in lines}


def shape(spmv, matrix, file, seconds):
    child = Child([spmv, "info", "--json", matrix], seconds)
    if child.why is not None:
        return f"FAILED: {child.why}"
    line = json.loads(child.out)
    if matrix not in ("af_shell9", "cont-300"):  # those of the PCSR paper's figure 6
        del line["picture"]
    every = {**looks_in(file), matrix: json.dumps(line, separators=(",", ":"))}
    file.write_text("".join(f"{text}\n" for text in every.values()), encoding="utf-8")
    return f"{line['matrix']['nnz']} nonzeros, {line['matrix']['source']}"


# --- Progress -------------------------------------------------------------------------------------


class Progress:
    """A bar with the time left, or plain lines where tqdm or the terminal is missing."""

    def __init__(self, costs):
        self.total, self.start, self.spent, self.bar = sum(costs), time.monotonic(), 0, None
        try:
            from tqdm import tqdm
        except ImportError:
            return
        if sys.stderr.isatty():
            form = "{percentage:3.0f}%|{bar}| {elapsed} gone, {remaining} left {postfix}"
            self.bar = tqdm(total=self.total, bar_format=form)

    def show(self, what, cost):
        self.spent += cost
        if self.bar is not None:
            self.bar.write(what)
            self.bar.update(cost)
            return
        gone = time.monotonic() - self.start
        left = gone / self.spent * (self.total - self.spent)
        print(f"{100 * self.spent / self.total:3.0f}%  {what}; about {minutes(left)} left", flush=True)

    def close(self):
        if self.bar is not None:
            self.bar.close()


def minutes(seconds):
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def cost(nonzeros):
    """How long a matrix takes, beside the smallest."""
    return 1 + nonzeros / 3e6


# --- All of it ------------------------------------------------------------------------------------


def words(text):
    return [word for word in text.split(",") if word]


def names_in(text):
    """Names of matrices with commas between; a comma before "key=" is within a name."""
    return [name for name in re.split(r",(?![a-z_]+=)", text) if name]


def arguments_of(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--spmv", required=True, help="the program")
    parser.add_argument("--set", default="quick", choices=("quick", "full", "shapes"))
    parser.add_argument("--matrices", default="", help="with commas: these and no others")
    parser.add_argument("--kernels", default="", help="names or patterns, with commas")
    parser.add_argument("--precisions", default="", help="f64,f32")
    parser.add_argument("--limit", type=float, default=float("inf"), help="seconds for all")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for a matrix and precision")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where DEVICE/ is")
    parser.add_argument("--fresh", action="store_true", help="measure again what has records")
    parser.add_argument("--list", action="store_true", help="say what would be measured, and end")
    return parser.parse_args(argv)


def plan(arguments, store, gpu):
    """[(matrix, precision, kernels, nonzeros)] that are still to be done."""
    every = kernels_of(arguments.spmv)
    patterns = words(arguments.kernels)
    for pattern in patterns:
        if not any(fits(kernel, [pattern]) for kernel in every):
            raise RecordError(f"no kernel is called {pattern}; `make list` names them")
    if not patterns:
        patterns = QUICK_KERNELS if arguments.set == "quick" and gpu else ["*"]
    kernels = [kernel for kernel in every if fits(kernel, patterns)]
    if not gpu:  # a CPU's own times say nothing
        kernels = [k for k in kernels if not k.endswith(("_sequential", "_openmp", "eigen_csr"))]
    sizes = matrices_of(arguments.set, gpu)
    if named := names_in(arguments.matrices):
        known = {**matrices_of("full", True), **SMALL_KINDS}
        sizes = {name: known.get(name, 1_000_000) for name in named}
    precisions = words(arguments.precisions) or (["f64", "f32"] if gpu else ["f64"])
    return [(matrix, precision, wanted, nnz) for matrix, nnz in sizes.items()
            for precision in precisions if (wanted := store.wanted(matrix, precision, kernels))]


def run(arguments):
    if arguments.set == "shapes":
        file = arguments.results / "matrices.jsonl"
        there = {} if arguments.fresh else looks_in(file)
        sizes = matrices_of("shapes", False)
        names = names_in(arguments.matrices) or sizes
        todo = [(name, "", [], sizes.get(name, 1)) for name in names if name not in there]
        arguments.results.mkdir(parents=True, exist_ok=True)
        what = f"{len(todo)} matrices to look at"
        device = file.name
    else:
        device, gpu = device_of(arguments.spmv)
        store = Store(device, arguments.results, arguments.fresh)
        todo = plan(arguments, store, gpu)
        what = f"{len(todo)} matrices and precisions to measure on {device}"
    print(what + ("" if todo else ": all have records"), flush=True)
    if arguments.list:
        for matrix, precision, kernels, _ in todo:
            print(f"{matrix} {precision}: {','.join(kernels)}")
        return 0

    start, failed, left = time.monotonic(), 0, 0
    progress = Progress([cost(nnz) for *_, nnz in todo])
    for matrix, precision, kernels, nnz in todo:
        # A matrix is not begun that cannot be expected to end in time.
        gone = time.monotonic() - start
        expected = gone / progress.spent * cost(nnz) if progress.spent else 0
        if gone + expected > arguments.limit:
            left += 1
            continue
        if arguments.set == "shapes":
            came = shape(arguments.spmv, matrix, file, arguments.timeout)
        else:
            came = measure(arguments.spmv, matrix, precision, kernels, store, arguments.timeout)
        failed += "FAILED" in came
        progress.show(f"{matrix} {precision}: {came}", cost(nnz))
    progress.close()
    if left:
        print(f"{left} left when the time was over; the same command goes on with them")
    print(f"{len(todo) - left - failed} done, {failed} with failures, in"
          f" {minutes(time.monotonic() - start)}; records: {arguments.results / device}")
    return 1 if failed else 0


def main(argv=None):
    try:
        return run(arguments_of(argv))
    except RecordError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ninterrupted; the same command goes on from here", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
