"""The kit (kit.mk): what judging needs and what is the same for every submission. It is built where all is built."""

import contextlib
import fcntl
import hashlib
import os
import re
import subprocess
from pathlib import Path

from exercises import GIVEN, ROOT, NotJudged

LIBRARIES = "Boost.Context zlib nlohmann-json fmt"  # that a kit needs (setup.sh)


@contextlib.contextmanager
def alone(what):
    """Waits until no other process does that here: two builds at a time would spoil each other's files."""
    (ROOT / "build").mkdir(exist_ok=True)
    with open(ROOT / f"build/{what}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def digest(environment):
    """Of all that a handout's kit is made of."""
    compiler = environment.get("CXX"), re.findall(r"CXX\w*=.*", environment["MAKEFLAGS"])
    found = hashlib.sha256(repr(compiler).encode())
    for path in sorted((ROOT / "common").rglob("*")):
        is_source = path.suffix in (".cpp", ".hpp", ".cuh", ".h", ".mk")
        if is_source and GIVEN not in path.parents:  # kernels are not in it
            found.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    return found.hexdigest()[:16]


def obtain():
    """The directory of the kit, which make has brought up to date. Raises NotJudged."""
    environment, variables = dict(os.environ), []
    # What was given to the make that called; not its job server, which is not passed on.
    environment["MAKEFLAGS"] = re.sub(r"-j\d*|--jobserver\S*", "", environment.get("MAKEFLAGS", ""))
    if GIVEN.exists():  # in a handout, where it is built once
        environment["SPMV_LIBRARIES"] = LIBRARIES
        variables.append("KIT_CXXFLAGS=-O1")  # compiles in a sixth less time than -O2 -g1
        # The handouts of several steps share one (make learn).
        if kits := os.environ.get("SPMV_KITS"):
            place = Path(kits) / digest(environment)
            if (place / "compiler").exists():  # the last file of a kit
                return place
            variables.append(f"KIT={place}")
    command = ["make", "--no-print-directory", f"-j{os.cpu_count()}", "BACKEND=cpu", *variables]
    command += ["-C", ROOT / "common/coursework", "kit"]
    with alone("kit"):
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment)
    if done.returncode != 0:
        raise NotJudged("the program that judges could not be built; its messages are above")
    return Path(done.stdout.split("\n")[-2])
