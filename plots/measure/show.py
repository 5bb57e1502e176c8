#!/usr/bin/env python3
"""Tables of records, on the command line and in the pages:

plots/python.sh plots/measure/show.py scaling DEVICE           step 10's records: all
plots/python.sh plots/measure/show.py paper DEVICE GPUS        He and Gao's way and ours on so many GPUs
plots/python.sh plots/measure/show.py ranks DEVICE             one process beside one per GPU
plots/python.sh plots/measure/show.py solver DEVICE            conjugate gradients on several GPUs
plots/python.sh plots/measure/show.py orders DEVICE PRECISION  what another order of rows and columns is worth
plots/python.sh plots/measure/show.py sensitivity DEVICE       how much times depend on the protocol
plots/python.sh plots/measure/show.py recipes                  how near stand-ins come to real files
plots/python.sh plots/measure/show.py recipes DIRECTORY        the same, counted again on the files of recipes.csv that are there
"""

import inspect
import json
import math
import sys
import tempfile
from pathlib import Path
from statistics import mean, median

from measure import output_of
from published import published, rows_in
from record_format import RecordError, jsonl, records_in, write_whole
from records import RESULTS, ROOT, STALE, UNKNOWN_CODE, Data, code_state, directory_of, files_in
from records import milliseconds, number, on_one_gpu, read, read_records, rows_of
from sets import expanded, fits, split_order
from tables import DASH, Table

# --- Step 10 --------------------------------------------------------------------------------------


def scaling(device):
    """A line per matrix, kernel, exchange, partition and number of GPUs. Efficiency: the fastest step
    on one GPU over GPUs x time. (The paper's tables 3 to 6 and figures 7 to 10 are drawn by `make
    figures`.)"""
    records = [r for r in read_records(device, program="multigpu") if "best_step_ms" in r]
    one_gpu = on_one_gpu(records)

    def row(r):
        busy = [1e3 * part["busy_ms"] for part in r["parts"] if "busy_ms" in part]
        one = one_gpu.get((r["matrix"], r["kernel"])) if r["gpus"] > 1 else None
        return [
            r["matrix"],
            f"{r['nnz'] / 1e6:.1f}",
            r["kernel"],
            r["exchange"],
            "PCSR-I" if r["partition"] == "rows" else "PCSR-II",
            str(r["gpus"]),
            f"{1e3 * r['best_step_ms']:.1f}",
            f"{min(busy):.1f} to {max(busy):.1f}" if busy else "-",
            f"{100 * one['best_step_ms'] / (r['gpus'] * r['best_step_ms']):.1f}%" if one else "-",
        ]

    header = "matrix, million nonzeros, kernel, exchange, partition, GPUs, us per step, GPUs busy"
    header = [*header.split(", "), "efficiency"]
    return Table("", header, [row(r) for r in records])


def paper(device, gpus):
    """Per matrix of He and Gao's tables: PCSR-II with the published kernel and exchange, and the fastest here.
    `beyond`: what a step on these GPUs takes beyond their product of one x, without an exchange."""
    from he_gao import efficiencies  # it draws, too: only this table needs what it imports

    data, gpus = Data(device), int(gpus)
    ways = (True, False)
    found = [[efficiencies(data, gpus, way, ours) for way in ways] for ours in (False, True)]
    nonzeros = published("he_gao_2016_table3").nonzeros()
    percents = [[], []]
    heads = f"   1 GPU{gpus:3} GPUs  beyond  efficiency"
    yield f"{'us per step':15}{'published kernel and way':^36}{'our fastest':^36}".rstrip()
    yield f"{'matrix':15}{heads}{heads}"
    for matrix in sorted(nonzeros, key=nonzeros.get):
        line = f"{matrix:15}"
        for (steps, products), of_all in zip(found, percents):
            step, product = (of.get((matrix, "II")) for of in (steps, products))
            if not step or not product:
                line += f"{'not measured':>36}"
                continue
            percent, time = step["percent"], 1e3 * step["best_step_ms"]
            of_all.append(percent)
            one, beyond = time * gpus * percent / 100, time - 1e3 * product["best_step_ms"]
            line += f"{one:8.1f}{time:8.1f}{beyond:8.1f}{percent:11.0f}%"
        yield line
    means = [f"{f'of {len(of)}:':>24}{mean(of):11.0f}%" for of in percents if of]
    yield f"{'mean':15}{''.join(means)}"


def ranks(device):
    """Microseconds per step of one process, with stores, and of a process per GPU,
    by its exchange: records in ranks/, of today's machine code."""
    data, exchanges, times = Data(device), ["nccl", "mpi"], {}
    timed = [r for r in data.multigpu if "best_step_ms" in r]
    one_process = {(r["matrix"], r["gpus"], r["exchange"]): r["best_step_ms"] for r in timed}
    files = files_in(data.results / data.directory / "ranks")
    for r in rows_of(files, "multigpu_mpi", lambda record: code_state(record) not in STALE):
        times.setdefault((r["matrix"], r["ranks"]), {})[r["exchange"]] = r["best_step_ms"]
    yield f"{'us per step':15}{'one process':>16}{'a process per GPU':>20}"
    yield f"{'matrix':12}GPUs{'stores':>15}" + "".join(f"{exchange:>10}" for exchange in exchanges)
    for (matrix, count), of in times.items():
        cells = [one_process.get((matrix, count, "stores")), *map(of.get, exchanges)]
        cells = [DASH if time is None else f"{1e3 * time:.1f}" for time in cells]
        yield f"{matrix:12}{count:4}{cells[0]:>15}{''.join(f'{c:>10}' for c in cells[1:])}"


def solver(device):
    """What solvers_compared.cu wrote to plots/results/DEVICE/solver. Per matrix and number of GPUs:
    microseconds per iteration of one persistent kernel per GPU, of the same solver driven by the
    host, and of the product and the vector update alone, by kernels of their own without anything
    between them. A dagger marks records that do not name their machine code."""
    yield f"{'':48}{'us per iteration':^27}{'of a':>9}"
    heads = ["GPUs", "iterations", "ours", "kernels", "by host", "copy", "efficiency"]
    widths = 5, 11, 9, 9, 9, 9, 11
    yield f"{'matrix':32}" + "".join(f"{head:>{width}}" for head, width in zip(heads, widths))
    found = {}
    for r in read(files_in(directory_of(device) / "solver")):
        found.setdefault((r["nnz"], r["matrix"], r["gpus"]), {})[r["kernel"]] = r
    for (nnz, matrix, gpus), of in sorted(found.items()):
        ours, host = (of[name]["us_per_iteration"]["median"] for name in ("persistent", "host"))
        own, one = of["persistent"], found.get((nnz, matrix, 1))
        share = 1e6 * own["bytes_per_iteration"] / gpus / ours / own["copy_bytes_per_s"]
        efficiency = one and one["persistent"]["us_per_iteration"]["median"] / gpus / ours
        mark = " †" if code_state(own) == UNKNOWN_CODE else ""
        yield (
            f"{matrix + mark:32}{gpus:5}{own['iterations']:11}{ours:9.1f}{own['us_products_and_vectors']:9.1f}"
            f"{host:9.1f}{share:9.0%}{f'{efficiency:.0%}' if one else '-':>11}"
        )


# --- The order of x -------------------------------------------------------------------------------

OWN = "pcsr_one_pass"


def records_of(directory, precision):
    """{(matrix, kernel): record}."""
    files = [directory / "large.jsonl", directory / "orders" / "bench.jsonl"]
    rows = read([file for file in files if file.exists()])
    return {(r["matrix"], r["kernel"]): r for r in rows if r["precision"] == precision}


def sectors_per_request(record):
    """Of x, as the CPU backend counted them."""
    of_x = [t for t in record.get("traffic", []) if (t["array"], t["access"]) == ("x", "load")]
    requests = sum(t["requests"] for t in of_x)
    return sum(t["sectors"] for t in of_x) / requests if requests else None


def products_until_paid(before, after, order, permute_ms, order_ms):
    """After how many products the host's time is won back; None: never."""
    gain = before - after - (permute_ms if order == "columns" else 0)
    return math.ceil(order_ms / gain) if gain > 0 else None


def orders_of(names):
    """{matrix: its orders}, the order of the file first."""
    found = {}
    for name in names:
        matrix, order = split_order(name)
        of_matrix = found.setdefault(matrix.removesuffix(".mtx.gz"), {"none": None})
        of_matrix[order or "none"] = None
    return {matrix: list(orders) for matrix, orders in found.items()}


def orders(device, precision, results=RESULTS):
    """A line per matrix and order: sectors of x per request of pcsr_one_pass, counted by the CPU backend
    (`make bench BACKEND=cpu SET=orders_counted`); the time of a product of pcsr_one_pass and of the
    best of cuSPARSE (SET=orders, SET=large); how many times as fast as in the order of the file one
    pass is; how long the GPU takes to permute x, and y where rows are renumbered; the host's time to
    find and apply the order; and after how many products that is won back. There `columns` pays for
    permuting x in each product, since y stays in the old numbering; the others, which renumber rows
    alike, permute once per solve."""
    try:
        measured = records_of(directory_of(device, results), precision)
    except (RecordError, OSError):
        measured = {}
    counts = records_of(results / "cpu_backend", precision)
    rows = []
    for matrix, names in orders_of(expanded("@reordered", lambda name: [name])).items():
        for order in names:
            name = matrix if order == "none" else f"{matrix},order={order}"
            own, first = measured.get((name, OWN)), measured.get((matrix, OWN))
            rivals = [r for (m, k), r in measured.items() if m == name and fits(k, ["cusparse_*"])]
            sectors = sectors_per_request(counts.get((name, OWN), {}))
            cells = [DASH if sectors is None else number(sectors)]
            if not own or not first:
                rows.append([matrix, order, *cells, "not measured yet", *[DASH] * 4])
                continue
            best = min(map(milliseconds, rivals), default=None)
            cells += [number(1e3 * milliseconds(own)), number(1e3 * best) if best else DASH]
            if order == "none":
                rows.append([matrix, order, *cells, "1", DASH, DASH])
                continue
            gain = milliseconds(first) / milliseconds(own)
            times = milliseconds(first), milliseconds(own)
            permute, host = own["permute_ms"], own["order_ms"]
            paid = products_until_paid(*times, order, permute, host)
            cost = f"{host:.0f} ms" + (f", {paid:,}" if paid else ", never")
            rows.append([matrix, order, *cells, number(gain), number(1e3 * permute), cost])
    columns = ["matrix", "order", "x sectors per request", "one pass, us", "best cuSPARSE, us"]
    columns += ["times as fast", "permute, us", "host, paid after"]
    return Table("", columns, rows, [f"Warm; {precision}; {device.replace('_', ' ')}."], words=2)


# --- The protocol ---------------------------------------------------------------------------------


def times_of(records, *state, **quartile):
    return {(r["matrix"], r["kernel"]): milliseconds(r, *state, **quartile) for r in records}


def fastest(times):
    """{matrix: the kernel with the least time}"""
    found = {}
    for matrix, kernel in sorted(times, key=times.get):
        found.setdefault(matrix, kernel)
    return found


def change(label, before, after):
    """What becomes of the times `before` where the protocol gives `after`."""
    changes = sorted(abs(after[thing] / ms - 1) for thing, ms in before.items() if thing in after)
    was = fastest(before)
    is_now = fastest({thing: ms for thing, ms in after.items() if thing in before})
    sizes = median(changes), changes[int(0.95 * len(changes))], changes[-1]
    others = sum(is_now[matrix] != was[matrix] for matrix in is_now)
    sizes = [f"{100 * change:.1f}%" for change in sizes]
    return [label, str(len(changes)), *sizes, f"{others} of {len(is_now)}"]


def sensitivity(device, results=RESULTS):
    """Each line changes one thing of the protocol (10 launches before the timed ones, the median of three
    processes' medians, inputs in the L2 as far as they fit) and says by how much the times of all
    kernels on all matrices change, and on how many matrices another kernel becomes the fastest."""
    directory = directory_of(device, results) / "sensitivity"
    usual, longer = (read([directory / f"warm_up_{count}.jsonl"]) for count in (10, 100))
    times = times_of(usual)
    after = {
        "100 launches before the timed ones": times_of(longer),
        "one process: the fastest of three": times_of(usual, quartile="lower"),
        "one process: the slowest of three": times_of(usual, quartile="upper"),
        "the L2 flushed before each product": times_of(usual, "cold"),
    }
    columns = ["what changes", "times", "median change", "95% below", "most"]
    rows = [change(label, times, of) for label, of in after.items()]
    return Table("", [*columns, "another kernel is the fastest on"], rows)


# --- Stand-ins ------------------------------------------------------------------------------------

COUNTS = RESULTS / "recipes.jsonl"
KERNELS = ["csr_vector", "pcsr_one_pass"]
SPMV = ROOT / "build" / "cpu" / "spmv"
RECIPES = Path(__file__).with_name("recipes.csv")


def counts_in_file():
    return list(map(json.loads, COUNTS.read_text(encoding="utf-8").splitlines()))


def counted(matrix, precision):
    """{kernel: sectors per request of x}."""
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        options = ["-m", matrix, "--complex", "real", "-p", precision, "-k", ",".join(KERNELS)]
        output_of([str(SPMV), *options, "--json", file.name])
        records = [r for r in records_in(file.name) if r["kernel"] in KERNELS]
        return {r["kernel"]: sectors_per_request(r) for r in records}


def count(directory):
    counts = {(c["file"], c["precision"]): c for c in counts_in_file()}
    for row in rows_in(RECIPES):
        for file in sorted(directory.glob(f"{row['file']}.mtx*")):
            for precision in ("f64", "f32"):
                count = {"file": row["file"], "precision": precision, "stand_in": row["stand_in"]}
                count["real"] = counted(str(file), precision)
                count["made"] = counted(row["stand_in"], precision)
                counts[row["file"], precision] = count
            print(f"{row['file']}: {row['stand_in']}", flush=True)
    write_whole(COUNTS, jsonl(counts[key] for key in sorted(counts)))


def reached(counts):
    """{recipe: (files, errors in percent)} of the files that it was not fitted to."""
    found = {}
    for row in rows_in(RECIPES):
        if ":" in row["kind"]:  # a generator for a structure of its own
            continue
        files, errors = found.get(row["kind"], (0, []))
        of = [c for c in counts if c["file"] == row["file"] and row["half"] == "judge"]
        errors = errors + [100 * (c["made"][k] / c["real"][k] - 1) for c in of for k in KERNELS]
        found[row["kind"]] = files + bool(of), errors
    return dict(sorted(found.items()))


def recipes(directory=None):
    """Sectors per request of x, as the CPU backend counts them. Counts: results/recipes.jsonl, a line
    per file and precision."""
    if directory:
        count(Path(directory))
    columns = ["recipe", "files", "off by, median", "least", "greatest"]
    rows = []
    for kind, (files, of) in reached(counts_in_file()).items():
        cells = [DASH] * 3
        if of:
            cells = [f"{median(map(abs, of)):.0f}%", f"{min(of):+.0f}%", f"{max(of):+.0f}%"]
        rows.append([kind, str(files), *cells])
    return Table("", columns, rows)


TABLES = [scaling, paper, ranks, solver, orders, sensitivity, recipes]


def main():
    tables = {table.__name__: table for table in TABLES}
    name, *of = sys.argv[1:] or [""]
    try:
        inspect.signature(tables[name]).bind(*of)
    except (KeyError, TypeError):
        sys.exit(__doc__)
    try:
        found = tables[name](*of)
        text = (
            found.markdown() if isinstance(found, Table) else "".join(f"{line}\n" for line in found)
        )
        print(text, end="")
    except (RecordError, OSError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
