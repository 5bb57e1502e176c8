#!/usr/bin/env python3
"""The results page: one HTML file with all measurements, figures and tables, which needs no network.

make report                               of the records of all devices in plots/results/
make report ARGS="--records mine.jsonl"   and of what `spmv --json mine.jsonl` measured
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
from kinds import KINDS, kind_of
from record_format import STATES, RecordError, column, write_whole
from records import ROOT, Data, code_state, device_names, on_gpu

HERE = Path(__file__).parent
OUT = ROOT / "build" / "report.html"
SCRIPTS = ["records.js", "charts.js", "page.js"]
TIMES = [column(state, end) for state in STATES for end in ("lower", "median", "upper")]
# Fields of a row: words, and numbers.
WORDS = columns.names(on_page=columns.WORD)
NUMBERS = [*TIMES, *columns.names(on_page=columns.NUMBER)]
RUN = ["device", "driver", "cuda", "cusparse", "compiler", "commit", "command", "time"]
LOOKS = """min_row max_row mean_row stddev_row empty_rows diagonals bandwidth row_lengths sketch
    moved""".split()


# --- What the page's scripts read -------------------------------------------------------------------


def rounded(value):
    """Of a number that is not whole four digits, which the page compresses well."""
    return float(f"{value:.4g}") if isinstance(value, float) else value


def looks(data, record):
    """What is known of the matrix of a record: none of it where it was another matrix of that
    name."""
    info = data.shapes.get(record["matrix"], {})
    same = info.get("matrix", {})
    if (same.get("source"), same.get("nnz")) != (record["source"], record["nnz"]):
        return {}
    return {name: rounded(info[name]) for name in LOOKS if name in info}


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
    numbers = {name: [rounded(row.get(name)) for row in rows] for name in NUMBERS}
    return {
        "columns": {name: [row.get(name, "") for row in rows] for name in WORDS} | numbers,
        "words": WORDS,
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


# --- Claims, figures and tables ---------------------------------------------------------------------


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


def figure(name, caption):
    """A committed figure with its caption, which is Markdown, and a text for who cannot see it."""
    message, _, lead, *notes, again = map(escape, caption.strip().split("\n\n"))
    picture = (figures.FOLDER / f"{name}.png").read_bytes()
    width, height = (int.from_bytes(picture[at : at + 4], "big") // 2 for at in (16, 20))
    data = base64.b64encode(picture).decode()
    image = f'<img loading=lazy width={width} height={height} alt="{lead} {message[3:]}." src="data:image/png;base64,{data}">'
    again = f"Again: <code>{again.strip('`')}</code>"
    inside = f"{image}<figcaption>{lead}</figcaption>"
    return (
        f'<figure id="figure-{name}">{inside}</figure><p class=note>{" ".join(notes)} {again}</p>'
    )


def paper_section(title, module, data, captions):
    parts = [f"<h3>{escape(title)}</h3>"]
    parts += [figure(name, captions[name]) for name in module.FIGURES]
    for table in (make(data) for make in module.TABLES.values()):
        summary = f"<summary>Table: {escape(table.title)}</summary>"
        parts.append(f"<details>{summary}\n{table.html()}</details>")
    return "\n".join(parts)


def page(data, others=()):
    """The page, with tables and claims of `data`, and measurements of `others` too."""
    every = [data, *others]
    rows = list(claims.judged(every))
    payload, count = measurements(every), sum(on_gpu(r) for d in every for r in d.times.values())
    sizes = [f"{len(payload[what])} {what}" for what in ("kernels", "matrices")]
    summary = f"{count:,} measurements, {', '.join(sizes)}; {', '.join(d.device for d in every)}"
    captions = figures.captions_in((figures.FOLDER / "README.md").read_text(encoding="utf-8"))
    sections = [paper_section(*of, data, captions) for of in figures.MODULES.items()]
    parts = {
        "style": (HERE / "page.css").read_text(encoding="utf-8"),
        "summary": escape(summary),
        "claims_summary": claims_summary(rows, every),
        "claims": claims_section(rows, [data.device for data in every]),
        "papers": "\n".join(sections),
        "data": packed(payload),
        "script": "".join((HERE / name).read_text(encoding="utf-8") for name in SCRIPTS),
    }
    template = (HERE / "page.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], template)


def own(file):
    """The measurements of a file of records, of a device with the file's name beside its own."""
    data = Data(file.stem, files=[file])
    if not any(map(on_gpu, data.times.values())):
        how = "make run BACKEND=cuda ARGS='--json FILE' writes them"
        raise RecordError(f"{file}: no times of products on a GPU; {how}")
    for row in data.times.values():
        row["device"] += f" ({file.name})"
    return data


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    about = {"metavar": "FILE", "help": "your own records, beside these"}
    parser.add_argument("--records", type=Path, nargs="*", default=[], **about)
    arguments = parser.parse_args()
    others = [Data(name) for name in device_names() if name != figures.DEVICE]
    try:
        others += [own(file) for file in arguments.records]
    except (RecordError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    write_whole(OUT, page(Data(figures.DEVICE), others))
    print(
        f"{OUT}: {OUT.stat().st_size / 1e6:.1f} MB; open it in a browser: xdg-open {OUT}\n"
        f"Over ssh: copy it (scp), or here: python3 -m http.server -d {OUT.parent} -b 127.0.0.1 8000\n"
        f"and there: ssh -L 8000:127.0.0.1:8000 HOST, then http://localhost:8000/{OUT.name}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
