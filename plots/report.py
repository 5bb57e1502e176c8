#!/usr/bin/env python3
"""One HTML file with all figures and tables, which needs no network: build/report.html.

    make report                               of the records in plots/results/NVIDIA_H200
    make report ARGS="--device MY_GPU --out report.html"
"""

import argparse
import re
import sys
from html import escape
from pathlib import Path

import claims
import figures
import ours
import style
from records import ROOT, Data, gflops, milliseconds, number, on_gpu, short
from tables import Table, cell

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>SpMV on {device}</title>
<link rel="icon" href="data:,">
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 1250px; margin: 0 auto; padding: 0 1rem 4rem; color: #222; }}
h2 {{ margin-top: 2.5rem; border-bottom: 1px solid #ccc; }}
figure {{ margin: 1rem 0 2rem; overflow-x: auto; }}
figure svg {{ max-width: 100%; height: auto; }}
figcaption, .note {{ color: #555; font-size: 13px; margin: 0.2rem 0; }}
.wide {{ overflow: auto; }}
.tall {{ max-height: 34rem; }}
table {{ border-collapse: collapse; font-size: 13px; }}
th, td {{ padding: 0.15rem 0.6rem; text-align: left; border-bottom: 1px solid #e4e4e4; }}
th {{ position: sticky; top: 0; background: #f2f2f2; cursor: pointer; user-select: none; }}
th[aria-sort=ascending]::after {{ content: " ▲"; }}
th[aria-sort=descending]::after {{ content: " ▼"; }}
.number {{ text-align: right; font-variant-numeric: tabular-nums; }}
code {{ background: #f2f2f2; padding: 0 0.2rem; }}
nav a {{ margin-right: 1rem; }}
</style>
</head>
<body>
<h1>Sparse matrix-vector products on {device}</h1>
{body}
<script>
"use strict";
// A click on a column's head sorts by it, numbers as numbers; a second click turns the order round.
function value(row, column) {{
  const text = row.cells[column].textContent.trim().replace(/,/g, "");
  const number = parseFloat(text);
  return Number.isNaN(number) ? text.toLowerCase() : number;
}}
function sort(head) {{
  const column = head.cellIndex, body = head.closest("table").tBodies[0];
  const down = head.getAttribute("aria-sort") === "ascending";
  for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const compare = (a, b) => typeof a === typeof b ? (a < b ? -1 : a > b) : typeof a === "number" ? -1 : 1;
  const rows = [...body.rows].map(row => [value(row, column), row]);
  rows.sort((a, b) => (down ? -1 : 1) * compare(a[0], b[0]));
  body.append(...rows.map(pair => pair[1]));
}}
for (const head of document.querySelectorAll("th")) {{
  head.tabIndex = 0;
  head.addEventListener("click", () => sort(head));
  head.addEventListener("keydown", event => {{ if (event.key === "Enter") sort(head); }});
}}
</script>
</body>
</html>
"""


def inline(figure, name):
    """The figure as SVG whose names cannot meet those of another on the page."""
    text = style.svg(figure)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'url\(#', f"url(#{name}-", text)
    return re.sub(r'(xlink:href|href)="#', rf'\1="#{name}-', text)


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


def measurements(data):
    """Every record of a GPU: what the figures are drawn from."""
    rows = []
    for r in data.times.values():
        if on_gpu(r):
            setup = r["setup_ms"] + r["preprocess_ms"]
            warm = [cell(1e3 * milliseconds(r, "warm", q)) for q in ("median", "lower", "upper")]
            rows.append([short(r["matrix"]), r["precision"], r["kernel"], r["choice"], cell(setup), *warm,
                         cell(1e3 * milliseconds(r, "cold")), cell(gflops(r)), r["commit"]])
    return Table("All measurements", ["matrix", "precision", "kernel", "choice", "setup ms", "warm us", "lower", "upper",
                                      "cold us", "GFLOP/s", "commit"], rows, words=4)


def section(title, parts):
    name = re.sub(r"\W+", "-", title.lower())
    return name, f'<h2 id="{name}">{escape(title)}</h2>\n' + "\n".join(parts)


def page(data):
    def repeat(command):
        return f"<p class=note>Again: <code>{escape(command)}</code></p>"

    sections = [
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
            parts.append(f"<figure>{inline(figure, name)}<figcaption>{escape(caption)}</figcaption></figure>"
                         + repeat(f"make figures ARGS={name}"))
        for make in module.TABLES.values():
            table = make(data)
            parts.append(f"<h3>{escape(table.title)}</h3>\n{table.html()}")
        sections.append(section(title, parts))
    sections.append(section("All measurements", [measurements(data).html()]))
    links = "<nav>" + "".join(f'<a href="#{name}">{escape(re.search("<h2[^>]*>(.*?)</h2>", text)[1])}</a>'
                              for name, text in sections) + "</nav>"
    return PAGE.format(device=escape(data.device), body="\n".join([links, *(text for _, text in sections)]))


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
