"""PointRoom and PointMaze: a ball that rolls between walls, simulated by PyBullet (appendix D of the paper)."""

from __future__ import annotations

import contextlib
import os
import sys
import weakref
from collections.abc import Iterator
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike

from lapbook.envs.grid import no_reward_no_end
from lapbook.floors import RADIUS, clearance, floor_size, is_free, sample_free, wall_boxes
from lapbook.layouts import Layout, check_layout

# Walls are lines on the map and need some thickness in the physics. Bullet lets bodies sink into each other by 1e-5;
# this half-thickness is larger, so centres stay in the free space of the map itself.
HALF_THICKNESS = 1e-3
DRAWN_HALF_THICKNESS = 0.12  # in pictures only
BALLS, WALLS = 1, 2  # collision groups: balls meet walls, not each other


class Balls:
    """n balls in one physics world that touch the walls and ignore one another.

    `move(angles)` rolls every ball `step` along its own direction, sliding along whatever walls it meets. `step` is
    small (half the ball's diameter); it is made in `substeps` physics steps, so that a ball can turn a corner in it.

    >>> balls = Balls(Layout("#####\\n#...#\\n#####"), n=2)
    >>> _ = balls.place(np.array([[1.0, 1.0], [3.4, 1.0]]))
    >>> balls.move(np.zeros(2)).round(2).tolist()  # by 0.5 to the right; the wall at x = 4 stops a ball at 3.5
    [[1.5, 1.0], [3.5, 1.0]]
    """

    def __init__(self, layout: Layout, n: int, step: float = 0.5, substeps: int = 2) -> None:
        if substeps != int(substeps) or substeps < 1:
            raise ValueError(f"substeps must be a whole number of at least 1, got {substeps}")
        if not 0 < step / substeps <= RADIUS / 2:
            raise ValueError(
                f"step/substeps must lie in (0, {RADIUS / 2}], or a ball may jump a wall: got {step}/{substeps}"
            )
        self.layout, self.n, self.step, self.substeps = check_layout(layout), n, step, int(substeps)
        bullet = _pybullet()
        client = bullet.connect(bullet.DIRECT)
        if client < 0:
            raise RuntimeError("PyBullet has no free physics client: close() environments that are no longer used")
        self.close = weakref.finalize(self, bullet.disconnect, client)

        def use(name: str) -> Any:
            return partial(getattr(bullet, name), physicsClientId=client)

        self._place, self._where = use("resetBasePositionAndOrientation"), use("getBasePositionAndOrientation")
        self._push, self._advance = use("resetBaseVelocity"), use("stepSimulation")
        self._camera = use("getCameraImage")
        # One unit of time is one action. There is no gravity: the floor is only drawn.
        use("setTimeStep")(1 / substeps)
        # Contacts are seen a substep ahead, so that a ball stops at a wall instead of sinking into it first; the other
        # two settings make its path independent of the balls around it, to the last bit.
        use("setPhysicsEngineParameter")(
            contactBreakingThreshold=1.5 * step / substeps,
            deterministicOverlappingPairs=1,
            solverResidualThreshold=0,
        )
        shape, look, body = use("createCollisionShape"), use("createVisualShape"), use("createMultiBody")
        mask, dynamics = use("setCollisionFilterGroupMask"), use("changeDynamics")
        smooth = {"lateralFriction": 0, "restitution": 0}
        for x0, y0, x1, y1 in wall_boxes(layout):
            half = np.array([x1 - x0, y1 - y0, 2]) / 2
            flat = np.array([1, 1, 0])
            solid = shape(bullet.GEOM_BOX, halfExtents=half + HALF_THICKNESS * flat)
            thick = half + DRAWN_HALF_THICKNESS * flat
            drawn = look(bullet.GEOM_BOX, halfExtents=thick, rgbaColor=[0.25, 0.27, 0.32, 1])
            wall = body(0, solid, drawn, basePosition=[(x0 + x1) / 2, (y0 + y1) / 2, 0])
            mask(wall, -1, WALLS, BALLS)
            dynamics(wall, -1, **smooth)
        width, height = floor_size(layout)
        floor = look(bullet.GEOM_BOX, halfExtents=[width / 2, height / 2, 0.01], rgbaColor=[0.93, 0.93, 0.9, 1])
        body(0, -1, floor, basePosition=[width / 2, height / 2, 1])
        solid = shape(bullet.GEOM_SPHERE, radius=RADIUS)
        drawn = look(bullet.GEOM_SPHERE, radius=RADIUS, rgbaColor=[0.85, 0.1, 0.1, 1])
        x, y = layout.cells[0][::-1].tolist()  # until they are placed
        self._ids = [body(1, solid, drawn, basePosition=[x, y, 0]) for _ in range(n)]
        for ball in self._ids:
            mask(ball, -1, BALLS, WALLS)
            awake = bullet.ACTIVATION_STATE_DISABLE_SLEEPING
            dynamics(ball, -1, linearDamping=0, angularDamping=0, activationState=awake, **smooth)

    def place(self, positions: np.ndarray) -> np.ndarray:
        """Put ball k at positions[k], shape (n, 2)."""
        for ball, (x, y) in zip(self._ids, positions.tolist(), strict=True):
            self._place(ball, [x, y, 0], [0, 0, 0, 1])
        return self.positions()

    def positions(self) -> np.ndarray:
        """Centres of the balls, shape (n, 2)."""
        return np.array([self._where(ball)[0][:2] for ball in self._ids])

    def move(self, angles: np.ndarray) -> np.ndarray:
        """Roll ball k by one step in direction angles[k], shape (n,); returns the new centres, shape (n, 2)."""
        velocities = self.step * np.stack([np.cos(angles), np.sin(angles), np.zeros(self.n)], axis=1)
        for _ in range(self.substeps):
            # A wall takes the normal part of the velocity away; the ball pushes on in its direction.
            for ball, velocity in zip(self._ids, velocities.tolist(), strict=True):
                self._push(ball, velocity, [0, 0, 0])
            self._advance()
        return self.positions()

    def picture(self, size: int = 480) -> np.ndarray:
        """The floor from above, y downwards as on the map: (size, size, 3) for a square floor."""
        bullet = _pybullet()
        extent = floor_size(self.layout) + 1
        x, y = floor_size(self.layout) / 2
        # From below the floor, where the y axis points down the page, and from far away, so that all is to scale.
        far = 40 * extent.max()
        view = bullet.computeViewMatrix([x, y, -far], [x, y, 0], [0, -1, 0])
        right, top = extent / 2 * 0.9  # the half-extents as seen on the near plane, at 0.9 of the distance
        projection = bullet.computeProjectionMatrix(-right, right, -top, top, 0.9 * far, 1.1 * far)
        columns, rows = np.rint(size * extent / extent.max()).astype(int).tolist()
        image = self._camera(
            columns, rows, view, projection, lightDirection=[1, -1, -5], shadow=0,
            renderer=bullet.ER_TINY_RENDERER,
        )[2]  # fmt: skip
        return np.reshape(image, (rows, columns, 4))[..., :3].astype(np.uint8)


def observe(layout: Layout, positions: ArrayLike) -> np.ndarray:
    """Positions on the floor, shape (..., 2), scaled to [-1, 1]: what the agent sees.

    >>> observe(check_layout("PointRoom"), [[10, 10], [20, 5]]).tolist()
    [[0.0, 0.0], [1.0, -0.5]]
    """
    return (2 * np.asarray(positions) / floor_size(layout) - 1).astype(np.float32)


def positions_of(layout: Layout, observations: ArrayLike) -> np.ndarray:
    """Where on the floor an agent is that sees this, shape (..., 2): the inverse of `observe`.

    >>> positions_of(check_layout("PointRoom"), [1, -0.5]).tolist()
    [20.0, 5.0]
    """
    return (np.asarray(observations, dtype=float) + 1) * floor_size(layout) / 2


def spaces() -> tuple[gymnasium.spaces.Box, gymnasium.spaces.Box]:
    """Observation and action space of one ball, new ones each time: a space carries its own random numbers.

    >>> [space.shape for space in spaces()]
    [(2,), (1,)]
    """
    box = gymnasium.spaces.Box
    return box(-1, 1, (2,), np.float32), box(0, np.float32(2 * np.pi), (1,), np.float32)


class PointEnv(gymnasium.Env):
    """A ball of diameter 1 on the floor of a layout; the action in [0, 2π] is the direction of its next step.

    Angles turn from the x axis towards the y axis, which points down the map. The position on the floor is in
    `info["state"]`; `reset(options={"state": (x, y)})` starts there, otherwise the start is uniform over the free
    space. The reward is 0 and an episode has no end of its own.

    >>> env = PointEnv("PointRoom")
    >>> _ = env.reset(options={"state": (2.5, 2.5)})
    >>> env.step(np.array([np.pi / 2]))[-1]["state"].round(2).tolist()  # down the map
    [2.5, 3.0]
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}

    def __init__(
        self, layout: Layout | str, step: float = 0.5, substeps: int = 2, render_mode: str | None = None
    ) -> None:
        self.layout, self.render_mode = check_layout(layout), render_mode
        self.observation_space, self.action_space = spaces()
        self._balls = Balls(self.layout, 1, step, substeps)

    def _seen(self) -> tuple[np.ndarray, dict[str, Any]]:
        state = self._balls.positions()[0]
        return observe(self.layout, state), {"state": state}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start at `options["state"]`, or anywhere free."""
        super().reset(seed=seed)
        self._balls.place(_starts(self.layout, options, (1, 2), self.np_random))
        return self._seen()

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Roll; returns observation, 0.0, False, False, {"state": (x, y)}."""
        self._balls.move(_checked_angles(action, (1,)))
        observation, info = self._seen()
        return observation, 0.0, False, False, info

    def render(self) -> np.ndarray | None:
        """The floor from above for `render_mode="rgb_array"`."""
        return self._balls.picture() if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        """Free the physics client."""
        self._balls.close()


class PointVectorEnv(gymnasium.vector.VectorEnv):
    """`num_envs` balls in one physics world.

    >>> envs = PointVectorEnv("PointRoom", num_envs=2)
    >>> _ = envs.reset(options={"state": [[2.5, 2.5], [2.5, 2.5]]})
    >>> envs.step(np.array([[0.0], [np.pi]]))[-1]["state"].round(2).tolist()  # apart, not into each other
    [[3.0, 2.5], [2.0, 2.5]]
    """

    metadata = {"autoreset_mode": gymnasium.vector.AutoresetMode.DISABLED}

    def __init__(
        self, layout: Layout | str, num_envs: int = 1, step: float = 0.5, substeps: int = 2, render_mode: None = None
    ) -> None:
        self.layout, self.num_envs, self.render_mode = check_layout(layout), num_envs, render_mode
        self.single_observation_space, self.single_action_space = spaces()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._balls = Balls(self.layout, num_envs, step, substeps)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start at `options["state"]`, shape (num_envs, 2), or anywhere free."""
        super().reset(seed=seed)
        states = self._balls.place(_starts(self.layout, options, (self.num_envs, 2), self.np_random))
        return observe(self.layout, states), {"state": states}

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Roll all balls; actions of shape (num_envs, 1)."""
        states = self._balls.move(_checked_angles(actions, (self.num_envs, 1)).ravel())
        return observe(self.layout, states), *no_reward_no_end(self.num_envs), {"state": states}

    def close_extras(self, **kwargs: Any) -> None:
        """Free the physics client."""
        self._balls.close()


def _starts(layout: Layout, options: dict | None, shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    if not options or "state" not in options:
        return sample_free(layout, shape[0], rng=rng)
    states = np.asarray(options["state"], dtype=float)
    if states.shape == (2,) and shape[0] == 1:
        states = states[None]
    if states.shape != shape:
        raise ValueError(f"state must be positions (x, y) of shape {shape}, got shape {states.shape}")
    blocked = ~is_free(layout, states)
    if blocked.any():
        x, y = states[blocked][0]
        gap = clearance(layout, states[blocked][0])
        width, height = floor_size(layout)
        raise ValueError(
            f"state ({x:g}, {y:g}) is not free: {gap:.3g} from the nearest wall of {layout.name}, "
            f"a ball needs {RADIUS} inside the floor [0, {width:g}]×[0, {height:g}]"
        )
    return states


def _checked_angles(actions: Any, shape: tuple[int, ...]) -> np.ndarray:
    angles = np.asarray(actions, dtype=float)
    if angles.shape != shape:
        raise ValueError(f"action must have shape {shape}, got {angles.shape}")
    allowed = (angles >= 0) & (angles <= float(np.float32(2 * np.pi)))  # a hair above 2π
    if not allowed.all():
        raise ValueError(f"action must be an angle in [0, 2π]: got {angles[~allowed].ravel()[0]}")
    return angles


def has_physics() -> bool:
    """Whether PyBullet can be imported.

    >>> from importlib.util import find_spec
    >>> has_physics() == (find_spec("pybullet") is not None)
    True
    """
    try:
        _pybullet()
    except ImportError:
        return False
    return True


def _pybullet() -> Any:
    try:
        with _silent_stderr():
            import pybullet
    except ImportError as error:
        raise ImportError(
            "the Point environments need PyBullet: pip install 'lapbook[point]' (it has wheels for Python 3.11)"
        ) from error
    return pybullet


@contextlib.contextmanager
def _silent_stderr() -> Iterator[None]:
    """PyBullet greets with the date of its build, past Python's own stderr."""
    sys.stderr.flush()
    with open(os.devnull, "wb") as nowhere:
        kept = os.dup(2)
        os.dup2(nowhere.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
