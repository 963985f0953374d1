"""The paper on its own maps, very probably: Table 1 from positions, and Figures 6, 7 and 10, on two public maps.

`GridRoom-16` and `GridMaze-19` of the repository tarod13/laplacian_dual_dynamics (folder src/env/grid/txts, MIT) have
the state counts of the paper's grids. They are not part of this book: `--maps` names a folder that has them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from lapbook.layouts import Layout
from lapbook.options import climbs
from lapbook.reproduction import options, paper, table1
from lapbook.reproduction.common import Experiment, Outcome, Report, Setting
from lapbook.results import name, read
from lapbook.spectrum import eigenvectors

STATES = {"GridRoom-16": 271, "GridMaze-19": 161}
SOURCE = "the repository tarod13/laplacian_dual_dynamics, folder src/env/grid/txts"


def settings() -> tuple[Setting, ...]:
    """The truth and no options; ours under both readings with five seeds, the baseline as printed with three."""
    runs = [("truth", "exact", range(1)), ("none", "none", range(1))]
    runs += [("ggd", "paper", range(5)), ("ggd", "paper-coded", range(5)), ("gd", "paper", range(3))]
    return tuple(
        {"env": env, "obs": "xy", "method": method, "preset": preset, "d": 10, "seed": seed}
        for method, preset, seeds in runs
        for seed, env in product(seeds, STATES)
        if (env, method) != ("GridMaze-19", "none")  # a maze has no rooms to go to
    )


def read_map(env: str, maps: Path | None) -> Layout:
    """That public map, from the folder `maps`."""
    if maps is None or not (Path(maps) / f"{env}.txt").is_file():
        raise ValueError(f"maps must be a folder with the file {env}.txt of {SOURCE}: got {maps}")
    layout = Layout.read(Path(maps) / f"{env}.txt")
    if layout.n != STATES[env]:
        raise ValueError(f"maps must hold the public {env} with {STATES[env]} states: got one with {layout.n}")
    return layout


def run(setting: Setting, scratch: Path, report: Report, hours: float, maps: Path | None = None) -> Outcome:
    """Learn as Table 1 does, or take the truth; then climb what was learned. The metrics of both in one record."""
    layout, d, start = read_map(setting["env"], maps), setting["d"], time.perf_counter()
    if setting["method"] in ("truth", "none"):
        spectrum = eigenvectors(layout, d)
        vectors = spectrum.vectors
        metrics: dict[str, Any] = {"eigenvalues": spectrum.values.round(6).tolist()}
        budget: dict[str, Any] = {"steps": 1, "threads": 1}
        arrays: dict[str, np.ndarray] = {}
        report(1, name(setting))
    else:
        metrics, budget, arrays = table1.run(setting, scratch, report, hours, layout)
        vectors = arrays["vectors"].astype(float)
    made = [] if setting["method"] == "none" else climbs(layout, vectors)
    of_options, more = options.measured(layout, made, d, setting["seed"])
    budget.setdefault("wall_seconds", round(time.perf_counter() - start, 1))
    kept = {key: more[key] for key in ("room_times",) if key in more}
    return metrics | of_options, budget | {"rollouts": options.ROLLOUTS}, arrays | kept


def steps(setting: Setting) -> int:
    """Gradient steps at most; the truth needs none."""
    return 1 if setting["method"] in ("truth", "none") else table1.training_settings(setting).steps


# Analysis

RUNS = {
    "ours, as printed": ("ggd", "paper"),
    "ours, as coded": ("ggd", "paper-coded"),
    "baseline": ("gd", "paper"),
    "exact": ("truth", "exact"),
    "no options": ("none", "none"),
}


MEASURED = (
    ("sim_gt", "SimGT (Table 1)", 3),
    ("ceiling", "ceiling of the data", 3),
    ("rank_correlation", "order of option lengths, as the exact ones' (Fig. 6)", 2),
    ("spread", "longest − shortest option, steps (Fig. 6)", 0),
    ("far", "steps between far rooms (Fig. 7)", 0),
    ("next_door", "steps to the next room (Fig. 7)", 0),
)


def values(env: str, key: str, where: Path | str | None = None) -> dict[str, np.ndarray]:
    """A metric of each run of the conditions that have records: SimGT, the steps between far rooms, …

    `spread` is the difference of the longest and the shortest option's mean length.
    """
    found = {}
    for label, (method, preset) in RUNS.items():
        try:
            records = read("public", where, env=env, method=method, preset=preset)
        except ValueError:
            continue
        if key == "spread":
            having = [r["metrics"]["lengths"] for r in records if "lengths" in r["metrics"]]
            found[label] = np.array([max(lengths) - min(lengths) for lengths in having])
        else:
            found[label] = np.array([r["metrics"][key] for r in records if key in r["metrics"]])
    return {label: run for label, run in found.items() if len(run)}


def table(keys: Sequence[str] = (), where: Path | str | None = None) -> str:
    """Markdown: what the paper has on its maps, and what was measured on these; means, smallest and largest run.

    All that is in MEASURED, or the metrics with these keys; conditions without any record of them are left out.
    """
    chosen = [row for row in MEASURED if row[0] in (keys or row[0])]
    known = {label for env in STATES for key, *_ in chosen for label in values(env, key, where)}
    labels = [label for label in RUNS if label in known]
    lines = [f"| map | | the paper | {' | '.join(labels)} |", "|---" * (len(labels) + 3) + "|"]
    for env in STATES:
        grid = env.split("-")[0]
        printed = f"ours {paper.TABLE_1['ggd'][grid, 'xy']:.3f}, baseline {paper.TABLE_1['gd'][grid, 'xy']:.3f}"
        for key, words, digits in chosen:
            found = values(env, key, where)
            cells = [_cell(found.get(label, np.empty(0)), digits) for label in labels]
            if any(cells):
                theirs = {"sim_gt": printed, "ceiling": ""}.get(key, "a picture")
                lines.append(f"| {env} | {words} | {theirs} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(run: np.ndarray, digits: int) -> str:
    if not len(run):
        return ""
    mean = f"{run.mean():.{digits}f}"
    if len(run) == 1:
        return mean
    return f"{mean} ({run.min():.{digits}f} to {run.max():.{digits}f}, {len(run)} runs)"


EXPERIMENT = Experiment(settings(), run, steps, smoke=(), maps=read_map)
