"""Tabular Q-learning, many agents side by side on one map: what reward shaping does when nothing is approximated.

The agents share the map and nothing else: each has its reward table, its goal and its random numbers. One step of all
of them is a handful of array operations, so a thousand agents cost little more than ten.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lapbook.layouts import Layout, Seed

BLOCK = 50  # steps whose random numbers are drawn at once
TIE = 1e-5  # the noise that breaks ties, far below any reward that matters


@dataclass(frozen=True)
class Settings:
    """How the agents learn. Steps, length and gamma are those of the paper's table for DQN."""

    steps: int = 200_000
    """Steps of each agent in its world."""
    length: int = 150
    """Steps after which an episode that has not reached its goal is broken off."""
    gamma: float = 0.99
    """Discount factor."""
    lr: float = 1.0
    """Learning rate. In a deterministic world the newest target is the best one, and smaller rates are only slower."""
    epsilon: float = 0.2
    """Share of random actions, constant as in the baseline's public code."""
    initial: float = 0.0
    """Q of every action at the start. No reward is positive, so 0 promises too much of whatever is yet untried."""

    def __post_init__(self) -> None:
        for label in ("steps", "length"):
            if getattr(self, label) < 1:
                raise ValueError(f"{label} must be at least 1, got {getattr(self, label)}")
        if not 0 <= self.gamma < 1:
            raise ValueError(f"gamma must be at least 0 and less than 1, got {self.gamma}")
        if not 0 < self.lr <= 1:
            raise ValueError(f"lr must be more than 0 and at most 1, got {self.lr}")
        if not 0 <= self.epsilon <= 1:
            raise ValueError(f"epsilon must be between 0 and 1, got {self.epsilon}")
        if not np.isfinite(self.initial):
            raise ValueError(f"initial must be finite, got {self.initial}")


def train(
    layout: Layout,
    rewards: np.ndarray,
    goals: np.ndarray,
    settings: Settings | None = None,
    rng: Seed = 0,
    every: int = 0,
    callback: Callable[[int, np.ndarray], object] | None = None,
) -> np.ndarray:
    """Q of K agents after their steps, shape (K, n, 4), from reward tables (K, n, 4) and goal states (K,).

    An episode starts in a random state other than the goal. It ends in the goal, which has value 0, or is broken off
    after `length` steps; that is no property of the state it was in, so its last target looks ahead as all others do.
    After each `every` steps `callback(step, Q)` sees the table, not a copy; if it returns something true, they stop.

    Ties are broken at random, by noise of 1e-5 on the first Q: by the order of the action numbers every agent would try
    left first, and whether its goal lies to the left would be part of the result.

    >>> corridor, goals = Layout("..."), np.array([2])  # and each step costs 1
    >>> Q = train(corridor, np.full((1, 3, 4), -1.0), goals, Settings(steps=500, gamma=0.5))
    >>> Q[0].max(axis=1).round(3).tolist(), Q[0, :2].argmax(axis=1).tolist()  # twice to the right
    ([-1.5, -1.0, 0.0], [1, 1])
    """
    settings = settings or Settings()
    rewards, goals = _checked(layout, rewards, goals)
    if every < 0:
        raise ValueError(f"every must not be negative, got {every}")
    rng = np.random.default_rng(rng)
    K, n, lr, gamma = len(goals), layout.n, np.float32(settings.lr), np.float32(settings.gamma)
    R = np.ascontiguousarray(rewards, dtype=np.float32).ravel()
    moves = layout.moves.ravel()
    first = np.arange(K) * n  # of each agent's rows in Q
    Q = rng.random((K * n, 4), dtype=np.float32)
    Q *= TIE * max(1.0, abs(settings.initial))  # more than a rounding error, whatever the size of Q
    np.subtract(settings.initial, Q, out=Q)
    Q[first + goals] = 0  # no episode goes on from there, so it stays 0
    flat, V, best = Q.ravel(), Q.max(axis=1), Q.argmax(axis=1)  # max Q(s, ·) and where, kept up to date with Q
    s, clock = _starts(rng, (K,), n, goals), np.zeros(K, dtype=np.int32)
    for step in range(settings.steps):
        t = step % BLOCK
        if t == 0:
            chosen, explores = _explorations(rng, (BLOCK, K), settings.epsilon)
            starts = _starts(rng, (BLOCK, K), n, goals)
        here = first + s
        action = best[here]
        np.copyto(action, chosen[t], where=explores[t])
        reached, entry = moves[4 * s + action], 4 * here + action
        # Q(s, a) ← Q(s, a) + lr (r + γ max Q(s', ·) - Q(s, a))
        old = flat[entry]
        flat[entry] = old + lr * (R[entry] + gamma * V[first + reached] - old)
        best[here] = action = Q.take(here, axis=0).argmax(axis=1)
        V[here] = flat[4 * here + action]
        clock += 1
        ended = (reached == goals) | (clock >= settings.length)
        s = np.where(ended, starts[t], reached)
        clock[ended] = 0
        if every and callback and (step + 1) % every == 0 and callback(step + 1, Q.reshape(K, n, 4)):
            break
    return Q.reshape(K, n, 4)


def greedy(Q: np.ndarray) -> np.ndarray:
    """The best action of each state, shape (K, n), from Q of shape (K, n, 4).

    >>> greedy(np.array([[[0, 1, 0, 0], [2, 1, 0, 3]]])).tolist()
    [[1, 3]]
    """
    return np.argmax(Q, axis=-1)


def success(layout: Layout, policy: np.ndarray, goals: np.ndarray, steps: int = 150) -> np.ndarray:
    """Share of the states, other than the goal, from which each policy is there within `steps`; shape (K,).

    For policies (K, n) and goals (K,). World and policy are deterministic, so this is exact: where each state leads in
    1, 2, 4, … steps is found by doubling, and `steps` is put together from these.

    >>> corridor = Layout("....")
    >>> success(corridor, np.array([[1, 1, 1, 1], [0, 1, 1, 1]]), np.array([3, 3]), steps=2).round(3).tolist()
    [0.667, 0.667]
    """
    policy, goals = np.asarray(policy), _checked_goals(layout, goals)
    if policy.shape != (len(goals), layout.n):
        raise ValueError(f"policy must have shape ({len(goals)}, {layout.n}), goals by states: got {policy.shape}")
    if steps < 0:
        raise ValueError(f"steps must not be negative, got {steps}")
    stride = layout.moves[np.arange(layout.n), policy]
    stride[np.arange(len(goals)), goals] = goals
    at = np.broadcast_to(np.arange(layout.n), stride.shape)
    while steps:
        if steps % 2:
            at = np.take_along_axis(stride, at, axis=1)
        steps //= 2
        if steps:
            stride = np.take_along_axis(stride, stride, axis=1)
    return ((at == goals[:, None]).sum(axis=1) - 1) / (layout.n - 1)


def optimal(
    layout: Layout, rewards: np.ndarray, goals: np.ndarray, gamma: float = 0.99, tolerance: float = 1e-9
) -> np.ndarray:
    """Q of the best policies, shape (K, n, 4), by value iteration: what the agents would learn in the end.

    For reward tables (K, n, 4) and goals (K,), where episodes end with value 0. The values are within `tolerance`.

    >>> Q = optimal(Layout("...."), np.full((1, 4, 4), -1.0), np.array([3]), gamma=0.5)
    >>> Q[0].max(axis=1).tolist()  # -(1 - γ^k)/(1 - γ) at k steps
    [-1.75, -1.5, -1.0, 0.0]
    """
    rewards, goals = _checked(layout, rewards, goals)
    Settings(gamma=gamma)  # refuses what is not a discount
    V, each = np.zeros(rewards.shape[:2]), np.arange(len(goals))
    while True:
        Q = rewards + gamma * V[:, layout.moves]
        Q[each, goals] = 0
        change, V = Q.max(axis=-1) - V, Q.max(axis=-1)
        if np.abs(change).max(initial=0) * gamma <= tolerance * (1 - gamma):
            return Q


def _starts(rng: np.random.Generator, shape: tuple[int, ...], n: int, goals: np.ndarray) -> np.ndarray:
    """Uniform over the states other than the goal of each agent, the last axis of the shape."""
    s = rng.integers(n - 1, size=shape, dtype=np.int32).astype(np.intp)
    s += s >= goals
    return s


def _explorations(rng: np.random.Generator, shape: tuple[int, ...], epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """Random actions and whether they are taken, from one draw each: given u < ε, u/ε is uniform again."""
    if epsilon == 0:
        return np.zeros(shape, dtype=np.intp), np.zeros(shape, dtype=bool)
    chosen = (rng.random(shape, dtype=np.float32) * np.float32(4 / epsilon)).astype(np.intp)
    return chosen, chosen < 4


def _checked(layout: Layout, rewards: np.ndarray, goals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rewards, goals = np.asarray(rewards), _checked_goals(layout, goals)
    if layout.n < 2:
        raise ValueError("layout must have at least two states: one to start in, and a goal")
    if rewards.shape != (len(goals), layout.n, 4):
        raise ValueError(
            f"rewards must have shape ({len(goals)}, {layout.n}, 4), goals by states by actions: got {rewards.shape}"
        )
    if not np.isfinite(rewards).all():
        raise ValueError(f"rewards must be finite: those of agent {np.argwhere(~np.isfinite(rewards))[0][0]} are not")
    return rewards, goals


def _checked_goals(layout: Layout, goals: np.ndarray) -> np.ndarray:
    goals = np.asarray(goals)
    if goals.ndim != 1 or not len(goals) or not np.issubdtype(goals.dtype, np.integer):
        raise ValueError(f"goals must be state numbers of shape (K,): got {goals.dtype} {goals.shape}")
    if not ((goals >= 0) & (goals < layout.n)).all():
        stray = goals[(goals < 0) | (goals >= layout.n)][0]
        raise ValueError(f"goals must be state numbers between 0 and {layout.n - 1}: got {stray}")
    return goals
