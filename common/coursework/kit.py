"""The kit (kit.mk): what judging needs and what is the same for every step and student.

In the repository it is built where all is built. A handout has it built once for all handouts of a
course, in the user's cache: a copy of the handout's common/, in a directory named after what is in
it, so that another one is used as soon as a file of it differs.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from exercises import GIVEN, ROOT

KEPT = 2  # kits in the cache
LIBRARIES = "Boost.Context zlib nlohmann-json fmt"  # that a kit needs (setup.sh)


class KitError(Exception):
    """There is no kit to be had; the text says why."""


def cache():
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(os.environ.get("SPMV_KITS") or Path(home) / "spmv-kits")


def files_of_kit():
    """What a kit is built from, and what it is used by: the scripts go with it."""
    return sorted(
        path for path in (ROOT / "common").rglob("*")
        if path.is_file() and GIVEN not in path.parents and "__pycache__" not in path.parts and path.suffix not in (".md", ".json", ".ini")
    )  # fmt: skip


def key():
    """A name for the kit that this handout's files make on this machine."""
    digest = hashlib.sha256()
    for path in files_of_kit():
        digest.update(str(path.relative_to(ROOT)).encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    for name in ("CXX", "CXXFLAGS", "COUNT", "CPATH", "LIBRARY_PATH"):
        digest.update(f"{name}={os.environ.get(name, '')}\0".encode())
    compiler = os.environ.get("CXX", "g++")
    digest.update(subprocess.run([*compiler.split(), "--version"], capture_output=True).stdout)
    return digest.hexdigest()[:16]


def make(home, *variables):
    environment = dict(os.environ)
    if home != ROOT:
        environment["SPMV_LIBRARIES"] = LIBRARIES
    # What was given to the make that called; not its job server, which is not passed on.
    environment["MAKEFLAGS"] = re.sub(r"-j\d*|--jobserver\S*", "", environment.get("MAKEFLAGS", ""))
    command = ["make", "--no-print-directory", f"-j{os.cpu_count()}", "-C", str(home / "common/coursework"), "BACKEND=cpu", *variables, "kit"]
    (home / "build").mkdir(exist_ok=True)
    with open(home / "build/kit.lock", "w") as lock:  # two builds at a time would spoil each other's files
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment)
    if done.returncode != 0:
        raise KitError("the program that judges could not be built; its messages are above")
    return Path(done.stdout.split("\n")[-2])


def built(home, *variables):
    """The kit in home/build, up to date: built if the hash of what it is made from is not that of the one there."""
    complete, inputs = home / "build/kit.json", key()
    try:
        kept = json.loads(complete.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        kept = {}
    if kept.get("inputs") == inputs and Path(kept["place"], "judge").exists():
        return Path(kept["place"])
    if variables:
        print("compiling what judges kernels, once for all handouts of this course", file=sys.stderr)
    place = make(home, *variables)
    complete.write_text(json.dumps({"inputs": inputs, "place": str(place)}), encoding="utf-8")
    return place


def obtain():
    """(the directory with common/ and build/, that of the kit in it) of a kit that is up to date."""
    if not GIVEN.exists():
        return ROOT, built(ROOT)
    place = cache()
    try:
        place.mkdir(parents=True, exist_ok=True)
        lock = open(place / "lock", "w")
    except OSError as error:
        print(f"the kit is built here, and for this handout alone ({error.strerror}: {place})", file=sys.stderr)
        return ROOT, built(ROOT)
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        home = place / key()
        if not home.exists():
            copy = place / f"new-{os.getpid()}"
            for path in files_of_kit():
                to = copy / path.relative_to(ROOT)
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, to)
            copy.rename(home)
        kit = built(home, "KIT_CXXFLAGS=-O1")  # compiles in a sixth less time than -O2 -g1
        os.utime(home)
        kits = sorted((p for p in place.iterdir() if p.is_dir()), key=lambda p: p.stat().st_mtime, reverse=True)
        for old in kits[KEPT:]:
            shutil.rmtree(old, ignore_errors=True)
    return home, kit
