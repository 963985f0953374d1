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


def lag_law(left, gamma):
    law = (1 - gamma) * gamma ** np.arange(left)
    return law / law.sum()


def test_lags_follow_the_truncated_geometric_law():
    """On trajectories that count their own steps the difference of a pair is its lag."""
    length, gamma, size = 50, 0.9, 400_000
    states = np.tile(np.arange(length + 1), (3, 1))
    first, second = lb.rollouts.pairs(states, size, gamma, rng=0)
    lag = second - first
    assert lag.min() == 1
    assert second.max() <= length
    expected = np.mean([1 + np.arange(n) @ lag_law(n, gamma) for n in range(1, length + 1)])
    assert lag.mean() == pytest.approx(expected, abs=5 * lag.std() / np.sqrt(size))
    assert round(expected, 1) == 7.2
    last = lag[first == length - 3]  # three steps left: 1, γ, γ² in proportion
    share = np.bincount(last, minlength=4)[1:] / len(last)
    assert share == pytest.approx(lag_law(3, gamma), abs=5 / np.sqrt(len(last)))


def test_no_discount_gives_single_steps_and_states_come_from_everywhere():
    states = np.arange(30).reshape(3, 10)
    first, second = lb.rollouts.pairs(states, 1000, gamma=0, rng=0)
    assert (second == first + 1).all()
    assert set(lb.rollouts.visited(states, 2000, rng=0)) == set(range(30))
    positions = np.zeros((4, 6, 2))
    assert lb.rollouts.pairs(positions, 7)[1].shape == (7, 2)
    with pytest.raises(ValueError, match=r"gamma must lie in \[0, 1\), got 1"):
        lb.rollouts.pairs(states, 5, gamma=1)
