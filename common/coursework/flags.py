"""What a student's files can do besides multiplying, by the object files that come out of them.

A flag costs no points. It names a line, a construct, and what the construct could do: hide an access from the
CPU backend, so that counters and reports of races say too little, or change code that is not the student's.
Whether a product is right is the judge's alone to say, from y, and nothing in a file can change that.

    refused(objects)         why they are not linked: code that would run before the runner is confined
    flags_of(objects, ...)   by symbols and instructions
    flags_of_compiler(...)   by what the compiler says
    assembly_in(text, ...)   the only look at the text: what makes assembly leaves no trace in an object
"""

import re
import subprocess
from dataclasses import astuple, dataclass, field
from functools import lru_cache

UNSET = "on a GPU it holds any value, if it is not set before"
HIDES = "accesses of it may not be counted and checked"
CHANGES = "it may change code that is not the student's"
EARLY = "it runs before the judge asks for a product"
MOST_FLAGS = 20  # of a submission


@dataclass(frozen=True)
class Flag:
    file: str
    line: int  # 0: not known
    construct: str
    could: str

    def describe(self):
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.construct}: {self.could}"


# --- Names ----------------------------------------------------------------------------------------

# What CUDA's built-ins call of simt (builtins.hpp, cuda_atomic.hpp, groups.hpp), demangled.
CUDA = re.compile(
    r"simt::(collective|barrier|yield|fence|acquire|read_only_load|wait_for_previous_grid|trap|nanoseconds|texture_fetch|grid_sync|atomic_\w+)\(|"
    r"(thread|block)Idx$|(block|grid)Dim$|__\w+\("
)
# What the compiler calls of its own: long arithmetic, guards, what it observes accesses with (copies, too).
COMPILED = re.compile(
    r"__\w*[dtsx][ifc]\d?$|__stack_chk_fail$|simt_mem\w+$|__tsan_|__ubsan_|__sanitizer_cov_trace_pc$|(printf|puts|putchar|__assert_fail)$|"
    r"_GLOBAL_OFFSET_TABLE_$|__tls_get_addr$|__gxx_personality_v0$|_Unwind_Resume$|__cxa_guard_\w+$|DW\.ref\."
)
# Functions of the C library that read or write memory which the compiler does not announce.
UNSEEN = re.compile(r"(mem|str|wcs|wmem|bcmp|bcopy)\w*$|_ZSt11_Hash_bytes")


def printed(*command, **options):
    """What a command prints. Raises CalledProcessError."""
    how = {"capture_output": True, "text": True, "errors": "replace", "check": True}
    return subprocess.run(command, **how, **options).stdout


@lru_cache
def arithmetic():
    """The functions of the C library for mathematics."""
    path = printed("gcc", "-print-file-name=libm.so.6").strip()
    return set(re.findall(r" [TWi] (\w+)@", printed("nm", "-D", "--defined-only", path)))


def plain(names):
    """{symbol: its name in the source}."""
    names = sorted(names)
    demangled = printed("c++filt", input="\n".join(names)).splitlines()
    return dict(zip(names, demangled))


def symbols(paths):
    """(undefined, strong, all defined) names of object files that others could be linked to."""
    undefined, strong, defined = set(), set(), set()
    for line in printed("readelf", "-sW", *paths).splitlines() if paths else ():
        words = line.split()
        if len(words) < 8 or words[4] not in ("GLOBAL", "WEAK", "UNIQUE"):
            continue
        if words[6] != "UND":
            defined.add(words[7])
            strong |= {words[7]} if words[4] == "GLOBAL" else set()
        elif words[3] != "TLS":  # an `extern __shared__` array
            undefined.add(words[7])
    return undefined, strong, defined


# --- Functions ------------------------------------------------------------------------------------


@dataclass
class Function:
    name: str
    calls: dict = field(default_factory=dict)  # {symbol: (file, line) of the student's, before it}
    place: tuple = None  # the first line of the student's in it
    by_pointer: tuple = None  # where it calls through a pointer
    observed: bool = False  # its accesses are announced
    accesses: tuple = None  # where it accesses memory beyond its stack
    starts: bool = False  # it is called when the program starts


LINE = re.compile(r"(/\S.*):(\d+)(?: \(discriminator \d+\))?$")
RELOCATION = re.compile(r"\s+[0-9a-f]+: R_\w+\s+(\S+?)(?:[-+]0x[0-9a-f]+)?$")
POINTED = re.compile(r"\t(?:call|jmp)\w*\s+\*(?!.*\(%rip\))(?!.*,8\))|\tblra?\w*\s")
BEYOND_STACK = re.compile(r"\t(?!lea|nop).*\((?!%[re]?[sbi]p\b)%\w+")  # x86-64
START = re.compile(r"_GLOBAL__|.*__static_initialization_and_destruction_0|__cxx_global_var_init")


def functions(paths, files):
    """{symbol: Function} of object files; `files`: {the end of a path: its name} of the student's."""
    found = {}
    relocated = r"R_\w+ +[0-9a-f]+ (\S+)(?: \+ ([0-9a-f]+))?"
    for path in paths:
        entries = set(re.findall(relocated, section(path, r"\.init_array")))
        function, place = None, None
        for line in printed("objdump", "-drl", "--no-show-raw-insn", path).splitlines():
            if heading := re.match(r"Disassembly of section (\S+):", line):
                place_of_section = heading[1]
            elif heading := re.match(r"([0-9a-f]+) <(.+)>:$", line):
                name = heading[2]
                function, place = found.setdefault(name, Function(name)), None
                at = place_of_section, heading[1].lstrip("0") or "0"
                begins = START.match(name) or (name, "0") in entries or at in entries
                function.starts |= bool(begins)
            elif not function:
                continue
            elif source := LINE.fullmatch(line):
                own = next((n for end, n in files.items() if source[1].endswith(end)), None)
                if own:
                    place = own, int(source[2])
                    function.place = function.place or place
            elif relocation := RELOCATION.match(line):
                symbol = relocation[1]
                function.observed |= symbol.startswith("__tsan_")
                if not symbol.startswith("."):
                    function.calls.setdefault(symbol, place)
            elif POINTED.search(line):
                function.by_pointer = function.by_pointer or place or ("", 0)
            elif BEYOND_STACK.search(line):
                function.accesses = function.accesses or place
    return found


def section(path, name):
    """The relocations of an object file's sections of a name."""
    text = printed("readelf", "-rW", path)
    return "".join(re.findall(rf"Relocation section '\.rela{name}[^']*'(?s:.*?)(?=\n\n|\Z)", text))


def without_brackets(text):
    """A demangled name without template arguments."""
    while (shorter := re.sub(r"<[^<>]*>", "", text)) != text:
        text = shorter
    return text


def takes_objects(name):
    """Whether a function of namespace spmv takes or returns an object by value, by its demangled name."""
    own = r"(?:(.*) )?spmv::(?!device|simt|coursework)([\w:~]+(?:<.*>)?)\((.*)\)(?: const)?"
    found = re.fullmatch(own, name)
    if not found or "{lambda" in name:
        return False
    types = without_brackets(re.sub(r"\([^()]*\)", "*", f"{found[1] or ''},{found[3]}")).split(",")
    kind = re.compile(
        r"(unsigned |signed |const |long |short )*(void|bool|char|short|int|long|float|double)?|.*[*&]|.*cooperative_groups.*"
    )
    return any(not kind.fullmatch(type_.strip()) for type_ in types)


# --- Flags ----------------------------------------------------------------------------------------


def refused(objects):
    """Why objects are not linked: something in them would run before the runner is confined (confine.cpp); or ""."""
    for path in objects:
        for name in re.findall(r"(?m)^ +\[ *\d+\] (\.\S+)", printed("readelf", "-SW", path)):
            found = re.fullmatch(r"\.(?:preinit_array.*|ctors.*|init|init_array\.(\d+))", name)
            if found and not (found[1] and is_compilers(path, name)):
                return f"it has a section {name}, which runs before all else"
        if re.search(r" IFUNC ", printed("readelf", "-sW", path)):
            return "it has an ifunc, which runs before all else"
    return ""


def is_compilers(path, name):
    """Whether all that an object's section of initialisers with a priority calls is the compiler's own."""
    called = re.findall(r"R_\w+ +[0-9a-f]+ (\S+)", section(path, re.escape(name)))
    return name == ".init_array.00099" or all("san.module_ctor" in symbol for symbol in called)


def unexplained(objects, kit, files, given, functions_of, names):
    """(symbols that are called, symbols that are defined, functions that call through a pointer) which neither the kit nor the
    step as it was handed out explains."""
    undefined, strong, _ = symbols(objects)
    kit_undefined, _, kit_defined = symbols([kit])
    own = {name: function for name, function in functions_of.items() if function.place}
    called = {symbol for f in own.values() if not f.starts for symbol in f.calls}
    strange = {s for s in called & undefined - arithmetic() if not COMPILED.match(s)}
    strange = {symbol for symbol in strange if not CUDA.match(names[symbol])}
    replaced = strong & (kit_undefined | kit_defined)
    pointed = {name for name, function in own.items() if function.by_pointer}
    if strange or replaced or pointed:
        known, of_given = functions(given(), files), symbols(given())
        strange -= {symbol for symbol in of_given[0] if not UNSEEN.match(symbol)}
        replaced -= of_given[1]
        pointed -= {name for name in pointed & known.keys() if known[name].by_pointer}
    return strange, replaced, pointed


def doubts_of(name, function, functions_of, names):
    """(place, construct, symbol, what it could do) of a function of the student's."""
    if function.starts:
        yield function.place, "an initialiser", name, EARLY
        return
    if function.accesses and not function.observed:
        yield function.accesses, "'{}' is compiled without being observed", name, HIDES
    for symbol in function.calls.keys() & functions_of.keys() - {name}:
        if takes_objects(names[symbol]):
            what = "'{}' takes or returns an object by value, and is not inlined"
            yield function.calls[symbol] or function.place, what, symbol, HIDES


def flags_of(objects, kit, files, given):
    """[Flag] of a step's objects. kit: the archive that they are linked with; files: {the end of a path: its name} of the
    student's; given(): the objects as they were handed out, which are compiled only where there is something to explain."""
    objects = list(objects)
    all_of = functions(objects, files)
    own = {name: function for name, function in all_of.items() if function.place}
    called = {}  # {symbol: where}
    for function in own.values():
        for symbol, place in () if function.starts else function.calls.items():
            called.setdefault(symbol, place or function.place)
    names = plain({*called, *all_of, *symbols(objects)[1]})
    strange, replaced, pointed = unexplained(objects, kit, files, given, all_of, names)
    found = [(called[s], "a use of '{}'", s, "it is the system's or the host's") for s in strange]
    for name in replaced:
        place, could = all_of[name].place if name in all_of else None, "in the place of another"
        found.append((place, "a definition of '{}'", name, f"{could}: {CHANGES}"))
    for name in (name for name in pointed if not own[name].starts):
        what = "a call through a pointer in '{}'"
        found.append((own[name].by_pointer, what, name, "what it calls cannot be told"))
    for name, function in own.items():
        found += doubts_of(name, function, all_of, names)
    first, short = next(iter(files.values()), ""), r"\(.*|^.* (?<!operator )(?=[\w:~]+\()"
    flags = set()
    for place, construct, symbol, could in found:
        name = re.sub(short, "", without_brackets(names.get(symbol, symbol)))
        flags.add(Flag(*(place or (first, 0)), construct.format(name[:80]), could))
    return sorted(flags, key=lambda flag: (flag.could != EARLY, *astuple(flag)))[:MOST_FLAGS]


def flags_of_compiler(said, name, shown):
    """[Flag] of variables that are used before they are set, on some path. (Not of an argument of CUDA's functions, where the
    compiler names simt: that a lane gives what it has not set to a shuffle is usual, and no matter if none takes it.)"""
    warning = rf"(?m)^{re.escape(name)}:(\d+):\d+: warning: (.*used uninitialized)"
    found = sorted(set(re.findall(warning, re.sub("[‘’]", "'", said))))
    return [Flag(shown, int(line), text, UNSET) for line, text in found]


# --- Text -----------------------------------------------------------------------------------------

MAY_BE_ASSEMBLY = re.compile(r"asm|##|%:%:|\\[ \t]*\n")
ASSEMBLY = re.compile(r"\b(?:asm|__asm|__asm__)\b\s*(?:volatile|__volatile__|goto|inline|\s)*[({]")
# Pragmas for the compiler alone, which could silence its warnings, and lines that say where the text is from.
SILENCING = re.compile(
    r"^(?:[ \t]|\\\n)*(?:#|%:)(?:[ \t]|\\\n)*(?:pragma(?:[ \t]|\\\n)+(?:GCC|clang)\b(?![ \t]+(?:unroll|ivdep))|line\b|\d)"
    r"(?:[^\n]*\\\n)*[^\n]*",
    re.MULTILINE,
)


def unsilenced(text):
    """A file's text with empty lines in place of such."""
    return SILENCING.sub(lambda match: "\n" * match[0].count("\n"), text)


def assembly_in(preprocessed, files):
    """[Flag] of assembly in what the preprocessor makes of a source, in lines of the student's."""
    found, file, line = [], None, 0
    for row in preprocessed.splitlines():
        if marker := re.match(r'# (\d+) "(.*?)"', row):
            file = next((n for end, n in files.items() if marker[2].endswith(end)), None)
            line = int(marker[1])
            continue
        if file and ASSEMBLY.search(row):
            found.append(Flag(file, line, "'asm'", HIDES))
        line += 1
    return sorted(set(found), key=lambda flag: flag.line)[:MOST_FLAGS]
