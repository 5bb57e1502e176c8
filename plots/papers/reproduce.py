"""The tables of plots/REPRODUCE.md: what measures each figure and the claims that it shows, how long that takes, and the last run of
`make try` on each device.

`reproduce` in measurements.toml says which sets measure what; a figure belongs to the first row
that it fits.
"""

import fnmatch

import claims
import evidence
import figures
import measure
from record_format import RecordError
from records import RESULTS, directory_of, files_in, read
from sets import declared, groups_of
from tables import DASH, Table

DEVICE = figures.DEVICE
GPUS = 4  # that the machine had


class Known(evidence.Planned):
    """The machine that the records were made on, with the kernels that they know."""

    def __init__(self, records):
        found = {r["kernel"]: r for r in records}
        fields = ("step", "format", "host")
        self.kernels = [{"name": k, **{f: r[f] for f in fields}} for k, r in found.items()]
        self.devices = GPUS
        self.known = sorted({f"{r['matrix']}.mtx.gz" for r in records if r["source"] == "file"})


def figures_of_rows():
    """The names of the figures of each row."""
    rows = declared()["reproduce"]
    found = [[] for _ in rows]
    for name in figures.FIGURES:
        for of, row in zip(found, rows):
            if any(fnmatch.fnmatchcase(name, pattern) for pattern in row.get("figures", [])):
                of.append(name)
                break
    return found


def jobs_of(sets, machine):
    """All that the sets measure on a GPU, as if nothing had records."""
    sets = [name for one in sets for name, keys in groups_of(one) if "tool" not in keys]
    if not sets:
        return []
    store = measure.Store(DEVICE, RESULTS, True, fresh=True)
    return measure.plan(measure.arguments_of([*sets, "--fresh"]), machine, store)


def rounded(seconds):
    """In minutes: whole ones up to ten, then in fives."""
    minutes = -(-seconds // 60)
    return f"{minutes:.0f}" if minutes <= 10 else f"{5 * round(minutes / 5)}"


def needs_of(row, jobs):
    names = {name for one in row["sets"] for name, _ in groups_of(one)}
    return [
        *["the real files, else stand-ins"] * any(job.matrix.startswith("data/") for job in jobs),
        *["`make data ARGS=large`"] * bool({"large_matrices", "orders"} & names),
        *["`make mkl`"] * ("host" in names),
        *row.get("needs", []),
    ]


def table():
    records = read(files_in(directory_of(DEVICE)))
    machine, lines = Known(records), []
    for row, names in zip(declared()["reproduce"], figures_of_rows()):
        shown = [f"[{name}](figures/{name}.png)" for name in names]
        said = sum(claim.figure in names for claim in claims.CLAIMS)
        jobs = jobs_of(row["sets"], machine)
        sets = " ".join(row["sets"])
        tools = {keys.get("tool") for one in row["sets"] for _, keys in groups_of(one)}
        what = ", ".join([*row.get("what", []), *shown])
        command = f"`make bench SET={repr(sets) if ' ' in sets else sets}`"
        needs = "; ".join(needs_of(row, jobs)) or "nothing else"
        minutes = rounded(evidence.expected_seconds(jobs, records)) if jobs else DASH
        gpus = max((job.gpus(GPUS) for job in jobs), default=1)
        gpus = "none" if tools == {"info"} else str(gpus)
        lines.append([what, command, needs, str(said or "none"), minutes, gpus])
    heads = ["figures, pages", "command", "needs", "claims", "minutes", "GPUs"]
    return Table("", heads, lines, words=3, dash="is what was not timed.")


def tried():
    """A line per device: what the last run of make try there came to."""
    lines = []
    for directory in sorted(path for path in RESULTS.iterdir() if path.is_dir()):
        file = directory / "try.txt"
        if not any(directory.glob("*.jsonl")) and not file.exists():
            continue
        text = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        head = dict(line.split(": ", 1) for line in text if ": " in line and line[0] != " ")
        fields = (head.get(name, DASH) for name in ("date", "commit", "driver"))
        came = f"[{text[-1]}](results/{directory.name}/try.txt)" if text else "not yet run"
        lines.append([directory.name, *fields, came])
    return Table("", ["device", "date", "commit", "driver", "what came of it"], lines, words=5)


def page(what):
    if what not in ("figures", "tried"):
        raise RecordError("a reproduce block shows figures or tried")
    return (tried() if what == "tried" else table()).markdown()
