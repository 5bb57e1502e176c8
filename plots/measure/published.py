"""The papers' tables, published/*.csv. Their first lines say where they come from: "# paper: ..."."""

import csv
import functools
from pathlib import Path

from record_format import RecordError

PUBLISHED = Path(__file__).resolve().parents[1] / "published"


def rows_in(file):
    """The rows of a table as dictionaries, without the lines that begin with #."""
    with open(file, encoding="utf-8") as lines:
        return list(csv.DictReader(line for line in lines if not line.startswith("#")))


class Published(list):
    """The rows of a table as dictionaries."""

    def __init__(self, name):
        self.name = name
        super().__init__(rows_in(PUBLISHED / f"{name}.csv"))

    def matrices(self):
        return [row["matrix"] for row in self]

    def nonzeros(self):
        """Of each matrix."""
        return {row["matrix"]: int(row["nonzeros"]) for row in self if row.get("nonzeros")}

    def where(self, **wanted):
        return [row for row in self if all(row[k] == v for k, v in wanted.items())]

    def value(self, column="value", **wanted):
        """The one number of `column` in the row that `wanted` describes."""
        rows = self.where(**wanted)
        if len(rows) != 1:
            raise RecordError(f"{self.name}: {len(rows)} rows with {wanted}, not one")
        return float(rows[0][column])


published = functools.lru_cache(Published)
