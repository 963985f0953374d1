"""`python -m lapbook`: the commands behind the book's stored results."""

from __future__ import annotations

import argparse
import math
import signal
import sys
import threading
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean

from lapbook.reproduction.common import PRESETS, cut_short
from lapbook.reproduction.experiments import EXPERIMENTS
from lapbook.reproduction.runner import (
    ALL,
    SCRATCH,
    Task,
    default_folder,
    done,
    record_file,
    reproduce,
    stored_budget,
    tasks,
)
from lapbook.results import name

EVERYTHING = "Everything above, each after what it reads; with --preset smoke, tiny, in a minute."


def overview(where: Path, preset: str = "paper") -> list[str]:
    """A line for each experiment, and one for all: the records there are, the hours of one core in them and to come."""
    lines = []
    for title in (*EXPERIMENTS, ALL):
        about = EVERYTHING
        if title in EXPERIMENTS:
            about = (sys.modules[EXPERIMENTS[title].run.__module__].__doc__ or "").splitlines()[0]
        lines.append(f"{title:<12} {cost(tasks(title, preset=preset), where)}  {about}")
    return lines


def cost(wanted: Iterable[Task], where: Path) -> str:
    """How many of these tasks have records, what they took, and what the rest will take if it is like these.

    A run that was cut short will take as long for a step as so far, up to its last one. Like another is what differs
    only in the map and the seed. `?` stands for what is like none that is stored.
    """
    spent, left, whole, missing = [], [], defaultdict(list), []
    for title, setting in wanted:
        kind = (title, *(value for key, value in setting.items() if key not in ("env", "seed")))
        budget = stored_budget(record_file((title, setting), where))
        if budget is None:
            missing.append(kind)
            continue
        seconds = budget["wall_seconds"]
        full = seconds * budget["steps_allowed"] / budget["steps"] if cut_short(budget) else seconds
        spent.append(seconds)
        whole[kind].append(full)
        if cut_short(budget):
            left.append(full - seconds)
    known = [fmean(whole[kind]) for kind in missing if kind in whole]
    to_come = f"{sum(known + left) / 3600:.1f}"
    if len(known) < len(missing):
        to_come = f"{to_come} + ?" if known or left else "?"
    stored = f"{len(spent):>3} of {len(spent) + len(missing):>3} stored, {len(left):>2} of them cut short"
    return f"{stored}, {sum(spent) / 3600:5.1f} hours; {to_come:>9} hours to come"


def main(arguments: list[str] | None = None) -> int:
    """Parse and run; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m lapbook", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    help_text = "run an experiment of the paper; what has a record is skipped, what was interrupted goes on"
    command = commands.add_parser("reproduce", help=help_text, description=help_text)
    command.add_argument("experiment", nargs="?", choices=(*EXPERIMENTS, ALL), help="without one, they are listed")
    command.add_argument("--preset", choices=PRESETS, default=PRESETS[0], help="full scale (default), or tiny")
    command.add_argument("--jobs", type=int, default=1, help="settings to run side by side, one thread each")
    command.add_argument("--only", default="*", help="settings whose name matches, e.g. 'GridRoom-xy-ggd-*'")
    command.add_argument("--hours", type=float, default=math.inf, help="end a run after so long; more lets it go on")
    cluster = "send the runs to this Dask cluster, e.g. tcp://HOST:8786; its workers must share --where and --scratch"
    command.add_argument("--dask", metavar="ADDRESS", help=cluster)
    places = "folder of the records (default: the book's, or smoke in the scratch folder)"
    command.add_argument("--where", type=Path, help=places)
    command.add_argument("--scratch", type=Path, default=SCRATCH, help="folder for checkpoints")
    command.add_argument("--maps", type=Path, metavar="FOLDER", help="folder of the public maps, for public")
    command.add_argument("--list", action="store_true", help="name the settings, and whether they are done")
    given = parser.parse_args(arguments)
    where = given.where or default_folder(given.preset, given.scratch)
    # Ended from outside it leaves as it does after Ctrl-C, and takes its processes along.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if given.experiment is None:
        print("\n".join(overview(where, given.preset)))
        return 0
    try:
        if given.list:
            for task in tasks(given.experiment, given.only, given.preset):
                state = "done" if done(task, where, given.hours) else "open"
                print(state, *task[:1] * (given.experiment == ALL), name(task[1]))
            return 0
        options = (given.jobs, given.only, given.hours, given.dask, given.preset, given.maps)
        files = reproduce(given.experiment, where, given.scratch, *options)
    except (ValueError, RuntimeError) as error:
        print(f"lapbook: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("lapbook: interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    print(f"{len(files)} new records in {where if given.experiment == ALL else where / given.experiment}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
