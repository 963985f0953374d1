import numpy as np
import pytest
from scipy.sparse import csgraph

import lapbook as lb
from lapbook.reproduction import exact, paper, theorems
from lapbook.reproduction.experiments import EXPERIMENTS
from lapbook.results import name, read

SMALL = {"theorem-1": {"frames": 20, "steps": 300}, "finite-differences": {"spacings": (0.5, 0.25), "finest": 0.1}}


def measured(check, seed=0):
    return exact.CHECKS[check][0](np.random.default_rng(seed), **SMALL.get(check, {}))


def test_each_setting_has_its_own_name():
    names = [name(setting) for setting in EXPERIMENTS["exact"].settings]
    assert len(set(names)) == len(names) == sum(seeds for _, seeds in exact.CHECKS.values())


def test_random_parts_are_what_they_say():
    rng = np.random.default_rng(0)
    for n in (2, 5, 30):
        A = theorems.random_graph(n, rng)
        assert (A == A.T).all()
        assert not A.diagonal().any()
        assert (A >= 0).all()
        assert csgraph.connected_components(A)[0] == 1
        Q, c = theorems.rotation(n, rng), theorems.decreasing(n, rng)
        assert np.allclose(Q.T @ Q, np.eye(n))
        assert (np.diff(c) < 0).all()
        assert c[-1] > 0


def test_theorem_1_and_what_happens_without_its_condition(monkeypatch):
    found = measured("theorem-1")
    assert found["frames"] == 20
    assert found["minimisers_among_orders"] == 1
    assert min(found["least_gap"], found["least_gap_outside"]) > 0
    assert max(found["identity_error"], -found["least_slack"], found["excess_of_bound"]) < 1e-12
    monkeypatch.setattr(theorems, "decreasing", lambda d, rng: np.arange(1.0, d + 1))
    assert measured("theorem-1")["least_gap"] < -0.01


def test_lemmas_hold_for_rotations_and_not_for_other_matrices(monkeypatch):
    assert measured("lemma-1")["difference"] < 1e-12
    found = measured("theorem-2")
    assert max(found["lemma_2"], found["lemma_3"], found["identity_error"], found["eigenfunction_error"]) < 1e-11
    assert found["least_gap"] > 0
    assert found["least_kernel"] > -1e-12
    assert found["change_for_negative_c"] < 1e-11
    monkeypatch.setattr(theorems, "rotation", lambda d, rng: rng.random((d, d)))
    assert measured("lemma-1")["difference"] > 0.1
    assert measured("theorem-2")["lemma_2"] > 0.1


def test_rotations_change_nothing_but_the_axes():
    found = measured("rotations")
    assert found["change"] < 1e-12
    assert abs(found["sim_gt"] - np.sqrt(2 / (np.pi * 10))) < 0.02  # E|q| of an entry with variance 1/d


def test_samples_are_unbiased_and_one_batch_for_both_factors_is_not(monkeypatch):
    found = measured("sampled-loss")
    assert max(found["nested_sum_error"], found["triple_sum_error"]) < 1e-12
    assert max(abs(found["pair_z"]), abs(found["penalty_z"])) < 4
    two_batches = lb.objective.penalty
    monkeypatch.setattr(lb.objective, "penalty", lambda F1, F2, c: two_batches(F1, F1, c))
    assert measured("sampled-loss")["penalty_z"] > 10


def test_finite_differences_converge():
    found = measured("finite-differences")
    for env in paper.FLOORS:
        first, second = found[f"similarity_{env}"]
        assert 0.99 < first < second < 1
        assert found[f"least_gap_{env}"] > 0.1
    assert 1.8 < found["order"] < 2.2


def test_maps_networks_and_settings_as_printed():
    found = measured("environments")
    assert {env: found[env]["states"] for env in paper.STATES} == paper.STATES
    assert {env: found[env]["size"] for env in paper.FLOORS} == paper.FLOORS
    assert found["rooms"] == {"number": 16, "joined": 15, "next": True}
    networks = measured("networks")
    assert networks["xy"]["layers"] == paper.TABLE_2
    assert networks["image"]["layers"] == paper.TABLE_3
    by_hand = 2 * 256 + 256 + 2 * (256 * 256 + 256) + 256 * 10 + 10
    assert networks["xy"]["parameters"] == by_hand
    values = measured("eigenvalues")["GridMaze"]["values"]
    assert len(values) == 11
    assert values[0] == 0
    assert (np.diff(values) > 0).all()
    assert measured("hyperparameters")["shaping"].items() >= paper.TABLE_5.items()


def test_a_run_gives_the_stored_numbers_again(tmp_path):
    def again(check):
        (stored,) = read("exact", check=check, seed=0)
        metrics, budget, arrays = exact.run(stored["setting"], tmp_path, lambda steps, text: None, 1.0)
        assert budget.keys() == stored["budget"].keys()
        assert arrays == {}
        return metrics, stored["metrics"]

    metrics, stored = again("rotations")
    assert metrics == pytest.approx(stored, rel=1e-3, abs=1e-12)
    metrics, stored = again("hyperparameters")
    assert metrics == stored
