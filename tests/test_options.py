from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lapbook as lb
from lapbook.layouts import GRID_ROOM, Layout
from lapbook.options import (
    Option,
    climb,
    climbs,
    hitting_times,
    loops,
    mean_length,
    path,
    rewards,
    room_times,
    run,
    sampled_hitting_times,
    steps_between,
)

TRUTH = lb.spectrum.eigenvectors(GRID_ROOM, 10).vectors
CORRIDOR = Layout("......", "corridor")
LEFT, RIGHT = 0, 1


def values(*numbers):
    return np.stack([np.ones(len(numbers)), numbers], axis=1)


def last(layout):
    goal = np.zeros(layout.n, dtype=bool)
    goal[-1] = True
    return goal


def test_climbing_by_hand():
    up, down = climbs(CORRIDOR, values(0, 2, 1, 3, 4, 4))
    assert up.terminal.tolist() == [False, True, False, False, True, True]  # a plateau ends it as well
    assert down.terminal.tolist() == [True, False, True, False, False, True]
    assert up.policy[[0, 2, 3]].tolist() == [RIGHT, RIGHT, RIGHT]  # from 2 to 3, the better of its two neighbours
    steps, end = run(CORRIDOR, up)
    assert steps.tolist() == [1, 0, 2, 1, 0, 0]
    assert end.tolist() == [1, 1, 4, 4, 4, 5]
    assert mean_length(CORRIDOR, up) == pytest.approx(4 / 3)
    assert path(CORRIDOR, up, 2) == [2, 3, 4]
    assert path(CORRIDOR, up, 1) == [1]
    assert (up.dimension, up.sign, down.sign) == (2, 1, -1)
    assert rewards(CORRIDOR, np.array([0.0, 2, 1, 3, 4, 4]))[0].tolist() == [0, 2, 0, 0]  # walls: no reward


@given(st.integers(0, 2**32 - 1))
def test_climbs_end_at_the_extrema_of_any_function_and_never_loop(seed):
    f = np.random.default_rng(seed).standard_normal((GRID_ROOM.n, 2))
    for option in climbs(GRID_ROOM, f):
        steps, end = run(GRID_ROOM, option)
        assert np.isfinite(steps).all()
        assert option.terminal[end].all()
        gained = option.sign * (f[end, 1] - f[:, 1])
        assert ((gained > 0) == ~option.terminal).all()


def test_the_goal_ends_a_walk_on_its_way():
    right = climb(CORRIDOR, values(0, 1, 2, 3, 4, 5), 2)
    goal = np.arange(6) == 3
    steps, end = run(CORRIDOR, right, goal)
    assert steps.tolist() == [3, 2, 1, 2, 1, 0]
    assert end.tolist() == [3, 3, 3, 5, 5, 5]


def test_hitting_times_by_hand():
    """Along a corridor the agent moves right, left, and twice not at all: 4 (k + 1) steps from state k to the next."""
    expected = [sum(4 * (k + 1) for k in range(start, 5)) for start in range(6)]
    assert hitting_times(CORRIDOR, [], last(CORRIDOR)) == pytest.approx(expected)
    # Two cells, and an option that goes right: five choices, two of which lead to the goal.
    pair = Layout("..", "pair")
    right = climb(pair, values(0, 1), 2)
    assert hitting_times(pair, [right], last(pair)) == pytest.approx([5 / 2, 0])
    # Three cells: from the first, h₀ = 1 + (3 h₀ + h₁ + …)/5 with the option worth 2 steps in all.
    three = Layout("...", "three")
    right = climb(three, values(0, 1, 2), 2)
    h0, h1, _ = hitting_times(three, [right], last(three))
    assert 5 * h0 == pytest.approx((3 + 3 * h0) + (1 + h1) + 2)
    assert 5 * h1 == pytest.approx(1 + (1 + h0) + (2 + 2 * h1) + 1)


@pytest.mark.parametrize("options", [[], climbs(GRID_ROOM, TRUTH)], ids=["none", "eigenvectors"])
def test_rollouts_agree_with_the_linear_system(options):
    goal = GRID_ROOM.rooms == 2
    starts = np.flatnonzero(GRID_ROOM.rooms == (1 if not options else 9))
    exact = hitting_times(GRID_ROOM, options, goal)[starts].mean()
    sampled = sampled_hitting_times(GRID_ROOM, options, goal, np.repeat(starts, 50), rng=0)
    assert abs(sampled.mean() - exact) < 4 * sampled.std() / np.sqrt(len(sampled))
    assert sampled_hitting_times(GRID_ROOM, options, goal, np.flatnonzero(goal)).tolist() == [0] * goal.sum()


def test_eigenvectors_give_long_and_short_options_and_bring_rooms_together():
    lengths = [mean_length(GRID_ROOM, option) for option in climbs(GRID_ROOM, TRUTH)]
    lengths = np.reshape(lengths, (-1, 2)).mean(axis=1)
    assert lengths[0] > 40
    assert (lengths[:3] > lengths[3:].max()).all()
    apart = np.abs(np.subtract.outer(np.arange(16), np.arange(16)))
    without, with_options = (room_times(GRID_ROOM, options) for options in ([], climbs(GRID_ROOM, TRUTH)))
    assert np.isnan(np.diag(without)).all()
    assert without[apart >= 8].mean() > 50 * with_options[apart >= 8].mean()
    assert without == pytest.approx(without.T, nan_ok=True)


def test_a_policy_that_goes_round_is_told_and_not_offered():
    policy = np.array([RIGHT, LEFT, RIGHT, RIGHT, RIGHT, RIGHT])
    option = Option(policy, last(CORRIDOR), dimension=2, sign=1)
    assert loops(CORRIDOR, option).tolist() == [True, True, False, False, False, False]
    assert run(CORRIDOR, option)[0].tolist() == [np.inf, np.inf, 3, 2, 1, 0]
    assert mean_length(CORRIDOR, option) == 2
    assert path(CORRIDOR, option, 0) == [0, 1, 0]
    times = hitting_times(CORRIDOR, [option], last(CORRIDOR))
    assert np.isfinite(times).all()
    sampled = sampled_hitting_times(CORRIDOR, [option], last(CORRIDOR), np.zeros(4000, dtype=int), rng=0)
    assert abs(sampled.mean() - times[0]) < 4 * sampled.std() / np.sqrt(len(sampled))
    stuck = Option(np.full(6, LEFT), last(CORRIDOR), dimension=2, sign=1)
    assert np.isnan(mean_length(CORRIDOR, stuck))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((TRUTH, 1), "dimension must be at least 2: the first eigenvector is constant, so its reward is always 0"),
        ((TRUTH, 11), "dimension must be between 2 and d = 10: got 11"),
        ((TRUTH, 2, 0), r"sign must be 1 \(towards larger values\) or -1: got 0"),
        ((TRUTH[:9], 2), r"vectors must have shape \(271, d\), one row for each state: got \(9, 10\)"),
        ((np.ones((271, 3)), 2), "dimension 2 is constant, its reward is always 0"),
        ((TRUTH * np.nan, 2), "vectors must be finite: dimension 1 is not"),
    ],
)
def test_bad_representations_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        climb(GRID_ROOM, *arguments)


@given(st.integers(0, 2**32 - 1))
def test_hitting_times_solve_their_linear_system(seed):
    rng = np.random.default_rng(seed)
    small = Layout(".....\n.#.#.\n.....")
    options = climbs(small, rng.standard_normal((small.n, 3)))
    goals = rng.random((3, small.n)) < 0.3
    goals[:, 0] = True
    for h, goal in zip(hitting_times(small, options, goals), goals, strict=True):
        assert (h[goal] == 0).all()
        runs = [run(small, option, goal) for option in options]
        for s in np.flatnonzero(~goal):
            choices = [1 + h[s2] for s2 in small.moves[s]]
            choices += [t[s] + h[e[s]] for o, (t, e) in zip(options, runs, strict=True) if not o.terminal[s]]
            assert h[s] == pytest.approx(np.mean(choices), rel=1e-9)


def test_astronomic_hitting_times_are_exact():
    """Nine options pull to the left end of a corridor, and the goal is the right one: by fractions."""
    corridor = Layout("." * 24)
    left = climb(corridor, values(*-np.arange(24.0)), 2)
    h = hitting_times(corridor, [left] * 9, last(corridor))
    # h_s = p_s x + q_s with x = h_0: at the left end 4 h_0 = 4 + 3 h_0 + h_1, after it
    # 13 h_s = 4 + 9 s + h_{s-1} + h_{s+1} + 2 h_s + 9 h_0, and h_23 = 0
    p, q = [Fraction(1), Fraction(1)], [Fraction(0), Fraction(-4)]
    for s in range(1, 23):
        p.append(11 * p[s] - p[s - 1] - 9)
        q.append(11 * q[s] - q[s - 1] - 4 - 9 * s)
    assert h[0] == pytest.approx(float(-q[23] / p[23]), rel=1e-12)
    assert h[0] > 1e20  # where a general solver has lost every digit


def test_steps_between_two_rooms_are_those_of_the_table():
    house = lb.layouts.rooms(1, 3, size=2, name="house", rng=0)
    options = climbs(house, lb.spectrum.eigenvectors(house, 3).vectors)
    there, back = steps_between(house, options, 1, 3), steps_between(house, options, 3, 1)
    assert room_times(house, options)[0, 2] == pytest.approx((there + back) / 2)
    with pytest.raises(ValueError, match="goal must be another room than start: both are 2"):
        steps_between(house, options, 2, 2)
    with pytest.raises(ValueError, match="goal must be a room of house, numbered 1 to 3: got 4"):
        steps_between(house, options, 1, 4)
    with pytest.raises(ValueError, match="start must be a room of house, numbered 1 to 3: got 0"):
        steps_between(house, options, 0, 1)


def test_bad_goals_are_refused():
    with pytest.raises(ValueError, match="goal must hold at least one state"):
        hitting_times(CORRIDOR, [], np.zeros(6, dtype=bool))
    with pytest.raises(ValueError, match=r"goal must say True or False for each of 6 states, got int64 \(2,\)"):
        hitting_times(CORRIDOR, [], np.array([3, 4]))
    with pytest.raises(ValueError, match="layout must have at least two rooms, corridor has 0"):
        room_times(CORRIDOR, [])
