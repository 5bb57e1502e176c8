#!/usr/bin/env python3
"""Do the papers' numbers agree with each other? Writes published/disagreements.csv.

    plots/python.sh plots/papers/check_published.py           write what disagrees
    plots/python.sh plots/papers/check_published.py --check   exit 1 if the file says something else

Where a printed number follows from others (an efficiency from times, a speed-up from times, a mean
from its column), it is computed again. Every printed number is taken as anything that rounds to it,
or is cut to it, so that a disagreement is none of rounding. Nothing is mended.
"""

import csv
import io
import sys
from statistics import mean

from records import PUBLISHED, published


class Interval:
    """All that a printed number may have been: half a unit of its last digit up and down, or a
    whole one up, for papers that cut digits off."""

    def __init__(self, low, high):
        self.low, self.high = low, high

    @classmethod
    def of(cls, text):
        digits = len(text.split(".")[1].split("e")[0]) if "." in text else 0
        unit = 10.0**-digits
        if "e" in text:
            unit *= 10.0 ** int(text.split("e")[1])
        return cls(float(text) - unit / 2, float(text) + unit)

    def over(self, other):
        return Interval(self.low / other.high, self.high / other.low)

    def times(self, factor):
        return Interval(self.low * factor, self.high * factor)

    def meets(self, other):
        return self.low <= other.high and other.low <= self.high


def exactly(value):
    return Interval(value, value)


found = []


def compare(table, row, column, printed, computed, how):
    """Notes a number, as text, that nothing in the Interval `computed` can be printed as."""
    if not Interval.of(printed).meets(computed):
        middle = (computed.low + computed.high) / 2
        found.append((table, row, column, printed, f"{middle:.4g}", how))


def same_column(name, column, computed, how):
    """Compares a column of a table with what computed(row) gives."""
    for row in published(name):
        compare(name, row["matrix"], column, row[column], computed(row), how)


def per_row(row):
    return exactly(int(row["nonzeros"]) / int(row["rows"]))


def he_gao():
    same_column("he_gao_2016_table2", "nonzeros_a_row", per_row, "nonzeros / rows")
    sizes = {row["matrix"]: (row["rows"], row["nonzeros"]) for row in published("he_gao_2016_table2")}
    said = published("he_gao_2016_text")
    for number, figure, gpus in ((3, "7", 2), (4, "8", 4), (5, "9", 2), (6, "10", 4)):
        name = f"he_gao_2016_table{number}"
        table = published(name)
        for row in table:
            if "rows" in row and (row["rows"], row["nonzeros"]) != sizes[row["matrix"]]:
                found.append((name, row["matrix"], "rows", row["rows"], "", "not those of table 2"))
            for way in ("I", "II"):
                computed = Interval.of(row["one_gpu"]).over(Interval.of(row[f"time_{way}"]))
                compare(name, row["matrix"], f"efficiency_{way}", row[f"efficiency_{way}"],
                        computed.times(100 / gpus), f"100 * one_gpu / ({gpus} * time)")
        for way in ("I", "II"):
            column = [float(row[f"efficiency_{way}"]) for row in table]
            for of in (max, mean, min):
                words = said.where(figure=figure, what=f"{of.__name__}_efficiency_{way}")[0]
                compare("he_gao_2016_text", f"section {words['section']}, {gpus} GPUs", words["what"], words["value"],
                        exactly(of(column)), f"{of.__name__} of the column of table {number}")
    # A share of the peak of 144 GB/s (Godwin, table 1; Bylina, table 1). "Exceeds" by what is not said.
    for row in said.where(what="share_of_peak"):
        value = said.value(what="max_bandwidth", precision=row["precision"])
        compare("he_gao_2016_text", f"section {row['section']}", "share_of_peak", row["value"],
                Interval(100 * value / 144, 100 * (value + 2) / 144), "max_bandwidth / 144 GB/s")


PRODUCTS = 1000  # how many the times of tables 4 and 6 must be of


def bylina():
    sizes = {row["matrix"]: int(row["nonzeros"]) for number in (2, 3) for row in published(f"bylina_2011_table{number}")}
    for number in (2, 3):
        same_column(f"bylina_2011_table{number}", "density", per_row, "nonzeros / rows")
    for times, speedups in ((4, 5), (6, 7)):
        given = {row["matrix"]: row for row in published(f"bylina_2011_table{times}")}
        for row in published(f"bylina_2011_table{speedups}"):
            for kernel in ("coo", "csr", "ell", "hyb"):
                matrix = given[row["matrix"]]
                compare(f"bylina_2011_table{speedups}", row["matrix"], kernel, row[kernel],
                        Interval.of(matrix["cpu"]).over(Interval.of(matrix[kernel])), f"times of table {times}")
    said = published("bylina_2011_text")
    rates = {
        (row["matrix"], kernel): 2e-9 * PRODUCTS * sizes[row["matrix"]] / float(row[kernel])
        for number in (4, 6) for row in published(f"bylina_2011_table{number}")
        for kernel in ("cpu", "coo", "csr", "ell", "hyb")
    }
    # Section 6 says that CSR is best up to 50,000 rows, by which it must mean its matrix of 50,225, called
    # m_50K, and HYB above. (Section 5.2 has CSR or ELL for small ones.) In table 6 HYB is best from m_650K on.
    limit = 1.01 * said.value(what="csr_best_up_to_rows")
    rows = {row["matrix"]: int(row["rows"]) for row in published("bylina_2011_table3")}
    for row in published("bylina_2011_table6"):
        printed = "csr" if rows[row["matrix"]] <= limit else "hyb"
        best = min(("coo", "csr", "ell", "hyb"), key=lambda kernel: float(row[kernel]))
        if best != printed:
            found.append(("bylina_2011_text", "section 6, figures 11 and 12", f"best format of {row['matrix']}",
                          printed, best, "times of table 6"))
    first = [row["matrix"] for row in published("bylina_2011_table2")]
    peaks = {"cpu": 48.96, "gpu": 1030}  # GFLOP/s in single precision, table 1
    for what, matrix, kernel, device in (
            ("max_cpu_utilisation", "shipsec1", "cpu", "cpu"),
            ("min_cpu_utilisation", "mc2depi", "cpu", "cpu"),
            ("max_gpu_utilisation", "consph", "csr", "gpu"),
            ("min_gpu_utilisation", "qcd5_4", "csr", "gpu")):
        words = said.where(what=what)[0]
        compare("bylina_2011_text", f"section 5.2, {words['words']}", what, words["value"],
                exactly(100 * rates[matrix, kernel] / peaks[device]),
                f"nonzeros, {PRODUCTS} products and times of table 4; peak of table 1")
    for figure, names in (("10", first), ("12", [m for m, _ in rates if m not in first])):
        words = said.where(figure=figure, what="max_gflops", precision="f32")[0]
        best = max(rate for (m, kernel), rate in rates.items() if m in names and kernel != "cpu")
        if not best >= float(words["value"]):
            found.append(("bylina_2011_text", f"section 6, figure {figure}", "max_gflops f32",
                          f"{words['words']} {words['value']}", f"{best:.4g}",
                          f"nonzeros, {PRODUCTS} products and times"))


def lightspmv():
    same_column("lightspmv_poster_matrices", "mean", per_row, "nonzeros / rows")
    table, said = published("lightspmv_poster_table"), published("lightspmv_poster_text")
    for precision in ("f32", "f64"):
        same_column("lightspmv_poster_table", f"speedup_{precision}", lambda row: Interval.of(row[f"warp_{precision}"]).over(
            Interval.of(row[f"vector_{precision}"])), "warp / vector")
        for kernel in ("warp", "vector"):
            column = [float(row[f"{kernel}_{precision}"]) for row in table]
            for of in (max, mean):
                words = said.where(rival=kernel, what=of.__name__, precision=precision)[0]
                compare("lightspmv_poster_text", kernel, f"{of.__name__} {precision}", words["value"],
                        exactly(of(column)), "the column of the table")


def disagreements():
    found.clear()
    he_gao()
    bylina()
    lightspmv()
    out = io.StringIO()
    out.write("# written by plots/papers/check_published.py: printed numbers that others of the same paper"
              " contradict\n")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("table", "row", "column", "printed", "computed", "from"))
    writer.writerows(found)
    return out.getvalue()


def main():
    path = PUBLISHED / "disagreements.csv"
    text = disagreements()
    if "--check" in sys.argv[1:]:
        if path.read_text() == text:
            return 0
        print(f"{path.name} is out of date: run `plots/python.sh plots/papers/check_published.py`", file=sys.stderr)
        return 1
    path.write_text(text)
    print(f"{len(found)} disagreements in {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
