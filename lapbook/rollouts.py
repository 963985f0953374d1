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
