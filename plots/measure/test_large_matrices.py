"""Tests that the large matrices are what they are called, on small ones."""

import contextlib
import io
import os
import tempfile
import unittest
import unittest.mock
from pathlib import Path

import large_matrices
import numpy as np
from scipy import sparse, spatial
from sets import catalogue_nonzeros, expanded, split_order

SMALL = {name: large_matrices.made(name, small=True) for name in large_matrices.MATRICES}
ALL = {stem: matrix for matrices in SMALL.values() for stem, matrix in matrices.items()}


def sizes_of(name):
    return large_matrices.MATRICES[name][2]


def is_symmetric(matrix):
    return abs(matrix - matrix.T).max() <= 1e-12 * abs(matrix).max()


class LargeMatrices(unittest.TestCase):
    def test_all_are_csr_with_ascending_columns_and_32_bits(self):
        for stem, matrix in ALL.items():
            with self.subTest(stem):
                self.assertEqual(matrix.indices.dtype, np.int32)
                self.assertEqual(matrix.indptr.dtype, np.int32)
                self.assertEqual(matrix.nnz, matrix.indptr[-1])
                steps = np.diff(matrix.indices)
                starts = matrix.indptr[1:-1]
                within = np.setdiff1d(np.arange(1, matrix.nnz), starts) - 1
                self.assertTrue((steps[within] > 0).all())

    def test_each_seed_is_one_matrix(self):
        again = large_matrices.made("osqp_random", small=True)["osqp_random"]
        self.assertEqual(abs(again - ALL["osqp_random"]).nnz, 0)
        other = large_matrices.delaunay(2000, seed=2)
        self.assertGreater(abs(other - ALL["delaunay_2e20"]).nnz, 0)

    def test_the_catalogue_and_the_sets_have_all_of_them(self):
        sizes, declared = catalogue_nonzeros(), set(expanded("@large"))
        for stem in ALL:
            self.assertIn(stem, sizes)
            self.assertIn(stem, declared)
        for name in {split_order(name)[0] for name in expanded("@reordered", lambda _: [])}:
            self.assertIn(name, catalogue_nonzeros())

    def test_delaunay_is_a_planar_triangulation(self):
        graph, count = ALL["delaunay_2e20"], *sizes_of("delaunay_2e20")
        self.assertTrue((graph.data == 1).all() and is_symmetric(graph))
        self.assertEqual(graph.diagonal().sum(), 0)
        hull = spatial.ConvexHull(large_matrices.random_points(count, 2, 1)).vertices
        self.assertEqual(graph.nnz, 2 * (3 * count - 3 - len(hull)))  # Euler's formula
        # Each point has an edge to the one nearest to it.
        points = large_matrices.random_points(count, 2, 1)
        _, nearest = spatial.cKDTree(points).query(points, 2)
        self.assertTrue((graph[np.arange(count), nearest[:, 1]] == 1).all())

    def test_a_geometric_graph_has_the_pairs_within_the_radius(self):
        graph, count = ALL["rgg_2e20"], *sizes_of("rgg_2e20")
        points = large_matrices.random_points(count, 2, 1)
        distances = spatial.distance.cdist(points, points)
        near = (distances <= large_matrices.radius_of(count)) & ~np.eye(count, dtype=bool)
        self.assertTrue((graph.toarray() == near).all())

    def test_a_curve_visits_every_point_once_and_neighbours_soon(self):
        points = np.random.RandomState(3).random_sample((5000, 3))
        order = large_matrices.along_a_curve(points)
        self.assertTrue((np.sort(order) == np.arange(5000)).all())
        ahead = np.linalg.norm(np.diff(points[order], axis=0), axis=1).mean()
        self.assertLess(ahead, 0.2 * np.linalg.norm(np.diff(points, axis=0), axis=1).mean())

    def test_elements_are_symmetric_and_positive_definite_and_know_constants(self):
        for name, unknowns in (("tets1", 1), ("tets3", 3)):
            count = sizes_of(name)[0]
            points = np.random.RandomState(1).random_sample((count, 3))
            volume = spatial.ConvexHull(points).volume
            for order, matrix in SMALL[name].items():
                with self.subTest(order):
                    self.assertEqual(matrix.shape, (unknowns * count,) * 2)
                    self.assertTrue(is_symmetric(matrix))
                    self.assertGreater(np.linalg.eigvalsh(matrix.toarray())[0], 0)
                    # A constant has no gradient, and moving all points alike is no strain: mass is
                    # left.
                    for c in range(unknowns):
                        constant = np.zeros(unknowns * count)
                        constant[c::unknowns] = 1
                        self.assertAlmostEqual(constant @ matrix @ constant, volume, places=9)
        # Nor is a rotation, about the z axis: (-y, x, 0).
        points = np.random.RandomState(1).random_sample((sizes_of("tets3")[0], 3))
        turned = np.c_[-points[:, 1], points[:, 0], np.zeros(len(points))].ravel()
        strain = ALL["tets3_random"] @ turned
        mass_only = turned @ strain
        self.assertLess(mass_only, (turned**2).mean() * 3 * 1.2)
        # u = x: the integral of its square gradient, 1, and of its square.
        points = np.random.RandomState(1).random_sample((sizes_of("tets1")[0], 3))
        energy = points[:, 0] @ ALL["tets1_random"] @ points[:, 0]
        volume = spatial.ConvexHull(points).volume
        self.assertTrue(volume < energy < 2 * volume)

    def test_orders_of_a_mesh_are_one_matrix_renumbered(self):
        def width(matrix):
            entries = matrix.tocoo()
            return abs(entries.row - entries.col).max()

        def mean_distance(matrix):
            entries = matrix.tocoo()
            return abs(entries.row - entries.col).mean()

        for name in ("tets1", "tets3"):
            random, curve, rcm = (SMALL[name][f"{name}_{o}"] for o in large_matrices.ORDERS)
            spectrum = np.linalg.eigvalsh(random.toarray())
            for other in (curve, rcm):
                self.assertTrue(np.allclose(spectrum, np.linalg.eigvalsh(other.toarray())))
                self.assertLess(mean_distance(other), 0.6 * mean_distance(random))
            self.assertLess(width(rcm), 0.6 * width(random))

    def test_a_programme_is_symmetric_and_quasidefinite(self):
        for stem, (variables, rows) in {
            "osqp_lasso": (4 + 400 + 4, 400 + 8),
            "osqp_portfolio": (400 + 4, 4 + 1 + 400),
            "osqp_random": (40, 400),
            "osqp_control": (11 * 6 + 10 * 3, 11 * 6 + 11 * 6 + 10 * 3),
        }.items():
            with self.subTest(stem):
                matrix = ALL[stem]
                self.assertEqual(matrix.shape, (variables + rows,) * 2)
                self.assertTrue(is_symmetric(matrix))
                self.assertTrue((matrix.data != 0).all())
                values = np.linalg.eigvalsh(matrix.toarray())
                self.assertEqual([(values > 0).sum(), (values < 0).sum()], [variables, rows])

    def test_portfolio_weights_add_up_to_one_in_one_row(self):
        matrix, assets, factors = ALL["osqp_portfolio"], 400, 4
        row = matrix[assets + factors + factors].toarray().ravel()
        self.assertTrue((row[:assets] == 1).all() and (row[assets : assets + factors] == 0).all())

    def test_control_obeys_its_dynamics(self):
        # A state after a state, and nothing else, in a row of the equations.
        matrix, states, horizon = ALL["osqp_control"], *sizes_of("osqp_control")
        first = states * (horizon + 1) + states // 2 * horizon
        rows = matrix[first : first + states].toarray()
        self.assertTrue((rows[:, :states] == -np.eye(states)).all())
        self.assertEqual(np.count_nonzero(rows[:, states:first]), 0)
        after = matrix[first + states : first + 2 * states].toarray()
        self.assertTrue((after[:, states : 2 * states] == -np.eye(states)).all())
        self.assertLess(abs(np.linalg.eigvals(after[:, :states])).max(), 1)

    def test_transport_has_a_source_and_a_sink_per_way(self):
        matrix, (sources, sinks) = ALL["transport_lp"], sizes_of("transport_lp")
        self.assertEqual(matrix.shape, (sources + sinks, sources * sinks))
        self.assertTrue((matrix.data == 1).all())
        for way in range(sources * sinks):
            rows = matrix[:, way].nonzero()[0]
            self.assertEqual(list(rows), [way // sinks, sources + way % sinks])

    def test_files_are_kept_written_whole_and_of_the_right_size(self):
        with tempfile.TemporaryDirectory() as directory:
            place = Path(directory)
            made = ["tets1_curve.npz", "tets1_random.npz", "tets1_rcm.npz", "transport_lp.npz"]
            for name in ("tets1", "transport_lp"):
                large_matrices.write(name, place, small=True)
            self.assertEqual(sorted(file.name for file in place.iterdir()), made)
            read = sparse.load_npz(place / "tets1_rcm.npz")
            self.assertEqual(abs(read - ALL["tets1_rcm"]).nnz, 0)
            said = io.StringIO()
            with (
                contextlib.redirect_stdout(said),
                unittest.mock.patch.dict(os.environ, SPMV_DATA=directory),
            ):
                large_matrices.main(["transport_lp"])
            self.assertEqual(said.getvalue(), "transport_lp is there\n")
        with tempfile.TemporaryDirectory() as directory:
            with unittest.mock.patch.dict(
                large_matrices.MATRICES, transport_lp=(large_matrices.transport, (3, 4), ())
            ):
                with self.assertRaisesRegex(SystemExit, "not the catalogue's"):
                    large_matrices.write("transport_lp", Path(directory))
            self.assertEqual(list(Path(directory).iterdir()), [])
        with self.assertRaisesRegex(SystemExit, "no large matrix is called tets2"):
            large_matrices.main(["tets2"])


if __name__ == "__main__":
    unittest.main()
