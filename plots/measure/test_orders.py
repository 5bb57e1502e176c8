"""plots/python.sh plots/run_tests.py test_orders"""

import orders
from sample_records import Scratch, record, write
from sets import split_order


class Orders(Scratch):
    def lines(self):
        table = orders.table("Some_GPU", "f32", self.root)
        return {(row[0], row[1]): row[2:] for row in table.rows}

    def test_what_an_order_is_worth_and_after_how_many_products_it_pays(self):
        def of(matrix, kernel, ms, order_ms=0, permute_ms=0):
            return record(
                kernel, matrix, ms, precision="f32", order_ms=order_ms, permute_ms=permute_ms
            )

        write(
            self.root / "Some_GPU" / "large.jsonl",
            [
                of("kronecker_18", "pcsr_one_pass", 0.142),
                of("kronecker_18", "cusparse_csr_alg1", 0.15),
                of("tets1_random", "pcsr_one_pass", 0.1),
            ],
        )
        write(
            self.root / "Some_GPU" / "orders" / "bench.jsonl",
            [
                of("kronecker_18,order=columns", "pcsr_one_pass", 0.076, 500, 0.006),
                of("kronecker_18,order=columns", "cusparse_csr_alg1", 0.08, 500, 0.006),
                of("kronecker_18,order=degree", "pcsr_one_pass", 0.15, 500, 0.006),
                of("tets1_random,order=rcm", "pcsr_one_pass", 0.05, 500, 0.006),
            ],
        )
        found = self.lines()
        self.assertEqual(found["kronecker_18", "none"], ["—", "142", "150", "1", "—", "—"])
        # 500 ms over 142 - 76 - 6 us.
        self.assertEqual(
            found["kronecker_18", "columns"], ["—", "76.0", "80.0", "1.87", "6.00", "500 ms, 8,334"]
        )
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
        self.assertEqual(orders.sectors_per_request({"traffic": counts}), 12)
        self.assertIsNone(orders.sectors_per_request({}))

    def test_a_name_and_its_order(self):
        self.assertEqual(split_order("rmat:scale=9,order=rcm"), ("rmat:scale=9", "rcm"))
        self.assertEqual(split_order("a,dof=2"), ("a,dof=2", None))
