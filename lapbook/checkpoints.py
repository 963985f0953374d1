"""Tensors and what is about them in one safetensors file: written whole or not at all, and never a pickle."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor
from torch.optim import Optimizer

from lapbook.results import replace_file

VERSION = 1  # of the files written here


def to_json(value: Any) -> str:
    """Settings and the state of a random generator as JSON.

    >>> to_json({"d": 2, "state": np.arange(3)})
    '{"d": 2, "state": [0, 1, 2]}'
    """
    return json.dumps(value, default=lambda array: array.tolist())  # some bit generators keep arrays in their state


def digest(*arrays: np.ndarray) -> str:
    """SHA-256 of the arrays' contents.

    >>> digest(np.frombuffer(b"abc", np.uint8))[:16]  # the standard's own example
    'ba7816bf8f01cfea'
    """
    sha = hashlib.sha256()
    for array in arrays:
        sha.update(np.ascontiguousarray(array).data)
    return sha.hexdigest()


def write(path: str | Path, kind: str, tensors: dict[str, Tensor], about: dict[str, Any]) -> None:
    """Write tensors and what is about them to a safetensors file, all of it or nothing.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write(f"{folder}/f", "note", {"x": Tensor([1, 1])}, {"by": "us"})
    ...     tensors, about = read(f"{folder}/f", "note")
    >>> tensors["x"].tolist(), about["by"]
    ([1.0, 1.0], 'us')
    """
    path = Path(path)
    about = {
        "kind": kind,
        "version": VERSION,
        "sha256": digest(*(tensors[name].numpy() for name in sorted(tensors))),
        **about,
    }
    replace_file(path, to_bytes(tensors, {"lapbook": to_json(about)}))


def read(path: str | Path, kind: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read a file of `write`; anything else is refused.

    >>> read(__file__, "note")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: ...checkpoints.py is not a note of lapbook (version 1), or is damaged: ...
    """
    try:
        with safe_open(path, "pt") as file:
            about = json.loads((file.metadata() or {})["lapbook"])
            # cloned, because in the file a tensor may lie where torch would not put it, and would compute otherwise
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
        if (about["kind"], about["version"]) != (kind, VERSION):
            raise ValueError(f"it holds {about['kind']!r} of version {about['version']}")
        if about["sha256"] != digest(*(tensors[name].numpy() for name in sorted(tensors))):
            raise ValueError("its contents have changed")
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a {kind} of lapbook (version {VERSION}), or is damaged: {error}") from error
    return tensors, about


def read_checkpoint(path: str | Path, about: dict[str, Any]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read a checkpoint of the very run that `about` describes; one of another run is refused.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write(f"{folder}/f", "checkpoint", {}, {"settings": {"d": 2}, "step": 7})
    ...     _, found = read_checkpoint(f"{folder}/f", {"settings": {"d": 2}})
    >>> found["step"]
    7
    """
    tensors, found = read(path, "checkpoint")
    wanted = json.loads(to_json(about))  # as it comes back from a file: tuples are lists
    for part, value in wanted.items():
        if found.get(part) != value:
            keys = [k for k in value if (found.get(part) or {}).get(k) != value[k]] if part == "settings" else [part]
            raise ValueError(f"checkpoint {path} is of a run with other {', '.join(keys)}: remove it or choose another")
    return tensors, found


def flat(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The same tensors, their names after a prefix.

    >>> list(flat("encoder", {"0.weight": Tensor([1])}))
    ['encoder.0.weight']
    """
    return {f"{prefix}.{name}": tensor for name, tensor in tensors.items()}


def adam_state(optimizer: Optimizer) -> dict[str, Tensor]:
    """What Adam has gathered, as tensors with names; none before its first step."""
    states = optimizer.state_dict()["state"].items()
    return {f"adam.{i}.{name}": tensor for i, state in states for name, tensor in state.items()}


def restore_adam(optimizer: Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Give Adam back what `adam_state` took; without any, it stays as before its first step."""
    if "adam.0.step" not in tensors:
        return
    groups = optimizer.state_dict()["param_groups"]
    names = ("step", "exp_avg", "exp_avg_sq")
    state = {i: {k: tensors[f"adam.{i}.{k}"] for k in names} for group in groups for i in group["params"]}
    optimizer.load_state_dict({"state": state, "param_groups": groups})
