import gymnasium as gym
import numpy as np
import pytest

import lapbook as lb
from lapbook.layouts import GRID_ROOM


def test_trajectories_are_walks_on_the_map():
    envs = gym.make_vec("lapbook/GridRoom-v0", num_envs=50)
    states = lb.collect(envs, 40, rng=0)
    assert states.shape == (50, 41)
    here, there = states[:, :-1].ravel(), states[:, 1:].ravel()
    assert (GRID_ROOM.moves[here] == there[:, None]).any(axis=1).all()


def test_transition_counts_match_the_random_walk():
    """From each state the four actions are equally likely, so P = I - L/4."""
    envs = gym.make_vec("lapbook/GridRoom-v0", num_envs=4000)
    states = lb.collect(envs, 100, rng=0)
    n = GRID_ROOM.n
    counts = np.zeros((n, n))
    np.add.at(counts, (states[:, :-1].ravel(), states[:, 1:].ravel()), 1)
    P = np.eye(n) - lb.spectrum.laplacian(GRID_ROOM).toarray() / 4
    expected = counts.sum(axis=1, keepdims=True) * P
    assert (counts[expected == 0] == 0).all()
    seen = expected > 0
    z = (counts - expected)[seen] / np.sqrt(expected[seen])
    assert np.abs(z).max() < 5


def test_same_seed_same_data_and_any_environment():
    envs = gym.make_vec("CartPole-v1", num_envs=3)
    first, second = (lb.collect(envs, 5, rng=7) for _ in range(2))
    assert first.shape == (3, 6, 4)
    assert (first == second).all()


def test_episodes_that_end_are_not_glued_together():
    with pytest.raises(ValueError, match=r"one of them ended after .* of 500 steps"):
        lb.collect(gym.make_vec("CartPole-v1", num_envs=3), 500)


def test_a_single_environment_is_refused():
    with pytest.raises(ValueError, match=r"made by gymnasium.make_vec: got"):
        lb.collect(gym.make("lapbook/GridMaze-v0"), 5)


def test_bad_length_is_refused():
    with pytest.raises(ValueError, match="length must be at least 1 step, got 0"):
        lb.collect(gym.make_vec("lapbook/GridMaze-v0", num_envs=2), 0)
