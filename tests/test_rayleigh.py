import numpy as np
import pytest
from scipy.stats import ortho_group

import lapbook as lb
from lapbook.layouts import GRID_ROOM
from lapbook.ritz import rotation
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
    with pytest.raises(ValueError, match="dimensions must be independent"):
        rotation(f, f)
    with pytest.raises(ValueError, match=r"same shape \(batch, d\), got \(50, 2\) and \(50, 1\)"):
        rotation(f, f[:, :1])
    with pytest.raises(ValueError, match="at least as many samples as dimensions: got 1 for 2"):
        rotation(f[:1], f[:1])
