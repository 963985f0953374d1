import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lapbook as lb
from lapbook.advice import CLEAR, FAR, advise, seen, single_steps
from lapbook.diagnosis import first_look
from lapbook.objective import coefficients, mean_square, slowest_rate

HOUSE = lb.layouts.rooms(2, 2, rng=0)
D, GAMMA = 4, 0.9


def exact(layout, d, gamma=GAMMA, length=50):
    return lb.pairs.multi_step(1 - lb.spectrum.eigenvectors(layout, d).values / 4, length, gamma)


@pytest.mark.parametrize("seed", range(6))
def test_the_cut_is_after_as_many_dimensions_as_there_are_rooms(seed):
    rows, columns = [(2, 2), (2, 3), (3, 3)][seed % 3]
    house = lb.layouts.rooms(rows, columns, rng=seed)
    data = lb.collect(gym.make("lapbook/Grid-v0", layout=house), 20_000, rng=seed)
    assert advise(first_look(data, rows * columns + 4)).d == rows * columns


def test_the_rules_on_the_book_s_own_maps():
    assert advise(exact(lb.layouts.GRID_ROOM, 20)).d == 16
    maze = advise(exact(lb.layouts.GRID_MAZE, 11), length=50)
    assert maze.gamma == 0.98  # the spectrum asks for more than the episodes allow
    assert "short of 0.3: episodes of 50 allow no larger reach" in maze.reasons["gamma"]
    enough = advise([0.0, 0.1, 0.12, 0.9], gamma=0)
    assert enough.gamma == 0
    assert "see λ_4 = 0.9, which is enough to tell it from 0." in enough.reasons["gamma"]
    assert "short of 0.3" in advise([0.0, 0.01, 0.012, 0.09], gamma=0, length=1).reasons["gamma"]


@pytest.mark.parametrize("length", [None, 1, 2, 7, 50])
@pytest.mark.parametrize("gamma", [0.0, 0.5, 0.9, 0.99])
def test_what_pairs_see_is_turned_back_into_single_steps(gamma, length):
    single = np.append(np.geomspace(1e-5, 1, 12), np.linspace(0.001, 0.999, 11))
    back = single_steps(seen(single, gamma, length), gamma, length)
    assert back == pytest.approx(single, rel=1e-6)
    above = seen(np.linspace(1, 2, 101)[1:], gamma, length)
    assert (above >= 1 - 1e-12).all()  # so that nothing below 1 is mistaken for it
    top = float(seen(2.0, gamma, length))
    beyond = single_steps([0.0, (1 + top) / 2, 10.0], gamma, length)  # more than any walk can have
    assert beyond[[0, 2]] == pytest.approx([0, 2])
    assert seen(beyond[1], gamma, length) == pytest.approx((1 + top) / 2)


def test_the_numbers_in_the_advice_are_those_of_the_pairs():
    """From exact values at γ = 0.9 in episodes of 50: all of what is said about another γ must be exact too."""
    house = lb.layouts.rooms(2, 2, 6, rng=0)
    for length in (20, 50, 400):
        advice = advise(exact(house, 6, length=length), length=length)
        there = exact(house, 5, advice.gamma, length)
        assert advice.d == 4
        assert f"see λ_5 = {there[4]:.2g}, " in advice.reasons["gamma"]
        assert f"it was {exact(house, 5, length=length)[4]:.2g}." in advice.reasons["gamma"]
        if "short of" in advice.reasons["gamma"]:
            assert advice.gamma == pytest.approx(1 - 1 / length, abs=1e-3)
            assert there[4] < FAR
        else:
            assert there[4] == pytest.approx(FAR, rel=0.05)  # two digits of 1 - γ are kept
        kept = mean_square(there[:4], advice.beta, advice.target_scale) / advice.target_scale
        assert kept[3] == pytest.approx(0.5, abs=0.03)
        assert (kept[:3] > kept[3]).all()


def test_values_at_another_gamma_are_those_of_the_mixed_powers():
    """A walk of endless episodes sees I - (1-γ)Σ γ^k P^(k+1)."""
    n = HOUSE.n
    P = np.eye(n) - lb.spectrum.laplacian(HOUSE).toarray() / 4
    single = np.linalg.eigvalsh(np.eye(n) - P)[:8]
    advice = advise(single, gamma=0, most=D)
    assert advice.d == D
    far = np.eye(n) - (1 - advice.gamma) * np.linalg.solve(np.eye(n) - advice.gamma * P, P)
    values = np.linalg.eigvalsh(far)
    assert values[D] == pytest.approx(FAR, rel=0.05)  # as far as that and no farther
    assert advice.target_scale == pytest.approx(2 * values[D - 1], rel=0.05)  # two digits are kept
    assert mean_square(values[:D], advice.beta, advice.target_scale).min() > 0.45 * advice.target_scale
    again = advise(values[:8], gamma=advice.gamma, most=D)
    assert again.gamma == pytest.approx(advice.gamma, abs=0.01)
    assert again.coefficients == pytest.approx(advice.coefficients, rel=0.05)


@given(gaps=st.lists(st.floats(0.001, 0.1), min_size=3, max_size=10))
@settings(max_examples=50, deadline=None)
def test_no_pair_of_neighbours_is_sorted_more_slowly_than_by_the_paper_s_coefficients(gaps):
    values = np.append(0, np.cumsum(gaps))
    d = len(gaps)
    advice = advise(np.append(values, 10.0), gamma=0, least=d, most=d)
    c = np.array(advice.coefficients)
    assert c[0] == pytest.approx(d)
    assert c[-1] == pytest.approx(1)
    reach = 1 / (1 - advice.gamma)
    single = np.append(values[:d], 2.0)
    at = single * reach / (1 + (reach - 1) * single)
    if (np.diff(at) >= CLEAR * at[1:]).all():
        assert slowest_rate(at, c) >= slowest_rate(at, coefficients(d)) * (1 - 1e-9)
        assert np.ptp(-np.diff(c) * np.diff(at)[:-1]) < 1e-9 * d


def test_what_cannot_be_told_apart_is_said():
    advice = advise([0.0, 0.01, 0.0101, 0.3])
    assert advice.d == 3
    assert "2 and 3 are hardly apart" in advice.reasons["coefficients"]
    assert advice.coefficients[1] - advice.coefficients[2] < 2.5  # and does not take all the weight
    assert "no gap is clear" in advise([0.0, 0.1, 0.105, 0.11, 0.114]).reasons["d"]


def test_advice_is_what_learn_asks_for_and_nothing_vanishes():
    data = lb.collect(gym.make("lapbook/Grid-v0", layout=HOUSE), 20_000)
    advice = advise(first_look(data), length=50)
    assert advice.d == D
    rep = lb.learn(data, "smoke", **advice.settings, steps=1)  # a warning would be an error here
    assert rep.settings.coefficients == advice.coefficients
    assert all(len(line) <= 80 for line in str(advice).splitlines())


@pytest.mark.parametrize(
    ("values", "arguments", "message"),
    [
        ([0.0, 0.1], {}, "values must be at least three finite eigenvalues in ascending order"),
        ([0.0, 0.2, 0.1], {}, "in ascending order"),
        ([0.0, 0.1, np.nan], {}, "finite"),
        ([0.0, 0.0, 0.1], {}, "λ_2 > 0: the data fall into parts"),
        ([0.0, 0.1, 0.1], {}, "values must have a gap to cut at between λ_2 and λ_3"),
        ([0.0, 0.1, 0.2], {"gamma": 1}, r"gamma must lie in \[0, 1\), got 1"),
        ([0.0, 0.1, 0.2], {"length": 0}, "length must be at least 1, got 0"),
        ([0.0, 0.1, 0.2], {"most": 3}, "2 ≤ least ≤ most < 3, got 2 and 3"),
    ],
)
def test_bad_arguments_are_refused(values, arguments, message):
    with pytest.raises(ValueError, match=message):
        advise(values, **arguments)
