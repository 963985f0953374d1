import numpy as np
import pytest
from scipy.stats import ortho_group

import lapbook as lb
from lapbook.layouts import GRID_ROOM
from lapbook.pairs import data_spectrum
from lapbook.rayleigh import DependentDimensionsError, ritz, rotation, turned, wide_ritz
from lapbook.spectrum import eigenvectors

TRUTH = eigenvectors(GRID_ROOM, 10)
STATE, ACTION = np.divmod(np.arange(4 * GRID_ROOM.n), 4)
NEXT = GRID_ROOM.moves[STATE, ACTION]  # every transition of the walk once, so that means are exact


def test_any_basis_of_the_span_gives_back_the_eigenvectors():
    rng = np.random.default_rng(0)
    for mix in (ortho_group.rvs(10, random_state=rng), rng.standard_normal((10, 10))):
        f = TRUTH.vectors @ mix
        values, Q = rotation(f[STATE], f[NEXT])
        assert values == pytest.approx(TRUTH.values / 4, abs=1e-10)  # P = I - L/4
        assert lb.sim_gt(f @ Q, TRUTH.vectors) == pytest.approx(1, abs=1e-8)
        assert ((f @ Q) ** 2).mean(axis=0) == pytest.approx(np.ones(10))


def test_eigenvalues_of_a_wrong_span_are_too_large():
    """The Ritz values of any space lie above the true ones, one by one."""
    f = np.random.default_rng(1).standard_normal((GRID_ROOM.n, 10))
    values, _ = rotation(f[STATE], f[NEXT])
    assert (values >= TRUTH.values / 4).all()


def test_bad_input_is_refused():
    f = np.ones((50, 2))
    with pytest.raises(DependentDimensionsError, match="dimensions must be independent"):
        rotation(f, f)
    with pytest.raises(ValueError, match=r"same shape \(batch, d\), got \(50, 2\) and \(50, 1\)"):
        rotation(f, f[:, :1])
    with pytest.raises(ValueError, match="at least as many samples as dimensions: got 1 for 2"):
        rotation(f[:1], f[:1])


DATA = lb.collect("lapbook/GridRoom-v0", transitions=20_000, rng=0)


@pytest.fixture(scope="module")
def rep():
    return lb.learn(DATA, "smoke", d=5, steps=40)


def test_a_representation_becomes_eigenfunctions_of_the_data(rep):
    turned, values = ritz(rep, DATA)
    f = turned(DATA.observations).astype(float)
    G, M = lb.pairs.empirical(DATA)
    assert f.T @ M @ f == pytest.approx(np.eye(5), abs=1e-4)
    assert f.T @ G @ f == pytest.approx(np.diag(values), abs=1e-4)
    assert (np.diff(values) > 0).all()
    assert lb.span_distance(f, rep(DATA.observations)) < 1e-3
    assert (values >= data_spectrum(DATA, 5)[0] - 1e-9).all()


def test_what_was_given_is_left_alone_and_the_result_can_be_saved(rep, tmp_path):
    before = rep(DATA.observations)
    result, _ = ritz(rep, DATA)
    assert (rep(DATA.observations) == before).all()
    result.save(tmp_path / "rep.safetensors")
    loaded = lb.Representation.load(tmp_path / "rep.safetensors")
    assert (loaded(DATA.observations) == result(DATA.observations)).all()


def test_sampled_pairs_give_nearly_the_same(rep, monkeypatch):
    exact = ritz(rep, DATA)[1]
    monkeypatch.setattr(lb.rayleigh, "EXACT_UP_TO", 10)
    sampled = [ritz(rep, DATA, rng=seed)[1] for seed in (0, 0, 1)]
    assert (sampled[0] == sampled[1]).all()
    assert (sampled[0] != sampled[2]).any()
    assert sampled[0] == pytest.approx(exact, rel=0.05, abs=1e-9)


def test_sampled_pairs_give_nearly_the_same_in_the_last_layer(rep, monkeypatch):
    exact, values = wide_ritz(rep, DATA)
    monkeypatch.setattr(lb.rayleigh, "EXACT_UP_TO", 10)
    sampled, sampled_values = wide_ritz(rep, DATA, samples=20_000)
    assert sampled_values == pytest.approx(values, rel=0.1, abs=1e-6)
    assert lb.span_distance(sampled(DATA.observations), exact(DATA.observations)) < 0.1


def test_the_spectrum_of_much_data_is_the_truth():
    data = lb.collect("lapbook/GridRoom-v0", transitions=400_000, length=400, rng=0)
    values, vectors = data_spectrum(data, 10, gamma=0)
    assert values == pytest.approx(TRUTH.values / 4, abs=2e-3)
    assert lb.sim_gt(vectors, TRUTH.vectors) > 0.98


def test_bad_arguments_are_refused(rep):
    with pytest.raises(ValueError, match=r"Q must have shape \(5, 5\), got \(4, 4\)"):
        turned(rep, np.eye(4))
    with pytest.raises(ValueError, match="d must be between 1 and 271, the number of distinct states: got 300"):
        data_spectrum(DATA, 300)


def test_a_sample_of_pairs_gives_nearly_the_spectrum_of_all():
    data = lb.collect("lapbook/GridMaze-v0", 100_000, rng=0)
    values, vectors = data_spectrum(data, 6)
    sampled_values, sampled = data_spectrum(data, 6, samples=400_000)
    assert sampled_values == pytest.approx(values, abs=2e-3)
    assert lb.sim_gt(sampled, vectors) > 0.99
    assert abs(sampled_values[0]) < 1e-12
    with pytest.raises(ValueError, match=r"samples must be enough to meet every state: of 161, 1.. are in no pair"):
        data_spectrum(data, 6, samples=10)
