"""Run the settings of an experiment, or of all, that have no record yet (`python -m lapbook reproduce`).

joblib runs them on this machine, Dask on a cluster. Both are given the same function, `attempt`, and both hand back
records, which are stored here as they come.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import shlex
import tempfile
import threading
import traceback
import warnings
import zipfile
from collections.abc import Callable, Generator, Iterator
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from itertools import groupby
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from tqdm import tqdm

from lapbook.reproduction.common import PRESETS, Report, Run, Setting, cut_short
from lapbook.reproduction.experiments import EXPERIMENTS
from lapbook.results import Record, folder, matching, name, provenance, reading_first, save

ALL = "all"
SCRATCH = Path(".lapbook")
TRIES = 3  # pools in a row that may break before any run of them is over
SECONDS = 0.5  # between two looks at the progress
Task = tuple[str, Setting]
"""An experiment and one of its settings."""
Result = tuple[Record, dict[str, np.ndarray]] | str
"""Record and arrays of a run, or what went wrong."""
Results = Generator[tuple[Task, Result], None, None]
Work = Callable[[Task, Run], tuple[Task, Result]]


class DamagedRecord(UserWarning):
    """A record cannot be read; the next run makes it anew."""


class FailedRun(UserWarning):
    """A run ended in an error; the others go on."""


def reproduce(
    experiment: str,
    where: Path | None = None,
    scratch: Path = SCRATCH,
    jobs: int = 1,
    only: str = "*",
    hours: float = math.inf,
    dask: str | None = None,
    preset: str = "paper",
    maps: Path | None = None,
) -> list[Path]:
    """Run what has no record yet, `jobs` settings at a time, and return the new records' files.

    `experiment` may be `"all"`. What reads records of others waits until these are over, and looks for them in `where`
    before the book's. With the preset `"smoke"` it runs tiny settings instead, which are kept apart from the book's.

    A run that was interrupted goes on from its last checkpoint under `scratch`. So does one that was over its `hours`,
    which has a record that says so, when it is given more. With `dask`, the address of a Dask cluster, the runs are
    sent there instead, and only records come back; a run whose worker dies is begun again on another. All workers
    must share the folders `where`, in which they find records of earlier stages, and `scratch`. `maps` is a folder with
    the public maps, which only the experiment `"public"` needs; `"all"` leaves that out where there is none.

    >>> reproduce("exact", only="eigenvalues-*")  # the book has a record of it
    []
    """
    if jobs < 1:
        raise ValueError(f"jobs must be at least 1, got {jobs}")
    if not hours > 0:
        raise ValueError(f"hours must be positive, got {hours}")
    wanted = tasks(experiment, only, preset)
    where = Path(where or default_folder(preset, scratch))
    if preset == "smoke" and where.resolve() == folder().resolve():
        raise ValueError(f"where must not be {where} with the preset smoke: it holds the records of the book")
    left = [task for task in wanted if not done(task, where, hours)]
    if experiment == ALL and maps is None:
        left = [task for task in left if not EXPERIMENTS[task[0]].maps]
    for title, setting in left:
        if (read_map := EXPERIMENTS[title].maps) is not None:
            read_map(setting["env"], maps)  # what is missing is said before anything runs
    if not left:
        return []
    files: list[Path] = []
    failed = 0
    with tempfile.TemporaryDirectory() as place, _progress_bar(Path(place) / "progress", left, files) as progress:
        on_this_machine = None if dask else progress
        work = partial(attempt, where.resolve(), scratch.resolve(), hours, preset, on_this_machine, os.getpid())
        for _, group in groupby(left, _stage):
            stage = list(group)
            runs = [(task, _run_of(task, maps)) for task in stage]
            results = _on_cluster(work, runs, dask) if dask else _in_processes(work, runs, jobs)
            with contextlib.closing(results), _threads_kept() if jobs == 1 else contextlib.nullcontext():
                for task, result in results:
                    stored = result if isinstance(result, str) else _stored(*result, where, scratch)
                    if isinstance(stored, str):
                        warnings.warn(f"{task[0]} {name(task[1])} failed: {stored}", FailedRun, stacklevel=2)
                        failed += 1
                        continue
                    files.append(stored)
                    _tell(progress, _steps(task) if dask else 0, name(task[1]))
    if failed:
        raise RuntimeError(f"{failed} of {len(left)} runs failed, see above; the others are stored")
    return files


def tasks(experiment: str, only: str = "*", preset: str = "paper") -> list[Task]:
    """What there is to run, in an order in which nothing comes before what it reads.

    >>> [name(setting) for _, setting in tasks("exact", only="theorem-1-*")]
    ['theorem-1-0', 'theorem-1-1', 'theorem-1-2']
    """
    if experiment not in (*EXPERIMENTS, ALL):
        raise ValueError(f"experiment must be one of {', '.join((*EXPERIMENTS, ALL))}: got {experiment!r}")
    if preset not in PRESETS:
        raise ValueError(f"preset must be one of {', '.join(PRESETS)}: got {preset!r}")
    known = {title: found.at(preset) for title, found in EXPERIMENTS.items() if experiment in (title, ALL)}
    if not any(known.values()):
        raise ValueError(f"experiment must have runs at the preset {preset}: {experiment} has none")
    found = [(title, setting) for title, settings in known.items() for setting in matching(settings, only)]
    if not found:
        example = name(next(filter(None, known.values()))[0])
        raise ValueError(f"only must match some setting of {experiment}, such as {example}: got {only!r}")
    return sorted(found, key=_stage)


def default_folder(preset: str, scratch: Path = SCRATCH) -> Path:
    """Where the records of a preset belong: those of `"paper"` are the book's.

    >>> default_folder("paper") == folder(), default_folder("smoke").as_posix()
    (True, '.lapbook/smoke')
    """
    return scratch / "smoke" if preset == "smoke" else folder()


def record_file(task: Task, where: Path) -> Path:
    """The file that holds the record of a task, if there is one.

    >>> record_file(("exact", {"check": "rotations", "seed": 0}), Path("here")).as_posix()
    'here/exact/rotations-0.json'
    """
    return where / task[0] / f"{name(task[1])}.json"


def stored_budget(file: Path) -> dict | None:
    """The budget in a record; None, and a warning if the record is damaged, where there is none to read.

    >>> stored_budget(record_file(("exact", {"check": "rotations", "seed": 0}), folder()))["threads"]
    1
    """
    if not file.exists():
        return None
    arrays = file.with_suffix(".npz")
    try:
        budget = json.loads(file.read_text(encoding="utf-8"))["budget"]
    except (ValueError, KeyError, TypeError):
        budget = None
    if isinstance(budget, dict) and (not arrays.exists() or zipfile.is_zipfile(arrays)):
        return budget
    warnings.warn(f"{file} is damaged, it will be made anew", DamagedRecord, stacklevel=3)
    return None


def done(task: Task, where: Path, hours: float = math.inf) -> bool:
    """Whether a task has a record, and has had so many hours if it was cut short: `reproduce` leaves it alone.

    >>> done(("exact", {"check": "rotations", "seed": 0}), folder())
    True
    """
    budget = stored_budget(record_file(task, where))
    return budget is not None and (not cut_short(budget) or budget["wall_seconds"] >= 3600 * hours)


def attempt(
    where: Path, scratch: Path, hours: float, preset: str, progress: Path | None, parent: int, task: Task, run: Run
) -> tuple[Task, Result]:
    """What a run makes of a task, or its traceback: wherever it runs, an error does not reach the others.

    >>> task = ("exact", {"check": "rotations", "seed": 0})
    >>> same, result = attempt(Path(), Path(), 1.0, "paper", None, 0, task, run=lambda *arguments: 1 / 0)
    >>> same == task, result.splitlines()[-1]
    (True, 'ZeroDivisionError: division by zero')
    """

    def report(steps: int, text: str) -> None:
        if progress is not None:
            if parent not in (os.getpid(), os.getppid()):
                os._exit(1)  # who began it was killed and cannot have its record: the checkpoint is for the next
            _tell(progress, steps, text)

    try:
        return task, _record_of(*task, run, where, scratch, hours, preset, report)
    except Exception:
        return task, traceback.format_exc()


def _record_of(
    experiment: str,
    setting: Setting,
    run: Run,
    where: Path,
    scratch: Path,
    hours: float,
    preset: str,
    report: Report = lambda steps, text: None,
) -> tuple[Record, dict[str, np.ndarray]]:
    """Run one setting on one thread, the same sums in the same order wherever it is; its record and arrays."""
    import torch

    torch.set_num_threads(1)
    label = name(setting)
    with reading_first(where):
        metrics, budget, arrays = run(setting, scratch / experiment / label, report, hours)
    command = f"python -m lapbook reproduce {experiment} --only {shlex.quote(label)}"
    if preset != "paper":
        command += f" --preset {preset}"
    if isinstance(run, partial) and "maps" in run.keywords:
        command += " --maps FOLDER"
    if cut_short(budget):
        command += f" --hours {hours:g}"
    record = {"experiment": experiment, "setting": setting, "metrics": metrics, "budget": budget}
    return record | {"provenance": provenance(command)}, arrays


def _run_of(task: Task, maps: Path | None) -> Run:
    experiment = EXPERIMENTS[task[0]]
    return partial(experiment.run, maps=maps and maps.resolve()) if experiment.maps else experiment.run


def _in_processes(work: Work, stage: list[tuple[Task, Run]], jobs: int) -> Results:
    """Run tasks by joblib: one after the other in this process, or in `jobs` others.

    A process that dies, for lack of memory perhaps, takes the pool along. What was not over is begun again.
    """
    left, tries = list(stage), TRIES
    while left and tries:
        # One more than there are tasks, so that the last one, too, has a process of its own if any had.
        pool = Parallel(min(jobs, len(left) + 1), "loky", return_as="generator_unordered", batch_size=1)
        try:
            for task, result in pool(delayed(work)(*each) for each in left):
                left, tries = [other for other in left if other[0] != task], TRIES
                yield task, result
        except BrokenProcessPool:
            left, tries = left[jobs:] + left[:jobs], tries - 1  # those that were running come last
    for task, _ in left:
        yield task, f"of the processes that tried, {TRIES} died, for lack of memory perhaps"


def _on_cluster(work: Work, stage: list[tuple[Task, Run]], address: str) -> Results:
    """Run tasks by Dask: one whose worker dies is begun again on another."""
    from dask.distributed import Client, as_completed

    with Client(address) as client:
        futures = {client.submit(work, task, run, key=f"{task[0]}-{name(task[1])}"): task for task, run in stage}
        for future in as_completed(futures):
            yield future.result() if future.status == "finished" else (futures[future], str(future.exception()))


def _stored(record: Record, arrays: dict[str, np.ndarray], where: Path, scratch: Path) -> Path | str:
    """Save, and only then remove the checkpoints of a run that is over; what is wrong with it, if it is no record."""
    try:
        file = save(record, arrays, where)
    except ValueError as error:
        return f"it cannot be stored, {error}"
    own = scratch / record["experiment"] / name(record["setting"])
    if own.exists() and not cut_short(record["budget"]):
        for leftover in own.glob("*"):
            os.remove(leftover)
        own.rmdir()
    return file


def _stage(task: Task) -> int:
    return EXPERIMENTS[task[0]].stage(task[1])


def _steps(task: Task) -> int:
    return EXPERIMENTS[task[0]].steps(task[1])


def _tell(progress: Path, steps: int, text: str) -> None:
    with open(progress, "a", encoding="utf-8") as file:
        file.write(f"{steps} {text}\n")


@contextlib.contextmanager
def _threads_kept() -> Iterator[None]:
    """Leave torch as many threads as it had: a single job runs in this process, on one."""
    import torch

    threads = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextlib.contextmanager
def _progress_bar(progress: Path, left: list[Task], files: list[Path]) -> Iterator[Path]:
    """A bar of what is appended to a file, from whatever process: joblib itself says only when a run is over."""
    progress.touch()
    total, over, whole = sum(map(_steps, left)), threading.Event(), False

    def follow() -> None:
        with open(progress, encoding="utf-8") as file, tqdm(total=total, unit="step", unit_scale=True) as bar:
            ended, rest = False, ""
            while not ended:
                ended = over.wait(SECONDS)  # then one look more
                *lines, rest = (rest + file.read()).split("\n")
                for line in lines:
                    steps, _, text = line.partition(" ")
                    bar.update(int(steps))
                    bar.set_postfix_str(f"{len(files)}/{len(left)} done, {text}", refresh=False)
            if whole:  # some runs were over before their last step
                bar.total = bar.n

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        yield progress
        whole = True
    finally:
        over.set()
        thread.join()
