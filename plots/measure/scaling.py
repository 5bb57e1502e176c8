#!/usr/bin/env python3
"""Tables of step 10's records, as `spmv multigpu --json FILE` on GPUs wrote them.

    plots/python.sh plots/measure/scaling.py NVIDIA_H100        the records that figures show
    plots/python.sh plots/measure/scaling.py --paper DEVICE 4   He and Gao's way and ours on 4 GPUs
    plots/python.sh plots/measure/scaling.py --ranks DEVICE     one process beside one per GPU

A line per matrix, kernel, exchange, partition and number of GPUs; with --paper, per matrix of He
and Gao's tables. Of several records of one thing the newest run's counts. Efficiency: the fastest
step on one GPU over GPUs x time. (The paper's tables 3 to 6 and figures 7 to 10 are drawn by `make
figures`.)
"""

import sys
from statistics import mean

from published import published
from record_format import RecordError
from records import STALE, Data, code_state, files_in, on_one_gpu, read_records, rows_of
from tables import DASH, Table


def scaling_table(records):
    """Of each record."""
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
    return Table("", header, [row(r) for r in records]).markdown()


def paper_table(data, gpus=2):
    """Lines of text: PCSR-II with the published kernel and exchange, and the fastest here.
    `beyond`: what a step on these GPUs takes beyond their product of one x, without an exchange."""
    from he_gao import efficiencies  # it draws, too: only this table needs what it imports

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


def ranks_table(data):
    """Lines of text: microseconds per step of one process, with stores, and of a process per GPU,
    by its exchange: records in ranks/, of today's machine code."""
    exchanges, times = ["nccl", "mpi"], {}
    timed = [r for r in data.multigpu if "best_step_ms" in r]
    one_process = {(r["matrix"], r["gpus"], r["exchange"]): r["best_step_ms"] for r in timed}
    files = files_in(data.results / data.directory / "ranks")
    for r in rows_of(files, "multigpu_mpi", lambda record: code_state(record) not in STALE):
        times.setdefault((r["matrix"], r["ranks"]), {})[r["exchange"]] = r["best_step_ms"]
    yield f"{'us per step':15}{'one process':>16}{'a process per GPU':>20}"
    yield f"{'matrix':12}GPUs{'stores':>15}" + "".join(f"{exchange:>10}" for exchange in exchanges)
    for (matrix, ranks), of in times.items():
        cells = [one_process.get((matrix, ranks, "stores")), *map(of.get, exchanges)]
        cells = [DASH if time is None else f"{1e3 * time:.1f}" for time in cells]
        yield f"{matrix:12}{ranks:4}{cells[0]:>15}{''.join(f'{c:>10}' for c in cells[1:])}"


def main():
    arguments = sys.argv[1:]
    tables = {"--paper": (paper_table, 2), "--ranks": (ranks_table, 1)}
    (table, most), given = tables.get((arguments or [""])[0], (None, 0)), arguments[1:]
    fits = 0 < len(given) <= most and all(map(str.isdecimal, given[1:]))
    if not arguments or table and not fits:
        sys.exit(__doc__)
    try:
        if table:
            print("\n".join(table(Data(given[0]), *map(int, given[1:]))))
            return
        records = read_records(arguments[0], program="multigpu")
    except (RecordError, OSError) as error:
        sys.exit(f"error: {error}")
    records = [record for record in records if "best_step_ms" in record]
    if not records:
        sys.exit("error: no records of multigpu with times: they come from GPUs")
    print(scaling_table(records), end="")


if __name__ == "__main__":
    main()
