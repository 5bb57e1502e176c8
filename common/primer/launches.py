"""CUDA's launches as calls of C++, for the CPU backend, in a text that the preprocessor has been through and in which
`__global__` still stands: the body of a kernel becomes a function that it hands to simt, and
kernel<<<grid, block, shared, stream>>>(arguments) a call of the kernel and of what launches this function,

    kernel(arguments), ::simt::launch(grid, block, shared, stream)

(simt/program.hpp), so that it is the compiler that deduces, converts and chooses. It goes by tokens, not by grammar,
and leaves every line where it is."""

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
# What a kernel's body becomes, and what stands where it ended: the return is in the kernel, not in what it calls.
BODY = " ::simt::kernel([=](::simt::OnDevice) mutable {", '}); asm volatile(""); '
NOINLINE = "__attribute__((noinline))"
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
        found = ((kinds.get(m.lastgroup, m.lastgroup), m[0], m.start()) for m in found)
        self.tokens = [Token(*one) for one in found if one[0] != "skip"]
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

    def commas(self, first, last):
        """Those of the tokens first to last - 1 that are in no bracket; templates' are among them."""
        found, i = [], first
        while i < last:
            if self.tokens[i].text in PAIRS and i in self.partner:
                i = self.partner[i]
            elif self.tokens[i].text == ",":
                found.append(i)
            i += 1
        return found

    def result(self):
        text = self.text
        # (Those of one place in their order: sorting keeps it.)
        for begin, end, new in reversed(sorted(self.changes, key=lambda change: change[0])):
            text = text[:begin] + new + text[end:]
        return text


# --- Kernels and launches -------------------------------------------------------------------------


def rewrite_kernel(source, i):
    """What __global__ at token i declares."""
    token = source.tokens[i]
    source.changes.append((token.begin, token.end, NOINLINE))
    while i < len(source.tokens) and not (source.at(i, "{") or source.at(i, ";")):
        i = source.partner.get(i, i) + 1
    if source.at(i, "{") and i in source.partner:
        begin, end = source.tokens[i].end, source.tokens[source.partner[i]].begin
        source.bodies.append((begin, end))
        source.changes += [(begin, begin, BODY[0]), (end, end, BODY[1])]


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


def rewrite_launch(source, i):
    """The launch whose <<< begins at token i. Returns the token behind its >>>."""
    ends = (k for k in closings(source, i + 3) if source.commas(i + 3, k))
    close = next((k for k in ends if not goes_on(source, source.partner[k + 3] + 1)), None)
    where = source.tokens[i].begin
    if close is None:
        raise LaunchError(where, f"a launch is kernel<<<{LAUNCH}>>>(arguments)")
    if any(begin < where < end for begin, end in source.bodies):
        why = "the CPU backend has no dynamic parallelism: the host launches kernels"
        raise LaunchError(where, why)
    count = len(source.commas(i + 3, close)) + 1
    if count > 4 and not any(token.text == "<" for token in source.tokens[i + 3 : close]):
        raise LaunchError(where, f"<<<{LAUNCH}>>>: there are {count} arguments between")
    if source.tokens[i - 1].kind != "word" and source.tokens[i - 1].text not in (">", ")", "]"):
        raise LaunchError(where, "before <<< there must be a kernel's name")
    begin, end = source.tokens[i].begin, source.tokens[close + 2].end
    lines = re.findall(r"\n(?:[ \t]*#[^\n]*)?", source.text[begin:end])  # the preprocessor's, too
    source.changes.append((begin, end, "".join(lines)))
    # (Of `a ? b : kernel<<<...>>>()` the kernel may not be called.)
    start = next((k for k in range(i - 1, -1, -1) if source.tokens[k].text in ("{", "}", ";")), 0)
    may_be = any(token.text == "?" for token in source.tokens[start:i])
    call = f", ::simt::launch{'_if_called' * may_be}({source.between(i + 3, close)})"
    behind = source.tokens[source.partner[close + 3]].end
    source.changes.append((behind, behind, call))
    return close + 3


def name_allocation(source, i):
    """cudaMalloc(&a, ...) at token i tells a's name."""
    is_call = source.at(i + 1, "(") and i + 1 in source.partner
    is_member = i and source.tokens[i - 1].text in (".", "->")
    commas = source.commas(i + 2, source.partner[i + 1]) if is_call and not is_member else []
    if not commas:
        return
    text = re.sub(r"^.*&|[\s\"\\]|\)+$", "", source.between(i + 2, commas[-1]))
    token = source.tokens[i]
    begin = source.tokens[i - 1].begin if i and source.at(i - 1, "::") else token.begin
    source.changes.append((begin, token.end, f'::simt::Named{{"{text}"}}.allocate'))


def rewrite(text, foreign=lambda file: False):
    """(the text for g++, [(file, line, what is wrong there)], the words in it). foreign: files that are left as they are."""
    source, wrong = Text(text, own_parts(text, foreign)), []
    i = 0
    while i < len(source.tokens):
        token = source.tokens[i]
        if token.text == "__global__":
            rewrite_kernel(source, i)
        elif token.text == "cudaMalloc":
            name_allocation(source, i)
        elif token.kind == "word" and token.text in REFUSED:
            wrong.append((token.begin, f"{token.text}: {REFUSED[token.text]}"))
        elif source.is_triple(i, "<") and not source.at(i - 1, "operator"):
            try:
                i = rewrite_launch(source, i)
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
