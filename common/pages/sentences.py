"""Numbers within sentences, kept up to date by the script that writes the tables.

    `ell` takes 1.8 times as long as `csr`, 45.4 µs. <!-- 1.8 = fem csr/ell digits=2 | 45.4 = fem ell -->

The comment stands at the end of its paragraph or list item, and binds numbers of that text, in
their order. A query is

    MATRICES KERNEL [COLUMN]  the column (as in tables; warm_us) of the kernels that fit A|B*
    MATRICES A/B [COLUMN]     how many times as fast A is as B; where several fit, the fastest of each
    step KEY=VALUE...         microseconds per step of step 10, of `gpus`, `exchange`, `partition`;
                              where one is A/B, how many times as long it takes with A as with B
    published KEY=VALUE...    of plots/published: table=NAME value=COLUMN, COLUMN=TEXT of the row

and goes on with KEY=VALUE: `device` (NVIDIA_H200), `precision` (f64), `program` as in tables.
MATRICES are as in tables, or above or below: those, and its device, of the nearest table. Of
several values `take` says what is shown: mean (geometric), least, most or range; `only` is a
pattern of the matrices to take. `digits` (3) are significant ones, `times` a factor, `per` a
divisor; as=more shows by how many percent a ratio exceeds 1, as=less by how many it falls short of
it. minus=M over=D show D / (value - M), as bytes over a time without the launch.

Numbers of printed outputs need no comment: a page's text may name what stands in an output or table
of the same page. check_pages.py finds times, speeds and shares that are bound by neither, and lets
pass those that the page declares not to be measured, once: <!-- fixed: 4,800 GB/s (data sheet of
the H200) | 10% (the definition) -->
"""

import re
import statistics

from check_pages import BOUND
from page_tables import COLUMNS, BlockError, find_matrix, matches, records_of
from published import published
from records import RecordError, number

ITEM = re.compile(r"^ *(?:[-*+]|\d+[.)]) |^\|", re.MULTILINE)  # of a list, or a line of a table
TABLE = re.compile(r"^<!-- table: *(.*?) *-->$", re.DOTALL | re.MULTILINE)
OWN_KEYS = {"take", "digits", "times", "per", "as", "minus", "over"}
TAKES = {"mean": statistics.geometric_mean, "least": min, "most": max}
PERCENT = {"more": lambda ratio: 100 * (ratio - 1), "less": lambda ratio: 100 * (1 - ratio)}


def keys_of(words):
    """KEY=VALUE words as a dictionary."""
    bad = [word for word in words if "=" not in word]
    if bad:
        raise BlockError(f"no KEY=VALUE: {bad[0]}")
    return dict(word.split("=", 1) for word in words)


def measured(what, keys):
    """Values of A or A/B, one per matrix and precision (of A alone: and kernel)."""
    first, _, second = what.partition("/")
    unknown = set(keys) - OWN_KEYS - set("device matrices precision program column only".split())
    if unknown:
        raise BlockError(f"unknown: {', '.join(sorted(unknown))}")
    if "matrices" not in keys:
        raise BlockError("a number needs matrices=")
    column = COLUMNS.get(keys.get("column", "warm_us"))
    if column is None:
        raise BlockError(f"no column {keys['column']}; there are {', '.join(COLUMNS)}")
    _, value, more_is_better = column
    records = records_of(keys.get("device", "NVIDIA_H200"), None, keys.get("program", ""))
    values = []
    for precision in keys.get("precision", "f64").split(","):
        mine = [r for r in records if r["precision"] == precision]
        names = [name.replace(";", ",") for name in keys["matrices"].split(",")]
        for name in (name for name in names if re.search(keys.get("only", ""), name)):
            full = find_matrix(mine, name)
            of = [r for r in mine if r["matrix"] == full]
            found = [
                [value(r) for r in of if matches(r["kernel"], f"best:{kernels}")]
                for kernels in filter(None, (first, second))
            ]
            if not all(found):
                raise BlockError(f"no record of {what} on {name} in {precision}")
            if not second:
                values += found[0]
            else:
                ours, theirs = ((max if more_is_better else min)(of) for of in found)
                values.append(ours / theirs if more_is_better else theirs / ours)
    return values


def of_a_step(keys):
    """Microseconds per step of the records of step 10 that the keys describe. Where a key has two
    values, A/B, how many times as long a step takes with A as with B, of each matrix and number of
    GPUs that has both."""
    both = next((key for key, value in keys.items() if "/" in value), None)
    if both:
        first, second = (steps_of({**keys, both: value}) for value in keys[both].split("/"))
        return [first[thing] / second[thing] for thing in first if thing in second]
    return list(steps_of(keys).values())


def steps_of(keys):
    """{(matrix, GPUs): microseconds per step}"""
    keys = {key: value for key, value in keys.items() if key not in OWN_KEYS}
    device = keys.pop("device", "NVIDIA_H200")
    if "matrices" in keys:
        keys["matrix"] = keys.pop("matrices").replace(";", ",")
    rows = [r for r in records_of(device, None, "multigpu") if "best_step_ms" in r]
    rows = [r for r in rows if all(str(r.get(key)) == value for key, value in keys.items())]
    found = {(r["matrix"], r["gpus"]): 1e3 * r["best_step_ms"] for r in rows}
    if not found or len(found) < len(rows):
        of = f"of {len(found)} matrices and numbers of GPUs"
        raise BlockError(f"{len(rows)} records of {device} with {keys}, {of}")
    return found


def of_a_paper(keys):
    keys = {key: value for key, value in keys.items() if key not in OWN_KEYS}
    table, column = keys.pop("table", ""), keys.pop("value", "value")
    try:
        return [published(table).value(column, **keys)]
    except (OSError, KeyError) as error:
        raise BlockError(f"published numbers {table}: {error}") from None


def shown(value, digits):
    """Three digits as in tables, or fewer."""
    return number(value) if digits == 3 else f"{value:#.{digits}g}".rstrip(".")


def keys_of_query(words, before, after):
    """Of `MATRICES KERNELS [COLUMN] KEY=VALUE...`: the kernels, and the rest as a dictionary."""
    if len(words) < 2:
        raise BlockError("a number needs MATRICES KERNEL, step or published")
    matrices, kernels, *rest = words
    keys = {"column": rest.pop(0)} if rest and "=" not in rest[0] else {}
    keys |= keys_of(rest)
    if matrices not in ("above", "below"):
        return kernels, {"matrices": matrices} | keys
    tables = {"above": before[-1:], "below": after[:1]}[matrices]
    if not tables:
        raise BlockError(f"no table {matrices}")
    table = keys_of(tables[0].split())
    known = ("device", "matrices", "precision", "program")
    return kernels, {key: table[key] for key in known if key in table} | keys


def answer(query, before=(), after=()):
    """The text for a query; `before`, `after`: the arguments of the tables before and after it,
    nearest last and first."""
    what, *words = query.split()
    if what in ("step", "published"):
        keys = keys_of(words)
        values = of_a_step(keys) if what == "step" else of_a_paper(keys)
    else:
        kernels, keys = keys_of_query([what, *words], before, after)
        values = measured(kernels, keys)
    values = [value * float(keys.get("times", 1)) / float(keys.get("per", 1)) for value in values]
    values = [value - float(keys.get("minus", 0)) for value in values]
    values = [float(keys["over"]) / value for value in values] if "over" in keys else values
    take = keys.get("take")
    if take is None and len(values) != 1:
        raise BlockError(f"{len(values)} values; say take=mean, least, most or range")
    if take not in (None, "range", *TAKES):
        raise BlockError(f"take={take}: there are {', '.join(TAKES)}, range")
    if keys.get("as", "more") not in PERCENT:
        raise BlockError(f"as={keys['as']}: there are {', '.join(PERCENT)}")
    values = (
        [min(values), max(values)] if take == "range" else [TAKES[take](values)] if take else values
    )
    if "as" in keys:
        texts = [f"{PERCENT[keys['as']](value):.0f}" for value in values]
    else:
        texts = [shown(value, int(keys.get("digits", 3))) for value in values]
    return " to ".join(dict.fromkeys(texts))


def place_of(number, text, begin, end):
    """Where a number stands in a text, or None."""
    found = re.compile(rf"(?<![\w.,]){re.escape(number)}(?!\w|[.,]\d)").search(text, begin, end)
    return found and found.start()


def fill_numbers(text, changed, failed):
    """A page's text with its numbers filled; adds those that changed, and what went wrong."""
    tables = [(match.start(), " ".join(match[1].split())) for match in TABLE.finditer(text)]
    parts, done = [], 0  # of the new text; how far the old one is in them
    for match in BOUND.finditer(text):
        start = match.start()
        before = [arguments for at, arguments in tables if at < start]
        after = [arguments for at, arguments in tables if at > start]
        at = max(done, text.rfind("\n\n", 0, start) + 1)
        at = max([at, *(item.start() for item in ITEM.finditer(text, at, start))])
        bound = []
        for binding in match[1].split(" | "):
            old, _, query = binding.partition(" = ")
            query = " ".join(query.split())
            there = place_of(old, text, at, start)
            try:
                if there is None:
                    raise BlockError(f"{old} does not stand in the paragraph, in this order")
                new = answer(query, before, after)
            except (BlockError, RecordError, ValueError) as error:
                failed.append((f"<!-- {old} = {query} -->", str(error)))
                new = old
            if there is not None:
                parts += [text[done:there], new]
                at = done = there + len(old)
            if new != old:
                changed.append(f"{old} becomes {new} = {query}")
            bound.append(f"{new} = {query}")
        parts += [text[done:start], f"<!-- {' | '.join(bound)} -->"]
        done = match.end()
    return "".join(parts) + text[done:]
