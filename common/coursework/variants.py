"""Variants of a step, so that the repository's own file, which is public, does not pass as it is.

A seed chooses an increment of x (incx of BLAS): element i of x stands at kIncrementX * i, as if x were a column of a
row-major matrix, and NaN between its elements. It also chooses new names for the kernels. Both are edits of the step's sources; the
product with such an x is made by a wrapper around the step's own (variant.hpp), so that all programs know of it.
"""

import hashlib
import re

INCREMENT = "kIncrementX"
KERNEL = re.compile(r"\b__global__\b[^;{]*?\b(\w+)_kernel\(")
ACCESS = re.compile(
    r"(?<!return )(?<!return device::)(?:\b(?<![.:>])x(\[)|\bfetch<T>(\()x, |\bvectors_?\.element(\())"
)
COUNT = re.compile(r"(\btextures_\(|\bLinearTexture<T>\(x, )([\w.]*cols)\)")
HEADER = """// This handout's variant: README.md, "Your variant".
#pragma once

#include "coursework/variant.hpp"

namespace spmv {{

inline constexpr int {name} = {value};  // element i of x stands at x[{name} * i]

template <template <typename> class Class, typename T, typename... Arguments>
std::unique_ptr<Spmv<T>> make_variant(const Problem<T>& problem, Arguments&&... arguments) {{
  return std::make_unique<WithIncrement<T>>(problem, {name}, make<Class>(problem, std::forward<Arguments>(arguments)...));
}}

}}  // namespace spmv
"""
PARAGRAPH = """## Your variant

The step's own kernels are public; these are not they. Element `i` of x stands at `x[{name} * i]`
({name} is {value}), as if x were a column of a row-major matrix of {value} columns: BLAS calls this increment
incx. Between the elements stands NaN. The kernels end in `_{tag}_kernel`.
"""


def increment(seed):
    return 2 + digest(seed)[0] % 6


def tag(seed):
    return "".join(chr(ord("a") + byte % 26) for byte in digest(seed)[1:4])


def digest(seed):
    return hashlib.sha256(f"variant {seed}".encode()).digest()


def end_of_brackets(text, begin):
    """Where the bracket that opens at `begin` closes."""
    depth = 0
    for at in range(begin, len(text)):
        depth += (text[at] in "([") - (text[at] in ")]")
        if depth == 0:
            return at
    raise ValueError(f"a bracket without its end: {text[begin : begin + 40]}")


def scaled(text):
    """Source with the increment in each index of x."""
    done = ""
    while match := ACCESS.search(text):
        begin = match.end()
        end = end_of_brackets(text, max(match.start(group) for group in (1, 2, 3)))
        index = scaled(text[begin:end])
        done += (
            text[:begin]
            + INCREMENT
            + " * "
            + (index if re.fullmatch(r"\w+(\[\w+\])?", index) else f"({index})")
        )
        text = text[end:]
    return done + text


def renamed(step, directory, text):
    """A text of the step with the new names of the exercises' kernels, which are defined in `directory`."""
    for exercise in step.exercises:
        for file in exercise.files:
            for name in KERNEL.findall((directory / file).read_text(encoding="utf-8")):
                text = re.sub(rf"\b{name}_kernel\b", f"{name}_{tag(step.variant)}_kernel", text)
    return text


def applied(step, directory, sources):
    """The sources {path: text} of a step in its variant, with a header beside them."""
    result = {
        f"{step.directory}/variant.hpp": HEADER.format(
            name=INCREMENT, value=increment(step.variant)
        )
    }
    for path, text in sources.items():
        text = renamed(step, directory, COUNT.sub(rf"\1{INCREMENT} * \2)", scaled(text)))
        if path.endswith(".cu"):
            text = '#include "variant.hpp"\n' + re.sub(r"\bmake<", "make_variant<", text)
        result[path] = text
    return result


def describe(seed):
    return PARAGRAPH.format(name=INCREMENT, value=increment(seed), tag=tag(seed))
