"""The theorems of the paper and its sampled loss, computed: what should be equal, positive or unbiased."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np

from lapbook.descent import minimise
from lapbook.descent import qr as orthonormal
from lapbook.layouts import LAYOUTS
from lapbook.objective import block_mass, coefficients, gap, gap_weights, generalized, graph_drawing, minimum
from lapbook.spectrum import eigenvectors, laplacian, smallest_eigenpairs

D = 10
GRIDS = ("GridRoom", "GridMaze")
Metrics = dict[str, Any]


def random_graph(n: int, rng: np.random.Generator) -> np.ndarray:
    """Weights of a connected graph, shape (n, n): a random spanning tree and about n more edges, weights in (0, 1]."""
    A = np.zeros((n, n))
    for i in range(1, n):
        A[i, rng.integers(i)] = 1 - rng.random()
    more = rng.integers(n, size=(n, 2))
    A[more.max(axis=1), more.min(axis=1)] = 1 - rng.random(n)
    np.fill_diagonal(A, 0)
    return A + A.T


def decreasing(d: int, rng: np.random.Generator) -> np.ndarray:
    """Random c_1 > … > c_d > 0, shape (d,)."""
    return np.cumsum(1 - rng.random(d))[::-1]


def rotation(d: int, rng: np.random.Generator) -> np.ndarray:
    """An orthogonal matrix, shape (d, d), drawn uniformly."""
    return orthonormal(rng.standard_normal((d, d)))


def lemma_1(rng: np.random.Generator) -> Metrics:
    """Eq. (11): the largest difference of the two blocks, over rotations of 2 to 12 dimensions and all k."""
    matrices = [rotation(int(d), rng) ** 2 for d in rng.integers(2, 13, size=1000)]
    return {
        "rotations": len(matrices),
        "difference": max(np.abs(block_mass(A) - block_mass(A.T)).max() for A in matrices),
    }


def theorem_1(rng: np.random.Generator, frames: int = 300, steps: int = 6000) -> Metrics:
    """The gap g of random frames on random graphs, relative to Σ c_i λ_i; what the proof says of it; and descent.

    `least_gap` is over frames within the span, `least_gap_outside` over frames that lean a little out of it.
    `excess_of_bound` is the largest Σ_k (c_k - c_{k+1})(λ_{k+1} - λ_k) m_k - g, which eq. (22) forbids to be positive:
    so g = 0 asks for all m_k = 0, which leaves ±e_i. `descent_…` is SimGT after so many steps from a random frame.
    """
    inside, outside, bounds, identity, slack = [], [], [], [], []
    for n, d in zip(rng.integers(12, 41, size=frames), rng.integers(2, 11, size=frames), strict=True):
        L = laplacian(random_graph(int(n), rng))
        spectrum = smallest_eigenpairs(L, int(d))
        values, c, Q = spectrum.values, decreasing(int(d), rng), rotation(int(d), rng)
        least = minimum(values, c)
        g = generalized(spectrum.vectors @ Q, L, c) - least
        s, m, rises = gap_weights(Q, c), block_mass(Q**2), np.diff(values)
        identity += [abs(g - gap(Q, values, c)) / least, abs(g - float(s @ rises)) / least]  # eq. (16) and (19)
        slack.append((s + np.diff(c) * m).min())  # eq. (22)
        bounds.append((-np.diff(c) * m @ rises - g) / least)
        inside.append(g / least)
        noise = rng.standard_normal(spectrum.vectors.shape) / np.sqrt(n)
        outside.append((generalized(orthonormal(spectrum.vectors + 0.1 * noise), L, c) - least) / least)
    metrics: Metrics = {
        "frames": len(inside),
        "least_gap": min(inside),
        "least_gap_outside": min(outside),
        "identity_error": max(identity),
        "least_slack": min(slack),
        "excess_of_bound": max(bounds),
        "minimisers_among_orders": _minimisers_among_orders(rng),
    }
    for env in GRIDS:
        found = minimise(laplacian(LAYOUTS[env]), D, steps=steps, every=steps, rng=rng)
        metrics[f"descent_{env}"] = float(found.sim_gt[-1])
    return metrics


def _minimisers_among_orders(rng: np.random.Generator, d: int = 5) -> int:
    """How many orders of e_1 … e_d attain the minimum, of all d!, for random c and eigenvalues."""
    values, c = np.cumsum(1 - rng.random(d)), decreasing(d, rng)
    gaps = [gap(np.eye(d)[:, list(order)], values, c) for order in permutations(range(d))]
    return int(np.sum(np.array(gaps) < 1e-12))


def theorem_2(rng: np.random.Generator) -> Metrics:
    """Appendix B where all is known: functions on [0, 1], ρ uniform, D the heat kernel with insulated ends.

    Its eigenfunctions are 1 and √2 cos kπx, those of 𝓛 = I - D have the eigenvalues 1 - exp(-t (kπ)²). Integrals are
    Gauss–Legendre sums of 200 points, exact to rounding here.
    """
    t, modes = 0.002, 60
    x, weights = np.polynomial.legendre.leggauss(200)
    x, weights = (x + 1) / 2, weights / 2
    k = np.arange(modes)
    functions = np.where(k == 0, 1, np.sqrt(2)) * np.cos(np.pi * np.outer(x, k))
    kept = np.exp(-t * (np.pi * k) ** 2)
    kernel = (functions * kept) @ functions.T
    operator = np.eye(len(x)) - kernel * weights
    e, values = functions[:, :D], 1 - kept[:D]
    sums, blocks, gaps, identity, shifted = [], [], [], [], []
    for _ in range(300):
        f, c = e @ rotation(D, rng), decreasing(D, rng)
        q = e.T @ (weights[:, None] * f)  # q_ji = <f_i, e_j>
        sums += [np.abs((q**2).sum(axis=axis) - 1).max() for axis in (0, 1)]
        blocks.append(np.abs(block_mass(q**2) - block_mass(q.T**2)).max())
        quotients = weights @ (f * (operator @ f))  # <f_i, 𝓛 f_i>
        gaps.append(c @ quotients - minimum(values, c))
        identity.append(abs(gaps[-1] - gap(q, values, c)))
        shifted.append(abs((c - c[0]) @ quotients - minimum(values, c - c[0]) - gaps[-1]))
    return {
        "frames": len(gaps),
        "least_kernel": float(kernel.min()),
        "eigenfunction_error": float(np.abs(operator @ e - e * values).max()),
        "lemma_2": max(sums),
        "lemma_3": max(blocks),
        "least_gap": min(gaps),
        "identity_error": max(identity),
        "change_for_negative_c": max(shifted),
    }


def rotations(rng: np.random.Generator) -> Metrics:
    """Eq. (2): what 1,000 random rotations of the eigenvectors do to its objective, and to SimGT."""
    changes, similarities = [], []
    for env in GRIDS:
        L, spectrum = laplacian(LAYOUTS[env]), eigenvectors(LAYOUTS[env], D)
        least = graph_drawing(spectrum.vectors, L)
        for _ in range(500):
            Q = rotation(D, rng)
            changes.append(abs(graph_drawing(spectrum.vectors @ Q, L) - least) / least)
            similarities.append(np.abs(Q.diagonal()).mean())  # |cos(u_i, e_i)| = |q_ii|
    return {
        "rotations": len(changes),
        "change": max(changes),
        "sim_gt": np.mean(similarities),
        "sd": np.std(similarities),
    }


def sampled_loss(rng: np.random.Generator) -> Metrics:
    """Eq. (5) to (8) on GridMaze, for random functions: the identities, and samples against exact expectations.

    `pair_z` and `penalty_z` are the errors of the mean over 400 batches of 256, in standard errors.
    """
    import lapbook as lb

    data = lb.collect("lapbook/GridMaze-v0", 20_000, rng=rng)
    n, c = len(data.observations), coefficients(D)
    f, L = rng.standard_normal((n, D)), laplacian(LAYOUTS["GridMaze"])
    one, other = L.tocoo().coords
    along_edges = ((f[one] - f[other]) ** 2).sum(axis=0) / 2  # each edge twice
    nested = sum(along_edges[:k].sum() for k in range(1, D + 1))  # Σ_k Σ_{i≤k}, eq. (5)
    W, G = lb.pairs.pair_probabilities(data), f.T @ (data.rho[:, None] * f) - np.eye(D)
    pair = sum(c[i] * (W * np.subtract.outer(f[:, i], f[:, i]) ** 2).sum() for i in range(D))
    penalty = sum((G[:k, :k] ** 2).sum() for k in range(1, D + 1))  # eq. (7), in expectation
    lesser = (np.minimum.outer(c, c) * G**2).sum()
    drawn = []
    for _ in range(400):
        s, later = lb.pairs.draw(data, 256, 0.9, rng)
        first, second = lb.pairs.visited(data, 512, rng).reshape(2, -1)
        drawn.append((lb.objective.pair_loss(f[s], f[later], c), lb.objective.penalty(f[first], f[second], c)))
    mean, error = np.mean(drawn, axis=0), np.std(drawn, axis=0, ddof=1) / np.sqrt(len(drawn))
    z = (mean - (pair, penalty)) / error
    return {
        "batches": len(drawn),
        "nested_sum_error": abs(nested / generalized(f, L, c) - 1),
        "triple_sum_error": abs(penalty / lesser - 1),
        "pair_z": z[0],
        "penalty_z": z[1],
        "pair_precision": error[0] / pair,
        "penalty_precision": error[1] / penalty,
    }
