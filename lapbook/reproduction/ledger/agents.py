"""Judges of what is done with representations: options (Fig. 6, 7, 19, 20) and shaped rewards (Fig. 8, 13, 14)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lapbook.reproduction import paper
from lapbook.reproduction.ledger.verdicts import (
    LIKE,
    SHORT,
    SHOWN,
    SIMILAR,
    UNLIKE,
    Finding,
    Judge,
    Numbers,
    Records,
    holds,
    margin,
    most,
    shown,
)
from lapbook.results import Record, arrays, metric
from lapbook.statistics import area, bootstrap, lead, spearman

# Options


def option_lengths(
    truth: Records, ours: Records, base: Records, deep: Records = (), deep_base: Records = ()
) -> Finding:
    """Fig. 6: the order of the lengths, and how far they spread; deep agents of ours must give the same order."""
    spread = [np.ptp(metric(group, "lengths"), axis=1) for group in (ours, base)]
    order = [metric(group, "rank_correlation") for group in (ours, base)]
    text = (
        f"order as the truth's: rank correlation {shown(order[0], 2)}, baseline {shown(order[1], 2)}\n"
        f"longest − shortest: {shown(spread[0], 0)} steps, baseline {shown(spread[1], 0)}, "
        f"truth {np.ptp(truth[0]['metrics']['lengths']):.0f}"
    )
    if deep:
        text += f"\ndeep agents: rank correlation {shown(metric(deep, 'rank_correlation'), 2)}"
    if deep_base:
        text += f", baseline {shown(metric(deep_base, 'rank_correlation'), 2)}"
    apart = (spread[0] > 2 * spread[1]).all()
    learned = all(r["metrics"]["rank_correlation"] >= LIKE for r in deep)
    return Finding(text, holds(order[0].min() >= LIKE, order[1].max() <= UNLIKE, apart, learned))


def far_rooms(ours: Records, base: Records, truth: Records = ()) -> Finding:
    """Fig. 7: steps between far rooms, seed by seed; and how far off the paper's way of counting them is."""
    far, base_far = metric(ours, "far"), metric(base, "far")
    ratio, both = base_far / far, [*ours, *base]
    off = np.abs(metric(both, "far_sampled") / metric(both, "far") - 1).max()
    rollouts = {r["budget"]["rollouts"] for r in both}
    text = (
        f"{shown(far, 0)} steps, baseline {shown(base_far, 0)}, {ratio.min():.1f} to {ratio.max():.1f} times as many"
        f"{''.join(f', truth {x:.0f}' for x in metric(truth, 'far'))}; "
        f"{' or '.join(map(str, sorted(rollouts)))} rollouts a state give the same up to {off:.1%}"
    )
    return Finding(text, holds(ratio.min() > 1))


def near_rooms(ours: Records, base: Records, truth: Records) -> Finding:
    """Fig. 7(d): steps to far rooms over those to the room next door."""
    ratios = [metric(group, "far") / metric(group, "next_door") for group in (ours, base, truth)]
    text = f"far over next door {shown(ratios[0], 1)}, baseline {shown(ratios[1], 1)}, truth {ratios[2].mean():.1f}"
    text += f" ({margin(ratios[0], SIMILAR, least=False, digits=1)})"
    return Finding(text, holds(ratios[0].mean() <= SIMILAR, most(ratios[0] <= SIMILAR)))


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


# Shaped rewards

VARIANTS = {"literal": "alone", "mixed": "mixed"}
DIMENSIONS = tuple(f"dim {i}" for i in range(2, 11))


def areas(records: Records, variant: str, labels: Sequence[str]) -> np.ndarray:
    """Area under the success curves of shaped agents, shape (labels, goals, agents); the records share their goals."""
    found = []
    for record in records:
        metrics, curves = record["metrics"], arrays(record)["curves"].astype(float)
        chosen = [metrics["rewards"].index(label) for label in labels]
        found.append(area(metrics["steps"], curves[metrics["variants"].index(variant)][chosen]))
    return np.concatenate(found, axis=2)


def order_of_dimensions(records: Records, variant: str) -> Numbers:
    """Rank correlation of the dimension and its mean area, with an interval over goals and agents."""

    def rank(outcomes: np.ndarray) -> float:
        return spearman(np.arange(len(outcomes)), outcomes.mean(axis=(1, 2)))

    found = areas(records, variant, DIMENSIONS)
    low, high = map(float, bootstrap(found, rank, resamples=500, over="both"))
    return rank(found), low, high


def _signed(numbers: Numbers) -> str:
    value, low, high = numbers
    return f"{value:+.2f} [{low:+.2f}, {high:+.2f}]".replace("-", "−")


def lower_is_better(ours: Records, *, variant: str) -> Finding:
    """Fig. 8(a, b): the order of our dimensions; dimension 2 must be the best."""
    order = order_of_dimensions(ours, variant)
    best = int(areas(ours, variant, DIMENSIONS).mean(axis=(1, 2)).argmax()) + 2
    text = f"rank correlation of dimension and success {_signed(order)}; dimension {best} is best"
    return Finding(text, holds(order[2] < 0, best == 2))


def baseline_order(*groups: Records) -> Finding:
    """Fig. 13: the order of the baseline's dimensions on each map, with that of ours for comparison."""
    found = [_signed(order_of_dimensions(group, "mixed")) for group in groups]
    pairs = zip(paper.STATES, found[::2], found[1::2], strict=True)
    text = "\n".join(f"{env} {base}, ours {ours}" for env, base, ours in pairs)
    return Finding(f"rank correlation of dimension and success:\n{text}", SHOWN)


def best_beats(
    ours: Records, base: Records = (), none: Records = (), *, variant: str = "mixed", own: bool = False
) -> Finding:
    """Fig. 8(c, d) and 14: dimension 2 of ours against others, or (`own`) against all ten of ours."""
    first, rivals = areas(ours, variant, ["dim 2"])[0], {}
    if own:
        rivals["all of ours"] = areas(ours, variant, ["all"])[0]
    else:
        runs = [areas([record], variant, DIMENSIONS) for record in base]
        best = [run[run.mean(axis=(1, 2)).argmax()] for run in runs]  # chosen after the fact, in its favour
        rivals["baseline, best"] = np.concatenate(best, axis=1)
        rivals["baseline, all"] = areas(base, variant, ["all"])[0]
        rivals |= dict(zip(("(x, y)", "none"), areas(none, variant, ["position", "sparse"]), strict=True))
    return _leads(first, rivals)


def _leads(first: np.ndarray, rivals: dict[str, np.ndarray]) -> Finding:
    found = {name: lead(first, other) for name, other in rivals.items()}
    lines = [f"{name} {_signed(value)}" for name, value in found.items()]
    above = [low > 0 for _, low, _ in found.values()]
    if len(above) > 1 and not all(above):
        lines.append(f"intervals above 0: {sum(above)} of {len(above)}")
    return Finding("\n".join([f"area {first.mean():.2f}, ahead of", *lines]), holds(*above))


def on_both(*groups: Records, judge: Judge, variant: str) -> Finding:
    """A judge on the records of GridRoom, then on those of GridMaze; both must hold."""
    half = len(groups) // 2
    findings = {
        "GridRoom": judge(*groups[:half], variant=variant),
        "GridMaze": judge(*groups[half:], variant=variant),
    }
    text = "\n".join(f"{env}: {finding.ours}" for env, finding in findings.items())
    return Finding(text, holds(*(finding.verdict == "reproduced" for finding in findings.values())))


def deep_agents(ours: Records, none: Records, base: Records = (), *, variant: str = "mixed") -> Finding:
    """Fig. 8(c, d) with networks: on the goals that all have, for the steps that all have done."""
    last = min(r["metrics"]["steps"][-1] for r in [*ours, *none, *base])

    def by_goal(records: Records, label: str) -> dict[int, np.ndarray]:
        found: dict[int, np.ndarray] = {}
        for record in records:
            metrics, steps = record["metrics"], np.array(record["metrics"]["steps"])
            names = ["best" if name.startswith("dim ") else name for name in metrics["rewards"]]
            curves = arrays(record)["curves"].astype(float)[metrics["variants"].index(variant), names.index(label)]
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


def deep_on_maps(*groups: Records, variant: str) -> Finding:
    """Deep agents on each map; a comparison needs both maps, and the baseline."""
    having = [[r for r in group if variant in r["metrics"]["variants"]] for group in groups]
    if not any(having):
        return Finding(f"{VARIANTS[variant]}: not run with networks", SHORT)
    findings, lines = [], []
    for env, (ours, none, base) in zip(paper.STATES, (having[:3], having[3:]), strict=True):
        if ours and none:
            findings.append(deep_agents(ours, none, base, variant=variant))
            lines.append(f"{env}, {findings[-1].ours}")
        else:
            lines.append(f"{env}: not enough has been run to compare")
    verdict = holds(*(finding.verdict == "reproduced" for finding in findings)) if all(having) else SHORT
    return Finding("\n".join(lines), verdict)
