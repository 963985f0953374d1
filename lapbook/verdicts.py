"""How the ledger judges: numbers against those the paper printed, claims without a number by conditions on records.

A judge takes records, one list for each group of them, and gives a `Finding`. The thresholds are the constants below.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from lapbook import paper
from lapbook.metrics import sim_gt_per_dim
from lapbook.results import Record, arrays, metric
from lapbook.statistics import area, bootstrap, spearman

VERDICTS = ("reproduced", "exceeded", "differs", "not possible")
CLOSE = 0.02  # two SimGT agree: the ceilings of three data sets alone make a mean vary by half of it
CHANCE = 0.1  # the same for the baseline, whose axes are left to chance: SimGT of a random rotation varies by 0.06
LIKE, UNLIKE = 0.9, 0.5  # |cos| from which on, and up to which, two functions look alike, or do not
FOLLOWS = 0.8  # share of states in which an option does what the truth's does, from which on it follows it
ROUNDING = 1e-9  # what identities may be off by, relative to what they compare
DISTINCT = 0.02  # eigenvalues are distinct if they differ by this share of the larger
SIMILAR = 2.0  # numbers of steps up to this ratio are similar

Records = Sequence[Record]
Numbers = tuple[float, float, float]
"""A mean, and the ends of its interval."""


class Better(NamedTuple):
    """The same with changes of ours, where the paper's settings were run too."""

    verdict: str
    words: str
    numbers: Numbers | None = None


class Finding(NamedTuple):
    """What a judge makes of the records."""

    ours: str
    verdict: str
    better: Better | None = None
    printed: float | None = None
    numbers: Numbers | None = None


Judge = Callable[..., Finding]


# How numbers and conditions become verdicts


def compare(value: float, printed: float, tolerance: float = CLOSE, more: bool = True) -> str:
    """The verdict on a number; `more` says that larger is better, so that it can be exceeded.

    >>> compare(0.96, 0.97), compare(0.99, 0.96), compare(0.9, 0.96)
    ('reproduced', 'exceeded', 'differs')
    """
    if abs(value - printed) <= tolerance + 1e-12:
        return "reproduced"
    return "exceeded" if more and value > printed else "differs"


def holds(*conditions: bool) -> str:
    """The verdict on a claim without a number."""
    return "reproduced" if all(conditions) else "differs"


def estimate(values: Sequence[float]) -> Numbers:
    """Mean over seeds and the ends of its 95 % bootstrap interval."""
    return _estimate(tuple(map(float, values)))


@cache
def _estimate(values: tuple[float, ...]) -> Numbers:
    low, high = bootstrap(np.array([values]))
    return float(np.mean(values)), low, high


def shown(values: Sequence[float], digits: int = 3) -> str:
    """Mean and interval in words; one run has no interval.

    >>> shown([0.25, 0.5]), shown([0.25])
    ('0.375 [0.250, 0.500]', '0.250 (one run)')
    """
    if len(values) == 1:
        return f"{values[0]:.{digits}f} (one run)"
    mean, low, high = estimate(values)
    return f"{mean:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]".replace("-", "−")


# Judges: each takes the records of an entry's sources and gives a Finding


def number(
    literal: Records, changed: Records = (), *, printed: float, tolerance: float = CLOSE, more: bool = True,
    how: str = "", key: str = "sim_gt",
) -> Finding:  # fmt: skip
    """SimGT against the paper's, and again with changes that `how` names."""
    values, better = metric(literal, "sim_gt"), None
    if changed:
        improved = metric(changed, key)
        verdict = compare(improved.mean(), printed, tolerance, more)
        better = Better(verdict, f"{how}: {shown(improved)}", estimate(improved))
    ceiling = f"; ceiling of the data {metric(literal, 'ceiling').mean():.3f}" if more else ""
    verdict = compare(values.mean(), printed, tolerance, more)
    return Finding(shown(values) + ceiling, verdict, better, printed, estimate(values))


def looks_alike(ours: Records, base: Records, changed: Records = (), *, dims: slice = slice(None)) -> Finding:
    """Heatmaps: |cos| of the worst dimension of ours, and the mean of the baseline's; `changed` are turned ones."""

    def worst(records: Records, key: str = "sim_gt_per_dim") -> float:
        return float(metric(records, key)[:, dims].mean(axis=0).min())

    low, mean = worst(ours), float(metric(base, "sim_gt_per_dim")[:, dims].mean())
    which = "dimension 2" if dims != slice(None) else "worst dimension"
    better = None
    if changed:
        turned = worst(changed, "sim_gt_ritz_per_dim")
        words = f"the baseline with Fourier features, turned: {which} {turned:.2f}"
        better = Better(holds(turned >= LIKE, mean <= UNLIKE), words)
    return Finding(f"{which} {low:.2f}, baseline {mean:.2f} in the mean", holds(low >= LIKE, mean <= UNLIKE), better)


def agreement_of_runs(records: Records, *, alike: bool, first: int | None = None) -> Finding:
    """SimRUN between all pairs of runs, of the first dimensions also one by one."""
    if len(records) < 2:
        return Finding("one run only", "differs")
    runs = [arrays(r)["vectors"].astype(float) for r in records]
    pairs = np.array([sim_gt_per_dim(runs[a], runs[b]) for a in range(len(runs)) for b in range(a)])
    each = pairs[:, :first].mean(axis=0)
    text = f"SimRUN {pairs.mean():.2f}; dimensions 1 to {len(each)}: {each.min():.2f} to {each.max():.2f}"
    return Finding(text, holds(pairs.mean() >= LIKE) if alike else holds(pairs.mean() <= UNLIKE))


def option_lengths(truth: Records, ours: Records, base: Records, deep: Records) -> Finding:
    """Fig. 6: the order of the lengths, and how far they spread; deep agents must give the same order."""
    spread = [np.ptp(metric(group, "lengths"), axis=1) for group in (ours, base)]
    order = [metric(group, "rank_correlation") for group in (ours, base)]
    learned = metric(deep, "rank_correlation")
    text = (
        f"order as the truth's: rank correlation {shown(order[0], 2)}, baseline {shown(order[1], 2)}; "
        f"longest − shortest {spread[0].mean():.0f} steps, baseline {spread[1].mean():.0f}, "
        f"truth {np.ptp(truth[0]['metrics']['lengths']):.0f}; deep agents {shown(learned, 2)}"
    )
    apart = (spread[0] > 2 * spread[1]).all()
    return Finding(text, holds(order[0].min() >= LIKE, order[1].max() <= UNLIKE, apart, learned.min() >= LIKE))


def far_rooms(ours: Records, base: Records) -> Finding:
    """Fig. 7: steps between far rooms, seed by seed."""
    ratio = metric(base, "far") / metric(ours, "far")
    text = f"{shown(metric(ours, 'far'), 0)} steps, baseline {shown(metric(base, 'far'), 0)}"
    return Finding(f"{text}, {ratio.min():.1f} to {ratio.max():.1f} times as many", holds(ratio.min() > 1))


def near_rooms(ours: Records, base: Records, truth: Records) -> Finding:
    """Fig. 7(d): steps to far rooms over those to the room next door."""
    ratios = [metric(group, "far") / metric(group, "next_door") for group in (ours, base, truth)]
    text = f"far over next door {shown(ratios[0], 1)}, baseline {ratios[1].mean():.1f}, truth {ratios[2].mean():.1f}"
    return Finding(text, holds(ratios[0].mean() <= SIMILAR))


def options_drawn(truth: Records, ours: Records, base: Records, *, dims: range) -> Finding:
    """Fig. 19 and 20: the share of states in which an option does what the truth's does."""
    exact = arrays(truth[0])

    def same(record: Record) -> float:
        found, shares = arrays(record), []
        for i in dims:
            pair = [2 * (i - 2), 2 * (i - 2) + 1]  # the sign of a dimension is arbitrary: try both
            going = ~found["terminals"][pair]
            both = [(found["policies"][pair] == exact["policies"][order])[going & ~exact["terminals"][order]].mean()
                    for order in (pair, pair[::-1])]  # fmt: skip
            shares.append(max(both))
        return float(np.mean(shares))

    of_ours, of_base = ([same(record) for record in group] for group in (ours, base))
    text = f"the truth's action in {shown(of_ours, 2)} of states, baseline {shown(of_base, 2)}"
    ahead = np.subtract(of_ours, of_base).min() > 0.2  # seed by seed
    return Finding(text, holds(np.mean(of_ours) >= FOLLOWS, ahead))


def areas(records: Records, variant: str, labels: Sequence[str]) -> np.ndarray:
    """Area under the success curves of shaped agents, shape (labels, goals, agents); the records share their goals."""
    found = []
    for record in records:
        metrics, curves = record["metrics"], arrays(record)["curves"].astype(float)
        chosen = [metrics["rewards"].index(label) for label in labels]
        chosen = curves[metrics["variants"].index(variant)][chosen]
        found.append(area(metrics["steps"], chosen))
    return np.concatenate(found, axis=2)


DIMENSIONS = tuple(f"dim {i}" for i in range(2, 11))


def order_of_dimensions(records: Records, variant: str) -> tuple[float, float, float]:
    """Rank correlation of the dimension and its mean area, with an interval over goals and agents."""

    def rank(outcomes: np.ndarray) -> float:
        return spearman(np.arange(len(outcomes)), outcomes.mean(axis=(1, 2)))

    found = areas(records, variant, DIMENSIONS)
    return rank(found), *bootstrap(found, rank, resamples=500, over="both")


def lower_is_better(ours: Records) -> Finding:
    """Fig. 8(a, b): the order of our dimensions, alone and with the sparse reward; dimension 2 must be the best."""
    found = {variant: order_of_dimensions(ours, variant) for variant in ("literal", "mixed")}
    first = [areas(ours, variant, DIMENSIONS).mean(axis=(1, 2)).argmax() == 0 for variant in found]
    text = [f"{'alone' if v == 'literal' else 'mixed'} {m:+.2f} [{a:+.2f}, {b:+.2f}]" for v, (m, a, b) in found.items()]
    return Finding(
        f"rank correlation of dimension and success: {', '.join(text)}".replace("-", "−"),
        holds(*(high < 0 for _, _, high in found.values()), *first),
    )


def no_order(*groups: Records) -> Finding:
    """Fig. 13: the baseline's dimensions on each map, with ours for comparison; theirs must have a weaker order."""
    found = [order_of_dimensions(group, "mixed")[0] for group in groups]
    pairs = list(zip(found[::2], found[1::2], strict=True))
    text = ", ".join(f"{base:+.2f} (ours {ours:+.2f})" for base, ours in pairs).replace("-", "−")
    return Finding(f"rank correlation of dimension and success: {text}", holds(*(a > b + 0.2 for a, b in pairs)))


def lead(ours: np.ndarray, other: np.ndarray) -> tuple[float, float, float]:
    """Mean difference of two sets of areas (goals, agents), paired by goal, with an interval over goals and agents."""
    both = np.stack([ours, np.tile(other, ours.shape[1] // other.shape[1])])  # fewer agents where none was learned

    def difference(outcomes: np.ndarray) -> float:
        return float(outcomes[0].mean() - outcomes[1].mean())

    return difference(both), *bootstrap(both, difference, resamples=500, over="both")


def best_beats(
    ours: Records, base: Records = (), none: Records = (), *, variant: str = "mixed", own: bool = False
) -> Finding:
    """Fig. 8(c, d) and 14: dimension 2 of ours against others, or (`own`) against all ten of ours."""
    first, rivals = areas(ours, variant, ["dim 2"])[0], {}
    if own:
        rivals["all of ours"] = areas(ours, variant, ["all"])[0]
    else:
        single = areas(base, variant, DIMENSIONS)
        rivals["baseline, best"] = single[single.mean(axis=(1, 2)).argmax()]  # chosen after the fact, in its favour
        rivals["baseline, all"] = areas(base, variant, ["all"])[0]
        rivals |= dict(zip(("(x, y)", "none"), areas(none, variant, ["position", "sparse"]), strict=True))
    return _leads(first, rivals)


def _leads(first: np.ndarray, rivals: dict[str, np.ndarray]) -> Finding:
    found = {name: lead(first, other) for name, other in rivals.items()}
    text = ", ".join(f"{name} {value:+.2f} [{low:+.2f}, {high:+.2f}]" for name, (value, low, high) in found.items())
    return Finding(
        f"area {first.mean():.2f}; ahead of {text}".replace("-", "−"), holds(*(v[1] > 0 for v in found.values()))
    )


def on_both(*groups: Records, judge: Judge) -> Finding:
    """A judge on the records of GridRoom, then on those of GridMaze; both must hold."""
    half = len(groups) // 2
    room, maze = judge(*groups[:half]), judge(*groups[half:])
    verdicts = {room.verdict, maze.verdict}
    return Finding(f"GridRoom: {room.ours}. GridMaze: {maze.ours}", verdicts.pop() if len(verdicts) == 1 else "differs")


def deep_agents(ours: Records, none: Records, base: Records = ()) -> Finding:
    """Fig. 8(c, d) with networks and mixed rewards: on the goals that all have, for the steps that all have done."""
    last = min(r["metrics"]["steps"][-1] for r in [*ours, *none, *base])

    def by_goal(records: Records, label: str) -> dict[int, np.ndarray]:
        found = {}
        for record in records:
            metrics, steps = record["metrics"], np.array(record["metrics"]["steps"])
            names = ["best" if name.startswith("dim ") else name for name in metrics["rewards"]]
            curves = arrays(record)["curves"].astype(float)[metrics["variants"].index("mixed"), names.index(label)]
            outcomes = area(steps[steps <= last], curves[..., steps <= last])
            found |= dict(zip(metrics["goals"], outcomes, strict=True))
        return found

    rivals = {"all of ours": by_goal(ours, "all"), "(x, y)": by_goal(none, "position"), "none": by_goal(none, "sparse")}
    if base:
        rivals |= {"baseline, best": by_goal(base, "best"), "baseline, all": by_goal(base, "all")}
    first = by_goal(ours, "best")
    goals = sorted(set(first).intersection(*rivals.values()))
    chosen = {name: np.stack([found[goal] for goal in goals]) for name, found in rivals.items()}
    finding = _leads(np.stack([first[goal] for goal in goals]), chosen)
    left_out = "" if base else "; the baseline has not been run"
    return Finding(f"{len(goals)} goals, {last:,} steps: {finding.ours}{left_out}", finding.verdict)


def deep_on_maps(*groups: Records) -> Finding:
    """Deep agents on GridRoom and, where there are records, on GridMaze; the claim needs both, and the baseline."""
    findings = {"GridRoom": deep_agents(*groups[:3])}
    if all(groups[3:5]):
        findings["GridMaze"] = deep_agents(*groups[3:])
    text = ". ".join(f"{env}, {finding.ours}" for env, finding in findings.items())
    if len(findings) < 2:
        text += ". GridMaze has not been run"
    return Finding(text, holds(all(groups), *(finding.verdict == "reproduced" for finding in findings.values())))


def kept_to_span(*groups: Records) -> Finding:
    """Fig. 9: cosine distance between the u_i and the span; the largest, in any run at any point, must be small."""
    texts, largest = [], []
    for records in groups:
        distance = 1 - np.array([arrays(r)["in_span"].astype(float) for r in records])  # runs, points, dimensions
        worst = distance.max(axis=(0, 1))
        largest.append(worst.max())
        where = f"largest {worst.max():.2f}, in dimension {worst.argmax() + 1}"
        texts.append(f"{records[0]['setting']['env']}: {distance.mean():.3f} in the mean, {where}")
    return Finding("; ".join(texts), holds(*(distance <= 1 - LIKE for distance in largest)))


def groups_drawn(convex: Records, concave: Records, default: Records) -> Finding:
    """Fig. 11(a): the signs of the second differences."""
    values = [group[0]["metrics"]["coefficients"] for group in (convex, concave, default)]
    bends = [np.diff(c, 2) for c in values]
    drawn = [", ".join(f"{x:.1f}" for x in c[:3]) for c in values[:2]]
    text = f"group 1 {drawn[0]}, … {values[0][-1]:g}; group 2 {drawn[1]}, … {values[1][-1]:g}"
    return Finding(text, holds((bends[0] > 0).all(), (bends[1] < 0).all(), np.allclose(bends[2], 0)))


def groups_as_good(convex: Records, concave: Records, default: Records) -> Finding:
    """Fig. 11(b): SimGT of each group; neither may be worse than the default."""
    values = [metric(group, "sim_gt") for group in (convex, concave, default)]
    text = ", ".join(f"{n} {shown(v)}" for n, v in zip(("group 1", "group 2", "default"), values, strict=True))
    return Finding(text, holds(*(compare(v.mean(), values[2].mean()) != "differs" for v in values[:2])))


# Judges of exact records


def _worst(records: Records, *keys: str) -> float:
    return max(abs(r["metrics"][key]) for r in records for key in keys)


def _tiny(value: float) -> str:
    return f"{value:.0e}".replace("-", "−")


def identity(records: Records, *, key: str) -> Finding:
    """An equality of the paper: its largest error."""
    worst = _worst(records, key)
    return Finding(f"largest error {_tiny(worst)}", holds(worst <= ROUNDING))


def invariance(records: Records) -> Finding:
    """Eq. (2): rotations change nothing but SimGT."""
    number = sum(r["metrics"]["rotations"] for r in records)
    similar, change = metric(records, "sim_gt").mean(), _worst(records, "change")
    text = f"{number:,} random rotations change the objective by {_tiny(change)} at most, and SimGT to {similar:.2f}"
    return Finding(text, holds(change <= ROUNDING, similar < UNLIKE))


def unique_minimiser(records: Records) -> Finding:
    """Theorem 1: the inequality, the steps of its proof, and what descent finds."""
    least, frames = metric(records, "least_gap").min(), metric(records, "frames").sum()
    off = max(_worst(records, "identity_error"), -metric(records, "least_slack").min())
    off = max(off, metric(records, "excess_of_bound").max())
    orders = metric(records, "minimisers_among_orders").max()
    descent = min(metric(records, f"descent_{env}").min() for env in paper.STATES)
    text = (
        f"smallest gap of {frames} random frames {_tiny(least)} of the minimum; no line of the proof is off by more "
        f"than {_tiny(off)}; {orders} of 120 orders attains the minimum; descent ends at SimGT {descent:.3f} or better"
    )
    outside = metric(records, "least_gap_outside").min()
    return Finding(text, holds(least > 0, outside > 0, off <= ROUNDING, orders == 1, descent >= 1 - CLOSE))


def on_functions(records: Records) -> Finding:
    """Theorem 2, on an interval with the heat kernel."""
    least, frames = metric(records, "least_gap").min(), metric(records, "frames").sum()
    shift = _worst(records, "change_for_negative_c")
    text = (
        f"smallest gap of {frames} random frames of functions on an interval {least:.1f}; shifting all c below 0 "
        f"changes it by {_tiny(shift)} at most"
    )
    off = max(_worst(records, "eigenfunction_error", "identity_error"), -metric(records, "least_kernel").min())
    return Finding(text, holds(least > 0, shift <= ROUNDING, off <= ROUNDING))


def unbiased(records: Records) -> Finding:
    """Eq. (5) to (8): the nested sums, and samples against exact expectations."""
    z, precise = _worst(records, "pair_z", "penalty_z"), _worst(records, "pair_precision", "penalty_precision")
    sums = _worst(records, "nested_sum_error", "triple_sum_error")
    text = f"the sums agree to {_tiny(sums)}; means of samples lie within {z:.1f} standard errors of exact expectations"
    return Finding(
        f"{text}, a standard error being {precise:.1%} at most", holds(sums <= ROUNDING, z < 4, precise < CLOSE)
    )


def converges(records: Records) -> Finding:
    """The finite differences: similarity to a lattice twice as fine, and simple eigenvalues."""
    metrics = records[0]["metrics"]
    close = min(metrics[f"similarity_{env}"][-1] for env in paper.FLOORS)
    apart = min(metrics[f"least_gap_{env}"] for env in paper.FLOORS)
    text = f"spacing 0.1 against 0.05: SimGT {close:.5f}; neighbouring eigenvalues {apart:.0%} apart or more"
    return Finding(text, holds(close > 0.999, apart > DISTINCT, abs(metrics["order"] - 2) < 0.2))


def distinct(records: Records) -> Finding:
    """Fig. 10: the smallest gaps."""
    found = {env: records[0]["metrics"][env] for env in paper.STATES}
    text = ", ".join(f"{env} {m['least_gap']:.5f} ({m['relative']:.0%})" for env, m in found.items())
    return Finding(
        f"smallest gap (relative to the larger eigenvalue): {text}",
        holds(*(m["relative"] > DISTINCT for m in found.values())),
    )


def described(records: Records) -> Finding:
    """Fig. 2 and appendix D: states, actions, ranges, floors and the ball."""
    m = records[0]["metrics"]
    states, floors = {env: m[env]["states"] for env in paper.STATES}, {env: m[env]["size"] for env in paper.FLOORS}
    ranges = [m[env]["ranges"] == {"xy": [-1.0, 1.0], "image": [0.0, 1.0]} for env in states]
    actions, ball = {m[env]["actions"] for env in states}, m["ball_diameter"]
    counted = f"{' and '.join(map(str, states.values()))} states, {' or '.join(map(str, actions))} actions"
    sizes = f"{' and '.join(f'{a:g}×{b:g}' for a, b in floors.values())}, a ball of diameter {ball:g}"
    same = states == paper.STATES and floors == paper.FLOORS and actions == {4} and ball == 1
    return Finding(f"{counted}; {sizes}", holds(same, *ranges))


def numbered_rooms(records: Records) -> Finding:
    """Fig. 7(a)."""
    rooms = records[0]["metrics"]["rooms"]
    joined = "" if rooms["next"] else "not "
    text = f"{rooms['number']} rooms, {rooms['joined']} doors, consecutive rooms {joined}joined"
    return Finding(text, holds(rooms["number"] == 16, rooms["joined"] == 15, rooms["next"]))


def goals_apart(records: Records) -> Finding:
    """Fig. 12: nothing to compare with; what ours are."""
    found = [records[0]["metrics"][env] for env in paper.STATES]
    apart = " and ".join(str(m["goals_apart"]) for m in found)
    return Finding(f"ours: {found[0]['goals']} on each map, at least {apart} steps apart", "not possible")


def layers(records: Records, *, obs: str, table: list) -> Finding:
    """Tables 2 and 3."""
    found = records[0]["metrics"][obs]
    sizes = ", ".join(str(size) for _, size, _ in found["layers"])
    text = f"{found['layers'][0][0]} {sizes}; with the last linear layer {found['parameters']:,} parameters"
    return Finding(text, holds(found["layers"] == table, found["last"] == ["Linear", paper.TRAINING["d"]]))


def same_settings(records: Records, *runs: Records, name: str, table: dict) -> Finding:
    """Tables 4 and 5 and appendix E.1: our settings against the printed ones; `runs` must have had their data."""
    found = records[0]["metrics"][name]
    same = [found[key] == value for key, value in table.items()]
    data = [r["budget"]["transitions"] == paper.TRANSITIONS[r["setting"]["env"]] for group in runs for r in group]
    return Finding(f"{sum(same)} of {len(same)} that are ours to set are the same", holds(*same, *data))
