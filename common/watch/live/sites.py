#!/usr/bin/env python3
"""Gives every call from kernels to simt a site (common/simt/executable_wasm.cpp): sites.py IN.ll OUT.ll

IN.ll is what clang makes of a .cu file for WebAssembly, as text. Before each call of a function of simt OUT.ll stores the
address of the call's site; a constructor registers the sites, the kernels and the shared variables of the file. The line of
a site is that in the kernel's own source, as find_sources() of an ELF file has it: functions of simt are inlined into it.

    sites.py --shared OUT.c IN.ll...     the arrays that kernels declare `extern __shared__`
"""

import re
import sys

CALL = re.compile(r"^\s+(?:%\S+ = )?(?:tail |notail )?call [^@]*@(\"[^\"]+\"|[\w.$]+)\(.*?(?:!dbg !(\d+))?$")
SIMT = re.compile(r"__tsan_|__sanitizer_cov_|_ZN4simt|simt_mem|__assert_fail")
NODE = re.compile(r"^!(\d+) = (?:distinct )?!(DILocation|DISubprogram|DILexicalBlock|DILexicalBlockFile|DIFile)\((.*)\)$")
COPY = re.compile(r"@(memcpy|memmove|memset)\b")
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
        self.nodes = {found[1]: (found[2], found[3]) for line in text if (found := NODE.match(line))}

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
    return len(data), 'c"' + "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in data) + '"'


def instrument(lines):
    """The text of a module with its sites, and what registers them."""
    where = Lines(lines)
    lines = [COPY.sub(r"@simt_\1", line) for line in lines]  # as builtins.hpp says it where the C library allows that
    defined = {found[1] for line in lines if (found := re.match(r'^define .*?@"?([\w.$]+)"?\(', line))}
    out, sites, files = [], [], {}
    for line in lines:
        call = CALL.match(line)
        if call and SIMT.match(call[1].strip('"')) and call[1] not in defined:
            file, number = where.place(call[2]) if call[2] else ("", 0)
            out.append(f"  store i8* getelementptr inbounds (i8, i8* bitcast ([@N@ x {SITE}]* @simt.sites to i8*), i32 {4 * len(sites) + 2}), "
                       "i8** @simt_site, align 4")  # fmt: skip
            sites.append((files.setdefault(file, len(files)), min(number, 65535)))
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
            symbols.append(f"{SYMBOL} {{ i8* {label}, i8* bitcast ({kind} @{name} to i8*), i32 0 }}")
        else:
            kind = type_at(variable[2])
            symbols.append(f"{SYMBOL} {{ i8* {label}, i8* bitcast ({kind}* @{name} to i8*), "
                           f"i32 ptrtoint ({kind}* getelementptr ({kind}, {kind}* null, i32 1) to i32) }}")  # fmt: skip
    if not sites and not symbols:
        return "\n".join(lines)
    n, m = len(sites), len(symbols)
    size, text = c_string("".join(file + "\n" for file in files))
    extra = [
        *strings,
        f"@simt.sites = internal constant [{n} x {SITE}] [" + ", ".join(f"{SITE} {{ i16 {f}, i16 {number if number < 32768 else number - 65536} }}" for f, number in sites) + "]" if n else f"@simt.sites = internal constant [0 x {SITE}] zeroinitializer",
        f"@simt.files = internal constant [{size} x i8] {text}",
        f"@simt.symbols = internal constant [{m} x {SYMBOL}] " + ("[" + ", ".join(symbols) + "]" if m else "zeroinitializer"),
        "@simt_site = external global i8*",
        "declare void @simt_register(i8*, i32, i8*, i8*, i32)",
        "define internal void @simt.register() {",
        f"  call void @simt_register(i8* bitcast ([{n} x {SITE}]* @simt.sites to i8*), i32 {n}, "
        f"i8* getelementptr inbounds ([{size} x i8], [{size} x i8]* @simt.files, i32 0, i32 0), "
        f"i8* bitcast ([{m} x {SYMBOL}]* @simt.symbols to i8*), i32 {m})",
        "  ret void",
        "}",
    ]  # fmt: skip
    return "\n".join(with_constructor([line.replace("@N@", str(n)) for line in out]) + extra) + "\n"


def type_at(text):
    """The type at the beginning of `text`, up to a space outside of brackets."""
    depth = 0
    for at, c in enumerate(text):
        depth += (c in "[{<(") - (c in "]}>)")
        if c == " " and depth == 0:
            return text[:at]
    return text


def parameter_types(text):
    """The types of the parameters of a definition, from its parenthesis on."""
    depth, types, begin = 0, [], 1
    for at, c in enumerate(text):
        depth += (c in "[{<(") - (c in "]}>)")
        if (c == "," and depth == 1) or depth == 0:
            if text[begin:at].strip():
                types.append(type_at(text[begin:at].strip()))
            begin = at + 1
        if depth == 0:
            return ", ".join(types)
    return ""


def with_constructor(lines):
    entry = "{ i32, void ()*, i8* } { i32 1000, void ()* @simt.register, i8* null }"
    for number, line in enumerate(lines):
        found = re.match(r"^@llvm.global_ctors = appending global \[(\d+) x (\{.*?\})\] \[(.*)\]$", line)
        if found:
            lines[number] = f"@llvm.global_ctors = appending global [{int(found[1]) + 1} x {found[2]}] [{found[3]}, {entry}]"
            return lines
    return lines + [f"@llvm.global_ctors = appending global [1 x {{ i32, void ()*, i8* }}] [{entry}]"]


def shared(paths):
    names = sorted({found[1] for path in paths for line in open(path, encoding="utf-8") if (found := SHARED.match(line))})
    text = "struct Symbol { const char* name; const void* begin; unsigned bytes; };\n"
    text += "void simt_register(const void*, unsigned, const char*, const struct Symbol*, unsigned);\n"
    for name in names:
        text += f"unsigned char __attribute__((aligned(128))) {name}[{MAX_SHARED_BYTES}];\n"
    entries = "".join(f'{{"{name}", {name}, {MAX_SHARED_BYTES}}}, ' for name in names)
    text += f"static const struct Symbol symbols[] = {{{entries}{{0, 0, 0}}}};\n"
    return text + f"__attribute__((constructor)) static void add(void) {{ simt_register(0, 0, \"\", symbols, {len(names)}); }}\n"


def main():
    if sys.argv[1:2] == ["--shared"]:
        text, output = shared(sys.argv[3:]), sys.argv[2]
    else:
        with open(sys.argv[1], encoding="utf-8") as file:
            text, output = instrument(file.read().split("\n")), sys.argv[2]
    with open(output, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
