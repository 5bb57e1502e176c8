#!/usr/bin/env python3
"""JavaScript libraries that the results page embeds, or that its test uses, from packages.

    python3 plots/page/libraries.py          says where each was found

A library is looked for in Debian's directory, then in .deps/web/; there it is put, out of a wheel from PyPI.
SPMV_DEPS=none: nothing is fetched.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".deps" / "web"


class Library(NamedTuple):
    name: str
    installed: str  # where Debian's package has it
    package: str
    wheel: str  # a requirement of pip, and the file in the wheel
    file: str
    sha256: str  # of the file in the wheel
    without: str  # what is lost without it


D3 = Library("d3", "/usr/share/nodejs/d3/dist/d3.min.js", "node-d3", "mpld3==0.5.12", "mpld3/js/d3.v5.min.js",
             "bdad5585ef9a965ff25458738309b006058c55f2c78d794d25fbecae35014609", "the page has no charts")
AXE = Library("axe-core", "/usr/share/nodejs/axe-core/axe.min.js", "", "axe-playwright-python==0.1.8",
              "axe_playwright_python/axe.min.js", "84494fec757e4710dc751c8d7a636e457f4532f08f85c86dc9070133fbff53bc", "accessibility is not checked")


def quietly(*command, **keys):
    try:
        return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60, **keys).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def out_of_wheel(library, scratch):
    if quietly(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "--dest", scratch, library.wheel):
        with zipfile.ZipFile(next(Path(scratch).glob("*.whl"))) as wheel:
            script = wheel.read(library.file)
        if hashlib.sha256(script).hexdigest() == library.sha256:
            return script
    return None


def find(library):
    """The library's file, or None."""
    cached = CACHE / Path(library.file).name
    for file in (Path(library.installed), cached):
        if file.exists():
            return file
    if os.environ.get("SPMV_DEPS") == "none":
        return None
    with tempfile.TemporaryDirectory() as scratch:
        script = out_of_wheel(library, scratch)
        if script is None:
            return None
        CACHE.mkdir(parents=True, exist_ok=True)
        part = cached.with_suffix(f".{os.getpid()}")
        part.write_bytes(script)
        shutil.move(part, cached)
    return cached


def missing(library):
    """One line on what is lost, and how to have it."""
    package = f"apt-get install {library.package}, or " if library.package else ""
    return f"{library.name} is missing, so {library.without}; to have it: {package}pip (apt-get install python3-pip) and a network"


if __name__ == "__main__":
    for each in (D3, AXE):
        print(find(each) or missing(each))
