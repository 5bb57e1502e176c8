"""The time model of the CPU backend: collects counts, fits parameters, judges by cross-validation.

    plots/python.sh plots/measure/time_model.py collect build/cpu/spmv MATRIX...
    plots/python.sh plots/measure/time_model.py code build/cuda/spmv
    plots/python.sh plots/measure/time_model.py fit [h200] [h100]

`collect` adds to COUNTS what `spmv --profile` counts of each kernel in KERNELS, in both precisions,
on files or generators. `code`, after a change of a kernel, writes how many registers a thread of
each CUDA function in COUNTS has, and how many loads it has in flight; it needs no GPU. `fit`
compares what common/harness/time_model.cpp makes of that (`spmv terms`) with the warm times of an
H200 and an H100 in plots/results, and writes parameters, and the tables and the figure of
common/harness/TIME_MODEL.md. Both write into common/harness/time_model_parameters.hpp. Only the parameters of the GPUs named are
fitted anew, with h200 also intervals and refusals; without a name those that are there are judged.
"""

import argparse
import collections
import functools
import gzip
import json
import math
import re
import statistics
import subprocess
import sys
import tempfile

import numpy as np
from scipy.optimize import least_squares
from scipy.stats import spearmanr

import prove_counters
import style
from ours import STEPS
from record_format import jsonl, records_in, write_whole
from records import GPUS, ROOT, identity, read_records
from tables import Table

COUNTS = ROOT / "plots/results/cpu_backend/time_model_counts.jsonl.gz"
HEADER = ROOT / "common/harness/time_model_parameters.hpp"
# make bench SET=limits BACKEND=cuda
PROFILED = ROOT / "plots/results/NVIDIA_H200/counters/limits.csv"
PAGE = ROOT / "common/harness/TIME_MODEL.md"
FIGURES = ROOT / "plots/figures/lessons"

CSR_COO = """csr_scalar csr_vector csr_vector_2 csr_vector_4 csr_vector_8 csr_vector_32
    csr_vector_shared atomic_coo atomic_coo_sorted atomic_coo_sorted_runs atomic_coo_warp
    segscan_block segscan_shuffle pcsr csr_adaptive pcsr_one_pass lightspmv_vector
    lightspmv_warp lightspmv_counters lightspmv_long""".split()
# Never fitted, so judged on what the model does not know.
NOT_FITTED = "lightspmv_vector_inc ell hyb sell sell_sorted dia cds cds_sliced".split()
KERNELS = CSR_COO + NOT_FITTED
FEWEST_NONZEROS, MOST_NONZEROS = 50_000, 8_000_000

# Real files that are kept aside: neither was a form of the model tried on them, nor are its
# parameters fitted to them.
ASIDE = """amazon_book_test bcsstk25 c-39 cit-HepTh coupled EX5 fe_pwt gridgena ispd98_ibm09
    ispd98_ibm13 jan99jac040sc Na5 titan23_neuron titan23_sparcT1_core
    vsp_model1_crew1_cr42_south31""".split()

# A kernel has no estimate where the model misses its times by more: median and 90th percentile.
WORST_MEDIAN, WORST_P90 = 0.25, 0.65

LONGEST = "longest row", "latency"  # counts as
WITH_TIMES = ["h200", "h100", "a100", "rtx4090", "t4"]
FITTED = ("h200", "h100")  # to their own times
PLAIN = "csr_scalar_kernel"  # a plain loop over a row: other functions are taken to be compiled as it is

# Name, first guess, how firmly to hold on to it (in steps of e-fold; 0.2: hardly). All are in us, but
# for the exponent. (The guess of dram_byte is the bandwidth of a copy.) HEADER says what they mean.
PARAMETERS = """
launch       | 1.8       | 0.2
dependent    | 1.5       | 0.2
l2_byte      | 1.818e-07 | 0.2
dram_byte    | nan       | 20
line         | 0.0005882 | 1
instruction  | 0.0002941 | 2
shared_pass  | 0.0005882 | 2
atomic       | 0.0004    | 0.2
same_address | 0.0056    | 0.2
same_counter | 0.0007    | 0.2
item         | 0.3       | 0.2
load         | 0.02      | 0.2
l2_load      | 0.12      | 0.2
shared_load  | 0.003     | 0.2
barrier      | 0.03      | 1
exponent     | 2         | 0.2
"""
PARAMETERS = [line.replace(" ", "").split("|") for line in PARAMETERS.split("\n") if line]
NAMES = [name for name, *_ in PARAMETERS]
GUESSES, WEIGHTS = np.array([numbers for _, *numbers in PARAMETERS], float).T
# The exponent of what streams through different units at the same time.
STREAMS = float(re.search(r"kStreams = ([\d.]+)", HEADER.read_text(encoding="utf-8"))[1])
# The columns of the terms.
L2, DRAM, LINE, _, PASS, ATOMIC, _, COUNTER, ITEM, *_ = range(len(NAMES) - 3)
# What an H100 may have otherwise than an H200, and how firmly to hold on to the H200's value all
# the same; the rest: 3.
OWN = {"launch": 0.5, "dependent": 0.5, "l2_byte": 0.5, "dram_byte": 20}


# --- The model ------------------------------------------------------------------------------------


@functools.lru_cache
def spmv():
    """Today's program of the CPU backend."""
    program = ROOT / "build/cpu/spmv"
    subprocess.run(["make", "-s", "-C", ROOT, "BACKEND=cpu", program], check=True)
    return program


def emitted(works, gpu):
    """What `spmv terms` says of products, each a list of works, on a GPU: [(parameter, its limit)],
    and of each product a dictionary."""
    lines = "".join(json.dumps(of) + "\n" for of in works)
    command = [spmv(), "terms", "--gpu", gpu]
    done = subprocess.run(command, input=lines, stdout=subprocess.PIPE, text=True, check=True)
    heads, *answers = map(json.loads, done.stdout.splitlines())
    assert [name for name, _ in heads] == NAMES[2:-1], heads
    return heads, answers


class Products:
    """Products to be estimated: `rows` of (matrix, precision, kernel, works, measured us)."""

    def __init__(self, rows, gpu, terms=None):
        self.rows, self.gpu = rows, gpu
        self.measured = np.array([row[4] for row in rows])
        self.heads, self.emitted = terms or emitted([row[3] for row in rows], gpu)
        self.names = ["launches", *dict.fromkeys(limit for _, limit in self.heads)]
        # What the program names as the largest term of each.
        self.limits = np.array([of["limit"].replace(*LONGEST) for of in self.emitted])
        functions = [of["functions"] for of in self.emitted]
        table = np.array(sum(functions, []))
        self.index = np.repeat(np.arange(len(rows)), list(map(len, functions)))
        self.launches, self.table = table[:, 0], table[:, 1:]

    def estimate(self, parameters):
        """In microseconds, as function_us() of time_model.cpp adds terms up."""
        launch, dependent, exponent = parameters[0], parameters[1], parameters[-1]
        us = np.full(len(self.rows), launch - dependent)
        t = self.table * parameters[2:-1]
        units = np.column_stack([np.maximum(t[:, L2], t[:, DRAM]), t[:, LINE : PASS + 1]])
        streams = (units**STREAMS).sum(axis=1) ** (1 / STREAMS)
        waiting = t[:, ITEM:].sum(axis=1)
        limits = np.column_stack([streams, t[:, ATOMIC : COUNTER + 1], waiting])
        combined = (limits**exponent).sum(axis=1) ** (1 / exponent)
        np.add.at(us, self.index, self.launches * (dependent + combined))
        return np.maximum(us, 0.1)

    def where(self, chosen):
        taken = np.flatnonzero(chosen)
        terms = self.heads, [self.emitted[i] for i in taken]
        return Products([self.rows[i] for i in taken], self.gpu, terms)


def fit(products, copy_gb_per_s, prior=None, weights=None, start=None):
    """Parameters that fit best: least squares of log(estimate / measured), of which large ones
    count by their absolute values, and of how far the logarithms of the parameters (of the exponent
    less 1) are from those of `prior`, times `weights`."""
    scale = 0.3  # above it residuals count by their absolute values

    def decode(x):
        return np.append(np.exp(x[:-1]), 1 + np.exp(x[-1]))

    def encode(p):
        return np.log(np.append(p[:-1], p[-1] - 1))

    prior = np.array(GUESSES if prior is None else prior)
    prior[NAMES.index("dram_byte")] = 1e-3 / copy_gb_per_s
    weights = WEIGHTS if weights is None else weights

    def residuals(x):
        r = np.log(products.estimate(decode(x)) / products.measured)
        robust = np.sign(r) * scale * np.sqrt(2 * (np.sqrt(1 + (r / scale) ** 2) - 1))
        return np.append(robust, weights * (x - encode(prior)))

    start = encode(prior if start is None else start)
    return decode(least_squares(residuals, start, xtol=1e-4, ftol=1e-6).x)


# --- Judging it -----------------------------------------------------------------------------------


def with_unknown_code(rows):
    """The same rows, of functions that HEADER does not list."""
    unknown = lambda work: {**work, "function": "mine<" + work["function"]}  # noqa: E731
    return [(*row[:3], [unknown(work) for work in row[3]], row[4]) for row in rows]


def errors_of(products, parameters):
    return np.log(products.estimate(parameters) / products.measured)


def judged(what, products, errors, intervals):
    """A row of the table `judgement`."""
    size = np.abs(np.expm1(errors))
    groups = collections.defaultdict(list)
    for (matrix, precision, _, _, measured), error in zip(products.rows, errors):
        groups[matrix, precision].append((measured, measured * np.exp(error)))
    groups = [np.array(group).T for group in groups.values() if len(group) > 3]
    rank = np.median([spearmanr(times, estimates)[0] for times, estimates in groups])
    best = [times[estimates.argmin()] <= 1.1 * times.min() for times, estimates in groups]
    sizes = f"{100 * np.median(size):.1f}%", f"{100 * np.quantile(size, 0.9):.1f}%", f"{rank:.2f}"
    named = f"{percent(np.mean(best))} of {len(groups)}"
    low, high = np.array([intervals.get(of, intervals["any"]) for of in products.limits]).T
    held = percent(np.mean((low <= np.exp(-errors)) & (np.exp(-errors) <= high)))
    return [what, len(products.rows), len({row[0] for row in products.rows}), *sizes, named, held]


# What a limit is a matter of; all others of memory.
MATTER = {"launches": "launch", "latency": "latency", "barriers": "latency"}
# Their counters were looked at before the rule of agreement() was written.
LOOKED_AT = """Andrews bcsstk29 cit-HepPh cnr-2000 cont-300 dblp-2010 email-Enron finan512 memplus nw04 soc-Slashdot0902
    stencil2d:256x256,dof=1 stencil3d:32x32x32,dof=3 wang4""".split()


def agreement(products):
    """Of the products that Nsight Compute measured, by whether their matrix is in LOOKED_AT: [(what
    the model names, what it finds)]. It finds the largest of three parts of the warm time: the
    shortest of any product with as many launches, what the busiest unit of memory would take at its
    peak, and the rest."""
    runs, shortest = prove_counters.read(PROFILED), {}
    launches = [sum(work["launches"] for work in row[3]) for row in products.rows]
    for row, n in zip(products.rows, launches):
        shortest[n] = min(1e3 * row[4], shortest.get(n, math.inf))
    found = {"whose counters were looked at": [], "measured after the rule": []}
    for (matrix, precision, _, works, us), n, limit in zip(
        products.rows, launches, products.limits
    ):
        names = [prove_counters.function_name(work["function"]) for work in works]
        run = runs.get((matrix, precision), {})
        if all(name in run for name in names):
            of = [run[name]["memory ns"] / run[name]["launches"] for name in names]
            memory = sum(work["launches"] * ns for work, ns in zip(works, of))
            parts = {"launch": shortest[n], "memory": memory}
            parts["latency"] = 1e3 * us - sum(parts.values())
            pair = MATTER.get(limit, "memory"), max(parts, key=parts.get)
            found[list(found)[matrix not in LOOKED_AT]].append(pair)
    return {of: pairs for of, pairs in found.items() if pairs}


def agreement_row(what, pairs):
    row = [what, len(pairs), percent(np.mean([a == b for a, b in pairs]))]
    for named in ("launch", "memory", "latency"):
        right = [b == named for a, b in pairs if a == named]
        row.append(f"{sum(right)} of {len(right)}")
    return row


def by_kernel(rows, errors):
    """{kernel: (products, and of the error: median with its sign, median, 90th percentile)}, in the
    order of their names."""
    kernels, errors, found = np.array([row[2] for row in rows]), np.expm1(errors), {}
    for kernel in map(str, np.unique(kernels)):
        e = errors[kernels == kernel]
        found[kernel] = len(e), np.median(e), np.median(abs(e)), np.quantile(abs(e), 0.9)
    return found


# --- Counts and times -----------------------------------------------------------------------------


def collect(spmv, *matrices):
    """Adds to COUNTS, or replaces there, what `spmv --profile` counts; writes it after each matrix
    and precision."""
    for matrix in matrices:
        for precision in ("f64", "f32"):
            with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
                command = [spmv, "-m", matrix, "--complex", "real", "-p", precision, "--profile"]
                command += ["-k", ",".join(KERNELS), "--json", file.name]
                if subprocess.run(command, stdout=subprocess.DEVNULL).returncode:
                    why = f"{' '.join(command)} failed; {COUNTS} holds what was counted before"
                    raise SystemExit(f"error: {why}")
                add_counts(records_in(file.name))


# Address, text, upper half of its encoding.
INSTRUCTION = re.compile(r"/\*(\w{4,})\*/ +(.*?) ;? */\* 0x\w+ \*/\s+/\* 0x(\w+) \*/")


def loads_in_flight(sass):
    """How many loads from global memory a warp issues per wait for any, in the loop of a function
    where they are most; several loops with as many loads are versions of one, of which the slowest
    counts. Without a loop that loads: in all of the function. In the upper half of an instruction,
    bits 41 to 61 are for the scheduler: 46 to 48 name the barrier that a load sets until it has
    arrived, 52 to 57 the barriers that the instruction waits for (Jia et al. 2018, Dissecting the
    NVIDIA Volta GPU Architecture)."""
    code = [(int(at, 16), text, int(upper, 16)) for at, text, upper in INSTRUCTION.findall(sass)]
    loads = lambda part: sum("LDG" in text for _, text, _ in part)  # noqa: E731

    def per_wait(part):
        rounds, first = 8, None
        now, ready = 0, [0] * 8  # in latencies of a load; all else takes no time
        for _ in range(rounds + 1):
            for _, text, upper in part:
                now = max([now, *(ready[b] for b in range(6) if upper >> 52 + b & 1)])
                if "LDG" in text:
                    ready[upper >> 46 & 7] = now + 1
            first = now if first is None else first
        return loads(part) * rounds / max(now - first, rounds)

    loops, slowest = [], {}
    for at, text, _ in code:
        target = re.search(r"BRA\S* .*?0x(\w+)$", text)
        if target and int(target[1], 16) <= at:
            loops.append([i for i in code if int(target[1], 16) <= i[0] <= at])
    for part in [loop for loop in loops if loads(loop)] or [code]:
        slowest[loads(part)] = min(per_wait(part), slowest.get(loads(part), math.inf))
    return max(slowest.values())


def collect_code(*programs):
    """Writes what nvcc made of each CUDA function, by cuobjdump and nvdisasm of the CUDA Toolkit, from
    programs or objects for GPUs: the median of a function's instantiations."""

    def output_of(*command):
        mangled = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
        return subprocess.run(["c++filt"], input=mangled, capture_output=True).stdout.decode()

    name_of = lambda work: prove_counters.function_name(work["function"]).split("<")[0]  # noqa: E731
    counted = {name_of(work) for c in read_counts() for work in c["work"]}
    # {(function, is single precision, quantity): its instantiations'}
    found = collections.defaultdict(list)
    for program in programs:
        listed = output_of("cuobjdump", "-res-usage", program)
        for name, of, count in re.findall(
            r"Function (?:void )?spmv::(\w+)(.*):\n *REG:(\d+)", listed
        ):
            found[name, "float" in of, "registers"].append(int(count))
        for function in output_of("cuobjdump", "-sass", program).split("Function : ")[1:]:
            if (name := re.match(r"(?:void )?spmv::(\w+)(.*)", function)) and name[1] in counted:
                found[name[1], "float" in name[2], "in flight"].append(loads_in_flight(function))
    columns = [(single, of) for of in ("registers", "in flight") for single in (False, True)]
    missing = [n for n in sorted(counted) if not all(found[(n, *column)] for column in columns)]
    if missing:
        why = f"{' '.join(programs)}: no machine code of {', '.join(missing)} in both precisions"
        raise SystemExit(f"error: {why}")
    rows = []
    for name in sorted(counted, key=lambda name: (name != PLAIN, name)):
        n = [f"{statistics.median_low(found[(name, *column)]):.3g}" for column in columns]
        rows.append(f'"{name}", {{{n[0]}, {n[1]}}}, {{{n[2]}, {n[3]}}}')
    rewrite(kMachineCode=rows)


def add_counts(records):
    """Adds the counts in joined records to COUNTS."""
    known = {identity(c): c for c in read_counts()}
    fields = ("matrix", "precision", "kernel", "nnz", "work")
    known |= {identity(r): {name: r[name] for name in fields} for r in records if "work" in r}
    write_whole(COUNTS, gzip.compress(jsonl(c for _, c in sorted(known.items())).encode(), mtime=0))


def read_counts():
    return [json.loads(line) for line in gzip.decompress(COUNTS.read_bytes()).splitlines()]


def rows_with(records, kernels):
    """(matrix, precision, kernel, works, measured us) of every product that was counted and
    measured: of the same matrix, by its number of nonzeros."""
    timed = [r for r in records if "warm_ms" in r and "beta" not in r and not r["host"]]
    times = {(*identity(r), r["nnz"]): 1e3 * r["warm_ms"] for r in timed}
    return [
        (*identity(c), c["work"], times[(*identity(c), c["nnz"])])
        for c in read_counts()
        if c["kernel"] in kernels and FEWEST_NONZEROS <= c["nnz"] <= MOST_NONZEROS
        if (*identity(c), c["nnz"]) in times
    ]


def without_those_aside(products):
    """The products that may be fitted, and those of the files in ASIDE."""
    is_aside = np.isin([row[0] for row in products.rows], ASIDE)
    return products.where(~is_aside), products.where(is_aside)


def committed():
    """What HEADER has: {GPU: parameters}, {limit: its interval}, {kernel: why it has no
    estimate}."""
    text = HEADER.read_text(encoding="utf-8")
    gpus = re.findall(r'{"(\w+)", (?:true|false), (.*)},', text)
    parameters = {gpu: np.array(re.findall(r"[-\d.e]+", row), float) for gpu, row in gpus}
    ends = re.findall(r'{"([\w ]+)", ([\d.]+), ([\d.]+)},', text)
    intervals = {limit: (float(low), float(high)) for limit, low, high in ends}
    return parameters, intervals, dict(re.findall(r'{"(\w+)", "(.+)"},', text))


# --- What is written ------------------------------------------------------------------------------


def scaled(parameters, name):
    """The H200's parameters for a GPU that is known by its data sheet: cycles by the clock, DRAM by
    its bandwidth, what all multiprocessors do together by their number as well; launches as they
    are."""
    h200, gpu = GPUS["h200"], GPUS[name]
    clock = h200.mhz / gpu.mhz
    factors = dict.fromkeys(("launch", "dependent", "exponent"), 1)
    factors["dram_byte"] = h200.dram_gb_per_s / gpu.dram_gb_per_s
    together = clock * h200.multiprocessors / gpu.multiprocessors
    factors |= {"l2_byte": together, "atomic": together}
    return np.array([p * factors.get(n, clock) for n, p in zip(NAMES, parameters)])


def rewrite(**tables):
    """Writes HEADER with other rows in these of its tables."""
    text = HEADER.read_text(encoding="utf-8")
    for name, rows in tables.items():
        begin = text.index(f"{name}[] = {{\n") + len(f"{name}[] = {{\n")
        rows = "".join(f"    {{{row}}},\n" for row in rows)
        text = text[:begin] + rows + text[text.index("};\n", begin) :]
    write_whole(HEADER, text)


def write_parameters(parameters, intervals, refusals):
    of_gpus = []
    for gpu, values in parameters.items():
        launch, dependent, *values, exponent = (f"{v:.4g}" for v in values)
        head = f'"{gpu}", {str(gpu in FITTED).lower()}, {launch}, {dependent}'
        of_gpus.append(f"{head}, {{{', '.join(values)}}}, {exponent}")
    ends = [f'"{limit}", {low:.3f}, {high:.3f}' for limit, (low, high) in intervals.items()]
    reasons = [f'"{kernel}", "{reason}"' for kernel, reason in refusals.items()] or ['"", ""']
    rewrite(kTimeParameters=of_gpus, kIntervals=ends, kRefusals=reasons)


FEWEST_FOR_AN_INTERVAL = 80
IN_THE_INTERVAL = 0.85  # what it promises is 80%; a new kernel on a new matrix is further away than what was left out


def intervals_of(names, limits, errors):
    """By limit, and "any" for those of which there are too few: what measured / estimate was for
    the middle products, IN_THE_INTERVAL of them, whose kernel had been left out, widened where that
    does not hold the estimate."""
    ends = 0.5 - IN_THE_INTERVAL / 2, 0.5 + IN_THE_INTERVAL / 2
    ratio = np.exp(-errors)

    def interval(of):
        low, high = np.quantile(of, ends)
        return min(low, 1), max(high, 1)

    found = {}
    for limit in names:
        of = ratio[limits == limit]
        if len(of) >= FEWEST_FOR_AN_INTERVAL:
            found[limit] = interval(of)
    return {**found, "any": interval(ratio)}


def percent(x):
    return f"{100 * x:.0f}%"


def fill(name, head, rows):
    """Replaces the table in PAGE between <!-- time_model: NAME --> and <!-- end -->."""
    text = Table("", head.split(", "), [[str(cell) for cell in row] for row in rows]).markdown()
    page = PAGE.read_text(encoding="utf-8")
    before, marker, rest = page.partition(f"<!-- time_model: {name} -->\n")
    if not marker:
        raise SystemExit(f"error: {PAGE}: no block <!-- time_model: {name} -->")
    write_whole(PAGE, before + marker + "\n" + text + "\n" + rest[rest.index("<!-- end -->") :])


def three_digits(value):
    return f"{value:.3g}" if value < 1e3 else f"{float(f'{value:.3g}'):,.0f}"


def draw(rows, errors, steps):
    """Estimate over measurement, a row per step, each estimate with the product's matrix left out.
    `steps`: of each kernel."""
    groups = [STEPS[steps[k]] + ", never fitted" * (k in NOT_FITTED) for _, _, k, *_ in rows]
    names = ["all", *sorted(set(groups))]
    off = abs(np.expm1(errors))
    message = f"Half of all estimates for an H200 are within {percent(np.median(off))} of the measured time, "
    message += f"nine of ten within {percent(np.quantile(off, 0.9))}"
    figure = style.new_figure(1.5 + 0.23 * len(names), message)
    from matplotlib.patches import Patch

    axes = figure.subplots()
    for share, alpha in ((0.9, 0.15), (0.5, 0.35)):
        within = np.quantile(off, share)
        axes.axvspan(1 - within, 1 + within, color=style.ORANGE, alpha=alpha, linewidth=0)
    for y, name in enumerate(names):
        of = np.array([name in ("all", group) for group in groups])
        colour = style.GREY if name.endswith("fitted") else style.BLUE if y else style.BLACK
        style.box(axes, y, list(np.exp(errors[of])), 0.6, colour)
        style.at_edge(axes, y, f"{percent(np.median(off[of]))} ({sum(of):,})", True)
    style.head(axes, "median error\n(products)")
    axes.axvline(1, color=style.BLACK, linewidth=0.8)
    axes.set(xscale="log", xlabel="too short  ←  estimated time / measured time  →  too long")
    axes.set_xticks(ticks := [1 / 3, 1 / 2, 1, 2, 3], ["1/3", "1/2", "1", "2", "3"])
    axes.set_xticks([], minor=True)
    axes.set_xlim(min(axes.get_xlim()[0], ticks[0]), max(axes.get_xlim()[1], ticks[-1]))
    style.rows(axes, names)
    entries = [
        (style.hollow(style.BLUE), style.BOX),
        (Patch(color=style.ORANGE, alpha=0.4), "half of all"),
        (Patch(color=style.ORANGE, alpha=0.15), "nine of ten"),
    ]
    style.legend(figure, entries)
    style.save(figure, FIGURES, "time_model")


class OnGpu:
    """What was measured on a GPU, and how parameters are fitted to it."""

    def __init__(self, gpu, device, prior=None):
        self.gpu, self.records, self.prior = gpu, read_records(device), prior
        self.weights = None if prior is None else np.array([OWN.get(name, 3) for name in NAMES])
        # GB/s, which stands for the data sheet's.
        self.copy = np.median([r["copy_gb_per_s"] for r in self.records if "copy_gb_per_s" in r])
        self.products, self.aside = without_those_aside(self.of(CSR_COO))

    def of(self, kernels):
        return Products(rows_with(self.records, kernels), self.gpu)

    def fit(self, products, start=None):
        return fit(products, self.copy, self.prior, self.weights, start)

    def left_out(self, by, judged=None):
        """log(estimate / measured) of the products, or of the same ones in another form, `judged`:
        each with parameters that are fitted without its matrix (by=0) or kernel (by=2)."""
        products, start = self.products, self.fit(self.products)
        errors, keys = np.zeros(len(products.rows)), np.array([row[by] for row in products.rows])
        for key in np.unique(keys):
            without = self.fit(products.where(keys != key), start)
            errors[keys == key] = errors_of((judged or products).where(keys == key), without)
        return errors


def refused(by):
    """{kernel: why it has no estimate}"""
    return {
        kernel: f"for this kernel the time model is off by {percent(median)} (median; 90th percentile "
        f"{percent(p90)})"
        for kernel, (*_, median, p90) in by.items()
        if median > WORST_MEDIAN or p90 > WORST_P90
    }


def judgement_rows(h200, h100, others, parameters, intervals, without_matrix, without_kernel):
    """Of the table `judgement`."""

    def row(what, products, errors):
        return judged(what, products, errors, intervals)

    def by_parameters(what, products, gpu="h200"):
        return row(what, products, errors_of(products, parameters[gpu]))

    products = h200.products
    unknown = Products(with_unknown_code(products.rows), "h200")
    beyond = np.bincount(products.index, products.table[:, DRAM]) > 0
    half = "matrix left out, more than half of the L2"
    return [
        by_parameters("kept aside: real files that no form was tried on", h200.aside),
        row("matrix left out", products, without_matrix),
        row("kernel left out", products, without_kernel),
        row("kernel left out, its machine code unknown", unknown, h200.left_out(2, unknown)),
        row(half, products.where(beyond), without_matrix[beyond]),
        by_parameters("other formats and `lightspmv_vector_inc`, none of them fitted", others),
        by_parameters("H100, parameters of the H200", h100.products),
        by_parameters("H100, kept aside", h100.aside, "h100"),
    ]


def parameter_rows(parameters):
    text, rows = HEADER.read_text(encoding="utf-8"), []
    meaning = dict(re.findall(r"(?:double |// )(\w+)[;,] +(?:// )?(?:us: )?(.*)", text))
    for i, name in enumerate(NAMES):
        scale, unit = (1e3, "ns") if name != "exponent" else (1, "")
        values = [three_digits(parameters[gpu][i] * scale) for gpu in WITH_TIMES]
        rows.append([f"`{name}`", *values, unit, meaning[name]])
    return rows


def kernel_rows(by):
    return [
        [f"`{kernel}`", count, f"{100 * bias:+.0f}%", *map(percent, sizes)]
        for kernel, (count, bias, *sizes) in by.items()
    ]


def interval_rows(intervals, limits):
    counts = {**collections.Counter(limits), "any": len(limits)}
    return [
        [k, counts.get(k, 0), f"x {low:.2f}", f"x {high:.2f}"]
        for k, (low, high) in intervals.items()
    ]


def fit_all(*gpus):
    assert set(gpus) <= set(FITTED), gpus
    parameters, intervals, refusals = committed()
    if "h200" in gpus:
        h200 = OnGpu("h200", "NVIDIA_H200")
        parameters["h200"] = h200.fit(h200.products)
        for gpu in set(WITH_TIMES) - set(FITTED):
            parameters[gpu] = scaled(parameters["h200"], gpu)
    if "h100" in gpus:
        h100 = OnGpu("h100", "NVIDIA_H100", parameters["h200"])
        parameters["h100"] = h100.fit(h100.products)
    if gpus:  # the program names the limits, by these
        write_parameters(parameters, intervals, refusals)
        spmv.cache_clear()
    h200, h100 = OnGpu("h200", "NVIDIA_H200"), OnGpu("h100", "NVIDIA_H100", parameters["h200"])
    products, others = h200.products, h200.of(NOT_FITTED)
    others = others.where([row[0] not in ASIDE for row in others.rows])

    without_matrix, without_kernel = h200.left_out(0), h200.left_out(2)
    of_others = errors_of(others, parameters["h200"])
    by = by_kernel(products.rows + others.rows, np.concatenate([without_matrix, of_others]))
    if "h200" in gpus:
        intervals = intervals_of(products.names, products.limits, without_kernel)
        refusals = refused(by)
    write_parameters(parameters, intervals, refusals)

    without = without_matrix, without_kernel
    rows = judgement_rows(h200, h100, others, parameters, intervals, *without)
    seen = agreement(h200.of([kernel for kernel in KERNELS if kernel not in refusals])).items()
    of_size = "products, matrices, median, 90th percentile"
    fill("judgement", f", {of_size}, rank correlation, best named, interval holds", rows)
    fill("parameters", f"parameter, {', '.join(WITH_TIMES)}, unit, of", parameter_rows(parameters))
    fill("kernels", "kernel, products, bias, median, 90th percentile", kernel_rows(by))
    fill("intervals", "limit, products, from, to", interval_rows(intervals, products.limits))
    heads = "matrices, products, agree, named launch, named memory, named latency"
    fill("agreement", heads, [agreement_row(*of) for of in seen])
    aside = errors_of(h200.aside, parameters["h200"])
    errors = np.concatenate([without_matrix, aside, of_others])
    steps = {r["kernel"]: r["step"] for r in h200.records}
    draw(products.rows + h200.aside.rows + others.rows, errors, steps)
    print(PAGE.read_text(encoding="utf-8"))


def main():
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    functions = {"collect": collect, "code": collect_code, "fit": fit_all}
    parser.add_argument("command", choices=functions)
    parser.add_argument("of", nargs="*")
    arguments = parser.parse_args()
    functions[arguments.command](*arguments.of)


if __name__ == "__main__":
    sys.exit(main())
