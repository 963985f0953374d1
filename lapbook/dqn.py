"""Deep Q-learning for several agents at once on one map (appendices E.2 and E.3, Tables 4 and 5).

The agents share the map and what they see of it; each has rewards, an end, a network and a memory of its own. Their
networks are run as one, by batched matrix products, and nothing is shared between them: a batch of agents learns what
its members would learn alone. States are few, so what a target network says is tabulated once between two of its
updates.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lapbook.checkpoints import adam_state, digest, flat, read_checkpoint, restore_adam, write
from lapbook.layouts import ACTIONS, Layout, Seed

Callback = Callable[[int, Callable[[], np.ndarray]], Any]
"""Called with the step and a function that gives the action values of all agents then, shape (agents, n, 4); learning
ends where it returns True."""


@dataclass(frozen=True)
class Settings:
    """Everything that decides the learning besides the world, the rewards and the seed."""

    steps: int
    """Steps in the environment, and, once learning has started, as many gradient steps."""
    length: int
    """Steps of an episode; then the agent begins elsewhere, but the value of where it was does not become 0."""
    gamma: float
    """Discount γ in [0, 1). With 0 only the next reward counts."""
    epsilon: float
    """Share of actions chosen at random. The paper does not state it."""
    lr: float = 1e-3
    """Adam's step size."""
    batch: int = 128
    """Transitions a gradient step, drawn from the memory with replacement."""
    memory: int = 100_000
    """Transitions that are remembered, the latest ones."""
    starts: int = 5_000
    """Steps in the environment before the first gradient step."""
    update_every: int = 50
    """Steps between two updates of the target network."""
    update_rate: float = 0.05
    """Share of the learned weights that goes into the target network at an update."""
    width: int = 256
    """Units in each of three hidden layers (Table 2)."""

    def __post_init__(self) -> None:
        for name in ("steps", "length", "batch", "memory", "update_every", "width"):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or value < 1:
                raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")
        if not isinstance(self.starts, int | np.integer) or not 0 <= self.starts < self.steps:
            raise ValueError(f"starts must be a whole number with 0 ≤ starts < steps = {self.steps}, got {self.starts}")
        if not 0 <= self.gamma < 1:
            raise ValueError(f"gamma must lie in [0, 1), got {self.gamma}")
        for name in ("epsilon", "update_rate"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must lie in [0, 1], got {getattr(self, name)}")
        if not 0 < self.lr < math.inf:
            raise ValueError(f"lr must be positive and finite, got {self.lr}")


# ε is ours: options are learned from a random walk, since with γ = 0 no reward depends on what is done later; for goals
# it is 0.2, as in the public code on which the paper builds.
PRESETS = {
    "options": Settings(steps=100_000, length=50, gamma=0.0, epsilon=1.0),
    "shaping": Settings(steps=200_000, length=150, gamma=0.99, epsilon=0.2),
    "smoke": Settings(steps=60, length=20, gamma=0.9, epsilon=0.5, starts=20, batch=16, width=16),
}


def preset(name: str, **changes: Any) -> Settings:
    """`"options"` is Table 4, `"shaping"` Table 5, `"smoke"` only shows that everything runs; with changes.

    >>> preset("options").gamma, preset("shaping").gamma, preset("shaping", gamma=0.9).gamma
    (0.0, 0.99, 0.9)
    """
    if name not in PRESETS:
        raise ValueError(f"preset must be one of {', '.join(PRESETS)}: got {name!r}")
    return replace(PRESETS[name], **changes)


class Networks(nn.Module):
    """One network for each agent, three hidden layers: (agents, batch, inputs) → (agents, batch, outputs).

    >>> two = Networks(agents=2, inputs=3, width=5, outputs=4, generator=torch.Generator().manual_seed(0))
    >>> two(torch.zeros(2, 7, 3)).shape
    torch.Size([2, 7, 4])
    """

    def __init__(self, agents: int, inputs: int, width: int, outputs: int, generator: torch.Generator) -> None:
        super().__init__()
        sizes = (inputs, width, width, width, outputs)
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        for a, b in pairwise(sizes):
            for parameters, rows in ((self.weights, a), (self.biases, 1)):  # torch's own rule for a linear layer
                drawn = torch.rand(agents, rows, b, generator=generator)
                parameters.append(nn.Parameter((2 * drawn - 1) / math.sqrt(a)))

    def forward(self, x: Tensor) -> Tensor:  # noqa: D102
        *hidden, (weight, bias) = zip(self.weights, self.biases, strict=True)
        for w, b in hidden:
            x = torch.baddbmm(b, x, w).relu()
        return torch.baddbmm(bias, x, weight)


def train(
    layout: Layout,
    rewards: np.ndarray,
    ends: np.ndarray,
    settings: Settings | str = "options",
    rng: Seed = 0,
    checkpoint: str | Path | None = None,
    every: int = 1000,
    callback: Callback | None = None,
    **changes: Any,
) -> np.ndarray:
    """Action values Q(s, a) of each agent after learning, shape (agents, n, 4).

    `rewards` of shape (agents, n, 4) says what each agent is given for each action in each state, `ends` of shape
    (agents, n) where its episodes end for good. An agent sees its position, `layout.xy`. Episodes begin in states that
    are drawn uniformly from those where the agent's do not end.

    Every `every` steps and at the end comes the callback, then a checkpoint; a run that finds its own checkpoint goes
    on from there to the very same result.

    With γ = 0 the value of an action is its reward, here 1 for "right":

    >>> right = np.tile([0.0, 1.0, 0.0, 0.0], (1, 3, 1))
    >>> Q = train(Layout("..."), right, np.zeros((1, 3), dtype=bool), "smoke", gamma=0.0, lr=0.03)
    >>> Q.shape, Q[0].argmax(axis=1).tolist(), bool(abs(Q - right).max() < 0.5)
    ((1, 3, 4), [1, 1, 1], True)
    """
    settings = preset(settings, **changes) if isinstance(settings, str) else replace(settings, **changes)
    rewards, ends = _checked(layout, rewards, ends)
    if every < 1:
        raise ValueError(f"every must be at least 1 step, got {every}")
    rng = np.random.default_rng(rng)
    about = {"settings": asdict(settings), "data": digest(rewards, ends, layout.moves), "rng": rng.bit_generator.state}
    run = _Run(layout, rewards, ends, settings, rng)
    if checkpoint is not None and Path(checkpoint).exists():
        run.restore(checkpoint, about)
    while run.step < settings.steps:
        run.act()
        if run.step > settings.starts:
            run.learn()
        if run.step % every and run.step < settings.steps:
            continue
        ended = callback is not None and callback(run.step, run.values)
        if checkpoint is not None:  # after the callback, which a killed run may thus see twice but never misses
            run.save(checkpoint, about)
        if ended:
            break
    return run.values()


class _Run:
    """Everything that changes while agents learn."""

    def __init__(
        self, layout: Layout, rewards: np.ndarray, ends: np.ndarray, settings: Settings, rng: np.random.Generator
    ) -> None:
        self.settings, self.rng, self.ends = settings, rng, ends
        agents = len(ends)
        self.agent = np.arange(agents)
        # A transition is one number, p = 4 s + a; where it leads and what it gives are tables.
        self.leads = layout.moves.ravel()
        self.rewards = torch.tensor(rewards.reshape(agents, -1), dtype=torch.float32)
        self.goes_on = torch.tensor(~ends[:, self.leads], dtype=torch.float32)
        self.seen = torch.tensor(layout.xy.astype(np.float32))
        generator = torch.Generator().manual_seed(int(rng.integers(2**63)))
        self.online = Networks(agents, self.seen.shape[1], settings.width, len(ACTIONS), generator)
        self.target = {name: tensor.clone() for name, tensor in self.online.state_dict().items()}
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=settings.lr, fused=True)
        # Of each agent the states where its episodes do not end come first, and one of these is drawn.
        self.counts, self.begins = (~ends).sum(axis=1), np.argsort(ends, axis=1, kind="stable")
        self.step, self.at, self.age = 0, self.fresh(), rng.integers(settings.length, size=agents)
        self.memory = np.zeros((agents, settings.memory), dtype=np.int32)
        self.tabulate()

    def fresh(self) -> np.ndarray:
        """A state to begin in, for each agent."""
        return self.begins[self.agent, self.rng.integers(self.counts)]

    def values(self) -> np.ndarray:
        """Q of all agents in all states, shape (agents, n, 4)."""
        with torch.no_grad():
            return self.online(self.everywhere).numpy()

    @property
    def everywhere(self) -> Tensor:
        return self.seen.expand(len(self.agent), *self.seen.shape)

    def act(self) -> None:
        """One step of every agent, ε-greedy, remembered."""
        rng, settings = self.rng, self.settings
        action = rng.integers(len(ACTIONS), size=len(self.agent))
        greedy = rng.random(len(self.agent)) >= settings.epsilon
        if greedy.any():
            with torch.no_grad():
                best = self.online(self.seen[self.at][:, None]).argmax(dim=2)[:, 0].numpy()
            action = np.where(greedy, best, action)
        pair = len(ACTIONS) * self.at + action
        self.memory[:, self.step % settings.memory] = pair
        self.at, self.age, self.step = self.leads[pair], self.age + 1, self.step + 1
        over = self.ends[self.agent, self.at] | (self.age >= settings.length)
        self.at, self.age = np.where(over, self.fresh(), self.at), np.where(over, 0, self.age)

    def learn(self) -> None:
        """One gradient step on (Q(s, a) - r - γ max Q'(s', ·))², and sometimes one of the target network Q'."""
        settings = self.settings
        known = min(self.step, settings.memory)
        drawn = self.rng.integers(known, size=(len(self.agent), settings.batch))
        pairs = np.take_along_axis(self.memory, drawn, axis=1)
        # The network is asked once for each state of the batch, however often it was drawn: a third less to compute.
        among = np.zeros(self.ends.shape, dtype=bool)
        np.put_along_axis(among, pairs // len(ACTIONS), True, axis=1)
        asked = np.argsort(~among, axis=1, kind="stable")[:, : among.sum(axis=1).max()]
        place = np.take_along_axis(among.cumsum(axis=1) - 1, pairs // len(ACTIONS), axis=1)
        q = self.online(self.seen[asked])
        chosen = q.flatten(1).gather(1, torch.from_numpy(len(ACTIONS) * place + pairs % len(ACTIONS)))
        error = chosen - self.aims.gather(1, torch.from_numpy(pairs).long())
        loss = (error**2).mean(dim=1).sum()  # a sum: no agent's gradient feels another
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        if self.step % settings.update_every and self.step < settings.steps:
            return
        if not loss.isfinite():
            raise FloatingPointError(f"loss must stay finite, but did not at step {self.step}: try a smaller lr")
        if self.step % settings.update_every == 0 and settings.gamma > 0:
            for name, tensor in self.online.state_dict().items():
                self.target[name].lerp_(tensor, settings.update_rate)
            self.tabulate()

    def tabulate(self) -> None:
        """r + γ max_a' Q'(s', a') of every transition, shape (agents, 4 n), until Q' changes."""
        self.aims = self.rewards
        if self.settings.gamma > 0:
            with torch.no_grad():
                best = torch.func.functional_call(self.online, self.target, (self.everywhere,)).amax(dim=2)
            self.aims = self.rewards + self.settings.gamma * self.goes_on * best[:, self.leads]

    def save(self, path: str | Path, about: dict[str, Any]) -> None:
        tensors = flat("online", self.online.state_dict()) | flat("target", self.target) | adam_state(self.optimizer)
        known = min(self.step, self.settings.memory)
        tensors["memory"] = torch.from_numpy(self.memory[:, :known].copy())
        tensors["at"], tensors["age"] = torch.from_numpy(self.at), torch.from_numpy(self.age)
        write(path, "checkpoint", tensors, {**about, "step": self.step, "now": self.rng.bit_generator.state})

    def restore(self, path: str | Path, about: dict[str, Any]) -> None:
        """Bring everything to where the checkpoint was written."""
        tensors, found = read_checkpoint(path, about)
        try:
            self.online.load_state_dict({name: tensors[f"online.{name}"] for name in self.target})
            self.target = {name: tensors[f"target.{name}"] for name in self.target}
            restore_adam(self.optimizer, tensors)
            known = tensors["memory"].numpy()
            self.memory[:, : known.shape[1]] = known
            self.at, self.age = tensors["at"].numpy(), tensors["age"].numpy()
            self.rng.bit_generator.state, self.step = found["now"], int(found["step"])
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise ValueError(f"checkpoint {path} is incomplete, it may be damaged: delete it to begin anew") from error
        self.tabulate()


def _checked(layout: Layout, rewards: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rewards, ends = np.asarray(rewards, dtype=np.float32), np.asarray(ends)
    shape = (len(rewards), layout.n, len(ACTIONS))
    if rewards.ndim != 3 or rewards.shape != shape or len(rewards) < 1:
        raise ValueError(f"rewards must have shape (agents, {layout.n}, {len(ACTIONS)}), got {rewards.shape}")
    if not np.isfinite(rewards).all():
        raise ValueError(f"rewards must be finite: those of agent {np.argwhere(~np.isfinite(rewards))[0][0]} are not")
    if ends.shape != shape[:2] or ends.dtype != bool:
        raise ValueError(f"ends must be booleans of shape {shape[:2]}, got {ends.dtype} {ends.shape}")
    if ends.all(axis=1).any():
        raise ValueError(f"ends must leave a state to begin in: agent {ends.all(axis=1).argmax()} has none")
    return rewards, ends
