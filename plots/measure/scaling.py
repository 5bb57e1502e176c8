#!/usr/bin/env python3
"""A table of step 10's records, as `spmv multigpu --json FILE` on GPUs wrote them.

    plots/python.sh plots/measure/scaling.py FILE...

A line per matrix, kernel, exchange, partition and number of GPUs. Of several records of one thing the
newest run's counts. (The paper's tables 3 to 6 and figures 7 to 10 are drawn by `make figures`.)
"""

import sys

from record_format import RecordError
from records import rows_of
from tables import Table

def row(record, drives):
    times = record["step_ms"]
    busy = [1e3 * part["busy_ms"] for part in record["parts"] if "busy_ms" in part]
    return [
        record["matrix"],
        f"{record['nnz'] / 1e6:.1f}",
        record["kernel"],
        record["exchange"] + (", no norm" if record.get("norm") == "first" else ""),
        "PCSR-I" if record["partition"] == "rows" else "PCSR-II",
        str(record["gpus"]),
        *(f"{1e3 * times[drive][1]:.1f}" if drive in times else "-" for drive in drives),
        f"{min(busy):.1f} to {max(busy):.1f}" if busy else "-",
        f"{100 * record['efficiency']:.1f}%" if "efficiency" in record else "-",
    ]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    try:
        records = [record for record in rows_of(sys.argv[1:], "multigpu") if "step_ms" in record]
    except (RecordError, OSError) as error:
        sys.exit(f"error: {error}")
    if not records:
        sys.exit("error: no records of multigpu with times: they come from GPUs")
    drives = list(dict.fromkeys(drive for record in records for drive in record["step_ms"]))
    header = ["matrix", "million nonzeros", "kernel", "exchange", "partition", "GPUs", *drives, "GPUs busy", "efficiency"]
    print("Microseconds per step, by who launches them.\n")
    print(Table("", header, [row(record, drives) for record in records]).markdown(), end="")


if __name__ == "__main__":
    main()
