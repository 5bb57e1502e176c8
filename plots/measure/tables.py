"""Tables, for Markdown and for the HTML report."""

import re
from html import escape

from records import STAND_IN, number

DASH = "—"  # of what has no record


class Table:
    """`rows` are lists of texts, in the first columns, `words`, of words and not of numbers;
    `notes` stand below, and what a dash means, and a star behind a row's name, where there are
    any."""

    def __init__(self, title, columns, rows, notes=(), words=1, dash=""):
        self.title, self.columns, self.rows, self.notes = title, columns, rows, list(notes)
        self.words = words
        if dash and any(DASH in row for row in rows):
            self.notes.append(f"A dash {dash}")
        if any(row[0].endswith("*") for row in rows):
            self.notes.append(STAND_IN)
        for row in rows:
            assert len(row) == len(columns), (title, row)

    def markdown(self):
        lines = [
            "| " + " | ".join(self.columns) + " |",
            "|" + " :--- |" * self.words + " ---: |" * (len(self.columns) - self.words),
        ]
        lines += ["| " + " | ".join(row) + " |" for row in self.rows]
        return "\n".join(lines + [""] + [f"{note}  " for note in self.notes]).rstrip() + "\n"

    def latex(self):
        """A table of LaTeX's own, without packages; the notes are comments."""

        def line(cells):
            text = " & ".join(re.sub(r"([_%&#$])", r"\\\1", cell) for cell in cells)
            return text.replace(DASH, "--") + r" \\"

        head = [*(f"% {note}" for note in [self.title, *self.notes])]
        shape = "l" * self.words + "r" * (len(self.columns) - self.words)
        body = [line(self.columns), r"\hline", *map(line, self.rows)]
        return "\n".join([*head, rf"\begin{{tabular}}{{{shape}}}", *body, r"\end{tabular}", ""])

    def html(self):
        def line(cells, tag):
            return "".join(
                f"<{tag}{'' if c < self.words else ' class=number'}>{escape(text)}</{tag}>"
                for c, text in enumerate(cells)
            )

        body = "".join(f"<tr>{line(row, 'td')}</tr>\n" for row in self.rows)
        notes = "".join(f"<p class=note>{escape(note)}</p>\n" for note in self.notes)
        size = "wide tall" if len(self.rows) > 30 else "wide"
        return (
            f"<div class='{size}'><table><thead><tr>{line(self.columns, 'th')}</tr></thead>\n"
            f"<tbody>{body}</tbody></table></div>\n{notes}"
        )


def looks_table(title, data, rows, heads, theirs, ours, notes=()):
    """The matrices of a paper, and what stands for them here. `theirs`: what stands below `heads`,
    of a row's fields, with | between; `ours`: {head: the same of what `spmv info --json` said}."""
    lines = []
    for row in rows:
        info = data.shapes.get(row["matrix"])
        own = "|".join(ours.values()) + "|{matrix[source]}"
        cells = own.format(**info).split("|") if info else [DASH] * (len(ours) + 1)
        lines.append([row["matrix"], *theirs.format(**row).split("|"), *cells])
    first, *others = ours
    columns = ["matrix", *heads, f"ours: {first}", *others, "source"]
    dash = "is a matrix that was not looked at: `make bench SET=shapes` looks at those that it can load."
    return Table(title, columns, lines, notes, dash=dash)


def cell(value):
    """Three digits, or a dash."""
    return DASH if value is None else number(value)
