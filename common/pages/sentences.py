"""Numbers within sentences, written by the script that writes the tables.

    `ell` is <!-- = ell/csr matrices=fem:100000 -->1.8<!--/--> times as fast
    than the <!-- constant: data sheet of the C2050 -->144 GB/s<!--/--> of the device

The first kind is filled from records. A query begins with what is asked for:

    A          the `column` (as in tables; warm_us unless given) of kernel A, or of the kernels that fit A|B*
    A/B        how many times as fast A is as B; where several kernels fit, the fastest of each
    step       microseconds per step of step 10, of `gpus`, `exchange`, `partition`, ...; where one of them is A/B, how many
               times as long it takes with A as with B
    published  of plots/published: table=NAME value=COLUMN, and any COLUMN=TEXT that names the row
    printed    the first group of `/pattern/` (no spaces: \\s) in the generated blocks of this page, or of page=PATH

and goes on with KEY=VALUE: `device` (NVIDIA_H200), `matrices`, `precision` (f64), `program` as in tables, or in=above
or in=below for those of the nearest table. Of several values `take` says what is shown: mean (geometric), least, most
or range; `only` is a pattern of the matrices to take. `digits` (3) are significant ones, `times` a factor, `per` a divisor; as=more shows by how many percent a
ratio exceeds 1, as=less by how many it falls short of it. minus=M over=D show D / (value - M), as bytes over a time without the launch.

The second kind says why a number does not change. check_pages.py finds numbers with a unit that are of neither kind.
"""

import re
import statistics

from page_tables import COLUMNS, BlockError, find_matrix, matches, records_of
from published import published
from records import ROOT, RecordError, number

NUMBER = re.compile(r"(?<!`)<!-- = (.*?) -->(.*?)<!--/-->", re.DOTALL)
TABLE = re.compile(r"^<!-- table: *(.*?) *-->$", re.DOTALL | re.MULTILINE)
GENERATED = re.compile(
    r"^<!-- (?:output|table|claims|time_model)\b.*?^<!-- end -->$", re.DOTALL | re.MULTILINE
)
OWN_KEYS = {"take", "digits", "times", "per", "as", "in", "minus", "over"}
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
    unknown = (
        set(keys) - OWN_KEYS - {"device", "matrices", "precision", "program", "column", "only"}
    )
    if unknown or "matrices" not in keys:
        raise BlockError(
            f"unknown: {', '.join(sorted(unknown))}" if unknown else "a number needs matrices="
        )
    column = COLUMNS.get(keys.get("column", "warm_us"))
    if column is None:
        raise BlockError(f"no column {keys['column']}; there are {', '.join(COLUMNS)}")
    _, value, more_is_better = column
    records = records_of(keys.get("device", "NVIDIA_H200"), None, keys.get("program", ""))
    values = []
    for precision in keys.get("precision", "f64").split(","):
        mine = [r for r in records if r["precision"] == precision]
        names = [name.replace(";", ",") for name in keys["matrices"].split(",")]
        for name in (
            names
            if "only" not in keys
            else [name for name in names if re.search(keys["only"], name)]
        ):
            full = find_matrix(mine, name)
            found = [
                [
                    value(r)
                    for r in mine
                    if r["matrix"] == full and matches(r["kernel"], f"best:{kernels}")
                ]
                for kernels in (first, second)
                if kernels
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
    """Microseconds per step of the records of step 10 that the keys describe. Where a key has two values, A/B, how many
    times as long a step takes with A as with B, of each matrix and number of GPUs that has both."""
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
    rows = [
        r
        for r in records_of(device, None, "multigpu")
        if "best_step_ms" in r and all(str(r.get(key)) == value for key, value in keys.items())
    ]
    found = {(r["matrix"], r["gpus"]): 1e3 * r["best_step_ms"] for r in rows}
    if not found or len(found) < len(rows):
        raise BlockError(
            f"{len(rows)} records of {device} with {keys}, of {len(found)} matrices and numbers of GPUs"
        )
    return found


def of_a_paper(keys):
    keys = {key: value for key, value in keys.items() if key not in OWN_KEYS}
    table, column = keys.pop("table", ""), keys.pop("value", "value")
    try:
        return [published(table).value(column, **keys)]
    except (OSError, KeyError) as error:
        raise BlockError(f"published numbers {table}: {error}") from None


def of_an_output(pattern, keys, text):
    """What a pattern's group has matched in the generated blocks of a page."""
    if "page" in keys:
        text = (ROOT / keys["page"]).read_text(encoding="utf-8")
    found = re.search(pattern, "\n".join(GENERATED.findall(text)), re.MULTILINE)
    if not found:
        raise BlockError(f"no generated block has /{pattern}/")
    return [float(found[1].replace(",", ""))]


def shown(value, digits):
    """Three digits as in tables, or fewer."""
    return number(value) if digits == 3 else f"{value:#.{digits}g}".rstrip(".")


def answer(query, text="", before=(), after=()):
    """The text for a query; `before`, `after`: the arguments of the tables before and after it, nearest last and first."""
    what, *words = query.split()
    pattern = re.fullmatch(r"/(.*)/", words.pop(0)) if what == "printed" and words else None
    keys = keys_of(words)
    if "in" in keys:
        tables = {"above": before[-1:], "below": after[:1]}.get(keys["in"])
        if not tables:
            raise BlockError(f"no table {keys['in']}")
        table = keys_of(tables[0].split())
        keys = {
            key: table[key]
            for key in ("device", "matrices", "precision", "program")
            if key in table
        } | keys
    if what == "printed":
        if not pattern:
            raise BlockError("printed needs /a pattern/")
        values = of_an_output(pattern[1], keys, text)
    else:
        values = (
            of_a_step(keys)
            if what == "step"
            else of_a_paper(keys)
            if what == "published"
            else measured(what, keys)
        )
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


def fill_numbers(text, changed, failed):
    """A page's text with its numbers filled; adds the markers of those that changed, and what went wrong."""
    tables = [(match.start(), " ".join(match[1].split())) for match in TABLE.finditer(text)]

    def replace(match):
        query, old = match.groups()
        before = [arguments for start, arguments in tables if start < match.start()]
        after = [arguments for start, arguments in tables if start > match.start()]
        try:
            new = answer(query, text, before, after)
        except (BlockError, RecordError, ValueError) as error:
            failed.append((f"<!-- = {query} -->", str(error)))
            return match[0]
        if new == old:
            return match[0]
        changed.append(f"<!-- = {query} -->: {old or 'nothing'} becomes {new}")
        return f"<!-- = {query} -->{new}<!--/-->"

    return NUMBER.sub(replace, text)
