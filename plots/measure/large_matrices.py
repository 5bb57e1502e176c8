#!/usr/bin/env python3
"""Makes large matrices by public definitions, into data/: `make data ARGS=large` calls this.

    large_matrices.py                    all of them, several at a time
    large_matrices.py rgg_2e20 tets1     these; a name stands for all orders of a mesh

They are exact: what a matrix is follows from its definition and a seed, and its size is compared
with the catalogue's (common/sparse/catalogue.tsv). Files are scipy.sparse.save_npz's, uncompressed,
which `make run MATRIX=file.npz` reads. Random numbers come from NumPy's RandomState, whose streams
are the same in every version. A file that is there is kept.
"""

import concurrent.futures
import os
import sys
import time
from pathlib import Path

import numpy as np
from scipy import linalg, sparse, spatial

from sets import catalogue

ROOT = Path(__file__).resolve().parents[2]


# --- Graphs of points -----------------------------------------------------------------------------


def along_a_curve(points, bits=20):
    """The points in the order in which a Z-order curve visits them: by the interleaved bits of
    their coordinates."""
    key = np.zeros(len(points), np.int64)
    dimensions = points.shape[1]
    cells = (points * (1 << bits)).astype(np.int64)
    for bit in range(bits):
        for d in range(dimensions):
            key |= (cells[:, d] >> bit & 1) << (bit * dimensions + d)
    return np.argsort(key, kind="stable")


def random_points(count, dimensions, seed):
    """Uniform in the unit cube, numbered along a Z-order curve."""
    points = np.random.RandomState(seed).random_sample((count, dimensions))
    return points[along_a_curve(points)]


def graph_of(edges, vertices):
    """The adjacency matrix: 1 at (i, j) and (j, i) of each edge. Edges may come more than once."""
    ends = np.concatenate([edges, edges[:, ::-1]]).T
    graph = sparse.csr_matrix((np.ones(ends.shape[1], np.int8), ends), (vertices, vertices))
    graph.data[:] = 1
    return graph


def delaunay(count, seed=1):
    triangles = spatial.Delaunay(random_points(count, 2, seed)).simplices
    edges = np.concatenate([triangles[:, pair] for pair in ([0, 1], [1, 2], [2, 0])])
    return graph_of(edges, count)


def geometric(count, seed=1):
    return graph_of(close_pairs(random_points(count, 2, seed)), count)


def radius_of(count):
    return 0.55 * np.sqrt(np.log(count) / count)


def close_pairs(points):
    return spatial.cKDTree(points).query_pairs(radius_of(len(points)), output_type="ndarray")


# --- Linear finite elements on tetrahedra ---------------------------------------------------------


def tetrahedra(count, unknowns, seed=1):
    """{order: matrix} of one mesh: the Delaunay tetrahedra of random points of the unit cube. 1
    unknown: the stiffness and mass of u - div grad u; 3: those of linear elasticity, both Lame
    parameters 1. The orders are of the mesh's nodes."""
    points = np.random.RandomState(seed).random_sample((count, 3))
    nodes = spatial.Delaunay(points).simplices
    corners = points[nodes]
    edges = corners[:, 1:] - corners[:, :1]
    volumes = np.abs(np.linalg.det(edges)) / 6
    nodes, edges, volumes = (array[volumes > 1e-14] for array in (nodes, edges, volumes))
    gradients = np.empty((len(nodes), 4, 3))  # of the four functions, constant within a tetrahedron
    gradients[:, 1:] = np.transpose(np.linalg.inv(edges), (0, 2, 1))
    gradients[:, 0] = -gradients[:, 1:].sum(axis=1)
    matrix, graph = assembled(count, unknowns, nodes, gradients, volumes)
    rcm = sparse.csgraph.reverse_cuthill_mckee(graph, symmetric_mode=True)
    return {
        "random": matrix,
        "curve": renumbered(matrix, along_a_curve(points), unknowns),
        "rcm": renumbered(matrix, rcm, unknowns),
    }


def assembled(count, unknowns, nodes, gradients, volumes):
    """The matrix, and one with an entry for each pair of nodes that share a tetrahedron."""
    rows = np.repeat(nodes, 4, axis=1).ravel()
    columns = np.tile(nodes, (1, 4)).ravel()
    mass = volumes[:, None, None] * (np.ones((4, 4)) + np.eye(4)) / 20

    def summed(of_elements):
        return sparse.csr_matrix((of_elements.ravel(), (rows, columns)), (count, count))

    products = volumes[:, None, None] * np.einsum("tac,tbc->tab", gradients, gradients)
    if unknowns == 1:
        matrix = summed(products + mass)
        return matrix, matrix
    blocks = None
    for c in range(unknowns):
        for d in range(unknowns):
            # lambda div u div v + 2 mu eps(u) : eps(v), of the functions a and b in the directions
            # c and d
            g = volumes[:, None] * gradients[:, :, c], volumes[:, None] * gradients[:, :, d]
            part = np.einsum("ta,tb->tab", g[0], gradients[:, :, d])
            part += np.einsum("ta,tb->tab", g[1], gradients[:, :, c])
            if c == d:
                part += products + mass
            entries = summed(part)
            if blocks is None:
                blocks = np.empty((entries.nnz, unknowns, unknowns))
            blocks[:, c, d] = entries.data
    shape = (unknowns * count, unknowns * count)
    matrix = sparse.bsr_matrix((blocks, entries.indices, entries.indptr), shape).tocsr()
    return matrix, entries


def renumbered(matrix, order, unknowns):
    """Rows and columns in the order of nodes `order`, whose unknowns stay together."""
    of_unknowns = (unknowns * order[:, None] + np.arange(unknowns)).ravel()
    place = np.empty(len(of_unknowns), matrix.indices.dtype)
    place[of_unknowns] = np.arange(len(of_unknowns), dtype=place.dtype)
    moved = matrix[of_unknowns]
    moved.indices = place[moved.indices]
    moved.has_sorted_indices = False
    return moved


# --- Quadratic programmes of the OSQP benchmark, a transport problem ------------------------------
#
# Stellato, Banjac, Goulart, Bemporad and Boyd, "OSQP: an operator splitting solver for quadratic
# programs", 2020, appendix A. A matrix is the one that the solver multiplies with: (P + sigma I,
# A'; A, -1/rho), where minimise x'Px/2 + q'x subject to l <= Ax <= u; sigma = 1e-6, rho = 0.1, and
# 1000 times that in rows of equations.


def kkt(p, equations, inequalities):
    p = sparse.csr_matrix(p)
    a = sparse.vstack([sparse.csr_matrix(part) for part in (equations, inequalities)])
    rho = np.r_[np.full(equations.shape[0], 100.0), np.full(inequalities.shape[0], 0.1)]
    p = p + 1e-6 * sparse.eye(p.shape[0])
    matrix = sparse.bmat([[p, a.T], [a, -sparse.diags(1 / rho)]], format="csr")
    matrix.eliminate_zeros()  # of blocks that SciPy stores whole
    return matrix


def sparse_normal(random, rows, columns, density):
    """Each entry is there with this probability, and standard normal."""
    there = random.random_sample((rows, columns)) < density
    return sparse.csr_matrix(np.where(there, random.standard_normal((rows, columns)), 0))


def portfolio(factors, seed=1):
    random, assets = np.random.RandomState(seed), 100 * factors
    loadings = sparse_normal(random, assets, factors, 0.5)
    risks = sparse.diags(random.random_sample(assets) * np.sqrt(factors))
    return kkt(
        sparse.block_diag([risks, sparse.eye(factors)]),
        sparse.bmat([[loadings.T, -sparse.eye(factors)], [np.ones((1, assets)), None]]),
        sparse.hstack([sparse.eye(assets), sparse.csr_matrix((assets, factors))]),
    )


def control(states, horizon, seed=1):
    """The horizon is longer than the benchmark's 10; dynamics that are unstable are scaled."""
    random, inputs = np.random.RandomState(seed), states // 2
    dynamics = np.eye(states) + 0.1 * random.standard_normal((states, states))
    dynamics /= max(1, np.abs(linalg.eigvals(dynamics)).max() / 0.99)
    actuators = random.standard_normal((states, inputs))
    costs = np.where(random.random_sample(states) < 0.7, 10 * random.random_sample(states), 0)
    last = linalg.solve_discrete_are(dynamics, actuators, np.diag(costs), 0.1 * np.eye(inputs))
    steps = sparse.eye(horizon + 1)
    before = sparse.eye(horizon + 1, horizon + 1, -1)
    moved = sparse.eye(horizon + 1, horizon, -1)
    of_states = sparse.kron(before, dynamics) - sparse.kron(steps, sparse.eye(states))
    p = [sparse.kron(sparse.eye(horizon), sparse.diags(costs)), (last + last.T) / 2]
    p = sparse.block_diag([*p, 0.1 * sparse.eye(horizon * inputs)])
    return kkt(p, sparse.hstack([of_states, sparse.kron(moved, actuators)]), sparse.eye(p.shape[0]))


def lasso(features, seed=1):
    samples = 100 * features
    data = sparse_normal(np.random.RandomState(seed), samples, features, 0.15)
    identity, none = sparse.eye(features), sparse.csr_matrix((features, samples))
    zeros = sparse.csr_matrix((features,) * 2)
    p = sparse.block_diag([zeros, sparse.eye(samples), zeros])
    return kkt(
        p,
        sparse.hstack([data, -sparse.eye(samples), sparse.csr_matrix((samples, features))]),
        sparse.bmat([[identity, none, -identity], [identity, none, identity]]),
    )


def random_qp(variables, seed=1):
    random = np.random.RandomState(seed)
    factor = sparse_normal(random, variables, variables, 0.15)
    p = factor @ factor.T + 0.01 * sparse.eye(variables)
    a = sparse_normal(random, 10 * variables, variables, 0.15)
    return kkt(p, sparse.csr_matrix((0, variables)), a)


def transport(sources, sinks):
    """The constraints of a transport problem: what leaves each source, and what reaches each sink;
    a column per way."""
    out = sparse.kron(sparse.eye(sources), np.ones((1, sinks)))
    into = sparse.kron(np.ones((1, sources)), sparse.eye(sinks))
    return sparse.vstack([out, into]).astype(np.int8)


# --- All of them ----------------------------------------------------------------------------------

ORDERS = "random", "curve", "rcm"  # random; along a Z-order curve; by reverse Cuthill-McKee
# Name: (function, arguments, those of the small size). That of a mesh stands for NAME_ORDER of each
# order.
MATRICES = {
    "tets3": (tetrahedra, (300_000, 3), (200, 3)),  # linear elasticity on Delaunay tetrahedra
    "tets1": (tetrahedra, (1_000_000, 1), (600, 1)),  # linear elements on them
    "delaunay_2e20": (delaunay, (1 << 20,), (2000,)),  # triangulation of random points
    "rgg_2e20": (geometric, (1 << 20,), (2000,)),  # random graph, radius 0.55 sqrt(ln n / n)
    "osqp_lasso": (lasso, (600,), (4,)),  # OSQP benchmark, lasso with 600 features
    "osqp_portfolio": (portfolio, (300,), (4,)),  # portfolio with 300 factors
    "osqp_random": (random_qp, (1500,), (40,)),  # random programme of 1500 variables
    "osqp_control": (control, (60, 400), (6, 10)),  # control of 60 states, 400 steps
    "transport_lp": (transport, (1500, 2500), (15, 25)),  # constraints of a transport problem
}


def file_names(name):
    return [f"{name}_{order}" for order in ORDERS] if MATRICES[name][0] is tetrahedra else [name]


def made(name, small=False):
    """{file name: CSR matrix, 32-bit indices, columns ascending}."""
    function, large_size, small_size = MATRICES[name]
    matrix = function(*(small_size if small else large_size))
    every = matrix.values() if isinstance(matrix, dict) else [matrix]
    found = dict(zip(file_names(name), every))
    for key, one in found.items():
        found[key] = one = sparse.csr_matrix(one)
        one.indices, one.indptr = one.indices.astype(np.int32), one.indptr.astype(np.int32)
        one.sort_indices()
    return found


def write(name, directory, small=False):
    """Makes what is missing of a name; a line on each file. Nothing has its final name until it is
    whole and of the right size."""
    start, lines = time.monotonic(), []
    files = {stem: directory / f"{stem}.npz" for stem in file_names(name)}
    if all(file.exists() for file in files.values()):
        return [f"{stem} is there" for stem in files]
    for stem, matrix in made(name, small).items():
        sizes = *matrix.shape, matrix.nnz
        expected = tuple(map(int, catalogue()[stem][3:6])) if stem in catalogue() else None
        if not small and sizes != expected:
            are = f"rows, columns, nonzeros are {sizes}"
            raise SystemExit(f"{stem}: {are}, not the catalogue's {expected}")
        partial = directory / f".{stem}.npz"
        sparse.save_npz(partial, matrix, compressed=False)
        partial.replace(files[stem])
        took = f"{time.monotonic() - start:.0f} s"
        lines.append(f"{stem}: {sizes[0]} rows, {sizes[2]} nonzeros, {took}")
    return lines


def processes():
    """As many as there are cores, and 6 GB of memory for each, which the largest needs."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    return max(1, min(len(os.sched_getaffinity(0)), int(memory / 6e9)))


def main(names):
    if unknown := [name for name in names if name not in MATRICES]:
        sys.exit(f"error: no large matrix is called {unknown[0]}; there are {', '.join(MATRICES)}")
    directory = Path(os.environ.get("SPMV_DATA") or ROOT / "data")
    directory.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ProcessPoolExecutor(processes()) as pool:
        jobs = [pool.submit(write, name, directory) for name in names or MATRICES]
        for job in concurrent.futures.as_completed(jobs):
            print("\n".join(job.result()), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
