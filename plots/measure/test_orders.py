"""plots/python.sh plots/run_tests.py test_orders"""

import show
from sample_records import Scratch, record, write
from sets import split_order


class Orders(Scratch):
    def lines(self):
        table = show.orders("Some_GPU", "f32", self.root)
        return {(row[0], row[1]): row[2:] for row in table.rows}

    def test_what_an_order_is_worth_and_after_how_many_products_it_pays(self):
        def of(matrix, kernel, ms, order_ms=0, permute_ms=0):
            times = {"order_ms": order_ms, "permute_ms": permute_ms}
            return record(kernel, matrix, ms, precision="f32", **times)

        own, rival = "pcsr_one_pass", "cusparse_csr_alg1"
        first = [of("kronecker_18", own, 0.142), of("kronecker_18", rival, 0.15)]
        write(self.root / "Some_GPU/large.jsonl", [*first, of("tets1_random", own, 0.1)])
        times = (
            ("kronecker_18,order=columns", own, 0.076),
            ("kronecker_18,order=columns", rival, 0.08),
            ("kronecker_18,order=degree", own, 0.15),
            ("tets1_random,order=rcm", own, 0.05),
        )
        ordered = [of(*thing, order_ms=500, permute_ms=0.006) for thing in times]
        write(self.root / "Some_GPU/orders/bench.jsonl", ordered)
        found = self.lines()
        self.assertEqual(found["kronecker_18", "none"], ["—", "142", "150", "1", "—", "—"])
        # 500 ms over 142 - 76 - 6 us.
        wanted = ["—", "76.0", "80.0", "1.87", "6.00", "500 ms, 8,334"]
        self.assertEqual(found["kronecker_18", "columns"], wanted)
        self.assertEqual(found["kronecker_18", "degree"][3:], ["0.95", "6.00", "500 ms, never"])
        # Vectors are permuted once: 500 ms over 50 us.
        self.assertEqual(found["tets1_random", "rcm"][3:], ["2.00", "6.00", "500 ms, 10,000"])
        self.assertEqual(found["tets3_random", "rcm"][1], "not measured yet")

    def test_without_records_every_line_says_so(self):
        found = self.lines()
        self.assertEqual({cells[1] for cells in found.values()}, {"not measured yet"})
        self.assertIn(("cnr-2000", "columns"), found)

    def test_sectors_are_those_of_loads_of_x(self):
        counts = [
            {"array": "x", "access": "load", "requests": 4, "sectors": 50},
            {"array": "x", "access": "load", "requests": 1, "sectors": 10},
            {"array": "values", "access": "load", "requests": 1, "sectors": 8},
        ]
        self.assertEqual(show.sectors_per_request({"traffic": counts}), 12)
        self.assertIsNone(show.sectors_per_request({}))

    def test_a_name_and_its_order(self):
        self.assertEqual(split_order("rmat:scale=9,order=rcm"), ("rmat:scale=9", "rcm"))
        self.assertEqual(split_order("a,dof=2"), ("a,dof=2", None))
