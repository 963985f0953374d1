import numpy as np
import pytest
from scipy.stats import ortho_group

from lapbook.layouts import GRID_ROOM
from lapbook.metrics import cosines, sim_gt, sim_gt_per_dim, sim_run, span_distance
from lapbook.spectrum import eigenvectors

E = eigenvectors(GRID_ROOM, 10).vectors


def test_by_hand():
    f = np.array([[3.0, 0.0], [4.0, 0.0], [0.0, 2.0]])
    e = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    assert sim_gt_per_dim(f, e) == pytest.approx([3 / 5, 2**-0.5])
    assert sim_gt(f, e) == pytest.approx((3 / 5 + 2**-0.5) / 2)
    assert cosines(f, e) == pytest.approx(np.array([[0.6, 0.8 * 2**-0.5], [0, 2**-0.5]]))


def test_signs_and_scales_do_not_matter():
    changed = E * np.linspace(-3, 7, 10)
    assert sim_gt(changed, E) == pytest.approx(1)


def test_a_vanished_dimension_counts_as_zero():
    gone = E.copy()
    gone[:, 9] = 0
    assert sim_gt(gone, E) == pytest.approx(0.9)


def test_rotations_keep_the_span_and_lose_the_axes():
    turned = E @ ortho_group.rvs(10, random_state=0)
    assert span_distance(turned, E) < 1e-7
    assert sim_gt(turned, E) < 0.5
    assert span_distance(E[:, :9], E[:, 1:]) == pytest.approx(1)


def test_runs_are_compared_pairwise():
    turned = E @ ortho_group.rvs(10, random_state=0)
    similarity = sim_run([E, -E, turned])
    assert similarity.shape == (3, 3)
    assert np.diag(similarity) == pytest.approx(1)
    assert similarity[0, 1] == pytest.approx(1)
    assert similarity[0, 2] == similarity[2, 0] == pytest.approx(sim_gt(turned, E))


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match=r"same shape, got \(271, 10\) and \(271, 9\)"):
        sim_gt(E, E[:, :9])
    with pytest.raises(ValueError, match=r"shape \(states, dimensions\), got \(271,\)"):
        sim_gt(E[:, 0], E)
    with pytest.raises(ValueError, match="one row per state: got 271 and 5 rows"):
        cosines(E, E[:5])
    spoiled = E.copy()
    spoiled[3, 2] = np.nan
    with pytest.raises(ValueError, match="finite: dimension 3 is not"):
        sim_gt(spoiled, E)
