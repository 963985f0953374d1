"""What needs no training: the theorems, the sampled loss, the truth on floors, the maps, and the tables of settings."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from itertools import permutations
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from lapbook.experiments.common import Experiment, Outcome, Report, Setting
from lapbook.layouts import LAYOUTS
from lapbook.objective import block_mass, coefficients, gap, gap_weights, generalized, graph_drawing, minimise, minimum
from lapbook.objective import qr as orthonormal
from lapbook.spectrum import eigenvectors, laplacian, neumann, smallest_eigenpairs

D = 10
GRIDS, FLOORS = ("GridRoom", "GridMaze"), ("PointRoom", "PointMaze")
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
        identity += [abs(g - gap(Q, values, c)) / least, abs(g - s @ rises) / least]  # eq. (16) and (19)
        slack.append((s + np.diff(c) * m).min())  # eq. (22)
        bounds.append((-np.diff(c) * m @ rises - g) / least)
        inside.append(g / least)
        noise = rng.standard_normal(spectrum.vectors.shape) / np.sqrt(n)
        outside.append((generalized(orthonormal(spectrum.vectors + 0.1 * noise), L, c) - least) / least)
    metrics = {
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
    W, G = lb.rollouts.pair_probabilities(data), f.T @ (data.rho[:, None] * f) - np.eye(D)
    pair = sum(c[i] * (W * np.subtract.outer(f[:, i], f[:, i]) ** 2).sum() for i in range(D))
    penalty = sum((G[:k, :k] ** 2).sum() for k in range(1, D + 1))  # eq. (7), in expectation
    lesser = (np.minimum.outer(c, c) * G**2).sum()
    drawn = []
    for _ in range(400):
        s, later = lb.rollouts.pairs(data, 256, 0.9, rng)
        first, second = lb.rollouts.visited(data, 512, rng).reshape(2, -1)
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


def finite_differences(
    rng: np.random.Generator, spacings: Sequence[float] = (0.5, 0.25, 0.1), finest: float = 0.05
) -> Metrics:
    """The truth of PointRoom and PointMaze: lattices of several spacings against the finest one.

    `similarity` is SimGT over 10,000 positions, `least_gap` that of neighbouring eigenvalues 2 … 11 relative to the
    larger at the last spacing, and `order` the power of h with which the tenth eigenvalue of a rectangle converges.
    """
    from lapbook.metrics import sim_gt
    from lapbook.walls import sample_free

    metrics: Metrics = {"spacings": list(spacings)}
    for env in FLOORS:
        xy = sample_free(LAYOUTS[env], 10_000, rng=rng)
        best = neumann(LAYOUTS[env], D, h=finest).at(xy)
        levels = [neumann(LAYOUTS[env], D, h=h) for h in spacings]
        metrics[f"similarity_{env}"] = [sim_gt(level.at(xy), best) for level in levels]
        values = np.append(levels[-1].values, levels[-1].next_value)
        metrics[f"least_gap_{env}"] = float((np.diff(values)[1:] / values[2:]).min())
    a, b, n = 3.5, 2.0, np.arange(D)
    exact = np.sort(np.pi**2 * np.add.outer((n / a) ** 2, (n / b) ** 2), axis=None)[D - 1]
    errors = [1 - neumann((a, b), D, h=h).values[-1] / exact for h in spacings]
    return metrics | {"order": float(np.log(errors[0] / errors[-1]) / np.log(spacings[0] / spacings[-1]))}


def eigenvalues(rng: np.random.Generator) -> Metrics:
    """λ_1 … λ_11 of both maps, and the smallest gap between neighbours, also relative to the larger of the two."""
    metrics: Metrics = {}
    for env in GRIDS:
        spectrum = eigenvectors(LAYOUTS[env], D)
        values = np.append(spectrum.values, spectrum.next_value)
        gaps = np.diff(values)
        metrics[env] = {
            "values": values.round(6).tolist(),
            "least_gap": gaps.min(),
            "relative": (gaps / values[1:]).min(),
        }
    return metrics


def environments(rng: np.random.Generator) -> Metrics:
    """What appendix D says of the four environments, the numbering of the rooms, and the goals of chapter 8."""
    from lapbook.shaping import goals
    from lapbook.walls import RADIUS, floor_size

    metrics: Metrics = {"ball_diameter": 2 * RADIUS}
    for env, floor in zip(GRIDS, FLOORS, strict=True):
        layout = LAYOUTS[env]
        spaces = {obs: gymnasium.make(f"lapbook/{env}-v0", obs=obs) for obs in ("xy", "image")}
        chosen, distance = goals(layout, D), layout.distances()
        between = distance[np.ix_(chosen, chosen)][~np.eye(D, dtype=bool)]
        metrics[env] = {
            "states": layout.n,
            "actions": int(spaces["xy"].action_space.n),
            "ranges": {
                obs: [float(e.observation_space.low.min()), float(e.observation_space.high.max())]
                for obs, e in spaces.items()
            },
            "goals": len(chosen),
            "goals_apart": int(between.min()),
        }
        metrics[floor] = {"size": floor_size(layout).tolist()}
    rooms, distance = LAYOUTS["GridRoom"].rooms, LAYOUTS["GridRoom"].distances()
    number = int(rooms.max())
    apart = np.array([[distance[np.ix_(rooms == i, rooms == j)].min() for j in range(1, number + 1)]
                      for i in range(1, number + 1)])  # fmt: skip
    far = np.abs(np.subtract.outer(np.arange(number), np.arange(number)))
    # A door is one cell, so rooms that are joined are two steps apart.
    metrics["rooms"] = {
        "number": number,
        "joined": int((apart == 2).sum() // 2),
        "next": bool((apart[far == 1] == 2).all()),
    }
    return metrics


def networks(rng: np.random.Generator) -> Metrics:
    """The layers that the encoders of the preset `paper` have before the last, linear one (Tables 2 and 3)."""
    from torch import nn

    from lapbook.encoders import build
    from lapbook.training import preset

    metrics: Metrics = {}
    for obs in ("xy", "image"):
        encoder = build(preset("paper"), gymnasium.make("lapbook/GridRoom-v0", obs=obs).observation_space.shape)
        layers = []
        for layer, after in zip(encoder, [*encoder[1:], None], strict=True):
            if isinstance(layer, nn.Conv2d):
                size = (layer.out_channels, layer.kernel_size[0], layer.stride[0], layer.padding[0])
                layers.append(["Conv2D", list(size), type(after).__name__])
            elif isinstance(layer, nn.Linear) and after is not None:
                layers.append(["Linear", layer.out_features, type(after).__name__])
        metrics[obs] = {
            "layers": layers,
            "last": [type(encoder[-1]).__name__, encoder[-1].out_features],
            "parameters": sum(p.numel() for p in encoder.parameters()),
        }
    return metrics


def hyperparameters(rng: np.random.Generator) -> Metrics:
    """The settings behind Tables 4 and 5 and appendix E.1."""
    from lapbook import dqn, training

    return {name: asdict(dqn.preset(name)) for name in ("options", "shaping")} | {
        "training": asdict(training.preset("paper"))
    }


CHECKS: dict[str, tuple[Callable[..., Metrics], int]] = {
    "theorem-1": (theorem_1, 3),
    "lemma-1": (lemma_1, 3),
    "theorem-2": (theorem_2, 3),
    "rotations": (rotations, 3),
    "sampled-loss": (sampled_loss, 3),
    "finite-differences": (finite_differences, 1),
    "eigenvalues": (eigenvalues, 1),
    "environments": (environments, 1),
    "networks": (networks, 1),
    "hyperparameters": (hyperparameters, 1),
}
"""What is computed, and for how many seeds; one where chance plays no part, or next to none."""


def settings() -> tuple[Setting, ...]:
    """All checks, each for its seeds."""
    return tuple({"check": check, "seed": seed} for check, (_, seeds) in CHECKS.items() for seed in range(seeds))


def run(setting: Setting, scratch: Path, report: Report, hours: float) -> Outcome:
    """Compute one check; its numbers are rounded to six digits."""
    start = time.perf_counter()
    metrics = _rounded(CHECKS[setting["check"]][0](np.random.default_rng(setting["seed"])))
    report(1, setting["check"])
    return metrics, {"wall_seconds": round(time.perf_counter() - start, 1), "threads": 1}, {}


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


EXPERIMENT = Experiment(settings(), run, lambda setting: 1)
