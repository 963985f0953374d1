"""Section 4.2: option lengths (Fig. 6) and the steps between rooms (Fig. 7), by climbing and by deep Q-learning."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lapbook.layouts import LAYOUTS, Layout
from lapbook.options import Option, climbs, loops, mean_lengths, rewards, room_times, sampled_hitting_times
from lapbook.reproduction.common import EVERY, Experiment, Log, Outcome, Report, Setting, sized
from lapbook.results import name, representation
from lapbook.spectrum import eigenvectors
from lapbook.statistics import spearman

if TYPE_CHECKING:
    from lapbook import dqn

ROLLOUTS = 50  # from each state of a room, appendix E.2
FAR = 8  # rooms whose numbers differ by at least so much


def settings() -> tuple[Setting, ...]:
    """No options, then those of the truth and of stored representations; by deep Q-learning for one seed of each."""
    exact = [("none", "none", 0), ("truth", "exact", 0)]
    exact += [(*run, seed) for run in (("gd", "paper"), ("ggd", "paper"), ("ggd", "paper-coded")) for seed in range(3)]
    runs = [("climb", *run) for run in exact] + [("dqn", method, "paper", 0) for method in ("ggd", "gd")]
    return tuple(
        {"env": env, "route": route, "method": method, "preset": preset, "d": 10, "seed": seed}
        for (route, method, preset, seed), env in product(runs, ("GridRoom", "GridMaze"))
        if (env, method) != ("GridMaze", "none")  # a maze has no rooms to go to, and no options have no length
    )


def smoke() -> tuple[Setting, ...]:
    """Between rooms and where there are none, climbed and learned; from the records of Table 1's own tiny settings."""
    runs = (("GridRoom", "climb", "truth"), ("GridMaze", "climb", "gd"), ("GridMaze", "dqn", "ggd"))
    return tuple({"env": env, "route": r, "method": m, "preset": "smoke", "d": 4, "seed": 0} for env, r, m in runs)


def learning_settings(setting: Setting) -> dqn.Settings:
    """The `dqn.Settings` of a setting, those of Table 4."""
    from lapbook.dqn import preset

    return preset("smoke", gamma=0.0, epsilon=1.0) if setting["preset"] == "smoke" else preset("options")


def steps(setting: Setting) -> int:
    """Steps of deep Q-learning; climbing needs none."""
    return learning_settings(setting).steps if setting["route"] == "dqn" else 1


def learned(
    setting: Setting, layout: Layout, vectors: np.ndarray, scratch: Path, report: Report, hours: float
) -> tuple[list[Option], Log]:
    """Options by deep Q-learning, and a log of the share of states in which each agrees with climbing.

    With γ = 0 the network for the reward -r is minus the one for r, if both begin so and see the same random walk.
    So one network per dimension gives both of its options.
    """
    from lapbook import dqn

    climbing, table4 = climbs(layout, vectors), learning_settings(setting)
    every = min(EVERY, table4.steps // 3)
    R = np.array([rewards(layout, vectors[:, option.dimension - 1]) for option in climbing if option.sign == 1])
    log = Log(scratch / "log.npz", keep=set())

    def policies(Q: np.ndarray) -> list[Option]:
        best = {1: Q.argmax(axis=2), -1: Q.argmin(axis=2)}
        return [Option(best[o.sign][o.dimension - 2], o.terminal, o.dimension, o.sign) for o in climbing]

    def follow(step: int, values: Callable[[], np.ndarray]) -> bool:
        shares = np.array([agreement(layout, vectors, option) for option in policies(values())])
        log.add(step, shares, np.empty(0))
        report(every, f"{name(setting)} agreement {shares.mean():.3f}")
        return log.seconds > 3600 * hours

    ends = np.zeros((len(R), layout.n), dtype=bool)
    rng = np.random.default_rng(setting["seed"])
    Q = dqn.train(layout, R, ends, table4, rng, scratch / "checkpoint.safetensors", every, follow)
    return policies(Q), log


def agreement(layout: Layout, vectors: np.ndarray, option: Option) -> float:
    """The share of states where an option can begin in which its action climbs as fast as any."""
    r = rewards(layout, vectors[:, option.dimension - 1], option.sign)[~option.terminal]
    taken = r[np.arange(len(r)), option.policy[~option.terminal]]
    return float((taken >= r.max(axis=1) - 1e-12).mean())


def known(value: float, digits: int) -> float | None:
    """Rounded; None for NaN, which JSON lacks: options that were hardly learned may end nowhere and have no length."""
    return None if np.isnan(value) else round(float(value), digits)


def sampled_room_times(
    layout: Layout, options: Sequence[Option], rng: np.random.Generator, rollouts: int = ROLLOUTS
) -> tuple[np.ndarray, np.ndarray]:
    """N_ij as the paper measures it, and its standard error, both of shape (rooms, rooms)."""
    rooms = np.arange(1, layout.rooms.max() + 1)
    mean, error = np.full((2, len(rooms), len(rooms)), np.nan)
    starts = np.repeat(np.flatnonzero(layout.rooms), rollouts)
    for j in rooms:
        steps = sampled_hitting_times(layout, options, layout.rooms == j, starts[layout.rooms[starts] != j], rng)
        origin = layout.rooms[starts[layout.rooms[starts] != j]]
        for i in rooms[rooms != j]:
            taken = steps[origin == i]
            mean[i - 1, j - 1], error[i - 1, j - 1] = taken.mean(), taken.std(ddof=1) / np.sqrt(len(taken))
    return (mean + mean.T) / 2, np.sqrt(error**2 + error.T**2) / 2


def measured(
    layout: Layout, options: Sequence[Option], d: int, seed: int, rollouts: int = ROLLOUTS
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Fig. 6 and, where there are rooms, Fig. 7: metrics and arrays of any options, or of none."""
    metrics: dict[str, Any] = {}
    arrays: dict[str, np.ndarray] = {}
    if options:
        lengths = mean_lengths(layout, options)
        of_truth = mean_lengths(layout, climbs(layout, eigenvectors(layout, d).vectors))
        metrics |= {
            "lengths": [known(length, 3) for length in lengths],
            "rank_correlation": known(spearman(lengths, of_truth), 4),
            "terminal": [int(option.terminal.sum()) for option in options],
            "loops": [int(loops(layout, option).sum()) for option in options],
        }
        arrays["policies"] = np.array([option.policy for option in options], dtype=np.int8)
        arrays["terminals"] = np.array([option.terminal for option in options])
    if layout.rooms.any():
        N = room_times(layout, options)
        sampled, error = sampled_room_times(layout, options, np.random.default_rng(seed), rollouts)
        apart = np.abs(np.subtract.outer(np.arange(len(N)), np.arange(len(N))))
        metrics["far"] = round(float(N[apart >= FAR].mean()), 1)
        metrics["next_door"] = round(float(N[apart == 1].mean()), 1)
        metrics["far_sampled"] = round(float(sampled[apart >= FAR].mean()), 1)
        arrays |= {"room_times": N, "sampled": sampled.astype(np.float32), "error": error.astype(np.float32)}
    return metrics, arrays


def run(setting: Setting, scratch: Path, report: Report, hours: float) -> Outcome:
    """Make the options; measure how long they are and, where there are rooms, the steps from one to another."""
    layout = LAYOUTS[setting["env"]]
    start, rollouts = time.perf_counter(), sized(setting, ROLLOUTS, 2)
    options: list[Option] = []
    learning: dict[str, Any] = {}
    log: Log | None = None
    if setting["method"] != "none":
        stored = (setting[key] for key in ("env", "method", "preset", "seed"))
        exact = setting["method"] == "truth"
        vectors = eigenvectors(layout, setting["d"]).vectors if exact else representation(*stored)
        options = climbs(layout, vectors)
        if setting["route"] == "dqn":
            options, log = learned(setting, layout, vectors, scratch, report, hours)
            learning["agreement"] = log.curve[-1].round(4).tolist()
            learning["curve"] = {"steps": log.steps, "agreement": log.curve.mean(axis=1).round(4).tolist()}
    metrics, arrays = measured(layout, options, setting["d"], setting["seed"], rollouts)
    budget = {"rollouts": rollouts, "threads": 1}
    if log is not None:
        return learning | metrics, log.budget(learning_settings(setting)) | budget, arrays
    report(1, name(setting))
    return metrics, budget | {"steps": 1, "wall_seconds": round(time.perf_counter() - start, 1)}, arrays


EXPERIMENT = Experiment(settings(), run, steps, smoke(), stage=lambda setting: 1)
