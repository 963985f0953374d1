"""What the ledger says beside its numbers: remarks on claims, and where the book shows them.

Keys are patterns for those of `paper.CLAIMS`; the first that fits counts. A remark that needs a result of ours is a
function of the records of its row, one list for each source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatch

import numpy as np

from lapbook.reproduction import paper
from lapbook.reproduction.common import cut_short
from lapbook.reproduction.ledger.verdicts import LIKE, SIMILAR
from lapbook.reproduction.ledger.words import between, duration
from lapbook.reproduction.shaping import GOALS
from lapbook.results import Record, metric

Remark = str | Callable[..., str]
RISE = 0.002  # a curve rises if the mean of its last tenth is so much above that of the tenth before


# Remarks with results in them


def small_target(*groups: list[Record]) -> str:
    """How long runs with the target 1/d took, compared with the paper's."""
    steps = {r["budget"]["steps"] for r in groups[-1]}
    times = paper.TRAINING["steps"] / max(steps)
    return f"Target τ = 1/d, {between(sorted(steps))} steps; the paper trains {times:.0f} times as long."


def small_runs(*groups: list[Record]) -> str:
    """Steps and batch of runs on floors that had settings of ours; nothing if there are none."""
    budgets = [r["budget"] for group in groups for r in group if r["setting"]["preset"] == "fast"]
    if not budgets:
        return ""
    steps, batch = ({b[key] for b in budgets} for key in ("steps", "batch"))
    return f"{between(sorted(steps))} steps with batches of {between(sorted(batch))}"


def pace(literal: list[Record], *others: list[Record]) -> str:
    """What a full run would have taken; nothing if all were full."""
    short = [r["budget"] for r in literal if cut_short(r["budget"])]
    if not short:
        return ""
    seconds = float(np.mean([b["wall_seconds"] / b["steps"] * b["steps_allowed"] for b in short]))
    return f"At this pace a full run takes about {duration(seconds, days=86400, hours=3600, minutes=60)} of one core."


def mixed_pairs(literal: list[Record], *others: list[Record]) -> str:
    """Which neighbouring dimensions end away from their axes, in how many runs; and what was still moving there."""
    found: dict[int, list[Record]] = {}
    for record in literal:
        low = np.array(record["metrics"]["sim_gt_per_dim"]) < LIKE
        for i in np.flatnonzero(low[:-1] & low[1:]).tolist():
            found.setdefault(i, []).append(record)
    if not found:
        return "No two neighbouring dimensions end away from their axes."
    texts = []
    for i, records in sorted(found.items()):
        off = np.degrees(np.arccos(metric(records, "sim_gt_per_dim")[:, i : i + 2])).round().astype(int)
        runs = f"{len(records)} of {len(literal)} runs end" if len(records) > 1 else f"1 of {len(literal)} runs ends"
        texts.append(f"{runs} with dimensions {i + 1} and {i + 2} at {between(off.ravel(), '°')} from their axes")
    rising = still_rising([record for records in found.values() for record in records])
    return f"{'; '.join(texts)}. Over the last third of such a run SimGT {rising}."


def still_rising(records: list[Record]) -> str:
    """How much SimGT rose from the tenth of a run that ends at two thirds of it to the last tenth."""
    rises = []
    for record in records:
        curve = np.array(record["metrics"]["curve"]["sim_gt"])
        tenth, then = max(len(curve) // 10, 1), 2 * len(curve) // 3
        rises.append(curve[-tenth:].mean() - curve[max(then - tenth, 0) : max(then, 1)].mean())
    signed = [f"{x:+.3f}".replace("-", "−") for x in sorted(rises)]
    return f"changed by {' to '.join(dict.fromkeys((signed[0], signed[-1])))}"


def not_over(records: list[Record]) -> str:
    """How many runs were still rising at their end; nothing if none was."""
    rising = 0
    for record in records:
        curve = np.array(record["metrics"]["curve"]["sim_gt"])
        tenth = max(len(curve) // 10, 1)
        rising += bool(curve[-tenth:].mean() - curve[-2 * tenth : -tenth].mean() > RISE)
    if not rising:
        return ""
    steps = between(sorted({r["budget"]["steps"] for r in records}))
    were = f"{rising} of {len(records)} runs {'was' if rising == 1 else 'were'}"
    return f"After {steps} steps {were} still rising. Where they end we do not know."


def networks(*groups: list[Record]) -> str:
    """Which deep agents with shaped rewards there are."""
    records = [record for group in groups for record in group]
    goals = {(r["setting"]["env"], goal) for r in records for goal in r["metrics"]["goals"]}
    each = {r["budget"].get("agents", 0) / np.prod([len(r["metrics"][key]) for key in ("rewards", "variants", "goals")])
            for r in records}  # fmt: skip
    on = len(goals) // len({env for env, _ in goals})
    return f"Networks of Table 5, on {on} of {GOALS} goals of each map, {max(each):.0f} agent for each goal and reward."


def ceilings(records: list[Record], *others: list[Record]) -> str:
    """The ceilings of the data of each run."""
    values = ", ".join(f"{x:.3f}" for x in metric(records, "ceiling"))
    return f"Each run has data of its own, and their own eigenvectors are not the truth's: ceilings {values}."


def _on_floor(*groups: list[Record], others: str = "The runs with Fourier features") -> str:
    took = small_runs(*groups)
    return " ".join(filter(None, (pace(groups[0]), took and f"{others} took {took}.")))


def _baseline_on_floor(*groups: list[Record]) -> str:
    return f"{_on_floor(*groups, others='The smaller runs')} The axes are left to chance, however long it runs."


def _options(truth: list[Record], *groups: list[Record]) -> str:
    text = "Options climb exactly, as γ = 0 asks; deep agents of ours are the check."
    if any(cut_short(r["budget"]) for r in groups[-1]):
        text += " The deep baseline was cut short: it is shown, and not judged."
    return text


def _deep(*groups: list[Record]) -> str:
    text = networks(*groups)
    if not any("literal" in r["metrics"]["variants"] for group in groups for r in group):
        text += " Only the mixture was run, with representations learned as printed."
    return text


def _group(*groups: list[Record]) -> str:
    return f"Our coefficients: the paper's are in a picture that our copy lacks. {small_target(*groups)}"


# Said always

TABULAR = "Agents are tables, not networks."
BUILT = "By construction: our maps were built to these numbers."
POSITIONS = "From positions; the paper does not say."
NOT_SAID = "which of them the paper drew is not said. The paper makes no claim."
NOTES: dict[str, Remark] = {
    "theorem-1": "The assumption on the span is not needed, if also λ_d < λ_{d+1}.",
    "theorem-2": "The paper drops c_d > 0 here; within the span it may.",
    "table-1-gd-Point*": _baseline_on_floor,
    "table-1-ggd-Point*": _on_floor,
    "fig-1": lambda *groups: f"PointMaze; the paper does not say which floor. {_on_floor(*groups)}",
    "fig-4": _on_floor,
    "fig-16": _on_floor,
    "fig-2": BUILT,
    "fig-5-ours": "The paper calls SimRUN an inconsistency; it is a similarity.",
    "fig-6-*": _options,
    "fig-7-rooms": BUILT,
    "fig-7-far": "Far rooms are those of chapter 7; exact expectations, and the paper's rollouts as a check.",
    "fig-8-[ab]": TABULAR,
    "fig-8-[cd]": f"{TABULAR} Differences of areas under the success curve.",
    "fig-8-deep": _deep,
    "fig-9": "The figure's caption and the text describe different quantities; this is the text's. The steps before "
    "the first snapshot are in chapter 9.",
    "fig-10": "Our maps were chosen among hundreds of candidates for well separated eigenvalues (chapter 1), so this "
    "says nothing about the paper's.",
    "fig-11-a": "The values are ours.",
    "fig-11-b": _group,
    "fig-13": f"{TABULAR} Representations as printed; half of the reward is the sparse one. The paper makes no claim.",
    "fig-14": f"{TABULAR} Differences of areas under the success curve. All dimensions of ours and of the baseline "
    "span the same space, so the distances in them are the same.",
    "fig-15": POSITIONS,
    "fig-3": POSITIONS,
    "fig-19": f"Dimensions 2 to 6; {NOT_SAID}",
    "fig-20": f"Dimensions 7 to 10; {NOT_SAID}",
    "table-4": "Entered as printed; Adam, and one gradient step a step, are in the code. Exploration is not stated; "
    "ours is a random walk.",
    "table-5": "Entered as printed, as in Table 4. Exploration is not stated; ours is ε = 0.2, as in the code on which "
    "the paper builds.",
    "table-6-paper": "The same runs as in Table 1.",
    "table-6-*": _group,
    "training": "Entered as printed. Target of the penalty and initial weights are not stated.",
}


# Said where a claim differs, or cannot be judged

WAITING = "Where the sparse reward is missing, waiting in a cell that has nearly the value of the goal can be best."


def _concave(*groups: list[Record]) -> str:
    concave = [r for group in groups for r in group if r["setting"]["group"] == "concave"]
    return (
        f"Group 2: {mixed_pairs(concave)} {not_over(concave)} Our group 2 has its smallest differences where the gaps "
        "are smallest. On GridRoom it is the paper's worst as well."
    )


def _near(ours: list[Record], base: list[Record], truth: list[Record]) -> str:
    ratio = (metric(truth, "far") / metric(truth, "next_door")).mean()
    return "Nor do the options of the exact eigenvectors make far rooms as near as that." if ratio > SIMILAR else ""


def _small_gap(*groups: list[Record]) -> str:
    return (
        f"{mixed_pairs(*groups)} With target τ = 1 the pull of that small gap drowns in the noise of Adam's steps; "
        "as coded, with τ = 1/d, it does not."
    )


WHYS: dict[str, Remark] = {
    "table-1-ggd-GridRoom-xy": _small_gap,
    "table-6-paper": _small_gap,
    "fig-15": _small_gap,
    "table-1-ggd-GridMaze-image": lambda *groups: (
        f"{mixed_pairs(*groups)} At 90° two dimensions would have changed places, which is a saddle of the loss."
    ),
    "fig-7-near": _near,
    "fig-8-[cd]": WAITING,
    "fig-14": WAITING,
    "fig-9": "The theorem does not need the uᵢ in the span.",
    **dict.fromkeys(("fig-11-b", "table-6-concave"), _concave),
    "fig-12": "The paper's goals are in a picture that our copy lacks.",
    "fig-17": ceilings,
}
SEE = {
    "eq-2": "02-graph-drawing#prop-invariance",
    "theorem-1": "03-the-theorem#thm-one",
    "lemma-1": "03-the-theorem#lem-block",
    "theorem-2": "03-the-theorem#thm-two",
    "lemma-[23]": "03-the-theorem#lem-functions",
    "loss": "04-from-matrix-to-samples#prop-expectation",
    "truth": "06-continuous-control#fig-point-convergence",
    "table-1-*-Point*": "06-continuous-control#the-paper-s-own-settings",
    "table-1-*": "05-neural-approximation#the-table",
    "fig-1": "06-continuous-control#fig-point-second",
    "fig-2": "01-states-as-a-graph#fig-environments",
    "fig-3": "05-neural-approximation#fig-gridmaze-learned",
    "fig-4": "06-continuous-control#fig-pointroom-ten",
    "fig-5-*": "05-neural-approximation#fig-simrun",
    "fig-6-*": "07-options#fig-option-lengths",
    "fig-7-*": "07-options#fig-room-times",
    "fig-8-[ab]": "08-reward-shaping#fig-shaping-areas",
    "fig-8-deep": "08-reward-shaping#fig-shaping-dqn",
    "fig-8-*": "08-reward-shaping#best-against-all",
    "fig-9": "09-assumptions-and-coefficients#fig-in-span",
    "fig-10": "01-states-as-a-graph#fig-eigenvalues",
    "fig-11-*": "09-assumptions-and-coefficients#fig-four-groups",
    "fig-12": "08-reward-shaping#fig-goals",
    "fig-13": "08-reward-shaping#fig-shaping-curves",
    "fig-14": "08-reward-shaping#best-against-all",
    "fig-15": "05-neural-approximation#fig-gridroom-learned",
    "fig-16": "06-continuous-control#fig-pointmaze-ten",
    "fig-1[78]": "05-neural-approximation#fig-simrun",
    "fig-19": "07-options#fig-options-second",
    "fig-20": "07-options#fig-options-second",
    "table-[23]": "05-neural-approximation#a-network-and-its-settings",
    "table-4": "07-options#learned-by-deep-q-learning",
    "table-5": "08-reward-shaping#deep-q-learning",
    "table-6-*": "09-assumptions-and-coefficients#networks",
    "training": "05-neural-approximation#a-network-and-its-settings",
}


def about(claim: str, remarks: Mapping[str, Remark], groups: list[list[Record]] | tuple = ()) -> str:
    """The remark whose pattern fits a claim's key, on the records of its row; or none."""
    remark = next((remark for pattern, remark in remarks.items() if fnmatch(claim, pattern)), "")
    return remark(*groups) if callable(remark) else remark
