"""Judges of exact records: theorems, the sampled loss, the truth on floors, the maps, and the tables of settings."""

from __future__ import annotations

from lapbook.reproduction import paper
from lapbook.reproduction.ledger.verdicts import CLOSE, DISTINCT, LOST, ROUNDING, UNLIKE, Finding, Records, holds
from lapbook.results import metric


def _worst(records: Records, *keys: str) -> float:
    return max(abs(r["metrics"][key]) for r in records for key in keys)


def _tiny(value: float) -> str:
    return f"{value:.0e}".replace("-", "−")


def _sign(value: float) -> str:
    return "positive" if value > 0 else "not positive"


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
        f"the smallest excess of {frames} random frames over the minimum is {_sign(least)} ({_tiny(least)} of it); "
        f"no line of the proof is off by more than {_tiny(off)}; {orders} of 120 orders attains the minimum; "
        f"descent ends at SimGT {descent:.3f}"
    )
    outside = metric(records, "least_gap_outside").min()
    return Finding(text, holds(least > 0, outside > 0, off <= ROUNDING, orders == 1, descent >= 1 - CLOSE))


def on_functions(records: Records) -> Finding:
    """Theorem 2, on an interval with the heat kernel."""
    least, frames = metric(records, "least_gap").min(), metric(records, "frames").sum()
    shift = _worst(records, "change_for_negative_c")
    text = (
        f"the smallest excess of {frames} random frames of functions on an interval over the minimum is "
        f"{_sign(least)} ({least:.1f}); shifting all c below 0 changes it by {_tiny(shift)} at most"
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
    return Finding(f"ours: {found[0]['goals']} on each map, at least {apart} steps apart", LOST)


def layers(records: Records, *, obs: str, table: list) -> Finding:
    """Tables 2 and 3."""
    found = records[0]["metrics"][obs]
    sizes = ", ".join(str(size) for _, size, _ in found["layers"])
    text = f"{found['layers'][0][0]} {sizes}; with the last linear layer {found['parameters']:,} parameters"
    return Finding(text, holds(found["layers"] == table, found["last"] == ["Linear", paper.TRAINING["d"]]))


def same_settings(records: Records, *runs: Records, name: str, table: dict, of: int | None = None) -> Finding:
    """Tables 4 and 5 and appendix E.1: our settings against the `of` printed ones; `runs` must have had their data."""
    found = records[0]["metrics"][name]
    same = [found[key] == value for key, value in table.items()]
    budgets = [(r["setting"]["env"], r["budget"]) for group in runs for r in group]
    data = [b["transitions"] == paper.TRANSITIONS[env] for env, b in budgets if "transitions" in b]
    which = f"{len(same)} of the {of} are" if of else f"{len(same)}"
    text = f"{which} numbers in our settings; {'all equal' if all(same) else f'{len(same) - sum(same)} not equal'}"
    if data:
        text += f"; {sum(data)} of {len(data)} runs had as many transitions"
    return Finding(text, holds(*same, *data))
