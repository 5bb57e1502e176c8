#!/usr/bin/env python3
"""Executes spmv.ipynb in an empty directory, on the CPU backend: make notebook, make test-notebook

    execute.py            compares what it prints with the outputs stored in the notebook; exit 1 if they differ
    execute.py --write    stores what it prints

The notebook clones this repository (its last commit) and builds two steps, which takes minutes.
"""

import os
import re
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

NOTEBOOK = Path(__file__).with_name("spmv.ipynb")
ROOT = NOTEBOOK.parents[2]


def printed(notebook):
    """What each cell of code printed, without what differs from run to run: the machine, and times of a CPU."""
    texts = (
        "".join(output.get("text", "") for output in cell.outputs)
        for cell in notebook.cells
        if cell.cell_type == "code"
    )
    return [re.sub(r"^(backend:|.*eigen_csr).*\n", "", text, flags=re.MULTILINE) for text in texts]


def main():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    stored = printed(notebook)
    os.environ.update(SPMV_REPOSITORY=ROOT.as_uri(), BACKEND="cpu")
    for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):  # this script may be run by make
        os.environ.pop(name, None)
    with tempfile.TemporaryDirectory() as empty:
        client = NotebookClient(
            notebook, timeout=1200, kernel_name="python3", resources={"metadata": {"path": empty}}
        )
        try:
            client.execute()
        except CellExecutionError as error:
            sys.exit(f"error: {NOTEBOOK.relative_to(ROOT)}: a cell failed\n{error}")
    if sys.argv[1:] == ["--write"]:
        for number, cell in enumerate(notebook.cells):
            cell.id = f"cell-{number}"
            cell.metadata.pop("execution", None)
        nbformat.write(notebook, NOTEBOOK)
        return 0
    status = 0
    for number, (old, new) in enumerate(zip(stored, printed(notebook)), 1):
        if old != new:
            print(
                f"error: code cell {number} of {NOTEBOOK.relative_to(ROOT)} prints now (make notebook stores it):\n{new}",
                file=sys.stderr,
            )
            status = 1
    print(f"{len(stored)} cells executed")
    return status


if __name__ == "__main__":
    sys.exit(main())
