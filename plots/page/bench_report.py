#!/usr/bin/env python3
"""Measures the results page in a headless Chromium, and fails above its limits. They are for two idle cores; what the
page's thread computed is told beside the time, for machines that are busy.

    make bench-report                    of build/report.html; ARGS="--repeat 9": loads
"""

import argparse
import statistics
import sys
from pathlib import Path

import check_report
from check_report import chromium

ROWS = 20_000
# What is measured, of how many milliseconds (or MB) at most.
LIMITS = {"size, MB": 3, "first paint, ms": 1000, "usable, ms": 2000, "filter, ms": 200, "sort, ms": 200, "another matrix, ms": 200}
# As many rows as the limits are for, by copies of what is there.
GROW = """(() => { const first = data.rows.slice(); let copy = 0;
  while (data.rows.length < %d) { ++copy; data.rows = data.rows.concat(first.slice(0, %d - data.rows.length).map(row => ({...row, device: row.device + " " + copy}))); }
  offer(); changed(); return data.rows.length; })()""" % (ROWS, ROWS)
TIMED = """(what => { const found = []; for (let k = 0; k < 5; ++k) { const start = performance.now(); what(k);
  document.body.getBoundingClientRect(); found.push(performance.now() - start); } return found; })(%s)"""
ACTIONS = {
    "filter, ms": "k => type('kernel', ['csr_*', '', 'pcsr*,ell', '*', 'cusparse_*'][k])",
    "sort, ms": "k => $('heads').cells[[0, 7, 7, 1, 10][k]].querySelector('button').click()",
    "another matrix, ms": "k => type('m', names('m')[k])",
}


def computed(browser):
    """Milliseconds that the page's thread has run."""
    return next(1e3 * metric["value"] for metric in browser.call("Performance.getMetrics")["metrics"] if metric["name"] == "TaskDuration")


def measured(path, repeat):
    """{what: times}, {what: milliseconds of the processor, each}, what was wrong."""
    found, thread = {name: [] for name in LIMITS}, {}
    found["size, MB"] = [path.stat().st_size / 1e6]
    with chromium.Browser() as browser:
        browser.call("Performance.enable", timeDomain="threadTicks")
        checks = check_report.Check(browser, path)
        for _ in range(repeat):
            checks.open()
            found["first paint, ms"].append(checks.js("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
            thread["usable, ms"] = computed(browser)
            found["usable, ms"].append(checks.js("performance.getEntriesByName('usable')[0].startTime"))
        checks.equal(checks.js(GROW), ROWS, "rows")
        checks.js("type('precision', '')")
        for name, action in ACTIONS.items():
            start = computed(browser)
            found[name] = checks.js(TIMED % action)
            thread[name] = (computed(browser) - start) / len(found[name])
        return found, thread, checks.wrong + browser.errors


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("page", type=Path)
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    if chromium.find() is None or not arguments.page.exists():
        print(f"error: no Chromium here, or no {arguments.page}: apt-get install chromium; make report", file=sys.stderr)
        return 2
    found, thread, wrong = measured(arguments.page, arguments.repeat)
    print(f"{arguments.page}; filter, sort and choice with {ROWS} rows\n{'':<22}{'median':>9}{'greatest':>10}{'computed':>10}{'limit':>8}")
    for name, values in found.items():
        median = statistics.median(values)
        over = median > LIMITS[name]
        computing = f"{thread[name]:.1f}" if name in thread else ""
        print(f"{name:<22}{median:>9.1f}{max(values):>10.1f}{computing:>10}{LIMITS[name]:>8}{'  TOO MUCH' if over else ''}")
        wrong += [f"{name}: {median:.1f}"] if over else []
    for line in wrong:
        print(f"error: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
