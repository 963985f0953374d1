"""Reward shaping: what an agent on its way to a goal is paid for getting closer to it (section 4.3, appendix E.3).

Pseudo-rewards are functions on the states, shape (n,): 0 at the goal and negative elsewhere, the larger the nearer. A
reward is a table (n, 4), the reward of each action in each state. In the paper it depends on the state arrived at,
which `on_arrival` looks up; only potential-based shaping needs the state that was left as well.
"""

from __future__ import annotations

from numbers import Integral

import numpy as np

from lapbook.layouts import Layout, check_dimension, check_vectors
from lapbook.options import rewards


def state_at(layout: Layout, row: int, column: int) -> int:
    """Number of the state at a cell of the map.

    >>> state_at(Layout("..\\n.#"), 1, 0)
    2
    """
    if not all(isinstance(x, Integral) for x in (row, column)):
        raise ValueError(f"row and column must be whole numbers: got row {row!r}, column {column!r}")
    rows, columns = layout.shape
    if not (0 <= row < rows and 0 <= column < columns):
        raise ValueError(f"row and column must lie on the {rows}×{columns} map: got row {row}, column {column}")
    if not layout.free[row, column]:
        raise ValueError(f"row and column must name a free cell: row {row}, column {column} is a wall")
    return int(layout.index[row, column])


def goals(layout: Layout, number: int) -> np.ndarray:
    """Goals spread over the map, shape (number,): the centre, then whatever is farthest from those already chosen.

    The centre is the state whose farthest state is nearest; ties go to the first state in reading order.

    >>> goals(Layout("......."), 3).tolist()
    [3, 0, 6]
    """
    if not 1 <= number <= layout.n:
        raise ValueError(f"number must be between 1 and the {layout.n} states of the map: got {number}")
    distance = layout.distances()
    chosen = [int(distance.max(axis=1).argmin())]
    while len(chosen) < number:
        chosen.append(int(distance[chosen].min(axis=0).argmax()))
    return np.array(chosen)


def on_arrival(layout: Layout, values: np.ndarray) -> np.ndarray:
    """The reward table r(s, a) = values(s') of shape (n, 4), from values of shape (n,).

    >>> on_arrival(Layout(".."), np.array([-1, 0])).tolist()  # from the left cell only "right" leads to the other
    [[-1.0, 0.0, -1.0, -1.0], [-1.0, 0.0, 0.0, 0.0]]
    """
    return _values(layout, values)[layout.moves]


def sparse(layout: Layout, goal: int) -> np.ndarray:
    """0 at the goal and -1 elsewhere, shape (n,): no shaping.

    >>> sparse(Layout("..."), goal=2).tolist()
    [-1.0, -1.0, 0.0]
    """
    return np.where(np.arange(layout.n) == _goal(layout, goal), 0.0, -1.0)


def by_dimension(layout: Layout, vectors: np.ndarray, dimension: int, goal: int) -> np.ndarray:
    """-(f_i(s) - f_i(g))² of one dimension, counted from 1, of a representation (n, d); shape (n,).

    >>> by_dimension(Layout("..."), np.array([[1, 0], [1, 1], [1, 3]]), 2, goal=0).tolist()
    [-0.0, -1.0, -9.0]
    """
    f = check_dimension(layout, vectors, dimension)
    return -((f - f[_goal(layout, goal)]) ** 2)


def by_all(layout: Layout, vectors: np.ndarray, goal: int) -> np.ndarray:
    """-‖φ(s) - φ(g)‖₂ for a representation (n, d), as in the baseline's paper; shape (n,).

    >>> by_all(Layout(".."), np.array([[0, 0], [3, 4]]), goal=0).tolist()
    [-0.0, -5.0]
    """
    phi = check_vectors(layout, vectors)
    return -np.linalg.norm(phi - phi[_goal(layout, goal)], axis=1)


def by_position(layout: Layout, goal: int) -> np.ndarray:
    """-‖(x, y)(s) - (x, y)(g)‖₂, blind to walls; shape (n,).

    Of the two other corners of a square with a wall in the middle, both are equally far:

    >>> values = by_position(Layout("...\\n.#.\\n..."), goal=0)
    >>> bool(values[2] == values[5] > values[7])
    True
    """
    return by_all(layout, layout.xy, goal).round(12)  # cells that are equally far must not differ by a rounding error


def reachability_aware(layout: Layout, vectors: np.ndarray, eigenvalues: np.ndarray, goal: int) -> np.ndarray:
    """-‖ψ(s) - ψ(g)‖₂ with ψ_i = f_i/√λ_i, for a representation (n, d) and its eigenvalues (d,); shape (n,).

    With all the unit eigenvectors of a graph but the constant one, the square of this distance is the resistance
    between s and g, which is their commute time up to a factor, and in a tree the length of the path:

    >>> from lapbook.spectrum import eigenvectors
    >>> path = Layout("....")
    >>> e = eigenvectors(path, 4)
    >>> (reachability_aware(path, e.vectors[:, 1:], e.values[1:], goal=0) ** 2).round(6).tolist()
    [0.0, 1.0, 2.0, 3.0]
    """
    phi, eigenvalues = check_vectors(layout, vectors), np.asarray(eigenvalues, dtype=float)
    if eigenvalues.shape != phi.shape[1:]:
        raise ValueError(f"eigenvalues must have shape ({phi.shape[1]},), one each: got {eigenvalues.shape}")
    if not (eigenvalues > 0).all():  # also where one is NaN
        i = int(np.argmin(eigenvalues > 0))
        raise ValueError(f"eigenvalues must be positive, leave the constant eigenvector out: got {eigenvalues[i]:g}")
    return by_all(layout, phi / np.sqrt(eigenvalues), goal)


def value_at(distance: np.ndarray, gamma: float) -> np.ndarray:
    """What the sparse reward is worth k steps from the goal: -(1 - γ^(k-1))/(1 - γ), 0 for k ≤ 1; shape of `distance`.

    The potential that needs no more learning is this one at the length of the shortest path. With a lower bound of that
    length, such as the resistance from any number of eigenvectors (see `reachability_aware`), it promises too much
    everywhere, as 0 does, but less so; so agents still find the goal from everywhere, and waste less on the way.

    >>> value_at(np.array([0, 1, 2, 3]), gamma=0.5).tolist()
    [0.0, 0.0, -1.0, -1.5]
    """
    if not 0 <= gamma < 1:
        raise ValueError(f"gamma must be at least 0 and less than 1, got {gamma}")
    distance = np.asarray(distance, dtype=float)
    if not (distance >= 0).all():
        raise ValueError("distance must not be negative, nor NaN")
    return (gamma ** np.maximum(distance - 1, 0) - 1) / (1 - gamma)


def scaled(values: np.ndarray) -> np.ndarray:
    """A pseudo-reward stretched to reach from -1 to 0, the range of the sparse reward; shape (n,).

    >>> scaled(np.array([-8, -6, -4])).tolist()
    [-1.0, -0.5, 0.0]
    """
    values = np.asarray(values, dtype=float)
    span = np.ptp(values)
    if not span > 0:  # also where one is NaN
        raise ValueError("values must be finite and not all equal, or there is nothing to scale")
    return (values - values.max()) / span


def mixed(pseudo: np.ndarray, sparse: np.ndarray, weight: float = 0.5) -> np.ndarray:
    """weight·pseudo + (1 - weight)·sparse, for two arrays of one shape; half and half in the baseline's public code.

    >>> mixed(np.array([-4.0, 0.0]), np.array([-1.0, 0.0]), weight=0.25).tolist()
    [-1.75, 0.0]
    """
    if np.shape(pseudo) != np.shape(sparse):
        raise ValueError(f"pseudo and sparse must have one shape: got {np.shape(pseudo)} and {np.shape(sparse)}")
    if not 0 <= weight <= 1:
        raise ValueError(f"weight must be between 0 and 1, got {weight}")
    return weight * np.asarray(pseudo) + (1 - weight) * np.asarray(sparse)


def potential_based(layout: Layout, potential: np.ndarray, goal: int, gamma: float) -> np.ndarray:
    """The reward table r(s') + γΦ(s') - Φ(s), shape (n, 4), with r the sparse reward and Φ a potential (n,).

    It leaves the best policy as it is if Φ vanishes where episodes end (Ng, Harada, Russell 1999): then
    Q_shaped(s, a) = Q(s, a) - Φ(s), the same order of actions in every state. So Φ is taken relative to its value at
    the goal. A time-out must not count as an end, since Φ does not vanish there.

    >>> corridor = Layout("...")
    >>> r = potential_based(corridor, np.array([-2, -1, 0]), goal=2, gamma=1)
    >>> float(r[0, 1] + r[1, 1])  # along the way Φ cancels but for its ends: -1 + 0, and Φ(goal) - Φ(start) = 2
    1.0
    """
    if not 0 <= gamma <= 1:
        raise ValueError(f"gamma must be between 0 and 1, got {gamma}")
    phi = _values(layout, potential, "potential")
    phi = phi - phi[_goal(layout, goal)]
    return on_arrival(layout, sparse(layout, goal)) + gamma * phi[layout.moves] - phi[:, None]


def false_summits(layout: Layout, values: np.ndarray, goal: int) -> np.ndarray:
    """The states other than the goal from which no action leads to a strictly larger value, shape (number,).

    >>> false_summits(Layout("....."), np.array([0, 1, 0, 2, 3]), goal=4).tolist()
    [1]
    """
    stuck = np.all(rewards(layout, _values(layout, values)) <= 0, axis=1)
    return np.flatnonzero(stuck & (np.arange(layout.n) != _goal(layout, goal)))


def monotonicity(layout: Layout, values: np.ndarray, goal: int) -> float:
    """Share of the moves along shortest paths to the goal, from all states, on which the values strictly increase.

    >>> monotonicity(Layout("....."), np.array([0, 1, 2, 1, 5]), goal=4)
    0.75
    """
    values, distance = _values(layout, values), layout.distances(_goal(layout, goal))
    nearer = distance[layout.moves] < distance[:, None]
    return float((rewards(layout, values) > 0)[nearer].mean())


def _goal(layout: Layout, goal: int) -> int:
    if not isinstance(goal, Integral) or isinstance(goal, bool) or not 0 <= goal < layout.n:
        raise ValueError(
            f"goal must be a state number between 0 and {layout.n - 1}, got {goal!r}: state_at finds that of a cell"
        )
    return int(goal)


def _values(layout: Layout, values: np.ndarray, label: str = "values") -> np.ndarray:
    values = np.asarray(values, dtype=float)
    if values.shape != (layout.n,):
        raise ValueError(f"{label} must have shape ({layout.n},), one for each state: got {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError(f"{label} must be finite: that of state {np.argmin(np.isfinite(values))} is not")
    return values
