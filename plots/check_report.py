#!/usr/bin/env python3
"""Opens the HTML report in a headless Chromium and looks at what a reader would see.

    python3 plots/check_report.py build/report.html [--picture page.png]

Fails if its console has an error, if it asks for anything beyond itself, if a figure has no size or no text, if a
table cannot be sorted or filtered, if the address does not bring the same rows back, or if it is too large (3 MB, 20,000
elements). CHROMIUM names the browser.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# Runs after the page's own script, in a copy of the page.
LOOK = r"""<script>
const wrong = [];
for (const table of document.querySelectorAll("table:not(#all)")) {
  for (const head of [...table.querySelectorAll("th:not([scope])")].slice(0, 4)) {
    const column = head.cellIndex, turn = head.querySelector("button");
    turn.click();
    const values = [...table.tBodies[0].rows].map(row => parseFloat(row.cells[column].textContent.replace(/,/g, "")));
    const numbers = values.filter(value => !Number.isNaN(value));
    if (head.getAttribute("aria-sort") !== "ascending") wrong.push("no mark on " + head.textContent);
    if (numbers.some((value, i) => i && value < numbers[i - 1])) wrong.push("unsorted: " + head.textContent);
    turn.click();
    const back = parseFloat(table.tBodies[0].rows[0].cells[column].textContent.replace(/,/g, ""));
    if (numbers.length === values.length && back < Math.max(...numbers)) wrong.push("not turned round: " + head.textContent);
  }
}
const figures = document.querySelectorAll("figure img");
for (const image of figures) {
  if (image.width < 100 || image.height < 50) wrong.push("a figure of " + image.width + " x " + image.height);
  if (image.alt.length < 20) wrong.push("a figure without text");
}
for (const link of document.querySelectorAll("nav a")) {
  if (!document.getElementById(link.hash.slice(1))) wrong.push("nothing at " + link.hash);
}
// The table of measurements, as a reader uses it.
function type(name, text) { $(name).value = text; $(name).dispatchEvent(new Event("input")); }
let slowest = 0;
function timed(what) { const start = performance.now(); what(); slowest = Math.max(slowest, performance.now() - start); }
if (count) {
  if (shown.length !== count) wrong.push("rows are missing before anything is asked");
  const kernel = column.kernel.words[0];
  timed(() => type("kernel", kernel.slice(0, -1) + "*"));
  if (!shown.length || !shown.every(row => column.kernel.get(row).startsWith(kernel.slice(0, -1)))) wrong.push("a filter that does not");
  if (!location.hash.includes("kernel=")) wrong.push("a filter that the address lacks");
  const kept = [location.hash, shown.length];
  timed(() => type("kernel", ""));
  for (const name of ["matrix", "warm us"]) {
    const turn = [...document.querySelectorAll("#heads button")].find(each => each.textContent === name);
    timed(() => turn.click());
    const values = shown.map(row => column[name].get(row));
    if (values.some((value, at) => at && value < values[at - 1])) wrong.push("measurements are not sorted by " + name);
    timed(() => turn.click());
    if (column[name].get(shown[0]) < column[name].get(shown[shown.length - 1])) wrong.push("nor turned round");
  }
  const lines = csv().trim().split("\n");
  if (lines.length !== count + 1 || JSON.parse(json()).length !== count) wrong.push("the selection is not all of it");
  history.replaceState(null, "", kept[0]);
  restore(); filter();
  if (shown.length !== kept[1]) wrong.push("the address does not bring the rows back");
  $("window").scrollTop = 1e7; draw();
  const last = [...$("rows").rows].at(-2);
  if (last.cells[0].textContent !== column.matrix.get(shown.at(-1))) wrong.push("the last row is not the last");
  if (!$("choice").rows.length || !$("choice-note").textContent) wrong.push("no kernel is proposed");
  const totals = [...$("choice").rows].map(row => parseFloat(row.cells[4].textContent));
  if (totals.some((value, at) => at && value < totals[at - 1])) wrong.push("the kernels proposed are not in order");
}
const elements = document.querySelectorAll("*").length;
if (elements > 20000) wrong.push(elements + " elements");
const asked = performance.getEntriesByType("resource").filter(entry => !entry.name.startsWith("data:"));
if (asked.length) wrong.push("asks for " + asked[0].name);
document.body.dataset.seen = document.querySelectorAll("table").length + " tables, " + figures.length +
  " figures, " + count + " measurements, " + elements + " elements; slowest filter or sort " + slowest.toFixed(0) + " ms";
document.body.dataset.wrong = wrong.join("; ") || "nothing";
</script></body>"""


def browser():
    names = [os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"]
    return next((path for name in names if name and (path := shutil.which(name))), None)


def open_page(program, page, *words):
    with tempfile.TemporaryDirectory() as profile:
        command = [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                   "--disable-background-networking", "--disable-component-update", f"--user-data-dir={profile}",
                   "--enable-logging=stderr", "--host-resolver-rules=MAP * ~NOTFOUND", "--window-size=1300,1600",
                   *words, page.resolve().as_uri()]
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)


def check(program, path):
    """What is wrong with a page, as lines, and what was seen of it."""
    text = path.read_text(encoding="utf-8")
    wrong = [f"{len(text) / 1e6:.1f} MB, more than 3"] if len(text) > 3e6 else []
    wrong += [f"refers to {link}" for link in re.findall(r'<[^>]* (?:src|href)="((?!#|data:)[^"]*)"', text)]
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "page.html"
        copy.write_text(text.replace("</body>", LOOK), encoding="utf-8")
        done = open_page(program, copy, "--dump-dom")
    # [pid:...:INFO:CONSOLE(3)] "message", source: file:... (3)
    wrong += re.findall(r'CONSOLE[^\]]*\] (".*)', done.stderr)
    seen = re.search(r'data-seen="([^"]*)"', done.stdout)
    told = re.search(r'data-wrong="([^"]*)"', done.stdout)
    if not told:
        wrong.append(f"the page's script did not end: {done.stderr.strip()[-300:]}")
    elif told[1] != "nothing":
        wrong += told[1].split("; ")
    return wrong, seen[1] if seen else "nothing"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("page", type=Path)
    parser.add_argument("--picture", type=Path, help="also save what it looks like")
    arguments = parser.parse_args()
    program = browser()
    if program is None:
        print("error: no Chromium here: apt-get install chromium, or set CHROMIUM", file=sys.stderr)
        return 2
    if not arguments.page.exists():
        print(f"error: {arguments.page} is not there: make report", file=sys.stderr)
        return 2
    wrong, seen = check(program, arguments.page)
    if arguments.picture:
        open_page(program, arguments.page, f"--screenshot={arguments.picture.resolve()}", "--hide-scrollbars")
    for line in wrong:
        print(f"{arguments.page}: {line}", file=sys.stderr)
    print(f"{arguments.page}: {seen}; " + (f"{len(wrong)} things are wrong" if wrong else "no error in the console"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
