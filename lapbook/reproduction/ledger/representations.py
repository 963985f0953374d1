"""Judges of learned representations: Tables 1 and 6, heatmaps, agreement of runs, the span, other coefficients."""

from __future__ import annotations

import numpy as np

from lapbook.layouts import LAYOUTS
from lapbook.metrics import in_span, sim_gt_per_dim
from lapbook.reproduction import paper
from lapbook.reproduction.common import cut_short
from lapbook.reproduction.ledger.verdicts import (
    ANOTHER,
    CHANCE,
    CLOSE,
    LIKE,
    LOST,
    NEAR,
    SHORT,
    UNLIKE,
    Better,
    Finding,
    Records,
    compare_runs,
    estimate,
    holds,
    margin,
    most,
    of_runs,
    shown,
)
from lapbook.results import arrays, metric
from lapbook.spectrum import eigenvectors


def number(
    literal: Records, changed: Records = (), *, printed: float, tolerance: float = CLOSE, more: bool = True,
    how: str = "", inside: bool = False,
) -> Finding:  # fmt: skip
    """SimGT against the paper's, again with changes that `how` names; `inside` tells of the number and our interval."""
    values, better = metric(literal, "sim_gt"), None
    if changed:
        improved = metric(changed, "sim_gt")
        verdict = compare_runs(improved, printed, tolerance, more)
        better = Better(verdict, f"{how}: {of_runs(changed, improved)}", tuple(improved))
    _, low, high = estimate(values)
    text = of_runs(literal, values)
    if more:
        text += f"; ceiling of the data {metric(literal, 'ceiling').mean():.3f}"
    if inside:
        text += f"; the paper's number lies {'inside' if low <= printed <= high else 'outside'} the interval"
    return Finding(text, compare_runs(values, printed, tolerance, more), better, printed, tuple(values))


def baseline_on_floor(literal: Records, small: Records = (), *, printed: float) -> Finding:
    """SimGT of the baseline on a floor: the paper's way, and with fewer and smaller batches."""
    how = f"on {_share(small)}"
    return number(literal, small, printed=printed, tolerance=CHANCE, more=False, how=how)


def on_floor(literal: Records, ours: Records = (), base: Records = (), *, printed: float) -> Finding:
    """SimGT on a floor: the paper's way, its objective with Fourier features, and another method, a turn at the end."""
    finding = number(literal, ours, printed=printed, how=f"with Fourier features, on {_share(ours)}")
    turned = [metric(group, "sim_gt_ritz") for group in (ours, base) if group]
    if len(turned) < 2:
        return finding
    words = f"with the same features, then turned by Rayleigh–Ritz: {shown(turned[0])}, the baseline {shown(turned[1])}"
    return finding._replace(another=Better(ANOTHER, words, tuple(turned[1])))


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
    values, others = metric(ours, key)[:, dims], metric(base, "sim_gt_per_dim")[:, dims].mean(axis=1)
    low = values.mean(axis=0).argmin()
    which = np.arange(len(ours[0]["metrics"][key]))[dims][low] + 1
    lowest, of_all = (", lowest in the mean over runs", " in the mean of all") if values.shape[1] > 1 else ("", "")
    text = f"dimension {which}{lowest}: {of_runs(ours, values[:, low], 2)}"
    passed = values[:, low].mean() >= LIKE and most([bool((run >= LIKE).all()) for run in values])
    verdict = holds(passed, others.mean() <= UNLIKE)
    if not any(cut_short(r["budget"]) for r in ours):
        text += f" ({margin(values[:, low], LIKE)})"
    return f"{text}; baseline{of_all}: {of_runs(base, others, 2)}", verdict


def agreement_of_runs(records: Records, *, alike: bool, first: int | None = None) -> Finding:
    """SimRUN between all pairs of runs, and the first dimensions one by one: all must agree, or none."""
    if len(records) < 2:
        return Finding("one run only", SHORT)
    runs = [arrays(r)["vectors"].astype(float) for r in records]
    pairs = np.array([sim_gt_per_dim(runs[a], runs[b]) for a in range(len(runs)) for b in range(a)])
    each, total = pairs[:, :first].mean(axis=0), pairs.mean()
    text = f"SimRUN {total:.2f} (pairs: {', '.join(f'{x:.2f}' for x in pairs.mean(axis=1))}); "
    text += f"dimensions 1 to {len(each)}: {each.min():.2f} to {each.max():.2f}"
    worst = int(each.argmin() if alike else each.argmax())
    limit, passed = (LIKE, pairs[:, worst] >= LIKE) if alike else (UNLIKE, pairs[:, worst] <= UNLIKE)
    fits = (total >= LIKE, each.min() >= LIKE) if alike else (total <= UNLIKE, each.max() <= UNLIKE)
    told = margin(pairs[:, worst], limit, alike).replace(" run", " pair")
    text += f", {'least' if alike else 'most'} in dimension {worst + 1} ({told})"
    return Finding(text, holds(*fits, most(passed)))


def kept_to_span(*groups: Records) -> Finding:
    """Fig. 9: cosine distance between the u_i and the span; the largest, at any snapshot of a run, must be small.

    Groups from Table 1, one for each map, whose first records have snapshots.
    """
    lines, largest = [], []
    for record in (group[0] for group in groups):
        env, stored = record["setting"]["env"], arrays(record)
        truth = eigenvectors(LAYOUTS[env], stored["snapshots"].shape[2]).vectors
        distance = 1 - np.array([in_span(vectors.astype(float), truth) for vectors in stored["snapshots"]])
        step, worst = np.unravel_index(distance.argmax(), distance.shape)
        where = f"in dimension {worst + 1} at step {stored['snapshot_steps'][step]:,}"
        largest.append(distance.max())
        lines.append(f"{env}: largest {distance.max():.2f}, {where}; {distance.mean():.3f} in the mean of "
                     f"{len(distance)} snapshots")  # fmt: skip
    return Finding("\n".join(lines), holds(*(value <= NEAR for value in largest)))


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
    return Finding(text, holds(*(compare_runs(v, values[2].mean()) != "differs" for v in values[:2])))
