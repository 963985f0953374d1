"""Table 1, the columns of PointRoom and PointMaze: the paper's way, and what Fourier features and a turn change."""

from __future__ import annotations

import io
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from lapbook.layouts import LAYOUTS
from lapbook.reproduction.common import Experiment, Log, Outcome, Report, Setting, sized
from lapbook.results import name, replace_file
from lapbook.rollouts import Data
from lapbook.settings import Settings, preset

TRANSITIONS, LENGTH = 1_000_000, 500
EVERY = 500  # steps between two points of a curve: with the paper's batches they take minutes
STATES = 10_000  # positions at which a representation is compared with the truth, uniform over the free space
PAIRS = 100_000  # drawn once for all the turns of a run
ULAM_H, ULAM_PAIRS = 0.25, 5_000_000


def settings() -> tuple[Setting, ...]:
    """Both methods the paper's way, and both with and without Fourier features at a small budget."""
    runs = [("paper", ("xy",), range(3)), ("fast", ("xy", "fourier"), range(3, 6))]
    return tuple(
        {"env": env, "obs": obs, "method": method, "preset": preset, "d": 10, "seed": seed}
        for preset, inputs, seeds in runs
        for seed, obs, method, env in product(seeds, inputs, ("ggd", "gd"), ("PointRoom", "PointMaze"))
    )


def smoke() -> tuple[Setting, ...]:
    """Each method, each floor, each kind of input."""
    runs = (("PointRoom", "xy", "gd"), ("PointMaze", "fourier", "ggd"))
    return tuple({"env": env, "obs": obs, "method": m, "preset": "smoke", "d": 4, "seed": 0} for env, obs, m in runs)


def training_settings(setting: Setting) -> Settings:
    """The training settings of a setting."""
    changes: dict[str, Any] = {"d": setting["d"]}
    if setting["method"] == "gd":
        changes["coefficients"] = "equal"
    if setting["preset"] == "paper":
        return preset("paper", batch=8192, **changes)
    encoder = "fourier" if setting["obs"] == "fourier" else "mlp"
    return preset(sized(setting, "fast-positions", "smoke"), encoder=encoder, **changes)


def collected(setting: Setting, folder: Path) -> Data:
    """The data of a seed, collected once for all its settings and kept beside their checkpoints."""
    import lapbook as lb

    env, seed = setting["env"], setting["seed"]
    file = folder / f"{env}-{seed}{sized(setting, '', '-smoke')}.npz"
    if not file.exists():
        transitions, length = sized(setting, (TRANSITIONS, LENGTH), (10_000, 50))
        data = lb.collect(f"lapbook/{env}-v0", transitions, length, rng=seed)
        buffer = io.BytesIO()
        np.savez(buffer, observations=data.observations, index=data.index, lengths=data.lengths, states=data.states)
        replace_file(file, buffer.getvalue())
    with np.load(file, allow_pickle=False) as arrays:
        return Data(**arrays)


def run(setting: Setting, scratch: Path, report: Report, hours: float) -> Outcome:
    """Train, compare with the eigenfunctions before and after a turn by Rayleigh–Ritz, at every point of the curve."""
    import lapbook as lb
    from lapbook.envs.point import observe

    layout, d, seed = LAYOUTS[setting["env"]], setting["d"], setting["seed"]
    data = collected(setting, scratch.parent)
    start = time.perf_counter()
    xy = lb.floors.sample_free(layout, sized(setting, STATES, 500), rng=0)
    seen, truth = observe(layout, xy), lb.floors.neumann(layout, d, h=sized(setting, 0.1, ULAM_H)).at(xy)
    training = training_settings(setting)
    every = min(EVERY, training.steps // 20)
    first, second = lb.pairs.draw(data, sized(setting, PAIRS, 1_000), training.gamma, rng=0)
    log = Log(scratch / "log.npz", keep=set())
    log.seconds += time.perf_counter() - start

    def turned(rep: lb.Representation) -> tuple[lb.Representation, np.ndarray]:
        values, Q = lb.rayleigh.rotation(rep(data.observations[first]), rep(data.observations[second]))
        return lb.rayleigh.turned(rep, Q), values

    def follow(step: int, rep: lb.Representation) -> bool:
        both = [lb.metrics.sim_gt_per_dim(r(seen), truth) for r in (rep, turned(rep)[0])]
        log.add(step, np.stack(both), np.empty(0))
        before, after = log.curve[-1].mean(axis=1)
        report(every if step % every == 0 else step % every, f"{name(setting)} SimGT {before:.3f}, turned {after:.3f}")
        return log.seconds > 3600 * hours

    rng = np.random.default_rng(seed)
    rep = lb.learn(data, training, rng, checkpoint=scratch / "checkpoint.safetensors", every=every, callback=follow)
    after, values = turned(rep)
    lattice = lb.floors.neumann(layout, d, h=ULAM_H).points
    walk = lb.rollouts.rounded(data, lattice)
    _, ulam = lb.pairs.data_spectrum(walk, d, training.gamma, samples=sized(setting, ULAM_PAIRS, 200_000))
    ulam = ulam[cKDTree(walk.observations).query(xy)[1]]
    metrics = {
        "sim_gt": round(lb.sim_gt(rep(seen), truth), 4),
        "sim_gt_ritz": round(lb.sim_gt(after(seen), truth), 4),
        "sim_gt_per_dim": lb.metrics.sim_gt_per_dim(rep(seen), truth).round(4).tolist(),
        "sim_gt_ritz_per_dim": lb.metrics.sim_gt_per_dim(after(seen), truth).round(4).tolist(),
        "sim_ulam_ritz": round(lb.sim_gt(after(seen), ulam), 4),
        "ceiling": round(lb.sim_gt(ulam, truth), 4),
        "eigenvalues_ritz": values.round(5).tolist(),
        "curve": {
            "steps": log.steps,
            "sim_gt": log.curve[:, 0].mean(axis=1).round(4).tolist(),
            "sim_gt_ritz": log.curve[:, 1].mean(axis=1).round(4).tolist(),
        },
    }
    budget = {"transitions": data.transitions} | log.budget(training) | {"samples": log.steps[-1] * training.batch}
    if seed not in (0, 3):
        return metrics, budget, {}
    on_lattice = observe(layout, lattice)
    return (
        metrics,
        budget,
        {"vectors": rep(on_lattice).astype(np.float16), "ritz": after(on_lattice).astype(np.float16)},
    )


EXPERIMENT = Experiment(settings(), run, lambda setting: training_settings(setting).steps, smoke())
