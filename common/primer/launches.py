"""CUDA's launches as calls of C++, for the CPU backend: in a text that the preprocessor has been through, in
which `__global__` still stands, kernel<<<grid, block, shared, stream>>>(arguments) becomes
simt::configured(kernel, grid, block, shared, stream)(arguments); see simt/program.hpp. It goes by tokens, not
by grammar, and leaves every line where it is."""

import re
from typing import NamedTuple

TOKEN = re.compile(
    r"""(?P<skip>\s+|^[ \t]*\#[^\n]*|//[^\n]*|/\*.*?\*/)
    |(?P<text>(?:u8|[uUL])?R"(?P<delimiter>[^\s()\\]{0,16})\(.*?\)(?P=delimiter)"
        |(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"|(?:u8|[uUL])?'(?:\\.|[^'\\\n])*')
    |(?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)
    |(?P<word>[A-Za-z_$]\w*)
    |(?P<mark>->|::|&&|.)""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
PAIRS = {"(": ")", "[": "]", "{": "}"}
OPENING = {closing: opening for opening, closing in PAIRS.items()}
PROBE = "simt_kernel_"  # and the kernel's name: a function declared beside it, whose result is the kernel
# What the CPU backend has not, and what to do.
UNIFIED = "the CPU backend has no unified memory"
ARRAYS = "the CPU backend has no arrays for textures; linear textures (tex1Dfetch) it has"
REFUSED = {
    "cudaMallocManaged": f"{UNIFIED}: allocate with cudaMalloc, and copy with cudaMemcpy",
    "__managed__": f"{UNIFIED}: pass a pointer from cudaMalloc",
    "cudaMemPrefetchAsync": f"{UNIFIED}, and nothing to prefetch",
    "cudaLaunchKernel": "write the launch as kernel<<<grid, block>>>(arguments)",
    "cudaLaunchCooperativeKernel": "the CPU backend has cudaLaunchKernelEx for cooperative launches",
    "cudaSurfaceObject_t": "the CPU backend has no surfaces",
    "cudaArray_t": ARRAYS,
    "cudaMallocArray": ARRAYS,
    "wmma": "the CPU backend has no tensor cores",
}


class LaunchError(Exception):
    """A place of which no call can be made: (index of the character, what is wrong)."""


class Token(NamedTuple):
    kind: str
    text: str
    begin: int

    @property
    def end(self):
        return self.begin + len(self.text)


MARKER = re.compile(r'^# (\d+) "((?:[^"\\]|\\.)*)"((?: \d)*)\n', re.MULTILINE)


def own_parts(text, foreign):
    """(begin, end) of what comes neither from a system's header nor from a file for which foreign() holds."""
    begin, is_own = 0, True
    for match in MARKER.finditer(text):
        if is_own and match.start() > begin:
            yield begin, match.start()
        begin, is_own = match.start(), "3" not in match[3].split() and not foreign(match[2])
    if is_own:
        yield begin, len(text)


def place_of(text, index):
    """(file, line) of a character of a preprocessed text."""
    file, line, begin = "", 1, 0
    for match in MARKER.finditer(text, 0, index):
        file, line, begin = match[2], int(match[1]), match.end()
    return file, line + text.count("\n", begin, index)


class Text:
    """The tokens of a text, and what is to be changed in it."""

    def __init__(self, text, parts):
        self.text = text
        found = (match for begin, end in parts for match in TOKEN.finditer(text, begin, end))
        kinds = {"delimiter": "text"}
        self.tokens = [
            Token(kinds.get(match.lastgroup, match.lastgroup), match[0], match.start())
            for match in found
            if match.lastgroup != "skip"
        ]
        self.changes = []  # (begin, end, what comes there)
        self.bodies = []  # (begin, end) of kernels
        self.partner = {}  # of each bracket, by index
        open_ones = []
        for i, token in enumerate(self.tokens):
            if token.kind != "mark":
                continue
            if token.text in PAIRS:
                open_ones.append(i)
            elif token.text in OPENING:
                if open_ones and self.tokens[open_ones[-1]].text == OPENING[token.text]:
                    self.partner[i] = open_ones.pop()
                    self.partner[self.partner[i]] = i

    def at(self, i, *texts):
        """Whether the tokens from i on are these."""
        is_inside = i >= 0 and i + len(texts) <= len(self.tokens)
        return is_inside and all(self.tokens[i + k].text == t for k, t in enumerate(texts))

    def is_triple(self, i, mark):
        """Whether three such marks begin at token i, with nothing between."""
        return self.at(i, mark, mark, mark) and self.tokens[i + 2].begin == self.tokens[i].begin + 2

    def between(self, first, last):
        """The text of tokens first to last - 1, in one line."""
        if first >= last:
            return ""
        text = self.text[self.tokens[first].begin : self.tokens[last - 1].end]
        return re.sub(r"\s*\n(?:[ \t]*#[^\n]*\n)*\s*", " ", text)

    def behind_angles(self, i):
        """Behind the > that closes the < at token i."""
        depth = 0
        while i < len(self.tokens):
            text = self.tokens[i].text
            if text in PAIRS and i in self.partner:
                i = self.partner[i]
            elif text == "<":
                depth += 1
            elif text == ">":
                depth -= 1
                if depth == 0:
                    return i + 1
            i += 1
        return None

    def split(self, first, last):
        """Ranges of tokens between the commas that are in no bracket; angle brackets of templates count where they close."""
        ranges, begin, i = [], first, first
        while i < last:
            text = self.tokens[i].text
            if text in PAIRS and i in self.partner:
                i = self.partner[i]
            elif text == "<" and i > first and self.tokens[i - 1].kind == "word":
                behind = self.behind_angles(i)
                if behind and behind <= last:
                    i = behind - 1
            elif text == ",":
                ranges.append((begin, i))
                begin = i + 1
            i += 1
        return [*ranges, (begin, last)] if first < last else []

    def result(self):
        text = self.text
        # (Those of one place in their order: sorting keeps it.)
        for begin, end, new in reversed(sorted(self.changes, key=lambda change: change[0])):
            text = text[:begin] + new + text[end:]
        return text


# --- Kernels --------------------------------------------------------------------------------------


def parameter_names(source, first, last):
    """Names of a template's parameters, as arguments: "T, kLanes, Rest..."."""
    names = []
    for begin, end in source.split(first, last):
        level = next((k for k in range(begin, end) if source.tokens[k].text == "="), end)
        words = [k for k in range(begin, level) if source.tokens[k].kind == "word"]
        is_pack = any(source.at(k, ".", ".", ".") for k in range(begin, level))
        if len(words) < 2:
            return None  # without a name
        names.append(source.tokens[words[-1]].text + "..." * is_pack)
    return ", ".join(names)


def without_defaults(source, first, last):
    """The parameters between two tokens, as in a type."""
    return ", ".join(
        source.between(begin, next((k for k in range(begin, end) if source.at(k, "=")), end))
        for begin, end in source.split(first, last)
    )


def opening_of(source, k):
    """The token < that token k, a >, closes; -1 if none does."""
    depth = 0
    while k >= 0:
        text = source.tokens[k].text
        if text in OPENING and k in source.partner:
            k = source.partner[k]
        depth += (text == ">") - (text == "<")
        if depth == 0:
            break
        k -= 1
    return k


def template_before(source, i):
    """(first token of `template <...>` before token i, of its parameters, behind them) or None: walks back over words."""
    while i > 0 and (
        source.tokens[i - 1].kind in ("word", "text") or source.tokens[i - 1].text in (")", "]")
    ):
        i = source.partner.get(i - 1, i - 1) if source.tokens[i - 1].text in OPENING else i - 1
        if source.at(i, "template"):
            return None
    if not source.at(i - 1, ">"):
        return None
    k = opening_of(source, i - 1)
    return (k - 1, k + 1, i - 1) if k > 0 and source.at(k - 1, "template") else None


def find_kernels(source):
    """{name: "plain", or "probed": which one is meant follows from arguments}; declares what finds it."""
    kernels = {}
    for i, token in enumerate(source.tokens):
        if token.text != "__global__" or token.kind != "word":
            continue
        source.changes.append((token.begin, token.end, ""))
        # The name stands before the first bracket that is no attribute's.
        k = i + 1
        while k < len(source.tokens) and not source.at(k, "("):
            k += 1
        while k < len(source.tokens) and source.tokens[k - 1].text in ("__attribute__", "alignas"):
            k = source.partner.get(k, k) + 1
            while k < len(source.tokens) and not source.at(k, "("):
                k += 1
        if k not in source.partner or source.tokens[k - 1].kind != "word":
            continue  # a specialization
        name, behind = source.tokens[k - 1].text, source.partner[k] + 1
        head = template_before(source, i)
        if head and head[1] == head[2]:
            continue  # template <>
        while behind < len(source.tokens) and source.tokens[behind].text not in ("{", ";"):
            behind += 1
        if behind >= len(source.tokens):
            continue
        is_definition = source.at(behind, "{")
        end = source.tokens[source.partner.get(behind, behind)].end
        if is_definition:
            source.bodies.append((source.tokens[behind].begin, end))
        known = kernels.setdefault(name, {"template": False, "definitions": 0})
        known["template"] |= head is not None
        known["definitions"] += is_definition
        arguments = parameter_names(source, head[1], head[2]) if head else ""
        if arguments is None:
            continue
        types = without_defaults(source, k + 1, source.partner[k])
        declaration = source.between(head[0], head[2] + 1) + " " if head else ""
        parameters = source.between(k + 1, source.partner[k])
        kernel = f"static_cast<void (*)({types})>({name}{f'<{arguments}>' if head else ''})"
        probe = f" {declaration}auto {PROBE}{name}({parameters}) -> ::simt::KernelOf<{kernel}>"
        source.changes.append((end, end, probe + (" { return {}; }" if is_definition else ";")))
    probed = {n for n, known in kernels.items() if known["template"] or known["definitions"] > 1}
    return {name: "probed" if name in probed else "plain" for name in kernels}


# --- Launches -------------------------------------------------------------------------------------


def callee_before(source, i):
    """(first token of the expression that is launched, of its name or None, of its template arguments or None), before token i."""
    k, name, arguments = i - 1, None, None
    if source.at(k, ">"):
        arguments = opening_of(source, k)
        k = arguments - 1
    if k >= 0 and source.tokens[k].kind == "word":
        name = k
    while k >= 0:
        if source.tokens[k].text in OPENING and k in source.partner:
            k = source.partner[k]
            before = source.tokens[k - 1] if k else None
            if not before or (before.kind != "word" and before.text not in ("]", ")")):
                break
            if before.text in ("return", "else", "do", "if", "while", "for", "switch", ")"):
                break
            k -= 1
            continue
        if source.tokens[k].kind != "word":
            raise LaunchError(source.tokens[i].begin, "before <<< there must be a kernel's name")
        if k and source.tokens[k - 1].text in (".", "->"):
            k -= 2
            continue
        while k and source.at(k - 1, "::"):
            k -= 1
            if k and source.at(k - 1, ">"):
                k = max(opening_of(source, k - 1), 0)
            if k and source.tokens[k - 1].kind == "word" and source.tokens[k - 1].text != "return":
                k -= 1
        break
    return k, name, arguments


LAUNCH = "blocks, threads per block, shared bytes, stream"  # of which the last two may be left out


def closings(source, k):
    """Every >>>( from token k on that is in no bracket, up to the end of the statement or another launch."""
    while k < len(source.tokens):
        if source.tokens[k].text in PAIRS and k in source.partner:
            k = source.partner[k]
        elif source.tokens[k].text in (*OPENING, ";") or source.is_triple(k, "<"):
            return
        elif source.is_triple(k, ">") and k + 3 in source.partner and source.at(k + 3, "("):
            yield k
        k += 1


def goes_on(source, k):
    """Whether what stands before token k is not a launch, but nested templates within one: f<A<B<int>>>(3)."""
    if source.at(k, "::") or source.at(k, "{") or source.is_triple(k, ">"):
        return True
    return source.at(k, ",") and next(closings(source, k), None) is not None


def rewrite_launch(source, kernels, i):
    """The launch whose <<< begins at token i. Returns the token behind its >>>."""
    ends = (k for k in closings(source, i + 3) if len(source.split(i + 3, k)) > 1)
    close = next((k for k in ends if not goes_on(source, source.partner[k + 3] + 1)), None)
    where = source.tokens[i].begin
    if close is None:
        raise LaunchError(where, f"a launch is kernel<<<{LAUNCH}>>>(arguments)")
    if any(begin < where < end for begin, end in source.bodies):
        why = "the CPU backend has no dynamic parallelism: the host launches kernels"
        raise LaunchError(where, why)
    count = len(source.split(i + 3, close))
    if count > 4:
        raise LaunchError(where, f"<<<{LAUNCH}>>>: there are {count} arguments between")
    first, name, arguments = callee_before(source, i)
    kind = kernels.get(source.tokens[name].text) if name is not None else None
    is_member = name and source.tokens[name - 1].text in (".", "->")
    begin = source.tokens[first].begin
    passed = range(close + 4, source.partner[close + 3])
    opening, closing = "::simt::configured(", ", "
    if kind == "plain" and not is_member:
        opening, closing = f"{opening}::simt::KernelOf<", ">::value, "
    elif kind and not is_member:
        opening, closing = (
            f"{opening}decltype(",
            f"({source.between(passed.start, passed.stop)}))::value, ",
        )
        # A lambda's type would be another one if it stood twice.
        if any(source.at(a, "[") and source.tokens[a - 1].text in ("(", ",") for a in passed):
            opening = "::simt::configured_by([](auto&&... a) { return "
            closing = "(static_cast<decltype(a)>(a)...); }, "
    source.changes.append((begin, begin, opening))
    if kind == "probed" and not is_member:
        source.changes.append((source.tokens[name].begin, source.tokens[name].begin, PROBE))
    source.changes.append((source.tokens[i].begin, source.tokens[i + 2].end, closing))
    source.changes.append((source.tokens[close].begin, source.tokens[close + 2].end, ")"))
    return close + 3


def name_allocation(source, i):
    """cudaMalloc(&a, ...) at token i tells a's name."""
    is_call = source.at(i + 1, "(") and i + 1 in source.partner
    is_member = i and source.tokens[i - 1].text in (".", "->")
    parts = source.split(i + 2, source.partner[i + 1]) if is_call and not is_member else []
    if len(parts) != 2:
        return
    text = re.sub(r"^.*&|[\s\"\\]|\)+$", "", source.between(*parts[0]))
    token = source.tokens[i]
    begin = source.tokens[i - 1].begin if i and source.at(i - 1, "::") else token.begin
    source.changes.append((begin, token.end, f'::simt::Named{{"{text}"}}.allocate'))


def rewrite(text, foreign=lambda file: False):
    """(the text for g++, [(file, line, what is wrong there)], the words in it). foreign: files that are left as they are."""
    source, wrong = Text(text, own_parts(text, foreign)), []
    kernels = find_kernels(source)
    i = 0
    while i < len(source.tokens):
        token = source.tokens[i]
        if token.text == "cudaMalloc":
            name_allocation(source, i)
        elif token.kind == "word" and token.text in REFUSED:
            wrong.append((token.begin, f"{token.text}: {REFUSED[token.text]}"))
        elif source.is_triple(i, "<") and not source.at(i - 1, "operator"):
            try:
                i = rewrite_launch(source, kernels, i)
                continue
            except LaunchError as error:
                wrong.append(error.args)
                i += 2
        i += 1
    words = {token.text for token in source.tokens if token.kind == "word"}

    # (What others wrote is a system's header to the compiler: it warns of nothing there.)
    def marked(match):
        is_others = foreign(match[2]) and "3" not in match[3]
        return match[0][:-1] + " 3\n" if is_others else match[0]

    wrong = [(*place_of(text, begin), what) for begin, what in wrong]
    return MARKER.sub(marked, source.result()), wrong, words
