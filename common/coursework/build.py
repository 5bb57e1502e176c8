#!/usr/bin/env python3
"""Compiles a student's files, links a runner, and says what in them a person should look at: build.py REQUEST

REQUEST is JSON: {"course": DIR, "step": "03_csr_vector", "files": ["csr_vector.cuh"], "out": DIR,
"kit": DIR}. DIR/STEP holds the step with the student's files in it, DIR/given the files as they
were handed out. A file that does not compile is replaced by the one that was handed out, so that the others can be
judged all the same. OUT/runner is what remains. Prints JSON:

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
        self.step, self.files = request["step"], request["files"]
        self.source = self.out / "source"

    def path(self, name):
        return self.source / self.step / name

    def give(self, name):
        shutil.copyfile(self.course / "given" / name, self.path(name))

    def changed(self):
        """The files that are not as they were handed out."""
        given = self.course / "given"
        return [n for n in self.files if self.path(n).read_bytes() != (given / n).read_bytes()]

    def compile(self):
        """(whether it worked, what the compiler said)."""
        good, text = compile_sources(self.kit, self.source / self.step, self.out / "objects")
        early = good and flags.refused(self.objects())
        return good and not early, early or text

    def objects(self):
        return sorted((self.out / "objects").glob("*.cu.o"))

    def run(self):
        for place in (self.source, self.out / "objects"):
            shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(self.course, self.source)  # so that files can be replaced
        for name in self.changed():
            text = self.path(name).read_text(encoding="latin-1")  # of any encoding
            self.path(name).write_text(flags.unsilenced(text), encoding="latin-1")
        answer = {"flags": [], "broken": {}, "built": False}
        good, text = self.compile()
        if not good:
            self.find_broken(answer["broken"], text)
            if not self.changed():
                return answer  # nothing is left to run
            good, text = self.compile()
            if not good:
                raise NotJudged(f"what was handed out does not compile: {text}")
        answer["built"] = True
        answer["flags"] = [flag.describe() for flag in self.flags(text)]
        return answer

    def find_broken(self, broken, text):
        """Which files do not compile, and what the compiler says: of several, each is tried alone."""
        left = self.changed()
        kept = {name: self.path(name).read_bytes() for name in left}
        for name in left:
            for other in left:
                self.give(other)
            self.path(name).write_bytes(kept[name])
            shutil.rmtree(self.out / "objects", ignore_errors=True)
            good, its_text = self.compile()
            if not good:
                broken[name] = its_text[:MOST_TEXT]
        if not broken:  # each alone compiles
            broken.update((name, text[:MOST_TEXT]) for name in left)
        for name in left:
            self.path(name).write_bytes(kept[name])
            if name in broken:
                self.give(name)

    def given_objects(self):
        """The objects of the step as it was handed out."""
        source, objects = self.out / "given", self.out / "given_objects"
        if not objects.exists():
            shutil.copytree(self.course, source)
            for name in self.files:
                shutil.copyfile(self.course / "given" / name, source / self.step / name)
            good, text = compile_sources(self.kit, source / self.step, objects)
            if not good:
                raise NotJudged(f"what was handed out does not compile: {text}")
        return sorted(objects.glob("*.cu.o"))

    def flags(self, said):
        """[Flag] of all files that are not as they were handed out. said: what the compiler said of them."""
        changed = self.changed()
        if not changed:
            return []
        files = {f"/{self.step}/{name}": name for name in changed}
        found = flags.flags_of(self.objects(), self.kit / "runner.a", files, self.given_objects)
        for name in changed:
            found += flags.flags_of_compiler(said, f"{self.step}/{name}", name)
        texts = [self.path(name).read_text(encoding="latin-1") for name in changed]
        if any(flags.MAY_BE_ASSEMBLY.search(text) for text in texts):
            objects = self.out / "objects"
            compile_sources(self.kit, self.source / self.step, objects, "preprocessed")
            for path in objects.glob("*.i"):
                found += flags.assembly_in(path.read_text(encoding="latin-1"), files)
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
