import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lapbook.statistics import area, bootstrap, lead, spearman, steps_to

NUMBERS = st.lists(st.floats(-5, 5), min_size=3, max_size=12)


def test_area_by_hand():
    """A triangle, a trapezoid and a rectangle."""
    assert area([10, 20, 40], [0.5, 1.0, 1.0]) == pytest.approx((2.5 + 7.5 + 20) / 40)
    assert area([10, 20], np.zeros((3, 2, 2))).shape == (3, 2)
    assert area(np.arange(1, 1001), np.ones(1000)) == pytest.approx(1, abs=1e-3)


def test_steps_to_a_level_by_hand():
    curves = [[0.1, 0.5, 0.4], [0.9, 0.9, 0.9], [0.0, 0.0, 0.49]]
    assert steps_to([5, 10, 20], curves, 0.5).tolist() == [10, 5, np.inf]
    assert np.median(steps_to([5, 10, 20], curves, 0.5)) == 10


@given(NUMBERS, st.randoms(use_true_random=False))
def test_spearman_agrees_with_scipy(x, random):
    y = random.sample(x, len(x))
    if len(set(x)) == 1:
        assert np.isnan(spearman(x, y))
    else:
        assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-9)
        assert spearman(x, x) == pytest.approx(1)


def test_the_interval_of_a_mean_is_that_of_the_textbook():
    outcomes = np.random.default_rng(0).standard_normal((5, 80))
    low, high = bootstrap(outcomes)
    half = 1.96 * np.sqrt((outcomes.var(axis=1) / 80).sum()) / 5
    assert (low, high) == pytest.approx((outcomes.mean() - half, outcomes.mean() + half), abs=0.02)
    narrow = bootstrap(outcomes, level=0.5)
    assert low < narrow[0] < narrow[1] < high


def test_goals_are_drawn_only_if_asked_and_stay_paired():
    """Agents that agree, goals that do not, and a second condition that is better by 1 at every goal."""
    first = np.repeat([[0.0], [1.0], [5.0]], 4, axis=1)
    outcomes = np.stack([first, first + 1])
    assert bootstrap(outcomes[0]) == (2.0, 2.0)
    low, high = bootstrap(outcomes[0], over="both")
    assert low < 1 < 3 < high
    gain = bootstrap(outcomes, lambda x: x[1].mean() - x[0].mean(), over="both")
    assert gain == pytest.approx((1.0, 1.0))
    low, high = bootstrap(outcomes, lambda x: x.mean(axis=(1, 2)), resamples=50, over="both")
    assert high - low == pytest.approx(np.repeat(high[0] - low[0], 2))


def test_the_interval_of_a_rank_correlation():
    rng = np.random.default_rng(0)
    falling = -np.arange(9.0)[:, None, None] + rng.standard_normal((9, 4, 5))

    def against_dimension(x):
        return spearman(np.arange(9), x.mean(axis=(1, 2)))

    low, high = bootstrap(falling, against_dimension, resamples=300)
    assert -1 <= low <= high < -0.8
    low, high = bootstrap(rng.standard_normal((9, 4, 5)), against_dimension, resamples=300)
    assert low < 0 < high


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"outcomes": np.zeros(3)}, r"outcomes must have shape \(..., goals, seeds\), none of them 0: got \(3,\)"),
        ({"outcomes": np.zeros((3, 0))}, r"none of them 0: got \(3, 0\)"),
        ({"over": "goals"}, "over must be 'seeds' or 'both', got 'goals'"),
        ({"resamples": 0}, "resamples must be at least 1, got 0"),
        ({"level": 95}, "level must be between 0 and 1, got 95"),
    ],
)
def test_bad_resampling_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        bootstrap(**({"outcomes": np.zeros((2, 2))} | change))


def test_bad_curves_are_refused():
    for steps in ([], [0, 1], [2, 1], [[1, 2]]):
        with pytest.raises(ValueError, match="steps must be positive and increasing"):
            area(steps, np.zeros(2))
    with pytest.raises(ValueError, match=r"success must have 2 points, as steps has: got shape \(3,\)"):
        area([1, 2], np.zeros(3))
    with pytest.raises(ValueError, match="success must be finite, it holds NaN or infinity"):
        steps_to([1, 2], [0, np.nan], 0.5)
    with pytest.raises(ValueError, match="x and y must have the same number of values: got 2 and 3"):
        spearman([1, 2], [1, 2, 3])


def test_an_arm_with_fewer_agents_has_the_wider_interval():
    """Its agents count as many as they are: the interval of the mean of 5 is √3 times that of the mean of 15."""
    few = np.tile([[-2.0, -1.0, 0.0, 1.0, 2.0]], (1, 1))
    many, constant = np.tile(few, 3), np.zeros((1, 15))
    widths = [high - low for _, low, high in (lead(constant, few), lead(constant, many))]
    assert widths[0] / widths[1] == pytest.approx(np.sqrt(3), rel=0.1)
    assert lead(constant, few)[0] == 0
    goals = np.arange(4.0)[:, None] * np.ones((4, 5))
    assert lead(goals + 1, goals) == (1.0, 1.0, 1.0)  # the goals are shared
    with pytest.raises(ValueError, match="with the same goals"):
        lead(goals, goals[1:])
