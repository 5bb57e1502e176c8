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
        self.js("""new Promise(done => {
          const look = () => document.body.dataset.ready ? done() : setTimeout(look, 20); look(); })""")
        self.js(HELPERS)

    # --- Each of them ---

    def the_file(self):
        text = self.path.read_text(encoding="utf-8")
        self.expect(len(text) <= MOST_BYTES, f"{len(text) / 1e6:.1f} MB, more than 3")
        elements = self.js("document.querySelectorAll('*').length")
        self.expect(elements <= MOST_ELEMENTS, f"{elements} elements")
        images = "[...document.querySelectorAll('figure img')]"
        figures = self.js(f"{images}.map(image => [image.width, image.alt.length])")
        has_both = all(width >= 100 and letters >= 20 for width, letters in figures)
        self.expect(has_both, "a figure without size or text")
        self.seen += [
            f"{len(text) / 1e6:.1f} MB",
            f"{elements} elements",
            f"{len(figures)} figures",
        ]
        self.seen += [f"{self.js('data.rows.length')} measurements"]

    def compare(self):
        kernels = self.js("""names('a_kernel').filter(name => data.rows.some(
          row => row.device === device() && row.kernel === name)).slice(0, 2)""")
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
            all_said = all(kernel in compared for kernel in kernels)
            self.expect(all_said, f"what is compared is not said: {compared}")
            # The last row of the table, from the rows themselves.
            cells = (
                "[...[...$('pairs').tBodies[0].rows].at(-1).cells].map(cell => cell.textContent)"
            )
            matrix, *_, ratio = self.js(cells)
            times = [
                self.js(f"""data.rows.find(row => row.matrix === {json.dumps(matrix)} && row.kernel === '{kernel}' &&
                  row.device === device() && row.precision === precision()).warm_ms""")
                for kernel in kernels
            ]
            self.equal(ratio, self.js(f"digits({times[0] / times[1]})"), f"the ratio on {matrix}")
            charts = "['scatter', 'times', 'sketch', 'histogram']"
            drawn = self.js(f"{charts}.filter(id => $(id).querySelector('svg'))")
            self.expect({"scatter", "times"} <= set(drawn), f"of the charts only {drawn} are drawn")
            for name in drawn:
                has_marks = name in ("scatter", "times")
                marks, most = (".mark, .line", 2) if has_marks else ("path, .bar", 1)
                self.equal(
                    self.js(f"""(() => {{ const file = new DOMParser().parseFromString(svgOf('{name}'), 'image/svg+xml');
                  return [file.documentElement.tagName, file.querySelectorAll('style, {marks}').length > {most}]; }})()"""),
                    ["svg", True],
                    f"{name} as SVG",
                )
                is_alone = self.js(f"!svgOf('{name}').includes('var(')")
                self.expect(is_alone, f"{name} as SVG depends on the page's styles")
            for name, words in (("scatter", "stand-in"), ("times", "cuSPARSE and others")):
                has_legend = self.js(f"svgOf('{name}').includes('>{words}</text>')")
                self.expect(has_legend, f"{name} as SVG has no legend")
        self.open()

    def filters(self):
        kernel = self.js("data.rows[0].kernel")
        start = kernel[:3]
        self.js(f"type('kernel', '{start}*'); type('precision', '')")
        fits = self.js(f"shown.length && shown.every(row => row.kernel.startsWith('{start}'))")
        self.expect(fits, "a pattern for kernels does not filter")
        for order in (1, -1):
            self.js("document.querySelector('#heads [data-column=us] button').click()")
            values = self.js(f"shown.map(row => {order} * row.warm_ms)")
            self.expect(values == sorted(values), "the order by time")
        lines = self.js("csv()").strip().split("\n")
        self.equal(len(lines) - 1, self.js("shown.length"), "rows to download")
        self.expect("[object" not in "".join(lines), "a cell to download is not a value")
        # The address, in a page that is opened anew.
        matrix = self.js("shown[0].matrix")
        self.js(f"type('m', {json.dumps(matrix)}); type('b_kernel', {json.dumps(kernel)})")
        view = "[location.hash, shown.length, shown[0].kernel, $('facts').textContent]"
        before = self.js(view)
        self.open(hash=before[0])
        self.equal(self.js(view), before, "what the address brings back")
        self.open(hash="#precision=f64&source=nonsense")
        self.equal(self.js("$('source').value"), "", "what an address cannot ask for")
        self.open()

    def keyboard(self):
        self.js("document.activeElement.blur(); window.scrollTo(0, 0)")
        self.browser.press("Tab")
        first = self.js("document.activeElement.className")
        self.equal(first, "skip", "the first that Tab reaches")
        order = []
        for _ in range(80):
            self.browser.press("Tab")
            at = self.js("""(at => at.id || at.closest('svg')?.parentElement.id ||
              at.closest('[id]')?.id)(document.activeElement)""")
            order.append(at)
            if at == "window":
                break
            if at == "scatter":
                was = self.js("$('m').value")
                self.browser.press("End", "ArrowUp")
                is_shown = not self.js("$('tip').hidden")
                self.expect(is_shown, "no values beside a mark that has the focus")
                self.browser.press("Enter")
                self.expect(self.js("$('m').value") != was, "Enter on a mark selects no matrix")
        wanted = "device precision kernel a_kernel scatter m csv window".split()
        places = [order.index(name) if name in order else -1 for name in wanted]
        self.expect(-1 not in places and places == sorted(places), f"Tab reaches {order}")
        self.browser.press("ArrowDown", "ArrowDown", "Enter")
        there, wanted = self.js("[$('m').value, shown[2].matrix]")
        self.equal(there, wanted, "the matrix that Enter selects in the table")
        self.js("$('window').focus()")
        self.browser.press("End")
        is_last = self.js("document.activeElement.textContent === shown.at(-1).matrix")
        self.expect(is_last, "End does not lead to the last row")
        self.open()

    def resized(self, width, mobile):
        of = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": mobile}
        self.browser.call("Emulation.setDeviceMetricsOverride", **of)
        self.open()

    def narrow(self):
        self.resized(800, False)
        fits = self.js("$('claims').querySelector('.wide').scrollWidth <= 760")
        self.expect(fits, "the table of claims is cut off on 800 px")
        self.resized(400, True)
        width = self.js("document.documentElement.scrollWidth")
        self.equal(width, 400, "the page's width on 400 px")
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
        own = ("file:", "about:blank")
        asked = [f"asks for {address}" for address in browser.asked if not address.startswith(own)]
        return checks.wrong + browser.errors + asked, "; ".join(checks.seen)


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
    what = f"{len(wrong)} things are wrong" if wrong else "nothing is wrong"
    print(f"{arguments.page}: {seen}; {what}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
