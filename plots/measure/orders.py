#!/usr/bin/env python3
"""What another order of rows and columns is worth: 08_formats_ell_hyb_dia/ordering.md shows it.

    plots/python.sh plots/measure/orders.py NVIDIA_H200 f32

A line per matrix and order: sectors of x per request of pcsr_one_pass, counted by the CPU backend
(`make bench BACKEND=cpu SET=orders_counted`); the time of a product of pcsr_one_pass and of the
best of cuSPARSE (SET=orders, SET=large); how many times as fast as in the order of the file one
pass is; how long the GPU takes to permute x, and y where rows are renumbered; the host's time to
find and apply the order; and after how many products that is won back. There `columns` pays for
permuting x in each product, since y stays in the old numbering; the others, which renumber rows
alike, permute once per solve.
"""

import argparse
import math

from record_format import RecordError
from records import RESULTS, directory_of, milliseconds, number, read
from sets import expanded, fits, split_order
from tables import DASH, Table

OWN = "pcsr_one_pass"
NOT_MEASURED = "not measured yet"


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
        orders = found.setdefault(matrix.removesuffix(".mtx.gz"), {"none": None})
        orders[order or "none"] = None
    return {matrix: list(orders) for matrix, orders in found.items()}


def table(device, precision, results=RESULTS):
    try:
        measured = records_of(directory_of(device, results), precision)
    except (RecordError, OSError):
        measured = {}
    counted = records_of(results / "cpu_backend", precision)
    rows = []
    for matrix, orders in orders_of(expanded("@reordered", lambda name: [name])).items():
        for order in orders:
            name = matrix if order == "none" else f"{matrix},order={order}"
            own, first = measured.get((name, OWN)), measured.get((matrix, OWN))
            rivals = [r for (m, k), r in measured.items() if m == name and fits(k, ["cusparse_*"])]
            sectors = sectors_per_request(counted.get((name, OWN), {}))
            cells = [DASH if sectors is None else number(sectors)]
            if not own or not first:
                rows.append([matrix, order, *cells, NOT_MEASURED, *[DASH] * 4])
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("device")
    parser.add_argument("precision", choices=["f32", "f64"])
    arguments = parser.parse_args()
    print(table(arguments.device, arguments.precision).markdown(), end="")


if __name__ == "__main__":
    main()
