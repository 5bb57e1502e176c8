"""What a student's file may contain: a whitelist over its tokens and its abstract syntax tree.

A kernel is compiled into a program of this machine. What a GPU could not do either (call the system,
write a file, run another program), what the CPU backend cannot observe (assembly, attributes), and
what reaches into the code around it (macros, specialisations and overloads of others' templates,
definitions outside namespace spmv) is refused, with the line and the rule. Everything that is not
named here is refused, too.

    problems = examine(kit, course, files)      {file: [Problem]}, by libclang
"""

import ctypes.util
import itertools
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

LARGEST_FILE = 1 << 16
MOST_PROBLEMS = 20  # that are told of a file

HINT = (
    "libclang is missing: what a file may contain cannot be looked at "
    "(apt-get install python3-clang, or pip install libclang)"
)


class NoClang(Exception):
    """There is no libclang here, or one that cannot be used; the text says what to do."""


class Unusable(Exception):
    """The files could not be looked at, and not because of what is in them."""


class TooMuch(Exception):
    """libclang gave up on a file."""


@dataclass(frozen=True)
class Problem:
    line: int
    what: str  # the construct
    rule: str
    syntax: bool = False  # the compiler's complaint: no rule of ours

    def describe(self, name):
        return f"{name}:{self.line}: {self.what}" + (f": {self.rule}" if self.rule else "")


TOO_MUCH = Problem(1, "too large, or nested too deeply, once macros are expanded", "", syntax=True)

# Of libclang: keep preprocessing records, the unit is incomplete, and for serialization.
RECORDS, PCH = 0x1, 0x1 | 0x2 | 0x10


def load_clang():
    """clang.cindex, from Python's own packages, Debian's or .deps/python."""
    root = Path(__file__).resolve().parent.parent.parent
    places = [*root.glob(".deps/python/lib/python3*/site-packages"), Path("/usr/lib/python3/dist-packages")]
    for place in [None, *places]:
        if place:
            sys.path.append(str(place))
        try:
            from clang import cindex

            cindex.conf.lib  # loads the library
            return cindex
        except Exception:  # no module, no library, or an older library than the module wants
            for name in [name for name in sys.modules if name.split(".")[0] == "clang"]:
                del sys.modules[name]
    raise NoClang(HINT)


# --- What may stand in a file: words --------------------------------------------------------------

INCLUDES = {
    "<cuda_runtime.h>", "<cuda_fp16.h>", "<cooperative_groups.h>", "<cooperative_groups/reduce.h>",
    "<cassert>", "<cfloat>", "<climits>", "<cmath>", "<cstddef>", "<cstdint>", "<cstdio>", "<cstring>",
    "<limits>", "<type_traits>", '"device/scale.cuh"', '"device/fetch.cuh"', '"device/texture.hpp"',
}  # fmt: skip

KEYWORDS = set(
    "alignas alignof auto bool break case char class const constexpr continue default do "
    "double else enum explicit extern false float for if inline int long namespace nullptr operator "
    "private protected public reinterpret_cast requires return short signed sizeof static "
    "static_assert static_cast struct switch template this true typedef typename union unsigned "
    "using void volatile wchar_t while concept and or not".split()
)  # fmt: skip
# Macros of CUDA's, which the CPU backend defines, and of the standard library's.
MACROS = set(
    "__global__ __device__ __host__ __shared__ __constant__ __forceinline__ __noinline__ "
    "__launch_bounds__ __restrict__ __restrict __align__ __grid_constant__ assert NULL NAN INFINITY "
    "INT_MAX INT_MIN UINT_MAX LONG_MAX LONG_MIN LLONG_MAX LLONG_MIN ULLONG_MAX SHRT_MAX SHRT_MIN "
    "USHRT_MAX CHAR_BIT UCHAR_MAX INT32_MAX INT32_MIN UINT32_MAX INT64_MAX INT64_MIN UINT64_MAX "
    "FLT_MAX FLT_MIN FLT_EPSILON DBL_MAX DBL_MIN DBL_EPSILON SIZE_MAX M_PI".split()
)  # fmt: skip
# Words with two underscores that are no names of CUDA, though simt's own sources have them.
NOT_CUDA = re.compile(
    r"__(attribute|asm|builtin|atomic|sync_|tsan|sanitizer|typeof|extension|real|imag|label|auto_type|"
    r"func|FUNC|PRETTY|FILE|LINE|DATE|TIME|COUNTER|VERSION|has_|clang|GNUC|GXX|cplus|c11|volatile|"
    r"inline|signed|thread|alignof|null|int128|float128|ATOMIC|SANITIZE|cxa|va_|VA_|assert)"
)
DEVICE = set("__global__ __device__ __host__ constexpr".split())

# Of the standard library: types, traits, arithmetic. None of it writes to memory that it is given.
STANDARD = set(
    "size_t ptrdiff_t nullptr_t int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t "
    "intptr_t uintptr_t byte numeric_limits min max abs labs llabs clamp bit_cast popcount countl_zero "
    "countr_zero countl_one countr_one has_single_bit bit_width bit_ceil bit_floor rotl rotr "
    "is_same is_same_v is_floating_point is_floating_point_v is_integral is_integral_v is_arithmetic "
    "is_arithmetic_v is_signed is_signed_v is_unsigned is_unsigned_v is_const is_const_v conditional "
    "conditional_t enable_if enable_if_t remove_const remove_const_t remove_cv remove_cv_t "
    "remove_reference remove_reference_t remove_pointer remove_pointer_t make_unsigned make_unsigned_t "
    "make_signed make_signed_t integral_constant bool_constant true_type false_type type_identity "
    "type_identity_t common_type common_type_t floating_point integral same_as "
    "is_trivially_copyable is_trivially_copyable_v declval "
    "fabs fma fmin fmax fmod floor ceil trunc rint round lrint llrint lround llround nearbyint sqrt "
    "cbrt exp exp2 expm1 log log2 log10 log1p pow hypot sin cos tan asin acos atan atan2 sinh cosh "
    "tanh erf erfc tgamma lgamma copysign isnan isinf isfinite signbit ldexp "
    "printf __assert_fail".split()
)  # fmt: skip
STANDARD |= {name + "f" for name in STANDARD}
# Of the harness: what kernels share.
HARNESS = {"scale", "fetch", "device", "spmv"}
# Of the standard library; in kernels the CPU backend's (simt/builtins.hpp), which observes what they read and write.
OBSERVED = {"memcpy", "memmove", "memset"}
NAMESPACES = {"std", "spmv", "device", "cooperative_groups"}

ATTRIBUTES = "attributes are CUDA's alone (__launch_bounds__, __restrict__ ...)"
MOST_ALIGNMENT = 128
# Types of CUDA's with which a file may overload operators.
VECTORS = re.compile(r"(u?(char|short|int|long|longlong)|float|double)[1-4]|half2?|__half2?")
ONE_RULE = "a kernel may use CUDA's device functions, arithmetic of the standard library, and this file's own"


# --- Tokens ---------------------------------------------------------------------------------------


# A format of printf, in quotes.
PRINTF = re.compile(r'"([^%\\]|%%|%[-+ #0]*\d{0,4}(\.\d{0,4})?(hh|h|ll|l|z)?[diuxXocpfFeEgGaA]|\\[nt"\'\\])*"')


def words_of(text):
    """The identifiers in C++ source, without those in comments."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)
    return set(re.findall(r"[A-Za-z_]\w*", text))


def check_text(data, given):
    """Problems that show in the bytes alone, some of which would make other looks differ from the
    compiler's. given: the text as it was handed out, whose directives may stay."""
    problems = []
    includes, kept = includes_of(given), directives_of(given)
    if len(data) > LARGEST_FILE:
        return [Problem(1, f"{len(data)} bytes", f"a file has at most {LARGEST_FILE}")]
    for number, line in enumerate(data.split(b"\n"), 1):
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError:
            problems.append(Problem(number, "bytes that are not UTF-8", "source is UTF-8"))
            continue
        if re.search(r"[\x00-\x08\x0b-\x1f\x7f\x85\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]", text.rstrip("\r")):
            problems.append(Problem(number, "a character that does not show", "source has none but blanks, tabs and line ends"))
        if re.search(r"\\\s*$", text):
            problems.append(Problem(number, "a line that ends in '\\'", "lines are not spliced"))
        directive = re.search(r"(?:^|\*/)\s*#\s*(\w*)", text)  # only blanks and comments stand before one
        if directive and directive[1] not in ("include", "define", "undef", "pragma") and text.strip() not in kept:
            problems.append(Problem(number, f"#{directive[1][:40]}", "only include, define, undef and pragma"))
        include = re.search(r"(?:^|\*/)\s*#\s*include\b(.*)", text)
        if include:
            name = re.sub(r"//.*|/\*.*?\*/|\s", "", include[1])
            if name not in INCLUDES | includes:
                rule = f"only {', '.join(sorted(INCLUDES))}, and what the file included when it was handed out"
                problems.append(Problem(number, f"#include {name[:60]}", rule))
        found = re.search(r"\?\?[=/'()!<>-]|(?:^|\*/)\s*(%:)|\\[uUN][0-9a-fA-F{]", text)  # see Tokens.check()
        if found:
            problems.append(Problem(number, f"'{found[1] or found[0]}'", "characters are written as they are"))
    return problems[:MOST_PROBLEMS]


def directives_of(text):
    """The lines of conditional compilation in a file: #ifndef __CUDACC_RTC__, say."""
    return {line.strip() for line in text.splitlines() if re.match(r"#(ifn?def|endif)\b", line)}


def includes_of(text):
    return set(re.findall(r'^#include ([<"][^>"]+[>"])', text, re.MULTILINE))


class Tokens:
    """The tokens of one file, as they stand there: macros not expanded, directives among them."""

    def __init__(self, cindex, tu, path):
        file = cindex.File.from_name(tu, str(path))
        size = Path(path).stat().st_size
        start = cindex.SourceLocation.from_offset(tu, file, 0)
        end = cindex.SourceLocation.from_offset(tu, file, size)
        kinds = cindex.TokenKind
        self.all = []  # (offset, line, kind, spelling); kind: "word", "keyword", "other", "literal"
        names = {kinds.IDENTIFIER: "word", kinds.KEYWORD: "keyword", kinds.LITERAL: "literal"}
        for token in tu.get_tokens(extent=cindex.SourceRange.from_locations(start, end)):
            if token.kind != kinds.COMMENT:
                location = token.location
                kind = names.get(token.kind, "other")
                self.all.append((location.offset, location.line, kind, token.spelling))
        self.at = {token[0]: index for index, token in enumerate(self.all)}
        self.macros = set()  # that the file has defined so far

    def check(self, cuda, kept, includes, in_use):
        """Problems of words, keywords and directives. kept: of these, lines that may stay; includes: names of files that may be
        included; in_use: a function of a name that a macro may not have."""
        problems, i, tokens = [], 0, self.all

        def refuse(line, what, rule):
            problems.append(Problem(line, what, rule))

        while i < len(tokens):
            _, line, kind, text = tokens[i]
            if text == "#" and (i == 0 or tokens[i - 1][1] != line):
                end = i
                while end < len(tokens) and tokens[end][1] == line:
                    end += 1
                self.check_directive(tokens[i + 1 : end], line, kept, includes, in_use, refuse)
                if len(tokens) > i + 1 and tokens[i + 1][3] == "define":
                    i += 2  # its body is looked at as any other text
                    continue
                i = end
                continue
            if kind != "literal" and not text.isascii():
                refuse(line, f"'{text}'", "names are ASCII")
            elif text in ("<:", ":>", "<%", "%>", "%:", "%:%:"):
                refuse(line, f"'{text}'", "characters are written as they are")
            elif text in ("gnu", "__gnu__", "clang") and tokens[i + 1 : i + 2] and tokens[i + 1][3] in ("::", ":"):
                refuse(line, f"'{text}{tokens[i + 1][3]}'", ATTRIBUTES)
            elif text == "template" and tokens[i + 1 : i + 2] and tokens[i + 1][3] != "<" and tokens[i - 1][3] not in (".", "->", "::"):
                refuse(line, "an explicit instantiation", "templates are instantiated by their use")
            elif text in ("alignas", "__align__") and not self.is_small_alignment(i + 1):
                refuse(line, f"this {text}", f"of a number up to {MOST_ALIGNMENT}")
            elif text in ("#", "##"):
                refuse(line, f"'{text}'", "tokens are not pasted, nor made into text")
            elif kind == "keyword" and text not in KEYWORDS and text not in MACROS:
                refuse(line, f"'{text}'", "this keyword has no place in a kernel")
            elif kind == "word" and re.match(r"__|_[A-Z]", text) and text not in cuda | MACROS:
                refuse(line, f"'{text}'", "names with leading underscores are the compiler's; those of CUDA are known")
            elif text == "[" and i + 1 < len(tokens) and tokens[i + 1][3] == "[":
                refuse(line, "an attribute", ATTRIBUTES)
            elif text in (".*", "->*") or text == "::" and i + 1 < len(tokens) and tokens[i + 1][3] == "*":
                refuse(line, "a pointer to a member", "GPUs' code has no need of it")
            elif text == "printf" and not self.is_harmless_printf(i + 1):
                refuse(line, "this printf", "its format is a literal, with conversions for numbers and pointers alone "
                       "(%d, %u, %x, %g ...), and without escapes but \\n and \\t")  # fmt: skip
            elif text == "extern" and not any(t[3] == "__shared__" for t in tokens[i : i + 4]):
                refuse(line, "'extern'", "only for extern __shared__ arrays")
            i += 1
        return problems

    def is_small_alignment(self, i):
        """Whether (16), say, follows an alignas. (What is aligned to more than a stack's size is in another one.)"""
        found = re.match(r"\((\d{1,3})\)", "".join(token[3] for token in self.all[i : i + 3]))
        return found is not None and int(found[1]) <= MOST_ALIGNMENT

    def is_harmless_printf(self, i):
        """Whether what follows printf is a bracket and a format that reads no text and writes nothing."""
        texts = [token[3] for token in self.all[i : i + 100]]
        literals = list(itertools.takewhile(lambda text: text.endswith('"'), texts[1:]))
        after = texts[1 + len(literals) : 2 + len(literals)]
        joined = '"' + "".join(text[1:-1] for text in literals) + '"'
        return (texts[:1] == ["("] and literals != [] and all(text.startswith('"') for text in literals)
                and bool(PRINTF.fullmatch(joined)) and after in ([","], [")"]))  # fmt: skip

    def check_directive(self, rest, line, kept, includes, in_use, refuse):
        words = [token[3] for token in rest]
        name = words[0] if words else ""
        text = "".join(words[1:])
        if name == "include":  # behind a comment, say, which check_text() does not look behind
            if text not in includes:
                refuse(line, f"#include {text[:60]}", "one of the files that may be included, by its name")
        elif name == "pragma":
            if not re.fullmatch(r"once|unroll[\w()+*/-]*", text):
                refuse(line, f"#pragma {text[:40]}", "only once and unroll")
        elif name == "define":
            macro = words[1] if len(words) > 1 else ""
            if not re.fullmatch(r"[A-Z][A-Z0-9_]*", macro):
                refuse(line, f"#define {macro[:40]}", "a macro's name is in capitals; better a constexpr")
            elif in_use(macro):
                refuse(line, f"#define {macro[:40]}", "the name is in use elsewhere")
            self.macros.add(macro)
        elif name == "undef":
            if text not in self.macros:
                refuse(line, f"#undef {text[:40]}", "only of a macro that the file has defined")
        elif "#" + " ".join(words) not in kept:
            refuse(line, f"#{name[:40]}", "only include, define, undef and pragma")


# --- The tree -------------------------------------------------------------------------------------

KINDS = set(
    # declarations
    "NAMESPACE NAMESPACE_ALIAS USING_DIRECTIVE FUNCTION_DECL FUNCTION_TEMPLATE VAR_DECL STRUCT_DECL "
    "CLASS_DECL UNION_DECL CLASS_TEMPLATE CLASS_TEMPLATE_PARTIAL_SPECIALIZATION ENUM_DECL "
    "ENUM_CONSTANT_DECL TYPE_ALIAS_DECL TYPEDEF_DECL TYPE_ALIAS_TEMPLATE_DECL STATIC_ASSERT FIELD_DECL "
    "CXX_METHOD CONSTRUCTOR DESTRUCTOR CONVERSION_FUNCTION PARM_DECL TEMPLATE_TYPE_PARAMETER "
    "TEMPLATE_NON_TYPE_PARAMETER CXX_ACCESS_SPEC_DECL CXX_BASE_SPECIFIER LABEL_STMT LABEL_REF "
    "CONCEPT_DECL "
    # references
    "TYPE_REF TEMPLATE_REF NAMESPACE_REF MEMBER_REF OVERLOADED_DECL_REF VARIABLE_REF "
    # statements
    "COMPOUND_STMT DECL_STMT IF_STMT FOR_STMT WHILE_STMT DO_STMT SWITCH_STMT CASE_STMT DEFAULT_STMT "
    "BREAK_STMT CONTINUE_STMT RETURN_STMT NULL_STMT GOTO_STMT CXX_FOR_RANGE_STMT "
    # expressions
    "DECL_REF_EXPR MEMBER_REF_EXPR CALL_EXPR ARRAY_SUBSCRIPT_EXPR BINARY_OPERATOR "
    "COMPOUND_ASSIGNMENT_OPERATOR UNARY_OPERATOR CONDITIONAL_OPERATOR PAREN_EXPR INIT_LIST_EXPR "
    "CSTYLE_CAST_EXPR CXX_STATIC_CAST_EXPR CXX_REINTERPRET_CAST_EXPR "
    "CXX_FUNCTIONAL_CAST_EXPR CXX_THIS_EXPR CXX_BOOL_LITERAL_EXPR CXX_NULL_PTR_LITERAL_EXPR "
    "INTEGER_LITERAL FLOATING_LITERAL STRING_LITERAL CHARACTER_LITERAL CXX_UNARY_EXPR "
    "LAMBDA_EXPR UNEXPOSED_EXPR UNEXPOSED_STMT COMPOUND_LITERAL_EXPR PACK_EXPANSION_EXPR "
    "SIZE_OF_PACK_EXPR CONCEPT_SPECIALIZATION_EXPR REQUIRES_EXPR "
    # attributes: those of the macros, since others are refused as tokens
    "UNEXPOSED_ATTR ALIGNED_ATTR CXX_FINAL_ATTR PURE_ATTR CONST_ATTR".split()
)  # fmt: skip

FUNCTIONS = {"FUNCTION_DECL", "FUNCTION_TEMPLATE", "CXX_METHOD", "CONSTRUCTOR", "DESTRUCTOR", "CONVERSION_FUNCTION"}
CASTS = {"CSTYLE_CAST_EXPR", "CXX_REINTERPRET_CAST_EXPR", "CXX_FUNCTIONAL_CAST_EXPR", "CXX_STATIC_CAST_EXPR"}
NAMED = {"NAMESPACE_REF", "TYPE_REF", "TEMPLATE_REF", "DECL_REF_EXPR", "MEMBER_REF", "MEMBER_REF_EXPR",
         "OVERLOADED_DECL_REF", "CALL_EXPR", "VARIABLE_REF"}  # fmt: skip
BUILT_IN = {"threadIdx", "blockIdx", "blockDim", "gridDim"}


class Tree:
    """Looks at the cursors of one file."""

    def __init__(self, cindex, kit, course, path, tokens, own_names, reserved):
        """own_names: of functions that the file may call; reserved: a function of a name that the
        file may not give to what it declares."""
        self.cindex, self.kit, self.course, self.path = cindex, kit, Path(course), str(path)
        self.tokens, self.own_names, self.reserved = tokens, own_names, reserved
        self.problems = []
        self.places = {}  # file -> whose it is

    def refuse(self, cursor, what, rule):
        self.problems.append(Problem(cursor.location.line, what, rule))

    def whose(self, cursor):
        """"own", "simt", "harness", "system" or "none": where something is declared."""
        file = cursor.location.file
        if file is None:
            return "none"
        name = file.name
        if name not in self.places:
            path = Path(os.path.abspath(name))
            if self.course in path.parents:
                whose = "own"
            elif self.kit / "common/simt" in path.parents:
                whose = "simt"
            elif self.kit / "common" in path.parents:
                whose = "harness"
            else:
                whose = "system"
            self.places[name] = whose
        return self.places[name]

    def in_namespace(self, cursor):
        names = []
        parent = cursor.semantic_parent
        while parent is not None and parent.kind.name != "TRANSLATION_UNIT":
            names.append(parent.spelling)
            parent = parent.semantic_parent
        return names

    def allowed(self, declaration):
        """Whether a file may name something that is declared somewhere."""
        whose = self.whose(declaration)
        name = declaration.spelling
        parents = self.in_namespace(declaration)
        if whose == "own":
            return True
        if declaration.kind.name == "NAMESPACE":
            return name in NAMESPACES or "cooperative_groups" in parents
        if whose == "simt":
            return "simt" not in parents and not re.match(r"cuda(?!TextureObject_t$)|CUDART|main$", name)
        if whose == "harness":
            return name in HARNESS
        if whose == "system":
            outer = next((p for p in parents if p in STANDARD), None)
            return name in STANDARD or name in OBSERVED or outer is not None
        return False

    def check_reference(self, cursor):
        """The declaration that a cursor refers to must be one that a file may name."""
        kind = cursor.kind.name
        if kind == "OVERLOADED_DECL_REF":
            lib = self.cindex.conf.lib
            count = lib.clang_getNumOverloadedDecls(cursor)
            declarations = [lib.clang_getOverloadedDecl(cursor, i) for i in range(count)]
            if not declarations and cursor.spelling not in self.own_names:
                self.refuse(cursor, f"'{cursor.spelling}'", ONE_RULE)
        else:
            declaration = cursor.referenced
            declarations = [] if declaration is None or declaration == cursor else [declaration]
        for declaration in declarations:
            if declaration.kind.name in ("TEMPLATE_TYPE_PARAMETER", "TEMPLATE_NON_TYPE_PARAMETER", "PARM_DECL"):
                continue
            if declaration.kind.name.startswith("NO_DECL") or declaration.kind.name.startswith("INVALID"):
                continue
            if not self.allowed(declaration):
                name = declaration.spelling or cursor.spelling
                verb = "a call of" if kind == "CALL_EXPR" else "the name"
                self.refuse(cursor, f"{verb} '{name[:60]}'", ONE_RULE)
                return

    # --- One kind after the other

    def scope_of(self, cursor):
        parent = cursor.semantic_parent
        return parent.kind.name if parent is not None else "TRANSLATION_UNIT"

    def check_declaration(self, cursor):
        kind, name = cursor.kind.name, cursor.spelling
        scope = self.scope_of(cursor)
        at_file = scope in ("TRANSLATION_UNIT", "NAMESPACE")
        if kind == "NAMESPACE":
            if scope == "TRANSLATION_UNIT" and name != "spmv" or scope == "NAMESPACE" and name:
                self.refuse(cursor, f"namespace '{name[:40]}'", "everything is in namespace spmv, or in one without a name in it")
            return
        if kind in ("USING_DIRECTIVE", "NAMESPACE_ALIAS"):
            if any(c.spelling != "cooperative_groups" for c in cursor.get_children()):
                self.refuse(cursor, "a using-directive or another name of a namespace", "only for cooperative_groups")
            return
        if at_file and scope == "TRANSLATION_UNIT":
            self.refuse(cursor, f"'{name[:40]}' outside of namespace spmv", "everything is in namespace spmv")
            return
        if cursor.lexical_parent is not None and scope != cursor.lexical_parent.kind.name and at_file:
            self.refuse(cursor, f"'{name[:40]}'", "nothing is declared in another place than where it belongs")
        if at_file and name and self.reserved(name):
            self.refuse(cursor, f"a declaration of '{name[:40]}'", "the code around the kernels uses this name: choose another")
        if kind in FUNCTIONS:
            self.check_function(cursor)
        if kind == "VAR_DECL":
            self.check_variable(cursor, at_file)
        if kind == "FIELD_DECL" and cursor.is_bitfield():
            self.refuse(cursor, f"the bit-field '{name[:40]}'", "accesses to bit-fields are not all observed")
        if kind in ("VAR_DECL", "PARM_DECL", "FIELD_DECL", "TYPE_ALIAS_DECL", "TYPEDEF_DECL"):
            if self.is_function_pointer(cursor.type):
                self.refuse(cursor, f"'{name[:40]}', a pointer to a function", "kernels call functions by their names")

    def is_function_pointer(self, type_):
        type_ = type_.get_canonical()
        for _ in range(8):
            kind = type_.kind.name
            if kind in ("POINTER", "LVALUEREFERENCE", "RVALUEREFERENCE"):
                type_ = type_.get_pointee().get_canonical()
                if type_.kind.name in ("FUNCTIONPROTO", "FUNCTIONNOPROTO"):
                    return True
            elif kind in ("CONSTANTARRAY", "INCOMPLETEARRAY", "DEPENDENTSIZEDARRAY", "VECTOR"):
                type_ = type_.element_type.get_canonical()
            elif kind == "MEMBERPOINTER":
                return True
            else:
                return kind in ("FUNCTIONPROTO", "FUNCTIONNOPROTO")
        return True

    def words_before(self, cursor):
        """The words of a declaration before its name."""
        index = self.tokens.at.get(cursor.location.offset)
        words = set()
        while index is not None and index > 0:
            index -= 1
            text = self.tokens.all[index][3]
            if text in (";", "{", "}") or text == "#":
                break
            words.add(text)
        return words

    def check_function(self, cursor):
        name = cursor.spelling
        in_class = self.scope_of(cursor) not in ("TRANSLATION_UNIT", "NAMESPACE")
        if name.startswith("operator") and re.match(r'operator\s*(new|delete|""|co_await)', name):
            self.refuse(cursor, f"'{name}'", "this operator is not a kernel's to define")
        template = self.cindex.conf.lib.clang_getSpecializedCursorTemplate(cursor)
        if template is not None and self.whose(template) != "own":
            self.refuse(cursor, f"a specialisation of '{name[:40]}'", "only templates of the same file are specialised")
        if cursor.location.file is None or cursor.location.file.name != self.path:
            return
        words = self.words_before(cursor)
        has_body = any(child.kind.name == "COMPOUND_STMT" for child in cursor.get_children())
        if re.match(r"operator\W", name) and not in_class and not self.takes_own_type(cursor):
            self.refuse(cursor, f"'{name[:40]}'", "an operator has a parameter of a type of this file, or of a vector of CUDA's")
        if has_body and not words & DEVICE and cursor.spelling:
            # Inside of a lambda's class there is nothing to write.
            parent = cursor.semantic_parent
            if not (in_class and parent is not None and not parent.spelling):
                self.refuse(cursor, f"the function '{name[:40]}'", "say __device__: kernels cannot call functions of the host")

    def takes_own_type(self, function):
        """Whether a parameter is of a type that this file declares, or of a vector type of CUDA's."""
        for parameter in function.get_children():
            if parameter.kind.name != "PARM_DECL":
                continue
            for reference in parameter.walk_preorder():
                declaration = reference.referenced if reference.kind.name in ("TYPE_REF", "TEMPLATE_REF") else None
                if declaration is None or declaration.kind.name.startswith("TEMPLATE_"):
                    continue
                file = declaration.location.file
                own = file is not None and file.name == self.path
                if own or self.whose(declaration) == "simt" and VECTORS.fullmatch(declaration.spelling):
                    return True
        return False

    def specifiers(self, cursor):
        """The words of a variable's declaration before its name and outside of brackets; none if a macro declares
        it."""
        start, stop = (self.tokens.at.get(place.offset) for place in (cursor.extent.start, cursor.location))
        if start is None or stop is None or self.tokens.all[stop][3] != cursor.spelling:
            return set()
        words, depth = set(), 0
        for _, _, _, text in self.tokens.all[start:stop]:
            if depth == 0 and text in ("=", ","):  # another variable's value
                break
            depth += text in ("(", "[", "{", "<")
            depth -= {")": 1, "]": 1, "}": 1, ">": 1, ">>": 2}.get(text, 0)
            if depth == 0:
                words.add(text)
        return words

    def check_variable(self, cursor, at_file):
        name = cursor.spelling
        words = self.specifiers(cursor)
        if cursor.type.get_canonical().kind.name == "VARIABLEARRAY":
            self.refuse(cursor, f"the array '{name[:40]}'", "CUDA has no arrays of a length that is known at run time only")
        if "__shared__" in words:
            return
        static = at_file or cursor.storage_class.name in ("STATIC", "EXTERN") or cursor.tls_kind.name != "NONE"
        static |= self.scope_of(cursor).startswith(("CLASS", "STRUCT", "UNION"))
        if static and not words:
            self.refuse(cursor, f"'{name[:40]}', declared by a macro", "a macro declares nothing but locals")
        elif cursor.storage_class.name == "EXTERN":
            self.refuse(cursor, f"'{name[:40]}'", "only extern __shared__ arrays are declared and not defined")
        elif static and "constexpr" not in words:
            self.refuse(cursor, f"the variable '{name[:40]}'", "what outlives a kernel is constexpr; all else is a local, __shared__, or an argument")

    def check_expression(self, cursor, parent):
        kind = cursor.kind.name
        if kind in CASTS and self.is_function_pointer(cursor.type):
            self.refuse(cursor, "a cast to a pointer to a function", "kernels call functions by their names")
        if kind in CASTS and cursor.type.get_canonical().kind.name == "POINTER":
            operand = next((c for c in reversed(list(cursor.get_children())) if c.kind.is_expression()), None)
            if operand is not None and operand.type.get_canonical().kind.name in INTEGERS:
                if operand.kind.name != "INTEGER_LITERAL":
                    self.refuse(cursor, "a cast of a number to a pointer", "addresses come from the arguments")
        if kind == "DECL_REF_EXPR":
            declaration = cursor.referenced
            if declaration is not None and declaration.kind.name in ("FUNCTION_DECL", "CXX_METHOD", "FUNCTION_TEMPLATE"):
                first = self.tokens.at.get(cursor.location.offset)
                named = first is None or self.tokens.all[first][3] == "operator"
                is_operator = cursor.spelling.startswith("operator") and not named  # of an expression
                if parent != "callee" and not is_operator:
                    self.refuse(cursor, f"the address of '{cursor.spelling[:40]}'", "functions are called, and not passed on")
        if kind == "UNARY_OPERATOR" or kind in CASTS:
            operand = next((c for c in reversed(list(cursor.get_children())) if c.kind.is_expression()), None)
            while operand is not None and operand.kind.name in ("UNEXPOSED_EXPR", "PAREN_EXPR", "MEMBER_REF_EXPR"):
                if operand.kind.name == "MEMBER_REF_EXPR" and kind in CASTS and cursor.type.get_canonical().kind.name not in ("POINTER", "LVALUEREFERENCE", "RVALUEREFERENCE"):
                    operand = None
                    break
                operand = next(iter(operand.get_children()), None)
            if operand is not None and operand.kind.name == "DECL_REF_EXPR" and operand.spelling in BUILT_IN:
                first = self.tokens.at.get(cursor.extent.start.offset)
                address = first is not None and self.tokens.all[first][3] == "&"
                if address or kind in CASTS and cursor.type.get_canonical().kind.name in ("POINTER", "LVALUEREFERENCE", "RVALUEREFERENCE"):
                    self.refuse(cursor, f"the address of {operand.spelling}", "it is read, and nothing else")

    def is_known_declaration(self, cursor):
        """Whether what libclang has no kind for is a semicolon, a concept, or a structured binding of locals."""
        first = self.tokens.at.get(cursor.extent.start.offset)
        words = [] if first is None else [token[3] for token in self.tokens.all[first : first + 60]]
        head = list(itertools.takewhile(lambda word: word not in ("=", ";", "{"), words))
        if head[:1] == ["template"] and "concept" in head:
            return True
        binding = list(itertools.takewhile(lambda word: word != "[", head))
        parent = cursor.semantic_parent
        in_function = parent is not None and parent.kind.name in FUNCTIONS
        is_binding = "auto" in binding and set(binding) <= {"const", "auto", "&", "&&"} and binding != head
        return words[:1] == [";"] or in_function and is_binding

    def check(self, top):
        """Everything below a cursor of this file. (With a stack of its own: an expression may be as
        deep as a file is long.)"""
        stack = [(top, None)]
        seen = 0
        while stack and len(self.problems) < MOST_PROBLEMS:
            cursor, role = stack.pop()
            seen += 1
            kind = cursor.kind
            name = kind.name
            if name == "UNEXPOSED_DECL":
                if not self.is_known_declaration(cursor):
                    self.refuse(cursor, "a declaration", "of a kind that kernels have no need of")
                # (The names in a binding are of no kind either.)
                stack += [(child, None) for child in cursor.get_children() if child.kind.name != "UNEXPOSED_DECL"]
                continue
            if name.endswith("_ATTR"):
                first = self.tokens.at.get(cursor.extent.start.offset)
                if first is None or self.tokens.all[first][3] not in MACROS | {"alignas", "final"}:
                    self.refuse(cursor, "an attribute", ATTRIBUTES)
            if name not in KINDS:
                what = name.lower().replace("_", " ").replace("cxx ", "")
                self.refuse(cursor, f"{what}", "this construct has no place in a kernel")
                continue
            if kind.is_declaration():
                self.check_declaration(cursor)
            if name in NAMED:
                self.check_reference(cursor)
            if kind.is_expression():
                self.check_expression(cursor, role)
            children = list(cursor.get_children())
            for index, child in enumerate(children):
                # The callee is the first child; through implicit casts the same holds.
                is_callee = name == "CALL_EXPR" and index == 0 or role == "callee" and name in ("UNEXPOSED_EXPR", "PAREN_EXPR", "MEMBER_REF_EXPR")
                stack.append((child, "callee" if is_callee else None))
        return self.problems


INTEGERS = set(
    "BOOL CHAR_U UCHAR CHAR16 CHAR32 USHORT UINT ULONG ULONGLONG UINT128 CHAR_S SCHAR WCHAR SHORT INT "
    "LONG LONGLONG INT128".split()
)  # fmt: skip


# --- All of it ------------------------------------------------------------------------------------


class Whitelist:
    """For the kernels of one step, compiled as the kit is.

    kit: the repository's or handout's root. flags: the compiler's, for definitions and directories.
    """

    def __init__(self, kit, flags, prelude, scratch):
        self.cindex = load_clang()
        self.kit, self.scratch = Path(kit), Path(scratch)
        self.prelude = Path(prelude)
        self.flags = [*flags, "-w", "-Wno-everything", "-ferror-limit=20"]
        self.index = self.cindex.Index.create(excludeDecls=True)  # from the prelude
        self.cuda = self.cuda_names()
        self._harness = self._everywhere = None

    def cuda_names(self):
        """Names with two leading underscores that the CPU backend defines as CUDA does."""
        names = set()
        for path in [*(self.kit / "common/simt").glob("*.hpp"), *(self.kit / "common/simt/include").rglob("*.h")]:
            text = path.read_text(encoding="utf-8")
            names |= {w for w in words_of(text) if w.startswith("__")}
        return {name for name in names if not NOT_CUDA.match(name)}

    def compiled_prelude(self):
        """The prelude as libclang keeps it, made when it is missing."""
        pch = self.prelude.with_name("prelude.pch")
        if not pch.exists():
            temporary = pch.with_name(f"prelude.{os.getpid()}.pch")
            try:
                tu = self.index.parse(str(self.prelude), [*self.flags, "-x", "c++-header"], options=PCH)
                self.require_clean(tu)
                tu.save(str(temporary))
                temporary.rename(pch)
            except (OSError, self.cindex.TranslationUnitLoadError, self.cindex.TranslationUnitSaveError) as error:
                temporary.unlink(missing_ok=True)
                raise Unusable(f"libclang cannot read {self.prelude}: {error}") from None
        return pch

    @staticmethod
    def require_clean(tu):
        for diagnostic in tu.diagnostics:
            if diagnostic.severity >= 3:
                raise Unusable(f"libclang does not understand the harness: {diagnostic.location.file}:"
                               f"{diagnostic.location.line}: {diagnostic.spelling}")  # fmt: skip

    def parse(self, course, paths, texts={}):
        """A translation unit that includes `paths`, and the errors in it. `texts`: {path: text} of
        files that are read as if they had these texts."""
        main = self.scratch / "whitelist.cu"
        text = "".join(f'#include "{path}"\n' for path in paths)
        files = [(str(main), text), *texts.items()]
        flags = [*self.flags, "-include-pch", str(self.compiled_prelude()), "-I", str(course)]
        try:
            tu = self.index.parse(str(main), [*flags, "-x", "c++"], unsaved_files=files, options=RECORDS)
        except self.cindex.TranslationUnitLoadError as error:
            if not paths:
                raise Unusable(f"libclang cannot be used: {error}") from None
            self.parse(course, [])
            raise TooMuch from None
        return tu, [d for d in tu.diagnostics if d.severity >= 3]

    def examine(self, course, files, given):
        """{name: [Problem]} of `files`, names of the exercises' files of the step in `course`/STEP,
        where they lie. `given`: {name: text} of them as they were handed out."""
        course = Path(course)
        problems, readable = {}, []
        for path in files:
            problems[path.name] = check_text(path.read_bytes(), given.get(path.name, ""))
            if not problems[path.name]:
                readable.append(path)
        try:
            tu, errors = self.parse(course, readable) if readable else (None, [])
        except TooMuch:
            tu, errors = None, True
        apart = errors and len(readable) > 1  # whose they are shows when each is read by itself
        for path in readable:
            if apart:
                try:
                    tu, errors = self.parse(course, [path])
                except TooMuch:
                    tu = None
            if tu is None:
                problems[path.name] = [TOO_MUCH]
            elif errors:
                problems[path.name] = [self.syntax_problem(d, path) for d in errors[:MOST_PROBLEMS]]
            else:
                problems[path.name] = self.look_at(tu, course, path, given)
        return problems

    @staticmethod
    def syntax_problem(diagnostic, path):
        location = diagnostic.location
        inside = location.file is not None and os.path.abspath(location.file.name) == str(path)
        number = location.line if inside else len(path.read_bytes().splitlines())
        return Problem(number, diagnostic.spelling[:300], "", syntax=True)

    def look_at(self, tu, course, path, given):
        given_text = given.get(path.name, "")
        given_words = words_of(given_text)
        harness, elsewhere = self.harness_names(), self.names_around(course, path)
        declared_there = None

        def reserved(name):
            nonlocal declared_there
            if name not in harness and (name not in elsewhere or name in given_words):
                return False
            if name in given_words and declared_there is None:
                declared_there = self.declared_in(course, path, given_text)
            return not declared_there or name not in declared_there

        tokens = Tokens(self.cindex, tu, path)
        found = tokens.check(self.cuda, directives_of(given_text), INCLUDES | includes_of(given_text), lambda name: name in MACROS or name in self.words_everywhere(path))
        found += self.foreign_macros(tu, path)
        functions = self.declared_functions(tu, course)
        tree = Tree(self.cindex, self.kit, course, path, tokens, functions, reserved)
        for cursor in self.tops(tu, path):
            tree.check(cursor)
        unique = sorted(set(found + tree.problems), key=lambda p: (p.line, p.what))
        return unique[:MOST_PROBLEMS]

    @staticmethod
    def tops(tu, path):
        """The declarations of a file."""
        for cursor in tu.cursor.get_children():
            file = cursor.location.file
            if file is not None and not cursor.kind.is_preprocessing() and file.name == str(path):
                yield cursor

    def declared_in(self, course, path, text):
        """Names that a file declares in its namespaces, if it has this text."""
        tu, _ = self.parse(course, [path], {str(path): text})
        names, stack = set(), list(self.tops(tu, path))
        while stack:
            cursor = stack.pop()
            if cursor.kind.name == "NAMESPACE":
                stack += cursor.get_children()
            else:
                names.add(cursor.spelling)
        return names

    def foreign_macros(self, tu, path):
        """Macros that a file uses and that are neither its own nor known, and those of its own that
        are used elsewhere."""
        problems = []
        own = set()
        uses = []
        for cursor in tu.cursor.get_children():
            if not cursor.kind.is_preprocessing():
                continue
            name, file = cursor.spelling, cursor.location.file
            here = file is not None and file.name == str(path)
            if cursor.kind.name == "MACRO_DEFINITION" and here:
                own.add(name)
            elif cursor.kind.name == "MACRO_INSTANTIATION":
                uses.append((name, here, cursor.location.line))
        for name, here, line in uses:
            if here and name not in own and name not in MACROS:
                problems.append(Problem(line, f"the macro '{name[:40]}'", ONE_RULE))
            if not here and name in own:
                problems.append(Problem(line, f"the macro '{name[:40]}', used in another file", "a file's macros are its own"))
        return problems

    @staticmethod
    def declared_functions(tu, course):
        """Names of functions that the step's files declare."""
        names = set()
        stack = [c for c in tu.cursor.get_children() if c.kind.name == "NAMESPACE"
                 and c.location.file is not None and str(course) in c.location.file.name]  # fmt: skip
        while stack:
            cursor = stack.pop()
            for child in cursor.get_children():
                if child.kind.name in ("NAMESPACE", "STRUCT_DECL", "CLASS_DECL", "CLASS_TEMPLATE"):
                    stack.append(child)
                if child.kind.name in FUNCTIONS:
                    names.add(child.spelling)
        return names | {"scale", "fetch"}

    @staticmethod
    def used_names(text):
        """Names that source calls, instantiates, qualifies with, or declares as types."""
        text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)
        used = set(re.findall(r"\b([A-Za-z_]\w*)\s*(?:[(<{]|::)", text))
        return used | set(re.findall(r"\b(?:class|struct|enum|using|namespace|typename)\s+([A-Za-z_]\w*)", text))

    def names_around(self, course, path):
        """Identifiers in the step's other files."""
        words = set()
        for other in course.rglob("*"):
            if other.suffix in (".cu", ".cuh", ".cpp", ".hpp") and other != path:
                words |= words_of(other.read_text(encoding="utf-8", errors="replace"))
        return words

    def harness_names(self):
        """Names that the headers of the harness use, which a function of the same name could change."""
        if self._harness is None:
            self._harness = set()
            for directory in ("device", "harness", "sparse", "simt"):
                for header in (self.kit / "common" / directory).iterdir():
                    if header.suffix in (".hpp", ".cuh"):
                        self._harness |= self.used_names(header.read_text(encoding="utf-8"))
        return self._harness

    def words_everywhere(self, path):
        """Identifiers in all that is compiled with a file, the system's headers among it."""
        if self._everywhere is None:
            tu = self.index.parse(str(self.prelude), [*self.flags, "-x", "c++-header"], options=RECORDS)
            included = {str(i.include) for i in tu.get_includes()}
            texts = (Path(name).read_text(encoding="utf-8", errors="replace") for name in included)
            self._everywhere = set().union(*map(words_of, texts))
        return self._everywhere | self.names_around(path.parent.parent, path)


def for_kit(root, kit, scratch):
    """The whitelist for a kit that kit.mk has made."""
    kit = Path(kit)
    compiler = (kit / "compiler").read_text(encoding="utf-8").strip()
    flags = (kit / "flags").read_text(encoding="utf-8").split()
    return Whitelist(root, ["-std=c++20", *search_directories(compiler), *flags], kit / "prelude.hpp", scratch)


def search_directories(compiler):
    """Where a compiler looks for its own headers, as options of another's."""
    done = subprocess.run([*compiler.split(), "-E", "-v", "-xc++", "/dev/null"], capture_output=True, text=True)
    found = re.search(r"#include <\.\.\.> search starts here:\n(.*?)End of search list", done.stderr, re.DOTALL)
    if not found:
        raise Unusable(f"{compiler} does not say where its headers are")
    directories = [line.strip() for line in found[1].splitlines()]
    return ["-nostdinc", "-nostdinc++"] + [word for d in directories for word in ("-isystem", d)]


if __name__ == "__main__":  # whitelist.py: is there a libclang? whitelist.py KIT: prepares a kit for it
    try:
        load_clang()
        if len(sys.argv) == 2:
            for_kit(Path(__file__).resolve().parent.parent.parent, sys.argv[1], sys.argv[1]).compiled_prelude()
    except NoClang as error:
        sys.exit(f"setup: {error}")
    except Unusable as error:
        sys.exit(f"error: {error}")
