#!/usr/bin/env python3
"""The counters of the CPU backend beside those of a GPU, for every kernel of the steps.

    plots/python.sh plots/measure/prove_counters.py NVIDIA_H200

`make bench SET=counters` makes what this reads, plots/results/DEVICE/counters/*.csv: with
BACKEND=cuda measured.csv, one product of each kernel under Nsight Compute; with BACKEND=cpu and
ARGS='--device DEVICE' counted.csv, the same products on the CPU backend. A row is a CUDA function
on a matrix in a precision, all its launches added up; functions are distinguished by name and
template arguments. This script needs no GPU.

Limits: requests and sectors per request of global loads and stores within 5% of the hardware's,
their median within 1%; bank conflicts within 10%. What lies outside is listed with its reason.
"""

import collections
import csv
import io
import re
import statistics
import subprocess
import sys

from record_format import write_whole
from records import RESULTS

# What there is of each: the counter here, and the metrics of ncu whose sum it must be.
COUNTERS = {
    "load requests": ["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"],
    "load sectors": ["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"],
    "store requests": ["l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"],
    "store sectors": ["l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"],
    "atomic requests": [
        "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum",
        "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum",
    ],
    "texture requests": ["l1tex__t_requests_pipe_tex_mem_texture.sum"],
    "texture sectors": ["l1tex__t_sectors_pipe_tex_mem_texture.sum"],
    "bank conflicts, loads": ["l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"],
    "bank conflicts, stores": ["l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"],
    "shared loads": ["smsp__inst_executed_op_shared_ld.sum"],
    "shared stores": ["smsp__inst_executed_op_shared_st.sum"],
    "DRAM bytes read": ["dram__bytes_read.sum"],
}
# How long a function takes, and shares of its peak at which each unit of memory works, in percent:
# over that time, the L2's unit for atomics where it is busiest; for the L1 while its multiprocessor
# is active, and how much of the time that is.
DURATION = "gpu__time_duration.sum"
OF_PEAK = [
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "lts__d_atomic_input_cycles_active.max.pct_of_peak_sustained_elapsed",
]
OF_L1 = [
    "l1tex__throughput.avg.pct_of_peak_sustained_active",
    "sm__cycles_active.avg.pct_of_peak_sustained_elapsed",
]
# What is compared: (name, numerator, denominator or None, share that it may differ by).
QUANTITIES = [
    ("load requests", "load requests", None, 0.05),
    ("sectors per load", "load sectors", "load requests", 0.05),
    ("store requests", "store requests", None, 0.05),
    ("sectors per store", "store sectors", "store requests", 0.05),
    ("texture requests", "texture requests", None, 0.05),
    ("sectors per fetch", "texture sectors", "texture requests", 0.05),
    ("atomic requests", "atomic requests", None, 0.05),
    ("conflicts of loads", "bank conflicts, loads", None, 0.10),
    ("conflicts of stores", "bank conflicts, stores", None, 0.10),
    ("DRAM read (a model)", "DRAM bytes read", None, None),
]
# A count below this is too small to speak of shares: one more or less is nothing.
LEAST = 64


def function_name(text):
    """csr_vector_kernel<2,double>, however ncu, the linker or a compiler writes it."""
    text = re.sub(r"\([\w: ]+\)(?=\d|true|false|::)", "", text)  # (int)128, (anonymous namespace)::
    found = re.search(r"\w*_kernel\w*(<[^()]*>)?", text)  # up to the list of parameters
    if not found:
        return None
    name = found[0]
    written = {"true": "1", "false": "0", "spmv::": "", " ": "", "intconst*": "constint*"}
    for old, new in written.items():
        name = name.replace(old, new)
    return re.sub(r"\b(\d+)u?l*(?=[,>])", r"\1", name)


# --- Sums -----------------------------------------------------------------------------------------


def sums_of_ncu(text):
    """{function: sums of counters over its launches}, from what `ncu --csv --page raw` printed; of
    times too, if it was asked for them: "ns", and "memory ns" that the busiest unit would take at
    its peak."""
    lines = text.splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if first is None:
        return {}
    rows = csv.DictReader(line for line in lines[first:] if line.startswith('"'))
    functions = {}
    for row in list(rows)[1:]:  # the second line has units
        texts = {m: text for m, text in row.items() if m and "__" in m and text}
        values = {
            m: float(t.replace(",", "")) for m, t in texts.items() if re.fullmatch(r"[\d,.]+", t)
        }
        found = {
            counter: sum(values[m] for m in metrics if m in values)
            for counter, metrics in COUNTERS.items()
            if any(m in values for m in metrics)
        }
        if DURATION in values:
            of_l1 = values[OF_L1[0]] * values[OF_L1[1]] / 100
            share = max(of_l1, *(values.get(m, 0) for m in OF_PEAK)) / 100
            found.update({"ns": values[DURATION], "memory ns": round(values[DURATION] * share)})
        functions.setdefault(function_name(row["Kernel Name"]), collections.Counter()).update(
            {"launches": 1, **found}
        )
    return functions


def sums_of_profile(records):
    """The same from records of the CPU backend with --profile; `sites`: instructions that load."""
    functions = {}
    for record in records:
        for kernel in record.get("kernels", []):
            name, sites = function_name(kernel["kernel"]), set()
            sums = functions.setdefault(name, collections.Counter(sites=0))
            sums["launches"] += kernel["launches"]
            for line in record["lines"]:
                if line["kernel"] != kernel["kernel"]:
                    continue
                space, access = line["space"], line["access"]
                if space == "global":
                    through, prefix = access, ""
                    if access == "load":
                        sites.add((line["file"], line["line"], line["array"]))
                        if line["texture_requests"]:
                            through, prefix = "texture", "texture_"
                    sums[f"{through} requests"] += line[f"{prefix}requests"]
                    sums[f"{through} sectors"] += line[f"{prefix}sectors"]
                    sums["DRAM bytes read"] += 32 * line["model_dram_sectors"]
                elif space == "shared" and access != "atomic":
                    conflicts = line["bank_passes"] - line["ideal_bank_passes"]
                    sums[f"bank conflicts, {access}s"] += conflicts
                    sums[f"shared {access}s"] += line["requests"]
            sums["sites"] = max(sums["sites"], len(sites))
    return functions


def loads_in_code(sass):
    """{function: instructions that load from global memory}, from what `cuobjdump -sass` printed.
    More than the source has means that the compiler unrolled a loop."""
    counts, function = collections.Counter(), None
    for line in sass.splitlines():
        if "Function :" in line:
            function = line.split(":", 1)[1].strip()
        elif function and re.search(r"\bLDG\b", line):
            counts[function] += 1
    done = subprocess.run(["c++filt"], input="\n".join(counts), capture_output=True, text=True)
    names = zip(done.stdout.splitlines(), counts.values())
    return {function_name(n): c for n, c in names if "spmv::" in n and function_name(n)}


# --- Files ----------------------------------------------------------------------------------------

KEYS = ("matrix", "precision", "function")
COLUMNS = (*KEYS, "launches", "sites", "loads in code", *COUNTERS, "ns", "memory ns")


def read(file):
    """{(matrix, precision): {function: sums}}"""
    runs = {}
    if file.exists():
        for row in csv.DictReader(file.read_text(encoding="utf-8").splitlines()):
            matrix, precision, function = (row.pop(key) for key in KEYS)
            runs.setdefault((matrix, precision), {})[function] = {
                name: float(value) for name, value in row.items() if value
            }
    return runs


def write(file, runs):
    """A line per function, always in the same order, so that a diff shows what changed."""

    def text(value):
        return "" if value is None else f"{value:.0f}" if float(value).is_integer() else str(value)

    there = {name for of in runs.values() for sums in of.values() for name in sums}
    names = [name for name in COLUMNS[len(KEYS) :] if name in there]
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow([*KEYS, *names])
    for run, functions in sorted(runs.items()):
        for function, sums in sorted(functions.items()):
            lines.writerow([*run, function, *(text(sums.get(name)) for name in names)])
    write_whole(file, out.getvalue())


# --- From what both left --------------------------------------------------------------------------


def reason_for(quantity, counted, measured):
    """Why a count may be outside its limit."""
    conflicts, of = measured.get("bank conflicts, loads", 0), measured.get("shared loads", 0)
    few = conflicts < 0.02 * of and not counted.get("bank conflicts, loads")
    if quantity == "conflicts of loads" and few:
        return "lanes ask for neighbouring words; the GPU counts a conflict in one or two of a hundred loads all the same"
    if measured.get("loads in code", 0) > counted["sites"] > 0:
        return (
            "the compiler unrolled or doubled loops (more load instructions than in the source), and lanes of "
            "different lengths go through them in another order"
        )
    return "not explained"


def off_by(counted, measured, top, bottom, allowed):
    """By which share a quantity of a function is off, None where there is nothing to compare."""
    ours, theirs = counted.get(top, 0), measured.get(top)
    if theirs is None:
        return None
    if bottom:
        of_both = counted.get(bottom), measured.get(bottom)
        if not all(of_both):
            return None
        ours, theirs = ours / of_both[0], theirs / of_both[1]
    else:
        theirs *= counted["launches"] / measured["launches"]
        if max(ours, theirs) < LEAST or (allowed is None and theirs == 0):
            return None
    return ours / theirs - 1 if theirs else float("inf")


def compare(directory):
    runs, measured_runs = read(directory / "counted.csv"), read(directory / "measured.csv")
    # {quantity: shares that counts are off}, {reason: {function without its arguments: the same}}
    found, outside = collections.defaultdict(list), {}
    functions, missing = set(), []
    for run, (function, counted) in ((run, of) for run in runs for of in runs[run].items()):
        measured = measured_runs.get(run, {}).get(function)
        if measured is None:
            missing.append(f"{function} in {' '.join(run)}")
            continue
        functions.add(function)
        for name, *of, allowed in QUANTITIES:
            off = off_by(counted, measured, *of, allowed)
            found[name] += [] if off is None else [off]
            if off is not None and allowed is not None and abs(off) > allowed:
                of_reason = outside.setdefault(reason_for(name, counted, measured), {})
                of_reason.setdefault(function.split("<")[0], []).append(off)
    if not functions:
        how = "`make bench SET=counters` measures it on a GPU and counts it without one"
        sys.exit(f"error: nothing to compare in {directory}; {how}")

    print(f"{len(functions)} CUDA functions, {len(runs)} runs (matrix and precision)")
    form = "{:<22} {:>7} {:>8} {:>11} {:>7} {:>7} {:>9}"
    print(form.format("quantity", "values", "allowed", "median off", "exact", "within", "worst"))

    def line(name, allowed, offs, within):
        """`within`: whether each is within its limit; empty where there is none."""
        exact = [abs(off) < 1e-9 for off in offs] if within else []
        shares = (f"{sum(of) / len(of):.1%}" if of else "" for of in (exact, within))
        middle, worst = statistics.median(map(abs, offs)), max(offs, key=abs)
        print(form.format(name, len(offs), allowed, f"{middle:.2%}", *shares, f"{worst:+.1%}"))

    all_offs, all_within = [], []
    for name, *_, allowed in QUANTITIES:
        if offs := found[name]:
            within = [abs(off) <= allowed for off in offs] if allowed else []
            line(name, f"{allowed:.0%}" if allowed else "", offs, within)
            all_offs, all_within = all_offs + offs * bool(allowed), all_within + within
    if all_offs:
        line("all with a limit", "", all_offs, all_within)
    for reason, of in outside.items():
        print(f"\nOutside, {sum(map(len, of.values()))} values: {reason}")
        for function, offs in sorted(of.items()):
            print(f"  {function}: {len(offs)}, at most {max(offs, key=abs):+.1%}")
    print("\n" * bool(missing) + "".join(f"not measured: {what}\n" for what in missing), end="")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    compare(RESULTS / sys.argv[1] / "counters")
