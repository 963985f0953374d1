"""Run the settings of an experiment that have no record yet (`python -m lapbook reproduce`)."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import queue as queues
import shlex
from pathlib import Path

from tqdm import tqdm

from lapbook.experiments import EXPERIMENTS
from lapbook.experiments.common import Setting, cut_short
from lapbook.results import matching, name, provenance, save


def reproduce(
    experiment: str, where: Path, scratch: Path, jobs: int = 1, only: str = "*", hours: float = math.inf
) -> list[Path]:
    """Run what has no record yet, `jobs` settings at a time, and return the new records' files.

    A run that was interrupted goes on from its last checkpoint under `scratch`. So does one that was over its `hours`,
    which has a record that says so, when it is given more.
    """
    if experiment not in EXPERIMENTS:
        raise ValueError(f"experiment must be one of {', '.join(EXPERIMENTS)}: got {experiment!r}")
    if jobs < 1:
        raise ValueError(f"jobs must be at least 1, got {jobs}")
    if not hours > 0:
        raise ValueError(f"hours must be positive, got {hours}")
    found = EXPERIMENTS[experiment]
    wanted = matching(found.settings, only)
    if not wanted:
        example = name(found.settings[0])
        raise ValueError(f"only must match some setting of {experiment}, such as {example}: got {only!r}")
    left = [setting for setting in wanted if not _done(where / experiment / f"{name(setting)}.json", hours)]
    total, files = sum(map(found.steps, left)), []
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    with tqdm(total=total, unit="step", unit_scale=True, disable=not left) as bar:
        waiting = [(experiment, setting, where, scratch, hours) for setting in left]
        running: list = []
        failed: list[str] = []
        while waiting or running:
            while waiting and len(running) < jobs:
                process = context.Process(target=_work, args=(*waiting.pop(0), queue), daemon=True)
                process.start()
                running.append(process)
            try:
                steps, text, file = queue.get(timeout=1)
            except queues.Empty:
                pass
            else:
                bar.update(steps)
                files += [file] if file else []
                bar.set_postfix_str(f"{len(files)}/{len(left)} done, {text}")
            failed += [process.name for process in running if process.exitcode not in (None, 0)]
            running = [process for process in running if process.exitcode is None]
        bar.total = bar.n
    if failed:
        raise RuntimeError(f"{len(failed)} of {len(left)} runs failed, see above; the others are stored")
    return files


def _done(file: Path, hours: float) -> bool:
    if not file.exists():
        return False
    budget = json.loads(file.read_text(encoding="utf-8"))["budget"]
    return not cut_short(budget) or budget["wall_seconds"] >= 3600 * hours


def _work(experiment: str, setting: Setting, where: Path, scratch: Path, hours: float, queue) -> None:
    """Run one setting in a process of its own, on one thread: the same sums in the same order whatever `jobs` is."""
    import torch

    torch.set_num_threads(1)
    run, label = EXPERIMENTS[experiment].run, name(setting)
    own = scratch / experiment / label
    metrics, budget, arrays = run(setting, own, lambda steps, text: queue.put((steps, text, None)), hours)
    command = f"python -m lapbook reproduce {experiment} --only {shlex.quote(label)}"
    if cut_short(budget):
        command += f" --hours {hours:g}"
    record = {"experiment": experiment, "setting": setting, "metrics": metrics, "budget": budget}
    file = save(record | {"provenance": provenance(command)}, arrays, where)
    if own.exists() and not cut_short(budget):
        for leftover in own.glob("*"):
            os.remove(leftover)
        own.rmdir()
    queue.put((0, label, file))
