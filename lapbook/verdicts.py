"""How the ledger judges: numbers against those the paper printed, claims without a number by conditions on records.

A judge takes records, one list for each group of them, and gives a `Finding`. The thresholds are the constants below.
Whether the runs behind a verdict were all there, and long enough, is for the ledger to say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from lapbook import paper
from lapbook.layouts import LAYOUTS
from lapbook.metrics import in_span, sim_gt_per_dim
from lapbook.results import Record, arrays, metric
from lapbook.spectrum import eigenvectors
from lapbook.statistics import area, bootstrap, spearman

SHORT, LOST, SHOWN = "not run in full", "not possible", "no claim"
VERDICTS = ("reproduced", "exceeded", "differs", SHORT, LOST, SHOWN)
ANOTHER = "another method"  # no verdict: what it finds says nothing of the paper's
CLOSE = 0.02  # two SimGT agree: on GridRoom the ceilings of three data sets make a mean vary by half of it, else less
CHANCE = 0.1  # the same for the baseline, whose axes are left to chance: SimGT of a random rotation varies by 0.06
LIKE, UNLIKE = 0.9, 0.5  # |cos| from which on, and up to which, two functions look alike, or do not
NEAR = 0.1  # cosine distance up to which a vector is close to a span
SIMILAR = 2.0  # numbers of steps up to this ratio are similar

Records = Sequence[Record]
Numbers = tuple[float, float, float]
"""A mean, and the ends of its interval."""


class Better(NamedTuple):
    """The same with changes of ours, where the paper's settings were run too; or what another method gives."""

    verdict: str
    words: str
    """One line for each thing that is compared, as in `Finding.ours`."""
    numbers: Numbers | None = None


class Finding(NamedTuple):
    """What a judge makes of the records."""

    ours: str
    verdict: str
    better: Better | None = None
    printed: float | None = None
    numbers: Numbers | None = None
    another: Better | None = None


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
    how: str = "", inside: bool = False,
) -> Finding:  # fmt: skip
    """SimGT against the paper's, again with changes that `how` names; `inside` tells of the number and our interval."""
    values, better = metric(literal, "sim_gt"), None
    if changed:
        improved = metric(changed, "sim_gt")
        verdict = compare(improved.mean(), printed, tolerance, more)
        better = Better(verdict, f"{how}: {shown(improved)}", estimate(improved))
    mean, low, high = estimate(values)
    text = shown(values)
    if more:
        text += f"; ceiling of the data {metric(literal, 'ceiling').mean():.3f}"
    if inside:
        text += f"; the paper's number lies {'inside' if low <= printed <= high else 'outside'} the interval"
    return Finding(text, compare(mean, printed, tolerance, more), better, printed, (mean, low, high))


def on_floor(literal: Records, ours: Records = (), base: Records = (), *, printed: float) -> Finding:
    """SimGT on a floor: the paper's way, its objective with Fourier features, and another method, a turn at the end."""
    finding = number(literal, ours, printed=printed, how=f"with Fourier features, on {_share(ours)}")
    turned = [metric(group, "sim_gt_ritz") for group in (ours, base) if group]
    if len(turned) < 2:
        return finding
    words = f"with the same features, then turned by Rayleigh–Ritz: {shown(turned[0])}, the baseline {shown(turned[1])}"
    return finding._replace(another=Better(ANOTHER, words, estimate(turned[1])))


def _share(records: Records) -> str:
    """The share of the paper's pairs, on a floor, that runs have seen."""
    seen = max((r["budget"]["samples"] for r in records), default=0)
    times = paper.TRAINING["steps"] * paper.BATCH_ON_FLOORS / seen if seen else float("inf")
    return f"1/{times:,.0f} of the paper's pairs"


def looks_alike(
    ours: Records, base: Records, our_images: Records = (), base_images: Records = (), *, dims: slice = slice(None)
) -> Finding:
    """Heatmaps: |cos| of the dimension with the lowest mean over runs of ours, and the mean of the baseline's."""
    text, verdict = _pictures(ours, base, dims)
    if our_images and base_images:
        images, beside = _pictures(our_images, base_images, dims)
        text += f"\nfrom images: {images} ({beside})"
    return Finding(text, verdict)


def looks_alike_on_floor(
    ours: Records, base: Records, our_fourier: Records = (), base_fourier: Records = (), *, dims: slice = slice(None)
) -> Finding:
    """The same on a floor; with Fourier features; and turned, which is another method."""
    text, verdict = _pictures(ours, base, dims)
    if not (our_fourier and base_fourier):
        return Finding(text, verdict)
    words, changed = _pictures(our_fourier, base_fourier, dims)
    turned, _ = _pictures(base_fourier, base_fourier, dims, "sim_gt_ritz_per_dim")
    words = f"with Fourier features, on {_share(our_fourier)}: {words}"
    another = f"the baseline with the same features, then turned by Rayleigh–Ritz: {turned.split(';')[0]}"
    return Finding(text, verdict, Better(changed, words), another=Better(ANOTHER, another))


def _pictures(ours: Records, base: Records, dims: slice, key: str = "sim_gt_per_dim") -> tuple[str, str]:
    """Words and verdict on the heatmaps of two methods."""
    means, mean = metric(ours, key)[:, dims].mean(axis=0), float(metric(base, "sim_gt_per_dim")[:, dims].mean())
    which = np.arange(len(ours[0]["metrics"][key]))[dims][means.argmin()] + 1
    text = f"dimension {which}: {means.min():.2f}"
    if len(means) > 1:
        text = f"lowest mean over runs of a dimension {means.min():.2f} (dimension {which})"
    return f"{text}; baseline {mean:.2f} in the mean", holds(means.min() >= LIKE, mean <= UNLIKE)


def agreement_of_runs(records: Records, *, alike: bool, first: int | None = None) -> Finding:
    """SimRUN between all pairs of runs, and the first dimensions one by one: all must agree, or none."""
    if len(records) < 2:
        return Finding("one run only", SHORT)
    runs = [arrays(r)["vectors"].astype(float) for r in records]
    pairs = np.array([sim_gt_per_dim(runs[a], runs[b]) for a in range(len(runs)) for b in range(a)])
    each, total = pairs[:, :first].mean(axis=0), pairs.mean()
    text = f"SimRUN {total:.2f}; dimensions 1 to {len(each)}: {each.min():.2f} to {each.max():.2f}"
    fits = (total >= LIKE, each.min() >= LIKE) if alike else (total <= UNLIKE, each.max() <= UNLIKE)
    return Finding(f"{text}, {'least' if alike else 'most'} in dimension "
                   f"{(each.argmin() if alike else each.argmax()) + 1}", holds(*fits))  # fmt: skip


def option_lengths(
    truth: Records, ours: Records, base: Records, deep: Records, deep_base: Records = ()
) -> Finding:  # fmt: skip
    """Fig. 6: the order of the lengths, and how far they spread; deep agents of ours must give the same order."""
    spread = [np.ptp(metric(group, "lengths"), axis=1) for group in (ours, base)]
    order = [metric(group, "rank_correlation") for group in (ours, base)]
    learned = metric(deep, "rank_correlation")
    text = (
        f"order as the truth's: rank correlation {shown(order[0], 2)}, baseline {shown(order[1], 2)}\n"
        f"longest − shortest: {spread[0].mean():.0f} steps, baseline {spread[1].mean():.0f}, "
        f"truth {np.ptp(truth[0]['metrics']['lengths']):.0f}\ndeep agents: rank correlation {shown(learned, 2)}"
    )
    if deep_base:
        text += f", baseline {shown(metric(deep_base, 'rank_correlation'), 2)}"
    apart = (spread[0] > 2 * spread[1]).all()
    return Finding(text, holds(order[0].min() >= LIKE, order[1].max() <= UNLIKE, apart, learned.min() >= LIKE))


def far_rooms(ours: Records, base: Records) -> Finding:
    """Fig. 7: steps between far rooms, seed by seed; and how far off the paper's way of counting them is."""
    far, base_far = metric(ours, "far"), metric(base, "far")
    ratio, both = base_far / far, [*ours, *base]
    off = np.abs(metric(both, "far_sampled") / metric(both, "far") - 1).max()
    rollouts = {r["budget"]["rollouts"] for r in both}
    text = (
        f"{shown(far, 0)} steps, baseline {shown(base_far, 0)}, {ratio.min():.1f} to {ratio.max():.1f} times as many; "
        f"{' or '.join(map(str, sorted(rollouts)))} rollouts a state give the same up to {off:.1%}"
    )
    return Finding(text, holds(ratio.min() > 1))


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
    return Finding(f"the truth's action in {shown(of_ours, 2)} of states, baseline {shown(of_base, 2)}", SHOWN)


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


def baseline_order(*groups: Records) -> Finding:
    """Fig. 13: the order of the baseline's dimensions on each map, with that of ours for comparison."""
    found = [order_of_dimensions(group, "mixed")[0] for group in groups]
    pairs = zip(found[::2], found[1::2], strict=True)
    text = ", ".join(f"{base:+.2f} (ours {ours:+.2f})" for base, ours in pairs).replace("-", "−")
    return Finding(f"rank correlation of dimension and success: {text}", SHOWN)


def lead(ours: np.ndarray, other: np.ndarray, resamples: int = 2000) -> Numbers:
    """Mean difference of two sets of areas (goals, agents), with an interval over goals and agents.

    The goals are drawn for both, since they share them; agents within a goal for each by itself, as many as it has.
    """
    rng = np.random.default_rng(0)
    goals = rng.integers(len(ours), size=(resamples, len(ours)))

    def drawn(arm: np.ndarray) -> np.ndarray:
        agents = rng.integers(arm.shape[1], size=(*goals.shape, arm.shape[1]))
        return arm[goals[:, :, None], agents].mean(axis=(1, 2))

    low, high = np.quantile(drawn(ours) - drawn(other), [0.025, 0.975])
    return float(ours.mean() - other.mean()), float(low), float(high)


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
    lines = [f"{name} {value:+.2f} [{low:+.2f}, {high:+.2f}]" for name, (value, low, high) in found.items()]
    text = "\n".join([f"area {first.mean():.2f}, ahead of", *lines]).replace("-", "−")
    return Finding(text, holds(*(v[1] > 0 for v in found.values())))


def alone_and_mixed(*groups: Records, own: bool = False) -> Finding:
    """The same as section 4.3 writes it, the pseudo-reward alone; and with half of the reward sparse."""
    alone, mixed = (best_beats(*groups, variant=variant, own=own) for variant in ("literal", "mixed"))
    return alone._replace(better=Better(mixed.verdict, f"half of the reward sparse: {mixed.ours}"))


def on_both(*groups: Records, judge: Judge) -> Finding:
    """A judge on the records of GridRoom, then on those of GridMaze; both must hold."""
    half = len(groups) // 2
    findings = {"GridRoom": judge(*groups[:half]), "GridMaze": judge(*groups[half:])}
    text = "\n".join(f"{env}: {finding.ours}" for env, finding in findings.items())
    betters = {env: finding.better for env, finding in findings.items() if finding.better}
    better = None
    if betters:
        words = "\n".join(f"{env}, {one.words}" for env, one in betters.items())
        better = Better(holds(*(one.verdict == "reproduced" for one in betters.values())), words)
    return Finding(text, holds(*(finding.verdict == "reproduced" for finding in findings.values())), better)


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
    left_out = "" if base else "\nthe baseline has not been run"
    return Finding(f"{len(goals)} goals, {last:,} steps: {finding.ours}{left_out}", finding.verdict)


def deep_on_maps(*groups: Records) -> Finding:
    """Deep agents on each map, where there are records of ours and of none; the claim needs both, and the baseline."""
    findings, lines = [], []
    for env, (ours, none, base) in zip(paper.STATES, (groups[:3], groups[3:]), strict=True):
        if ours and none:
            findings.append(deep_agents(ours, none, base))
            lines.append(f"{env}, {findings[-1].ours}")
        else:
            lines.append(f"{env}: not enough has been run to compare")
    if not all(groups):
        return Finding("\n".join(lines), SHORT)
    return Finding("\n".join(lines), holds(*(finding.verdict == "reproduced" for finding in findings)))


def kept_to_span(*groups: Records) -> Finding:
    """Fig. 9: cosine distance between the u_i and the span; the largest, at any snapshot of a run, must be small.

    Two groups from Table 1, whose first records have snapshots; then two with the small target, which have more
    points and no vectors.
    """
    half = len(groups) // 2
    lines, largest = [], []
    for record in (group[0] for group in groups[:half]):
        env, stored = record["setting"]["env"], arrays(record)
        truth = eigenvectors(LAYOUTS[env], stored["snapshots"].shape[2]).vectors
        distance = 1 - np.array([in_span(vectors.astype(float), truth) for vectors in stored["snapshots"]])
        step, worst = np.unravel_index(distance.argmax(), distance.shape)
        where = f"in dimension {worst + 1} at step {stored['snapshot_steps'][step]:,}"
        largest.append(distance.max())
        lines.append(f"{env}: largest {distance.max():.2f}, {where}; {distance.mean():.3f} in the mean of "
                     f"{len(distance)} snapshots")  # fmt: skip
    small = {}
    for records in groups[half:]:
        if records:
            distance = 1 - np.array([arrays(r)["in_span"].astype(float) for r in records])  # runs, points, dimensions
            small[records[0]["setting"]["env"]] = distance.max()
    better = None
    if small:
        words = ", ".join(f"{env} {value:.2f}" for env, value in small.items())
        better = Better(holds(*(value <= NEAR for value in small.values())), f"with target τ = 1/d: largest {words}")
    return Finding("\n".join(lines), holds(*(value <= NEAR for value in largest)), better)


def groups_drawn(convex: Records, concave: Records) -> Finding:
    """Fig. 11(a): nothing to compare with; what ours are."""
    values = [group[0]["metrics"]["coefficients"] for group in (convex, concave)]
    drawn = [", ".join(f"{x:.1f}" for x in c[:3]) for c in values]
    text = f"ours: group 1 {drawn[0]}, … {values[0][-1]:g}; group 2 {drawn[1]}, … {values[1][-1]:g}"
    return Finding(text, LOST)


def groups_as_good(convex: Records, concave: Records, default: Records) -> Finding:
    """Fig. 11(b): SimGT of each group; neither may be worse than the default."""
    values = [metric(group, "sim_gt") for group in (convex, concave, default)]
    text = "\n".join(f"{n} {shown(v)}" for n, v in zip(("group 1", "group 2", "default"), values, strict=True))
    return Finding(text, holds(*(compare(v.mean(), values[2].mean()) != "differs" for v in values[:2])))
