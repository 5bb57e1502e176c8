#!/usr/bin/env python3
"""Gives every call from kernels to simt a site (common/simt/executable_wasm.cpp)

    sites.py IN.ll OUT.ll

IN.ll is what clang makes of a .cu file for WebAssembly, as text. Before each call of a function of
simt OUT.ll stores the address of the call's site; a constructor registers the sites, the kernels
and the shared variables of the file. The line of a site is that in the kernel's own source, as
find_sources() of an ELF file has it: functions of simt are inlined into it. Sites are numbered in
the order in which a compiler for ELF lays out code, what follows a loop behind the loop: the place
of a block says where lanes wait for each other (common/simt/lineup.cpp). The order of the text does
not: clang may write the end of a function before its loop.

    sites.py --shared OUT.c IN.ll...     the arrays that kernels declare `extern __shared__`
"""

import re
import sys

CALL = re.compile(
    r"^\s+(?:%\S+ = )?(?:tail |notail )?call [^@]*@(\"[^\"]+\"|[\w.$]+)\(.*?(?:!dbg !(\d+))?$"
)
SIMT = re.compile(r"__tsan_|__sanitizer_cov_|_ZN4simt|simt_mem|__assert_fail")
NODE = re.compile(
    r"^!(\d+) = (?:distinct )?!(DILocation|DISubprogram|DILexicalBlock|DILexicalBlockFile|DIFile)\((.*)\)$"
)
COPY = re.compile(r"@(memcpy|memmove|memset)\b")
LABEL = re.compile(r'^("[^"]+"|[\w.$-]+):')
SUCCESSOR = re.compile(r'\blabel %("[^"]+"|[\w.$-]+)')
SHARED = re.compile(r'^@"?([\w.$]+)"? = external thread_local (?:local_unnamed_addr )?global \[0 x')
MAX_SHARED_BYTES = 227 * 1024
SITE = "{ i16, i16 }"
SYMBOL = "{ i8*, i8*, i32 }"


def field(text, name):
    found = re.search(rf'\b{name}: (?:"([^"]*)"|!?(\d+))', text)
    return (found[1] if found[1] is not None else found[2]) if found else ""


class Lines:
    """The source lines of debug locations."""

    def __init__(self, text):
        self.nodes = {
            found[1]: (found[2], found[3]) for line in text if (found := NODE.match(line))
        }

    def file_of(self, scope):
        number = field(self.nodes[scope][1], "file")
        _, text = self.nodes[number]
        name, directory = field(text, "filename"), field(text, "directory")
        return name if name.startswith("/") else f"{directory}/{name}"

    def place(self, location):
        """(file, line) of the innermost one outside of simt; ("", 0) if there is none."""
        while location:
            _, text = self.nodes[location]
            file = self.file_of(field(text, "scope"))
            if not file.rpartition("/")[0].endswith("/common/simt"):
                return file, int(field(text, "line") or 0)
            location = field(text, "inlinedAt")
        return "", 0


def c_string(text):
    data = text.encode() + b"\0"
    return len(data), 'c"' + "".join(
        chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in data
    ) + '"'


def in_order(blocks, successors):
    """The names of blocks, the first of which is entered first, so that loops are contiguous and
    what is reached only from other blocks comes behind these; else in the order given."""
    position = {name: number for number, name in enumerate(blocks)}
    number, low, stack, found = {}, {}, [], []

    def visit(name):  # Tarjan's strongly connected components
        number[name] = low[name] = len(number)
        stack.append(name)
        for other in sorted(
            (n for n in successors[name] if n in position), key=position.get, reverse=True
        ):
            if other not in number:
                visit(other)
            low[name] = min(low[name], low[other] if other in stack else number[name])
        if low[name] == number[name]:
            at = stack.index(name)
            found.append(stack[at:])
            del stack[at:]

    for name in blocks:
        if name not in number:
            visit(name)
    result = []
    for component in reversed(found):
        head, *rest = component  # visited first: the header of the loop
        result += [head, *in_order(sorted(rest, key=position.get), successors)]
    return result


def block_places(lines):
    """The place of each line of a module: a number that grows from function to function, and in
    each in the order of its blocks."""
    places, function, name = [0] * len(lines), None, ""
    for number, line in enumerate(lines):
        if line.startswith("define "):
            function, name = {"": (number, set())}, ""
        elif function and (label := LABEL.match(line)):
            name = label[1]
            function[name] = (number, set())
        elif function and line == "}":
            order = in_order(
                list(function), {block: successors for block, (_, successors) in function.items()}
            )
            starts = sorted(start for start, _ in function.values()) + [number]
            for rank, block in enumerate(order):
                start = function[block][0]
                for at in range(start, starts[starts.index(start) + 1]):
                    places[at] = starts[0] + rank
            function = None
        elif function:
            function[name][1].update(SUCCESSOR.findall(line))
    return places


def instrument(lines):
    """The text of a module with its sites, and what registers them."""
    where = Lines(lines)
    lines = [
        COPY.sub(r"@simt_\1", line) for line in lines
    ]  # as builtins.hpp says it where the C library allows that
    defined = {
        found[1] for line in lines if (found := re.match(r'^define .*?@"?([\w.$]+)"?\(', line))
    }
    calls = {
        number: call[2]
        for number, line in enumerate(lines)
        if (call := CALL.match(line)) and SIMT.match(call[1].strip('"')) and call[1] not in defined
    }
    places = block_places(lines)
    index = {
        number: at
        for at, number in enumerate(sorted(calls, key=lambda number: (places[number], number)))
    }
    files, sites = {}, []
    for number in index:
        file, source_line = where.place(calls[number]) if calls[number] else ("", 0)
        sites.append((files.setdefault(file, len(files)), min(source_line, 65535)))
    out = []
    for number, line in enumerate(lines):
        if number in index:
            out.append(
                f"  store i8* getelementptr inbounds (i8, i8* bitcast ([{len(sites)} x {SITE}]* @simt.sites to i8*), i32 {4 * index[number] + 2}), "
                "i8** @simt_site, align 4"
            )
        out.append(line)

    symbols, strings = [], []
    for line in lines:
        function = re.match(r"^define .*?@(_ZN\w*_kernel[IE]\w*)(\(.*)", line)
        variable = re.match(r"^@(_Z(?:Z|GV)\w+) = .*?thread_local .*?global (.*)", line)
        name = (function or variable or [""] * 2)[1]
        if not name or ("12" in name and "lambda" in name):
            continue
        size, text = c_string(name)
        strings.append(f"@simt.name.{len(strings)} = internal constant [{size} x i8] {text}")
        label = f"getelementptr inbounds ([{size} x i8], [{size} x i8]* @simt.name.{len(strings) - 1}, i32 0, i32 0)"
        if function:
            kind = f"void ({parameter_types(function[2])})*"
            symbols.append(
                f"{SYMBOL} {{ i8* {label}, i8* bitcast ({kind} @{name} to i8*), i32 0 }}"
            )
        else:
            kind = type_at(variable[2])
            symbols.append(
                f"{SYMBOL} {{ i8* {label}, i8* bitcast ({kind}* @{name} to i8*), "
                f"i32 ptrtoint ({kind}* getelementptr ({kind}, {kind}* null, i32 1) to i32) }}"
            )
    if not sites and not symbols:
        return "\n".join(lines)
    n, m = len(sites), len(symbols)
    size, text = c_string("".join(file + "\n" for file in files))
    extra = [
        *strings,
        f"@simt.sites = internal constant [{n} x {SITE}] ["
        + ", ".join(
            f"{SITE} {{ i16 {f}, i16 {number if number < 32768 else number - 65536} }}"
            for f, number in sites
        )
        + "]"
        if n
        else f"@simt.sites = internal constant [0 x {SITE}] zeroinitializer",
        f"@simt.files = internal constant [{size} x i8] {text}",
        f"@simt.symbols = internal constant [{m} x {SYMBOL}] "
        + ("[" + ", ".join(symbols) + "]" if m else "zeroinitializer"),
        "@simt_site = external global i8*",
        "declare void @simt_register(i8*, i32, i8*, i8*, i32)",
        "define internal void @simt.register() {",
        f"  call void @simt_register(i8* bitcast ([{n} x {SITE}]* @simt.sites to i8*), i32 {n}, "
        f"i8* getelementptr inbounds ([{size} x i8], [{size} x i8]* @simt.files, i32 0, i32 0), "
        f"i8* bitcast ([{m} x {SYMBOL}]* @simt.symbols to i8*), i32 {m})",
        "  ret void",
        "}",
    ]
    return "\n".join(with_constructor(out) + extra) + "\n"


def up_to(ends, text):
    """`text` up to the first of the characters `ends` that is outside of brackets."""
    depth = 0
    for at, c in enumerate(text):
        if c in ends and depth == 0:
            return text[:at]
        depth += (c in "[{<(") - (c in "]}>)")
    return text


def type_at(text):
    """The type at the beginning of `text`."""
    return up_to(" ", text)


def parameter_types(text):
    """The types of the parameters of a definition, from its parenthesis on."""
    types, left = [], up_to(")", text[1:])
    while left.strip():
        parameter = up_to(",", left)
        types.append(type_at(parameter.strip()))
        left = left[len(parameter) + 1 :]
    return ", ".join(types)


def with_constructor(lines):
    entry = "{ i32, void ()*, i8* } { i32 1000, void ()* @simt.register, i8* null }"
    for number, line in enumerate(lines):
        found = re.match(
            r"^@llvm.global_ctors = appending global \[(\d+) x (\{.*?\})\] \[(.*)\]$", line
        )
        if found:
            lines[number] = (
                f"@llvm.global_ctors = appending global [{int(found[1]) + 1} x {found[2]}] [{found[3]}, {entry}]"
            )
            return lines
    return lines + [
        f"@llvm.global_ctors = appending global [1 x {{ i32, void ()*, i8* }}] [{entry}]"
    ]


def shared(paths):
    names = sorted(
        {
            found[1]
            for path in paths
            for line in open(path, encoding="utf-8")
            if (found := SHARED.match(line))
        }
    )
    text = "struct Symbol { const char* name; const void* begin; unsigned bytes; };\n"
    text += (
        "void simt_register(const void*, unsigned, const char*, const struct Symbol*, unsigned);\n"
    )
    for name in names:
        text += f"unsigned char __attribute__((aligned(128))) {name}[{MAX_SHARED_BYTES}];\n"
    entries = "".join(f'{{"{name}", {name}, {MAX_SHARED_BYTES}}}, ' for name in names)
    text += f"static const struct Symbol symbols[] = {{{entries}{{0, 0, 0}}}};\n"
    return (
        text
        + f'__attribute__((constructor)) static void add(void) {{ simt_register(0, 0, "", symbols, {len(names)}); }}\n'
    )


def main():
    sys.setrecursionlimit(100000)
    if sys.argv[1:2] == ["--shared"]:
        text, output = shared(sys.argv[3:]), sys.argv[2]
    else:
        with open(sys.argv[1], encoding="utf-8") as file:
            text, output = instrument(file.read().split("\n")), sys.argv[2]
    with open(output, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
