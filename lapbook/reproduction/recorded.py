"""The trajectories that ship with the book, for readers without PyBullet."""

from __future__ import annotations

import time
from pathlib import Path

import gymnasium
import numpy as np

from lapbook.floors import RADIUS, clearance
from lapbook.layouts import LAYOUTS
from lapbook.reproduction.common import Experiment, Outcome, Report, Setting

SETTINGS = tuple({"env": env, "transitions": 1_000_000, "length": 500, "seed": 0} for env in ("PointRoom", "PointMaze"))
SMOKE = ({"env": "PointMaze", "transitions": 2_000, "length": 50, "seed": 0},)
AT_WALL = 0.01  # a ball whose surface is nearer than this to a wall touches it


def run(setting: Setting, scratch: Path, report: Report, hours: float) -> Outcome:
    """Collect, check every position against the walls, and round the observations to 16 bits."""
    import lapbook as lb

    layout = LAYOUTS[setting["env"]]
    start = time.perf_counter()
    env = gymnasium.make(f"lapbook/{setting['env']}-v0", render_mode="rgb_array")
    data = lb.collect(env, setting["transitions"], setting["length"], rng=setting["seed"])
    seconds = time.perf_counter() - start
    gap = clearance(layout, data.states)
    if gap.min() < RADIUS:
        raise RuntimeError(f"a ball came as near as {gap.min():.6f} to a wall, its radius is {RADIUS}")
    env.reset(options={"state": layout.cells[0][::-1] + 0.5})
    coordinates = np.moveaxis(data.observations[data.index], -1, 0)
    at_walls = float((gap < RADIUS + AT_WALL).mean())
    metrics = {"least_clearance": round(float(gap.min()), 4), "share_at_walls": round(at_walls, 4)}
    budget = {"transitions": data.transitions, "wall_seconds": round(seconds, 1), "threads": 1}
    report(1, setting["env"])
    return metrics, budget, {"observations": coordinates.astype(np.float16), "picture": env.render()}


EXPERIMENT = Experiment(SETTINGS, run, lambda setting: 1, SMOKE)
