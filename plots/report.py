#!/usr/bin/env python3
"""One HTML file with all figures and tables, which needs no network: build/report.html.

    make report                               of the records in plots/results/NVIDIA_H200
    make report ARGS="--device MY_GPU --out report.html"
"""

import argparse
import base64
import json
import re
import sys
from html import escape
from pathlib import Path

import claims
import figures
import ours
import style
from records import ROOT, Data, gflops, milliseconds, number, on_gpu
from tables import Table, cell

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>SpMV on {device}</title>
<link rel="icon" href="data:,">
<style>
{style}</style>
</head>
<body>
<h1>Sparse matrix-vector products on {device}</h1>
{body}
<script type="application/json" id="data">{data}</script>
<script>
{script}</script>
</body>
</html>
"""
CHOOSE = """<form onsubmit="return false">
<label>matrix <select id="for"></select></label>
<label>precision <select id="in"><option>f64</option><option>f32</option></select></label>
<label>products <input id="products" type="number" min="1" value="1000"></label>
</form>
<div class=wide><table><thead><tr><th scope=col>kernel</th><th scope=col class=number>us per product</th>
<th scope=col class=number>quartiles</th><th scope=col class=number>setup ms</th><th scope=col class=number>all ms</th>
<th scope=col class=number>ahead of cuSPARSE's CSR from product</th></tr></thead><tbody id="choice"></tbody></table></div>
<p class=note id="choice-note" aria-live="polite"></p>"""
MEASUREMENTS = """<form onsubmit="return false">
<label>matrix <input id="q" type="search" placeholder="part of its name"></label>
<label>kernel <input id="kernel" placeholder="csr_*,cusparse_*"></label>
<label>precision <select id="precision"><option value="">all</option></select></label>
<label>source <select id="source"><option value="">all</option></select></label>
<input id="sort" type="hidden" value="">
<button type="button" id="csv">these as CSV</button> <button type="button" id="json">as JSON</button>
</form>
<p class=note id="count" aria-live="polite"></p>
<div id="window" tabindex="0" role="region" aria-label="All measurements"><table id="all">
<thead><tr id="heads"></tr></thead><tbody id="rows"></tbody></table></div>"""


def image(figure, notes, caption):
    """The figure as a picture in the page, with a text for who cannot see it."""
    data = base64.b64encode(style.png(figure)).decode()
    width, height = (round(100 * size) for size in figure.get_size_inches())
    text = escape(" ".join([caption, *notes]), quote=True)
    return f'<img loading=lazy width={width} height={height} alt="{text}" src="data:image/png;base64,{data}">'


def machine(data):
    """What measured: device, versions, commits, days."""
    records = [r for r in data.times.values() if on_gpu(r)]

    def all_of(field):
        return ", ".join(sorted({str(r[field]) for r in records if field in r})) or "—"

    days = sorted(r["time"][:10] for r in records if "time" in r)
    copy = max((r["copy_gb_per_s"] for r in records if "copy_gb_per_s" in r), default=None)
    host = sorted({r["device"] for r in data.times.values() if not on_gpu(r)})
    rows = [["device", all_of("device")], ["host", ", ".join(host) or "—"], ["driver", all_of("driver")], ["CUDA", all_of("cuda")],
            ["cuSPARSE", all_of("cusparse")], ["compiler", all_of("compiler")], ["commit", all_of("commit")],
            ["measured", f"{days[0]} to {days[-1]}" if days else "—"], ["bandwidth of a copy, GB/s", cell(copy)],
            ["records", str(len(records))]]
    return Table("Machine", ["what", "is"], rows, words=2)


def matrices(data):
    rows = []
    for name, m in sorted(data.matrices.items(), key=lambda item: item[1]["nnz"]):
        best = {p: min((r for r in data.of(name, p) if ours.compared(r)), key=milliseconds, default=None)
                for p in ("f32", "f64")}
        rows.append([name, m["source"], f"{m['rows']:,}", f"{m['cols']:,}", f"{m['nnz']:,}",
                     number(m["nnz"] / max(m["rows"], 1)),
                     *(text for p in ("f32", "f64") for text in (
                         (best[p]["kernel"], number(gflops(best[p]))) if best[p] else ("—", "—")))])
    return Table("Matrices", ["matrix", "source", "rows", "columns", "nonzeros", "a row", "fastest, f32", "GFLOP/s",
                              "fastest, f64", "GFLOP/s"], rows, ["Warm."], words=2)


# name -> value of a row of the DataFrame; those of words first.
WORDS = {"matrix": "matrix", "precision": "precision", "kernel": "kernel", "source": "source", "choice": "choice", "commit": "commit"}
NUMBERS = {
    "nonzeros": lambda r: r["nnz"], "setup ms": lambda r: r["setup_ms"] + r["preprocess_ms"],
    "warm us": lambda r: 1e3 * milliseconds(r), "lower": lambda r: 1e3 * milliseconds(r, "warm", "lower"),
    "upper": lambda r: 1e3 * milliseconds(r, "warm", "upper"), "cold us": lambda r: 1e3 * milliseconds(r, "cold"),
    "GFLOP/s": gflops,
}


def four_digits(value):
    return value if isinstance(value, int) else float(f"{value:.4g}")


def measurements(data):
    """All rows of a GPU as columns, for the page's script: what the figures are drawn from."""
    rows = [r for r in data.times.values() if on_gpu(r)]
    columns = []
    for name, field in WORDS.items():
        words = {}
        at = [words.setdefault(r[field], len(words)) for r in rows]
        columns.append({"name": name, "words": list(words), "at": at})
    columns += [{"name": name, "values": [four_digits(value(r)) for r in rows]} for name, value in NUMBERS.items()]
    return {"columns": columns}


def section(title, parts):
    name = re.sub(r"\W+", "-", title.lower())
    return name, f'<h2 id="{name}">{escape(title)}</h2>\n' + "\n".join(parts)


def page(data):
    def repeat(command):
        return f"<p class=note>Again: <code>{escape(command)}</code></p>"

    sections = [
        section("Which kernel for my matrix?", [CHOOSE]),
        section("Do the claims hold?", [claims.claims_table(data).html()]),
        section("Machine", [machine(data).html()]),
        section("Matrices", [matrices(data).html(), repeat("make bench SET=full")]),
    ]
    for title, module in figures.MODULES.items():
        parts = []
        for name in module.FIGURES:
            figure, notes = figures.draw(name, data)
            if figure is None:
                parts.append(f"<p class=note>{escape(name)}: {escape(' '.join(notes))}</p>")
                continue
            caption = (figures.FIGURES[name].__doc__ or name).strip().splitlines()[0]
            parts.append(f"<figure>{image(figure, notes, caption)}<figcaption>{escape(caption)}</figcaption></figure>"
                         + repeat(f"make figures ARGS={name}"))
        for make in module.TABLES.values():
            table = make(data)
            parts.append(f"<h3>{escape(table.title)}</h3>\n{table.html()}")
        sections.append(section(title, parts))
    sections.append(section("All measurements", [MEASUREMENTS]))
    links = "<nav>" + "".join(f'<a href="#{name}">{escape(re.search("<h2[^>]*>(.*?)</h2>", text)[1])}</a>'
                              for name, text in sections) + "</nav>"
    here = Path(__file__).parent
    # "<" would end the script that holds the data.
    records = json.dumps(measurements(data), separators=(",", ":")).replace("<", "\\u003c")
    return PAGE.format(device=escape(data.device), body="\n".join([links, *(text for _, text in sections)]), data=records,
                       style=(here / "report.css").read_text(), script=(here / "report.js").read_text())


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", help="a directory of plots/results")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "report.html")
    arguments = parser.parse_args(argv)
    data = Data(arguments.device or figures.default_device(arguments.results), arguments.results)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(page(data), encoding="utf-8")
    print(f"{arguments.out}: {arguments.out.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
