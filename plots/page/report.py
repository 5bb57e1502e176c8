#!/usr/bin/env python3
"""The results page: one HTML file with all measurements, figures and tables, which needs no network.

make report                               of the records of all devices in plots/results/
make report ARGS="--records mine.jsonl"   and of what `spmv --json mine.jsonl` measured
make report ARGS="--device MY_GPU --out report.html"      figures and claims of MY_GPU's records
"""

import argparse
import base64
import gzip
import json
import re
import sys
from html import escape
from pathlib import Path

import claims
import columns
import figures
import ours
import style
from kinds import KINDS, kind_of
from record_format import STATES, RecordError, column, write_whole
from records import OTHER_CODE, ROOT, Data, code_state, device_names, directory_of, has_baseline
from records import on_gpu, read
from tables import DASH, Table, cell

HERE = Path(__file__).parent
SCRIPTS = ["records.js", "charts.js", "page.js"]
TIMES = [column(state, end) for state in STATES for end in ("lower", "median", "upper")]
# Fields of a row: words, and numbers.
WORDS = columns.names(on_page=columns.WORD)
EXACT = columns.names(on_page=columns.EXACT)
NUMBERS = [*EXACT, *TIMES, *columns.names(on_page=columns.NUMBER)]
RUN = ["device", "driver", "cuda", "cusparse", "compiler", "commit", "command", "time"]
LOOKS = """min_row max_row mean_row stddev_row empty_rows diagonals bandwidth row_lengths sketch
    moved""".split()


# --- What the page's scripts read -------------------------------------------------------------------


def rounded(value, digits=4):
    """A number in as few characters as hold its digits; None where there is none."""
    if value is None:
        return None
    value = float(f"{value:.{digits}g}")
    return int(value) if value == int(value) else value


def packed_column(name, rows):
    """A column of rows: each word once, or numbers."""
    if name in WORDS:
        words = {}
        at = [words.setdefault(str(row.get(name, "")), len(words)) for row in rows]
        return {"name": name, "words": list(words), "at": at}
    if name in EXACT:
        return {"name": name, "values": [int(row[name]) for row in rows]}
    return {"name": name, "values": [rounded(row.get(name)) for row in rows]}


def looks(data, record):
    """What is known of the matrix of a record: none of it where it was another matrix of that
    name."""
    info = data.shapes.get(record["matrix"], {})
    same = info.get("matrix", {})
    if (same.get("source"), same.get("nnz")) != (record["source"], record["nnz"]):
        return {}
    found = {name: info[name] for name in LOOKS if name in info}
    return {k: rounded(v) if isinstance(v, float) else v for k, v in found.items()}


def measurements(every):
    """All rows of the devices, as columns, with what belongs to runs, matrices and kernels once."""
    rows = [row for data in every for row in data.times.values()]
    matrices, kernels, runs = {}, {}, {}
    for data in every:
        for row in data.times.values():
            kernels[row["kernel"]] = {"step": row["step"], "format": row["format"]}
            of = {name: row[name] for name in RUN if name in row}
            runs[row["run"] + row["device"]] = {"id": row["run"], **of}
        for name, record in data.matrices.items():
            of = {"kind": kind_of(record), "detail": record.get("detail", "")}
            if ours.group_of(data, name) == ours.PAPERS_OWN:
                of["papers"] = True
            matrices[name] = {**of, **looks(data, record)}
    keys = [(row["run"] + row["device"], code_state(row) or "") for row in rows]
    rows = [{**row, "run": run, "code": code} for row, (run, code) in zip(rows, keys)]
    named = [packed_column(name, rows) for name in [*WORDS, *NUMBERS]]
    return {
        "columns": named,
        "heads": {c.name: c.head for c in columns.COLUMNS if c.head},
        "matrices": matrices,
        "kernels": kernels,
        "runs": runs,
        "kinds": KINDS,
        "steps": ours.STEPS,
    }


def packed(payload):
    """JSON, compressed, in letters: the page unpacks it."""
    text = json.dumps(payload, separators=(",", ":"), ensure_ascii=False).encode()
    return base64.b64encode(gzip.compress(text, mtime=0)).decode()


# --- What is drawn here -----------------------------------------------------------------------------


def image(figure, caption):
    """The figure as a picture in the page, with a text for who cannot see it."""
    data = base64.b64encode(style.webp(figure)).decode()
    width, height = (round(100 * size) for size in figure.get_size_inches())
    message = " ".join(figure._suptitle.get_text().split())
    text = escape(f"{caption} {message}.", quote=True)
    size = f"loading=lazy width={width} height={height}"
    return f'<img {size} alt="{text}" src="data:image/webp;base64,{data}">'


def machine(data):
    """What measured: {property: value}."""
    records = [r for r in data.times.values() if on_gpu(r)]

    def all_of(field):
        return ", ".join(sorted({str(r[field]) for r in records if field in r})) or DASH

    days = sorted(r["time"][:10] for r in records if "time" in r)
    copy = max((r["copy_gb_per_s"] for r in records if "copy_gb_per_s" in r), default=None)
    host = sorted({r["device"] for r in data.times.values() if not on_gpu(r)})
    return {
        "device": all_of("device"),
        "host": ", ".join(host) or DASH,
        "driver": all_of("driver"),
        "CUDA": all_of("cuda"),
        "cuSPARSE": all_of("cusparse"),
        "compiler": all_of("compiler"),
        "commits": all_of("commit"),
        "measured": f"{days[0]} to {days[-1]}" if days else DASH,
        "bandwidth of a copy, GB/s": cell(copy),
        "measurements": f"{len(records):,}",
        "of another build's machine code": f"{sum(code_state(r) == OTHER_CODE for r in records):,}",
        "matrices": f"{len({r['matrix'] for r in records}):,}",
        "kernels": f"{len({r['kernel'] for r in records}):,}",
    }


def machines(every):
    columns = [machine(data) for data in every]
    rows = [[name, *(of[name] for of in columns)] for name in columns[0]]
    heads = ["property", *(data.device for data in every)]
    return Table("Machines", heads, rows, words=1 + len(every))


def claims_summary(rows, every):
    """Per paper how many claims hold, each on the first device that measured it."""
    papers = {}
    for paper, _, _, found, *_ in rows:
        papers.setdefault(paper, []).append(claims.first_measured(every, found)[1].verdict)
    lines = []
    for paper, verdicts in papers.items():
        marks = []
        for told in (claims.HOLDS, claims.WEAKER, claims.FELL, claims.UNJUDGED, ""):
            if count := verdicts.count(told):
                word = "hold" if told == claims.HOLDS and count > 1 else told or "not measured"
                marks.append(verdict(told, f"{count} {word}"))
        head = f'<th scope=row><a href="#claims">{escape(paper)}</a></th>'
        lines.append(f"<tr>{head}<td>{' '.join(marks)}</td></tr>")
    where = every[0].device
    if every[1:]:
        others = " or ".join(data.device for data in every[1:])
        where += f"; what it has no records of, on {others}"
    heads = "<th scope=col>paper</th><th scope=col>its claims, here</th>"
    head = f"<thead class=unseen><tr>{heads}</tr></thead>"
    table = f"<table class=papers>{head}<tbody>{''.join(lines)}</tbody></table>"
    return f"{table}<p class=note>On {escape(where)}.</p>"


def verdict(told, text):
    return f'<span class="verdict {told or "none"}">{text}</span>'


def claims_section(rows, devices):
    """Of each claim a row of numbers and, below it, across the table, why they moved."""
    lines, last, width = [], "", 2 + len(devices)
    for paper, claim, theirs, found, figure, why in rows:
        if paper != last:
            lines.append(f"<tr><th colspan={width} scope=rowgroup>{escape(paper)}</th></tr>")
        last = paper
        chart = f'<a href="#figure-{figure}" aria-label="chart of {escape(claim)}">chart</a>'
        cells = [f"{escape(claim)} ({chart})", escape(theirs)]
        cells += [verdict(of.verdict, of.told) + escape(of.text) for of in found]
        lines.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
        if why:
            lines.append(f"<tr class=why><td colspan={width}>{escape(why)}</td></tr>")
    heads = ["claim, and why it moved", "there", *(f"here: {device}" for device in devices)]
    head = "".join(f"<th scope=col>{escape(h)}</th>" for h in heads)
    table = (
        f"<table class=claims><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    )
    region = "class='wide' tabindex=0 role=region aria-label='The papers&#39; claims'"
    note = f"{escape(claims.RULES)} Warm times; averages are arithmetic means, as the papers' are."
    return f"<div {region}>{table}</div><p class=note>{note}</p>"


def paper_section(title, module, data):
    parts = [f"<h3>{escape(title)}</h3>"]
    for name in module.FIGURES:
        figure, notes = figures.draw(name, data)
        note, caption = escape(" ".join(notes)), figures.about(name)
        if figure is None:
            parts.append(f'<p class=note id="figure-{name}">{escape(name)}: {note}</p>')
            continue
        inside = f"{image(figure, caption)}<figcaption>{escape(caption)}</figcaption>"
        parts.append(f'<figure id="figure-{name}">{inside}</figure>')
        parts.append(f"<p class=note>{note} Again: <code>make figures ARGS={name}</code></p>")
    for table in (make(data) for make in module.TABLES.values()):
        summary = f"<summary>Table: {escape(table.title)}</summary>"
        parts.append(f"<details>{summary}\n{table.html()}</details>")
    return "\n".join(parts)


def page(data, others=()):
    """The page, with figures and claims of `data`, and measurements of `others` too."""
    every = [data, *others]
    rows = list(claims.judged(every))
    payload, count = measurements(every), sum(on_gpu(r) for d in every for r in d.times.values())
    sizes = [f"{len(payload[what])} {what}" for what in ("kernels", "matrices")]
    summary = f"{count:,} measurements, {', '.join(sizes)}; {', '.join(d.device for d in every)}"
    sections = [paper_section(*of, data) for of in figures.MODULES.items()]
    parts = {
        "style": (HERE / "page.css").read_text(encoding="utf-8"),
        "summary": escape(summary),
        "claims_summary": claims_summary(rows, every),
        "claims": claims_section(rows, [data.device for data in every]),
        "machine": machines(every).html(),
        "papers": "\n".join(sections),
        "data": packed(payload),
        "script": "".join((HERE / name).read_text(encoding="utf-8") for name in SCRIPTS),
    }
    template = (HERE / "page.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], template)


def own(file):
    """The measurements of a file of records, of a device with the file's name beside its own."""
    data = Data(file.stem, files=[file])
    if not any("warm_ms" in row for row in data.times.values()):
        raise RecordError(
            f"{file}: no times of products with those of a row-free baseline, which old files lack: "
            "make run BACKEND=cuda ARGS='--json FILE' writes both"
        )
    if without := sum(not has_baseline(row) for row in read([file])):
        what = f"{without:,} measurements without a row-free baseline"
        print(f"{file}: {what} are left out", file=sys.stderr)
    for row in data.times.values():
        row["device"] += f" ({file.name})"
    return data


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    about = "a directory of plots/results, whose figures and claims the page shows"
    parser.add_argument("--device", default=figures.DEVICE, help=about)
    about = {"metavar": "FILE", "help": "your own records, beside these"}
    parser.add_argument("--records", type=Path, nargs="*", default=[], **about)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "report.html")
    arguments = parser.parse_args(argv)
    others = [Data(name) for name in device_names() if name != directory_of(arguments.device).name]
    try:
        others += [own(file) for file in arguments.records]
    except (RecordError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    write_whole(arguments.out, page(Data(arguments.device), others))
    print(
        f"{arguments.out}: {arguments.out.stat().st_size / 1e6:.1f} MB; open it in a browser: xdg-open {arguments.out}\n"
        f"Over ssh: copy it (scp), or here: python3 -m http.server -d {arguments.out.parent} -b 127.0.0.1 8000\n"
        f"and there: ssh -L 8000:127.0.0.1:8000 HOST, then http://localhost:8000/{arguments.out.name}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
