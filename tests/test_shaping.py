import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lapbook as lb
from lapbook import layouts, shaping, statistics
from lapbook.layouts import GRID_MAZE, GRID_ROOM, Layout
from lapbook.qlearning import greedy, optimal, success
from lapbook.reproduction import shaping as experiment
from lapbook.reproduction.common import cut_short
from lapbook.results import name
from lapbook.shaping import by_all, by_dimension, false_summits, monotonicity, potential_based, state_at

CORRIDOR = Layout(".....", "corridor")
TRUTH = lb.spectrum.eigenvectors(GRID_ROOM, 10)
ONES_AND = np.stack([np.ones(5), [1.0, 3.0, 3.0, 3.0, 0.9]], axis=1)
LEFT, RIGHT = 0, 1


def best(layout, table, goal, gamma=0.99):
    """The actions that are best in each state, within rounding, and the share of states they lead to the goal from."""
    Q = optimal(layout, table[None], np.array([goal]), gamma)
    return Q[0] >= Q[0].max(axis=1, keepdims=True) - 1e-6, success(layout, greedy(Q), np.array([goal]))[0]


def test_pseudo_rewards_by_hand():
    room = Layout("...\n...\n...")
    f = np.stack([np.ones(9), np.arange(9), np.arange(9) ** 2], axis=1)
    assert by_dimension(room, f, 2, goal=3).tolist() == [-9, -4, -1, 0, -1, -4, -9, -16, -25]
    assert by_all(room, f, goal=0)[[0, 1, 2]] == pytest.approx([0, -np.sqrt(2), -np.sqrt(20)])
    assert shaping.by_position(room, goal=0)[[0, 1, 4, 8]] == pytest.approx([0, -1, -np.sqrt(2), -np.sqrt(8)])
    assert shaping.sparse(room, goal=8).tolist() == [-1] * 8 + [0]
    table = shaping.on_arrival(room, np.arange(9.0))
    assert table[0].tolist() == [0, 1, 0, 3]  # left and up are walls
    assert shaping.scaled([-4, -1, 0]).tolist() == [-1, -0.25, 0]
    assert shaping.mixed(np.array([-4.0, 0.0]), np.array([-1.0, 0.0])).tolist() == [-2.5, 0]
    assert shaping.mixed(np.array([-4.0]), np.array([-1.0]), weight=0.25).tolist() == [-1.75]


@settings(max_examples=20)
@given(st.integers(1, 4), st.integers(2, 4), st.integers(0, 999))
def test_in_a_maze_reachability_is_the_length_of_the_path(rows, columns, seed):
    """A maze is a tree, where resistance is distance: so the pseudo-reward of all eigenvectors leads to any goal."""
    layout = layouts.maze(rows, columns, rng=seed)
    spectrum = lb.spectrum.smallest_eigenpairs(lb.spectrum.laplacian(layout), layout.n)
    goal = seed % layout.n
    values = shaping.reachability_aware(layout, spectrum.vectors[:, 1:], spectrum.values[1:], goal)
    assert values**2 == pytest.approx(layout.distances(goal), abs=1e-6)
    assert monotonicity(layout, values, goal) == 1
    assert len(false_summits(layout, values, goal)) == 0


@settings(max_examples=20)
@given(st.integers(1, 3), st.integers(0, 999), st.integers(1, 6))
def test_eigenvectors_never_overestimate_the_way(size, seed, d):
    """Resistance is at most distance, and fewer eigenvectors give less: so the potential is never below the value."""
    layout = layouts.rooms(2, 2, size=size, rng=seed)
    spectrum = lb.spectrum.smallest_eigenpairs(lb.spectrum.laplacian(layout), layout.n)
    goal, used = seed % layout.n, slice(1, 1 + d)
    bound = shaping.reachability_aware(layout, spectrum.vectors[:, used], spectrum.values[used], goal) ** 2
    distance = layout.distances(goal)
    assert (bound <= distance + 1e-9).all()
    sparse = shaping.on_arrival(layout, shaping.sparse(layout, goal))
    value = optimal(layout, sparse[None], np.array([goal]), 0.9)[0].max(axis=1)
    assert shaping.value_at(distance, 0.9) == pytest.approx(value)
    assert (shaping.value_at(bound, 0.9) >= value - 1e-6).all()


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.5, 0.9, 0.99]))
def test_a_potential_leaves_the_best_actions_as_they_are(seed, gamma):
    rng = np.random.default_rng(seed)
    layout = layouts.rooms(2, 2, size=int(rng.integers(1, 4)), rng=seed)
    goal, potential = int(rng.integers(layout.n)), 10 * rng.standard_normal(layout.n)
    plain = shaping.on_arrival(layout, shaping.sparse(layout, goal))
    table = potential_based(layout, potential, goal, gamma)
    before, after = (optimal(layout, t[None], np.array([goal]), gamma)[0] for t in (plain, table))
    shifted = potential - potential[goal]
    away = np.arange(layout.n) != goal
    assert after[away] == pytest.approx((before - shifted[:, None])[away], abs=1e-6)
    assert (best(layout, table, goal, gamma)[0] == best(layout, plain, goal, gamma)[0]).all()


def test_the_papers_reward_can_teach_to_stay_away():
    """At the left end the reward is -0.01 for ever, -1 in all: less than the way through the valley costs."""
    values = by_dimension(CORRIDOR, ONES_AND, 2, goal=4)
    actions, share = best(CORRIDOR, shaping.on_arrival(CORRIDOR, values), 4)
    assert actions[1].tolist() == [True, False, False, False]
    assert actions[2].tolist() == [False, True, False, False]
    assert share == 0.5
    shaped = potential_based(CORRIDOR, values, 4, 0.99)
    assert best(CORRIDOR, shaped, 4)[1] == 1
    # It is so on the paper's map, for exact eigenvectors and even if half of the reward is sparse.
    f = TRUTH.vectors * np.sqrt(GRID_ROOM.n)
    goal = int(shaping.goals(GRID_ROOM, 2)[1])  # a corner of the first room: dimension 3 has its like in the last
    pseudo = by_dimension(GRID_ROOM, f, 3, goal)
    half = shaping.mixed(pseudo, shaping.sparse(GRID_ROOM, goal))
    shares = [best(GRID_ROOM, shaping.on_arrival(GRID_ROOM, v), goal)[1] for v in (pseudo, half)]
    assert max(shares) < 0.8
    assert best(GRID_ROOM, potential_based(GRID_ROOM, pseudo, goal, 0.99), goal)[1] == 1


def test_summits_and_slopes_by_hand():
    values = [3, 1, 2, 4, 5]
    assert false_summits(CORRIDOR, values, 4).tolist() == [0]
    assert monotonicity(CORRIDOR, values, 4) == 0.75
    assert monotonicity(CORRIDOR, values, 1) == 0
    assert false_summits(CORRIDOR, np.zeros(5), 2).tolist() == [0, 1, 3, 4]  # a plateau leads nowhere
    square = Layout("..\n..")
    assert monotonicity(square, [0, 1, 1, 2], 3) == 1
    assert monotonicity(square, [0, 1, -1, 2], 3) == 0.75  # of the four moves nearer one leads down


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_climbing_ends_at_the_goal_or_at_a_false_summit(seed):
    rng = np.random.default_rng(seed)
    values, goal = rng.standard_normal(GRID_MAZE.n), int(rng.integers(GRID_MAZE.n))
    values[goal] = 9
    for s in range(GRID_MAZE.n):
        while values[GRID_MAZE.moves[s]].max() > values[s]:
            s = GRID_MAZE.moves[s][values[GRID_MAZE.moves[s]].argmax()]
        assert s == goal or s in false_summits(GRID_MAZE, values, goal)
    assert monotonicity(GRID_MAZE, -GRID_MAZE.distances(goal), goal) == 1


@pytest.mark.parametrize("layout", [GRID_ROOM, GRID_MAZE, CORRIDOR])
def test_goals_are_spread(layout):
    chosen = shaping.goals(layout, 5)
    assert len(set(chosen)) == 5
    assert (chosen == shaping.goals(layout, 5)).all()
    assert (chosen[:3] == shaping.goals(layout, 3)).all()
    D = layout.distances()
    apart = [D[chosen[k], chosen[:k]].min() for k in range(1, 5)]
    assert apart == sorted(apart, reverse=True)  # each new one is nearer to the others than the one before
    assert (D[chosen].min(axis=0) <= apart[-1]).all()  # and no state is farther from all of them


def test_cells_have_numbers():
    for s, (row, column) in enumerate(GRID_MAZE.cells):
        assert state_at(GRID_MAZE, row, column) == s
    with pytest.raises(ValueError, match="row and column must name a free cell: row 0, column 3 is a wall"):
        state_at(GRID_MAZE, 0, 3)
    for row, column in ((-1, 3), (3, 19)):
        message = f"row and column must lie on the 19×19 map: got row {row}, column {column}"
        with pytest.raises(ValueError, match=message):
            state_at(GRID_MAZE, row, column)
    with pytest.raises(ValueError, match=r"row and column must be whole numbers: got row 1\.5, column 3"):
        state_at(GRID_MAZE, 1.5, 3)


@pytest.mark.parametrize("goal", [271, -1, 1.0, True, (3, 4), None])
def test_goals_that_are_no_states_are_refused(goal):
    message = "goal must be a state number between 0 and 270, got .*: state_at finds that of a cell"
    values = np.zeros(271)
    for call in (
        lambda: shaping.sparse(GRID_ROOM, goal),
        lambda: by_dimension(GRID_ROOM, TRUTH.vectors, 2, goal),
        lambda: by_all(GRID_ROOM, TRUTH.vectors, goal),
        lambda: potential_based(GRID_ROOM, values, goal, 0.9),
        lambda: monotonicity(GRID_ROOM, values, goal),
        lambda: false_summits(GRID_ROOM, values, goal),
    ):
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: by_dimension(CORRIDOR, ONES_AND, 1, 0),
            "dimension must be at least 2: the first eigenvector is const",
        ),
        (lambda: by_dimension(CORRIDOR, ONES_AND, 2.0, 0), "dimension must be a whole number, .* got 2.0"),
        (lambda: by_dimension(CORRIDOR, ONES_AND, "2", 0), "dimension must be a whole number, .* got '2'"),
        (lambda: by_dimension(CORRIDOR, ONES_AND, 3, 0), "dimension must be between 2 and d = 2: got 3"),
        (lambda: by_dimension(CORRIDOR, ONES_AND * np.nan, 2, 0), "vectors must be finite: dimension 1 is not"),
        (lambda: by_all(CORRIDOR, ONES_AND.T, 0), r"vectors must have shape \(5, d\), one row .* got \(2, 5\)"),
        (lambda: by_all(CORRIDOR, np.full((5, 2), np.inf), 0), "vectors must be finite: dimension 1 is not"),
        (lambda: shaping.on_arrival(CORRIDOR, np.zeros(4)), r"values must have shape \(5,\), one for each state: got"),
        (lambda: shaping.on_arrival(CORRIDOR, [0, 0, np.nan, 0, 0]), "values must be finite: that of state 2 is not"),
        (lambda: potential_based(CORRIDOR, np.zeros(4), 0, 0.9), r"potential must have shape \(5,\), one for each"),
        (lambda: potential_based(CORRIDOR, np.zeros(5), 0, 1.1), "gamma must be between 0 and 1, got 1.1"),
        (lambda: shaping.value_at([1.0], 1), "gamma must be at least 0 and less than 1, got 1"),
        (lambda: shaping.value_at([-1.0], 0.9), "distance must not be negative, nor NaN"),
        (lambda: shaping.mixed(np.zeros(5), np.zeros(5), 2), "weight must be between 0 and 1, got 2"),
        (lambda: shaping.mixed(np.zeros(5), 0), r"pseudo and sparse must have one shape: got \(5,\) and \(\)"),
        (lambda: shaping.scaled(np.zeros(5)), "values must be finite and not all equal"),
        (lambda: shaping.scaled([0, np.nan]), "values must be finite and not all equal"),
        (lambda: shaping.goals(CORRIDOR, 6), "number must be between 1 and the 5 states of the map: got 6"),
        (lambda: shaping.goals(CORRIDOR, 0), "number must be between 1 and the 5 states of the map: got 0"),
        (lambda: shaping.reachability_aware(CORRIDOR, ONES_AND, [1], 0), r"eigenvalues must have shape \(2,\), one"),
        (
            lambda: shaping.reachability_aware(CORRIDOR, ONES_AND, [0, 1], 0),
            "leave the constant eigenvector out: got 0",
        ),
        (lambda: shaping.reachability_aware(CORRIDOR, ONES_AND, [1, np.nan], 0), "eigenvalues must be positive.*nan"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_the_experiment_has_a_setting_for_each_curve_of_the_figures():
    settings = experiment.EXPERIMENT.settings
    assert len({name(setting) for setting in settings}) == len(settings)
    tabular = [s for s in settings if s["agent"] == "tabular"]
    assert len(tabular) == 2 * (1 + 1 + 3 * 3)
    for setting in tabular:
        vectors, layout = experiment.vectors_of(setting), lb.layouts.LAYOUTS[setting["env"]]
        if setting["method"] == "none":
            assert vectors is None
            continue
        assert vectors.shape == (layout.n, 10)
        assert (vectors**2).mean(axis=0) == pytest.approx(np.ones(10))
        if setting["method"] != "gd":  # so the rows are the states in their order
            truth = lb.spectrum.eigenvectors(layout, 10).vectors
            assert lb.sim_gt(vectors, truth) > 0.9
            assert experiment.rayleigh_quotients(layout, truth) == pytest.approx(
                lb.spectrum.eigenvectors(layout, 10).values, abs=1e-9
            )


def test_a_small_run_of_the_experiment(tmp_path, monkeypatch):
    short = lb.qlearning.Settings(steps=6000)
    small = dataclasses.replace(experiment.AGENTS["tabular"], seeds=2, goals=2, every=2000, settings=lambda: short)
    monkeypatch.setitem(experiment.AGENTS, "tabular", small)
    reports = []
    labels = {
        "none": ["position", "sparse"],
        "truth": [*(f"dim {i}" for i in range(2, 11)), "all", "reachability", "value"],
    }
    for setting in experiment.EXPERIMENT.settings:
        if setting["env"] == "GridRoom" or setting["method"] not in labels or setting["agent"] != "tabular":
            continue
        metrics, budget, arrays = experiment.run(
            setting, tmp_path / name(setting), lambda *report: reports.append(report[0]), np.inf
        )
        rewards = labels[setting["method"]]
        assert metrics["rewards"] == rewards
        assert arrays["curves"].shape == (4, len(rewards), 2, 2, 3)
        assert arrays["optimal"].shape == (4, len(rewards), 2)
        assert (arrays["optimal"][3] == 1).all()  # potentials do not change what is best
        curves = arrays["curves"].astype(float)
        assert ((curves >= 0) & (curves <= 1)).all()
        area = statistics.area(metrics["steps"], curves)
        assert metrics["auc"]["mixed"][rewards[-1]] == pytest.approx(area[1, -1].mean(), abs=1e-3)
        assert budget["agents"] == 4 * len(rewards) * 2 * 2
    assert sum(reports) == 2 * 6000


def test_a_small_run_of_deep_agents_has_the_headline_and_can_be_cut_short(tmp_path, monkeypatch):
    smoke = lb.dqn.preset("smoke", gamma=0.99, steps=80)
    small = dataclasses.replace(experiment.AGENTS["dqn"], goals=2, every=20, settings=lambda: smoke)
    monkeypatch.setitem(experiment.AGENTS, "dqn", small)
    monkeypatch.setattr(experiment, "best_dimension", lambda setting: "dim 3")
    setting = {"env": "GridMaze", "agent": "dqn", "method": "ggd", "preset": "paper", "seed": 0}
    assert setting in experiment.EXPERIMENT.settings
    cut, budget, _ = experiment.run(setting, tmp_path / "cut", lambda *report: None, hours=0)
    assert cut["steps"] == [20]
    assert cut_short(budget)
    went_on, budget, arrays = experiment.run(setting, tmp_path / "cut", lambda *report: None, hours=1)
    whole, _, same = experiment.run(setting, tmp_path / "whole", lambda *report: None, hours=1)
    assert went_on == whole
    assert whole["rewards"] == ["dim 3", "all"]
    assert whole["steps"] == [20, 40, 60, 80]
    assert not cut_short(budget)
    assert budget["agents"] == 2 * 2
    assert (arrays["curves"] == same["curves"]).all()
