"""Figures 8, 13 and 14: which dimension should shape the reward? All rewards of one representation in one record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from lapbook import qlearning, shaping, statistics
from lapbook.layouts import LAYOUTS, Layout
from lapbook.reproduction.common import Experiment, Log, Outcome, Report, Setting
from lapbook.results import name, read, representation
from lapbook.spectrum import eigenvectors, laplacian

D, GOALS, GAMMA = 10, 10, 0.99
VARIANTS = ("literal", "mixed", "scaled", "potential")
Follow = Callable[[int, np.ndarray], bool]
"""Called with the steps done and the greedy policies, shape (K, n); the agents stop where it returns True."""


@dataclass(frozen=True)
class Agent:
    """A kind of agent, and how much of it one record holds."""

    train: Callable[[Layout, np.ndarray, np.ndarray, Agent, np.random.Generator, Path, Follow], None]
    """Takes map, reward tables (K, n, 4), goals (K,), the agent itself, rng, a folder for checkpoints and follow."""
    settings: Callable[[], Any]
    """`qlearning.Settings` or `dqn.Settings`."""
    runs: tuple[tuple[str, str, int], ...]
    """Method and preset of the representations, and how many seeds of them."""
    variants: tuple[str, ...] = VARIANTS
    """Of the reward, see `table`."""
    goals: int = GOALS
    """So many of the goals in a record; that of the next seed takes the next ones."""
    seeds: int = 5
    """Agents for each variant, reward and goal."""
    every: int = 5000
    """Steps between two points of the curve."""
    headline: bool = False
    """Only the best dimension and all dimensions of a representation, and what needs none."""


def _tabular(
    layout: Layout,
    tables: np.ndarray,
    goals: np.ndarray,
    agent: Agent,
    rng: np.random.Generator,
    scratch: Path,
    follow: Follow,
) -> None:
    qlearning.train(
        layout, tables, goals, agent.settings(), rng, agent.every, lambda step, Q: follow(step, qlearning.greedy(Q))
    )


def _deep(
    layout: Layout,
    tables: np.ndarray,
    goals: np.ndarray,
    agent: Agent,
    rng: np.random.Generator,
    scratch: Path,
    follow: Follow,
) -> None:
    from lapbook import dqn

    dqn.train(
        layout,
        tables,
        np.arange(layout.n) == goals[:, None],
        agent.settings(),
        rng,
        scratch / "checkpoint.safetensors",
        agent.every,
        lambda step, values: follow(step, qlearning.greedy(values())),
    )


def _table5(**changes: Any) -> Any:
    from lapbook import dqn

    return dqn.preset("shaping", gamma=GAMMA, **changes)


def _tiny() -> Any:
    from lapbook import dqn

    return dqn.preset("smoke", gamma=GAMMA)


LEARNED = (("ggd", "paper"), ("ggd", "paper-coded"), ("gd", "paper"))
AGENTS: dict[str, Agent] = {
    "tabular": Agent(
        _tabular,
        lambda: qlearning.Settings(gamma=GAMMA),
        (("none", "raw", 1), ("truth", "exact", 1), *((*run, 3) for run in LEARNED)),
    ),
    "dqn": Agent(
        _deep,
        _table5,
        (("none", "raw", 2), ("ggd", "paper", 2), ("gd", "paper", 2)),
        variants=("mixed",),
        goals=2,
        seeds=1,
        every=2000,
        headline=True,
    ),
    # A network a sixteenth the size, on half the steps: so much cheaper that every dimension has its turn.
    "dqn-small": Agent(
        _deep,
        lambda: _table5(steps=100_000, width=64, batch=64, starts=1000),
        (("none", "raw", 1), ("ggd", "paper", 1), ("gd", "paper", 1)),
        variants=("mixed",),
        goals=4,
        seeds=1,
        every=2000,
    ),
}


SMOKE: dict[str, Agent] = {
    "tabular": replace(
        AGENTS["tabular"], settings=lambda: qlearning.Settings(steps=600, gamma=GAMMA), goals=2, seeds=1, every=200
    )
} | {agent: replace(AGENTS[agent], settings=_tiny, goals=2, every=20) for agent in ("dqn", "dqn-small")}


def settings() -> tuple[Setting, ...]:
    """Each agent on both maps: no representation, the exact one, and those that Table 1 learned from positions."""
    return tuple(
        {"env": env, "agent": agent, "method": method, "preset": preset, "seed": seed}
        for agent in AGENTS
        for (method, preset, seeds), env in product(AGENTS[agent].runs, ("GridRoom", "GridMaze"))
        for seed in range(seeds)
    )


def smoke() -> tuple[Setting, ...]:
    """Each kind of agent; from the records of Table 1's own tiny settings, where it needs any."""
    runs = [("tabular", method) for method in ("none", "ggd", "gd")] + [("dqn", "ggd"), ("dqn-small", "gd")]
    return tuple({"env": "GridMaze", "agent": a, "method": method, "preset": "smoke", "seed": 0} for a, method in runs)


def agent_of(setting: Setting) -> Agent:
    """The agent of a setting."""
    return (SMOKE if setting["preset"] == "smoke" else AGENTS)[setting["agent"]]


def best_dimension(setting: Setting) -> str:
    """The dimension that shapes best for tabular agents, half and half with the sparse reward: "dim 2", …"""
    asked = {key: setting[key] for key in ("env", "method", "preset", "seed")}
    (record,) = read("shaping", agent="tabular", **asked)
    areas = record["metrics"]["auc"]["mixed"]
    return max((label for label in areas if label.startswith("dim ")), key=areas.get)


def vectors_of(setting: Setting) -> np.ndarray | None:
    """The representation (n, d) of a setting, its columns with mean square 1 over the states; None without one."""
    layout = LAYOUTS[setting["env"]]
    if setting["method"] == "none":
        return None
    if setting["method"] == "truth":
        return eigenvectors(layout, D).vectors * np.sqrt(layout.n)
    return representation(*(setting[key] for key in ("env", "method", "preset", "seed")))


def pseudo_rewards(
    layout: Layout, vectors: np.ndarray | None, goal: int, turned: bool = False
) -> dict[str, np.ndarray]:
    """Name and pseudo-reward (n,) of whatever a representation offers for a goal.

    `turned` says that its dimensions are no eigenvectors, so that the first one is as good as any other.
    """
    if vectors is None:
        return {"position": shaping.by_position(layout, goal), "sparse": shaping.sparse(layout, goal)}
    found = {f"dim {i}": shaping.by_dimension(layout, vectors, i, goal) for i in range(2, vectors.shape[1] + 1)}
    found["all"] = shaping.by_all(layout, vectors, goal)
    used = vectors if turned else vectors[:, 1:]
    reachability = shaping.reachability_aware(layout, used, rayleigh_quotients(layout, used), goal)
    # Over n, since their mean square is 1, not their sum: with exact eigenvectors at most the steps to the goal.
    return found | {"reachability": reachability, "value": shaping.value_at(reachability**2 / layout.n, GAMMA)}


def rayleigh_quotients(layout: Layout, vectors: np.ndarray) -> np.ndarray:
    """fᵀLf / fᵀf of each column, shape (d,): the eigenvalue where f is an eigenvector."""
    return (vectors * (laplacian(layout) @ vectors)).sum(axis=0) / (vectors**2).sum(axis=0)


def table(layout: Layout, label: str, pseudo: np.ndarray, goal: int, variant: str) -> np.ndarray:
    """The reward table (n, 4) that a variant makes of a pseudo-reward (n,).

    literal: the pseudo-reward alone, as the paper writes it. mixed: half of it and half of the sparse reward, as the
    baseline's public code has it. scaled: the same after it was stretched to [-1, 0]. potential: the sparse reward,
    shaped with the pseudo-reward as potential. The sparse reward itself is left as it is in all of them.
    """
    plain = shaping.sparse(layout, goal)
    if label == "sparse" or variant == "literal":
        return shaping.on_arrival(layout, pseudo)
    if variant == "potential":
        return shaping.potential_based(layout, pseudo, goal, GAMMA)
    return shaping.on_arrival(layout, shaping.mixed(shaping.scaled(pseudo) if variant == "scaled" else pseudo, plain))


def run(setting: Setting, scratch: Path, report: Report, hours: float) -> Outcome:
    """Train an agent for each variant, reward, goal and seed."""
    layout, agent = LAYOUTS[setting["env"]], agent_of(setting)
    turn = (setting["seed"] * agent.goals + np.arange(agent.goals)) % GOALS
    vectors, goals = vectors_of(setting), shaping.goals(layout, GOALS)[turn]
    pseudo = [pseudo_rewards(layout, vectors, int(goal), setting["method"] == "gd") for goal in goals]
    labels = list(pseudo[0])
    if agent.headline and vectors is not None:
        labels = [best_dimension(setting), "all"]
    shape = (len(agent.variants), len(labels), len(goals))
    each_once = [
        table(layout, label, pseudo[k][label], int(goal), variant)
        for variant, label, (k, goal) in product(agent.variants, labels, enumerate(goals))
    ]
    tables, wanted = np.array(each_once), np.tile(goals, shape[0] * shape[1])
    best = qlearning.success(layout, qlearning.greedy(qlearning.optimal(layout, tables, wanted, GAMMA)), wanted)
    tables, each = np.repeat(tables, agent.seeds, axis=0), np.repeat(wanted, agent.seeds)
    log = Log(scratch / "log.npz", keep=set())

    def follow(step: int, policy: np.ndarray) -> bool:
        log.add(step, qlearning.success(layout, policy, each), np.empty(0))
        report(agent.every, f"{name(setting)} success {log.curve[-1].mean():.3f}")
        return log.seconds > 3600 * hours

    agent.train(layout, tables, each, agent, np.random.default_rng(setting["seed"]), scratch, follow)
    curves = log.curve.T.reshape(*shape, agent.seeds, len(log.steps))
    area = statistics.area(log.steps, curves).mean(axis=(2, 3)).round(4)
    metrics = {
        "auc": {v: dict(zip(labels, row, strict=True)) for v, row in zip(agent.variants, area.tolist(), strict=True)},
        "rewards": labels,
        "variants": list(agent.variants),
        "goals": goals.tolist(),
        "steps": log.steps,
    }
    budget = {"agents": len(each)} | log.budget(agent.settings())
    # float16 is finer than one state in a thousand
    return metrics, budget, {"curves": curves.astype(np.float16), "optimal": best.reshape(shape).astype(np.float32)}


EXPERIMENT = Experiment(
    settings(),
    run,
    lambda setting: agent_of(setting).settings().steps,
    smoke(),
    stage=lambda setting: 1 if setting["agent"] == "tabular" else 2,  # see `best_dimension`
)
