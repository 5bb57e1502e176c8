"""Tables, for Markdown and for the HTML report."""

from html import escape

from records import number


class Table:
    """`rows` are lists of texts; `notes` stand below."""

    def __init__(self, title, columns, rows, notes=()):
        self.title, self.columns, self.rows, self.notes = title, columns, rows, list(notes)
        for row in rows:
            assert len(row) == len(columns), (title, row)

    def markdown(self):
        lines = ["| " + " | ".join(self.columns) + " |",
                 "| :--- |" + " ---: |" * (len(self.columns) - 1)]
        lines += ["| " + " | ".join(row) + " |" for row in self.rows]
        return "\n".join(lines + [""] + [f"{note}  " for note in self.notes]).rstrip() + "\n"

    def html(self):
        head = "".join(f"<th>{escape(c)}</th>" for c in self.columns)
        body = "".join("<tr>" + "".join(f"<td>{escape(c)}</td>" for c in row) + "</tr>\n"
                       for row in self.rows)
        notes = "".join(f"<p class=note>{escape(note)}</p>" for note in self.notes)
        return (f"<table class=sortable><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>"
                f"{notes}")


def cell(value):
    """Three digits, or a dash."""
    return "—" if value is None else number(value)
