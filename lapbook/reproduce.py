"""Run the settings of an experiment that have no record yet (`python -m lapbook reproduce`)."""

from __future__ import annotations

import contextlib
import json
import math
import multiprocessing
import os
import queue as queues
import shlex
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from tqdm import tqdm

from lapbook.experiments import EXPERIMENTS
from lapbook.experiments.common import Report, Run, Setting, cut_short
from lapbook.results import Record, matching, name, provenance, save

Progress = tuple[int, str, Path | None]
"""Steps done, what to show, and the file of a record that is new."""


class DamagedRecord(UserWarning):
    """A record cannot be read and is made anew."""


def reproduce(
    experiment: str,
    where: Path,
    scratch: Path,
    jobs: int = 1,
    only: str = "*",
    hours: float = math.inf,
    dask: str | None = None,
) -> list[Path]:
    """Run what has no record yet, `jobs` settings at a time, and return the new records' files.

    A run that was interrupted goes on from its last checkpoint under `scratch`. So does one that was over its `hours`,
    which has a record that says so, when it is given more. With `dask`, the address of a Dask cluster, the runs are
    sent there instead, and only records come back; a run whose worker dies is begun again on another.
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
    if not left:
        return []
    files, failed = [], 0
    if dask is None:
        progress = _in_processes(experiment, left, where, scratch, hours, jobs)
    else:
        progress = _on_cluster(experiment, left, where, scratch, hours, dask)
    with tqdm(total=sum(map(found.steps, left)), unit="step", unit_scale=True) as bar:
        for steps, text, file in progress:
            bar.update(steps)
            files += [file] if file else []
            failed += text == FAILED
            bar.set_postfix_str(f"{len(files)}/{len(left)} done, {text}")
        bar.total = bar.n
    if failed:
        raise RuntimeError(f"{failed} of {len(left)} runs failed, see above; the others are stored")
    return files


FAILED = "a run failed"


def _in_processes(
    experiment: str, left: list[Setting], where: Path, scratch: Path, hours: float, jobs: int
) -> Iterator[Progress]:
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    waiting, running = list(left), []
    while waiting or running:
        while waiting and len(running) < jobs:
            arguments = (experiment, waiting.pop(0), where, scratch, hours, queue)
            process = context.Process(target=_work, args=arguments, daemon=True)
            process.start()
            running.append(process)
        with contextlib.suppress(queues.Empty):
            yield queue.get(timeout=1)
        ended = [process for process in running if process.exitcode is not None]
        running = [process for process in running if process not in ended]
        yield from _drained(queue, ended)


def _drained(queue, ended: Iterable) -> Iterator[Progress]:
    """What processes that have ended had still to say, and one failure for each that did not end well."""
    for process in ended:
        while True:
            try:
                yield queue.get(timeout=0.2)
            except queues.Empty:
                break
        if process.exitcode != 0:
            yield 0, FAILED, None


def _on_cluster(
    experiment: str, left: list[Setting], where: Path, scratch: Path, hours: float, address: str
) -> Iterator[Progress]:
    from dask.distributed import Client, as_completed

    run = EXPERIMENTS[experiment].run
    with Client(address) as client:
        futures = {
            client.submit(
                record_of, experiment, run, setting, scratch, hours, key=f"{experiment}-{name(setting)}"
            ): setting
            for setting in left
        }
        for future in as_completed(futures):
            setting = futures[future]
            if future.status == "finished":
                yield EXPERIMENTS[experiment].steps(setting), name(setting), _stored(*future.result(), where, scratch)
            else:
                warnings.warn(f"{name(setting)} failed on the cluster: {future.exception()}", stacklevel=2)
                yield 0, FAILED, None


def record_of(
    experiment: str,
    run: Run,
    setting: Setting,
    scratch: Path,
    hours: float,
    report: Report = lambda steps, text: None,
) -> tuple[Record, dict[str, np.ndarray]]:
    """Run one setting on one thread, the same sums in the same order wherever it is; its record and arrays."""
    import torch

    torch.set_num_threads(1)
    label = name(setting)
    metrics, budget, arrays = run(setting, scratch / experiment / label, report, hours)
    command = f"python -m lapbook reproduce {experiment} --only {shlex.quote(label)}"
    if cut_short(budget):
        command += f" --hours {hours:g}"
    record = {"experiment": experiment, "setting": setting, "metrics": metrics, "budget": budget}
    return record | {"provenance": provenance(command)}, arrays


def _stored(record: Record, arrays: dict[str, np.ndarray], where: Path, scratch: Path) -> Path:
    """Save, and only then remove the checkpoints of a run that is over."""
    file = save(record, arrays, where)
    own = scratch / record["experiment"] / name(record["setting"])
    if own.exists() and not cut_short(record["budget"]):
        for leftover in own.glob("*"):
            os.remove(leftover)
        own.rmdir()
    return file


def _done(file: Path, hours: float) -> bool:
    if not file.exists():
        return False
    try:
        budget = json.loads(file.read_text(encoding="utf-8"))["budget"]
    except (ValueError, KeyError, TypeError):
        warnings.warn(f"{file} is damaged, it is made anew", DamagedRecord, stacklevel=3)
        return False
    return not cut_short(budget) or budget["wall_seconds"] >= 3600 * hours


def _work(experiment: str, setting: Setting, where: Path, scratch: Path, hours: float, queue) -> None:
    run = EXPERIMENTS[experiment].run
    record, arrays = record_of(
        experiment, run, setting, scratch, hours, lambda steps, text: queue.put((steps, text, None))
    )
    queue.put((0, name(setting), _stored(record, arrays, where, scratch)))
