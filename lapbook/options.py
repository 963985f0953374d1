"""Options from a representation: climb one dimension, up or down, to a local extremum (section 4.2, appendix E.2).

The reward of the option for dimension i and sign ± is r(s, s') = ±(f_i(s') - f_i(s)), and it ends where no action is
rewarded: at a local maximum of ±f_i. (The paper's sections 2.2 and E.2 have the sign of r reversed, which would lead
away from where its options end.) With discount 0, as in the paper, the best policy is to climb.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lapbook.layouts import Layout, Seed, check_dimension

TIE = 1e-9  # of the range of a dimension: what differs by less is equally good


@dataclass(frozen=True)
class Option:
    """What to do in each of n states, and where to stop. It can be begun wherever it does not stop."""

    policy: np.ndarray
    """Action number in each state, shape (n,)."""
    terminal: np.ndarray
    """Whether it stops there, shape (n,)."""
    dimension: int
    """Of the representation, counted from 1."""
    sign: int
    """+1 towards larger values, -1 towards smaller ones."""


def rewards(layout: Layout, values: np.ndarray, sign: int = 1) -> np.ndarray:
    """r(s, s') = sign·(f(s') - f(s)) for each state and action, shape (n, 4), from f of shape (n,).

    >>> rewards(Layout("..."), np.array([0, 1, 3])).tolist()  # left, right, up, down; a bump changes nothing
    [[0, 1, 0, 0], [-1, 2, 0, 0], [-2, 0, 0, 0]]
    """
    return sign * (values[layout.moves] - values[:, None])


def climb(layout: Layout, vectors: np.ndarray, dimension: int, sign: int = 1) -> Option:
    """The option that goes to the best neighbour until there is none, for a representation of shape (n, d).

    >>> hill = climb(Layout("....."), np.array([[1, x] for x in (0, 1, 2, 1, 0)]), dimension=2)
    >>> hill.terminal.tolist(), hill.policy[[0, 1, 3, 4]].tolist()  # right, right, (stop), left, left
    ([False, False, True, False, False], [1, 1, 0, 0])
    """
    values = check_dimension(layout, vectors, dimension)
    r = rewards(layout, values, _checked_sign(sign))
    tie = TIE * np.ptp(values)  # equal up to rounding is equal, or another machine would go another way
    return Option((r >= r.max(axis=1, keepdims=True) - tie).argmax(axis=1), (r <= tie).all(axis=1), dimension, sign)


def climbs(layout: Layout, vectors: np.ndarray, dimensions: Sequence[int] | None = None) -> list[Option]:
    """Both options of each dimension, all but the first by default.

    >>> [(option.dimension, option.sign) for option in climbs(Layout("..."), np.array([[1, 0], [1, 1], [1, 2]]))]
    [(2, 1), (2, -1)]
    """
    chosen = range(2, np.shape(vectors)[1] + 1) if dimensions is None else dimensions
    return [climb(layout, vectors, dimension, sign) for dimension in chosen for sign in (1, -1)]


def run(layout: Layout, option: Option, goal: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Steps that the option takes from each state, and where it ends, both of shape (n,).

    Where it goes round for ever the number of steps is inf. With `goal`, a set of states as booleans (n,), the walk
    also ends when it enters one of them. In a terminal state the option cannot begin: 0 steps.

    >>> corridor = Layout("....")
    >>> right = Option(policy=np.ones(4, dtype=int), terminal=np.arange(4) == 3, dimension=2, sign=1)
    >>> [found.tolist() for found in run(corridor, right)]
    [[3.0, 2.0, 1.0, 0.0], [3, 3, 3, 3]]
    """
    stop = option.terminal if goal is None else option.terminal | goal
    follow = layout.moves[np.arange(layout.n), option.policy]
    steps, at = np.zeros(layout.n), np.arange(layout.n)
    moving = ~option.terminal
    for _ in range(layout.n):  # a walk that has not ended after n steps has been somewhere twice
        at[moving] = follow[at[moving]]
        steps[moving] += 1
        moving = moving & ~stop[at]
        if not moving.any():
            break
    steps[moving] = np.inf
    return steps, at


def path(layout: Layout, option: Option, start: int) -> list[int]:
    """States from `start` to the end of the option; where it goes round, up to the first state that comes again.

    >>> path(Layout("...."), climb(Layout("...."), np.array([[1, x] for x in range(4)]), 2), start=1)
    [1, 2, 3]
    """
    states = [int(start)]
    while not option.terminal[states[-1]] and states[-1] not in states[:-1]:
        states.append(int(layout.moves[states[-1], option.policy[states[-1]]]))
    return states


def mean_length(layout: Layout, option: Option) -> float:
    """Steps until termination, the mean over the states where the option can begin and does not go round for ever.

    >>> mean_length(Layout("...."), climb(Layout("...."), np.array([[1, x] for x in range(4)]), 2))  # of 3, 2, 1
    2.0
    """
    steps, _ = run(layout, option)
    usable = ~option.terminal & np.isfinite(steps)
    return float(steps[usable].mean()) if usable.any() else float("nan")


def mean_lengths(layout: Layout, options: Sequence[Option]) -> np.ndarray:
    """The mean length for each dimension, over its options (Fig. 6), in the order of the dimensions.

    A slope from one end of a corridor to the other takes 3, 2 or 1 steps to climb, a zigzag a single one:

    >>> corridor = Layout("....")
    >>> mean_lengths(corridor, climbs(corridor, np.array([[1, x, x % 2] for x in range(4)]))).tolist()
    [2.0, 1.0]
    """
    dimensions = sorted({option.dimension for option in options})
    return np.array([np.mean([mean_length(layout, o) for o in options if o.dimension == i]) for i in dimensions])


def loops(layout: Layout, option: Option) -> np.ndarray:
    """The states from which the option never ends, shape (n,).

    >>> to_and_fro = Option(np.array([1, 0, 0]), terminal=np.zeros(3, dtype=bool), dimension=2, sign=1)
    >>> loops(Layout("..."), to_and_fro).tolist()
    [True, True, True]
    """
    return np.isinf(run(layout, option)[0])


def hitting_times(layout: Layout, options: Sequence[Option], goals: np.ndarray) -> np.ndarray:
    """Expected steps from each state to the first one of a goal, booleans (n,) → (n,), or of many, (k, n) → (k, n).

    Wherever it has to decide, the agent picks uniformly among its four actions and the options that can begin there;
    an option is followed to its end, or until the goal is entered. An option is not offered where it would never end.
    With h the unknown times, h(s) = mean over choices of (steps taken + h(where they lead)): a linear system.

    Without options, a corridor takes 4k steps on average from its k-th state to the next:

    >>> hitting_times(Layout("..."), [], goals=np.array([False, False, True])).round(9).tolist()
    [12.0, 8.0, 0.0]
    """
    goals = _checked_goals(layout, goals)
    n, every = layout.n, np.arange(layout.n)
    choices = np.full(n, 4.0)
    plain = np.zeros((n, n))
    np.add.at(plain, (every[:, None], layout.moves), 1)
    offered = []
    for option in options:
        steps, end = run(layout, option)
        usable = ~option.terminal & np.isfinite(steps)
        choices[usable] += 1
        offered.append((usable, steps, end, _met(layout, option)))
    times = np.zeros((len(np.atleast_2d(goals)), n))
    for h, goal in zip(times, np.atleast_2d(goals), strict=True):
        taken, lead = np.full(n, 4.0), plain.copy()
        for usable, steps, end, met in offered:
            first = met[:, goal].min(axis=1)  # the goal may be entered before the end, or at it
            taken[usable] += np.minimum(first, steps)[usable]
            through = usable & (first > steps)
            lead[every[through], end[through]] += 1
        away = ~goal
        home = choices - lead[:, away].sum(axis=1)  # choices that lead into the goal
        h[away] = _solve(lead[np.ix_(away, away)], home[away], taken[away])
    return times.reshape(goals.shape)


def _solve(lead: np.ndarray, home: np.ndarray, taken: np.ndarray) -> np.ndarray:
    """h with (Σ_j lead_ij + home_i) h_i = taken_i + Σ_j lead_ij h_j, by elimination without a single subtraction.

    States are taken out one by one, their flow handed on to the others (Grassmann, Taksar and Heyman, 1985). All
    terms are positive, so nothing cancels: times of 10^30 steps, at which a general solver returns noise, are exact to
    rounding.
    """
    lead, home, taken = lead.copy(), home.copy(), taken.copy()
    out = np.zeros(len(home))
    for k in range(len(home) - 1, -1, -1):
        out[k] = lead[k, :k].sum() + home[k]
        share = lead[:k, k] / out[k]
        lead[:k, :k] += np.outer(share, lead[k, :k])
        home[:k] += share * home[k]
        taken[:k] += share * taken[k]
    h = np.zeros(len(home))
    for k in range(len(home)):
        h[k] = (taken[k] + lead[k, :k] @ h[:k]) / out[k]
    return h


def _met(layout: Layout, option: Option) -> np.ndarray:
    """After how many steps from s the option enters g for the first time, inf if it ends before, shape (n, n)."""
    follow = layout.moves[np.arange(layout.n), option.policy]
    met = np.full((layout.n, layout.n), np.inf)
    states, at = np.flatnonzero(~option.terminal), np.flatnonzero(~option.terminal)
    for step in range(1, layout.n + 1):
        at = follow[at]
        met[states, at] = np.minimum(met[states, at], step)
        going = ~option.terminal[at]
        states, at = states[going], at[going]
        if not len(at):
            break
    return met


def sampled_hitting_times(
    layout: Layout, options: Sequence[Option], goal: np.ndarray, starts: np.ndarray, rng: Seed = 0
) -> np.ndarray:
    """Steps to `goal` of one random agent for each of `starts`, shape (k,): what `hitting_times` is the mean of.

    >>> corridor, goal = Layout("..."), np.array([False, False, True])
    >>> steps = sampled_hitting_times(corridor, [], goal, starts=np.zeros(1000, dtype=int))
    >>> bool(abs(steps.mean() - 12) < 4 * steps.std() / np.sqrt(1000))
    True
    """
    goal, rng = _checked_goals(layout, goal), np.random.default_rng(rng)
    policies = np.array([option.policy for option in options], dtype=int).reshape(-1, layout.n)
    stops = np.array([option.terminal for option in options], dtype=bool).reshape(-1, layout.n)
    offered = np.array([~option.terminal & ~loops(layout, option) for option in options], dtype=bool)
    offered = offered.reshape(-1, layout.n)
    choices = 4 + offered.sum(axis=0)
    listed = np.argsort(~offered, axis=0, kind="stable")  # in each state, the options on offer first
    at, steps = np.array(starts), np.zeros(len(starts), dtype=int)
    busy = np.full(len(at), -1)  # with which option
    walking = np.flatnonzero(~goal[at])
    while len(walking):
        here = at[walking]
        choice = rng.integers(choices[here])
        action = choice.copy()
        begins = (busy[walking] < 0) & (choice >= 4)
        busy[walking[begins]] = listed[choice[begins] - 4, here[begins]]
        following = busy[walking] >= 0
        action[following] = policies[busy[walking[following]], here[following]]
        at[walking] = layout.moves[here, action]
        steps[walking] += 1
        ended = following & (busy[walking] >= 0)
        ended[ended] = stops[busy[walking[ended]], at[walking[ended]]]
        busy[walking[ended]] = -1
        walking = walking[~goal[at[walking]]]
    return steps


def steps_between(layout: Layout, options: Sequence[Option], start: int, goal: int) -> float:
    """N_{start→goal}: expected steps from one room to another, the mean over the states of the first.

    >>> from lapbook.layouts import rooms
    >>> two = rooms(1, 2, size=2)
    >>> round(steps_between(two, [], 1, 2) - steps_between(two, [], 2, 1), 6)  # a mirror image
    0.0
    """
    rooms = int(layout.rooms.max())
    for name, room in (("start", start), ("goal", goal)):
        if not 1 <= room <= rooms:
            raise ValueError(f"{name} must be a room of {layout.name}, numbered 1 to {rooms}: got {room}")
    if start == goal:
        raise ValueError(
            f"goal must be another room than start: both are {start}, and an agent that is there has arrived"
        )
    return float(hitting_times(layout, options, layout.rooms == goal)[layout.rooms == start].mean())


def room_times(layout: Layout, options: Sequence[Option]) -> np.ndarray:
    """N_ij = (N_{i→j} + N_{j→i})/2 between the rooms of the map, shape (rooms, rooms), nan on the diagonal.

    N_{i→j} is the mean of the hitting times of room j over the states of room i.

    >>> from lapbook.layouts import rooms
    >>> N = room_times(rooms(1, 3, size=2), options=[])
    >>> bool(N[0, 2] > N[0, 1]), bool(np.allclose(N, N.T, equal_nan=True))  # along a row of rooms
    (True, True)
    """
    rooms = np.arange(1, layout.rooms.max() + 1)
    if len(rooms) < 2:
        raise ValueError(f"layout must have at least two rooms, {layout.name} has {len(rooms)}")
    to = hitting_times(layout, options, layout.rooms == rooms[:, None])
    N = np.array([to[:, layout.rooms == i].mean(axis=1) for i in rooms])
    np.fill_diagonal(N, np.nan)
    return (N + N.T) / 2


def _checked_sign(sign: int) -> int:
    if sign not in (1, -1):
        raise ValueError(f"sign must be 1 (towards larger values) or -1: got {sign}")
    return sign


def _checked_goals(layout: Layout, goals: np.ndarray) -> np.ndarray:
    goals = np.asarray(goals)
    if goals.ndim not in (1, 2) or goals.shape[-1] != layout.n or goals.dtype != bool:
        raise ValueError(f"goal must say True or False for each of {layout.n} states, got {goals.dtype} {goals.shape}")
    if not goals.any(axis=-1).all():
        raise ValueError("goal must hold at least one state")
    return goals
