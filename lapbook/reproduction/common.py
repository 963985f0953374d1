"""What experiments share: their form, and the log of a run."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from lapbook.layouts import Layout
from lapbook.results import replace_file

Setting = dict[str, Any]
T = TypeVar("T")
Report = Callable[[int, str], None]
"""Called with the number of steps done since the last call, and the metric that matters."""
Outcome = tuple[dict, dict, dict[str, np.ndarray]]
"""Metrics, budget and arrays of a record."""
Run = Callable[..., Outcome]
"""Takes a setting, a folder for checkpoints, a report of progress and the hours it may take."""

PRESETS = ("paper", "smoke")
"""Everything the book shows, at full scale; and a few tiny runs, which only show that everything works."""
EVERY = 1000  # steps between two points of a curve


@dataclass(frozen=True)
class Experiment:
    """What there is to run, and how: one setting in; metrics, budget and arrays out."""

    settings: tuple[Setting, ...]
    run: Run
    steps: Callable[[Setting], int]
    """Gradient steps that a setting takes at most."""
    smoke: tuple[Setting, ...] | None = None
    """Tiny settings, one for each way through the code; None where `settings` are themselves so cheap."""
    stage: Callable[[Setting], int] = lambda setting: 0
    """A run may read records of lower stages, its own experiment's or another's, and of no others."""

    maps: Callable[[str, Path | None], Layout] | None = None
    """Reads a map from the folder of the public maps, for an experiment whose `run` takes that folder, as `maps`."""

    def at(self, preset: str) -> tuple[Setting, ...]:
        """The settings of a preset, `"paper"` or `"smoke"`."""
        return self.smoke if preset == "smoke" and self.smoke is not None else self.settings


def sized(setting: Setting, full: T, smoke: T) -> T:
    """One of two sizes, by the preset of a setting.

    >>> sized({"env": "GridRoom", "preset": "smoke"}, 100_000, 5_000)
    5000
    """
    return smoke if setting["preset"] == "smoke" else full


def cut_short(budget: dict[str, Any]) -> bool:
    """Whether a run ended because its time was over, so that it could go on; some of old ended on a flat curve."""
    return not budget.get("stopped_flat") and budget.get("steps", 0) < budget.get("steps_allowed", 0)


def snapshot_steps(steps: int, every: int, number: int = 12) -> set[int]:
    """About `number` multiples of `every`, evenly spaced on a logarithmic scale, the last step among them."""
    return {round(step / every) * every for step in np.geomspace(every, steps, number)} | {steps}


class Log:
    """Curve, snapshots and time of a run, kept in a file so that a killed run goes on with them."""

    def __init__(self, path: Path, keep: set[int]) -> None:
        self.path, self.keep = path, keep
        self.points: dict[int, np.ndarray] = {}
        self.snapshots: dict[int, np.ndarray] = {}
        self.seconds = 0.0
        if path.exists():
            with np.load(path, allow_pickle=False) as file:
                self.points = dict(zip(file["steps"].tolist(), file["curve"], strict=True))
                self.snapshots = dict(zip(file["kept"].tolist(), file["snapshots"], strict=True))
                self.seconds = float(file["seconds"])
        self.last = time.perf_counter()

    @property
    def steps(self) -> list[int]:
        """Steps at which the curve has points."""
        return list(self.points)

    @property
    def curve(self) -> np.ndarray:
        """|cos| of each dimension at these steps, shape (points, d)."""
        return np.array(list(self.points.values()))

    def add(self, step: int, value: np.ndarray, vectors: np.ndarray) -> None:
        """Add a point; one that is already there is left alone."""
        now = time.perf_counter()
        self.seconds, self.last = self.seconds + now - self.last, now
        self.points.setdefault(step, value)
        if step in self.keep:
            self.snapshots.setdefault(step, vectors.astype(np.float16))
        buffer = io.BytesIO()
        kept = np.array(list(self.snapshots), dtype=int)
        snapshots = np.array(list(self.snapshots.values()), dtype=np.float16)
        np.savez(buffer, steps=self.steps, curve=self.curve, kept=kept, snapshots=snapshots, seconds=self.seconds)
        replace_file(self.path, buffer.getvalue())

    def budget(self, training: Any) -> dict[str, Any]:
        """What a run with these settings, of `training` or of `dqn`, has used, for its record."""
        import torch

        return {
            "steps": self.steps[-1],
            "steps_allowed": training.steps,
            **({"batch": training.batch} if hasattr(training, "batch") else {}),
            "wall_seconds": round(self.seconds, 1),
            "threads": torch.get_num_threads(),
            "settings": asdict(training),
        }
