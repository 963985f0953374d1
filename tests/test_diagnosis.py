import gymnasium as gym
import numpy as np
import pytest

import lapbook as lb
from lapbook import diagnosis
from lapbook.rollouts import Data

HOME = lb.Layout(
    """
    ####################
    #......#.....#.....#
    #......#...........#
    #......#.....#.....#
    #............#.....#
    ########.....#.....#
    #............###.###
    #......#.....#.....#
    #......#.....#.....#
    #......#.....#.....#
    ####################
    """,
    "home",
)
D, GAMMA = 5, 0.9
TRUTH = lb.spectrum.eigenvectors(HOME, D)


def walks(transitions, rng=0, length=50):
    return lb.collect(gym.make("lapbook/Grid-v0", layout=HOME), transitions, length, rng)


DATA = walks(40_000)
E = TRUTH.vectors[DATA.states]
OWN = lb.pairs.data_spectrum(DATA, D, GAMMA)  # what any learner should find on these data


# checks, on a map whose truth is known


def test_what_is_right_passes():
    checkup = diagnosis.check(OWN[1], DATA, GAMMA)
    assert lb.sim_gt(OWN[1], E) > 0.99
    for name, within in checkup.passed.items():
        assert within.all(), name
    lines = str(checkup).splitlines()
    assert lines[0].split() == ["dimension", "1", "2", "3", "4", "5"]
    assert lines[1].split() == ["residual"] + ["ok"] * 5
    assert all(within.all() for within in diagnosis.check(E, DATA, GAMMA).passed.values())


def test_a_turned_pair_is_out_of_order():
    turn = np.eye(D)
    turn[2:4, 2:4] = [[np.sqrt(0.5), -np.sqrt(0.5)], [np.sqrt(0.5), np.sqrt(0.5)]]
    mixed = OWN[1] @ turn
    passed = diagnosis.check(mixed, DATA, GAMMA).passed
    assert passed["order"].tolist() == passed["residual"].tolist() == [True, True, False, False, True]
    assert passed["stability"].all()  # of the axes within the span, and the span is right
    assert diagnosis.residuals(mixed, DATA, GAMMA)[2:4] == pytest.approx(np.sqrt(0.5), abs=0.01)
    values = OWN[0]
    assert diagnosis.quotients(mixed, DATA, GAMMA)[2:4] == pytest.approx([values[2:4].mean()] * 2)


def test_a_dimension_that_has_become_noise_is_seen():
    noisy = OWN[1].copy()
    noisy[:, 4] = np.random.default_rng(0).standard_normal(len(noisy))
    passed = diagnosis.check(noisy, DATA, GAMMA).passed
    assert not passed["residual"][4]
    assert not passed["memory"][4]
    assert passed["residual"][:4].all()


def test_a_dimension_that_is_gone_is_seen():
    gone = OWN[1].copy()
    gone[:, 4] = 0
    checkup = diagnosis.check(gone, DATA, GAMMA)
    for name in ("residual", "stability", "order"):
        assert checkup.passed[name].tolist() == [True] * 4 + [False], name


def test_too_little_data_is_unstable_and_the_instability_foretells_the_error():
    missing, foretold = [], []
    for seed in range(8):
        data = walks(10_000, rng=seed)
        found = lb.pairs.data_spectrum(data, D, GAMMA)[1]
        missing.append(1 - lb.sim_gt(found, TRUTH.vectors[data.states]))
        foretold.append((1 - diagnosis.stability(found, data, GAMMA).mean()) / 4)
    assert 1 / 2.5 < np.mean(foretold) / np.mean(missing) < 2.5
    few = walks(1000)
    found = lb.pairs.data_spectrum(few, D, GAMMA)[1]
    assert lb.sim_gt(found, TRUTH.vectors[few.states]) < 0.8
    assert not diagnosis.check(found, few, GAMMA).passed["stability"][1:].any()


def test_memory_tells_a_state_from_a_part_of_it():
    whole = diagnosis.memory(E, DATA, (1, 4, 16))[:, 1:]
    assert whole == pytest.approx(np.tile(TRUTH.values[1:] / 4, (3, 1)), rel=0.15)
    around = np.pad(HOME.free, 1)  # what a near-sighted agent sees: which of the four neighbours are walls
    r, c = HOME.cells[DATA.states].T + 1
    sight = np.stack([around[r, c - 1], around[r, c + 1], around[r - 1, c], around[r + 1, c]], axis=1)
    views, view = np.unique(sight, axis=0, return_inverse=True)
    part = Data(views.astype(float), view.ravel()[DATA.index], DATA.lengths)
    found = lb.pairs.data_spectrum(part, 4, GAMMA)[1]
    fading = diagnosis.memory(found, part, (1, 4, 16))[:, 1:]
    assert (fading[2] < fading[0] / 1.5).all()
    assert not diagnosis.check(found, part, GAMMA).passed["memory"][1:].any()
    assert np.isnan(diagnosis.memory(E, DATA, (51,))).all()  # no episode is that long


def test_halves_hold_every_episode_once():
    first, second = diagnosis.halves(DATA, rng=3)
    both = np.concatenate([first.index, second.index])
    assert sorted(map(bytes, both)) == sorted(map(bytes, DATA.index))
    assert abs(len(first.index) - len(second.index)) <= 1
    assert first.observations is DATA.observations
    with pytest.raises(ValueError, match="at least two episodes"):
        diagnosis.halves(Data(np.eye(2), np.array([[0, 1]]), np.array([1])))


def test_what_a_half_has_not_met_is_left_out():
    few, _ = diagnosis.halves(walks(1500), rng=0)
    missed = np.setdiff1d(np.arange(len(few.observations)), few.index)
    assert len(missed) > 0
    f = TRUTH.vectors[few.states]
    changed = f.copy()
    changed[missed] = 100.0
    for check in (diagnosis.residuals, diagnosis.quotients, diagnosis.stability):
        assert check(changed, few, GAMMA) == pytest.approx(check(f, few, GAMMA))
    assert len(diagnosis.first_look(few)) == 12


def test_agreement_weighs_states_by_their_visits():
    data = Data(np.eye(2), np.array([[0, 0, 0, 1]]), np.array([3]))  # ρ = (3/4, 1/4)
    f, g = np.array([[1.0], [0.0]]), np.array([[-1.0], [1.0]])
    assert diagnosis.agreement(f, g, data) == pytest.approx([np.sqrt(3 / 4)])
    with pytest.raises(ValueError, match=r"f must have shape \(2, d\), one row for each of data.observations"):
        diagnosis.agreement(np.eye(3), g, data)


def test_quotients_of_eigenvectors_are_their_eigenvalues(monkeypatch):
    f = np.column_stack([OWN[1], np.zeros(len(E))])
    exact = diagnosis.quotients(f, DATA, GAMMA)
    assert exact[:D] == pytest.approx(OWN[0], abs=1e-10)
    assert np.isnan(exact[D])
    monkeypatch.setattr(lb.rayleigh, "EXACT_UP_TO", 10)
    assert diagnosis.quotients(f, DATA, GAMMA)[:D] == pytest.approx(OWN[0], rel=0.05, abs=1e-9)


# with a network, and with observations that never recur


def blurred():
    """The same walks, each position moved about within its cell."""
    rows, rng = DATA.index.ravel(), np.random.default_rng(0)
    size = 2 / (np.array(HOME.shape)[::-1] - 1)
    moved = DATA.observations[rows] + rng.uniform(-0.3, 0.3, (len(rows), 2)) * size
    index = np.arange(len(rows)).reshape(DATA.index.shape)
    return Data(moved.astype(np.float32), index, DATA.lengths, DATA.states[rows])


@pytest.fixture(scope="module")
def trained():
    data, kept = blurred(), {}
    few = {"steps": 100, "batch": 128, "d": D, "coefficients": "equal", "target_scale": 0.13}

    def keep(step, rep):
        kept[step] = lb.rayleigh.wide_ritz(rep, data, GAMMA, samples=10_000), lb.ritz(rep, data, GAMMA, samples=20_000)

    lb.learn(data, "fast", rng=0, every=50, callback=keep, **few)
    return data, kept


def test_residuals_foretell_the_error_of_a_network(trained):
    data, kept = trained
    truth, errors = TRUTH.vectors[data.states], []
    for _, (turned, _) in kept.values():
        foretold = diagnosis.residuals(turned, data, GAMMA, samples=10_000)
        error = np.sqrt(1 - diagnosis.agreement(turned, truth, data) ** 2)
        assert np.abs(foretold - error).max() < 0.25
        errors.append(error)
    assert np.min(errors) < 0.1 < 0.6 < np.max(errors)  # some were good and some were not
    with pytest.raises(ValueError, match="f must be a Representation where there are many distinct observations"):
        diagnosis.residuals(truth, data)


def test_the_whole_layer_is_never_worse_than_its_outputs(trained, tmp_path):
    data, kept = trained
    truth = TRUTH.vectors[data.states]
    for (wide, wide_values), (turned, values) in kept.values():
        assert (wide_values < values + 0.01).all()
        better, worse = (diagnosis.agreement(rep, truth, data).mean() for rep in (wide, turned))
        assert better > max(0.95, worse - 0.01)
        assert diagnosis.quotients(wide, data, GAMMA) == pytest.approx(wide_values, rel=0.1, abs=1e-3)
    wide.save(tmp_path / "wide.safetensors")
    assert (
        lb.Representation.load(tmp_path / "wide.safetensors")(data.observations[:9]) == wide(data.observations[:9])
    ).all()


def test_the_whole_layer_on_a_few_states_uses_all_pairs():
    rep = lb.learn(DATA, "smoke", d=D, steps=5)
    wide, values = lb.rayleigh.wide_ritz(rep, DATA, GAMMA)
    f = wide(DATA.observations).astype(float)
    G, M = lb.pairs.empirical(DATA, GAMMA)
    assert f.T @ M @ f == pytest.approx(np.eye(D), abs=1e-3)
    assert f.T @ G @ f == pytest.approx(np.diag(values), abs=1e-3)
    assert (OWN[0] - 1e-9 <= values).all()
    assert (values <= lb.ritz(rep, DATA, GAMMA)[1] + 1e-9).all()
    alike = Data(np.zeros((2, 2)), np.array([[0, 1, 0]] * 2), np.array([2, 2]))
    with pytest.raises(ValueError, match="last hidden layer must vary in at least d = 2 ways, got 1"):
        lb.rayleigh.wide_ritz(lb.learn(alike, "smoke", d=2, steps=1, target_scale=3), alike, GAMMA)


def test_a_first_look_comes_from_above(trained):
    data, _ = trained
    assert diagnosis.first_look(DATA, D) == pytest.approx(OWN[0], abs=1e-12)
    values = diagnosis.first_look(data, 8, steps=40, batch=128)
    assert values.shape == (8,)
    assert (values[:D] > 0.9 * OWN[0]).all()
    assert (values[1:D] < 3 * OWN[0][1:]).all()
