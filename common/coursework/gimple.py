"""Accesses of memory that g++ does not announce, read from what it makes of a file.

With -fsanitize=thread g++ calls a function before every load and store, which simt observes; but not where an
object is loaded to be an argument of a function, or stored as a function's result. The dump of the
pass that places these calls (-fdump-tree-tsan-lineno-uid) shows what is left without one:

    [/a/kernel.cuh:36:12] _7 = spmv::first_ofD.12 ([/a/kernel.cuh:36:12] MEM[(const struct Pair &)_3]);
"""

import re

MARK = re.compile(r"\[([^\[\]\n]*):(\d+):\d+\] ")
SSA = re.compile(r"[\w.#$]*_\d+(\(D\))?$")
CONSTANT = re.compile(r"-?\s*(\d|Nan\b|Inf\b)|[+\"{]|\*\.LC\d+$")
# A statement's memory that a pointer leads to: *p_1, p_1->member, MEM[(double *)p_1 + 8B].
BY_POINTER = re.compile(r"\*\w*_\d+\b|_\d+(\(D\))?->|\bMEM\b.*[(\s]\w*_\d+(\(D\))?\b")
BY_VALUE = "an object passed or returned by value, from or to memory that is not the thread's own"
STORE, LOAD = "a store to what is constant", "a load of a kind that kernels have no need of"
ANNOUNCED = re.compile(r"__builtin___tsan_\w*(read|write)")


def unobserved(dump, files):
    """{name: (line, what) of the first access that is not announced} of `files`, {path: name}. dump: the lines."""
    found = {}
    own, previous = set(), ""
    for line in dump:
        if line.startswith(";; Function "):
            own, previous = set(), ""
        elif re.match(r"\S.*\(.*\)$", line):  # the function's head
            own.update(re.findall(r"D\.(\d+)(?=[,)])", line))
        elif not line.startswith("  ") or line.startswith("  <bb "):
            continue
        else:
            place = MARK.match(line.lstrip())
            statement = MARK.sub("", re.sub(r'"(\\.|[^"\\])*"', '""', line)).strip()
            declared = re.fullmatch(r"(?!static ).*\bD\.(\d+)(\[[^=(]*\])*;|(?!static ).*[\w>]D\.(\d+)(\[[^=(]*\])*;", statement)
            if not place and declared and "=" not in statement:
                own.add(declared[1] or declared[3])
                continue
            what = place and place[1] in files and unobserved_in(statement, previous, own)
            if what:
                found.setdefault(files[place[1]], (int(place[2]), what))
            previous = statement
    return found


def unobserved_in(statement, previous, own):
    """What a statement does that is not announced, or None."""
    statement = re.sub(r"( \[[a-z -]+\])+(?=;?$)", "", statement)  # [return slot optimization] and the like
    if not statement.endswith(";") or statement.startswith("#"):
        return None
    text = statement[:-1].rstrip()
    left, equals, right = text.partition(" = ")
    if not equals:
        left, right = "", text
    called = call_of(right)
    if called is not None:
        passed = all(is_own(operand, own) for operand in [*called, *([left] if left else [])])
        return None if passed else BY_VALUE
    if not equals or ANNOUNCED.match(previous):
        return None
    if not is_own(left, own):
        return STORE
    return LOAD if BY_POINTER.search(right) and not right.startswith("&") else None


def call_of(text):
    """The arguments of a call, or None if it is none."""
    if not text.endswith(")"):
        return None
    parts, depth, end = [], 0, len(text) - 1
    for i in range(len(text) - 1, -1, -1):
        c = text[i]
        if c in ")]}":
            depth += 1
        elif c in "([{":
            depth -= 1
            if depth == 0:
                parts.append(text[i + 1 : end])
                called = re.search(r"[\w>)] $", text[:i])
                return [p.strip() for p in reversed(parts) if p.strip()] if called else None
        elif c == "," and depth == 1:
            parts.append(text[i + 1 : end])
            end = i
    return None


def is_own(operand, own):
    """Whether an operand is a value, an address, or a variable of the function's own."""
    if operand.startswith("&") or SSA.match(operand) or CONSTANT.match(operand):
        return True
    operand = operand.replace("<retval>", "D.0")
    for _ in range(8):  # types
        operand = re.sub(r"<[^<>]*>|\([^()&]*\)", "", operand)
    base = re.search(r"D\.(\d+)", operand)
    return base is not None and (base[1] == "0" or base[1] in own) and not BY_POINTER.search(operand)
