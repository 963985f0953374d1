import copy
from dataclasses import replace
from itertools import permutations, product

import gymnasium as gym
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import lapbook as lb
from lapbook.checkpoints import read, write
from lapbook.objective import coefficients, pair_loss, penalty
from lapbook.rivals import PRESETS, Allo, NestedOMM, allo, allo_lagrangian, omm, omm_objective
from lapbook.settings import Settings, preset
from lapbook.spectrum import laplacian
from lapbook.training import CollapsingDimension, Representation, learn

LAYOUT = lb.layouts.rooms(1, 3, size=3)
D = 3
DATA = lb.collect(gym.make("lapbook/Grid-v0", layout=LAYOUT), transitions=20_000, length=50)
SMALL = preset("smoke", d=D, steps=30, target_scale=0.5)
RIVALS = {"allo": allo, "omm": omm}
METHODS = pytest.mark.parametrize("method", RIVALS)
OBJECTIVES = {
    "allo": lambda settings: Allo(settings, dual_rate=0.01),
    "sequential": NestedOMM,
    "joint": lambda settings: NestedOMM(settings, sequential=False),
}


def weights(rep):
    return torch.cat([p.detach().flatten() for p in rep.encoder.parameters()])


def problem(seed, n=None, d=None):
    """L = I - P of a walk on a connected weighted graph, its eigenvalues (no two of the first d + 1 close), d, rng.

    The weights are symmetric and each state keeps what is left, so that the stationary distribution is uniform.
    """
    rng = np.random.default_rng(seed)
    n = n or int(rng.integers(4, 8))
    d = d or int(rng.integers(2, n))
    while True:
        W = rng.uniform(0.2, 1, (n, n)) * (rng.random((n, n)) < 0.4)
        W[np.arange(n - 1), np.arange(1, n)] = 1  # a path, so that the graph is connected
        W = np.triu(W, 1)
        L = laplacian(W + W.T).toarray()
        values, vectors = np.linalg.eigh(L / np.diag(L).max())
        if np.diff(values[: d + 1]).min() > 0.03:
            return *map(torch.tensor, (L / np.diag(L).max(), values, vectors)), d, rng


graphs = given(st.integers(0, 2**31).map(problem))


def lagrangian(U, held, L, duals, b, target=1.0):
    M = U.T @ held
    return allo_lagrangian(U.T @ L @ U, M, M, duals, b, target)


def nested(V, A, c, target=1.0):
    return omm_objective(V.T @ V, V.T @ A @ V, c, target)


def gradient(function, U):
    U = U.clone().requires_grad_()
    function(U).backward()
    return U.grad


def cosines(U, E):
    return torch.nn.functional.cosine_similarity(U.double(), E[:, : U.shape[1]], dim=0).abs()


def whole_path(n):
    """Rows for an objective that stand for every state and transition of a path, in the right shares; its L = I - P."""
    states = np.arange(n)
    ends = np.concatenate([np.maximum(states - 1, 0), np.minimum(states + 1, n - 1), states, states])
    rows = torch.from_numpy(np.stack([np.tile(states, 4), ends, np.tile(states, 4), np.tile(states, 4)]))
    return rows, torch.tensor(laplacian(np.eye(n, k=1) + np.eye(n, k=-1)).toarray() / 4)


@settings(max_examples=20, deadline=None)
@graphs
def test_the_lagrangian_and_its_gradient(problem):
    """2Lu_j + Σ_{k≤j} (β_jk + 2b E_jk) u_k where the [u_k] are held fixed; the slope in β_jk is E_jk."""
    L, _, _, d, rng = problem
    U = torch.tensor(rng.standard_normal((len(L), d)))
    duals = torch.tensor(rng.standard_normal((d, d))).tril()
    E = (U.T @ U - 0.3 * torch.eye(d)).tril()
    value = lagrangian(U, U, L, duals, 0.7, 0.3)
    assert value.item() == pytest.approx(((U.T @ L @ U).trace() + (duals * E + 0.7 * E**2).sum()).item())
    assert torch.autograd.gradcheck(lambda V: lagrangian(V, U, L, duals, 0.7, 0.3), U.clone().requires_grad_())
    found = gradient(lambda V: lagrangian(V, V.detach(), L, duals, 0.7, 0.3), U)
    torch.testing.assert_close(found, 2 * L @ U + U @ (duals + 2 * 0.7 * E).T)
    torch.testing.assert_close(gradient(lambda B: lagrangian(U, U, L, B, 0.7, 0.3), duals), E)


@settings(max_examples=20, deadline=None)
@graphs
def test_allo_rests_at_eigenvectors_with_minus_twice_the_eigenvalues_as_duals(problem):
    L, values, vectors, d, rng = problem
    order = rng.permutation(len(L))[:d]  # any of them, in any order
    U = 0.3**0.5 * vectors[:, order] * torch.tensor(rng.choice([-1.0, 1.0], d))
    for mistake in (0, 0.1):
        duals = (-2 * values[order] + mistake).diag()
        slope = gradient(lambda V, duals=duals: lagrangian(V, V.detach(), L, duals, 0.7, 0.3), U)
        torch.testing.assert_close(slope, mistake * U)


def slowest(order, b, target, L, values, vectors):
    """The slowest rate at which a small disturbance of eigenvectors `order` and of their duals dies out, or grows."""
    n, d = len(L), len(order)
    lower = torch.ones(d, d).tril().bool()

    def force(x):
        U, duals = x[: n * d].view(n, d), torch.zeros(d, d, dtype=x.dtype).masked_scatter(lower, x[n * d :])
        E = (U.T @ U - target * torch.eye(d, dtype=x.dtype)).tril()
        return torch.cat([(2 * L @ U + U @ (duals + 2 * b * E).T).flatten(), -E[lower]])

    rest = torch.cat([(target**0.5 * vectors[:, order]).flatten(), (-2 * values[list(order)]).diag()[lower]])
    assert force(rest).abs().max() < 1e-9
    return torch.linalg.eigvals(torch.autograd.functional.jacobian(force, rest)).real.min().item()


@pytest.mark.parametrize("seed", range(3))
def test_allo_holds_no_order_but_the_right_one_and_needs_a_barrier_for_it(seed):
    L, values, vectors, d, _ = problem(seed, n=5, d=3)
    needed = (values[d - 1] - values[0]).item() / 0.3
    for order in permutations(range(5), d):
        assert (slowest(order, 1.5 * needed, 0.3, L, values, vectors) > 1e-6) == (order == (0, 1, 2))
    assert slowest((0, 1, 2), 1.01 * needed, 0.3, L, values, vectors) > 1e-6
    assert slowest((0, 1, 2), 0.99 * needed, 0.3, L, values, vectors) < -1e-6


@settings(max_examples=20, deadline=None)
@graphs
def test_the_orbital_objective_and_its_gradient(problem):
    """-4τAV + 2VVᵀAV + 2AVVᵀV for one prefix; the nested one is the sum over prefixes."""
    L, _, _, d, rng = problem
    A, V = torch.eye(len(L)) - L, torch.tensor(rng.standard_normal((len(L), d)))
    c = torch.tensor(np.cumsum(rng.uniform(0.1, 1, d))[::-1].copy())
    steps = c - torch.cat([c[1:], torch.zeros(1)])

    def prefix(V):
        return -((0.6 * torch.eye(V.shape[1]) - V.T @ V) @ V.T @ A @ V).trace()

    summed = sum(steps[k - 1] * prefix(V[:, :k]) for k in range(1, d + 1))
    assert nested(V, A, c, 0.3).item() == pytest.approx(summed.item())
    found = gradient(lambda V: nested(V, A, torch.ones(d), 0.3), V)
    torch.testing.assert_close(found, -1.2 * A @ V + 2 * V @ V.T @ A @ V + 2 * A @ V @ V.T @ V)
    assert torch.autograd.gradcheck(lambda V: nested(V, A, c, 0.3), V.clone().requires_grad_())


@settings(max_examples=20, deadline=None)
@graphs
def test_eigenvectors_are_the_least_of_the_orbital_objective(problem):
    L, values, vectors, d, rng = problem
    A, c = torch.eye(len(L)) - L / 2, torch.tensor(coefficients(d))
    best, least = 0.3**0.5 * vectors[:, :d], -(0.3**2) * (c * (1 - values[:d] / 2)).sum()
    prefixes = torch.cumsum(1 - values[:d] / 2, 0)
    assert least.item() == pytest.approx(-0.09 * prefixes.sum().item())
    assert nested(best, A, c, 0.3).item() == pytest.approx(least.item())
    torch.testing.assert_close(gradient(lambda V: nested(V, A, c, 0.3), best), torch.zeros_like(best))
    for size in (0.01, 0.1, 0.5, 2.0):
        there = torch.tensor(rng.standard_normal(best.shape))
        assert nested(best + size * there, A, c, 0.3) > least
        assert nested(size * there, A, c, 0.3) > least


def test_without_a_positive_operator_there_is_no_least_value_but_a_local_one():
    L, values, vectors, d, rng = problem(0, n=6, d=3)
    h = 0.9 / values[d - 1]
    A, c = torch.eye(6) - h * L, torch.tensor(coefficients(d))
    assert 1 - h * values[-1] < -0.2
    far = vectors[:, [-1, 0, 1]]
    assert nested(100 * far, A, c) < -1e6
    best = vectors[:, :d]
    for _ in range(100):
        assert nested(best + 1e-3 * torch.tensor(rng.standard_normal(best.shape)), A, c) > nested(best, A, c)


@pytest.mark.parametrize("seed", range(3))
def test_allo_finds_the_eigenvectors_of_small_graphs(seed):
    L, values, vectors, d, rng = problem(seed, n=8, d=3)
    U, duals = torch.tensor(0.1 * rng.standard_normal((8, d))), torch.zeros(d, d, dtype=torch.float64)
    for _ in range(600):
        U = U - 0.2 * gradient(lambda U, duals=duals: lagrangian(U, U.detach(), L, duals, 1.0), U)
        duals = duals + 0.2 * (U.T @ U - torch.eye(d)).tril()
    assert cosines(U, vectors).min() > 0.999
    torch.testing.assert_close(duals, (-2 * values[:d]).diag(), rtol=0, atol=0.01)


@pytest.mark.parametrize("seed", range(3))
def test_the_orbital_method_finds_the_eigenvectors_of_small_graphs(seed):
    L, values, vectors, d, rng = problem(seed, n=8, d=3)
    V, c, a = torch.tensor(0.1 * rng.standard_normal((8, d))), torch.tensor(coefficients(d)), 1 - values / values[-1]
    A = torch.eye(8) - L / values[-1]
    for _ in range(1500):
        V = V - 0.05 * gradient(lambda V: nested(V, A, c), V)
    assert cosines(V, vectors).min() > 0.999
    torch.testing.assert_close(V.T @ A @ V, a[:d].diag(), rtol=0, atol=0.01)


def descend(objective, learning, rows):
    """What Adam makes of a table of values at each state, from all transitions at once."""
    U = 0.1 * torch.randn(int(rows.max()) + 1, learning.d, generator=torch.Generator().manual_seed(0))
    optimizer = torch.optim.Adam([U.requires_grad_()], lr=learning.lr)
    for step in range(1, learning.steps + 1):
        loss = objective(lambda rows: U[rows], rows, step)
        optimizer.zero_grad()
        loss.backward()
        optimizer.param_groups[0]["lr"] = learning.lr_at(step)
        optimizer.step()
    return U.detach()


@pytest.mark.parametrize("name", OBJECTIVES)
def test_objectives_find_the_eigenvectors_of_a_path_from_all_its_transitions(name):
    rows, L = whole_path(6)
    values, vectors = torch.linalg.eigh(L)
    learning = Settings(steps=600, d=D, lr=0.1, decay=0.5, beta=2.0, target_scale=0.5)
    objective = OBJECTIVES[name](learning)
    U = descend(objective, learning, rows)
    assert cosines(U, vectors).min() > 0.999
    torch.testing.assert_close(U.T @ U / 6, 0.5 * torch.eye(D), rtol=0, atol=0.01)
    assert objective.values == pytest.approx(values[:D].numpy(), abs=0.01)


@pytest.mark.parametrize("growth", [0, 0.01])
def test_a_barrier_too_low_to_hold_a_dimension_grows_until_it_does(growth):
    rows, L = whole_path(6)
    values, vectors = torch.linalg.eigh(L)
    learning = Settings(steps=1000, d=D, lr=0.05, decay=0.5, beta=0.2, target_scale=0.5)
    objective = Allo(learning, dual_rate=0.01, growth=growth)
    found, strength = cosines(descend(objective, learning, rows), vectors), 0.5 * (0.2 + objective.grown)
    assert found[:2].min() > 0.999
    assert values[1] < 0.1 < values[2]
    assert (strength > values[2]) == (found[2] > 0.999) == (growth > 0)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_estimates_have_no_bias_in_value_or_gradient(name):
    """The mean over all possible batches of one sample is what the whole chain gives."""
    whole, _ = whole_path(3)
    U = torch.tensor(np.random.default_rng(0).standard_normal((3, 2)))
    objective = OBJECTIVES[name](Settings(steps=1, d=2, beta=0.7, target_scale=0.3)).double()
    if name == "allo":
        objective.duals += torch.tensor([[0.3, 0], [-0.2, 0.5]])

    def value_and_gradient(rows):
        V = U.clone().requires_grad_()
        loss = copy.deepcopy(objective)(lambda rows: V[rows], rows, 1)
        return torch.cat([loss.detach()[None], torch.autograd.grad(loss, V)[0].flatten()])

    single = [torch.tensor([*pair, x, y])[:, None] for pair, x, y in product(whole[:2].T.tolist(), range(3), range(3))]
    mean = torch.stack([value_and_gradient(rows) for rows in single]).mean(dim=0)
    torch.testing.assert_close(mean, value_and_gradient(whole))
    assert mean.abs().min() > 1e-3


def test_sequential_nesting_moves_each_dimension_as_the_last_of_its_prefix():
    rows, L = whole_path(6)
    V = torch.tensor(np.random.default_rng(0).standard_normal((6, 4)))
    objective = NestedOMM(Settings(steps=1, d=4, beta=2.0, target_scale=0.5))
    found = gradient(lambda V: objective(lambda rows: V[rows], rows, 1), V)
    scaled = V / 6**0.5  # ρ is uniform: ⟨f, g⟩ is a sum over states divided by 6
    for k in range(1, 5):
        last = gradient(lambda V, k=k: nested(V, torch.eye(6) - L, torch.ones(k), 0.5), scaled[:, :k])[:, -1]
        torch.testing.assert_close(found[:, k - 1], last / 6**0.5)


def test_joint_nesting_is_graph_drawing_with_its_shrinking_undone():
    rng, learning = np.random.default_rng(0), Settings(steps=1, d=3, coefficients=(5, 2, 1), beta=3.0, target_scale=0.2)
    f, g, F1, F2 = F = torch.tensor(rng.standard_normal((4, 50, 3)))
    c, h = torch.tensor(coefficients(3, (5, 2, 1))), 1 / 0.6
    found = NestedOMM(learning, sequential=False)(lambda rows: F.flatten(0, 1)[rows], torch.arange(200).view(4, 50), 1)
    M, X = (F1.T @ F1 + F2.T @ F2) / 100, (f - g).T @ (f - g) / 100
    undone = (torch.minimum(c[:, None], c) * M * X).sum() / 0.2
    drawing = pair_loss(f, g, c) + 3.0 * (penalty(F1, F2, c, 0.2) - 0.2**2 * c.sum())
    torch.testing.assert_close(found / (h * 0.2), drawing - undone)


@pytest.mark.parametrize(("method", "options"), [("allo", {"dual_rate": 0.01}), ("omm", {})])
def test_rivals_learn_eigenvectors_and_eigenvalues_from_samples(method, options):
    values, vectors = lb.pairs.data_spectrum(DATA, D)
    learning = Settings(steps=1000, d=D, batch=256, lr=2e-3, decay=0.5, beta=3.0, target_scale=0.3)
    rep, found = RIVALS[method](DATA, learning, **options)
    f = rep(DATA.observations)
    assert lb.sim_gt(f, vectors) > 0.99
    assert lb.sim_gt(f, lb.spectrum.eigenvectors(LAYOUT, D).vectors) > 0.98
    assert values[2] > 0.15
    assert DATA.rho @ f**2 / 0.3 == pytest.approx(np.ones(D), abs=0.05)  # where eq. (7) and (8) leave 1 - λ / 0.9
    assert found == pytest.approx(values, abs=0.03)


def test_the_barrier_grows_with_the_violations_only():
    rows, _ = whole_path(4)
    still = Allo(replace(SMALL, beta=2.0), growth=0.0)
    growing = Allo(replace(SMALL, beta=2.0), growth=0.01)
    for objective in (still, growing):
        objective(lambda rows: torch.zeros(len(rows), D), rows, 1)
    assert still.grown == 0
    assert growing.grown.item() == pytest.approx(0.01 * 2.0 * D)  # E = -τI
    orthogonal = 0.5**0.5 * 2 * torch.eye(4)[:, :D]
    growing(lambda rows: orthogonal[rows], rows, 2)
    assert growing.grown.item() == pytest.approx(0.01 * 2.0 * D)


class KilledError(Exception):
    pass


@METHODS
def test_a_killed_run_resumes_to_the_same_bits(tmp_path, method):
    path, train = tmp_path / "checkpoint.safetensors", RIVALS[method]

    def kill_at_21(step, rep):
        if step == 21:
            raise KilledError

    whole, values = train(DATA, SMALL, rng=3, every=7)
    with pytest.raises(KilledError):
        train(DATA, SMALL, rng=3, every=7, checkpoint=path, callback=kill_at_21)
    resumed, same = train(DATA, SMALL, rng=3, every=7, checkpoint=path)
    assert torch.equal(weights(whole), weights(resumed))
    assert (values == same).all()
    assert np.abs(values).max() > 0


def test_checkpoints_of_other_objectives_are_refused(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    other = pytest.raises(ValueError, match="is of a run with other objective: remove it or choose another")
    allo(DATA, SMALL, checkpoint=path)
    for train, options in ((learn, {}), (omm, {}), (allo, {"dual_rate": 0.02}), (allo, {"growth": 0})):
        with other:
            train(DATA, SMALL, checkpoint=path, **options)
    path.unlink()
    omm(DATA, SMALL, checkpoint=path)
    with other:
        omm(DATA, SMALL, checkpoint=path, sequential=False)


def test_checkpoints_from_before_there_were_rivals_are_resumed_by_learn_alone(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    learn(DATA, SMALL, every=14, checkpoint=path, callback=lambda step, rep: step == 14)
    tensors, about = read(path, "checkpoint")
    assert about.pop("objective") is None
    write(path, "checkpoint", tensors, {k: v for k, v in about.items() if k not in ("kind", "version", "sha256")})
    with pytest.raises(ValueError, match="other objective"):
        allo(DATA, SMALL, checkpoint=path)
    assert torch.equal(weights(learn(DATA, SMALL, checkpoint=path)), weights(learn(DATA, SMALL)))


@METHODS
def test_rivals_take_what_learn_takes(tmp_path, method, capsys):
    seen, truth = [], lb.spectrum.eigenvectors(LAYOUT, D).vectors
    options = {"truth": truth, "every": 20, "progress": True, "callback": lambda step, rep: seen.append(step)}
    rep, values = RIVALS[method](DATA, "smoke", d=D, steps=30, encoder="fourier", **options)
    assert seen == [20, 30]
    assert "SimGT=0." in capsys.readouterr().err
    assert rep.settings == preset("smoke", d=D, steps=30, encoder="fourier")
    assert values.shape == (D,)
    rep.save(tmp_path / "rep.safetensors")
    loaded = Representation.load(tmp_path / "rep.safetensors")
    assert (loaded(DATA.observations) == rep(DATA.observations)).all()
    assert PRESETS[method].d == 10


def test_an_operator_that_loses_a_dimension_is_announced():
    with pytest.warns(CollapsingDimension, match="dimension 3 will vanish"):
        omm(DATA, SMALL, steps=1, beta=0.3)
    allo(DATA, SMALL, steps=1, beta=0.3)  # warnings are errors here


@pytest.mark.parametrize(
    ("train", "options", "message"),
    [
        (allo, {"dual_rate": 0}, "dual_rate must be positive and finite, got 0"),
        (allo, {"dual_rate": np.nan}, "dual_rate must be positive and finite, got nan"),
        (allo, {"growth": -1}, "growth must be at least 0 and finite, got -1"),
        (allo, {"coefficients": "equal"}, "coefficients must be left as they are, ALLO has none: got 'equal'"),
        (omm, {"coefficients": (3, 2, 1)}, "coefficients must be left as they are, sequential nesting has none"),
        (omm, {"lr": -1}, "lr must be positive and finite, got -1"),
        (omm, {"settings": "slow"}, "preset must be one of"),
    ],
)
def test_bad_arguments_are_refused(train, options, message):
    with pytest.raises(ValueError, match=message):
        train(DATA, **({"settings": SMALL} | options))
