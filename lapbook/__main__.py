"""`python -m lapbook`: the commands behind the book's stored results."""

from __future__ import annotations

import argparse
import json
import math
import signal
import sys
import threading
from pathlib import Path

from lapbook.experiments import EXPERIMENTS
from lapbook.reproduce import reproduce
from lapbook.results import folder, matching, name


def overview(where: Path) -> list[str]:
    """A line for each experiment: how many of its settings have a record, and the hours of one core behind these."""
    lines = []
    for title, experiment in EXPERIMENTS.items():
        files = [where / title / f"{name(setting)}.json" for setting in experiment.settings]
        records = [json.loads(file.read_text(encoding="utf-8")) for file in files if file.exists()]
        hours = sum(record["budget"]["wall_seconds"] for record in records) / 3600
        about = (sys.modules[experiment.run.__module__].__doc__ or "").splitlines()[0]
        lines.append(f"{title:<9} {len(records):>3} of {len(files):>3} stored, {hours:5.1f} hours  {about}")
    return lines


def main(arguments: list[str] | None = None) -> int:
    """Parse and run; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m lapbook", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    help_text = "run an experiment of the paper; what has a record is skipped, what was interrupted goes on"
    command = commands.add_parser("reproduce", help=help_text, description=help_text)
    command.add_argument("experiment", nargs="?", choices=EXPERIMENTS, help="without one, they are listed")
    command.add_argument("--jobs", type=int, default=1, help="settings to run side by side, one thread each")
    command.add_argument("--only", default="*", help="settings whose name matches, e.g. 'GridRoom-xy-ggd-*'")
    command.add_argument("--hours", type=float, default=math.inf, help="end a run after so long; more lets it go on")
    command.add_argument("--dask", metavar="ADDRESS", help="send the runs to this Dask cluster, e.g. tcp://HOST:8786")
    command.add_argument("--where", type=Path, default=folder(), help="folder of the records (default: the book's)")
    command.add_argument("--scratch", type=Path, default=Path(".lapbook"), help="folder for checkpoints")
    command.add_argument("--list", action="store_true", help="name the settings and whether they have a record")
    given = parser.parse_args(arguments)
    # Ended from outside it leaves as it does after Ctrl-C, and takes its processes along.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if given.experiment is None:
        print("\n".join(overview(given.where)))
        return 0
    if given.list:
        for setting in matching(EXPERIMENTS[given.experiment].settings, given.only):
            there = (given.where / given.experiment / f"{name(setting)}.json").exists()
            print("done" if there else "open", name(setting))
        return 0
    try:
        files = reproduce(given.experiment, given.where, given.scratch, given.jobs, given.only, given.hours, given.dask)
    except (ValueError, RuntimeError) as error:
        print(f"lapbook: {error}", file=sys.stderr)
        return 1
    print(f"{len(files)} new records in {given.where / given.experiment}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
