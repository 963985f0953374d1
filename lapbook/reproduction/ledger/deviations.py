"""Where we do otherwise than the paper, or had to choose."""

from typing import NamedTuple


class Deviation(NamedTuple):
    """Where we do otherwise than the paper, or had to choose."""

    what: str
    paper: str
    here: str
    chapter: str
    """Number of the one that tells more."""


DEVIATIONS = (
    Deviation(
        "Maps",
        "pictures, which our copy lacks",
        "same sizes; maze and doors are ours; two public maps, very probably the paper's, stand apart",
        "01",
    ),
    Deviation(
        "Target of the penalty",
        "not stated; literally τ = 1",
        "1 at `paper`, 1/d at `paper-coded` and `paper-scaled`, 0.3 on floors with Fourier features",
        "05",
    ),
    Deviation(
        "Pairs", "“discounted multi-step transitions”", "lag 1 + geometric, cut off at the end of the episode", "04"
    ),
    Deviation("Data of a run", "whether runs share them is not said", "each seed has data of its own", "05"),
    Deviation("Initial weights", "not stated", "torch's rule", "05"),
    Deviation("Images with τ = 1/d", "–", "centred and scaled, a penalty that begins ten times as strong", "05"),
    Deviation(
        "SimGT", "a sum over states", "both vectors normalised first; on floors over 10,000 uniform positions", "05"
    ),
    Deviation("Step of the ball", "“a small step”", "half a unit", "06"),
    Deviation("Truth on floors", "spacing not given", "spacing 0.1, where the centre of the ball can be", "06"),
    Deviation(
        "PointRoom, PointMaze",
        "200,000 steps, batch 8,192, 3 runs",
        "the same, 3 runs of each method, cut short after 500 to 2,000 steps; "
        "else 2,000 steps of 512, with and without Fourier features and a turn",
        "06",
    ),
    Deviation(
        "Options",
        "deep Q-learning",
        "exact climbing; deep Q-learning for 1 seed, where a run may stop on a flat curve, and the baseline's were cut "
        "short after 16,000 and 24,000 steps",
        "07",
    ),
    Deviation("Exploration of deep agents", "not stated", "a random walk for options, ε = 0.2 for goals", "07"),
    Deviation("Two options of a dimension", "two networks", "one network, with both signs", "07"),
    Deviation("Baseline's first dimension", "not said", "left out of options and shaping, as ours is", "07"),
    Deviation("Options that never end", "not said", "not offered where they would go round", "07"),
    Deviation("Steps between rooms", "50 rollouts a state", "a linear system, the rollouts as a check", "07"),
    Deviation("Goals", "a picture, which our copy lacks", "ten on each map, each the farthest from those before", "08"),
    Deviation(
        "Shaped reward",
        "section 4.3 replaces the sparse one, appendix E.3 mentions it",
        "both: alone, and half and half",
        "08",
    ),
    Deviation(
        "Agents with shaped rewards",
        "deep Q-learning",
        "mostly tables; networks of Table 5 on 4 of the 10 goals, 1 agent each, with the mixed reward only",
        "08",
    ),
    Deviation("Scale of a dimension", "not stated", "mean square 1 for options and shaping", "08"),
    Deviation(
        "Success",
        "rate, not defined further",
        "exact: the share of states from which the greedy policy arrives in 150 steps",
        "08",
    ),
    Deviation(
        "Coefficient groups",
        "a picture, which our copy lacks",
        "one convex, one concave, from 10 to 1; τ = 1/d, 25,000 steps",
        "09",
    ),
)
