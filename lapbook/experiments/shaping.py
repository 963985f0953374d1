"""Figures 8, 13 and 14: which dimension should shape the reward? All rewards of one representation in one record."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from lapbook import qlearning, shaping, statistics
from lapbook.experiments.common import Experiment, Outcome, Report, Setting, representation
from lapbook.layouts import LAYOUTS, Layout
from lapbook.results import name
from lapbook.spectrum import eigenvectors, laplacian

D, GOALS, GAMMA = 10, 10, 0.99
VARIANTS = ("literal", "mixed", "scaled", "potential")
Follow = Callable[[int, np.ndarray], None]
"""Called with the steps done and the greedy policies, shape (K, n)."""


@dataclass(frozen=True)
class Agent:
    """A kind of agent, and how much of it one record holds."""

    train: Callable[[Layout, np.ndarray, np.ndarray, int, int, np.random.Generator, Follow], None]
    """Takes map, reward tables (K, n, 4), goals (K,), steps, steps between two points of the curve, rng and follow."""
    variants: tuple[str, ...] = VARIANTS
    """Of the reward, see `table`."""
    seeds: int = 5
    """Agents for each variant, reward and goal."""
    steps: int = 200_000
    """Of each agent."""
    every: int = 5000
    """Steps between two points of the curve."""


def _tabular(
    layout: Layout,
    rewards: np.ndarray,
    goals: np.ndarray,
    steps: int,
    every: int,
    rng: np.random.Generator,
    follow: Follow,
) -> None:
    def callback(step: int, Q: np.ndarray) -> None:
        follow(step, qlearning.greedy(Q))

    qlearning.train(layout, rewards, goals, qlearning.Settings(steps=steps, gamma=GAMMA), rng, every, callback)


AGENTS: dict[str, Agent] = {"tabular": Agent(_tabular)}


def settings() -> tuple[Setting, ...]:
    """Each agent on both maps: no representation, the exact one, and those that Table 1 learned from positions."""
    runs = [
        ("none", "raw", 1),
        ("truth", "exact", 1),
        ("ggd", "paper", 3),
        ("ggd", "paper-scaled", 3),
        ("gd", "paper", 3),
    ]
    return tuple(
        {"env": env, "agent": agent, "method": method, "preset": preset, "seed": seed}
        for agent, (method, preset, seeds), env in product(AGENTS, runs, ("GridRoom", "GridMaze"))
        for seed in range(seeds)
    )


def vectors_of(setting: Setting) -> np.ndarray | None:
    """The representation (n, d) of a setting, its columns with mean square 1 over the states; None without one."""
    layout = LAYOUTS[setting["env"]]
    if setting["method"] == "none":
        return None
    if setting["method"] == "truth":
        return eigenvectors(layout, D).vectors * np.sqrt(layout.n)
    return representation({**setting, "d": D})


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
    """Train an agent for each variant, reward, goal and seed. It takes about a minute, so it is never cut short."""
    layout, agent = LAYOUTS[setting["env"]], AGENTS[setting["agent"]]
    start = time.perf_counter()
    vectors, goals = vectors_of(setting), shaping.goals(layout, GOALS)
    pseudo = [pseudo_rewards(layout, vectors, int(goal), setting["method"] == "gd") for goal in goals]
    labels = list(pseudo[0])
    shape = (len(agent.variants), len(labels), len(goals))
    tables = [
        table(layout, label, pseudo[k][label], int(goal), variant)
        for variant, label, (k, goal) in product(agent.variants, labels, enumerate(goals))
    ]
    tables, wanted = np.array(tables), np.tile(goals, shape[0] * shape[1])
    best = qlearning.success(layout, qlearning.greedy(qlearning.optimal(layout, tables, wanted, GAMMA)), wanted)
    tables, each = np.repeat(tables, agent.seeds, axis=0), np.repeat(wanted, agent.seeds)
    steps, curve = [], []

    def follow(step: int, policy: np.ndarray) -> None:
        steps.append(step)
        curve.append(qlearning.success(layout, policy, each))
        report(agent.every, f"{name(setting)} success {curve[-1].mean():.3f}")

    agent.train(layout, tables, each, agent.steps, agent.every, np.random.default_rng(setting["seed"]), follow)
    curves = np.stack(curve, axis=-1).reshape(*shape, agent.seeds, len(steps))
    area = statistics.area(steps, curves).mean(axis=(2, 3)).round(4)
    metrics = {
        "auc": {v: dict(zip(labels, row, strict=True)) for v, row in zip(agent.variants, area.tolist(), strict=True)},
        "rewards": labels,
        "variants": list(agent.variants),
        "goals": goals.tolist(),
        "steps": steps,
    }
    budget = {
        "agents": len(each),
        "steps": steps[-1],
        "wall_seconds": round(time.perf_counter() - start, 1),
        "threads": 1,
    }
    # float16 is finer than one state in a thousand
    return metrics, budget, {"curves": curves.astype(np.float16), "optimal": best.reshape(shape).astype(np.float32)}


EXPERIMENT = Experiment(settings(), run, lambda setting: AGENTS[setting["agent"]].steps)
