#!/usr/bin/env python3
"""How good the results page's advice for typed properties is, on each device: a Markdown table. Node runs the page's own choose.js.

plots/python.sh plots/page/regret.py
"""

import json
import subprocess
import sys

from records import Data, device_names
from report import HERE, measurements, packed
from tables import Table

# After records.js and choose.js.
ASK = """
unpacked(require("fs").readFileSync(0, "utf8")).then(({rows, matrices}) => console.log(JSON.stringify(
  [...new Set(rows.filter(row => !row.host).map(row => row.device))].map(device => ({device, ...quality(rows.filter(row => row.device === device), matrices, "warm")})))));
"""


def share(part):
    return "a refusal" if part is None else f"{part:.1%}"  # JSON has no Infinity


COLUMNS = {
    "device": ("device", str),
    "matrices": ("matrices", str),
    "kernels": ("kernels", str),
    "answers": ("answers", "{:,}".format),
    "a kernel that refuses": ("refused", str),
    "median regret": ("median", share),
    "95% below": ("most", share),
}


def qualities(every):
    """What quality() of choose.js says of each device, with its name."""
    script = (
        "".join((HERE / name).read_text(encoding="utf-8") for name in ("records.js", "choose.js"))
        + ASK
    )
    done = subprocess.run(
        ["node", "-e", script],
        input=packed(measurements(every)),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def main():
    try:
        found = qualities([Data(name) for name in device_names()])
    except FileNotFoundError:
        sys.exit("error: no Node here: apt-get install nodejs")
    rows = [[text(of[name]) for name, text in COLUMNS.values()] for of in found if of["answers"]]
    print(Table("", list(COLUMNS), rows).markdown(), end="")


if __name__ == "__main__":
    main()
