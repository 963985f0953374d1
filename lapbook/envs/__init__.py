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


def register() -> None:
    """Register all environments with Gymnasium.

    >>> gymnasium.spec("lapbook/GridRoom-v0").kwargs
    {'layout': 'GridRoom'}
    """
    for kind, module in (("Grid", "lapbook.envs.grid"), ("Point", "lapbook.envs.point")):
        for name in (f"{kind}Room", f"{kind}Maze", kind):
            gymnasium.register(
                f"lapbook/{name}-v0",
                entry_point=f"{module}:{kind}Env",
                vector_entry_point=f"{module}:{kind}VectorEnv",
                # by name, so that maps and what they need are imported when an environment is made, not before
                kwargs={} if name == kind else {"layout": name},
            )
