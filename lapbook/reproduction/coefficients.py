"""Figures 9 and 11 and Table 6: other coefficients than the paper's, and whether the u_i keep to the span."""

from __future__ import annotations

import time
from itertools import product
from pathlib import Path

import gymnasium
import numpy as np

from lapbook.layouts import LAYOUTS
from lapbook.reproduction.common import Experiment, Log, Outcome, Report, Setting, sized
from lapbook.results import name

GROUPS = ("paper", "convex", "concave", "equalised")
EVERY = {"paper": 1000, "paper-scaled": 250, "smoke": 10}  # steps between two points of a curve


def settings() -> tuple[Setting, ...]:
    """Each group with the small target, 25,000 steps; then the paper's own way, which Table 1 has for its own group."""
    runs = [("paper-scaled", group) for group in GROUPS] + [("paper", group) for group in GROUPS[1:]]
    return tuple(
        {"env": env, "group": group, "preset": preset, "d": 10, "seed": seed}
        for (preset, group), seed, env in product(runs, range(3), ("GridRoom", "GridMaze"))
    )


def smoke() -> tuple[Setting, ...]:
    """Coefficients that are given, and some that the data decide."""
    return tuple(
        {"env": "GridMaze", "group": group, "preset": "smoke", "d": 4, "seed": 0} for group in ("convex", "equalised")
    )


def run(setting: Setting, scratch: Path, report: Report, hours: float) -> Outcome:
    """Train on the data that Table 1 has for the seed; follow each u_i, and how much of it lies in the span."""
    import lapbook as lb

    layout, d = LAYOUTS[setting["env"]], setting["d"]
    rng = np.random.default_rng(setting["seed"])
    start = time.perf_counter()
    env, transitions = gymnasium.make(f"lapbook/{setting['env']}-v0"), sized(setting, 100_000, 10_000)
    data = lb.collect(env, transitions, length=50, rng=rng)
    truth = lb.spectrum.eigenvectors(layout, d).vectors[data.states]
    training = lb.training.preset(setting["preset"], d=d)
    values, best = lb.pairs.data_spectrum(data, d + 1, training.gamma)
    group = setting["group"]
    c = lb.objective.equalised(values) if group == "equalised" else lb.objective.coefficients(d, group)
    every = EVERY[setting["preset"]]
    log = Log(scratch / "log.npz", keep=set())
    log.seconds += time.perf_counter() - start

    def follow(step: int, rep: lb.Representation) -> bool:
        vectors = rep(data.observations)
        C = lb.metrics.cosines(vectors, truth)
        log.add(step, np.stack([C.diagonal(), lb.metrics.in_span(vectors, truth), C.sum(axis=1)]), np.empty(0))
        report(every, f"{name(setting)} SimGT {C.diagonal().mean():.3f}")
        return log.seconds > 3600 * hours

    checkpoint = scratch / "checkpoint.safetensors"
    rep = lb.learn(data, training, rng, checkpoint=checkpoint, every=every, callback=follow, coefficients=tuple(c))
    vectors = rep(data.observations)
    cosine, inside, total = np.moveaxis(log.curve, 1, 0)
    metrics = {
        "coefficients": c.round(4).tolist(),
        "sim_gt": round(lb.sim_gt(vectors, truth), 4),
        "sim_gt_per_dim": lb.metrics.sim_gt_per_dim(vectors, truth).round(4).tolist(),
        "ceiling": round(lb.sim_gt(best[:, :d], truth), 4),
        "slowest_rate": float(f"{lb.objective.slowest_rate(values, c):.3g}"),
        "curve": {"steps": log.steps, "sim_gt": cosine.mean(axis=1).round(4).tolist()},
    }
    budget = {"transitions": data.transitions} | log.budget(training)
    curves = {"cosine_per_dim": cosine, "in_span": inside, "sum_of_cosines": total}
    return metrics, budget, {key: curve.astype(np.float16) for key, curve in curves.items()}


def steps(setting: Setting) -> int:
    """Gradient steps at most."""
    from lapbook.training import preset

    return preset(setting["preset"]).steps


EXPERIMENT = Experiment(settings(), run, steps, smoke())
