#!/usr/bin/env python3
"""Looks at a student's files, compiles them and links a runner: build.py REQUEST

REQUEST is JSON: {"course": DIR, "step": "03_csr_vector", "files": ["csr_vector.cuh"], "out": DIR,
"backend": "cpu"}. DIR/STEP holds the step with the student's files in it, DIR/given the files as they
were handed out. A file with something in it that whitelist.py does not allow, or that does not
compile, is replaced by the one that was handed out, so that the others can be judged all the same.
OUT/runner is what remains. Prints JSON:

    {"refused": {FILE: [TEXT...]},   what is not allowed
     "broken": {FILE: TEXT},         what the compiler says
     "built": true}

make check calls it as it is, make grade in a sandbox.
"""

import hashlib
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import gimple
import whitelist

ROOT = Path(__file__).resolve().parent.parent.parent
MOST_TEXT = 4000
MOST_OUTPUT = 1 << 18  # of the compiler that is read

# --- What an object file may call and define --------------------------------------------------------

# The whitelist over the syntax tree refuses all else. This is a second line of defence.
ARITHMETIC = re.compile(
    r"(sqrt|cbrt|fabs|fma|fmin|fmax|fmod|floor|ceil|trunc|(ll?)?rint|(ll?)?round|nearbyint|exp|exp2|expm1|log|"
    r"log2|log10|log1p|pow|hypot|a?sin|a?cos|a?tan|atan2|sinh|cosh|tanh|erfc?|[tl]gamma|copysign|ldexp)f?$"
    r"|mem(cpy|set|move|cmp)$|(printf|puts|putchar|__printf_chk|__assert_fail)$"
    r"|__tsan_|__sanitizer_cov_trace_pc$|_GLOBAL_OFFSET_TABLE_$|__tls_get_addr$|__gxx_personality_v0$"
)
# Functions and variables of the step's namespace, and what the compiler makes of the standard
# library's templates. (As the compiler writes names: nothing in them is looked up or expanded.)
OWN = re.compile(r"_Z(GV|T[HW])?Z?(N[rVKRO]*)?(4spmv|St|S[absiod])|DW\.ref\.")


def symbols(paths):
    """(called, defined) names of object files; defined are those that others could be linked to."""
    called, defined = set(), set()
    for path in paths:
        done = subprocess.run(["readelf", "-sW", str(path)], capture_output=True, text=True, check=True)
        for line in done.stdout.splitlines():
            words = line.split()
            if len(words) < 8 or words[4] not in ("GLOBAL", "WEAK", "UNIQUE"):
                continue
            if words[6] != "UND":
                defined.add(words[7])
            elif words[3] != "TLS":  # an `extern __shared__` array
                called.add(words[7])
    return called, defined


def calling_pointers(paths):
    """Functions of object files that call through a pointer, which kernels have no need of; by any way, of
    which a template hides the types from whitelist.py."""
    found = set()
    for path in paths:
        command = ["objdump", "-d", "--no-show-raw-insn", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        function = ""
        for line in done.stdout.splitlines():
            if line.endswith(">:"):
                function = line[line.index("<") + 1 : -2].split(".")[0]  # without the suffix of a clone
            elif re.search(r"\tcall\w*\s+\*|\tblra?\w*\s", line):  # x86-64, AArch64
                found.add(function)
    return found


def of_headers(paths):
    """Weak symbols of object files that are functions of the harness's headers which were not inlined, by the place in
    the source that the compiler names."""
    found = set()
    for path in paths:
        command = ["nm", "-l", "--defined-only", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=True)
        found.update(re.findall(rf"^\w+ [WVu] (\S+)\t{re.escape(str(ROOT))}/common/", done.stdout, re.MULTILINE))
    return found


def forbidden(built, given, kit):
    """What objects call, or put in the place of the harness's, and that no kernel may. Each argument:
    the symbols() of objects."""
    called, defined = built
    bad = {name for name in called - given[0] - kit[1] if not ARITHMETIC.match(name) and not OWN.match(name)}
    bad |= {name for name in defined - given[1] if name in kit[1] and not re.match(r"_ZNK?St|_ZSt", name) or not OWN.match(name)}
    return sorted(bad)


# --- Compiling --------------------------------------------------------------------------------------


class Build:
    def __init__(self, request):
        self.course, self.out = Path(request["course"]), Path(request["out"])
        self.step, self.files, self.backend = request["step"], request["files"], request["backend"]
        self.source = self.out / "source"
        self.kit = ROOT / "build" / self.backend / "kit"

    def lay_out(self):
        """Copies the course, so that files can be replaced."""
        for place in (self.source, self.out / "objects"):
            shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(self.course, self.source)

    def give(self, name):
        shutil.copyfile(self.course / "given" / name, self.source / self.step / name)

    def is_changed(self, name):
        return (self.source / self.step / name).read_bytes() != (self.course / "given" / name).read_bytes()

    def compile(self, to):
        """(whether it worked, what the compiler said)."""
        command = ["make", "-C", str(ROOT / "common/coursework"), f"BACKEND={self.backend}", "runner",
                   f"SOURCES={self.source / self.step}", f"TO={to}"]  # fmt: skip
        environment = {**os.environ, "LC_ALL": "C.UTF-8", "CCACHE_DISABLE": "1"}  # a cache keeps no dumps
        environment["MAKEFLAGS"] = re.sub(r"-j\d*|--jobserver\S*", "", environment.get("MAKEFLAGS", ""))
        with tempfile.TemporaryFile(dir=self.out) as output:  # a line of the source for each warning can be a lot
            done = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
            output.seek(0)
            text = output.read(MOST_OUTPUT).decode("utf-8", "replace")
        text = re.sub(r"^make.*\n|^  (compile|link) .*\n", "", text, flags=re.MULTILINE)
        text = text.replace(f"{self.source}/", "").replace(f"{ROOT}/", "")
        return done.returncode == 0, text[:MOST_TEXT]

    def look(self):
        """{file: [problem]} of those that are not as they were handed out."""
        names = {Path(name).name: name for name in self.files}
        given = {base: (self.course / "given" / name).read_text(encoding="utf-8") for base, name in names.items()}
        changed = [self.source / self.step / name for name in self.files if self.is_changed(name)]
        if not changed:
            return {}
        found = self.in_child(changed, given)
        if found is None:  # one of them ends libclang, which also has to live for no file at all
            if self.in_child([], given) is None:
                raise whitelist.Unusable("libclang ends in a crash")
            found = {}
            for path in changed:
                found.update(self.in_child([path], given) or {path.name: [whitelist.TOO_MUCH]})
        return {names[base]: problems for base, problems in found.items()}

    def in_child(self, paths, given):
        """What whitelist.py finds in files, in a process of its own; None if that does not come to its end."""
        from_child, to_parent = os.pipe()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                rules = whitelist.for_kit(ROOT, self.kit, self.out)
                found = rules.examine(self.source, paths, given) if paths else rules.parse(self.source, []) and {}
                with os.fdopen(to_parent, "wb") as pipe:
                    pickle.dump(found, pipe)
                status = 0
            except (whitelist.NoClang, whitelist.Unusable) as error:
                print(f"whitelist: {error}", file=sys.stderr)
            finally:
                os._exit(status)
        os.close(to_parent)
        with os.fdopen(from_child, "rb") as pipe:
            data = pipe.read()
        _, status = os.waitpid(child, 0)
        return pickle.loads(data) if status == 0 else None

    def given_symbols(self):
        """(called, defined, calling pointers) of the objects of the step as it was handed out; kept beside the kit,
        under a hash of its files."""
        for name in self.files:
            self.give(name)
        digest = hashlib.sha256(str((self.kit / "runner.a").stat().st_mtime_ns).encode())
        for source in sorted(p for p in self.source.rglob("*") if p.is_file()):
            digest.update(f"{source.relative_to(self.source)}\0".encode() + source.read_bytes())
        path = self.kit / f"symbols-{self.step}-{digest.hexdigest()[:16]}.json"
        if path.exists():
            return [set(names) for names in json.loads(path.read_text())]
        good, text = self.compile(self.out / "given")
        if not good:
            raise whitelist.Unusable(f"the step does not compile as it was handed out: {text}")
        objects = list((self.out / "given").glob("*.o"))
        found = [*symbols(objects), calling_pointers(objects)]
        shutil.rmtree(self.out / "given")
        try:
            path.write_text(json.dumps([sorted(names) for names in found]))
        except OSError:
            pass  # a kit that is not ours to write to
        return found

    def run(self):
        answer = {"refused": {}, "broken": {}, "built": False}
        self.lay_out()
        for name, problems in self.look().items():
            texts = [problem.describe(name)[:300] for problem in problems]
            if problems and all(problem.syntax for problem in problems):
                answer["broken"][name] = "\n".join(texts)
            elif problems:
                answer["refused"][name] = texts
        for name in [*answer["refused"], *answer["broken"]]:
            self.give(name)
        if (answer["refused"] or answer["broken"]) and not any(map(self.is_changed, self.files)):
            return answer  # nothing is left to run
        good, text = self.compile(self.out / "objects")
        if not good:
            self.find_broken(answer, text)
            if not any(map(self.is_changed, self.files)):
                return answer
            good, text = self.compile(self.out / "objects")
            if not good:
                raise whitelist.Unusable(f"what was handed out does not compile: {text}")
        if self.backend == "cpu":
            unobserved = self.find_unobserved()
            if unobserved:
                answer["refused"].update(unobserved)
                for name in unobserved:
                    self.give(name)
                if not any(map(self.is_changed, self.files)):
                    return answer
                good, text = self.compile(self.out / "objects")
                if not good:
                    raise whitelist.Unusable(f"what was handed out does not compile: {text}")
            found = self.find_forbidden()
            if found:  # one cannot tell whose they are
                for name in self.files:
                    answer["refused"].setdefault(name, [f"{name}: {text}" for text in found])
                return answer
        answer["built"] = True
        return answer

    def find_broken(self, answer, text):
        """Files that the compiler refuses and libclang does not: of several, each is tried alone."""
        left = [name for name in self.files if self.is_changed(name)]
        if len(left) == 1:
            answer["broken"][left[0]] = text
            self.give(left[0])
            return
        kept = {name: (self.source / self.step / name).read_bytes() for name in left}
        for name in left:
            for other in left:
                self.give(other)
            (self.source / self.step / name).write_bytes(kept[name])
            shutil.rmtree(self.out / "objects")
            good, its_text = self.compile(self.out / "objects")
            if not good:
                answer["broken"][name] = its_text
        if not any(name in answer["broken"] for name in left):  # each alone compiles
            answer["broken"].update((name, text) for name in left)
        for name in left:
            if name in answer["broken"]:
                self.give(name)
            else:
                (self.source / self.step / name).write_bytes(kept[name])

    def find_unobserved(self):
        """{file: [what the compiler lets happen in it without a call of simt]}."""
        files = {str(self.source / self.step / name): name for name in self.files if self.is_changed(name)}
        found = {}
        if "clang" in (self.kit / "compiler").read_text(encoding="utf-8"):
            return found  # it announces what it copies
        for source in self.source.glob(f"{self.step}/*.cu"):
            if (self.out / "objects" / f"{source.name}.o").exists():
                with open(self.out / "objects" / f"{source.name}.gimple", encoding="utf-8", errors="replace") as lines:
                    found.update(gimple.unobserved(lines, files))
        return {name: [f"{name}:{line}: {what}: such accesses are not observed; copy to or from a local variable"]
                for name, (line, what) in found.items()}  # fmt: skip

    def find_forbidden(self):
        """What the objects do and no kernel may: texts."""
        objects = list((self.out / "objects").glob("*.o"))
        called, defined, calling = self.given_symbols()
        names = forbidden(symbols(objects), (called, defined), symbols([self.kit / "runner.a"]))
        names = names and sorted(set(names) - of_headers(objects))
        return ([f"its object file calls or defines {', '.join(names)[:200]}"] if names else []) + [
            f"its object file calls a function through a pointer, in {name[:200]}"
            for name in sorted(calling_pointers(objects) - calling)]  # fmt: skip


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        print(json.dumps(Build(json.loads(sys.argv[1])).run()))
    except (whitelist.NoClang, whitelist.Unusable, OSError, subprocess.CalledProcessError) as error:
        print(json.dumps({"failure": str(error)[:MOST_TEXT]}))


if __name__ == "__main__":
    main()
