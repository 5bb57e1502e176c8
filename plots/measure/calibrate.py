#!/usr/bin/env python3
"""How near do stand-ins come to real matrices of their kind? Measures, and writes CALIBRATION.md.

    make calibrate FILES=directory             counts, on the CPU backend
    make calibrate FILES=directory BACKEND=cuda      times of eight kernels, on a GPU
    python3 plots/measure/calibrate.py                 only the table, from the records that there are

For every file of calibration.csv that the directory has, the file and its stand-in are looked at and multiplied.
Records: results/calibration.jsonl, one line per file, precision and backend; a new one replaces the old.
"""

import argparse
import functools
import json
import re
import tempfile
from pathlib import Path
from statistics import median, quantiles

from measure import output_of
from published import rows_in
from record_format import jsonl, records_in, write_whole
from records import RESULTS, milliseconds, number
from tables import DASH, Table

HERE = Path(__file__).resolve().parent
RECORDS = RESULTS / "calibration.jsonl"
TABLE = HERE.parent / "CALIBRATION.md"
COUNTED = ["csr_vector", "pcsr_one_pass"]
TIMED = [
    "csr_scalar",
    "csr_vector",
    "atomic_coo_warp",
    "segscan_shuffle",
    "pcsr_texture",
    "pcsr_one_pass",
    "lightspmv_warp",
    "cusparse_csr_alg2_pre",
]
FORMATS = [
    "ell",
    "sell",
    "dia",
    "cds",
]  # and BSR, which cuSPARSE has: `info` knows if it would take it


def listed():
    return rows_in(HERE / "calibration.csv")


def sectors_of_x(record):
    """Sectors per request of x."""
    of_x = [t for t in record["traffic"] if t["array"] == "x" and t["space"] == "global"]
    return sum(t["sectors"] for t in of_x) / max(sum(t["requests"] for t in of_x), 1)


class Program:
    def __init__(self, spmv):
        self.spmv = spmv
        self.gpu = output_of(
            [spmv, "-m", "diagonal:2", "-k", "csr_scalar", "--verify-only"]
        ).startswith("backend: cuda")

    def looks(self, matrix):
        info = json.loads(output_of([self.spmv, "--complex", "real", "info", "--json", matrix]))
        keys = [
            "min_row",
            "max_row",
            "mean_row",
            "stddev_row",
            "empty_rows",
            "bandwidth",
            "diagonals",
            "block",
        ]
        return {
            "rows": info["matrix"]["rows"],
            "nnz": info["matrix"]["nnz"],
            **{k: info[k] for k in keys},
        }

    def accepted(self, matrix):
        out = output_of(
            [self.spmv, "-m", matrix, "--complex", "real", "-k", ",".join(FORMATS), "--verify-only"]
        )
        refused = re.findall(r"^(\S+) does not suit this matrix", out, re.MULTILINE)
        return [f for f in FORMATS if f not in refused]

    def records(self, matrices, precision, kernels):
        """Of each matrix, in their order."""
        named, found = [word for matrix in matrices for word in ("-m", matrix)], {}
        with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
            output_of(
                [
                    self.spmv,
                    *named,
                    "--complex",
                    "real",
                    "-p",
                    precision,
                    "-k",
                    ",".join(kernels),
                    "--json",
                    file.name,
                ]
            )
            for r in (r for r in records_in(file.name) if r["kernel"] in kernels):
                found.setdefault(r["matrix"], []).append(r)
        return list(found.values())

    def times(self, matrices, precision):
        return [
            {"warm_ms": {r["kernel"]: milliseconds(r) for r in of}, "device": of[0]["device"]}
            for of in self.records(matrices, precision, TIMED)
        ]

    def counts(self, matrix, precision):
        (of,) = self.records([matrix], precision, COUNTED)
        looks = {"sectors": {r["kernel"]: sectors_of_x(r) for r in of}}
        if precision == "f64":
            looks.update(self.looks(matrix), accepted=self.accepted(matrix))
        return looks


def read():
    lines = (
        map(json.loads, RECORDS.read_text(encoding="utf-8").splitlines())
        if RECORDS.exists()
        else []
    )
    return {(r["file"], r["precision"], r["backend"]): r for r in lines}


def measure_all(arguments, records):
    program = Program(arguments.spmv)
    backend = "cuda" if program.gpu else "cpu"
    for row in listed():
        found = [
            p
            for p in (Path(arguments.files) / f"{row['file']}{end}" for end in (".mtx.gz", ".mtx"))
            if p.exists()
        ]
        if not found:
            continue
        file, stand_in = str(found[0]), row["stand_in"]
        for precision in ("f64", "f32"):
            if program.gpu:
                real, made = program.times([file, stand_in], precision)
            else:
                real, made = program.counts(file, precision), program.counts(stand_in, precision)
            records[row["file"], precision, backend] = {
                "file": row["file"],
                "precision": precision,
                "backend": backend,
                "stand_in": stand_in,
                "real": real,
                "made": made,
            }
        write_whole(RECORDS, jsonl(records[key] for key in sorted(records)))
        print(f"{row['file']}: {stand_in}", flush=True)


# --- The table ------------------------------------------------------------------------------------


def off(real, made):
    """made over real, as a signed percentage."""
    return 100 * (made / real - 1) if real else 0.0


def percent(value):
    return f"{value:+.0f}%"


def sector_errors(records, file):
    return [
        off(r["real"]["sectors"][k], r["made"]["sectors"][k])
        for p in ("f64", "f32")
        if (r := records.get((file, p, "cpu")))
        for k in COUNTED
    ]


def reached(records):
    """{recipe: (files, errors in percent)} of the files that it was not fitted on. What has a structure of its own is left out."""
    found = {}
    for row in listed():
        if ":" not in row["kind"]:
            files, of = found.get(row["kind"], (0, []))
            errors = sector_errors(records, row["file"]) if row["half"] == "judge" else []
            found[row["kind"]] = files + bool(errors), of + errors
    return dict(sorted(found.items()))


def reach(kinds, has_ranges):
    """Sentences for figures that show stand-ins of these kinds; whether with broad bars."""
    known, kinds = reached(read()), sorted(kind for kind in kinds if ":" not in kind)
    of = {kind: known[kind][1] for kind in kinds if kind in known}
    unknown = [kind for kind, errors in of.items() if not errors]
    text = (
        "Stand-ins gather x by fewer or more sectors than the real files: "
        + ", ".join(
            f"{kind} {min(errors):+.0f} to {max(errors):+.0f}%"
            for kind, errors in of.items()
            if errors
        )
        + f"; not known of {', '.join(unknown)}" * bool(unknown)
        + " (of files that no recipe was fitted on; CALIBRATION.md)."
    )
    devices = sorted(
        {r["made"]["device"] for (*_, backend), r in read().items() if backend == "cuda"}
    )
    return text + has_ranges * (
        " Broad bars: where the real file's value would be, if it differed as those of 90% of the timed pairs of its kind"
        f" do on {' and '.join(devices)}; no bar: no such pair was timed."
    )


@functools.lru_cache
def time_ratios(kind, of_ratios=False):
    """5th and 95th percentile of a stand-in's time over the real file's, over files of that kind, kernels and precisions, or of
    the ratio of two kernels' times over the real file's; None where no times are known."""
    records = read()
    timed = [
        of for row in listed() if row["kind"] == kind for of in time_factors(records, row["file"])
    ]
    found = (
        [a / b for of in timed for a in of for b in of if a is not b]
        if of_ratios
        else sum(timed, [])
    )
    percentiles = quantiles(found, n=20, method="inclusive") if len(found) > 1 else []
    return (percentiles[0], percentiles[-1]) if percentiles else None


def ratios_of(kind):
    ratios, records = time_ratios(kind), read()
    files = sum(bool(time_errors(records, row["file"])) for row in listed() if row["kind"] == kind)
    return (
        f"{ratios[0]:.2f} to {ratios[1]:.2f} (of {files} file{'s' * (files > 1)})"
        if ratios
        else "not measured yet"
    )


def time_factors(records, file):
    """Per precision, the time of each kernel on the stand-in over that on the file. Of the stand-in that was counted: times of one
    that was made in another way do not count."""
    pairs = [
        [records.get((file, p, backend)) for backend in ("cuda", "cpu")] for p in ("f64", "f32")
    ]
    timed = [
        (r["made"]["warm_ms"], r["real"]["warm_ms"])
        for r, counted in pairs
        if r and counted and r["stand_in"] == counted["stand_in"]
    ]
    return [[made[k] / real[k] for k in TIMED if k in real and k in made] for made, real in timed]


def time_errors(records, file):
    return [off(1, factor) for of in time_factors(records, file) for factor in of]


def formats(looks):
    return set(looks["accepted"]) | ({"bsr"} if looks["block"] else set())


def looks_of(records, file):
    """What was counted of a file and of its stand-in, in double precision."""
    record = records[file, "f64", "cpu"]
    return record["real"], record["made"]


def counted_of(records, half):
    """The rows of listed() of that half of the files, of which something was counted."""
    return [
        row for row in listed() if row["half"] == half and (row["file"], "f64", "cpu") in records
    ]


def errors_of(records, half):
    """{file: errors of sectors, in percent} of that half of the files."""
    return {row["file"]: sector_errors(records, row["file"]) for row in counted_of(records, half)}


def off_in_all(errors):
    """Median and greatest of errors, without their signs."""
    return f"{median(map(abs, errors)):.0f}%", f"{max(map(abs, errors)):.0f}%"


def summary(records, half):
    errors = errors_of(records, half)
    if not errors:
        return None
    looks = [[formats(of) for of in looks_of(records, name)] for name in errors]
    times = [found for name in errors if (found := time_errors(records, name))]
    return [
        half,
        str(len(errors)),
        *off_in_all(sum(errors.values(), [])),
        f"{sum(max(map(abs, found)) <= 20 for found in errors.values())}",
        f"{sum(real == made for real, made in looks)}",
        f"{sum('dia' in real ^ made for real, made in looks)}",
        f"{' / '.join(off_in_all(sum(times, [])))} (of {len(times)})"
        if times
        else "not measured yet",
    ]


def what_follows(records):
    """Sentences on the files that no recipe was fitted to, and on the worst of them."""
    errors = errors_of(records, "judge")
    if not errors:
        return []
    middle, most = off_in_all(sum(errors.values(), []))
    worst = max(errors, key=lambda name: max(map(abs, errors[name])))
    real, made = looks_of(records, worst)
    timed, timed_to_judge = (
        sum(bool(time_errors(records, name)) for name in names)
        for names in ([row["file"] for row in listed()], errors)
    )
    return [
        f"**What follows.** On files that no recipe was fitted to, half of the counts are off by more than {middle}, those of one file by up to {most}. A stand-in",
        f"stands for a kind of matrix, not for a file. Times differ less, but only {timed} of {len(listed())} files were timed, {timed_to_judge} of this half.",
        "",
        f"**The worst pair** is `{worst}` and its stand-in. Both have {real['rows']:,} rows, about {round(real['nnz'], -3):,} nonzeros and a longest row of {real['max_row']:,}.",
        f"But the file's nonzeros lie on {real['diagonals']:,} diagonals, none farther than {real['bandwidth']:,} from the main one; its stand-in's on {made['diagonals']:,}, up to",
        f"{made['bandwidth']:,} away, and its sectors per request of x are off by {percent(min(errors[worst], key=abs))} to {percent(max(errors[worst], key=abs))}. A recipe",
        "that knew the bandwidth would not scatter so. A matrix is more than its numbers.",
        "",
    ]


def table(head, rows):
    return Table("", head, rows).markdown().rstrip()


def page(records):
    rows = [s for half in ("fit", "judge") if (s := summary(records, half))]
    parts = [
        "# How near do stand-ins come to real matrices?",
        "",
        "A *stand-in* is a generated matrix in the place of a file that is not here. How near does it come? For the files below we have both: each file and its",
        "stand-in were multiplied, and two things compared. One is the sectors per request of x, counted on the CPU backend for `csr_vector` and `pcsr_one_pass` in both",
        "precisions. The other is the times of eight kernels, where a GPU measured both. *Off by +20%* means that the stand-in has 20% more.",
        "",
        *what_follows(records),
        "Recipes were fitted to one half of the files and are judged by the other:",
        "",
        table(
            [
                "half",
                "files",
                "sectors off, median",
                "worst",
                "files with all counts within 20%",
                "same formats accept",
                "DIA accepts only one of the two",
                "times off, median / worst",
            ],
            rows,
        ),
        "",
        "By recipe: how far sectors are off on the files that it was not fitted to, and the stand-in's time over the file's, from the 5th to the 95th percentile of the eight",
        "kernels and two precisions on the files that were timed (the broad bars of figures). Generators of a structure of its own (`kkt`, `lattice`) are no recipes, and not in this table.",
        "",
        table(
            [
                "recipe",
                "files",
                "sectors off, median",
                "least",
                "greatest",
                "stand-in's time / file's",
            ],
            [
                [
                    kind,
                    str(files),
                    *(
                        [f"{median(map(abs, of)):.0f}%", percent(min(of)), percent(max(of))]
                        if of
                        else [DASH] * 3
                    ),
                    ratios_of(kind),
                ]
                for kind, (files, of) in reached(records).items()
            ],
        ),
        "",
        "**What a stand-in knows** of its file: rows, columns, nonzeros and longest row, and the spread of row lengths where the catalogue has it for most matrices of the",
        "kind. Elsewhere recipes of meshes take a third of the difference between the longest row and the mean as standard deviation.",
        "",
        "`make calibrate FILES=directory` writes this page; [calibration.csv](measure/calibration.csv) lists the files, their stand-ins, and the rule by which halves were",
        "chosen. Times of a stand-in that is made in another way now are left out; `make calibrate FILES=directory BACKEND=cuda` measures them.",
        "",
    ]
    for half in ("fit", "judge"):
        lines = []
        for r in counted_of(records, half):
            real, made = looks_of(records, r["file"])
            differ = sorted(formats(real) ^ formats(made))
            times = time_errors(records, r["file"])
            lines.append(
                [
                    r["file"],
                    r["kind"].split(":")[0],
                    " / ".join(
                        f"{number(looks['stddev_row'])}, {looks['max_row']:,}"
                        for looks in (real, made)
                    ),
                    f"{real['diagonals']:,} / {made['diagonals']:,}",
                    f"{real['bandwidth']:,} / {made['bandwidth']:,}",
                    ", ".join(percent(e) for e in sector_errors(records, r["file"])),
                    ", ".join(
                        f"{f} {'real' if f in formats(real) else 'stand-in'} only" for f in differ
                    )
                    or "same",
                    f"{median(map(abs, times)):.0f}% / {max(map(abs, times)):.0f}%"
                    if times
                    else DASH,
                ]
            )
        parts += [
            f"<details><summary>The files that recipes were {'fitted to' if half == 'fit' else 'judged by'}</summary>",
            "",
            "Where a cell has two sides, the file's is left of `/`, its stand-in's right of it. Sectors: of `csr_vector` and `pcsr_one_pass` in f64, then in f32.",
            "",
            table(
                [
                    "file",
                    "kind",
                    "rows: stddev, longest",
                    "diagonals",
                    "bandwidth",
                    "sectors off",
                    "formats accept",
                    "times off, median / worst",
                ],
                lines,
            ),
            "</details>",
            "",
        ]
    return "\n".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--spmv", help="the program")
    parser.add_argument("--files", help="directory of the real matrices")
    arguments = parser.parse_args()
    records = read()
    if arguments.files:
        if not Path(arguments.files).is_dir():
            raise SystemExit(
                f"error: {arguments.files}: no such directory; FILES=directory of .mtx or .mtx.gz files"
            )
        measure_all(arguments, records)
    write_whole(TABLE, page(records))


if __name__ == "__main__":
    main()
