"""For tests of make bench: plays spmv."""

import fcntl
import json
import os
import sys
import time
from pathlib import Path

SECTORS = {"global": 10, "shared": 9}
COUNTS = {"traffic": [{"space": space, "sectors": n} for space, n in SECTORS.items()]}
LINE = {"file": "f", "line": 1, "array": "x", "space": "global", "access": "load", "requests": 10}
LINE |= {"sectors": 40, "texture_requests": 0, "model_dram_sectors": 5}
KERNEL = {"kernel": "a_kernel<double>"}
PROFILE = {"kernels": [{**KERNEL, "launches": 2}], "lines": [{**KERNEL, **LINE}]}


def fake_spmv(path, **of):
    """Writes a program that plays spmv with these arguments of play()."""
    place = str(Path(__file__).parent)
    code = f"import sys; sys.path.insert(0, {place!r}); import fake_spmv; fake_spmv.play(**{of!r})"
    path.write_text(f"#!{sys.executable}\n{code}\n")
    path.chmod(0o755)
    return str(path)


def play(
    kernels,
    log,
    backend="cuda",
    devices=1,
    device="Some GPU",
    seconds=0,
    ends=None,
    said=None,
    speeds=None,
):
    """`kernels`: {name: step, 0 on the host}. `log`: where it notes what it does. `ends`: {matrix:
    why it fails, or None to hang}. `said`: {"matrix kernel": (refused or failed, why)}. `speeds`: of
    kernels, that matrices m1 to m9 take 1 to 9 us over; without them nothing is timed."""
    words, run, is_gpu = sys.argv[1:], os.environ.get("SPMV_RUN"), backend == "cuda"

    def option(name, default=""):
        return words[words.index(name) + 1] if name in words else default

    described = {"backend": backend, "device": device, "commit": "abc"}
    if "--list" in words:
        every = [{"name": name, "step": step, "host": not step} for name, step in kernels.items()]
        sys.exit(print(json.dumps(every)))
    if "--environment" in words:
        sys.exit(print(json.dumps({**described, "reason": "", "devices": devices}, indent=1)))
    if words[0] == "info":
        matrix = {"name": words[2], "nnz": 7, "source": "file", "detail": "/there/m.mtx"}
        picture = {"lines": 2, "columns": 2, "cells": [[0, 0, 3], [1, 1, 1]]}
        sys.exit(print(json.dumps({"matrix": matrix, "picture": picture})))
    file, order, precision = option("-m"), option("--order"), option("-p")
    matrix = file.rsplit("/", 1)[-1].removesuffix(".mtx.gz") + f",order={order}" * bool(order)

    def note(what):
        environment = map(os.environ.get, ("CUDA_VISIBLE_DEVICES", "OMP_WAIT_POLICY"))
        given = [of or default for of, default in zip(environment, ("all", "active"))]
        with open(log, "a") as out:
            print(what, matrix, precision, option("-k"), *given, sep="\t", file=out)

    note("prepares")
    if option("--turn"):
        turn = open(option("--turn"), "a")
        fcntl.flock(turn, fcntl.LOCK_EX)
        turn.truncate(0)
        print(os.getpid(), end="", file=turn, flush=True)
    note("measures")
    if matrix in (ends or {}):
        time.sleep(0 if ends[matrix] else 60)
        sys.exit(f"error: {ends[matrix]}")
    time.sleep(seconds)
    note("ends")
    if option("--turn"):
        turn.truncate(0)
    size = {"source": "file", "rows": 3, "cols": 3, "nnz": 7}
    lines = [{"run": {"id": run, **described, "command": os.environ["SPMV_COMMAND"]}}]
    lines.append({"matrix": {"run": run, "name": matrix, **size}})
    status, thing = 0, {"run": run, "matrix": matrix, "precision": precision}
    us = float(matrix[1]) if matrix[1:2].isdigit() else 5
    for kernel in option("-k").split(","):
        lines.append({"kernel": {"run": run, "name": kernel, "step": 3, "format": "CSR"}})
        for gpus in option("--gpus", "0").split(","):
            for exchange in option("--exchange").split(","):
                line = {**thing, "kernel": kernel}
                if gpus != "0":
                    line |= {"program": "multigpu", "gpus": int(gpus), "exchange": exchange}
                    line["partition"] = "nonzeros"
                outcome, why = (said or {}).get(f"{matrix} {kernel}", ("verified", True))
                line[outcome], status = why, max(status, outcome == "failed")
                line |= {} if is_gpu else {"compulsory_bytes": 100, **COUNTS}
                line |= PROFILE if "--profile" in words else {}
                if speeds and outcome == "verified":
                    line |= times(us / speeds[kernel], is_gpu)
                lines.append(line)
    if speeds and is_gpu:
        baseline = {**times(1, True), "kernel": "baseline", "verified": True, "copy_gb_per_s": 4000}
        lines.append({**thing, **baseline})
    with open(option("--json"), "a") as out:
        print(*(json.dumps(line, separators=(",", ":")) for line in lines), sep="\n", file=out)
    sys.exit(int(status))


def times(us, is_gpu):
    if not is_gpu:
        estimate = {"gpu": "h200", "us": us, "limit": "L2", "interval_us": [0.7 * us, 1.3 * us]}
        return {"estimates": [estimate], "setup_ms": 0.0, "preprocess_ms": 0.0}
    ms = [1e-3 * us * factor for factor in (0.99, 1, 1.01)] + [25]
    times = {"warm_ms": ms, "cold_ms": ms, "setup_ms": 0.0, "preprocess_ms": 0.0}
    return {**times, "compulsory_bytes": 100, "code": "library"}
