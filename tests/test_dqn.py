import numpy as np
import pytest
import torch

import lapbook as lb
from lapbook.dqn import PRESETS, Networks, Settings, _Run, preset, train
from lapbook.layouts import Layout

CORRIDOR = Layout("......", "corridor")
ROOM = Layout("...\n...\n...", "room")
SMALL = {"batch": 32, "width": 32, "starts": 100, "memory": 500}


def arrival(layout, goal):
    """Reward 0 where an action leads to the goal, -1 elsewhere, and the end there."""
    ends = np.arange(layout.n) == goal
    return np.where(layout.moves == goal, 0.0, -1.0), ends


def optimal(layout, rewards, ends, gamma):
    Q = np.zeros((layout.n, 4))
    for _ in range(500):
        Q = rewards + gamma * (np.where(ends, 0, Q.max(axis=1)))[layout.moves]
    return Q


def test_presets_are_the_tables_of_the_paper():
    options, shaping = PRESETS["options"], PRESETS["shaping"]
    assert (options.steps, options.length, options.gamma) == (100_000, 50, 0)  # Table 4
    assert (shaping.steps, shaping.length, shaping.gamma) == (200_000, 150, 0.99)  # Table 5
    for table in (options, shaping):
        assert (table.lr, table.starts, table.batch, table.memory) == (1e-3, 5000, 128, 100_000)
        assert (table.update_every, table.update_rate, table.width) == (50, 0.05, 256)


def test_networks_side_by_side_are_separate_networks():
    networks = Networks(3, 2, 8, 4, torch.Generator().manual_seed(0))
    x = torch.randn(3, 5, 2, generator=torch.Generator().manual_seed(1))
    together = networks(x)
    for k in range(3):
        h = x[k]
        for i, (weight, bias) in enumerate(zip(networks.weights, networks.biases, strict=True)):
            h = h @ weight[k] + bias[k]
            h = h.relu() if i < 3 else h
        torch.testing.assert_close(together[k], h)
    bound = max(w[..., :].abs().max() for w in networks.weights[1:])
    assert 0.9 / np.sqrt(8) < bound <= 1 / np.sqrt(8)  # uniform over ±1/√inputs


def test_two_goals_at_once_are_learned_as_value_iteration_has_it():
    tables = [arrival(ROOM, goal) for goal in (0, 5)]
    rewards, ends = (np.array(part) for part in zip(*tables, strict=True))
    settings = preset("shaping", steps=3000, gamma=0.8, length=20, update_rate=0.5, update_every=20, **SMALL)
    Q = train(ROOM, rewards, ends, settings, rng=0)
    for k in range(2):
        exact = optimal(ROOM, rewards[k], ends[k], 0.8)
        inside = ~ends[k]  # episodes do not begin where they end
        assert np.abs(Q[k] - exact)[inside].max() < 0.3
        chosen = np.take_along_axis(exact, Q[k].argmax(axis=1)[:, None], axis=1)[:, 0]
        assert np.allclose(chosen[inside], exact.max(axis=1)[inside])


def test_without_discount_it_learns_the_rewards_themselves():
    rewards = np.random.default_rng(0).standard_normal((1, CORRIDOR.n, 4))
    Q = train(CORRIDOR, rewards, np.zeros((1, CORRIDOR.n), bool), "options", 0, steps=2500, **SMALL)
    assert np.abs(Q - rewards).max() < 0.1


def test_a_time_out_is_no_end():
    """Rewarded 1 for every step for ever, a state is worth 1/(1-γ), however short the episodes."""
    rewards, never = np.ones((1, CORRIDOR.n, 4)), np.zeros((1, CORRIDOR.n), bool)
    settings = preset("shaping", steps=2500, gamma=0.5, length=2, update_rate=1.0, update_every=10, **SMALL)
    assert np.abs(train(CORRIDOR, rewards, never, settings) - 2).max() < 0.1


def test_agents_do_not_feel_each_other():
    rng = np.random.default_rng(0)
    rewards, never = rng.standard_normal((2, ROOM.n, 4)), np.zeros((2, ROOM.n), bool)
    first = train(ROOM, rewards, never, "smoke", epsilon=1.0)
    rewards[1] *= -3
    second = train(ROOM, rewards, never, "smoke", epsilon=1.0)
    assert (first[0] == second[0]).all()
    assert not np.allclose(first[1], second[1])


def test_the_network_of_the_opposite_reward_is_minus_the_network():
    """What lets one network stand for both options of a dimension."""
    rewards, never = np.random.default_rng(0).standard_normal((1, ROOM.n, 4)), np.zeros((1, ROOM.n), bool)
    settings = preset("options", steps=200, **SMALL)
    runs = [_Run(ROOM, sign * rewards, never, settings, np.random.default_rng(3)) for sign in (1, -1)]
    with torch.no_grad():
        runs[1].online.weights[-1].neg_()
        runs[1].online.biases[-1].neg_()
    for run in runs:
        while run.step < settings.steps:
            run.act()
            if run.step > settings.starts:
                run.learn()
    np.testing.assert_allclose(runs[0].values(), -runs[1].values(), atol=1e-6)


def test_targets_are_tabulated_as_the_formula_has_it():
    rewards, ends = (part[None] for part in arrival(ROOM, 4))
    run = _Run(ROOM, rewards, ends, preset("smoke", gamma=0.9), np.random.default_rng(0))
    best = run.values()[0].max(axis=1)  # the target network begins as the learned one
    expected = rewards[0] + 0.9 * np.where(ends[0], 0, best)[ROOM.moves]
    np.testing.assert_allclose(run.aims[0].numpy().reshape(-1, 4), expected, rtol=1e-5)


def test_episodes_begin_where_they_do_not_end_and_last_no_longer_than_they_should():
    ends = np.arange(ROOM.n)[None] % 3 != 1
    run = _Run(ROOM, np.zeros((1, ROOM.n, 4)), ends, preset("smoke", epsilon=1.0, length=5), np.random.default_rng(0))
    assert not ends[0, [run.fresh()[0] for _ in range(50)]].any()
    ages = []
    for _ in range(60):
        run.act()
        ages.append(int(run.age[0]))
        assert not ends[0, run.at[0]]
    assert max(ages) <= 4


class KilledError(Exception):
    pass


@pytest.mark.parametrize("dies_at", [10, 40])  # before and after the first gradient step
def test_a_killed_run_goes_on_to_the_same_result(tmp_path, dies_at):
    rewards, ends = (np.repeat(part[None], 2, axis=0) for part in arrival(ROOM, 4))
    whole = train(ROOM, rewards, ends, "smoke", rng=5)

    def die(step, values):
        if step > dies_at:
            raise KilledError

    file = tmp_path / "checkpoint.safetensors"
    with pytest.raises(KilledError):
        train(ROOM, rewards, ends, "smoke", rng=5, checkpoint=file, every=10, callback=die)
    steps = []
    again = train(
        ROOM, rewards, ends, "smoke", rng=5, checkpoint=file, every=10, callback=lambda step, _: steps.append(step)
    )
    assert steps[0] == dies_at + 10
    assert (again == whole).all()
    with pytest.raises(ValueError, match="other data"):
        train(ROOM, 2 * rewards, ends, "smoke", rng=5, checkpoint=file)
    with pytest.raises(ValueError, match="other epsilon"):
        train(ROOM, rewards, ends, "smoke", rng=5, checkpoint=file, epsilon=0.1)


def test_a_divergence_is_announced():
    rewards, ends = (part[None] for part in arrival(CORRIDOR, 0))
    with pytest.raises(FloatingPointError, match="loss must stay finite, but did not at step"):
        train(CORRIDOR, 1e30 * rewards, ends, "smoke", steps=400, lr=1e10)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": 0}, "steps must be a whole number of at least 1, got 0"),
        ({"gamma": 1.0}, r"gamma must lie in \[0, 1\), got 1.0"),
        ({"epsilon": 1.5}, r"epsilon must lie in \[0, 1\], got 1.5"),
        ({"lr": 0.0}, "lr must be positive and finite, got 0.0"),
        ({"starts": 60}, "0 ≤ starts < steps = 60, got 60"),
    ],
)
def test_settings_are_checked(changes, message):
    with pytest.raises(ValueError, match=message):
        preset("smoke", **changes)


def test_bad_worlds_are_named():
    rewards, never = np.zeros((1, ROOM.n, 4)), np.zeros((1, ROOM.n), bool)
    with pytest.raises(ValueError, match="preset must be one of options, shaping, smoke: got 'dqn'"):
        preset("dqn")
    with pytest.raises(ValueError, match=r"rewards must have shape \(agents, 9, 4\), got \(9, 4\)"):
        train(ROOM, rewards[0], never)
    with pytest.raises(ValueError, match="rewards must be finite: those of agent 0 are not"):
        train(ROOM, rewards + np.nan, never)
    with pytest.raises(ValueError, match=r"ends must be booleans of shape \(1, 9\), got int64 \(1, 9\)"):
        train(ROOM, rewards, never.astype(int))
    with pytest.raises(ValueError, match="ends must leave a state to begin in: agent 0 has none"):
        train(ROOM, rewards, ~never)
    with pytest.raises(ValueError, match="every must be at least 1"):
        train(ROOM, rewards, never, "smoke", every=0)
    assert isinstance(lb.dqn.PRESETS["smoke"], Settings)


@pytest.mark.parametrize("gamma", [0.0, 0.9])
def test_a_loss_that_is_not_finite_is_noticed_whatever_gamma(gamma):
    huge = np.full((1, 3, 4), 3e38)  # finite, but its square is not in single precision
    with pytest.raises(FloatingPointError, match="loss must stay finite, but did not at step"):
        train(Layout("..."), huge, np.zeros((1, 3), dtype=bool), "smoke", gamma=gamma)
