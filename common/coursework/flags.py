"""What in a student's files a person should look at: flags.py looks at the text and at the object file.

A flag costs no points. It names a line, a construct, and what the construct could do: hide an access from the
CPU backend, so that counters and reports of races say too little, or change code that is not the student's.
Whether a product is right is the judge's alone to say, from y, and nothing in a file can change that.

    flags_of(text, around)           of one file
    flags_of_objects(objects, ...)   of what was compiled

Comments, include guards, macros, helpers, standard headers and CUDA's own constructs are no flags.
"""

import bisect
import re
import subprocess
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from exercises import ROOT

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
            for token in tokens_of(text)[0]:
                if token.text == word:
                    return name, replace(self, line=token.line)
        return next(iter(texts)), replace(self, line=1)


# --- Tokens ---------------------------------------------------------------------------------------

TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))
    |(?P<literal>(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"
      |(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"|(?:u8|[uUL])?'(?:\\.|[^'\\\n])+'|\.?\d(?:[eEpP][+-]|'?[\w.])*)
    |(?P<word>[^\W\d]\w*|\\[uU]\w+)
    |(?P<line>\n)
    |(?P<other>\#\#|%:|::|->|\S)""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class Token:
    line: int
    kind: str  # "word", "literal", "other"
    text: str


def tokens_of(text):
    """(the tokens of a source, without comments and what stands between `#if 0` and its end; its directives, each a list
    of tokens)."""
    joined, cuts = "", []  # places at which a line was continued
    for piece in re.split(r"\\[ \t]*\n", text):
        joined += piece
        cuts.append(len(joined))
    ends = [match.start() for match in re.finditer("\n", joined)]
    tokens, directives, directive, fresh, skipped = [], [], None, True, 0
    for match in TOKEN.finditer(joined):
        kind = match.lastgroup if match.lastgroup != "mark" else "literal"
        if kind == "line":
            directive, fresh = None, True
        elif kind != "comment":
            at = match.start()
            token = Token(1 + bisect.bisect_left(ends, at) + bisect.bisect_right(cuts, at), kind, match[0])
            if fresh and token.text in ("#", "%:"):
                directive = []
                directives.append(directive)
            fresh = False
            if directive is not None:
                directive.append(token)
            if not skipped:
                tokens.append(token)
            words = [t.text for t in directive or []]
            if skipped and len(words) == 2:
                skipped += words[1] in ("if", "ifdef", "ifndef")
                skipped -= words[1] == "endif" or skipped == 1 and words[1] in ("else", "elif")
            elif words[1:] == ["if", "0"]:
                skipped = 1
    return tokens, directives


# --- Names ----------------------------------------------------------------------------------------

# Names with two underscores that are no names of CUDA, though simt's own sources have them.
NOT_CUDA = re.compile(
    r"__(attribute|asm|builtin|atomic|sync_|tsan|sanitizer|typeof|extension|label|auto_type|has_|c11|thread\b|ATOMIC|"
    r"SANITIZE|cxa|va_|dso)"
)
COMPILERS = set(
    "__restrict __restrict__ __inline __inline__ __volatile__ __func__ __FUNCTION__ __PRETTY_FUNCTION__ __FILE__ __LINE__ "
    "__DATE__ __TIME__ __cplusplus __GNUC__ __clang__ __NVCC__ __VA_ARGS__ __VA_OPT__ __signed__ __const __alignof__ "
    "__attribute__ __pragma __int128 __builtin_expect __CUDA_ARCH__ __CUDACC__ __CUDACC_RTC__ __STDC_VERSION__ __has_include".split()
)  # fmt: skip
ATTRIBUTES = set(
    "maybe_unused nodiscard fallthrough likely unlikely deprecated no_unique_address unused aligned always_inline noinline "
    "__unused__ __aligned__ __always_inline__ __noinline__".split()
)  # fmt: skip
ANOTHERS = {"std", "simt", "device", "coursework", "cooperative_groups", "cuda"}  # namespaces


@lru_cache
def cuda_names():
    """Names with two leading underscores that the CPU backend defines as CUDA does."""
    sources = [*(ROOT / "common/simt").glob("*.hpp"), *(ROOT / "common/simt/include").rglob("*.h")]
    names = set(re.findall(r"\b__\w+", "".join(path.read_text(encoding="utf-8") for path in sources)))
    return {name for name in names if not NOT_CUDA.match(name)} | COMPILERS


def declared(tokens):
    """{name: line} of functions and types that source declares."""
    found = {}
    for before, token, after in zip(tokens, tokens[1:], tokens[2:]):
        if token.kind != "word" or token.text in KEYWORDS or before.text in (".", "->", "::", "return", "else", "=", "(", ","):
            continue
        is_type = before.text in ("struct", "class", "union", "enum", "concept", "typename") or before.text == "using" and after.text == "="
        is_function = after.text == "(" and (before.kind == "word" or before.text in ">*&")
        if is_type and before.text != "typename" or is_function:
            found.setdefault(token.text, token.line)
    return found


def called(tokens):
    """Names that source calls, instantiates or qualifies with, by themselves."""
    return {token.text for before, token, after in zip(tokens, tokens[1:], tokens[2:])
            if token.kind == "word" and after.text in ("(", "<", "::", "{") and before.text not in (".", "->", "::")}  # fmt: skip


class Around:
    """The step's other files, which a file must not change."""

    def __init__(self, course, step, name):
        self.given = (course / "given" / name).read_text(encoding="utf-8")
        given = {path.relative_to(course / "given") for path in (course / "given").rglob("*")}
        others = [p.relative_to(course / step) for p in (course / step).rglob("*.[ch][up]*")]
        own = tokens_of(self.given)[0]
        self.given_words = {token.text for token in own}
        self.words, self.called = set(), set()
        for path in others:
            if path == Path(name):
                continue
            source = course / ("given" if path in given else step) / path
            tokens, _ = tokens_of(source.read_text(encoding="utf-8", errors="replace"))
            self.words |= {token.text for token in tokens if token.kind == "word"}
            if path not in given:
                self.called |= called(tokens)
        self.called -= set(declared(own))
        self.words -= {d[2].text for d in tokens_of(self.given)[1] if len(d) > 2 and d[1].text == "define"}


KEYWORDS = set(
    "auto bool break case char class const constexpr continue default do double else enum extern float for if inline int "
    "long namespace operator return short signed sizeof static struct switch template this typedef typename union "
    "unsigned using void volatile while alignas alignof catch decltype static_assert".split()
)  # fmt: skip


# --- The text of a file ---------------------------------------------------------------------------


def flags_of(text, around):
    """[Flag] of a file's text."""
    tokens, directives = tokens_of(text)
    found = [*flags_of_directives(directives, around), *flags_of_tokens(tokens, around)]
    for number, line in enumerate(text.split("\n"), 1):
        if re.search("[\u202a-\u202e\u2066-\u2069]", line):
            found.append(Flag(number, "a character that changes the direction of text", "it reads otherwise than it is compiled"))
    for name, line in declared(tokens).items():
        if name in around.called and name not in around.given_words:
            found.append(Flag(line, f"a declaration of '{name[:40]}'", f"the code around the kernels uses this name; {CHANGES}"))
    return sorted(set(found), key=lambda flag: flag.line)[:MOST_FLAGS]


def flags_of_directives(directives, around):
    for directive in directives:
        words = [token.text for token in directive]
        line, rest = directive[0].line, " ".join(words[2:])
        if words[0] == "%:":
            yield Flag(line, "'%:'", "a directive in disguise")
        elif words[1:2] == ["pragma"]:
            if not re.match(r"once|unroll|nounroll|GCC unroll|nv_|omp simd", rest):
                yield Flag(line, f"#pragma {rest[:40]}", HIDES)
        elif words[1:2] == ["define"] and len(words) > 2:
            if words[2] in KEYWORDS | around.words and words[2] not in around.given_words or words[2] in KEYWORDS:
                yield Flag(line, f"#define {words[2][:40]}", f"the name is in use elsewhere; {CHANGES}")
        elif words[1:2] == ["include"]:
            if not re.match(r"< [\w/ .]+ >$", rest) and not is_known_file(rest.strip('"')) and rest not in around.given:
                yield Flag(line, f"#include {rest[:60]}", "a file that is not the student's to include")
        elif len(words) > 1 and re.match(r"\d|line$|embed|include_next|import", words[1]):
            yield Flag(line, f"#{' '.join(words[1:])[:60]}", "reports may name another line, or another file is read")
        yield from (Flag(token.line, "'##'", "pasted tokens spell any name, unseen") for token in directive if token.text == "##")


def is_known_file(name):
    return ".." not in name and (ROOT / "common" / name).is_file() and name.startswith("device/") or "/" not in name


def flags_of_tokens(tokens, around):
    texts = [token.text for token in tokens] + [""] * 4
    for i, token in enumerate(tokens):
        if token.kind == "literal" or token.text in around.given_words and token.text not in ("device", "template", "namespace"):
            continue
        found = flag_of_attribute(texts, i) or flag_of_name(texts, i, around) or flag_of_declaration(texts, i)
        if found:
            yield Flag(token.line, *found)


def flag_of_attribute(texts, i):
    """(construct, what it could do) of an attribute that begins at i, or None."""
    text, after = texts[i], texts[i + 1]
    if text == "__attribute__" or text == after == "[":
        others = attributes(texts, i) - ATTRIBUTES
        return (f"the attribute {', '.join(sorted(others))[:60]}", f"{HIDES}, or {CHANGES}") if others else None
    if text in ("gnu", "__gnu__", "clang") and after in ("::", ":") or text == "_Pragma":
        return f"'{text}'", f"an attribute of the compiler's: {HIDES}"
    return None


def flag_of_name(texts, i, around):
    """The same of a name."""
    text, after, then = texts[i : i + 3]
    if text in ("asm", "__asm", "__asm__") or text.startswith("\\"):
        return f"'{text[:20]}'", HIDES
    if re.match(r"__|_[A-Z]", text) and text not in cuda_names():
        return f"'{text[:40]}'", f"a name of the compiler's, and none of CUDA's: {HIDES}"
    if text in ("simt", "coursework") or re.match(r"cuda[A-Z](?!extureObject_t$)", text) and after == "(":
        return f"'{text[:40]}'", f"a name of the CPU backend's or of CUDA's runtime: {HIDES}, or {CHANGES}"
    if text == "device" and after == "::" and then not in around.given_words | {"fetch"}:
        return f"'device::{then[:40]}'", f"a name of the harness's: {CHANGES}"
    return None


def flag_of_declaration(texts, i):
    """The same of what is declared."""
    before, (text, after, then) = texts[i - 1] if i else "", texts[i : i + 3]
    ahead = texts[i + 1 : i + 40]
    if text == "namespace" and before != "using" and "=" not in texts[i : i + 3]:
        name = ahead[: ahead.index("{")] if "{" in ahead else []
        return (f"namespace {after[:40]}", CHANGES) if ANOTHERS & set(name) else None
    if text == ":" and after.isdigit() and then == ";" and re.match(r"[^\W\d]\w* [\w>]", f"{before} {texts[i - 2]}") and texts[i - 2] != "case":
        return f"the bit-field '{before[:40]}'", HIDES
    if text == "operator" and after in ("new", "delete", ",", "&", '""'):
        return f"operator {after}", CHANGES
    if text == "template" and (after == "<" and then == ">" or after not in ("<", "") and before not in (".", "->", "::")):
        end = next((k for k in range(i, len(texts)) if texts[k] in ("{", ";", "(")), i)
        if ANOTHERS & {texts[k] for k in range(i, end) if texts[k + 1] == "::"}:
            return "a specialisation or instantiation of another's template", CHANGES
    return None


def attributes(texts, i):
    """The names in the [[...]] or __attribute__((...)) that begins at i."""
    depth, inside = 0, []
    for text in texts[i + (texts[i] != "[") : i + 200]:
        depth += text in ("(", "[")
        inside += [text] if depth == 2 and text not in ("(", "[") else []
        depth -= text in (")", "]")
        if depth == 0:
            break
    return {text for text in inside if re.match(r"[A-Za-z_]", text)}


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
    path = subprocess.run(["gcc", "-print-file-name=libm.so.6"], capture_output=True, text=True).stdout.strip()
    listed = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True).stdout
    return set(re.findall(r" [TWi] (\w+)@", listed))


def symbols(paths):
    """(called, defined) names of object files; defined are those that others could be linked to."""
    called_, defined = set(), set()
    for path in paths:
        done = subprocess.run(["readelf", "-sW", str(path)], capture_output=True, text=True, check=True)
        for line in done.stdout.splitlines():
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
    by_pointer, by_value = set(), set()
    for path in paths:
        command = ["objdump", "-drC", "--no-show-raw-insn", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        function = ""
        for line in done.stdout.splitlines():
            target = re.search(r"\t(?:call|jmp|bl?)\w* +[0-9a-f]+ <(.*)>$|: R_\w+\t(.*?)(?:-0x[0-9a-f]+)?$", line)
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
    found = re.fullmatch(r"(?:(.*) )?spmv::(?!device|simt|coursework)([\w:~]+(?:<.*>)?)\((.*)\)(?: const)?", name)
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
    found = set()
    for path in paths:
        command = ["nm", "-l", "--defined-only", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=True)
        found.update(re.findall(rf"^\w+ [WVu] (\S+)\t(?:{re.escape(str(ROOT))}/common|/usr)/", done.stdout, re.MULTILINE))
    return found


def described(objects):
    """What flags_of_objects() compares, as JSON can keep it."""
    objects = list(objects)
    called_, defined = symbols(objects)
    by_pointer, by_value = functions(objects)
    return {"called": sorted(called_), "defined": sorted(defined), "by_pointer": sorted(by_pointer), "by_value": sorted(by_value)}


# What makes a pointer to a function of something else. (A function that is passed to another needs none of it.)
MAKES_POINTERS = re.compile(r"\b(bit_cast|reinterpret_cast|union|mem\w+|u?intptr_t|volatile)\b|\(\s*\*+\s*\w*\s*\)\s*\(|::\s*\*|\)\s*(0x|\d)")


def flags_of_objects(objects, given, kit, texts):
    """[(name, Flag at line 0)] of the objects of a step. given: described() of the step as it was handed out; kit: the
    archive that they are linked with; texts: {file: text} of what a student changed. The name is the one to look for there."""
    text = " ".join(token.text for text in texts.values() for token in tokens_of(text)[0])
    objects = list(objects)
    built = {key: set(names) - set(given[key]) for key, names in described(objects).items()}
    kit_called, kit_defined = symbols([kit])
    strange = [n for n in built["called"] - kit_called - kit_defined - arithmetic() if not COMPILED.match(n) and not OWN.match(n)]
    replaced = built["defined"] & (kit_called | kit_defined) - of_headers(objects)
    texts = {
        "a call of '{}'": (strange, "it is the system's or the host's"),
        "a definition of '{}'": (replaced, f"in the place of another: {CHANGES}"),
        "a call through a pointer in '{}'": (built["by_pointer"] if MAKES_POINTERS.search(text) else [], "what it calls cannot be told"),
        "'{}' takes or returns an object by value, and is not inlined": (built["by_value"], HIDES),
    }
    for text, (names, could) in texts.items():
        plain = subprocess.run(["c++filt", *names], capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout
        for name in sorted({re.sub(r"\(.*", "", without_brackets(line)).split()[-1][:80] for line in plain.splitlines()}):
            yield name.split("::")[-1], Flag(0, text.format(name), could)
