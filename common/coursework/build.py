#!/usr/bin/env python3
"""Compiles a student's files, links a runner, and says what in them a person should look at: build.py REQUEST

REQUEST is JSON: {"course": DIR, "step": "03_csr_vector", "files": ["csr_vector.cuh"], "out": DIR,
"kit": DIR}. DIR/STEP holds the step as it was handed out, DIR/own the student's files. A file that does not
compile is replaced by the one that was handed out, so that the others can be judged all the same.
OUT/objects/runner is what remains. Prints JSON:

    {"flags": [TEXT...],             of flags.py; they cost nothing
     "broken": {FILE: TEXT},         what the compiler says
     "built": true}

make check calls it as it is, make grade in a sandbox.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from functools import cached_property
from pathlib import Path

import flags
from exercises import ROOT, NotJudged

MOST_TEXT = 4000
MOST_OUTPUT = 1 << 22  # of the compiler that is read


def compile_sources(kit, source, objects, *goals):
    """(whether it worked, what the compiler said) of the kernels in the directory `source`, whose runner is to be in
    `objects`."""
    compiler = (kit / "compiler").read_text(encoding="utf-8").strip()
    command = ["make", "-C", str(ROOT / "common/coursework"), "BACKEND=cpu", f"CXX={compiler}"]
    command += [f"KIT={kit}", "WARNINGS=-fmax-errors=3", *(goals or ["runner"])]
    command += [f"SOURCES={source}", f"TO={objects}"]
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "CCACHE_DISABLE": "1"}
    environment["MAKEFLAGS"] = re.sub(r"-j\d*|--jobserver\S*", "", environment.get("MAKEFLAGS", ""))
    # (A line of the source for each warning can be a lot.)
    with tempfile.TemporaryFile(dir=objects.parent) as output:
        done = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
        output.seek(0)
        text = output.read(MOST_OUTPUT).decode("utf-8", "replace")
    text = re.sub(r"^make.*\n|^  (compile|link) .*\n", "", text, flags=re.MULTILINE)
    return done.returncode == 0, text.replace(f"{source.parent}/", "").replace(f"{ROOT}/", "")


class Build:
    def __init__(self, request):
        self.course, self.out, self.kit = (Path(request[key]) for key in ("course", "out", "kit"))
        self.step, self.own = request["step"], {}
        for name in request["files"]:
            own = (self.course / "own" / name).read_bytes()
            if own != (self.course / self.step / name).read_bytes():
                self.own[name] = flags.unsilenced(own.decode("latin-1"))  # of any encoding

    def compile(self, names, place="objects"):
        """(whether it worked, what the compiler said) of the step with these files of the student's. The objects are in
        OUT/`place` afterwards."""
        source = self.out / "source"
        for directory in (source, self.out / place):
            shutil.rmtree(directory, ignore_errors=True)
        shutil.copytree(self.course, source)
        for name in names:
            (source / self.step / name).write_text(self.own[name], encoding="latin-1")
        good, text = compile_sources(self.kit, source / self.step, self.out / place)
        early = good and flags.refused(self.objects(place))
        return good and not early, early or text

    def objects(self, place="objects"):
        return sorted((self.out / place).glob("*.cu.o"))

    def run(self):
        left, broken = list(self.own), {}
        good, text = self.compile(left)
        if not good:
            alone = {name: self.compile([name]) for name in left}
            broken = {name: said for name, (good, said) in alone.items() if not good}
            broken = broken or dict.fromkeys(left, text)  # each alone compiles
            broken = {name: said[:MOST_TEXT] for name, said in broken.items()}
            left = [name for name in left if name not in broken]
            if not left:
                return {"flags": [], "broken": broken, "built": False}
            good, text = self.compile(left)
            if not good:
                raise NotJudged(f"what was handed out does not compile: {text}")
        found = [flag.describe() for flag in self.flags(left, text)]
        return {"flags": found, "broken": broken, "built": True}

    @cached_property
    def given(self):
        """The objects of the step as it was handed out."""
        good, text = self.compile([], "given")
        if not good:
            raise NotJudged(f"what was handed out does not compile: {text}")
        return self.objects("given")

    def flags(self, names, said):
        """[Flag] of the files that were compiled last. said: what the compiler said of them."""
        if not names:
            return []
        files, found = {f"/{self.step}/{name}": name for name in names}, []
        if any(flags.MAY_BE_ASSEMBLY.search(self.own[name]) for name in names):
            objects = self.out / "objects"
            compile_sources(self.kit, self.out / "source" / self.step, objects, "preprocessed")
            for path in objects.glob("*.i"):
                found += flags.assembly_in(path.read_text(encoding="latin-1"), files)
        for name in names:
            found += flags.flags_of_compiler(said, f"{self.step}/{name}", name)
        runner = self.kit / "runner.a"
        found = flags.flags_of(self.objects(), runner, files, lambda: self.given) + found
        return list(dict.fromkeys(found))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        print(json.dumps(Build(json.loads(sys.argv[1])).run()))
    except (NotJudged, OSError, subprocess.CalledProcessError) as error:
        print(json.dumps({"failure": str(error)[:MOST_TEXT]}))


if __name__ == "__main__":
    main()
