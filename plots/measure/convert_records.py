#!/usr/bin/env python3
"""Converts records of the format before 2026-11-22, in which each line repeated machine, versions,
command and matrix.

    python3 plots/measure/convert_records.py FILE...                  in place
    python3 plots/measure/convert_records.py FILE... --append-to NEW  leaves FILE as it is

Lines of today's format stay as they are. Records that follow each other and differ only in matrix,
precision and kernel become one run.
"""

import argparse
import json
import re
import sys
from pathlib import Path

from record_format import BYTES, append, write_whole

RUN = ("backend", "device", "processor", "driver", "cuda", "cusparse", "compiler", "commit", "command")
DERIVED = ("gflops", "paper_bytes", "seed", "best_step_ms", "efficiency", "busy_deviation_ms")
FLOOR = ("copy_gb_per_s", "floor_warm_ms", "floor_cold_ms")
HOST_KERNELS = ("csr_sequential", "coo_sequential", "csr_openmp", "eigen_csr")


def seven_digits(value):
    """As the program writes numbers; whole ones become integers."""
    return int(value) if value == int(value) else float(f"{value:.7g}")


def rounded(value):
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    if isinstance(value, list):
        return [rounded(v) for v in value]
    return seven_digits(value) if isinstance(value, float) else value


def quartiles(times):
    return [times[k] for k in ("lower", "median", "upper", "samples")]


def is_old(line):
    return "kernel" in line and isinstance(line.get("matrix"), dict) and "name" in line["matrix"]


def convert(lines):
    """New lines, as text, from parsed lines of either format."""
    # The runs first: a host's kernels name the processor, the others the GPU.
    runs, of_line = [], []
    for line in lines:
        if not is_old(line):
            of_line.append(None)
            continue
        host = line["kernel"] in HOST_KERNELS and line["backend"] == "cuda"
        command = line["command"]
        if len(re.findall(r" -m ", command)) == 1:
            command = re.sub(r" -m \S+ -p \S+", " -m {matrix} -p {precision}", command)
        facts = {k: line[k] for k in ("backend", "compiler", "commit")} | {"command": command}
        facts |= ({"processor": line["device"]} if host else
                  {k: line[k] for k in ("device", "driver", "cuda", "cusparse") if k in line})
        if not runs or any(runs[-1].get(k, v) != v for k, v in facts.items()):
            runs.append({"id": line["time"]})
        runs[-1].update(facts)
        of_line.append(runs[-1])
    taken = set()
    for run in runs:
        # Ids have milliseconds; times had none.
        number = next(n for n in range(1000) if f"{run['id'][:-1]}.{n:03}Z" not in taken)
        run["id"] = f"{run['id'][:-1]}.{number:03}Z"
        taken.add(run["id"])
        run.setdefault("device", run.get("processor"))

    out, described, floors = [], set(), set()

    def describe(kind, **description):
        text = json.dumps({kind: description}, separators=(",", ":"), ensure_ascii=False)
        if text not in described:
            described.add(text)
            out.append(text)

    for line, run in zip(lines, of_line):
        if run is None:
            out.append(json.dumps(line, separators=(",", ":"), ensure_ascii=False))
            continue
        matrix = line["matrix"]
        describe("run", id=run["id"], **{k: run[k] for k in RUN if k in run})
        describe("matrix", run=run["id"], **matrix)
        host = {"host": True} if line["kernel"] in HOST_KERNELS else {}
        describe("kernel", run=run["id"], name=line["kernel"], step=line["step"], format=line["format"], **host)
        new = {"run": run["id"]}
        if line.get("program"):
            new["program"] = line["program"]
        new |= {"matrix": matrix["name"], "precision": line["precision"], "kernel": line["kernel"]}
        if line["choice"]:
            new["choice"] = line["choice"]
        new["verified"] = line["verified"]
        handled = {*RUN, *DERIVED, *FLOOR, *new, "program", "step", "format", "choice", "time"}
        for name, value in line.items():
            if name in handled or (name, value) in (("alpha", 1), ("beta", 0)):
                continue
            if name == "difference" and not value["rows"]:
                continue
            if name in ("warm_ms", "cold_ms"):
                value = quartiles(value)
            elif name in ("step_ms", "single_step_ms") and isinstance(value, dict):
                value = {drive: quartiles(times) for drive, times in value.items()}
            new[name] = value
        if "paper_bytes" in line:
            x = BYTES[line["precision"]] * (matrix["nnz"] - matrix["cols"])
            assert line["paper_bytes"] == line["compulsory_bytes"] + x, line
        out.append(json.dumps(rounded(new), separators=(",", ":"), ensure_ascii=False))
        if "floor_warm_ms" in line:
            floor = {"run": run["id"], "matrix": matrix["name"], "precision": line["precision"], "kernel": "floor",
                     "verified": True, "warm_ms": quartiles(line["floor_warm_ms"]),
                     "cold_ms": quartiles(line["floor_cold_ms"]), "copy_gb_per_s": line["copy_gb_per_s"]}
            text = json.dumps(rounded(floor), separators=(",", ":"))
            if text not in floors:
                floors.add(text)
                out.append(text)
    return out


def converted(file):
    lines = []
    for number, text in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        try:
            lines.append(json.loads(text))
        except ValueError as error:
            sys.exit(f"error: {file}, line {number}: no JSON: {error}")
    return convert(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--append-to", type=Path, metavar="NEW", help="a file of today's format, or one that is not there")
    arguments = parser.parse_args()
    for file in arguments.files:
        lines = converted(file)
        if arguments.append_to:
            append(arguments.append_to, lines)
        else:
            write_whole(file, "".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    main()
