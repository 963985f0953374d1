"""What needs no training: the theorems, the sampled loss, the truth on floors, the maps, and the tables of settings."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from lapbook.floors import neumann
from lapbook.layouts import LAYOUTS
from lapbook.reproduction import theorems
from lapbook.reproduction.common import Experiment, Outcome, Report, Setting
from lapbook.reproduction.theorems import GRIDS, D, Metrics
from lapbook.spectrum import eigenvectors

FLOORS = ("PointRoom", "PointMaze")


def finite_differences(
    rng: np.random.Generator, spacings: Sequence[float] = (0.5, 0.25, 0.1), finest: float = 0.05
) -> Metrics:
    """The truth of PointRoom and PointMaze: lattices of several spacings against the finest one.

    `similarity` is SimGT over 10,000 positions, `least_gap` that of neighbouring eigenvalues 2 … 11 relative to the
    larger at the last spacing, and `order` the power of h with which the tenth eigenvalue of a rectangle converges.
    """
    from lapbook.floors import sample_free
    from lapbook.metrics import sim_gt

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
    from lapbook.floors import RADIUS, floor_size
    from lapbook.shaping import goals

    metrics: Metrics = {"ball_diameter": 2 * RADIUS}
    for env, floor in zip(GRIDS, FLOORS, strict=True):
        layout = LAYOUTS[env]
        spaces: dict[str, Any] = {obs: gymnasium.make(f"lapbook/{env}-v0", obs=obs) for obs in ("xy", "image")}
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
        seen = gymnasium.make("lapbook/GridRoom-v0", obs=obs).observation_space.sample()
        encoder = build(preset("paper"), seen.shape)
        layers: list[list[Any]] = []
        for layer, after in zip(encoder, [*list(encoder)[1:], None], strict=True):
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
    "theorem-1": (theorems.theorem_1, 3),
    "lemma-1": (theorems.lemma_1, 3),
    "theorem-2": (theorems.theorem_2, 3),
    "rotations": (theorems.rotations, 3),
    "sampled-loss": (theorems.sampled_loss, 3),
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
