"""Gymnasium environments; importing `lapbook` registers them.

| id | dynamics | arguments |
|---|---|---|
| `lapbook/GridRoom-v0`, `lapbook/GridMaze-v0` | MiniGrid, 4 actions | `obs="xy"` or `"image"` |
| `lapbook/Grid-v0` | the same on any `layout` | `layout`, `obs` |
| `lapbook/PointRoom-v0`, `lapbook/PointMaze-v0` | a ball in PyBullet, action in [0, 2π] | `step`, `substeps` |
| `lapbook/Point-v0` | the same on any `layout` | `layout`, `step`, `substeps` |

They carry no reward and never end: a representation is learned from how states follow one another, and how long an
episode lasts is a choice of whoever collects the data. `gymnasium.make_vec` gives the batched version of each.
"""

import gymnasium

from lapbook.layouts import GRID_MAZE, GRID_ROOM


def register() -> None:
    """Register all environments with Gymnasium."""
    for kind, module in (("Grid", "lapbook.envs.grid"), ("Point", "lapbook.envs.point")):
        for suffix, arguments in (("Room", {"layout": GRID_ROOM}), ("Maze", {"layout": GRID_MAZE}), ("", {})):
            gymnasium.register(
                f"lapbook/{kind}{suffix}-v0",
                entry_point=f"{module}:{kind}Env",
                vector_entry_point=f"{module}:{kind}VectorEnv",
                kwargs=arguments,
            )
