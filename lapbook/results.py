"""Records of experiments: one small JSON file each, large arrays beside it, and how chapters read them."""

from __future__ import annotations

import io
import json
import os
import platform
import re
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from fnmatch import fnmatch
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from lapbook.layouts import LAYOUTS
from lapbook.rollouts import Data

Record = dict[str, Any]
PARTS = ("experiment", "setting", "metrics", "budget", "provenance")
_first: ContextVar[Path | None] = ContextVar("first", default=None)


def folder() -> Path:
    """Where the book's own records are: in the repository, or in the installed package.

    >>> folder().name in ("results", "_results")
    True
    """
    here = Path(__file__).parent
    shipped = here / "_results"
    return shipped if shipped.exists() else here.parent / "book" / "results"


@contextmanager
def reading_first(where: Path) -> Iterator[None]:
    """Within it, what is read without a folder is looked for there before it is among the book's records.

    So a run reads what other runs of the same call have stored. It holds for the thread that asks, and no other.

    >>> with reading_first(Path("nowhere")):  # no records there, so the book's are read
    ...     [record["setting"]["seed"] for record in read("exact", check="rotations")]
    [0, 1, 2]
    """
    token = _first.set(Path(where))
    try:
        yield
    finally:
        _first.reset(token)


def name(setting: dict[str, Any]) -> str:
    """The file name of a setting, without its ending: its values, joined.

    >>> name({"env": "GridRoom", "method": "ggd", "seed": 0})
    'GridRoom-ggd-0'
    """
    return "-".join(str(value) for value in setting.values())


def save(record: Record, arrays: dict[str, np.ndarray] | None = None, where: Path | str | None = None) -> Path:
    """Write a record and its arrays, whole or not at all; the record comes last, so its arrays are always there.

    >>> from tempfile import TemporaryDirectory
    >>> record = dict.fromkeys(PARTS, {}) | {"experiment": "trial", "setting": {"env": "GridRoom", "seed": 0}}
    >>> with TemporaryDirectory() as place:
    ...     save(record, where=place).name, read("trial", place, seed=0)[0]["setting"]
    ('GridRoom-0.json', {'env': 'GridRoom', 'seed': 0})
    """
    missing = [part for part in PARTS if part not in record]
    if missing:
        raise ValueError(f"record must have {', '.join(PARTS)}: {', '.join(missing)} missing")
    path = Path(where or folder()) / record["experiment"] / f"{name(record['setting'])}.json"
    if arrays:
        buffer, named = io.BytesIO(), dict[str, Any](arrays)
        np.savez_compressed(buffer, **named)
        replace_file(path.with_suffix(".npz"), buffer.getvalue())
    text = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False)
    text = re.sub(r"\[[^][{}]*\]", lambda flat: " ".join(flat.group().split()), text)  # a list of numbers on one line
    replace_file(path, (text + "\n").encode())
    return path


def read(experiment: str, where: Path | str | None = None, **setting: Any) -> list[Record]:
    """The records of an experiment whose settings have these values, in the order of their names.

    >>> records = read("table1", env="GridRoom", obs="xy", method="ggd", preset="paper")
    >>> [record["setting"]["seed"] for record in records]
    [0, 1, 2]
    """
    places = [Path(where)] if where else [place for place in (_first.get(), folder()) if place]
    for place in places:
        records = select(_every(place / experiment), **setting)
        if records:
            return records
    known = sorted(path.name for path in places[-1].glob("*") if path.is_dir())
    asked = ", ".join(f"{k}={v}" for k, v in setting.items())
    raise ValueError(f"experiment must have records{' with ' + asked if asked else ''}: {experiment} has none, "
                     f"there are {', '.join(known) or 'none at all'}")  # fmt: skip


def _every(path: Path) -> list[Record]:
    records = []
    for file in sorted(path.glob("*.json")):
        try:
            record = json.loads(file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{file} is not a record, it may be damaged: delete it and reproduce it") from error
        records.append({**record, "file": str(file)})
    return records


def select(records: Iterable[Record], **setting: Any) -> list[Record]:
    """The records whose settings have these values; none is an answer too.

    >>> records = [{"setting": {"env": "GridRoom", "seed": seed}} for seed in range(3)]
    >>> len(select(records, env="GridRoom", seed=1)), select(records, env="GridMaze")
    (1, [])
    """
    return [r for r in records if all(r["setting"].get(key) == value for key, value in setting.items())]


def arrays(record: Record) -> dict[str, np.ndarray]:
    """The arrays beside a record that `read` gave.

    >>> (record,) = read("table1", env="GridMaze", obs="xy", method="ggd", preset="paper", seed=0)
    >>> arrays(record)["vectors"].shape  # states and dimensions
    (161, 10)
    """
    with np.load(Path(record["file"]).with_suffix(".npz"), allow_pickle=False) as file:
        return {key: file[key] for key in file.files}


def representation(
    env: str, method: str, preset: str = "paper", seed: int = 0, obs: str = "xy", where: Path | str | None = None
) -> np.ndarray:
    """A representation of all states that Table 1 has stored, shape (n, d), each dimension with mean square 1.

    >>> (representation("GridMaze", "ggd") ** 2).mean(axis=0).round(6).tolist() == [1.0] * 10
    True
    """
    (record,) = read("table1", where, env=env, obs=obs, method=method, preset=preset, seed=seed)
    vectors = arrays(record)["vectors"].astype(float)
    return vectors / np.sqrt((vectors**2).mean(axis=0))


def recorded(env: str, where: Path | str | None = None) -> Data:
    """A million transitions that ship with the book, for `"PointRoom"` or `"PointMaze"`: no physics needed.

    Observations were rounded to 16 bits, 1/400 of the ball's radius at worst; `states` are the positions on the floor.

    >>> recorded("PointRoom").transitions
    1000000
    """
    from lapbook.envs.point import positions_of

    names = sorted(record["setting"]["env"] for record in read("recorded", where))
    if env not in names:
        raise ValueError(f"env must be one of {', '.join(names)}: got {env!r}")
    (record,) = read("recorded", where, env=env)
    coordinates = arrays(record)["observations"].astype(np.float32)  # x and y first, which packs better
    _, episodes, times = coordinates.shape
    observations = np.ascontiguousarray(np.moveaxis(coordinates, 0, -1).reshape(-1, 2))
    index = np.arange(len(observations)).reshape(episodes, times)
    return Data(observations, index, np.full(episodes, times - 1), positions_of(LAYOUTS[env], observations))


def metric(records: Iterable[Record], key: str) -> np.ndarray:
    """That metric of each record, stacked.

    >>> metric([{"metrics": {"sim_gt": 0.25}}, {"metrics": {"sim_gt": 0.5}}], "sim_gt").mean().tolist()
    0.375
    """
    return np.array([record["metrics"][key] for record in records])


def matching(settings: Iterable[dict[str, Any]], only: str) -> list[dict[str, Any]]:
    """The settings whose names match a pattern such as `GridRoom-*-paper-*`.

    >>> matching([{"env": "GridRoom", "seed": 0}, {"env": "GridMaze", "seed": 0}], "*Maze-*")
    [{'env': 'GridMaze', 'seed': 0}]
    """
    return [setting for setting in settings if fnmatch(name(setting), only)]


def provenance(command: str) -> dict[str, Any]:
    """Command, commit, versions and date of what is run now.

    >>> found = provenance("python -m lapbook reproduce exact")
    >>> found["command"].split()[-1], found["versions"]["numpy"] == np.__version__
    ('exact', True)
    """
    packages = ("lapbook", "numpy", "scipy", "torch", "gymnasium")
    return {
        "command": command,
        "commit": _commit(),
        "versions": {"python": platform.python_version(), **{package: version(package) for package in packages}},
        "date": datetime.now(UTC).date().isoformat(),
    }


def _commit() -> str | None:
    """Commit of the code that runs, with a + if it was changed since; None where it does not run from a repository."""
    git = ["git", "-C", str(Path(__file__).parent)]
    try:
        commit = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True)
        changed = subprocess.run([*git, "status", "--porcelain", "."], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return commit.stdout.strip() + ("+" if changed.stdout else "")


def replace_file(path: Path, content: bytes) -> None:
    """Write a file whole or not at all.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as place:
    ...     replace_file(Path(place, "new", "file"), b"text")
    ...     Path(place, "new", "file").read_text(), len(list(Path(place, "new").iterdir()))
    ('text', 1)
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
