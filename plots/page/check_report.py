#!/usr/bin/env python3
"""Opens the results page in a headless Chromium and uses it as a reader would.

    python3 plots/page/check_report.py build/report.html

Comparisons, filters, the address, the keyboard, 800 and 400 px. CHROMIUM names the browser.
"""

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "common" / "watch"))
import browser as chromium

MOST_BYTES, MOST_ELEMENTS = 3e6, 20_000

# What the check calls in the page.
HELPERS = """
window.type = (name, value) => { $(name).value = value; $(name).dispatchEvent(new Event("input")); };
window.names = id => [...$(id).options].map(option => option.value);
"""


class Check:
    def __init__(self, browser, path):
        self.browser, self.path, self.wrong, self.seen = browser, path, [], []

    def js(self, expression):
        return self.browser.evaluate(expression)

    def expect(self, holds, what):
        if not holds:
            self.wrong.append(what)

    def equal(self, found, wanted, what):
        self.expect(found == wanted, f"{what}: {found!r}, not {wanted!r}")

    def open(self, hash="", path=None):
        self.browser.open(path or self.path, hash)
        self.js(
            "new Promise(done => { const look = () => document.body.dataset.ready ? done() : setTimeout(look, 20); look(); })"
        )
        self.js(HELPERS)

    # --- Each of them ---

    def the_file(self):
        text = self.path.read_text(encoding="utf-8")
        self.expect(len(text) <= MOST_BYTES, f"{len(text) / 1e6:.1f} MB, more than 3")
        elements = self.js("document.querySelectorAll('*').length")
        self.expect(elements <= MOST_ELEMENTS, f"{elements} elements")
        figures = self.js(
            "[...document.querySelectorAll('figure img')].map(image => [image.width, image.alt.length])"
        )
        self.expect(
            all(width >= 100 and letters >= 20 for width, letters in figures),
            "a figure without size or text",
        )
        self.seen += [
            f"{len(text) / 1e6:.1f} MB",
            f"{elements} elements",
            f"{len(figures)} figures",
            f"{self.js('data.rows.length')} measurements",
        ]

    def compare(self):
        kernels = self.js(
            "(() => { const own = new Set(data.rows.filter(row => row.device === device()).map(row => row.kernel)); return names('a_kernel').filter(name => own.has(name)).slice(0, 2); })()"
        )
        if len(kernels) < 2:
            return
        for side, kernel in zip("ab", kernels):
            self.js(f"type('{side}_kernel', '{kernel}')")
        compared = self.js("$('compared').textContent")
        self.expect(
            self.js("""[...document.querySelectorAll('#scatter .mark[transform]')].every(mark => {
          const matrix = mark.getAttribute('aria-label').match(/ on (.*?)(?: [(]stand-in[)])?, f/)[1], {source} = data.rows.find(row => row.matrix === matrix);
          return mark.style.fill.startsWith({file: 'currentcolor', 'stand-in': 'var(--card)'}[source] ?? 'url'); })"""),
            "a mark does not show its matrix's source",
        )
        if "No matrix" not in compared:
            self.expect(
                all(kernel in compared for kernel in kernels),
                f"what is compared is not said: {compared}",
            )
            # The last row of the table, from the rows themselves.
            matrix, ratio = self.js(
                "(() => { const row = [...$('pairs').tBodies[0].rows].at(-1); return [row.cells[0].textContent, row.cells[4].textContent]; })()"
            )
            times = [
                self.js(
                    f"data.rows.find(row => row.matrix === {json.dumps(matrix)} && row.kernel === '{kernel}' && row.device === device() && row.precision === precision()).warm_ms"
                )
                for kernel in kernels
            ]
            self.equal(ratio, self.js(f"digits({times[0] / times[1]})"), f"the ratio on {matrix}")
            self.frame()
            drawn = self.js(
                "['scatter', 'times', 'sketch', 'histogram'].filter(id => $(id).querySelector('svg'))"
            )
            self.expect({"scatter", "times"} <= set(drawn), f"of the charts only {drawn} are drawn")
            for name in drawn:
                marks, most = (
                    (".mark, .line", 2) if name in ("scatter", "times") else ("path, .bar", 1)
                )
                self.equal(
                    self.js(f"""(() => {{ const file = new DOMParser().parseFromString(svgOf('{name}'), 'image/svg+xml');
                  return [file.documentElement.tagName, file.querySelectorAll('style, {marks}').length > {most}]; }})()"""),
                    ["svg", True],
                    f"{name} as SVG",
                )
                self.expect(
                    self.js(f"!svgOf('{name}').includes('var(')"),
                    f"{name} as SVG depends on the page's styles",
                )
            for name, words in (("scatter", "stand-in"), ("times", "cuSPARSE and others")):
                self.expect(
                    self.js(f"svgOf('{name}').includes('>{words}</text>')"),
                    f"{name} as SVG has no legend",
                )
        self.open()

    def frame(self):
        """A frame drawn over the right half of the points leaves their matrices, in all tables, and Reset brings all back."""
        before = self.js("$('pairs').tBodies[0].rows.length")
        self.js("$('scatter').scrollIntoView({block: 'center'})")
        left, top, right, bottom = (
            self.js("""(() => { const {left, top, right, bottom} = $('scatter').querySelector('svg').getBoundingClientRect();
          return [left, top, right, bottom]; })()""")
        )
        wanted = self.js(f"""[...document.querySelectorAll('#scatter .mark[transform]')].filter(mark => {{ const box = mark.getBoundingClientRect();
          return box.left + box.width / 2 >= {(left + right) / 2}; }}).length""")
        for kind, x, y in (
            ("mousePressed", right - 1, top + 1),
            ("mouseMoved", (left + right) / 2, bottom - 1),
            ("mouseReleased", (left + right) / 2, bottom - 1),
        ):
            self.browser.call(
                "Input.dispatchMouseEvent",
                type=kind,
                x=x,
                y=y,
                button="left",
                buttons=1,
                clickCount=1,
            )
        if wanted:
            self.equal(self.js("$('pairs').tBodies[0].rows.length"), wanted, "matrices in a frame")
            self.expect(
                self.js(
                    "shown.length && new Set(shown.map(row => row.matrix)).size <= $('q').value.split(/,(?![a-z_]+=)/).length"
                ),
                "a frame narrows not all tables",
            )
        self.js("$('reset').click()")
        self.equal(self.js("$('pairs').tBodies[0].rows.length"), before, "matrices after Reset")

    def filters(self):
        kernel = self.js("data.rows[0].kernel")
        start = kernel[:3]
        self.js(f"type('kernel', '{start}*'); type('precision', '')")
        self.expect(
            self.js(f"shown.length && shown.every(row => row.kernel.startsWith('{start}'))"),
            "a pattern for kernels does not filter",
        )
        for order in (1, -1):
            self.js(
                "[...$('heads').cells].find(cell => cell.dataset.column === 'us').querySelector('button').click()"
            )
            values = self.js(f"shown.map(row => {order} * row.warm_ms)")
            self.expect(values == sorted(values), "the order by time")
        lines = self.js("csv()").strip().split("\n")
        self.equal(len(lines) - 1, self.js("shown.length"), "rows to download")
        self.expect("[object" not in "".join(lines), "a cell to download is not a value")
        # The address, in a page that is opened anew.
        matrix = self.js("shown[0].matrix")
        self.js(f"type('m', {json.dumps(matrix)}); type('b_kernel', {json.dumps(kernel)})")
        before = self.js("[location.hash, shown.length, shown[0].kernel, $('facts').textContent]")
        self.open(hash=before[0])
        self.equal(
            self.js("[location.hash, shown.length, shown[0].kernel, $('facts').textContent]"),
            before,
            "what the address brings back",
        )
        self.open(hash="#precision=f64&source=nonsense")
        self.expect(
            "nonsense" in self.js("$('message').textContent"),
            "an address that cannot be is not named",
        )
        self.open()

    def keyboard(self):
        self.js("document.activeElement.blur(); window.scrollTo(0, 0)")
        self.browser.press("Tab")
        self.equal(
            self.js("document.activeElement.className"), "skip", "the first that Tab reaches"
        )
        order = []
        for _ in range(80):
            self.browser.press("Tab")
            at = self.js(
                "(() => { const at = document.activeElement; return at.id || at.closest('svg')?.parentElement.id || at.closest('[id]')?.id; })()"
            )
            order.append(at)
            if at == "window":
                break
            if at == "scatter":
                was = self.js("$('m').value")
                self.browser.press("End", "ArrowUp")
                self.expect(
                    not self.js("$('tip').hidden"), "no values beside a mark that has the focus"
                )
                self.browser.press("Enter")
                self.expect(self.js("$('m').value") != was, "Enter on a mark selects no matrix")
        wanted = [
            name
            for name in (
                "device",
                "precision",
                "kernel",
                "a_kernel",
                "scatter",
                "m",
                "csv",
                "window",
            )
        ]
        places = [order.index(name) if name in order else -1 for name in wanted]
        self.expect(-1 not in places and places == sorted(places), f"Tab reaches {order}")
        self.browser.press("ArrowDown", "ArrowDown", "Enter")
        self.equal(
            self.js("$('m').value"),
            self.js("shown[2].matrix"),
            "the matrix that Enter selects in the table",
        )
        self.js("$('window').focus()")
        self.browser.press("End")
        self.expect(
            self.js("document.activeElement.textContent === shown.at(-1).matrix"),
            "End does not lead to the last row",
        )
        self.open()

    def narrow(self):
        self.browser.call(
            "Emulation.setDeviceMetricsOverride",
            width=800,
            height=800,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.open()
        self.expect(
            self.js("$('claims').querySelector('.wide').scrollWidth <= 760"),
            "the table of claims is cut off on 800 px",
        )
        self.browser.call(
            "Emulation.setDeviceMetricsOverride",
            width=400,
            height=800,
            deviceScaleFactor=1,
            mobile=True,
        )
        self.open()
        self.equal(
            self.js("document.documentElement.scrollWidth"), 400, "the page's width on 400 px"
        )
        self.browser.call("Emulation.clearDeviceMetricsOverride")
        self.open()


def check(path):
    """What is wrong with a page, as lines, and what was seen of it."""
    with chromium.Browser() as browser:
        checks = Check(browser, path)
        try:
            checks.open()
            checks.the_file()
            if checks.js("data.rows.length"):
                for each in (checks.compare, checks.filters, checks.keyboard):
                    each()
            checks.narrow()
        except chromium.BrowserError as error:
            checks.wrong.append(str(error))
        asked = [
            address
            for address in browser.asked
            if not address.startswith("file:") and address != "about:blank"
        ]
        return checks.wrong + browser.errors + [
            f"asks for {address}" for address in asked
        ], "; ".join(checks.seen)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("page", type=Path)
    arguments = parser.parse_args()
    if chromium.find() is None:
        print("error: no Chromium here: apt-get install chromium, or set CHROMIUM", file=sys.stderr)
        return 2
    if not arguments.page.exists():
        print(f"error: {arguments.page} is not there: make report", file=sys.stderr)
        return 2
    wrong, seen = check(arguments.page)
    for line in wrong:
        print(f"{arguments.page}: {line}", file=sys.stderr)
    print(
        f"{arguments.page}: {seen}; "
        + (f"{len(wrong)} things are wrong" if wrong else "nothing is wrong")
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
