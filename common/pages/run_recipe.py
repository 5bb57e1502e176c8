#!/usr/bin/env python3
"""Adds the step of common/README.md by the commands of that page, with the kernel shown above them, and removes it again: make test-recipe"""

import os
import re
import shutil
import subprocess
import sys

from check_pages import ROOT

RECIPE = re.compile(r"^(?=    mkdir 11_two_sums)(?:    .*\n)+", re.MULTILINE)
MARK = "    # write 11_two_sums/two_sums.cuh, then\n"


def main():
    page = (ROOT / "common/README.md").read_text(encoding="utf-8")
    recipe = RECIPE.search(page)
    kernel = re.findall(r"^```cpp\n(.*?)^```", page[: recipe.start()], re.MULTILINE | re.DOTALL)[-1]
    step = ROOT / "11_two_sums"
    if step.exists():
        sys.exit(f"error: {step} is there already")
    before, after = recipe[0].split(MARK)
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    try:
        subprocess.run(["bash", "-ec", before], cwd=ROOT, check=True)
        (step / "two_sums.cuh").write_text(kernel, encoding="utf-8")
        for file in step.glob("*.cu"):
            if left := re.findall(r"csr_scalar|CsrScalar|\b02\b|\bstep = 2\b|Bell and Garland", file.read_text(encoding="utf-8")):
                sys.exit(f"error: {file.name} still holds {', '.join(left)}")
        subprocess.run(["bash", "-ec", after], cwd=ROOT, check=True, env={**environment, "BACKEND": "cpu"})
    except subprocess.CalledProcessError as error:
        sys.exit(f"error: the recipe ended with status {error.returncode}")
    finally:
        shutil.rmtree(step, ignore_errors=True)
        shutil.rmtree(ROOT / "build/cpu/11_two_sums", ignore_errors=True)


if __name__ == "__main__":
    main()
