"""Trajectories of a uniformly random policy (appendix E.1 of the paper)."""

from __future__ import annotations

import gymnasium
import numpy as np

from lapbook.layouts import Seed


def collect(envs: gymnasium.vector.VectorEnv, length: int, rng: Seed = 0) -> np.ndarray:
    """One episode of `length` random steps in each of the environments, from random starts.

    Returns the states visited, shape (num_envs, length + 1, ...): what the environment calls `info["state"]`, or
    the observation where it names none.
    """
    if not isinstance(envs, gymnasium.vector.VectorEnv):
        raise ValueError(f"envs must be a vector environment, made by gymnasium.make_vec: got {type(envs).__name__}")
    if length < 1:
        raise ValueError(f"length must be at least 1 step, got {length}")
    rng = np.random.default_rng(rng)
    envs.action_space.seed(int(rng.integers(2**31)))
    observation, info = envs.reset(seed=int(rng.integers(2**31)))
    visited = [info.get("state", observation)]
    for step in range(1, length + 1):
        observation, _, terminated, truncated, info = envs.step(envs.action_space.sample())
        if (terminated | truncated).any():
            raise ValueError(f"length must not exceed the episodes: one of them ended after {step} of {length} steps")
        visited.append(info.get("state", observation))
    return np.stack(visited, axis=1)


def pairs(states: np.ndarray, size: int, gamma: float = 0.9, rng: Seed = 0) -> tuple[np.ndarray, np.ndarray]:
    """`size` discounted multi-step transitions (s, s') from trajectories of shape (episodes, length + 1, ...).

    Episode and time t are uniform; s' comes 1 + i steps later, where i has the law p(i) = (1-γ)γ^i / (1-γ^n), a
    geometric one cut off at the n steps that are left. γ = 0 gives single steps.
    """
    if not 0 <= gamma < 1:
        raise ValueError(f"gamma must lie in [0, 1), got {gamma}")
    rng = np.random.default_rng(rng)
    episode = rng.integers(len(states), size=size)
    t = rng.integers(states.shape[1] - 1, size=size)
    left = states.shape[1] - 1 - t
    u = rng.random(size)
    if gamma > 0:
        # The inverse of the distribution function 1 - γ^(i+1) over 1 - γ^n; rounding must not lead past the end.
        later = np.floor(np.log1p(-u * (1 - gamma**left)) / np.log(gamma)).astype(int)
        lag = 1 + np.minimum(later, left - 1)
    else:
        lag = np.ones(size, dtype=int)
    return states[episode, t], states[episode, t + lag]


def visited(states: np.ndarray, size: int, rng: Seed = 0) -> np.ndarray:
    """`size` states drawn from ρ, the distribution of states in the data, shape (size, ...)."""
    rng = np.random.default_rng(rng)
    return states[rng.integers(len(states), size=size), rng.integers(states.shape[1], size=size)]
