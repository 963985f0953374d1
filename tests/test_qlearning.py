import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapbook import layouts, shaping
from lapbook.layouts import GRID_MAZE, Layout
from lapbook.qlearning import Settings, _explorations, _starts, greedy, optimal, success, train

CORRIDOR = Layout(".....", "corridor")
SMALL = layouts.maze(3, 3, rng=0)
LEFT, RIGHT = 0, 1


def sparse(layout, goals):
    return np.array([shaping.on_arrival(layout, shaping.sparse(layout, int(g))) for g in goals])


def walk(layout, policy, goal, start, steps):
    for _ in range(steps):
        if start == goal:
            break
        start = layout.moves[start, policy[start]]
    return start == goal


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.integers(0, 40))
def test_success_agrees_with_walking(seed, steps):
    rng = np.random.default_rng(seed)
    layout = layouts.maze(*rng.integers(1, 5, 2) + 1, rng=seed)
    policy, goals = rng.integers(4, size=(3, layout.n)), rng.integers(layout.n, size=3)
    expected = [
        np.mean([walk(layout, p, g, s, steps) for s in range(layout.n) if s != g])
        for p, g in zip(policy, goals, strict=True)
    ]
    assert success(layout, policy, goals, steps) == pytest.approx(expected)


def test_the_best_policy_takes_the_shortest_path():
    """With -1 for each step but the last, V(s) = -(1 - γ^(d-1))/(1 - γ) at distance d ≥ 1."""
    goals, gamma = np.array([0, 77, 160]), 0.9
    Q = optimal(GRID_MAZE, sparse(GRID_MAZE, goals), goals, gamma)
    distance = GRID_MAZE.distances()[goals]
    assert Q.max(axis=-1) == pytest.approx(-(1 - gamma ** np.maximum(distance - 1, 0)) / (1 - gamma))
    for steps in (1, 20, 150):
        reached = [np.mean((d <= steps)[d > 0]) for d in distance]
        assert success(GRID_MAZE, greedy(Q), goals, steps) == pytest.approx(reached)


@pytest.mark.parametrize(("length", "lr"), [(150, 1.0), (150, 0.5), (1, 1.0)])
def test_agents_learn_what_value_iteration_finds(length, lr):
    """Also where every episode is broken off after one step: a time-out is not the end of the world."""
    goals = np.array([0, 8, 16])
    rewards = sparse(SMALL, goals) - np.random.default_rng(0).random((3, SMALL.n, 4))
    Q = train(SMALL, rewards, goals, Settings(steps=40_000, length=length, lr=lr, gamma=0.9, epsilon=1), rng=0)
    assert Q.dtype == np.float32
    assert Q == pytest.approx(optimal(SMALL, rewards, goals, 0.9), abs=1e-3)


def test_each_step_is_a_step_of_q_learning():
    """From table to table exactly one entry of each agent changes, by the rule, and the entries form episodes."""
    goals, learning = np.array([3, 9, 14, 14]), Settings(steps=300, length=7, lr=0.1, gamma=0.8, epsilon=0.4)
    rewards = -1 - np.random.default_rng(1).random((4, SMALL.n, 4))
    tables = []
    train(SMALL, rewards, goals, learning, rng=2, every=1, callback=lambda step, Q: tables.append(Q.copy()))
    tables.insert(0, np.where(tables[0] < -0.01, 0, tables[0]))  # as it was before the first step
    tables = np.array(tables, dtype=float)
    greedy_steps = ends = cuts = 0
    for k, goal in enumerate(goals):
        clock, expected = 0, None
        for old, new in zip(tables[:-1, k], tables[1:, k], strict=True):
            ((s, a),) = np.argwhere(old != new)
            assert s != goal
            assert expected is None or s == expected
            expected, clock = SMALL.moves[s, a], clock + 1
            target = rewards[k, s, a] + 0.8 * old[expected].max()
            assert new[s, a] == pytest.approx(old[s, a] + 0.1 * (target - old[s, a]), abs=1e-5)
            greedy_steps += a == old[s].argmax()
            if expected == goal or clock == 7:
                ends, cuts = ends + (expected == goal), cuts + (expected != goal)
                clock, expected = 0, None
    assert ends > 20
    assert cuts > 20
    assert abs(greedy_steps / (4 * 300) - (1 - 0.4 * 3 / 4)) < 0.05
    assert (tables[-1][np.arange(4), goals] == 0).all()


def test_random_numbers():
    rng, goals = np.random.default_rng(0), np.arange(4)
    s = _starts(rng, (4000, 4), 4, goals)
    for k in goals:
        assert np.bincount(s[:, k], minlength=4)[k] == 0
        assert np.delete(np.bincount(s[:, k], minlength=4), k) == pytest.approx(4000 / 3, rel=0.1)
    chosen, explores = _explorations(rng, (40_000,), 0.2)
    assert explores.mean() == pytest.approx(0.2, rel=0.05)
    assert np.bincount(chosen[explores]) == pytest.approx(2000, rel=0.1)
    assert not _explorations(rng, (100,), 0)[1].any()
    assert _explorations(rng, (100_000,), 1)[1].all()


@pytest.mark.parametrize("initial", [0.0, -100.0])
def test_ties_are_broken_at_random(initial):
    goals = np.full(4000, 4)
    Q = train(CORRIDOR, sparse(CORRIDOR, goals) - 1, goals, Settings(steps=1, epsilon=0, lr=0.5, initial=initial))
    tried = np.abs(Q[:, :4] - initial) > 0.05 if initial else Q[:, :4] < -0.05
    assert (tried.sum(axis=(1, 2)) == 1).all()
    assert tried.sum(axis=(0, 1)) == pytest.approx(1000, rel=0.12)


def test_the_random_source_decides_and_the_callback_sees_and_stops():
    goals = np.array([0, 16])
    seen = []
    arguments = (SMALL, sparse(SMALL, goals), goals, Settings(steps=100))
    first, again, other = (train(*arguments, rng=seed) for seed in (0, np.random.default_rng(0), 1))
    assert (first == again).all()
    assert (first != other).any()
    train(*arguments, every=30, callback=lambda step, Q: seen.append((step, Q.shape)))
    assert seen == [(30, (2, 17, 4)), (60, (2, 17, 4)), (90, (2, 17, 4))]
    train(*arguments, every=30, callback=lambda step, Q: seen.append(step) or step >= 60)
    assert seen[3:] == [30, 60]


def test_zero_is_optimistic_and_so_agents_look_everywhere():
    """Without any random action: from 0 all is tried until the goal is found, from far below nothing new is."""
    goals = np.repeat(shaping.goals(SMALL, 3), 20)
    rewards = sparse(SMALL, goals)
    hopeful, gloomy = (
        success(SMALL, greedy(train(SMALL, rewards, goals, Settings(20_000, epsilon=0, lr=1, initial=q))), goals)
        for q in (0.0, -200.0)
    )
    assert (hopeful == 1).all()
    assert gloomy.mean() < 0.9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": 0}, "steps must be at least 1, got 0"),
        ({"length": 0}, "length must be at least 1, got 0"),
        ({"gamma": 1.0}, "gamma must be at least 0 and less than 1, got 1.0"),
        ({"lr": 0.0}, "lr must be more than 0 and at most 1, got 0.0"),
        ({"epsilon": 1.5}, "epsilon must be between 0 and 1, got 1.5"),
        ({"initial": np.nan}, "initial must be finite, got nan"),
    ],
)
def test_bad_settings_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        Settings(**change)


def test_bad_input_is_refused():
    R = np.zeros((1, 5, 4))
    for goals, message in (
        ([5], "goals must be state numbers between 0 and 4: got 5"),
        ([-1], "goals must be state numbers between 0 and 4: got -1"),
        ([1.0], r"goals must be state numbers of shape \(K,\): got float64 \(1,\)"),
        ([], r"goals must be state numbers of shape \(K,\): got float64 \(0,\)"),
        (3, r"goals must be state numbers of shape \(K,\): got int64 \(\)"),
        ([1, 2], r"rewards must have shape \(2, 5, 4\), goals by states by actions: got \(1, 5, 4\)"),
    ):
        with pytest.raises(ValueError, match=message):
            train(CORRIDOR, R, goals)
    with pytest.raises(ValueError, match="rewards must be finite: those of agent 0 are not"):
        train(CORRIDOR, R * np.nan, [1])
    with pytest.raises(ValueError, match="every must not be negative, got -1"):
        train(CORRIDOR, R, [1], every=-1)
    with pytest.raises(ValueError, match="layout must have at least two states: one to start in, and a goal"):
        train(Layout("."), np.zeros((1, 1, 4)), [0])
    with pytest.raises(ValueError, match="gamma must be at least 0 and less than 1, got 1"):
        optimal(CORRIDOR, R, [1], gamma=1)
    with pytest.raises(ValueError, match=r"policy must have shape \(1, 5\), goals by states: got \(5,\)"):
        success(CORRIDOR, np.zeros(5, dtype=int), [1])
    with pytest.raises(ValueError, match="steps must not be negative, got -1"):
        success(CORRIDOR, np.zeros((1, 5), dtype=int), [1], steps=-1)
