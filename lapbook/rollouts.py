"""Trajectories of a uniformly random policy, and the pairs of states drawn from them (appendix E.1 of the paper)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree

from lapbook.layouts import Seed


@dataclass(frozen=True)
class Data:
    """Episodes of a random walk: the distinct observations, and which of them was seen when.

    >>> Data(np.eye(2), index=np.array([[0, 0, 1, 0]]), lengths=np.array([3])).rho.tolist()
    [0.75, 0.25]
    """

    observations: np.ndarray
    """Each distinct observation once, shape (m, ...)."""
    index: np.ndarray
    """Row of `observations` at each time, shape (episodes, length + 1); past the end of an episode its last one."""
    lengths: np.ndarray
    """Transitions in each episode, shape (episodes,); at most length."""
    states: np.ndarray | None = None
    """What the environment calls `info["state"]` where that observation is seen, shape (m, ...); None if it does not.
    Where states are numbers the rows are in their order."""

    def __post_init__(self) -> None:
        shape, m = self.index.shape, len(self.observations)
        if len(shape) != 2 or shape[0] < 1 or shape[1] < 2:
            raise ValueError(f"index must have shape (episodes, length + 1) with length ≥ 1, got {shape}")
        if self.index.min() < 0 or self.index.max() >= m:
            raise ValueError(f"index must lie in 0 … {m - 1}, the rows of observations, got {self.index.max()}")
        if self.lengths.shape != shape[:1] or self.lengths.min() < 1 or self.lengths.max() >= shape[1]:
            raise ValueError(f"lengths must hold a number from 1 to {shape[1] - 1} for each of {shape[0]} episodes")

    @property
    def transitions(self) -> int:
        """Number of transitions."""
        return int(self.lengths.sum())

    @property
    def rho(self) -> np.ndarray:
        """ρ, the share of each observation in what `visited` draws, shape (m,)."""
        inside = np.arange(self.index.shape[1]) <= self.lengths[:, None]
        weights = inside / (self.lengths[:, None] + 1) / len(self.index)
        return np.bincount(self.index.ravel(), weights.ravel(), minlength=len(self.observations))


def collect(env: gymnasium.Env | str, transitions: int = 100_000, length: int = 50, rng: Seed = 0) -> Data:
    """Episodes of `length` random steps until there are `transitions`, each from a fresh start of the environment.

    Any Gymnasium environment, or its id. Those of this package, whose episodes have no end of their own, are run in
    one batch unless they are wrapped. Elsewhere an episode that the environment ends is as long as it is.
    Observations that are numbers of states become one-hot vectors, and dicts and tuples one long vector, as
    `gymnasium.spaces.flatten` has it.

    >>> data = collect("lapbook/GridRoom-v0", transitions=1000)
    >>> data.index.shape, data.observations.shape[1:]
    ((20, 51), (2,))
    """
    if isinstance(env, str):
        env = gymnasium.make(env)
    if not isinstance(env, gymnasium.Env):
        raise ValueError(f"env must be an environment made by gymnasium.make, or its id: got {type(env).__name__}")
    for name, value in (("transitions", transitions), ("length", length)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    rng = np.random.default_rng(rng)
    spec = env.spec
    if spec and spec.namespace == "lapbook" and not spec.additional_wrappers and spec.max_episode_steps is None:
        return _batch(spec, math.ceil(transitions / length), length, rng)
    return _one_by_one(env, transitions, length, rng)


def _batch(spec: EnvSpec, episodes: int, length: int, rng: np.random.Generator) -> Data:
    envs = gymnasium.make_vec(spec, num_envs=episodes, vectorization_mode="vector_entry_point")
    envs.action_space.seed(int(rng.integers(2**31)))
    observation, info = envs.reset(seed=int(rng.integers(2**31)))
    table = _Table() if info["state"].ndim == 1 else _Stack()  # states with numbers recur, positions do not
    rows = [table.rows(observation, info["state"])]
    for _ in range(length):
        observation, _, _, _, info = envs.step(envs.action_space.sample())
        rows.append(table.rows(observation, info["state"]))
    envs.close()
    observations, states, order = table.sorted()
    return Data(observations, order[np.array(rows).T], np.full(episodes, length), states)


def _one_by_one(env: gymnasium.Env, transitions: int, length: int, rng: np.random.Generator) -> Data:
    env.action_space.seed(int(rng.integers(2**31)))
    table, rows = _Table(), []
    lengths: list[int] = []
    seed: int | None = int(rng.integers(2**31))  # of the first reset only: the next ones continue its stream
    while sum(lengths) < transitions:
        observation, info = env.reset(seed=seed)
        seed, episode, ended = None, [table.row(*_seen(env, observation, info))], False
        while len(episode) <= length and not ended:
            observation, _, terminated, truncated, info = env.step(env.action_space.sample())
            episode.append(table.row(*_seen(env, observation, info)))
            ended = terminated or truncated
        lengths.append(len(episode) - 1)
        rows.append(episode + [episode[-1]] * (length - lengths[-1]))
    observations, states, order = table.sorted()
    return Data(observations, order[np.array(rows)], np.array(lengths), states)


def _seen(env: gymnasium.Env, observation: Any, info: dict[str, Any]) -> tuple[np.ndarray, Any]:
    """The observation as an array of numbers, and the state if the environment tells it."""
    space, state = env.observation_space, info.get("state")
    # A wrapper may forget to say what its observations are, so what is there counts, not what is announced.
    numbered = isinstance(space, spaces.Discrete | spaces.MultiDiscrete) and observation in space
    in_parts = isinstance(space, spaces.Dict | spaces.Tuple) and isinstance(observation, dict | tuple)
    if numbered and isinstance(space, spaces.Discrete):
        state = int(observation) if state is None else state
    if numbered or in_parts:
        if odd := _not_numbers(space):
            kept = [name for name in space if name not in odd] if isinstance(space, spaces.Dict) else []
            remedy = f": use gymnasium.wrappers.FilterObservation(env, {kept})" if kept else ""
            raise ValueError(f"observations must be made of numbers, unlike {', '.join(map(repr, odd))}{remedy}")
        observation = spaces.flatten(space, observation)
    observation = np.asarray(observation)
    if observation.dtype.kind not in "biuf":
        raise ValueError(f"observations must be arrays of numbers, got dtype {observation.dtype}")
    return observation, state


def _not_numbers(space: spaces.Space) -> list[str | int]:
    """Names of the parts of a space that cannot be laid out as a vector."""
    parts: Iterable[tuple[Any, spaces.Space]]
    parts = space.items() if isinstance(space, spaces.Dict) else enumerate(getattr(space, "spaces", ()))
    return [name for name, part in parts if not _flattens(part)]


def _flattens(space: spaces.Space) -> bool:
    try:
        return space.is_np_flattenable
    except NotImplementedError:  # a space of someone's own, such as MiniGrid's of texts
        return False


class _Table:
    """Distinct observations in the order in which they were first seen."""

    def __init__(self) -> None:
        self.known: dict[bytes, int] = {}
        self.observations: list[np.ndarray] = []
        self.states: list = []

    def row(self, observation: np.ndarray, state: Any) -> int:
        row = self.known.setdefault(observation.tobytes(), len(self.observations))
        if row == len(self.observations):
            self.observations.append(observation.copy())
            self.states.append(state)
        return row

    def rows(self, observations: np.ndarray, states: np.ndarray) -> list[int]:
        return list(map(self.row, observations, states))

    def sorted(self) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
        """Observations, states, and the new row of each old one."""
        observations = np.stack(self.observations)
        if any(state is None for state in self.states):
            return observations, None, np.arange(len(observations))
        states = np.array(self.states)
        numbered = states.ndim == 1 and states.dtype.kind in "iu"
        order = np.argsort(states, kind="stable") if numbered else np.arange(len(states))
        return observations[order], states[order], np.argsort(order)


class _Stack:
    """Observations that are all different, so that there is nothing to look up."""

    def __init__(self) -> None:
        self.seen: list[tuple[np.ndarray, np.ndarray]] = []

    def rows(self, observations: np.ndarray, states: np.ndarray) -> np.ndarray:
        self.seen.append((observations.copy(), states.copy()))
        return np.arange(len(states)) + (len(self.seen) - 1) * len(states)

    def sorted(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        observations, states = (np.concatenate(part) for part in zip(*self.seen, strict=True))
        return observations, states, np.arange(len(states))


def rounded(data: Data, points: ArrayLike) -> Data:
    """The same walks with every position replaced by the nearest of `points`, shape (n, 2).

    The points that are met become the distinct observations; `states` are their numbers. It makes a finite chain of
    a walk on a floor (Ulam's method): a state is then the set of positions that are nearest to a point.

    >>> floor = np.array([[0.1, 0.0], [0.2, 0.0], [0.9, 0.0]])
    >>> walk = Data(floor, np.array([[0, 1, 2]]), np.array([2]), states=floor)
    >>> rounded(walk, [[0, 0], [1, 0]]).index.tolist()
    [[0, 0, 1]]
    """
    points = np.asarray(points)
    if data.states is None or np.shape(data.states)[1:] != points.shape[1:]:
        shapes = None if data.states is None else np.shape(data.states), points.shape
        raise ValueError(f"data.states and points must be positions of the same kind, got shapes {shapes}")
    _, nearest = cKDTree(points).query(data.states[data.index])
    met, index = np.unique(nearest, return_inverse=True)
    return Data(points[met], index.reshape(data.index.shape), data.lengths, met)
