"""GridRoom and GridMaze: four moves on a map, on MiniGrid (appendix D of the paper)."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector.utils import batch_space
from minigrid.core.constants import COLORS
from minigrid.core.grid import Grid
from minigrid.core.mission import MissionSpace
from minigrid.core.world_object import Wall
from minigrid.minigrid_env import MiniGridEnv
from numpy.typing import ArrayLike

from lapbook.layouts import ACTIONS, Layout, check_layout

OBSERVATIONS = ("xy", "image")


def observe(layout: Layout, states: ArrayLike, obs: str = "xy") -> np.ndarray:
    """What the agent sees in each of the states, an integer array of any shape (...).

    `"xy"` gives the position scaled to [-1, 1], shape (..., 2). `"image"` gives the map from above, one pixel per
    cell in MiniGrid's colours scaled to [0, 1], the agent red: shape (..., rows, columns, 3).

    >>> corridor = Layout("#####\\n#...#\\n#####")
    >>> observe(corridor, [0, 1, 2]).tolist()
    [[-0.5, 0.0], [0.0, 0.0], [0.5, 0.0]]
    >>> (255 * observe(corridor, 1, "image")[1, :, 0]).round().tolist()  # the red of its middle row; walls are grey
    [100.0, 0.0, 255.0, 0.0, 100.0]
    """
    states = np.asarray(states)
    if obs == "xy":
        return layout.xy[states].astype(np.float32)
    if obs == "image":
        background = np.where(layout.free[..., None], 0, COLORS["grey"] / 255).astype(np.float32)
        images = np.broadcast_to(background, (states.size, *background.shape)).copy()
        row, column = layout.cells[states.ravel()].T
        images[np.arange(states.size), row, column] = COLORS["red"] / 255
        return images.reshape(*states.shape, *background.shape)
    raise ValueError(f"obs must be one of {OBSERVATIONS}, got {obs!r}")


def observation_space(layout: Layout, obs: str) -> gymnasium.spaces.Box:
    """The Gymnasium space of `observe(layout, state, obs)` for one state.

    >>> observation_space(Layout("#####\\n#...#\\n#####"), "image").shape
    (3, 5, 3)
    """
    shape = observe(layout, 0, obs).shape
    return gymnasium.spaces.Box(-1.0 if obs == "xy" else 0.0, 1.0, shape, np.float32)


def no_reward_no_end(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Reward, terminated and truncated of n environments in which nothing of the kind happens, shape (n,) each.

    >>> [entry.tolist() for entry in no_reward_no_end(2)]
    [[0.0, 0.0], [False, False], [False, False]]
    """
    return np.zeros(n), np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)


class GridEnv(MiniGridEnv):
    """An agent on a layout: actions 0…3 are left, right, up, down; a bump into a wall stays in place.

    The state's number is in `info["state"]`. `reset(options={"state": s})` starts there, otherwise the start is
    uniform over all states. The reward is 0 and an episode has no end of its own.

    >>> env = GridEnv(Layout("#####\\n#...#\\n#####"))
    >>> _ = env.reset(options={"state": 1})
    >>> [env.step(1)[-1]["state"] for _ in range(3)]  # to the right, until the wall
    [2, 2, 2]
    """

    def __init__(self, layout: Layout | str, obs: str = "xy", render_mode: str | None = None) -> None:
        layout = check_layout(layout)
        rows, columns = layout.shape
        if min(rows, columns) < 3:
            raise ValueError(f"layout must be at least 3×3 for MiniGrid, got {rows}×{columns}: draw its outer wall")
        super().__init__(
            MissionSpace(lambda: "wander"),
            width=columns,
            height=rows,
            render_mode=render_mode,
            highlight=False,  # the agent sees the whole map, so there is no field of view to mark
        )
        self.layout, self.obs = layout, obs
        self.action_space = gymnasium.spaces.Discrete(len(ACTIONS))
        self.observation_space = observation_space(layout, obs)
        self.state = 0

    def _gen_grid(self, width: int, height: int) -> None:
        self.grid = Grid(width, height)
        for row, column in np.argwhere(~self.layout.free).tolist():
            self.grid.set(column, row, Wall())
        self._stand(int(self.np_random.integers(self.layout.n)))

    def _stand(self, state: int) -> None:
        row, column = self.layout.cells[state]
        self.state, self.agent_pos, self.agent_dir = state, (int(column), int(row)), 0

    def _seen(self) -> tuple[np.ndarray, dict[str, Any]]:
        return observe(self.layout, self.state, self.obs), {"state": self.state}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start in `options["state"]`, or anywhere."""
        super().reset(seed=seed)
        if options and "state" in options:
            self._stand(int(_checked_states(self.layout, options["state"], ())))
        return self._seen()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Move; returns observation, 0.0, False, False, {"state": s}."""
        self._stand(int(self.layout.moves[self.state, _checked_actions(action, ())]))
        self.step_count += 1
        if self.render_mode == "human":
            self.render()
        observation, info = self._seen()
        return observation, 0.0, False, False, info


class GridVectorEnv(gymnasium.vector.VectorEnv):
    """`num_envs` agents on one layout, moved together by one look-up in `layout.moves`.

    >>> envs = GridVectorEnv(Layout("#####\\n#...#\\n#####"), num_envs=2)
    >>> _ = envs.reset(options={"state": [0, 2]})
    >>> envs.step(np.array([1, 0]))[-1]["state"].tolist()  # one to the right, the other to the left
    [1, 1]
    """

    metadata = {"autoreset_mode": gymnasium.vector.AutoresetMode.DISABLED}

    def __init__(self, layout: Layout | str, num_envs: int = 1, obs: str = "xy", render_mode: None = None) -> None:
        self.layout, self.num_envs, self.obs, self.render_mode = check_layout(layout), num_envs, obs, render_mode
        self.single_observation_space = observation_space(self.layout, obs)
        self.single_action_space = gymnasium.spaces.Discrete(len(ACTIONS))
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.states = np.zeros(num_envs, dtype=int)

    def _seen(self) -> tuple[np.ndarray, dict[str, Any]]:
        return observe(self.layout, self.states, self.obs), {"state": self.states.copy()}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start in `options["state"]`, shape (num_envs,), or anywhere."""
        super().reset(seed=seed)
        if options and "state" in options:
            self.states = _checked_states(self.layout, options["state"], (self.num_envs,))
        else:
            self.states = self.np_random.integers(self.layout.n, size=self.num_envs)
        return self._seen()

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Move all agents; actions of shape (num_envs,)."""
        self.states = self.layout.moves[self.states, _checked_actions(actions, (self.num_envs,))]
        observations, infos = self._seen()
        return observations, *no_reward_no_end(self.num_envs), infos


def _checked_actions(actions: Any, shape: tuple[int, ...]) -> np.ndarray:
    names = ", ".join(f"{i} ({name})" for i, name in enumerate(ACTIONS))
    return _checked_integers(actions, shape, "action", len(ACTIONS), names)


def _checked_states(layout: Layout, states: Any, shape: tuple[int, ...]) -> np.ndarray:
    return _checked_integers(states, shape, "state", layout.n, f"a state number 0 … {layout.n - 1}")


def _checked_integers(values: Any, shape: tuple[int, ...], name: str, count: int, allowed: str) -> np.ndarray:
    array = np.asarray(values)
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
    if array.dtype.kind not in "iu" or not ((array >= 0) & (array < count)).all():
        bad = array if array.dtype.kind not in "iu" else array[(array < 0) | (array >= count)].ravel()[0]
        raise ValueError(f"{name} must be {allowed}: got {bad}")
    return array
