#!/usr/bin/env python3
"""Tables of step 10, from the records of `spmv multigpu --json FILE`.

    python3 plots/multigpu.py efficiency FILE...   a line a matrix, number of GPUs and way
    python3 plots/multigpu.py papers FILE...       He and Gao's tables 3 to 6 beside ours

Of several records of one thing the latest counts.
"""

import csv
import sys

import records as source

PAPER_TABLES = {  # (exchange, GPUs): number of the table
    ("none", 2): 3,
    ("none", 4): 4,
    ("packed", 2): 5,
    ("packed", 4): 6,
}


def read(files):
    newest = {}
    for file in files:
        for record in source.records_in(file):
            if record.get("program") != "multigpu" or "best_step_ms" not in record:
                continue
            key = (record["matrix"]["name"], record["precision"], record["kernel"])
            newest[key + (record["exchange"], record["partition"], record["gpus"])] = record
    if not newest:
        raise source.RecordError("no records of multigpu with times: it runs on GPUs")
    return list(newest.values())


def percent(value):
    return f"{100 * value:.1f}%"


def milliseconds(value):
    return f"{value:.4f}"


def table(header, rows):
    print("| " + " | ".join(header) + " |")
    print("| :--- |" + " ---: |" * (len(header) - 1))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")


def efficiency(records):
    rows = []
    for r in records:
        ways = [f"{1e3 * r['step_ms'][way]['median']:.1f}" if way in r["step_ms"] else "-" for way in ("loop", "threads", "graph")]
        busy = [part["busy_ms"] for part in r["parts"] if "busy_ms" in part]
        rows.append(
            [r["matrix"]["name"], r["matrix"]["nnz"], r["kernel"], r["exchange"], "I" if r["partition"] == "rows" else "II", r["gpus"]]
            + ways
            + [percent(r["efficiency"]) if "efficiency" in r else "-", f"{1e3 * min(busy):.1f} to {1e3 * max(busy):.1f}" if busy else "-"]
        )
    table(
        ["matrix", "nonzeros", "kernel", "exchange", "PCSR-", "GPUs", "loop us", "threads us", "graph us", "efficiency", "GPUs busy us"],
        rows,
    )


def papers(records):
    for (exchange, gpus), number in PAPER_TABLES.items():
        with open(source.PUBLISHED / f"he_gao_2016_table{number}.csv", encoding="utf-8") as file:
            published = {line["matrix"]: line for line in csv.DictReader(x for x in file if not x.startswith("#"))}
        rows = []
        for name, paper in published.items():
            ours = {
                r["partition"]: r
                for r in records
                if r["matrix"]["name"] == name and (r["exchange"], r["gpus"]) == (exchange, gpus) and r["kernel"] == "pcsr_one_pass"
            }
            if len(ours) < 2 or "efficiency" not in ours["rows"]:
                continue
            row = [name + ("" if ours["rows"]["matrix"]["source"] != "stand-in" else " (stand-in)")]
            row.append(milliseconds(ours["rows"]["one_gpu_step_ms"]))
            for partition, suffix in (("rows", "I"), ("nonzeros", "II")):
                r = ours[partition]
                row += [milliseconds(r["best_step_ms"]), milliseconds(r.get("busy_deviation_ms", float("nan")))]
                row += [percent(r["efficiency"]), paper[f"efficiency_{suffix}"] + "%"]
            rows.append(row)
        if not rows:
            continue
        print(f"\nTable {number}: {gpus} GPUs, {'without' if exchange == 'none' else 'with'} communication; milliseconds.\n")
        header = ["matrix", "one GPU"]
        for suffix in ("I", "II"):
            header += [f"ET {suffix}", f"SD {suffix}", f"PE {suffix}", f"paper's PE {suffix}"]
        table(header, rows)


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in ("efficiency", "papers"):
        sys.exit(__doc__)
    try:
        {"efficiency": efficiency, "papers": papers}[sys.argv[1]](read(sys.argv[2:]))
    except (source.RecordError, OSError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
