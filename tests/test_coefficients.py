import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lapbook as lb
from lapbook.objective import equalised, slowest_rate
from lapbook.reproduction import coefficients as experiment
from lapbook.reproduction.common import cut_short

gaps = st.lists(st.floats(0.01, 10), min_size=2, max_size=8)


@given(gaps, st.data())
def test_no_coefficients_have_a_faster_slowest_rate_than_equalised_ones(gaps, data):
    values = np.append(0, np.cumsum(gaps))
    best = equalised(values)
    assert (np.diff(np.append(best, 0)) < 0).all()
    assert best[0] == pytest.approx(len(gaps))
    bound = 1 / (np.sum(1 / np.array(gaps[:-1])) + 1 / (2 * gaps[-1]))
    assert slowest_rate(values, best) == pytest.approx(bound, rel=1e-6)
    drops = data.draw(st.lists(st.floats(0.01, 10), min_size=len(gaps), max_size=len(gaps)))
    assert slowest_rate(values, np.cumsum(drops)[::-1]) <= bound * (1 + 1e-9)


def test_the_slowest_rate_is_the_one_that_descent_shows():
    L = lb.spectrum.laplacian(lb.Layout("." * 8))
    values, vectors = np.linalg.eigh(L.toarray())
    for c in (np.array([4.0, 3.0, 2.0, 1.0]), np.array([4.0, 3.9, 2.0, 1.0]), np.array([4.0, 3.0, 2.0, 0.01])):
        rates = np.append(c[:-1] - c[1:], 2 * c[-1]) * np.diff(values[:5])
        k = int(rates.argmin())
        turn = np.eye(8)
        turn[k : k + 2, k : k + 2] = [[np.cos(0.01), -np.sin(0.01)], [np.sin(0.01), np.cos(0.01)]]
        rate = lb.descent.step_size(L, c) / 20
        plain = {"momentum": False, "project": True, "rate": rate, "every": 1}
        run = lb.descent.minimise(L, 4, c, steps=40, start=(vectors @ turn)[:, :4], **plain)
        gap = run.objective - c @ values[:4]
        measured = np.log(gap[5] / gap[35]) / 2 / (30 * rate)
        assert measured / c[0] == pytest.approx(slowest_rate(values[:5], c), rel=0.1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: slowest_rate([0, 1], [2, 1]), r"values must be 3 eigenvalues, one more than c has: got shape \(2,\)"),
        (lambda: equalised([0, 1, 1]), r"values must be .* strictly increasing: got gaps \[1.0, 0.0\]"),
        (lambda: equalised([0]), "values must be at least two eigenvalues"),
    ],
)
def test_bad_spectra_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_the_angle_to_the_span_is_that_of_principal_angles():
    rng = np.random.default_rng(0)
    truth = np.linalg.qr(rng.standard_normal((9, 3)))[0]
    vectors = rng.standard_normal((9, 4))
    vectors[:, 0] = truth @ [1, -2, 3]
    expected = [1 - lb.span_distance(v[:, None], truth) ** 2 for v in vectors.T]
    assert lb.metrics.in_span(vectors, truth) ** 2 == pytest.approx(expected)
    assert lb.metrics.in_span(vectors, truth)[0] == pytest.approx(1)
    assert lb.metrics.in_span(np.zeros((9, 1)), truth).tolist() == [0]


def test_every_group_on_both_maps_with_three_seeds():
    settings = experiment.EXPERIMENT.settings
    scaled = {(s["env"], s["group"], s["seed"]) for s in settings if s["preset"] == "paper-scaled"}
    assert len(scaled) == 2 * 4 * 3
    assert {s["group"] for s in settings if s["preset"] == "paper"} == {"convex", "concave", "equalised"}


def test_a_small_run_follows_both_quantities_of_figure_9(tmp_path, monkeypatch):
    short = dataclasses.replace(lb.settings.PRESETS["paper-scaled"], steps=60)
    monkeypatch.setitem(lb.settings.PRESETS, "paper-scaled", short)
    monkeypatch.setitem(experiment.EVERY, "paper-scaled", 20)
    setting = {"env": "GridMaze", "group": "equalised", "preset": "paper-scaled", "d": 10, "seed": 0}
    reports = []
    metrics, budget, arrays = experiment.run(setting, tmp_path, lambda *report: reports.append(report[0]), np.inf)
    assert sum(reports) == budget["steps"] == 60
    assert not cut_short(budget)
    assert metrics["coefficients"][0] == 10
    assert (np.diff(metrics["coefficients"]) < 0).all()
    inside, total = arrays["in_span"].astype(float), arrays["sum_of_cosines"].astype(float)
    assert inside.shape == total.shape == arrays["cosine_per_dim"].shape == (3, 10)
    assert (inside <= 1.001).all()
    assert (total >= inside**2 - 1e-2).all()
    linear = {**setting, "group": "paper"}
    other, _, _ = experiment.run(linear, tmp_path / "paper", lambda *report: None, hours=0)
    assert other["coefficients"] == list(range(10, 0, -1))
    assert other["slowest_rate"] < metrics["slowest_rate"]
    assert other["curve"]["steps"] == [20]
