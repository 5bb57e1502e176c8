#!/usr/bin/env python3
"""Measures what measurements.toml declares, and appends what was verified to plots/results/DEVICE/.

    make bench                          the set `quick`: small matrices, one kernel per idea
    make bench SET=full                 every kernel on the papers' whole catalogue
    make bench SET=full LIMIT=600       start nothing new after 600 s; call again to go on
    make bench MATRICES=cant,rma10 KERNELS='csr_*,cusparse_*' PRECISIONS=f64
    make bench ARGS=--sets              the sets, and what each is for
    make bench KERNEL=03_csr_vector:mine.cuh MATRICES='dir/*.mtx.gz'       a kernel of yours, also without a GPU: mine.py

Each matrix and precision is a process of its own with a time limit: what goes wrong there costs no
other. While one process measures on a GPU, others prepare the next matrices (reading or generating,
conversion to CSR, the reference product) and wait for their turn (`spmv --turn`); with several GPUs
each has such a queue. What must run alone does, at the end: kernels of the host, programs of steps,
profilers.

One call is one run, whose id all its records have. What has a record already, or was refused, is
left out, so that an interrupted run goes on where it stopped; --fresh measures again, and --stale
what was measured with other machine code than today's build has, or by fewer processes than the set
asks for (evidence.py).

Keys of a set: `sets` (others, of which it consists) or `matrices` (names; "@list"; "@sets": those
of all sets with records; "{1..8}"; "files:*.mtx.gz" in SPMV_DATA; behind a name ",order=columns":
with --order columns) with `largest` nonzeros, `kernels` (patterns; "@list"; "step:2-9"; "!pattern"
leaves out), `on_host` (those of the CPU instead of the GPU's), `alone` (nothing beside it),
`precisions`, `options`, `program` (a step's own), `gpus`, `partition` and `exchange` (of
`multigpu`), `backend` (without it: any), `records` (the file) or `tool`. Of `info`: `counted`
(nonzeros up to which `kernels` are counted). `processes`, of a set or of all: that many measure
each matrix and precision of at most `several_up_to` nonzeros, and a record has the median of their
medians, between the least and the greatest.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import datetime
import itertools
import json
import math
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import mine
import prove_counters
from record_format import RecordError, append, combined, join, jsonl, outcome_of, lines_in
from record_format import records_in, tidy, write_whole
from records import RESULTS, STALE, code_state, current_looks, current_outcomes, current_records
from records import is_current_matrix
from sets import data_files, declared, fits, groups_of, kernels_of, matrices_of, matrix_name
from sets import nonzeros_of, precisions_of, split_order

DEPTH = 3  # processes per GPU: one that measures, and two that prepare


# --- Jobs -----------------------------------------------------------------------------------------


@dataclass
class Job:
    """One process, or several of a tool."""

    keys: dict
    matrix: str
    precision: str
    kernels: list = field(default_factory=list)

    def label(self):
        of = self.keys.get("program"), self.keys.get("tool"), self.matrix, self.precision
        return " ".join(filter(None, of))

    def cost(self):
        """How long it takes, beside the smallest."""
        return 1 + nonzeros_of(self.matrix) / 3e6

    def processes(self):
        """How many measure the same on a GPU, one after the other: a time differs more between
        processes than within one."""
        several = nonzeros_of(self.matrix) <= declared().get("several_up_to", float("inf"))
        return self.keys.get("processes", declared().get("processes", 1)) if several else 1

    def alone(self):
        """Whether nothing may run beside it; a step's own program takes no turns."""
        return bool({"on_host", "program", "tool", "alone"} & set(self.keys))

    def gpus(self, devices):
        """The most that it uses, of a machine with so many; 0: it needs more."""
        return max(counts_of(self.keys, devices), default=0) if "gpus" in self.keys else 1

    def command(self, spmv, devices):
        matrix, order = split_order(self.matrix)
        program = filter(None, [spmv, self.keys.get("program")])
        gpus = map(str, counts_of(self.keys, devices)) if "gpus" in self.keys else []
        lists = {"-k": self.kernels, "--gpus": gpus}
        lists |= {f"--{name}": self.keys.get(name, []) for name in ("partition", "exchange")}
        given = {"-m": matrix, "--order": order, "-p": self.precision}
        given |= {name: ",".join(of) for name, of in lists.items()}
        words = [word for name, value in given.items() if value for word in (name, value)]
        return [*program, *self.keys.get("options", []), *words]


def counts_of(keys, devices):
    """The numbers of GPUs that a group asks for and this machine has."""
    counts = [devices if count == "all" else count for count in keys["gpus"]]
    return sorted({count for count in counts if count <= devices})


class Machine:
    """What the program says of itself and of where it runs."""

    files = staticmethod(data_files)

    def __init__(self, spmv):
        self.spmv = spmv
        self.environment = json.loads(output_of([spmv, "--environment"]))
        self.kernels = json.loads(output_of([spmv, "--list", "--json"]))
        self.has_gpu = self.environment["backend"] == "cuda"
        self.devices = self.environment.get("devices", 1)

    def directory(self):
        return self.environment["device"].replace(" ", "_") if self.has_gpu else "cpu_backend"


def output_of(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise RecordError(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
    return done.stdout


class Store:
    """Records of one device: what is there, and where new ones go."""

    def __init__(self, device, results, has_gpu, fresh=False, stale=False, known=None):
        """`known`: where records are, too, of what need not be measured again; default: RESULTS."""
        self.directory, self.has_gpu = results / device, has_gpu
        self.fresh, self.stale = fresh, stale
        self.lock, self.done, self.touched = threading.Lock(), {}, set()
        places = [] if fresh else [*(known or [RESULTS]), results]
        self.places = dict.fromkeys(place / device for place in places)

    def done_in(self, file):
        """{key: how many processes measured it} of a file of records, with refusals; if `stale`
        counts as missing, only of today's machine code, and if all is to be measured anew
        nothing."""
        if file not in self.done:
            self.done[file] = found = {}
            for path in (place / file for place in self.places if (place / file).exists()):
                for r in [*current_records(path), *current_outcomes(path)]:
                    counts = self.stale and "verified" in r
                    if not (counts and code_state(r) in STALE):
                        found[key_of(r)] = r.get("processes", 1) if counts else math.inf
        return self.done[file]

    def append(self, file, lines):
        with self.lock:
            (self.directory / file).parent.mkdir(parents=True, exist_ok=True)
            append(self.directory / file, lines)
            self.touched.add(self.directory / file)

    def tidy(self):
        """Leaves out what this run superseded, and what was measured on stand-ins that are made in
        another way now."""
        for file in self.touched:
            tidy(file, is_current_matrix)


def key_of(line):
    way = (line.get(name) for name in ("gpus", "partition", "exchange"))
    return line.get("program", ""), line["matrix"], line["precision"], line["kernel"], *way


def ways_on(count, partitions, exchanges):
    """(GPUs, partition, exchange) of what 10_multigpu measures: on one GPU all partitions are the
    same, and all exchanges but none."""
    if count == 1:
        partitions, others = partitions[:1], [e for e in exchanges if e != "none"]
        exchanges = [*["none"] * ("none" in exchanges), *others[:1]]
    return list(itertools.product([count], partitions, exchanges))


def still_to_do(job, store, devices):
    """The job without what is done, or None."""
    keys, name = job.keys, matrix_name(job.matrix)
    done = store.done_in(keys["records"])
    program = keys.get("program", "")
    if ("", name, job.precision, "*", None, None, None) in done and not program:
        return None
    if not (gpus := job.gpus(devices)):
        return None
    if "gpus" in keys:
        ways = ways_on(gpus, keys.get("partition", ["nonzeros"]), keys["exchange"])
        exchanges = ",".join(keys["exchange"])
    else:
        ways, exchanges = [(None, None, None)], None
    thing, wanted = (program, name, job.precision), job.processes()
    kernels = [k for k in job.kernels if any(done.get((*thing, k, *w), 0) < wanted for w in ways)]
    if not kernels or (*thing, "*", None, None, exchanges) in done:
        return None
    return Job(keys, job.matrix, job.precision, kernels)


def plan(arguments, machine, store, own=None):
    """The jobs that are still to be done, in order. `own`: in the place of the sets."""
    groups = own or [group for name in arguments.sets for group in groups_of(name)]
    backend = machine.environment["backend"]
    groups = [(name, keys) for name, keys in groups if keys.get("backend", backend) == backend]
    if not groups:
        raise RecordError("these sets need a GPU: make bench BACKEND=cuda")
    patterns = words(arguments.kernels)
    for pattern in patterns:
        if not any(fits(kernel["name"], [pattern]) for kernel in machine.kernels):
            raise RecordError(f"no kernel is called {pattern}; `make list` names them")
    jobs, matrices = [], mine.matrices_in(arguments.matrices)
    for name, keys in groups:
        if patterns:
            keys = {**keys, "kernels": [*keys["kernels"], *patterns] if own else patterns}
        # Which looks at a matrix, whatever the kernel and precision.
        is_info = keys.get("tool") == "info"
        kernels = [] if is_info else kernels_of(keys, machine.kernels)
        precisions = [""] if is_info else words(arguments.precisions) or precisions_of(keys)
        if kernels or is_info:
            names = matrices or matrices_of(keys, machine.files)
            jobs += [Job(keys, *of, kernels) for of in itertools.product(names, precisions)]

    def left_of(job):
        if "tool" in job.keys:
            return TOOLS[job.keys["tool"]].still_to_do(job, store)
        return still_to_do(job, store, machine.devices)

    return merged(filter(None, map(left_of, jobs)))


def merged(jobs):
    """One job of those that differ in their kernels alone, so that no kernel is measured twice and
    no matrix prepared twice."""
    found, differ = {}, ("about", "matrices", "largest", "kernels", "precisions")
    for job in jobs:
        rest = sorted(of for of in job.keys.items() if of[0] not in differ)
        first = found.setdefault((job.matrix, job.precision, repr(rest)), job)
        first.kernels = list(dict.fromkeys([*first.kernels, *job.kernels]))
    return list(found.values())


# --- Processes ------------------------------------------------------------------------------------


class Children:
    """Processes that end when their time is over or this program is interrupted."""

    def __init__(self):
        self.running, self.lock, self.stopped = set(), threading.Lock(), False

    def run(self, command, seconds, turn=None, **environment):
        """(stdout, why it failed or None). Status 1 without an error: a kernel was wrong, and the
        records say which. `turn`: the file of the lane, with the process that measures."""
        with self.lock:
            if self.stopped:
                return "", "stopped"
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
            environment = {**os.environ, **environment}
            child = subprocess.Popen(command, **pipes, start_new_session=True, env=environment)
            self.running.add(child)
        try:
            out, errors = self.output_of(child, seconds, turn)
        except subprocess.TimeoutExpired:
            kill(child)
            child.communicate()
            return "", f"took longer than {seconds:g} s"
        except BaseException:
            kill(child)
            raise
        finally:
            with self.lock:
                self.running.discard(child)
        if self.stopped:
            return "", "stopped"
        if child.returncode == 0 or (child.returncode == 1 and "error:" not in errors):
            return out, None
        last = (errors.strip().splitlines() or [""])[-1].removeprefix("error: ")
        return out, last or f"ended with status {child.returncode}"

    def output_of(self, child, seconds, turn):
        """(stdout, stderr). While another process measures, this one's time stands still."""
        while True:
            try:
                return child.communicate(timeout=min(0.2, seconds))
            except subprocess.TimeoutExpired:
                holder = turn.read_text() if turn and turn.exists() else ""
                with self.lock:
                    waits = any(holder == str(other.pid) for other in self.running - {child})
                seconds -= 0 if waits else 0.2
                if seconds <= 0:
                    raise

    def stop(self):
        with self.lock:
            self.stopped = True
            for child in self.running:
                kill(child)


def kill(child):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


class Runner:
    """Runs jobs as one run: its id and command stand in every record."""

    def __init__(self, arguments, machine, store, run, command, scratch):
        self.arguments, self.machine, self.store, self.run_id = arguments, machine, store, run
        self.children, self.scratch = Children(), scratch
        self.environment = {"SPMV_RUN": run, "SPMV_COMMAND": command}
        left_out = ("reason", "devices", "arch")
        of = {k: v for k, v in machine.environment.items() if k not in left_out}
        self.described = {"id": run, **of, "command": command}
        self.cores = len(os.sched_getaffinity(0))

    def job(self, job, lane):
        """Does a job; a line on what came of it. `lane`: the GPU, or None for all of the
        machine."""
        if "tool" in job.keys:
            return TOOLS[job.keys["tool"]](job, self)
        environment, extra, turn = dict(self.environment), [], None
        if lane is not None:
            # A core is left to the process that launches; threads that wait for others do not spin.
            threads = max(1, (self.cores // self.machine.devices - 1) // DEPTH)
            environment["OMP_NUM_THREADS"] = str(threads)
            environment["OMP_WAIT_POLICY"] = "passive"
            turn = self.scratch / f"turn{lane}"
            extra = ["--turn", str(turn)]
            environment["CUDA_VISIBLE_DEVICES"] = visible_devices(self.machine.devices)[lane]
        file = self.scratch / f"{threading.get_ident()}.jsonl"
        command = job.command(self.machine.spmv, self.machine.devices)
        command += [*extra, "--json", str(file)]
        found = []
        for _ in range(job.processes()):
            file.unlink(missing_ok=True)
            _, why = self.children.run(command, self.arguments.timeout, turn, **environment)
            if self.children.stopped:
                return "stopped"
            found.append(list(lines_in(file)) if file.exists() else [])
            if why is not None:
                break
        of_all = found[0] if len(found) == 1 else combined(found)
        if job.alone():
            of_all = [{**line, "alone": True} if "setup_ms" in line else line for line in of_all]
        if why is not None:
            of = {"run": self.run_id, "program": job.keys.get("program", "")}
            of |= {"matrix": matrix_name(job.matrix), "precision": job.precision, "kernel": "*"}
            outcome = {**of, "exchange": ",".join(job.keys.get("exchange", [])), "failed": why}
            of_all += [{"run": self.described}, {k: v for k, v in outcome.items() if v}]
        self.store.append(job.keys["records"], jsonl(of_all).splitlines())
        if why is not None:
            return f"FAILED: {why}"
        outcomes = collections.Counter(outcome_of(line) for line in of_all)
        text = f"{sum(1 for _ in join(of_all))} records, {outcomes['refused']} refused"
        return text + f", {outcomes['failed']} FAILED" * bool(outcomes["failed"])


def visible_devices(devices):
    named = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    return named.split(",") if named else [str(n) for n in range(devices)]


# --- Tools ----------------------------------------------------------------------------------------


class Info:
    """Looks at matrices: results/matrices.jsonl. Of the picture a sketch is kept."""

    def __call__(self, job, runner):
        command = [runner.machine.spmv, "info", "--json", *job.keys.get("options", []), job.matrix]
        out, why = runner.children.run(command, runner.arguments.timeout)
        if why is not None:
            return f"FAILED: {why}"
        line = json.loads(out)
        if line["matrix"]["source"] == "file":
            line["matrix"]["detail"] = Path(line["matrix"]["detail"]).name
        line["sketch"] = sketch(line.pop("picture"))
        if line["matrix"]["nnz"] <= job.keys.get("counted", 0) and not runner.machine.has_gpu:
            line["moved"] = self.moved(job, runner)
        file = self.file(runner.store)
        write_whole(file, jsonl({**current_looks(file), line["matrix"]["name"]: line}.values()))
        return f"{line['matrix']['nnz']} nonzeros, {line['matrix']['source']}"

    @staticmethod
    def moved(job, runner):
        """{kernel: bytes in the sectors that warps request, per byte needed}, f64, counted by the
        CPU backend."""
        kernels, found = kernels_of(job.keys, runner.machine.kernels), {}
        command = Job(job.keys, job.matrix, "f64", kernels).command(runner.machine.spmv, 1)
        with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
            command += ["--json", file.name]
            runner.children.run(command, runner.arguments.timeout, **runner.environment)
            for record in (r for r in records_in(file.name) if r.get("traffic")):
                sectors = sum(t["sectors"] for t in record["traffic"] if t["space"] == "global")
                moved = 32 * sectors / record["compulsory_bytes"]
                found[record["kernel"]] = float(f"{moved:.3g}")
        return found

    @staticmethod
    def file(store):
        return store.directory.parent / "matrices.jsonl"

    def still_to_do(self, job, store):
        there = current_looks(self.file(store))
        return job if store.fresh or matrix_name(job.matrix) not in there else None


def sketch(picture, most=50):
    """A picture of `spmv info --json` on at most 50 x 50 cells: per line a string with a digit per
    cell, 0 for an empty one, else 1 to 9 by the logarithm of its nonzeros, 9 for the cell with
    most."""
    lines, columns = min(picture["lines"], most), min(picture["columns"], most)
    counts = [[0] * columns for _ in range(lines)]
    for line, column, nonzeros in picture["cells"]:
        counts[line * lines // picture["lines"]][column * columns // picture["columns"]] += nonzeros
    greatest = max((count for line in counts for count in line), default=0)

    def digit(count):
        if count == 0 or greatest == 1:
            return 9 * count
        return 1 + round(8 * math.log(count) / math.log(greatest))

    return ["".join(str(digit(count)) for count in line) for line in counts]


class Counters:
    """One product of each kernel, counted by Nsight Compute or by the CPU backend:
    DEVICE/counters/*.csv."""

    def __call__(self, job, runner):
        machine = runner.machine
        count = self.measured if machine.has_gpu else self.counted
        functions, why = count(job, runner)
        if why is not None or not functions:
            return f"FAILED: {why or 'nothing was counted'}"
        file, key = self.file(runner.store, machine.has_gpu), (job.matrix, job.precision)
        counts = prove_counters.read(file)
        # If all were measured, a function without counts no longer exists.
        if not runner.arguments.kernels:
            counts.pop(key, None)
        prove_counters.write(file, {**counts, key: {**counts.get(key, {}), **functions}})
        return f"{len(functions)} CUDA functions"

    metrics = [metric for names in prove_counters.COUNTERS.values() for metric in names]
    caches = "all"  # are flushed

    def measured(self, job, runner):
        metrics = self.metrics
        known, _ = runner.children.run(["ncu", "--query-metrics"], 60)
        # Not every GPU has all of them.
        metrics = [
            m for m in metrics if re.search(rf"^{m.rsplit('.', 1)[0]}\b", known, re.MULTILINE)
        ] or metrics
        ncu = f"ncu --clock-control none --cache-control {self.caches} --csv --page raw --print-units base"
        ncu += " --kernel-name-base demangled --kernel-name regex:_kernel --metrics " + ",".join(
            metrics
        )
        command = [*ncu.split(), *job.command(runner.machine.spmv, 1), "--verify-only"]
        out, why = runner.children.run(command, runner.arguments.timeout)
        functions = prove_counters.sums_of_ncu(out)
        sass, _ = runner.children.run(["cuobjdump", "-sass", runner.machine.spmv], 60)
        for function, loads in prove_counters.loads_in_code(sass).items():
            if "load requests" in functions.get(function, {}):
                functions[function]["loads in code"] = loads
        return functions, why

    @staticmethod
    def counted(job, runner):
        with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
            options = ["--profile", "--gpu", "h200", "--json", file.name]
            command = [*job.command(runner.machine.spmv, 1), *options]
            _, why = runner.children.run(command, runner.arguments.timeout, **runner.environment)
            return prove_counters.sums_of_profile(records_in(file.name)) if why is None else {}, why

    @staticmethod
    def file(store, measured):
        return store.directory / "counters" / ("measured.csv" if measured else "counted.csv")

    def still_to_do(self, job, store):
        there = prove_counters.read(self.file(store, store.has_gpu))
        return job if store.fresh or (job.matrix, job.precision) not in there else None


class Limits(Counters):
    """How long each function takes alone, and the busiest unit of memory would at its peak:
    DEVICE/counters/limits.csv."""

    metrics = [prove_counters.DURATION, *prove_counters.OF_PEAK, *prove_counters.OF_L1]
    caches = "none"

    @staticmethod
    def file(store, measured):
        return store.directory / "counters/limits.csv"


TOOLS = {"info": Info(), "counters": Counters(), "limits": Limits()}


# --- All of it ------------------------------------------------------------------------------------


def minutes(seconds):
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def work(jobs, runner, limit):
    """Does the jobs: each GPU a queue of processes, then what must be alone. How many failed, and
    how many were left when the time was over."""
    begin, total, lock = time.monotonic(), sum(job.cost() for job in jobs), threading.Lock()
    counts = collections.Counter()  # jobs: failed, left; of those that are done: cost, seconds
    places = queue.SimpleQueue()
    for place in range(runner.machine.devices * DEPTH):
        places.put(place % runner.machine.devices)

    def one(job, lane):
        start = time.monotonic() - begin
        expected = counts["seconds"] / counts["cost"] * job.cost() if counts["cost"] else 0
        if start + expected > limit:  # it cannot be expected to end in time
            with lock:
                counts["left"] += 1
            return
        came = runner.job(job, lane)
        if runner.children.stopped:
            return
        with lock:
            gone = time.monotonic() - begin
            counts.update(seconds=gone - start, cost=job.cost(), failed=int("FAILED" in came))
            left = minutes(gone / counts["cost"] * (total - counts["cost"]))
            done = f"{100 * counts['cost'] / total:3.0f}%"
            print(f"{done}  {job.label()}: {came}; about {left} left", flush=True)

    def on_a_lane(job):
        lane = places.get()
        try:
            one(job, lane)
        finally:
            places.put(lane)

    pool = concurrent.futures.ThreadPoolExecutor(runner.machine.devices * DEPTH)
    try:
        for done in [pool.submit(on_a_lane, job) for job in jobs if not job.alone()]:
            done.result()
        for job in jobs:
            if job.alone():
                one(job, None)
    except BaseException:
        runner.children.stop()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    return counts["failed"], counts["left"]


def words(text):
    return [word for word in text.split(",") if word]


def run_id():
    """As the program makes them: when the run began, and the process."""
    now = datetime.datetime.now(datetime.timezone.utc)
    return f"{now:%Y-%m-%dT%H:%M:%S}.{now.microsecond // 1000:03}Z-{os.getpid():07}"


def arguments_of(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])

    def add(name, about, **more):
        parser.add_argument(name, help=about, **more)

    add("sets", "of measurements.toml; default quick", nargs="*", default=["quick"], metavar="SET")
    add("--spmv", "the program")
    add("--matrices", "with commas, or patterns of files: these and no others", default="")
    add("--kernels", "names or patterns, with commas", default="")
    add("--mine", "in the place of sets: this version of a step's kernel", metavar="STEP:FILE")
    add("--precisions", "f64,f32", default="")
    add("--limit", "seconds for all", type=float, default=float("inf"))
    add("--timeout", "seconds for a matrix and precision", type=float, default=600)
    add("--results", "where DEVICE/ is", type=Path)
    add("--device", "a directory other than that of this machine's device")
    add("--fresh", "measure again what has records", action="store_true")
    about = "also what was measured with other machine code than today's, or by fewer processes"
    add("--stale", about, action="store_true")
    add("--list", "say what would be measured, and end", action="store_true")
    add("--sets", "list the sets, and end", dest="list_sets", action="store_true")
    return parser.parse_args(argv)


def command_of(arguments):
    """What a reader types to have it again."""
    quote = "'" if len(arguments.sets) > 1 else ""
    sets = f"SET={quote}{' '.join(arguments.sets)}{quote}"
    text = f"make bench {f'KERNEL={arguments.mine}' if arguments.mine else sets}"
    for name in ("matrices", "kernels", "precisions"):
        if value := getattr(arguments, name):
            text += f" {name.upper()}='{value}'"
    return text


def run(arguments):
    if arguments.list_sets:
        for name, keys in declared()["set"].items():
            print(f"{name:<18} {keys['about']}")
        return 0
    if arguments.spmv is None:
        raise RecordError("--spmv says which program measures; `make bench` gives it")
    if not shutil.which(arguments.spmv):
        raise RecordError(f"{arguments.spmv} is not there; `make build` makes it")
    arguments.results = arguments.results or (mine.PLACE if arguments.mine else RESULTS)
    machine, run = Machine(arguments.spmv), run_id()
    device, results, own = arguments.device or machine.directory(), arguments.results, None
    if arguments.mine:
        file, keys = mine.group(arguments.mine, machine)
        if not mine.matrices_in(arguments.matrices):
            raise RecordError("which matrices? MATRICES='directory/*.mtx.gz'")
        own, results = [(file.stem, keys)], mine.begin(file, results, arguments.list)
    again = arguments.fresh, arguments.stale
    store = Store(device, results, machine.has_gpu, *again, own and [results])
    jobs = plan(arguments, machine, store, own)
    todo = f"{len(jobs)} matrices and precisions to measure on {device}"
    print(todo + ": all have records" * (not jobs), flush=True)
    if arguments.list:
        for job in jobs:
            print(f"{job.label()}: {','.join(job.kernels)}")
        return 0
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        runner = Runner(arguments, machine, store, run, command_of(arguments), Path(scratch))
        try:
            failed, left = work(jobs, runner, arguments.limit)
        finally:
            store.tidy()
    if left:
        again = "the same command, without --fresh, goes on with them"
        print(f"{left} left when the time was over; {again}")
    done, took = len(jobs) - left - failed, minutes(time.monotonic() - start)
    print(f"{done} done, {failed} with failures, in {took}; records: {results / device}")
    if own:
        mine.end(file, results / device)
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
