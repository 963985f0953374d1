import warnings
from itertools import product

import numpy as np
import pytest

import lapbook as lb
from lapbook.encoders import SMALLEST_IMAGE
from lapbook.reproduction import race
from lapbook.results import name

SMOKE = {setting["method"]: setting for setting in race.smoke()}


def run(setting, scratch, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lb.training.CollapsingDimension)  # on so small a map some are to be expected
        return race.run(setting, scratch, lambda *report: None, kwargs.get("hours", np.inf))


def test_every_method_runs_everywhere_with_five_seeds():
    settings = race.EXPERIMENT.settings
    assert len({name(setting) for setting in settings}) == len(settings)
    for kind in product(race.MAPS, ("xy", "image"), race.METHODS):
        seeds = {s["seed"] for s in settings if (s["env"], s["obs"], s["method"], s["beta"]) == (*kind, 1.0)}
        assert len(seeds) == 5, kind


def test_pictures_are_large_enough_and_of_the_same_graph():
    for env, layout in race.MAPS.items():
        drawn = race.layout_of({"env": env, "obs": "image"})
        assert min(drawn.shape) >= SMALLEST_IMAGE
        assert np.array_equal(drawn.moves, layout.moves)


def test_all_have_the_same_budget_and_the_paper_its_own_penalty():
    for obs in ("xy", "image"):
        training = {
            s["method"]: race.training_settings(s) for s in race.settings() if s["obs"] == obs and s["beta"] == 1
        }
        assert len({(t.steps, t.batch, t.gamma, t.encoder) for t in training.values()}) == 1
        literal = training["ggd-literal"]
        assert (literal.beta, literal.target_scale, literal.lr, literal.decay) == (1.0, 1.0, 1e-3, 0.0)
    heavy = next(s for s in race.settings() if s["beta"] == 30)
    assert race.training_settings(heavy).beta == 30


def test_maps_have_distinct_eigenvalues():
    assert [layout.n for layout in race.MAPS.values()] == [271, 161, 31, 1087]
    for layout in race.MAPS.values():
        values = lb.spectrum.smallest_eigenpairs(lb.spectrum.laplacian(layout), 11).values
        assert (np.diff(values)[1:] / values[2:]).min() > 0.1


@pytest.mark.parametrize("method", race.METHODS)
def test_a_small_run_has_steps_and_time(tmp_path, method):
    metrics, budget, _ = run(SMOKE[method], tmp_path)
    curve = metrics["curve"]
    assert curve["steps"] == list(range(1, 51))
    assert metrics["sim_gt"] == pytest.approx(curve["sim_gt"][-1], abs=1e-3)
    assert (np.diff(curve["seconds"]) >= 0).all()
    assert metrics["eigenvalues_of_data"][0] == pytest.approx(0, abs=1e-6)
    assert budget["steps"] == budget["steps_allowed"] == 50


def test_a_run_that_was_cut_goes_on_to_the_same_end(tmp_path):
    whole, _, _ = run(SMOKE["allo"], tmp_path / "whole")
    cut, _, _ = run(SMOKE["allo"], tmp_path / "cut", hours=0)
    assert cut["curve"]["steps"] == [1]
    again, _, _ = run(SMOKE["allo"], tmp_path / "cut")
    assert again["curve"]["sim_gt"] == whole["curve"]["sim_gt"]
    assert again["eigenvalues"] == whole["eigenvalues"]


def test_the_turn_knows_the_eigenvalues_of_its_data(tmp_path):
    turned, _, _ = run(SMOKE["gd+ritz"], tmp_path / "turned")
    plain, _, _ = run(SMOKE["gd"], tmp_path / "plain")
    assert turned["sim_gt"] > plain["sim_gt"] + 0.1
    found, of_data = np.array(turned["eigenvalues"]), np.array(turned["eigenvalues_of_data"])
    assert (found >= of_data - 1e-4).all()  # a Ritz value is never below its eigenvalue


def test_a_baseline_that_has_vanished_is_left_as_it_is(tmp_path, monkeypatch):
    def refuse(*arguments):
        raise lb.rayleigh.DependentDimensionsError

    monkeypatch.setattr(lb, "ritz", refuse)
    turned, _, _ = run(SMOKE["gd+ritz"], tmp_path / "turned")
    plain, _, _ = run(SMOKE["gd"], tmp_path / "plain")
    assert turned["curve"]["sim_gt"] == plain["curve"]["sim_gt"]
