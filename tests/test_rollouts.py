import gymnasium as gym
import numpy as np
import pytest

import lapbook as lb
from lapbook.envs.point import has_physics, positions_of
from lapbook.layouts import GRID_ROOM
from lapbook.rollouts import Data


def test_trajectories_are_walks_on_the_map():
    data = lb.collect("lapbook/GridRoom-v0", transitions=4990, length=40, rng=0)
    assert data.index.shape == (125, 41)
    assert data.transitions == 5000
    assert (np.diff(data.states) > 0).all()  # each state once, in order
    assert (data.observations == GRID_ROOM.xy[data.states].astype(np.float32)).all()
    walks = data.states[data.index]
    here, there = walks[:, :-1].ravel(), walks[:, 1:].ravel()
    assert (GRID_ROOM.moves[here] == there[:, None]).any(axis=1).all()


@pytest.mark.skipif(not has_physics(), reason="PyBullet is not installed")
def test_trajectories_of_balls_are_small_steps():
    data = lb.collect("lapbook/PointRoom-v0", transitions=60, length=20, rng=0)
    assert (data.index == np.arange(3 * 21).reshape(21, 3).T).all()  # no position recurs
    assert positions_of(GRID_ROOM, data.observations) == pytest.approx(data.states, abs=1e-5)
    steps = np.linalg.norm(np.diff(data.states[data.index], axis=1), axis=-1)
    assert 0 < steps.max() <= 0.5 + 1e-6


def test_transition_counts_match_the_random_walk():
    """From each state the four actions are equally likely, so P = I - L/4."""
    data = lb.collect("lapbook/GridRoom-v0", transitions=400_000, length=100, rng=0)
    n = GRID_ROOM.n
    assert (data.states == np.arange(n)).all()
    counts = lb.pairs.pair_probabilities(data, gamma=0) * data.transitions
    P = np.eye(n) - lb.spectrum.laplacian(GRID_ROOM).toarray() / 4
    expected = counts.sum(axis=1, keepdims=True) * P
    assert (counts[expected == 0] == 0).all()
    seen = expected > 0
    z = (counts - expected)[seen] / np.sqrt(expected[seen])
    assert np.abs(z).max() < 5


@pytest.mark.parametrize("env", ["CartPole-v1", "lapbook/GridMaze-v0"])
def test_same_seed_same_data(env):
    first, second, other = (lb.collect(env, 200, rng=seed) for seed in (7, 7, 8))
    for name in ("observations", "index", "lengths"):
        assert (getattr(first, name) == getattr(second, name)).all()
    assert first.index.shape != other.index.shape or (first.index != other.index).any()


def test_episodes_that_end_are_shorter_and_not_glued_together():
    data = lb.collect("CartPole-v1", transitions=500, length=30, rng=0)
    assert data.states is None
    assert 500 <= data.transitions < 530
    assert data.lengths.max() == 30 > data.lengths.min()
    assert data.observations.shape == (data.transitions + len(data.index), 4)  # no two are the same
    first, second = lb.pairs.draw(data, 5000, rng=0)
    episode = np.searchsorted(data.index[:, 0], [first, second], side="right")  # rows are numbered as they were seen
    assert (episode[0] == episode[1]).all()
    assert (first < second).all()
    assert set(lb.pairs.visited(data, 100_000)) == set(range(len(data.observations)))


def test_an_environment_with_states_to_itself_needs_no_vector_version():
    batched = lb.collect("lapbook/GridMaze-v0", 3000, rng=0)

    class Plain(gym.Wrapper):
        spec = None

    plain = lb.collect(Plain(gym.make("lapbook/GridMaze-v0")), 3000, rng=0)
    shared = np.intersect1d(plain.states, batched.states)
    rows = [np.searchsorted(data.states, shared) for data in (plain, batched)]
    assert (plain.observations[rows[0]] == batched.observations[rows[1]]).all()
    assert plain.index.shape == batched.index.shape


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((None, 5), "env must be an environment made by gymnasium.make, or its id: got NoneType"),
        (("lapbook/GridMaze-v0", 0), "transitions must be at least 1, got 0"),
        (("lapbook/GridMaze-v0", 5, 0), "length must be at least 1, got 0"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        lb.collect(*arguments)


@pytest.mark.parametrize(
    ("index", "lengths", "message"),
    [
        ([[0], [1]], [1, 1], r"index must have shape \(episodes, length \+ 1\)"),
        ([[0, 2], [1, 0]], [1, 1], "index must lie in 0 … 1, the rows of observations, got 2"),
        ([[0, 1], [1, 0]], [1, 2], "lengths must hold a number from 1 to 1 for each of 2 episodes"),
    ],
)
def test_data_that_do_not_fit_together_are_refused(index, lengths, message):
    with pytest.raises(ValueError, match=message):
        Data(np.eye(2), np.array(index), np.array(lengths))


def counting(episodes, length):
    """Trajectories that count their own steps: the difference of a pair is its lag."""
    return Data(np.eye(length + 1), np.tile(np.arange(length + 1), (episodes, 1)), np.full(episodes, length))


def test_the_law_of_the_pairs_is_that_of_the_samples():
    index = np.array([[0, 1, 2, 1, 0], [2, 2, 0, 0, 0]])
    data = Data(np.eye(3), index, np.array([4, 2]))
    size = 200_000
    for gamma in (0.0, 0.7):
        exact, sampled = lb.pairs.pair_probabilities(data, gamma), np.zeros((3, 3))
        np.add.at(sampled, lb.pairs.draw(data, size, gamma, rng=0), 1 / size)
        assert exact.sum() == pytest.approx(1)
        assert sampled == pytest.approx(exact, abs=5 / np.sqrt(size))
    share = np.bincount(lb.pairs.visited(data, size, rng=0)) / size
    assert data.rho == pytest.approx([(2 / 5 + 1 / 3) / 2, 1 / 5, (1 / 5 + 2 / 3) / 2])
    assert share == pytest.approx(data.rho, abs=5 / np.sqrt(size))


def test_lags_follow_the_truncated_geometric_law():
    length, gamma, size = 50, 0.9, 400_000
    first, second = lb.pairs.draw(counting(3, length), size, gamma, rng=0)
    lag = second - first
    assert lag.min() == 1
    assert second.max() <= length
    expected = np.mean([1 + np.arange(n) @ lb.pairs.lag_law(n, gamma) for n in range(1, length + 1)])
    assert lag.mean() == pytest.approx(expected, abs=5 * lag.std() / np.sqrt(size))
    assert round(expected, 1) == 7.2
    last = lag[first == length - 3]  # three steps left: 1, γ, γ² in proportion
    share = np.bincount(last, minlength=4)[1:] / len(last)
    assert share == pytest.approx(np.array([1, 0.9, 0.81]) / 2.71, abs=5 / np.sqrt(len(last)))


def test_no_discount_gives_single_steps():
    data = counting(2, 9)
    first, second = lb.pairs.draw(data, 1000, gamma=0, rng=0)
    assert (second == first + 1).all()
    assert lb.pairs.lag_law(3, 0).tolist() == [1, 0, 0]
    with pytest.raises(ValueError, match=r"gamma must lie in \[0, 1\), got 1"):
        lb.pairs.draw(data, 5, gamma=1)


def test_the_eigenvalues_of_several_steps_are_those_of_the_mixed_powers():
    P = np.eye(GRID_ROOM.n) - lb.spectrum.laplacian(GRID_ROOM).toarray() / 4
    mixed, power = np.zeros_like(P), np.eye(GRID_ROOM.n)
    for lag in range(1, 6):
        power = power @ P
        share = sum(lb.pairs.lag_law(left, 0.7)[lag - 1] for left in range(lag, 6)) / 5
        mixed += share * power
    expected = np.linalg.eigvalsh(np.eye(GRID_ROOM.n) - mixed)
    walk = np.linalg.eigvalsh(P)[::-1]
    assert np.sort(lb.pairs.multi_step(walk, 5, 0.7)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("env", ["PointRoom", "PointMaze"])
def test_the_recorded_walks_stay_on_the_floor_and_take_small_steps(env):
    data = lb.recorded(env)
    assert data.transitions == 1_000_000
    assert data.index.shape == (2000, 501)
    gap = lb.floors.clearance(lb.layouts.LAYOUTS[env], data.states[::7])
    assert gap.min() > 0.5 - 0.005  # 16 bits
    walks = data.states[data.index]
    assert np.linalg.norm(np.diff(walks, axis=1), axis=-1).max() < 0.5 + 0.01
    with pytest.raises(ValueError, match="env must be one of PointMaze, PointRoom: got 'GridRoom'"):
        lb.recorded("GridRoom")


def test_rounding_makes_a_finite_chain_of_a_walk():
    positions = np.array([[0.1, 0.0], [0.9, 0.1], [2.2, 0.0], [1.4, 0.0]])
    walk = Data(positions, np.array([[0, 1, 2, 3]]), np.array([3]), positions)
    chain = lb.rollouts.rounded(walk, np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [9.0, 9.0]]))
    assert chain.index.tolist() == [[0, 1, 2, 1]]
    assert chain.states.tolist() == [0, 1, 2]  # nobody was near the last
    assert chain.observations.tolist() == [[0, 0], [1, 0], [2, 0]]
    with pytest.raises(ValueError, match="must be positions of the same kind"):
        lb.rollouts.rounded(counting(1, 2), positions)


@pytest.mark.parametrize(("env", "width"), [("FrozenLake-v1", 16), ("Blackjack-v1", 32 + 11 + 2)])
def test_numbers_of_states_become_one_hot_vectors(env, width):
    data = lb.collect(env, 300, rng=0)
    assert data.observations.shape[1] == width
    assert set(data.observations.sum(axis=1)) == {1 if env == "FrozenLake-v1" else 3}  # one 1 for each part
    if env == "FrozenLake-v1":
        assert (data.observations.argmax(axis=1) == data.states).all()  # the number is the state
        assert (np.diff(data.states) > 0).all()


def test_the_parts_of_a_dict_are_laid_out_and_what_is_no_number_is_refused():
    import minigrid  # noqa: F401  (registers its environments)

    env = gym.make("MiniGrid-Empty-5x5-v0")
    with pytest.raises(
        ValueError, match=r"unlike 'mission': use gymnasium.wrappers.FilterObservation\(env, \['direction'"
    ):
        lb.collect(env, 10)
    kept = gym.wrappers.FilterObservation(env, ["direction", "image"])
    data = lb.collect(kept, 300, length=20, rng=0)
    assert data.observations.shape[1] == 4 + 7 * 7 * 3
    assert (data.observations[:, :4].sum(axis=1) == 1).all()
    rep = lb.learn(data, "smoke", d=2, steps=2)
    assert rep(data.observations).shape == (len(data.observations), 2)


class Odd(gym.ObservationWrapper):
    """A wrapper that does not announce what its observations are."""

    def __init__(self, env, change):
        super().__init__(env)
        self.change = change

    def observation(self, observation):
        return self.change(observation)


def test_what_is_observed_counts_not_what_is_announced():
    data = lb.collect(Odd(gym.make("FrozenLake-v1"), lambda state: np.array([state // 4, state % 4])), 200, rng=0)
    assert data.observations.shape == (len(data.observations), 2)
    assert data.observations.max() == 3
    for nothing in (lambda state: "here", lambda state: {"here": state}):
        with pytest.raises(ValueError, match="observations must be arrays of numbers, got dtype"):
            lb.collect(Odd(gym.make("FrozenLake-v1"), nothing), 10)


def test_our_own_environments_may_be_wrapped():
    env = gym.make("lapbook/GridMaze-v0")
    half = lb.collect(Odd(env, lambda xy: xy[:1]), 400, length=20, rng=0)
    assert half.observations.shape[1:] == (1,)
    limited = lb.collect(gym.wrappers.TimeLimit(env, 5), 100, length=20, rng=0)
    assert (limited.lengths == 5).all()
    short = lb.collect(gym.make("lapbook/GridMaze-v0", max_episode_steps=7), 100, length=20, rng=0)
    assert (short.lengths == 7).all()
