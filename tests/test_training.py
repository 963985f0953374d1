import copy
import dataclasses
import json
from dataclasses import replace
from importlib import import_module

import gymnasium as gym
import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import lapbook as lb
from lapbook.encoders import build, initialise
from lapbook.envs.grid import observe
from lapbook.rollouts import Data
from lapbook.settings import PRESETS, Settings, preset
from lapbook.tables import lookup, on_table
from lapbook.training import CollapsingDimension, Representation, counted_loss, learn, sampled_loss

LAYOUT = lb.layouts.rooms(1, 3, size=3)
D = 4
SMALL = preset("smoke", d=D, steps=30)


def walks(layout, episodes=400, obs="xy"):
    return lb.collect(gym.make("lapbook/Grid-v0", layout=layout, obs=obs), transitions=50 * episodes, length=50)


DATA = walks(LAYOUT)
TRUTH = lb.spectrum.eigenvectors(LAYOUT, D).vectors


def everywhere(rep):
    return rep(DATA.observations)


def weights(rep):
    return torch.cat([p.detach().flatten() for p in rep.encoder.parameters()])


@pytest.mark.parametrize("normalise", [0.0, 3.0])
@pytest.mark.parametrize(("encoder", "obs"), [("mlp", "xy"), ("fourier", "xy"), ("conv", "image"), ("mlp", "image")])
def test_every_way_gives_the_loss_and_gradient_of_the_plain_one(encoder, obs, normalise, monkeypatch):
    layout = lb.layouts.rooms(3, 4, size=3)
    settings = preset("smoke", d=D, encoder=encoder, fourier_sigma=2.0, normalise=normalise)
    table = torch.from_numpy(lb.envs.grid.observe(layout, np.arange(layout.n), obs)).double()
    if obs == "image":
        table[:, 4:] *= torch.arange(1, 10, dtype=float)[:, None, None]  # neither symmetric nor in few colours
    net = build(settings, tuple(table.shape[1:]))
    initialise(net, settings, torch.Generator().manual_seed(0))
    if normalise:
        net[0].fit(table.numpy(), np.full(layout.n, 1 / layout.n), normalise)
    net = net.double()
    rows = torch.from_numpy(np.random.default_rng(0).integers(layout.n, size=(4, 100)))
    c = torch.tensor(lb.objective.coefficients(D))
    options = {"beta": 0.7, "target": 0.3}
    plain, *others = (
        lambda: sampled_loss(lambda rows: net(table[rows]), rows, c, **options),
        lambda: sampled_loss(lookup(net, table, gather=False), rows, c, **options),  # in pieces
        lambda: sampled_loss(lookup(net, table, gather=True), rows, c, **options),
        lambda: counted_loss(on_table(net, table)(), rows, c, **options),
    )
    plain_loss, plain_gradient = loss_and_gradient(plain, net)
    assert all(gradient.abs().max() > 0 for gradient in plain_gradient)
    monkeypatch.setattr(import_module("lapbook.tables"), "PIECE", 64)
    for other in others:
        loss, gradient = loss_and_gradient(other, net)
        assert loss == pytest.approx(plain_loss, abs=1e-10)
        for a, b in zip(gradient, plain_gradient, strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-10)


def loss_and_gradient(loss_of, net):
    net.zero_grad()
    loss = loss_of()
    loss.backward()
    return loss.item(), [p.grad.clone() for p in net.parameters()]


@pytest.mark.parametrize("gather", [True, False])
@pytest.mark.parametrize("obs", ["xy", "image"])
def test_bf16_trains_as_float32_does_but_for_its_rounding(obs, gather):
    data = lb.collect(gym.make("lapbook/GridMaze-v0", obs=obs), transitions=1000)
    exact, coarse = (learn(data, SMALL, steps=3, precision=p, gather=gather) for p in ("float32", "bf16"))
    apart = (weights(exact) - weights(coarse)).abs().max()
    assert 0 < apart < 0.01
    assert next(coarse.encoder.parameters()).dtype == torch.float32
    with pytest.raises(ValueError, match=r"precision must be one of float32, bf16: got 'half'"):
        preset("smoke", precision="half")


def test_gathering_trains_like_the_plain_way():
    """In single precision the two differ by rounding alone, over a few steps."""
    first, second = (learn(DATA, replace(SMALL, steps=5), gather=gather) for gather in (True, False))
    assert not torch.equal(weights(first), weights(build_only()))
    torch.testing.assert_close(weights(first), weights(second), rtol=0, atol=1e-5)


def build_only():
    """The encoder as it is before the first step: a step so small that it changes nothing."""
    return learn(DATA, replace(SMALL, steps=1, lr=1e-30))


@pytest.fixture(scope="module")
def trained():
    """For each kind of coefficients f on all states, and E f_i² in the data averaged over the second half."""
    results = {}
    for kind in ("paper", "equal"):
        squares = []
        rep = learn(
            DATA,
            Settings(steps=800, d=3, batch=512, coefficients=kind),
            every=10,
            callback=lambda step, rep, squares=squares: squares.append(DATA.rho @ everywhere(rep) ** 2),
        )
        results[kind] = everywhere(rep), np.mean(squares[40:], axis=0)
    return results


def test_decreasing_coefficients_find_the_eigenvectors(trained):
    vectors, _ = trained["paper"]
    assert lb.sim_gt(vectors, TRUTH[:, :3]) > 0.98
    assert lb.span_distance(vectors, TRUTH[:, :3]) < 0.1


def test_equal_coefficients_find_the_span_only(trained):
    vectors, _ = trained["equal"]
    assert lb.sim_gt(vectors, TRUTH[:, :3]) < 0.8
    assert lb.span_distance(vectors, TRUTH[:, :3]) < 0.1


def test_training_shrinks_each_dimension_as_the_law_says(trained):
    """E f_i² = s max(0, 1 - λ_i/(β s)), with λ_i that of the multi-step pairs: 1 - E μ_i^lag, μ_i = 1 - λ_i(L)/4."""
    walk = 1 - lb.spectrum.eigenvectors(LAYOUT, 3).values / 4
    values = lb.pairs.multi_step(walk, 50, 0.9)
    assert values[2] > 0.15
    assert trained["paper"][1] == pytest.approx(lb.objective.mean_square(values, beta=1), abs=0.04)


class KilledError(Exception):
    pass


def kill_at(step):
    def callback(now, rep):
        if now == step:
            raise KilledError

    return callback


def test_a_killed_run_resumes_to_the_same_bits(tmp_path):
    path = tmp_path / "run" / "checkpoint.safetensors"
    settings, steps = replace(SMALL, encoder="fourier", decay=0.5), []
    whole = learn(DATA, settings, rng=3, every=7)
    with pytest.raises(KilledError):
        learn(DATA, settings, rng=3, every=7, checkpoint=path, callback=kill_at(21))
    rng = np.random.default_rng(3)  # a generator may be given, too
    resumed = learn(DATA, settings, rng, every=7, checkpoint=path, callback=lambda step, rep: steps.append(step))
    assert steps == [21, 28, 30]  # from 14, the last checkpoint; nobody is told of a step that was not repeated
    assert torch.equal(weights(whole), weights(resumed))
    uninterrupted = np.random.default_rng(3)
    learn(DATA, settings, uninterrupted)
    assert rng.bit_generator.state == uninterrupted.bit_generator.state
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    again = learn(DATA, settings, rng=3, checkpoint=path, callback=kill_at(30))  # finished: nothing is run
    assert torch.equal(weights(whole), weights(again))


def test_checkpoints_of_other_runs_are_refused(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    learn(DATA, SMALL, checkpoint=path)
    with pytest.raises(ValueError, match="is of a run with other lr, beta: remove it or choose another"):
        learn(DATA, replace(SMALL, lr=0.01, beta=2.0), checkpoint=path)
    with pytest.raises(ValueError, match="other rng"):
        learn(DATA, SMALL, rng=1, checkpoint=path)
    with pytest.raises(ValueError, match="other data"):
        learn(replace(DATA, index=DATA.index[::-1]), SMALL, checkpoint=path)
    with pytest.raises(ValueError, match="other gather"):
        learn(DATA, SMALL, checkpoint=path, gather=False)


def test_damaged_checkpoints_are_refused(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    rep = learn(DATA, SMALL, checkpoint=path)
    data = path.read_bytes()
    for damaged in (data[: len(data) // 2], data[:-5] + b"abcde", b"", b"no tensors at all"):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"is not a checkpoint of lapbook .*, or is damaged"):
            learn(DATA, SMALL, checkpoint=path)
        assert path.read_bytes() == damaged
    rep.save(path)
    with pytest.raises(ValueError, match="it holds 'representation'"):
        learn(DATA, SMALL, checkpoint=path)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_observations_must_be_finite(value):
    broken, called = DATA.observations.copy(), []
    broken[5, 1] = value
    with pytest.raises(ValueError, match="observations must be finite: row 5 is not"):
        learn(replace(DATA, observations=broken), SMALL, every=1, callback=lambda *arguments: called.append(arguments))
    assert called == []


def test_a_loss_that_is_not_finite_names_its_step_and_keeps_the_checkpoint(tmp_path, monkeypatch):
    path, calls = tmp_path / "checkpoint.safetensors", []

    def break_at_17(*arguments, **options):
        calls.append(0)
        return counted_loss(*arguments, **options) * (np.nan if len(calls) == 17 else 1)

    whole = learn(DATA, SMALL)
    with monkeypatch.context() as patch:
        patch.setattr(import_module("lapbook.training"), "counted_loss", break_at_17)
        with pytest.raises(FloatingPointError, match=r"loss must stay finite.* at step 17: .*; .* checkpoint is .*"):
            learn(DATA, SMALL, every=5, checkpoint=path)
    assert torch.equal(weights(learn(DATA, SMALL, every=5, checkpoint=path)), weights(whole))


def test_an_absurd_step_size_is_noticed_before_a_checkpoint_is_written(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    with pytest.raises(FloatingPointError, match="must stay finite, but did not at step"):
        learn(DATA, replace(SMALL, lr=1e30), every=1, checkpoint=path)
    if path.exists():
        assert all(tensor.isfinite().all() for tensor in load_file(path).values())


def test_save_and_load(tmp_path):
    path = tmp_path / "deep" / "rep.safetensors"
    rep = learn(DATA, replace(SMALL, encoder="fourier", coefficients=(5, 3, 2, 1)))
    rep.save(path)
    loaded = Representation.load(path)
    assert (loaded.settings, loaded.shape) == (rep.settings, rep.shape)
    assert (everywhere(loaded) == everywhere(rep)).all()
    loaded.linear.weight.requires_grad_()  # still an encoder that can be trained
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_damaged_and_foreign_files_are_refused(tmp_path):
    path = tmp_path / "rep.safetensors"
    rep = learn(DATA, SMALL)
    rep.save(path)
    data, tensors = path.read_bytes(), load_file(path)
    for damaged in (data[: len(data) // 2], data[:-5] + b"abcde", b"", b"\x80\x04." + data):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"is not a representation of lapbook .*, or is damaged"):
            Representation.load(path)
    save_file(tensors, path)
    with pytest.raises(ValueError, match="is not a representation of lapbook"):
        Representation.load(path)
    save_file(tensors, path, {"lapbook": json.dumps([1])})
    with pytest.raises(ValueError, match="is not a representation of lapbook"):
        Representation.load(path)
    replace(rep, settings=replace(SMALL, d=10**9)).save(path)  # asks for 1 TB, holds 0.5 MB
    with pytest.raises(ValueError, match="does not hold the weights its settings ask for"):
        Representation.load(path)
    with pytest.raises(FileNotFoundError):
        Representation.load(tmp_path / "nowhere.safetensors")


def test_images_and_leading_shapes():
    layout = lb.layouts.rooms(3, 3, size=3)
    data = walks(layout, episodes=50, obs="image")
    rep = learn(data, "smoke", d=5, steps=3)
    images = data.observations[data.index[:2, :3]]
    assert rep.shape == (13, 13, 3)
    assert rep(images).shape == (2, 3, 5)
    assert rep(images)[1, 2] == pytest.approx(rep(images[1, 2]), abs=1e-6)
    assert rep(images, batch=2).shape == (2, 3, 5)
    assert rep(images[:0]).shape == (0, 3, 5)
    assert rep.linear.weight.shape == (5, 16)
    with pytest.raises(ValueError, match=r"observations must have shape \(..., 13, 13, 3\), got \(2, 3, 13, 13\)"):
        rep(images[..., 0])
    with pytest.raises(ValueError, match=r"at least 10 rows and columns, got \(5, 13, 3\)"):
        learn(walks(LAYOUT, episodes=50, obs="image"), SMALL)
    assert [layer.weight.shape[0] for layer in build(preset("paper", encoder="mlp"), (21, 21, 3))[1::2]] == [
        256,
        256,
        256,
        10,
    ]
    assert build(PRESETS["paper"], (21, 21, 3))[-1].weight.shape == (10, 16 * 3 * 3)


def test_positions_are_learned_from_too():
    positions = np.random.default_rng(0).normal(size=(20, 11, 2)).cumsum(axis=1)
    settings = preset("smoke", d=3, steps=3, encoder="fourier", fourier_features=20, fourier_sigma=3)
    rows = np.arange(20 * 11).reshape(20, 11)
    rep = learn(Data(positions.reshape(-1, 2) / 10, rows, np.full(20, 10)), settings)
    assert rep(positions / 10).shape == (20, 11, 3)
    W = rep.encoder[1].W
    assert W.shape == (2, 20)
    assert 1.5 < W.std() < 4.5


def test_same_seed_same_result_and_torch_is_left_alone():
    before = torch.random.get_rng_state()
    first, second, other = (learn(DATA, SMALL, rng=seed) for seed in (5, 5, 6))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.equal(weights(first), weights(second))
    assert not torch.equal(weights(first), weights(other))


def test_observations_are_centred_and_scaled_on_request(tmp_path):
    data = replace(DATA, observations=5 + 2 * DATA.observations)
    rep = learn(data, SMALL, normalise=3.0, steps=2)
    x = rep.encoder[0](torch.from_numpy(data.observations)).numpy()
    assert DATA.rho @ x == pytest.approx(np.zeros(2), abs=1e-5)
    assert DATA.rho @ (x**2).sum(axis=1) == pytest.approx(9, rel=1e-5)
    rep.save(tmp_path / "rep.safetensors")
    loaded = Representation.load(tmp_path / "rep.safetensors")
    assert (loaded(data.observations) == rep(data.observations)).all()


def test_the_penalty_falls_to_its_weight():
    settings = replace(SMALL, beta=2.0, anneal=8.0, steps=100)
    betas = [settings.beta_at(step) for step in range(1, 101)]
    assert betas[0] == 16
    assert betas[5] == pytest.approx(2 * 8**0.5)
    assert betas[10:] == [2.0] * 90
    assert SMALL.beta_at(1) == SMALL.beta


def test_training_ends_where_the_callback_says(tmp_path):
    path, seen = tmp_path / "checkpoint.safetensors", []

    def enough(step, rep):
        seen.append(step)
        return step == 14

    rep = learn(DATA, SMALL, every=7, checkpoint=path, callback=enough)
    assert seen == [7, 14]
    assert torch.equal(weights(rep), weights(learn(DATA, SMALL, steps=14)))
    assert torch.equal(weights(learn(DATA, SMALL, every=7, checkpoint=path)), weights(learn(DATA, SMALL)))


def test_a_dimension_that_will_vanish_is_announced():
    values = lb.pairs.data_spectrum(DATA, D)[0]
    assert values[2] < 0.25 < values[3]
    message = rf"dimension 4 will vanish: λ_4 = {values[3]:.3f} ≥ .* = 0.25; .* d = 3"
    with pytest.warns(CollapsingDimension, match=message):
        learn(DATA, SMALL, steps=1, beta=0.5, target_scale=0.5)
    with pytest.warns(CollapsingDimension, match="dimensions 3 to 4 will vanish"):
        learn(DATA, SMALL, steps=1, beta=0.1)
    learn(DATA, SMALL, steps=1, beta=0.7)  # warnings are errors here


def test_progress_shows_loss_and_similarity(capsys):
    learn(DATA, SMALL, truth=TRUTH, every=10, progress=True)
    shown = capsys.readouterr()
    assert "30/30" in shown.err
    assert "loss=" in shown.err
    assert "SimGT=0." in shown.err
    learn(DATA, SMALL, truth=TRUTH)
    shown = capsys.readouterr()
    assert shown.out + shown.err == ""


def test_callbacks_come_every_so_many_steps_and_at_the_end():
    seen = []
    rep = learn(DATA, SMALL, every=20, callback=lambda step, rep: seen.append((step, copy.deepcopy(rep))))
    assert [step for step, _ in seen] == [20, 30]
    assert (everywhere(seen[-1][1]) == everywhere(rep)).all()
    assert (everywhere(seen[0][1]) != everywhere(rep)).any()


def test_presets():
    assert PRESETS["paper"] == Settings(steps=200_000, d=10, batch=1024, lr=1e-3, beta=1, target_scale=1, gamma=0.9)
    assert PRESETS["paper"].decay == 0
    assert preset("fast", d=3).d == 3
    one_change = dataclasses.replace(PRESETS["paper"], target_scale=0.1, steps=PRESETS["paper-scaled"].steps)
    assert PRESETS["paper-scaled"] == one_change
    with pytest.raises(ValueError, match=f"preset must be one of {', '.join(PRESETS)}: got 'slow'"):
        preset("slow")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"d": 0}, "d must be a whole number of at least 1, got 0"),
        ({"steps": 2.5}, "steps must be a whole number of at least 1, got 2.5"),
        ({"lr": np.nan}, "lr must be positive and finite, got nan"),
        ({"beta": -1}, "beta must be positive and finite, got -1"),
        ({"decay": 2}, r"decay must lie in \[0, 1\], got 2"),
        ({"anneal": 0.5}, "anneal must be at least 1 and finite, got 0.5"),
        ({"normalise": -1}, "normalise must be at least 0 and finite, got -1"),
        ({"gamma": 1}, r"gamma must lie in \[0, 1\), got 1"),
        ({"encoder": "transformer"}, "encoder must be one of auto, mlp, conv, fourier: got 'transformer'"),
        ({"coefficients": "random"}, "coefficients must be one of"),
        ({"coefficients": [3, 1, 2, 0]}, "coefficients must be strictly decreasing"),
        ({"coefficients": (3, 2, 1)}, "coefficients must be 4 numbers"),
    ],
)
def test_bad_settings_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(SMALL, **changes)


def test_bad_arguments_are_refused():
    n = LAYOUT.n
    with pytest.raises(ValueError, match=f"d must not exceed the number of distinct states, {n}: got {n + 1}"):
        learn(DATA, "smoke", d=n + 1)
    for truth in (TRUTH[:, :3], TRUTH[:-1], TRUTH[:, 0]):
        with pytest.raises(ValueError, match=rf"truth must have shape \({n}, 4\), got"):
            learn(DATA, SMALL, truth=truth)
    with pytest.raises(ValueError, match="every must be at least 1 step, got 0"):
        learn(DATA, SMALL, every=0)


@pytest.mark.parametrize("normalise", [0.0, 10.0])
def test_a_table_of_images_has_the_output_and_the_gradient_of_the_network(normalise):
    table = torch.from_numpy(observe(lb.layouts.GRID_MAZE, np.arange(lb.layouts.GRID_MAZE.n), "image"))
    settings = preset("fast-images", normalise=normalise)
    encoder = build(settings, tuple(table.shape[1:]))
    initialise(encoder, settings, torch.Generator().manual_seed(0))
    outputs, gradients = [], []
    for run in (lambda: encoder(table), on_table(encoder, table)):
        encoder.zero_grad()
        outputs.append(run())
        (outputs[-1] * torch.linspace(-1, 1, 10)).sin().sum().backward()
        gradients.append([parameter.grad.clone() for parameter in encoder.parameters()])
    torch.testing.assert_close(*outputs)
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4 * one.abs().max().item())
