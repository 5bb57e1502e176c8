#!/usr/bin/env python3
"""Opens the results page in a headless Chromium and uses it as a reader would.

    python3 plots/page/check_report.py build/report.html

Comparisons, filters, the address, the keyboard, 800 and 400 px. CHROMIUM names the browser.
"""

import json
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "common" / "watch"))
import browser as chromium

PAGE = Path(sys.argv.pop(1) if len(sys.argv) > 1 else "build/report.html")
MOST_BYTES, MOST_ELEMENTS = 3e6, 20_000

# What the check calls in the page.
HELPERS = """
window.type = (name, value) => { $(name).value = value; $(name).dispatchEvent(new Event("input")); };
window.names = id => [...$(id).options].map(option => option.value);
"""


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = chromium.Browser().__enter__()
        cls.addClassCleanup(cls.browser.__exit__)

    def setUp(self):
        self.open()

    def tearDown(self):
        own = ("file:", "about:blank")
        asked = [address for address in self.browser.asked if not address.startswith(own)]
        self.assertEqual((self.browser.errors, asked), ([], []))

    def js(self, expression):
        return self.browser.evaluate(expression)

    def open(self, hash=""):
        self.browser.open(PAGE, hash)
        self.js("""new Promise(done => {
          const look = () => document.body.dataset.ready ? done() : setTimeout(look, 20); look(); })""")
        self.js(HELPERS)

    def test_the_file(self):
        self.assertLessEqual(len(PAGE.read_text(encoding="utf-8")), MOST_BYTES)
        elements = self.js("document.querySelectorAll('*').length")
        self.assertLessEqual(elements, MOST_ELEMENTS)
        images = "[...document.querySelectorAll('figure img')]"
        figures = self.js(f"{images}.map(image => [image.width, image.alt.length])")
        self.assertTrue(figures)
        for width, letters in figures:
            self.assertGreaterEqual(width, 100)
            self.assertGreaterEqual(letters, 20)

    def test_two_kernels_compare(self):
        kernels = self.js("""names('a_kernel').filter(name => data.rows.some(
          row => row.device === device() && row.kernel === name)).slice(0, 2)""")
        for side, kernel in zip("ab", kernels):
            self.js(f"type('{side}_kernel', '{kernel}')")
        self.assertTrue(
            self.js("""[...document.querySelectorAll('#scatter .mark[transform]')].every(mark => {
          const matrix = mark.getAttribute('aria-label').match(/ on (.*?)(?: [(]stand-in[)])?, f/)[1], {source} = data.rows.find(row => row.matrix === matrix);
          return mark.style.fill.startsWith({file: 'currentcolor', 'stand-in': 'var(--card)'}[source] ?? 'url'); })"""),
            "a mark does not show its matrix's source",
        )
        compared = self.js("$('compared').textContent")
        for kernel in kernels:
            self.assertIn(kernel, compared)
        # The last row of the table, from the rows themselves.
        cells = "[...[...$('pairs').tBodies[0].rows].at(-1).cells].map(cell => cell.textContent)"
        matrix, *_, ratio = self.js(cells)
        times = [
            self.js(f"""data.rows.find(row => row.matrix === {json.dumps(matrix)} && row.kernel === '{kernel}' &&
              row.device === device() && row.precision === precision()).warm_ms""")
            for kernel in kernels
        ]
        self.assertEqual(ratio, self.js(f"digits({times[0] / times[1]})"), matrix)
        charts = "['scatter', 'times', 'sketch', 'histogram']"
        drawn = self.js(f"{charts}.filter(id => $(id).querySelector('svg'))")
        self.assertLessEqual({"scatter", "times"}, set(drawn))
        for name in drawn:
            marks, most = (".mark, .line", 2) if name in ("scatter", "times") else ("path, .bar", 1)
            has_marks = self.js(f"""(() => {{ const file = new DOMParser().parseFromString(svgOf('{name}'), 'image/svg+xml');
              return [file.documentElement.tagName, file.querySelectorAll('style, {marks}').length > {most}]; }})()""")
            self.assertEqual(has_marks, ["svg", True], name)
            self.assertFalse(self.js(f"svgOf('{name}').includes('var(')"), name)
        for name, words in (("scatter", "stand-in"), ("times", "cuSPARSE and others")):
            self.assertTrue(self.js(f"svgOf('{name}').includes('>{words}</text>')"), name)

    def test_filters_order_and_address(self):
        kernel = self.js("data.rows[0].kernel")
        start = kernel[:3]
        self.js(f"type('kernel', '{start}*'); type('precision', '')")
        fits = f"shown.length && shown.every(row => row.kernel.startsWith('{start}'))"
        self.assertTrue(self.js(fits))
        for order in (1, -1):
            self.js("document.querySelector('#heads [data-column=us] button').click()")
            values = self.js(f"shown.map(row => {order} * row.warm_ms)")
            self.assertEqual(values, sorted(values))
        lines = self.js("csv()").strip().split("\n")
        self.assertEqual(len(lines) - 1, self.js("shown.length"))
        self.assertNotIn("[object", "".join(lines))
        # The address, in a page that is opened anew.
        matrix = self.js("shown[0].matrix")
        self.js(f"type('m', {json.dumps(matrix)}); type('b_kernel', {json.dumps(kernel)})")
        view = "[location.hash, shown.length, shown[0].kernel, $('facts').textContent]"
        before = self.js(view)
        self.open(hash=before[0])
        self.assertEqual(self.js(view), before)
        self.open(hash="#precision=f64&source=nonsense")
        self.assertEqual(self.js("$('source').value"), "")

    def test_keyboard(self):
        self.js("document.activeElement.blur(); window.scrollTo(0, 0)")
        self.browser.press("Tab")
        self.assertEqual(self.js("document.activeElement.className"), "skip")
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
                self.assertFalse(self.js("$('tip').hidden"), "no values beside a mark in focus")
                self.browser.press("Enter")
                self.assertNotEqual(self.js("$('m').value"), was)
        wanted = "device precision kernel a_kernel scatter m csv window".split()
        places = [order.index(name) if name in order else -1 for name in wanted]
        self.assertTrue(-1 not in places and places == sorted(places), f"Tab reaches {order}")
        self.browser.press("ArrowDown", "ArrowDown", "Enter")
        there, wanted = self.js("[$('m').value, shown[2].matrix]")
        self.assertEqual(there, wanted)
        self.js("$('window').focus()")
        self.browser.press("End")
        self.assertTrue(self.js("document.activeElement.textContent === shown.at(-1).matrix"))

    def resized(self, width, mobile):
        of = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": mobile}
        self.browser.call("Emulation.setDeviceMetricsOverride", **of)
        self.addCleanup(self.browser.call, "Emulation.clearDeviceMetricsOverride")
        self.open()

    def test_narrow(self):
        self.resized(800, False)
        table = self.js("$('claims').querySelector('.wide').scrollWidth")
        self.assertLessEqual(table, 760, "the table of claims is cut off")
        self.resized(400, True)
        self.assertEqual(self.js("document.documentElement.scrollWidth"), 400)


if __name__ == "__main__":
    if chromium.find() is None:
        sys.exit("error: no Chromium here: apt-get install chromium, or set CHROMIUM")
    unittest.main()
