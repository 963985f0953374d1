"""Which records bear on a claim of `paper.CLAIMS`, and who judges them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from lapbook.reproduction import paper
from lapbook.reproduction.ledger import agents, exact, representations
from lapbook.reproduction.ledger.verdicts import CHANCE, Judge

SETTINGS = {
    "paper": "the paper's settings, as far as it states them",
    "early": "the paper's settings, ended early",
    "changed": "settings of ours",
    "exact": "computed, nothing is trained",
}
READINGS = ("paper", "paper-coded")
"""The presets of the two readings: as printed, and as coded."""
FOURIER = ("fourier-ggd-fast", "fourier-gd-fast")


@dataclass(frozen=True)
class Entry:
    """What a row is made of."""

    claim: str
    """A key of `paper.CLAIMS`."""
    sources: tuple[str, ...]
    """What is judged: patterns `experiment/name`, as `reproduce experiment --only name` takes them. Where one that
    begins with ? has no records, the row is not run in full."""
    judge: Judge
    """Takes the records of each source, then those of each in `beside`."""
    settings: str = "paper"
    """A key of SETTINGS; of runs that took fewer steps than they might have, "paper" becomes "early"."""
    beside: tuple[str, ...] = ()
    """What is told beside, and not judged; it may be without records."""
    coded: tuple[str, ...] = ()
    """The sources of the second reading of the paper, as coded, where the row depends on it and it was run."""
    coded_judge: Judge | None = None
    """Judges them, if it is another than `judge`."""
    coded_settings: str = "paper"
    """A key of SETTINGS for them."""


def _theory() -> Iterator[Entry]:
    proved = partial(Entry, settings="exact")
    yield proved("eq-2", ("exact/rotations-*",), exact.invariance)
    yield proved("theorem-1", ("exact/theorem-1-*",), exact.unique_minimiser)
    yield proved("lemma-1", ("exact/lemma-1-*",), partial(exact.identity, key="difference"))
    yield proved("theorem-2", ("exact/theorem-2-*",), exact.on_functions)
    for k in (2, 3):
        yield proved(f"lemma-{k}", ("exact/theorem-2-*",), partial(exact.identity, key=f"lemma_{k}"))
    yield proved("loss", ("exact/sampled-loss-*",), exact.unbiased)


def _table_1() -> Iterator[Entry]:
    for (env, obs), printed in paper.TABLE_1["gd"].items():
        key = f"table-1-gd-{env}-{obs}"
        if env in paper.STATES:
            judge = partial(representations.number, printed=printed, tolerance=CHANCE, more=False)
            yield Entry(key, (f"table1/{env}-{obs}-gd-paper-10-*",), judge)
        else:
            literal, small = (f"point/{env}-xy-gd-{preset}-10-*" for preset in ("paper", "fast"))
            judge = partial(representations.baseline_on_floor, printed=printed)
            yield Entry(key, (literal,), judge, beside=(small,))
    for (env, obs), printed in paper.TABLE_1["ggd"].items():
        key = f"table-1-ggd-{env}-{obs}"
        if env in paper.STATES:
            literal, coded = (f"table1/{env}-{obs}-ggd-{preset}-10-*" for preset in READINGS)
            judge = partial(representations.number, printed=printed)
            changed = "changed" if obs == "image" else "paper"  # images need more to learn at all as coded
            yield Entry(key, (literal,), judge, coded=(coded,), coded_settings=changed)
        else:
            sources = [f"point/{env}-{run}-10-*" for run in ("xy-ggd-paper", *FOURIER)]
            judge = partial(representations.on_floor, printed=printed)
            yield Entry(key, tuple(sources[:1]), judge, beside=tuple(sources[1:]))


def _representations() -> Iterator[Entry]:
    yield Entry("fig-2", ("exact/environments-*",), exact.described, "exact")
    yield Entry("truth", ("exact/finite-differences-*",), exact.converges, "exact")
    for key, env, dims in (
        ("fig-1", "PointMaze", slice(1, 2)),
        ("fig-4", "PointRoom", slice(None)),
        ("fig-16", "PointMaze", slice(None)),
    ):
        sources = [f"point/{env}-{run}-10-*" for run in ("xy-ggd-paper", "xy-gd-paper", *FOURIER)]
        judge = partial(representations.looks_alike_on_floor, dims=dims)
        yield Entry(key, tuple(sources[:2]), judge, beside=tuple(sources[2:]))
    for key, env in (("fig-3", "GridMaze"), ("fig-15", "GridRoom")):
        xy, image = (tuple(f"table1/{env}-{obs}-{method}-paper-10-*" for method in ("ggd", "gd"))
                     for obs in ("xy", "image"))  # fmt: skip
        coded = f"table1/{env}-xy-ggd-paper-coded-10-*", xy[1]
        yield Entry(key, xy, representations.looks_alike, beside=image, coded=coded)
    for key, method, first in (
        ("fig-5-ours", "ggd", 3),
        ("fig-5-baseline", "gd", 3),
        ("fig-17", "ggd", None),
        ("fig-18", "gd", None),
    ):
        judge = partial(representations.agreement_of_runs, alike=method == "ggd", first=first)
        runs = [f"table1/GridRoom-xy-{method}-{preset}-10-*" for preset in READINGS]
        yield Entry(key, (runs[0],), judge, coded=tuple(runs[1:]) if method == "ggd" else ())


def _options() -> Iterator[Entry]:
    def climbing(env: str) -> list[str]:
        runs = ("truth-exact", "ggd-paper", "gd-paper", "ggd-paper-coded")
        return [f"options/{env}-climb-{run}-10-*" for run in runs]

    for env in paper.STATES:
        deep, base = (f"options/{env}-dqn-{method}-paper-10-*" for method in ("ggd", "gd"))
        truth, ours, climbed, coded = climbing(env)
        yield Entry(
            f"fig-6-{env}",
            (truth, ours, climbed, deep),
            agents.option_lengths,
            "changed",
            beside=(base,),
            coded=(truth, coded, climbed),
            coded_judge=agents.option_lengths,
            coded_settings="changed",
        )
    truth, ours, base, coded = climbing("GridRoom")
    changed = partial(Entry, settings="changed", coded_settings="changed")
    yield Entry("fig-7-rooms", ("exact/environments-*",), exact.numbered_rooms, "exact")
    yield changed("fig-7-far", (ours, base), agents.far_rooms, beside=(truth,), coded=(coded, base))
    yield changed("fig-7-near", (ours, base, truth), agents.near_rooms, coded=(coded, base, truth))
    for key, dims in (("fig-19", range(2, 7)), ("fig-20", range(7, 11))):
        yield Entry(key, (truth, ours, base), partial(agents.options_drawn, dims=dims), "changed")


def _shaping() -> Iterator[Entry]:
    runs = {"ggd": "ggd-paper", "gd": "gd-paper", "none": "none-raw", "coded": "ggd-paper-coded"}

    def changed(claim: str, judge: Judge, sources: tuple[str, ...], coded: tuple[str, ...]) -> Entry:
        """As printed the pseudo-reward is alone; as coded half of the reward is the sparse one."""
        alone, mixed = (partial(judge, variant=variant) for variant in ("literal", "mixed"))
        return Entry(claim, sources, alone, "changed", (), coded, mixed, "changed")

    def trained(env: str, *methods: str, kind: str = "tabular") -> tuple[str, ...]:
        return tuple(f"shaping/{env}-{kind}-{runs[method]}-[0-9]" for method in methods)

    def both(*methods: str) -> tuple[str, ...]:
        return tuple(source for env in paper.STATES for source in trained(env, *methods))

    for letter, env in zip("ab", paper.STATES, strict=True):
        ours, coded = (trained(env, method) for method in ("ggd", "coded"))
        yield changed(f"fig-8-{letter}", agents.lower_is_better, ours, coded)
    for letter, env in zip("cd", paper.STATES, strict=True):
        ours, coded = (trained(env, method, "gd", "none") for method in ("ggd", "coded"))
        yield changed(f"fig-8-{letter}", agents.best_beats, ours, coded)
    deep = [source for env in paper.STATES for source in trained(env, "ggd", "none", "gd", kind="dqn")]
    every = tuple(f"?{source}" for source in deep)
    yield changed("fig-8-deep", agents.deep_on_maps, every, every)
    yield Entry("fig-12", ("exact/environments-*",), exact.goals_apart, "exact")
    yield Entry("fig-13", both("gd", "ggd"), agents.baseline_order, "changed")
    own = partial(agents.on_both, judge=partial(agents.best_beats, own=True))
    yield changed("fig-14", own, both("ggd"), both("coded"))


def _analysis() -> Iterator[Entry]:
    def runs(env: str, group: str) -> str:
        return f"coefficients/{env}-{group}-paper-scaled-10-*"

    literal, coded = (
        tuple(f"table1/{env}-xy-ggd-{preset}-10-0" for env in paper.STATES) for preset in READINGS
    )  # the seed with snapshots
    yield Entry("fig-9", literal, representations.kept_to_span, coded=coded)
    yield Entry("fig-10", ("exact/eigenvalues-*",), exact.distinct, "exact")
    groups = tuple(runs("GridMaze", group) for group in paper.TABLE_6)
    yield Entry("fig-11-a", groups[:2], representations.groups_drawn, "changed")
    yield Entry("fig-11-b", groups, representations.groups_as_good, "changed")
    for group, printed in paper.TABLE_6.items():
        key, judge = f"table-6-{group}", partial(representations.number, printed=printed)
        if group == "paper":
            own, second = (f"table1/GridRoom-xy-ggd-{preset}-10-*" for preset in READINGS)
            yield Entry(key, (own,), judge, coded=(second,))
        else:
            yield Entry(key, (runs("GridRoom", group),), partial(judge, inside=True), "changed")


def _settings() -> Iterator[Entry]:
    source, networks = "exact/hyperparameters-*", "exact/networks-*"
    for key, obs, layers in (("table-2", "xy", paper.TABLE_2), ("table-3", "image", paper.TABLE_3)):
        yield Entry(key, (networks,), partial(exact.layers, obs=obs, table=layers), "exact")
    same = exact.same_settings
    for key, name, table, runs in (
        ("table-4", "options", paper.TABLE_4, "options/*-dqn-*-paper-10-*"),
        ("table-5", "shaping", paper.TABLE_5, "shaping/*-dqn-[gn]*-[0-9]"),
    ):
        yield Entry(key, (source,), partial(same, name=name, table=table, of=paper.PRINTED), beside=(runs,))
    data = tuple(f"{runs}/*-{method}-paper-10-*" for runs in ("table1", "point") for method in ("ggd", "gd"))
    yield Entry("training", (source,), partial(same, name="training", table=paper.TRAINING), beside=data)


PARTS = {
    "The theory": _theory,
    "Table 1": _table_1,
    "Learned representations": _representations,
    "Options": _options,
    "Reward shaping": _shaping,
    "Assumptions and coefficients": _analysis,
    "Networks and settings": _settings,
}

ORDER = list(paper.CLAIMS)
ENTRIES = {part: tuple(sorted(made(), key=lambda entry: ORDER.index(entry.claim))) for part, made in PARTS.items()}
