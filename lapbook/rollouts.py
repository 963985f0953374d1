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
    if length < 1:
        raise ValueError(f"length must be at least 1 step, got {length}")
    rng = np.random.default_rng(rng)
    envs.action_space.seed(int(rng.integers(2**31)))
    observation, info = envs.reset(seed=int(rng.integers(2**31)))
    visited = [info.get("state", observation)]
    for _ in range(length):
        observation, _, _, _, info = envs.step(envs.action_space.sample())
        visited.append(info.get("state", observation))
    return np.stack(visited, axis=1)
