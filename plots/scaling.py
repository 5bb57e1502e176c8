#!/usr/bin/env python3
"""A table of step 10's records, as `spmv multigpu --json FILE` on GPUs wrote them.

    python3 plots/scaling.py FILE...

A line a matrix, kernel, exchange, partition and number of GPUs. Of several records of one thing the
latest counts. (The paper's tables 3 to 6 and figures 7 to 10 are drawn by `make figures`.)
"""

import sys

import records as source

DRIVES = ("loop", "threads", "graph")


def read(files):
    newest = {}
    for file in files:
        for record in source.records_in(file):
            if record.get("program") != "multigpu" or "best_step_ms" not in record:
                continue
            what = [record[key] for key in ("precision", "kernel", "exchange", "partition", "gpus", "steps")]
            newest[(record["matrix"]["name"], *what)] = record
    if not newest:
        raise source.RecordError("no records of multigpu with times: they come from GPUs")
    return list(newest.values())


def row(record):
    def microseconds(times, drive):
        return f"{1e3 * times[drive]['median']:.1f}" if drive in times else "-"

    busy = [1e3 * part["busy_ms"] for part in record["parts"] if "busy_ms" in part]
    return [
        record["matrix"]["name"],
        f"{record['matrix']['nnz'] / 1e6:.1f}",
        record["kernel"],
        record["exchange"],
        "PCSR-I" if record["partition"] == "rows" else "PCSR-II",
        record["gpus"],
        *(microseconds(record["step_ms"], drive) for drive in DRIVES),
        *(microseconds(record["single_step_ms"], drive) for drive in DRIVES),
        f"{min(busy):.1f} to {max(busy):.1f}" if busy else "-",
        f"{100 * record['efficiency']:.1f}%" if "efficiency" in record else "-",
    ]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    try:
        rows = [row(record) for record in read(sys.argv[1:])]
    except (source.RecordError, OSError) as error:
        sys.exit(f"error: {error}")
    print("Microseconds a step, of many and of one alone, by who launches them.\n")
    header = ["matrix", "million nonzeros", "kernel", "exchange", "partition", "GPUs", *DRIVES]
    header += [f"one, {drive}" for drive in DRIVES] + ["GPUs busy", "efficiency"]
    print("| " + " | ".join(header) + " |")
    print("| :--- |" + " ---: |" * (len(header) - 1))
    for cells in rows:
        print("| " + " | ".join(map(str, cells)) + " |")


if __name__ == "__main__":
    main()
