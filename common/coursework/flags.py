"""What in a student's files a person should look at: flags.py looks at the text and at the object file.

A flag costs no points. It names a line, a construct, and what the construct could do: hide an access from the
CPU backend, so that counters and reports of races say too little, or change code that is not the student's.
Whether a product is right is the judge's alone to say, from y, and nothing in a file can change that.

    flags_of(text, around)           of one file
    flags_of_compiler(said, name)    by what the compiler says of it
    flags_of_objects(objects, ...)   of what was compiled

Comments, include guards, macros, helpers, standard headers and CUDA's own constructs are no flags.
"""

import re
import subprocess
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from exercises import ROOT

UNSET = "on a GPU it holds any value, if it is not set before"
HIDES = "accesses of it may not be counted and checked"
CHANGES = "it may change code that is not the student's"
MOST_FLAGS = 20  # of a file


@dataclass(frozen=True)
class Flag:
    line: int
    construct: str
    could: str

    def describe(self, name):
        return f"{name}:{self.line}: {self.construct}: {self.could}"

    def placed(self, texts, word):
        """(file, this flag at the first line there that has the word). texts: {file: text}."""
        for name, text in texts.items():
            code = code_of(text)
            if found := re.search(rf"\b{re.escape(word)}\b", code):
                return name, replace(self, line=line_of(code, found.start()))
        return next(iter(texts)), replace(self, line=1)


# --- The text of a file ---------------------------------------------------------------------------

HIDDEN = (
    re.compile(  # comments, literals, and what is switched off, up to what may be the end of it
        r"""//[^\n]*|/\*.*?(?:\*/|\Z)
    |(?P<literal>\b(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"
      |(?:(?<!\w)|\bu8|\b[uUL])'(?:\\.|[^'\\\n])+')
    |^[ \t]*\#[ \t]*if[ \t]+0[ \t]*$[^\v]*?(?=endif|else|elif)""",
        re.VERBOSE | re.DOTALL | re.MULTILINE,
    )
)


def code_of(text):
    """A source without comments, without what is between quotes and what `#if 0` switches off, line by line."""
    text = re.sub(r"\\[ \t]*\n", "\v", text)  # a line that goes on
    text = HIDDEN.sub(
        lambda match: (
            ('""' if match["literal"] else " ") + "".join(re.findall(r"[\n\v]", match[0]))
        ),
        text,
    )
    return re.sub(r"(?<=\w)\v(?=\w)", " @ \v", text)  # a word that goes on in the next line


def line_of(code, at):
    return 1 + len(re.findall(r"[\n\v]", code[:at]))


def words_of(code):
    return set(re.findall(r"[^\W\d]\w*", code))


# Names with two underscores that are no names of CUDA, though simt's own sources have them.
NOT_CUDA = re.compile(
    r"__(attribute|asm|builtin|atomic|sync_|tsan|sanitizer|typeof|extension|label|auto_type|has_|c11|thread\b|ATOMIC|"
    r"SANITIZE|cxa|va_|dso)"
)
COMPILERS = set(
    "__restrict __restrict__ __inline __inline__ __volatile__ __func__ __FUNCTION__ __PRETTY_FUNCTION__ __FILE__ __LINE__ "
    "__DATE__ __TIME__ __cplusplus __GNUC__ __clang__ __NVCC__ __VA_ARGS__ __VA_OPT__ __signed__ __const __alignof__ "
    "__attribute__ __pragma __int128 __builtin_expect __CUDA_ARCH__ __CUDACC__ __CUDACC_RTC__ __STDC_VERSION__ __has_include".split()
)
ATTRIBUTES = set(
    "maybe_unused nodiscard fallthrough likely unlikely deprecated no_unique_address unused aligned always_inline noinline "
    "__unused__ __aligned__ __always_inline__ __noinline__".split()
)
ATTRIBUTE = re.compile(
    r"\[\s*\[(.*?)\]\s*\]|__attribute__(?:\s*\(\s*\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)\s*\))?",
    re.DOTALL,
)
KEYWORDS = set(
    "auto bool break case char class const constexpr continue default do double else enum extern float for if inline int "
    "long namespace operator return short signed sizeof static struct switch template this typedef typename union "
    "unsigned using void volatile while alignas alignof catch decltype static_assert".split()
)
ANOTHERS = r"(?:std|simt|device|coursework|cooperative_groups|cuda)"  # namespaces


@lru_cache
def cuda_names():
    """Names with two leading underscores that the CPU backend defines as CUDA does."""
    sources = [*(ROOT / "common/simt").glob("*.hpp"), *(ROOT / "common/simt/include").rglob("*.h")]
    names = set(
        re.findall(r"\b__\w+", "".join(path.read_text(encoding="utf-8") for path in sources))
    )
    return {name for name in names if not NOT_CUDA.match(name)} | COMPILERS


def declared(code):
    """{name: where} of functions and types that source declares."""
    found = {}
    for match in re.finditer(
        r"\b(?:struct|class|union|enum|concept)\s+(\w+)|\busing\s+(\w+)\s*=|([\w>*&]+)\s+[*&]*(\w+)\s*\(",
        code,
    ):
        name = match[1] or match[2] or match[4]
        if name not in KEYWORDS and match[3] not in ("return", "else"):
            found.setdefault(name, match.start())
    return found


class Around:
    """The step's other files, which a file must not change."""

    def __init__(self, course, step, name):
        self.given = code_of((course / "given" / name).read_text(encoding="utf-8"))
        self.given_words = words_of(self.given)
        self.words, self.called = set(), set()
        for path in (p.relative_to(course / step) for p in (course / step).rglob("*.[ch][up]*")):
            if path == Path(name):
                continue
            handed_out = course / "given" / path
            source = handed_out if handed_out.exists() else course / step / path
            code = code_of(source.read_text(encoding="utf-8", errors="replace"))
            self.words |= words_of(code)
            if not handed_out.exists():
                self.called |= set(re.findall(r"(?<![.>:\w])([^\W\d]\w*)\s*(?=[(<{]|::)", code))
        self.called -= set(declared(self.given))
        self.words -= set(re.findall(r"#\s*define\s+(\w+)", self.given))


# What is looked for in the code: (expression, what it is called, what it could do).
CONSTRUCTS = [
    (re.compile(expression, re.MULTILINE), construct, could)
    for expression, construct, could in (
        (r"\b(?:asm|__asm|__asm__)\b|\\[uU]\w+", "'{0}'", HIDES),
        (r"\w+ @ \v\w+", "a word in two lines, '{0}'", HIDES),
        (r"^[ \t\v]*%:", "'%:'", "a directive in disguise"),
        (
            r"^[ \t\v]*#[ \t\v]*pragma\b(?![ \t\v]*(?:once|(?:no)?unroll|GCC\s+(?:unroll|diagnostic)|nv_|diag_|omp\s+simd|(?:end)?region|warning|message)).*|\b_Pragma\b|\b(?:gnu|__gnu__|clang)\s*::?\s*\w*",
            "{0}",
            f"for the compiler alone: {HIDES}",
        ),
        (
            r"^[ \t\v]*#[ \t\v]*(?:\d|line\b|embed|include_next|import).*",
            "{0}",
            "reports may name another line, or another file is read",
        ),
        (r"\bnamespace\s+(?:\w+\s*::\s*)*" + ANOTHERS + r"\s*(?:::\s*\w+\s*)*\{", "{0}", CHANGES),
        (r"\b(?!case\b)[^\W\d]\w*\s+\w+\s*:\s*\d+\s*[;,]", "the bit-field '{0}'", HIDES),
        (r"\boperator\s*(?:new|delete|,|&(?!&)|\"\")", "{0}", CHANGES),
        (
            r"(?<![.>:])\btemplate\s*(?:<\s*>|(?=\w))[^{;(]*\b" + ANOTHERS + r"\s*::",
            "a specialisation or instantiation of another's template",
            CHANGES,
        ),
        (
            r"\b(?:simt|coursework)\b|\bcuda[A-Z]\w*(?=\s*\()",
            "'{0}'",
            f"a name of the CPU backend's or of CUDA's runtime: {HIDES}, or {CHANGES}",
        ),
    )
]


def flags_of(text, around):
    """[Flag] of a file's text."""
    code, found = code_of(re.sub(r'_Pragma\s*\(\s*"(?:no)?unroll\b[^"\n]*"\s*\)', " ", text)), []

    def flag(at, construct, could):
        shown = " ".join(construct.replace("\v", " ").split())[:80]
        found.append(Flag(line_of(code, at), shown, could))

    pastes = re.search("##|%:%:", code)
    if pastes and not all(is_harmless(name, around) for name in pasted(code)):
        flag(pastes.start(), f"'{pastes[0]}'", "pasted tokens spell a name, unseen")
    for expression, construct, could in CONSTRUCTS:
        for match in expression.finditer(code):
            flag(match.start(), construct.format(match[0]), could)
    for match in ATTRIBUTE.finditer(code):
        inside = match[1] if match[1] is not None else match[2] or "__attribute__"
        if match[1] is None or re.match(r"\s*[^\W\d]\w*\s*(,|\(|$)", inside):
            for name in sorted(
                words_of(re.sub(r"\([^()]*\)", "", re.sub(r"\([^()]*\)", "", inside))) - ATTRIBUTES
            ):
                flag(match.start(), f"the attribute {name}", f"{HIDES}, or {CHANGES}")
    for match in re.finditer(r"\b(?:__|_[A-Z])\w*", code):
        if match[0] not in cuda_names() | around.given_words:
            flag(
                match.start(),
                f"'{match[0]}'",
                f"a name of the compiler's, and none of CUDA's: {HIDES}",
            )
    for match in re.finditer(r"\bdevice\s*::\s*(\w+)", code):
        if match[1] not in around.given_words | {"fetch"}:
            flag(match.start(), f"'device::{match[1]}'", f"a name of the harness's: {CHANGES}")
    for match in re.finditer(r"#\s*define\s+(\w+)", code):
        if match[1] in KEYWORDS or match[1] in around.words - around.given_words:
            flag(match.start(), f"#define {match[1]}", f"the name is in use elsewhere; {CHANGES}")
    for match in re.finditer(r"^[ \t\v]*#[ \t\v]*include\s*(<[\w/ .]+>)?", code, re.MULTILINE):
        quoted = re.search(r'"(.*?)"', text.split("\n")[line_of(code, match.end()) - 1])
        if not match[1] and not (quoted and is_known_file(quoted[1])):
            flag(
                match.end(),
                f"#include {quoted[1] if quoted else ''}",
                "a file that is not the student's to include",
            )
    for name, at in declared(code).items():
        if name in around.called and name not in around.given_words:
            flag(
                at,
                f"a declaration of '{name}'",
                f"the code around the kernels uses this name; {CHANGES}",
            )
    for number, line in enumerate(text.split("\n"), 1):
        if re.search("[\u202a-\u202e\u2066-\u2069]", line):
            found.append(
                Flag(
                    number,
                    "a character that changes the direction of text",
                    "it reads otherwise than it is compiled",
                )
            )
    return sorted(set(found), key=lambda flag: flag.line)[:MOST_FLAGS]


def pasted(code):
    """The words that `##` makes in a source, by the preprocessor, or None in place of one if what it makes depends on others'
    macros."""
    if re.search(r"^[ \t\v]*#[ \t\v]*(?:if\b|elif|ifdef)", code, re.MULTILINE):
        return {None}
    own = re.sub(
        r"^[ \t]*#(?![ \t]*(?:define|undef)\b)[^\n]*",
        "",
        code.replace("\v", "\\\n"),
        flags=re.MULTILINE,
    )
    done = subprocess.run(
        ["g++", "-E", "-P", "-undef", "-xc++", "-"], input=own, capture_output=True, text=True
    )
    return words_of(done.stdout) - words_of(code) if done.returncode == 0 else {None}


def is_harmless(name, around):
    return (
        name is not None
        and not re.match(r"__|_[A-Z]|asm$|simt$|coursework$|cuda[A-Z]", name)
        and name not in KEYWORDS | around.words
    )


def is_known_file(name):
    return (
        ".." not in name
        and (ROOT / "common" / name).is_file()
        and name.startswith("device/")
        or "/" not in name
    )


def flags_of_compiler(said, name):
    """[Flag] of variables that are used before they are set, on some path. (Not of an argument of CUDA's functions, where the
    compiler names simt: that a lane gives what it has not set to a shuffle is usual, and no matter if none takes it.)"""
    found = re.findall(
        rf"^{re.escape(name)}:(\d+):\d+: warning: (.*used uninitialized)", said, re.MULTILINE
    )
    return [Flag(int(line), re.sub("[‘’]", "'", text), UNSET) for line, text in sorted(set(found))][
        :MOST_FLAGS
    ]


# --- Object files ---------------------------------------------------------------------------------

# What the compiler calls of its own: long arithmetic, guards of the stack and checked copies (Ubuntu's default).
COMPILED = re.compile(
    r"__\w*[dtsx][ifc]\d?$|__stack_chk_fail$|__\w+_chk$|mem(cpy|set|move|cmp)$|(printf|puts|putchar|__assert_fail)$|__tsan_|"
    r"__ubsan_|__sanitizer_cov_trace_pc$|_GLOBAL_OFFSET_TABLE_$|__tls_get_addr$|__gxx_personality_v0$|_Unwind_Resume$|"
    r"__cxa_(guard_\w+|atexit)$|__dso_handle$"
)
# Functions and variables of the step's namespace, and what the compiler makes of the standard library's templates.
OWN = re.compile(r"_Z(GV|T[HWVISC])?Z?(N[rVKRO]*)?(4spmv|\d+_GLOBAL__N|St|S[absiod])|DW\.ref\.")


@lru_cache
def arithmetic():
    """The functions of the C library for mathematics."""
    path = subprocess.run(
        ["gcc", "-print-file-name=libm.so.6"], capture_output=True, text=True
    ).stdout.strip()
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", path], capture_output=True, text=True
    ).stdout
    return set(re.findall(r" [TWi] (\w+)@", listed))


def printed(*command, **options):
    """What a command prints. Raises CalledProcessError."""
    return subprocess.run(command, capture_output=True, text=True, check=True, **options).stdout


def symbols(paths):
    """(called, defined) names of object files; defined are those that others could be linked to."""
    called_, defined = set(), set()
    for line in printed("readelf", "-sW", *paths).splitlines():
        words = line.split()
        if len(words) >= 8 and words[4] in ("GLOBAL", "WEAK", "UNIQUE"):
            if words[6] != "UND":
                defined.add(words[7])
            elif words[3] != "TLS":  # an `extern __shared__` array
                called_.add(words[7])
    return called_, defined


def functions(paths):
    """(those that call through a pointer; those of the step's namespace that others call, which take or return an
    object by value) of object files, demangled."""
    by_pointer, by_value, function = set(), set(), ""
    for line in printed("objdump", "-drC", "--no-show-raw-insn", *paths).splitlines():
        target = re.search(
            r"\t(?:call|jmp|bl?)\w* +[0-9a-f]+ <(.*)>$|: R_\w+(?:PLT32|CALL26|JUMP26)\t(.*?)(?:-0x[0-9a-f]+)?$",
            line,
        )
        if line.endswith(">:"):
            function = re.sub(r" \[clone.*", "", line[line.index("<") + 1 : -2])
        elif re.search(r"\tcall\w*\s+\*|\tblra?\w*\s", line):  # x86-64, AArch64
            by_pointer.add(function)
        elif target:
            name = re.sub(r" \[clone.*", "", target[1] or target[2])
            if name != function and takes_objects(name):
                by_value.add(name)
    return by_pointer, by_value


def without_brackets(text):
    """A demangled name without template arguments."""
    while (shorter := re.sub(r"<[^<>]*>", "", text)) != text:
        text = shorter
    return text


def takes_objects(name):
    """Whether a function of namespace spmv takes or returns an object by value, by its demangled name."""
    found = re.fullmatch(
        r"(?:(.*) )?spmv::(?!device|simt|coursework)([\w:~]+(?:<.*>)?)\((.*)\)(?: const)?", name
    )
    if not found or "{lambda" in name:
        return False
    types = without_brackets(re.sub(r"\([^()]*\)", "*", f"{found[1] or ''},{found[3]}")).split(",")
    plain = re.compile(
        r"(unsigned |signed |const |long |short )*(void|bool|char|short|int|long|float|double)?|.*[*&]|.*cooperative_groups.*"
    )
    return any(not plain.fullmatch(type_.strip()) for type_ in types)


def of_headers(paths):
    """Weak symbols of object files that are functions of the harness's headers, by the place in the source that the
    compiler names."""
    listed = printed("nm", "-l", "--defined-only", *paths, errors="replace")
    return set(
        re.findall(
            rf"^\w+ [WVu] (\S+)\t(?:{re.escape(str(ROOT))}/common|/usr)/", listed, re.MULTILINE
        )
    )


# What makes a pointer to a function of something else. (A function that is passed to another needs none of it.)
MAKES_POINTERS = re.compile(
    r"\b(bit_cast|reinterpret_cast|union|mem\w+|u?intptr_t|volatile)\b|\(\s*\*+\s*\w*\s*\)\s*\(|::\s*\*|\)\s*(0x|\d)"
)


def flags_of_objects(objects, kit, texts):
    """[(name, Flag at line 0)] of the objects of a step. kit: the archive that they are linked with; texts: {file: text} of what
    a student changed. The name is the one to look for there: what is not named there is not the student's."""
    code = " ".join(code_of(text) for text in texts.values())
    named = words_of(code) | (pasted(code) - {None} if re.search("##|%:%:", code) else set())

    def own(names):
        """{symbol: its name in the source} of those that are named there, with their classes."""
        plain = subprocess.run(
            ["c++filt", *names], capture_output=True, text=True, stdin=subprocess.DEVNULL
        ).stdout
        plain = plain.replace("(anonymous namespace)::", "").splitlines()
        plain = [re.sub(r"\(.*", "", without_brackets(line)).split()[-1] for line in plain]
        return {symbol: name for symbol, name in zip(names, plain) if words_of(name) <= named}

    objects = list(objects)
    called_, defined = symbols(objects)
    kit_called, kit_defined = symbols([kit])
    by_pointer, by_value = functions(objects)
    strange = [
        n
        for n in called_ - kit_called - kit_defined - arithmetic()
        if not COMPILED.match(n) and not OWN.match(n)
    ]
    replaced = own(list(defined & (kit_called | kit_defined)))
    for symbol in of_headers(objects) if replaced else ():
        replaced.pop(symbol, None)
    for construct, found, could in (
        ("a call of '{}'", own(strange), "it is the system's or the host's"),
        ("a definition of '{}'", replaced, f"in the place of another: {CHANGES}"),
        (
            "a call through a pointer in '{}'",
            own(list(by_pointer)) if MAKES_POINTERS.search(code) else {},
            "what it calls cannot be told",
        ),
        (
            "'{}' takes or returns an object by value, and is not inlined",
            own(list(by_value)),
            HIDES,
        ),
    ):
        for name in sorted(set(found.values())):
            yield name.split("::")[-1], Flag(0, construct.format(name[:80]), could)
