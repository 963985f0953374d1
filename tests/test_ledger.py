import json
import re
from fnmatch import fnmatch
from pathlib import Path

import nbformat
import numpy as np
import pytest
from docutils.nodes import make_id

import lapbook as lb
from lapbook.reproduction import ledger, paper
from lapbook.reproduction.common import cut_short
from lapbook.reproduction.experiments import EXPERIMENTS
from lapbook.reproduction.ledger import agents, remarks, representations, verdicts, words
from lapbook.reproduction.ledger.deviations import DEVIATIONS
from lapbook.reproduction.ledger.verdicts import ANOTHER, CHANGED, LOST, SHORT, SHOWN, compare, holds, shown
from lapbook.reproduction.shaping import GOALS
from lapbook.results import folder, name, save

BOOK = Path(__file__).resolve().parent.parent / "book"
# Everything that has a number of its own in the paper and its appendix, in its order.
NUMBERED = [
    *(f"Figure {k}" for k in range(1, 21)),
    *(f"Table {k}" for k in range(1, 7)),
    *("Theorem 1", "Theorem 2", "Lemma 1", "Lemma 2", "Lemma 3"),
]


@pytest.fixture(scope="module")
def rows():
    return ledger.rows()


def made_up(seed, sim_gt, experiment="table1", metrics=(), **setting):
    """A record of the cell GridRoom, xy, ours of Table 1, or of whatever else is asked for."""
    own = {"env": "GridRoom", "obs": "xy", "method": "ggd", "preset": "paper", "d": 10, "seed": seed}
    return {
        "experiment": experiment,
        "setting": own | setting,
        "metrics": {"sim_gt": sim_gt, "ceiling": 0.98, **dict(metrics)},
        "budget": {"steps": 200_000, "wall_seconds": 600.0},
        "provenance": lb.results.provenance("python -m lapbook reproduce table1"),
    }


def test_every_row_is_filled_and_every_record_has_its_provenance(rows):
    assert ledger.faults(rows) == []
    assert len(rows) >= 25
    for row in rows:
        fields = (row.place, row.claim, row.paper, row.ours, row.seeds, row.budget, row.command)
        assert all(fields), row
        assert row.settings in ledger.SETTINGS
        assert row.kind in paper.KINDS
        for file in row.records:
            record = json.loads((folder() / file).read_text())
            experiment = record["experiment"]
            assert record["provenance"]["command"].startswith(f"python -m lapbook reproduce {experiment} --only ")
            assert f"reproduce {experiment} --only " in row.command


@pytest.mark.parametrize("number", NUMBERED)
def test_whatever_the_paper_numbers_has_a_row(rows, number):
    assert any(re.match(rf"{number}\b", row.place) for row in rows)


def test_places_are_told_once_and_claims_are_all_used(rows):
    assert len({row.place for row in rows}) == len(rows)
    used = [entry.claim for entries in ledger.ENTRIES.values() for entry in entries]
    assert sorted(used) == sorted(paper.CLAIMS)


def stored(source):
    """The names of the book's records that match `experiment/name`."""
    experiment, only = source.split("/")
    return [file.stem for file in (folder() / experiment).glob("*.json") if fnmatch(file.stem, only)]


def test_three_seeds_wherever_the_paper_has_three():
    """Table 1 and the pictures of three runs, both methods of them."""
    for claim in (entry for entries in ledger.ENTRIES.values() for entry in entries):
        if re.match(r"table-[16]|fig-(1|3|4|5|15|16|17|18)\b", claim.claim):
            assert all(len(stored(source)) >= 3 for source in claim.sources), claim.claim
        if claim.claim.startswith("fig-6"):
            assert all(len(stored(source)) >= 3 for source in claim.sources[1:3]), claim.claim


def test_the_papers_settings_are_judged_wherever_they_were_run():
    """On floors, too, for both methods; what has settings of ours is told beside."""
    for claim in (entry for entries in ledger.ENTRIES.values() for entry in entries):
        if re.match(r"table-1|fig-(1|3|4|5|15|16|17|18)\b", claim.claim):
            assert all("-paper-10-" in source for source in claim.sources), claim.claim
            assert claim.settings == "paper"


def test_each_command_belongs_to_its_records(rows):
    """Its pattern and its hours: a run that was cut short has a limit, and no other has."""
    for row in rows:
        limits = {}
        for line in row.command.splitlines():
            experiment, only, hours = re.fullmatch(
                r"python -m lapbook reproduce (\w+) --only '(.+?)'( --hours [\d.]+)?", line
            ).groups()
            files = [file for file in row.records if fnmatch(file, f"{experiment}/{only}.json")]
            assert files, line
            for file in files:
                limits.setdefault(file, set()).add(hours)
        assert set(limits) == set(row.records), row.place
        for file, hours in limits.items():
            record = json.loads((folder() / file).read_text())
            assert len(hours) == 1, file
            assert (hours != {None}) == cut_short(record["budget"]), file


def test_a_run_that_was_only_stored_in_its_last_hours_has_the_time_it_took():
    record = made_up(0, 0.5, metrics={"curve": {"steps": [1000, 2000]}}.items())
    record["budget"] |= {"wall_seconds": 1800.0}
    record["provenance"]["command"] += " --hours 0.3"
    assert words.commands("table1/a-*", [record])[0].endswith(" --hours 0.3")  # it was over at the second point
    record["provenance"]["command"] = "python -m lapbook reproduce table1 --hours 0.01"
    assert words.commands("table1/a-*", [record])[0].endswith(" --hours 0.5")


def test_commands_name_settings_that_there_are():
    for entry in (entry for entries in ledger.ENTRIES.values() for entry in entries):
        for source in (*entry.sources, *entry.beside):
            experiment, only = source.lstrip("?").split("/")
            assert not source.startswith("?") or source in entry.sources
            assert any(fnmatch(name(setting), only) for setting in EXPERIMENTS[experiment].settings), source


def test_texts_belong_to_claims():
    for texts in (remarks.NOTES, remarks.WHYS, remarks.SEE):
        for pattern in texts:
            first = [claim for claim in paper.CLAIMS if next(p for p in [*texts, "*"] if fnmatch(claim, p)) == pattern]
            assert first, pattern


def test_remarks_hold_no_result_of_ours():
    """A decimal number in a remark must come from a record; ε = 0.2 is a setting. What is filled in has a function."""
    for text in (*remarks.NOTES.values(), *remarks.WHYS.values(), *paper.TEXTS["phrases"].values()):
        assert not re.search(r"\d[.,]\d", re.sub(r"ε = 0.2|section 4.3", "", text)), text
    used = {
        name
        for texts in (remarks.NOTES, remarks.WHYS)
        for text in texts.values()
        for name in re.findall(r"\$(\w+)", text)
    }
    assert used == set(remarks.FACTS)


def test_remarks_count_and_measure():
    literal = [made_up(k, 0.9, metrics={"sim_gt_per_dim": dims, "curve": {"sim_gt": curve}}.items())
               for k, (dims, curve) in enumerate([([1.0, 1.0, 1.0], [0.9] * 30),
                                                  ([1.0, 0.5, 0.5], [0.5] * 20 + [0.6] * 10)])]  # fmt: skip
    pair = remarks.say("mixed_pair", runs="1 of 2 runs ends", i=2, j=3, angles="60°")
    assert remarks.mixed_pairs(literal) == remarks.say("mixed_pairs", pairs=pair, change="+0.100")
    assert remarks.mixed_pairs(literal[:1]) == remarks.say("sorted_pairs")
    literal[0]["budget"] |= {"steps": 2000, "steps_allowed": 200_000, "wall_seconds": 1728.0}
    assert remarks.pace(literal[:1]) == remarks.say("pace", time="2 days")
    literal[1]["budget"] |= {"steps": 25_000}
    assert remarks.small_target(literal[1:]) == remarks.say("small_target", steps="25,000", times="8")


def test_remarks_on_runs_that_were_not_over():
    shared = {"budget": {"steps": 25_000}, "setting": {"group": "concave"}}
    rising, flat = ({"metrics": {"curve": {"sim_gt": curve}}, **shared}
                    for curve in ([0.5] * 8 + [0.6, 0.7], [0.7] * 10))  # fmt: skip
    told = remarks.say("not_over", steps="25,000", were="1 of 2 runs was")
    assert remarks.not_over([rising, flat]) == told
    assert remarks.not_over([flat]) == ""


def anchors(page):
    """What can be linked to on a page: headings, labels and figures."""
    for cell in nbformat.read(BOOK / f"{page}.ipynb", as_version=4).cells:
        if figure := cell.metadata.get("mystnb", {}).get("figure"):
            yield figure["name"]
        if cell.cell_type == "markdown":
            yield from (make_id(title) for title in re.findall(r"^#+ (.+)$", cell.source, re.MULTILINE))
            yield from re.findall(r"^:label: (.+)$", cell.source, re.MULTILINE)


def test_links_lead_somewhere(rows):
    for see in {row.see for row in rows}:
        page, _, place = see.partition("#")
        assert (BOOK / f"{page}.ipynb").exists(), see
        assert not place or place in anchors(page), see


# Rules


def test_numbers_are_compared_with_those_printed():
    assert compare(0.5, 0.52) == compare(0.54, 0.52) == "reproduced"
    assert compare(0.55, 0.52) == "exceeded"
    assert compare(0.55, 0.52, more=False) == compare(0.49, 0.52) == "differs"
    assert compare(0.3, 0.239, verdicts.CHANCE, more=False) == "reproduced"
    assert holds(True, True) == "reproduced"
    assert holds(True, False) == "differs"
    assert shown([0.5, 0.5, 0.5]) == "0.500 [0.500, 0.500]"


@pytest.mark.parametrize(
    ("values", "verdict"),
    [([0.99, 0.98, 0.985], "reproduced"), ([0.96, 0.96, 0.963], "differs"), ([0.4], SHORT)],
)
def test_a_cell_of_table_1_from_made_up_records(values, verdict, tmp_path):
    for seed, value in enumerate(values):
        per_dim = {"sim_gt_per_dim": [0.9, 0.8, 0.8], "curve": {"sim_gt": [0.5, 0.6]}}
        save(made_up(seed, value, metrics=per_dim.items()), {"vectors": np.eye(5)}, tmp_path)
        save(made_up(seed, 0.99, metrics=per_dim.items(), preset="paper-coded"), {"vectors": np.eye(5)}, tmp_path)
    found = {row.place: row for row in ledger.rows(tmp_path)}
    row = found["Table 1, GridRoom, ours"]
    assert row.verdict == verdict
    coded = "reproduced" if len(values) == 3 else SHORT
    assert (row.coded.verdict, row.coded.values) == (coded, (0.99,) * len(values))
    assert row.printed == 0.991
    assert row.values == tuple(values)
    assert row.holds == (verdict == "reproduced")
    assert row.holds_as_coded == (coded == "reproduced")
    assert not row.holds_with_changes
    assert bool(row.why) != row.holds
    counts = {"as printed": row.holds, "as coded": row.holds_as_coded, "under at least one": len(values) == 3}
    assert ledger.tally([row]) == {**counts, "only with changes of ours": 0}
    assert row.settings == "paper"
    assert row.seeds == ", ".join(str(seed) for seed in range(len(values)))
    assert row.records[0] == "table1/GridRoom-xy-ggd-paper-10-0.json"
    others = [row for row in found.values() if row.place != "Table 1, GridRoom, ours"]
    assert found["Table 6, default"].verdict == verdict
    assert {row.verdict for row in others if "GridRoom-xy-ggd-paper" not in row.command} == {ledger.OPEN}


def test_a_row_without_record_and_a_record_without_provenance_are_faults(tmp_path):
    record = made_up(0, 0.5)
    del record["provenance"]["commit"]
    save(record, where=tmp_path)
    found = ledger.faults(ledger.rows(tmp_path), tmp_path)
    assert "table1/GridRoom-xy-ggd-paper-10-0.json does not tell its commit" in found
    assert "Theorem 1 has no record" in found
    assert "Theorem 1 has no verdict" in found
    assert not any("Table 1, GridRoom, ours" in fault for fault in found)


def test_a_run_cut_short_is_not_judged_and_another_method_does_not_count(tmp_path):
    for seed in range(3):
        record = made_up(seed, 0.4, "point", env="PointRoom")
        record["budget"] |= {"steps": 500 if seed else 2000, "steps_allowed": 200_000}
        record["provenance"]["command"] += f" --only x --hours {0.01 if seed else 0.6}"
        save(record, where=tmp_path)
    for method in ("ggd", "gd"):
        turned = {"sim_gt_ritz": 0.99}.items()
        fourier = made_up(3, 0.3, "point", turned, env="PointRoom", obs="fourier", method=method, preset="fast")
        fourier["budget"] |= {"steps": 2000, "batch": 512, "samples": 1_024_000}
        save(fourier, where=tmp_path)
    (row,) = (row for row in ledger.rows(tmp_path) if row.place == "Table 1, PointRoom, ours")
    assert (row.verdict, row.settings) == (SHORT, "early")
    assert (row.better.verdict, row.another.verdict) == ("differs", ANOTHER)
    assert row.better.words == "with Fourier features, on 1/1,600 of the paper's pairs: 0.300 (one run)"
    assert not row.holds
    assert not row.holds_with_changes
    assert ledger.count([row]) == {**dict.fromkeys(verdicts.VERDICTS, 0), SHORT: 1}
    assert row.ours.startswith("0.400, 0.400, 0.400 (after 2,000, 500 and 500 steps); ceiling")  # no mean of these
    assert row.why.startswith("Ended early, out of time: ours after 500 and 2,000 of 200,000 steps. At this pace")
    assert row.budget.startswith("3 runs, 500 to 2,000 steps, 3 cut short of 200,000, 30 min; 2 runs")
    assert row.command.splitlines()[0].endswith("'PointRoom-xy-ggd-paper-10-0' --hours 0.6")
    assert row.command.splitlines()[1].endswith("'PointRoom-xy-ggd-paper-10-[12]' --hours 0.01")
    assert row.seeds == "0, 1, 2; beside 3"


def test_rows_do_without_what_is_told_beside(tmp_path):
    for seed in range(3):
        record = made_up(seed, 0.95, "point", env="PointRoom")
        record["budget"] |= {"steps": 200_000, "steps_allowed": 200_000}
        save(record, where=tmp_path)
    (row,) = (row for row in ledger.rows(tmp_path) if row.place == "Table 1, PointRoom, ours")
    assert (row.verdict, row.settings, row.why) == ("reproduced", "paper", "")
    assert row.better is row.another is None


def test_runs_that_stopped_on_flat_curves_are_judged_and_told(tmp_path):
    for seed, steps in enumerate((65_000, 200_000, 102_000)):
        record = made_up(seed, 0.99)
        record["budget"] |= {"steps": steps, "steps_allowed": 200_000, "stopped_flat": steps < 200_000}
        save(record, {"vectors": np.eye(5)}, tmp_path)
    (row,) = (row for row in ledger.rows(tmp_path) if row.place == "Table 1, GridRoom, ours")
    assert (row.verdict, row.settings) == ("reproduced", "early")
    assert row.why == ("Ended early, on flat curves: ours (2 of 3 runs) after 65,000 and 102,000 of 200,000 steps.")


def test_pictures_are_judged_by_the_dimension_with_the_lowest_mean():
    good, bad, base = ({"metrics": {"sim_gt_per_dim": d}, "budget": {}} for d in ([1.0, 0.97], [1.0, 0.85], [0.2, 0.4]))
    assert representations.looks_alike([good], [base]).verdict == "reproduced"
    assert representations.looks_alike([bad], [base]).verdict == "differs"
    assert representations.looks_alike([good], [good]).verdict == "differs"
    finding = representations.looks_alike([good, bad], [base], [bad], [base])
    assert finding.verdict == "reproduced"  # in the mean and for half of the runs; images are told beside
    assert verdicts.margin([0.97, 0.85], verdicts.LIKE) in finding.ours
    assert finding.ours.endswith("(differs)")
    close = {"metrics": {"sim_gt_per_dim": [1.0, 0.89]}, "budget": {}}
    assert np.mean([0.97, 0.89, 0.89]) > verdicts.LIKE  # the mean passes, two of three runs do not
    assert representations.looks_alike([good, close, close], [base]).verdict == "differs"
    assert verdicts.compare_runs([0.99, 0.935, 0.935], 0.96) == "differs"
    assert verdicts.compare(np.mean([0.99, 0.935, 0.935]), 0.96) == "reproduced"


def test_runs_agree_or_do_not(tmp_path):
    rng = np.random.default_rng(0)
    same, others = [], []
    for seed in range(3):
        for group, vectors in ((same, np.eye(8)[:, :4]), (others, rng.standard_normal((40, 4)))):
            file = save(made_up(seed, 0.0), {"vectors": vectors}, tmp_path / str(len(same) + 10 * len(others)))
            group.append({"file": str(file)})
    assert representations.agreement_of_runs(same, alike=True).verdict == "reproduced"
    assert representations.agreement_of_runs(same, alike=False).verdict == "differs"
    assert representations.agreement_of_runs(others, alike=False).verdict == "reproduced"
    assert representations.agreement_of_runs(same[:1], alike=True).verdict == SHORT


def test_one_dimension_that_differs_is_enough(tmp_path):
    """SimRUN would pass, by the rule for all dimensions it does not."""
    runs = []
    for seed in range(3):
        vectors = np.eye(24)[:, :20]
        vectors[:, 19] = np.eye(24)[:, 19 + seed]
        runs.append({"file": str(save(made_up(seed, 0.0), {"vectors": vectors}, tmp_path))})
    finding = representations.agreement_of_runs(runs, alike=True)
    pairs = "(pairs: 0.95, 0.95, 0.95)"
    assert finding.ours.startswith(f"SimRUN 0.95 {pairs}; dimensions 1 to 20: 0.00 to 1.00, least in dimension 20")
    assert finding.verdict == "differs"
    assert representations.agreement_of_runs(runs, alike=True, first=3).verdict == "reproduced"


def test_distances_from_the_span_are_judged_at_every_snapshot(tmp_path):
    truth = lb.spectrum.eigenvectors(lb.layouts.LAYOUTS["GridRoom"], 11).vectors
    outside = truth[:, :10].copy()
    outside[:, 9] += truth[:, 10]  # 45° from the span
    files = {}
    for kind, last in (("in", truth[:, :10]), ("out", outside)):
        stored = {"snapshots": np.array([truth[:, :10], last]), "snapshot_steps": np.array([1000, 2000])}
        files[kind] = [{**made_up(0, 0.9), "file": str(save(made_up(0, 0.9), stored, tmp_path / kind))}]
    assert representations.kept_to_span(files["in"], files["in"]).verdict == "reproduced"
    finding = representations.kept_to_span(files["out"], files["in"])
    assert finding.verdict == "differs"
    assert finding.ours.startswith("GridRoom: largest 0.29, in dimension 10 at step 2,000")


def shaped(where, method, heights, goals=(3, 5), steps=(10, 20), variant="mixed"):
    """A made-up record of shaped agents whose success is constant: a height for each reward."""
    curves = np.ones((1, len(heights), len(goals), 1, len(steps))) * np.reshape(
        list(heights.values()), (1, -1, 1, 1, 1)
    )
    metrics = {"rewards": list(heights), "variants": [variant], "goals": list(goals), "steps": list(steps)}
    record = made_up(0, 0.0, "shaping", metrics.items(), method=method)
    return {**record, "file": str(save(record, {"curves": curves}, where))}


def test_each_run_of_the_baseline_has_its_own_best_dimension(tmp_path):
    flat = {f"dim {i}": 0.2 for i in range(2, 11)} | {"all": 0.2}
    ours = shaped(tmp_path / "a", "ggd", flat | {"dim 2": 0.9})
    none = shaped(tmp_path / "b", "none", {"position": 0.4, "sparse": 0.2})
    base = [shaped(tmp_path / f"c{i}", "gd", flat | {f"dim {i}": 0.7}) for i in (3, 7)]
    finding = agents.best_beats([ours], base, [none])
    assert "baseline, best +0.15 [+0.15, +0.15]" in finding.ours  # three quarters of 0.9 - 0.7: curves begin at 0


def test_deep_agents_are_compared_on_common_goals_and_steps(tmp_path):
    ours = shaped(tmp_path / "a", "ggd", {"dim 2": 0.9, "all": 0.5}, goals=(3, 5, 7), steps=(10, 20, 30))
    none = shaped(tmp_path / "b", "none", {"position": 0.4, "sparse": 0.2})
    base = shaped(tmp_path / "c", "gd", {"dim 7": 0.3, "all": 0.5})
    finding = agents.deep_agents([ours], [none], [base])
    assert finding.verdict == "reproduced"
    assert finding.ours.startswith("2 goals, 20 steps: area 0.68, ahead of\nall of ours +0.30 [+0.30, +0.30]\n(x, y)")
    better = shaped(tmp_path / "d", "gd", {"dim 7": 0.95, "all": 0.5})
    assert agents.deep_agents([ours], [none], [better]).verdict == "differs"
    assert agents.deep_on_maps([ours], [none], [], [], [], [], variant="mixed").verdict == SHORT
    both = [[ours], [none], [base]] * 2
    assert agents.deep_on_maps(*both, variant="literal").verdict == SHORT  # not run
    assert agents.deep_on_maps(*both, variant="mixed").verdict == "reproduced"
    finding = agents.deep_on_maps(*[[ours], [none], [better]] * 2, variant="mixed")
    assert finding.ours.endswith("\nintervals above 0: 4 of 5")


def test_the_row_of_deep_agents_fills_itself(tmp_path):
    """All settings of all six conditions, none cut short; until then it is not run in full, whatever it shows."""
    heights = {
        "ggd": {"dim 2": 0.9, "all": 0.5},
        "gd": {"dim 7": 0.3, "all": 0.5},
        "none": {"position": 0.4, "sparse": 0},
    }
    pattern = "*-dqn-[gn]*-[0-9]"
    settings = [s for s in EXPERIMENTS["shaping"].settings if fnmatch(name(s), pattern)]
    assert len(settings) == 12

    def store(setting, variants=("literal", "mixed"), **budget):
        own, labels = setting["seed"], heights[setting["method"]]
        curves = np.ones((len(variants), len(labels), 2, 1, 3)) * np.reshape(list(labels.values()), (1, -1, 1, 1, 1))
        metrics = {"rewards": list(labels), "variants": variants, "goals": [2 * own, 2 * own + 1], "steps": [1, 2, 3]}
        record = made_up(0, 0.0, "shaping", metrics.items())
        save({**record, "setting": setting, "budget": {**record["budget"], **budget}}, {"curves": curves}, tmp_path)

    def row():
        return next(row for row in ledger.rows(tmp_path) if row.place.endswith("deep agents"))

    for setting in settings:
        store(setting, ["mixed"])
    assert (row().verdict, row().coded.verdict) == (SHORT, CHANGED)
    (tmp_path / "shaping" / f"{name(settings[-1])}.json").unlink()
    for setting in settings[:-1]:
        store(setting)
    assert row().verdict == SHORT
    assert row().why.startswith("Runs without a record yet: 1.")
    store(settings[-1], steps=64_000, steps_allowed=200_000)
    assert row().verdict == SHORT
    store(settings[-1], steps=200_000, steps_allowed=200_000)
    assert row().verdict == CHANGED
    assert row().holds_with_changes
    assert row().ours.startswith("GridRoom, 4 goals, 3 steps: area")
    assert "\nGridMaze, 4 goals" in row().ours


def test_counts(rows):
    found = ledger.count(rows)
    assert sum(found[verdict] for verdict in verdicts.VERDICTS) == len(rows)
    tally = ledger.tally(rows)
    either = tally["as printed"] + tally["as coded"]
    assert max(tally["as printed"], tally["as coded"]) <= tally["under at least one"] <= either
    assert all(row.settings != "changed" for row in rows if row.holds)  # on settings of ours it is "with changes"
    of_kind = {kind: ledger.count([row for row in rows if row.kind == kind]) for kind in paper.KINDS}
    assert all(sum(counts[verdict] for counts in of_kind.values()) == found[verdict] for verdict in found)
    assert of_kind["found"][LOST] == of_kind["found"][SHOWN] == 0
    assert set(of_kind) == {row.kind for row in rows}


def test_what_makes_no_claim_and_what_rests_on_a_picture(rows):
    found = {row.place: row for row in rows}
    assert {place for place, row in found.items() if row.verdict == SHOWN} == {f"Figure {k}" for k in (13, 19, 20)}
    assert {place for place, row in found.items() if row.verdict == LOST} == {"Figure 11(a)", "Figure 12"}
    for place in ("Figure 2", "Figure 7(a)"):
        assert found[place].kind == "printed"


def test_settings_tell_whether_runs_ended_early(rows):
    for row in rows:
        records = [json.loads((folder() / file).read_text()) for file in row.records]
        early = any(ledger.ended_early(record) for record in records)
        assert ("Ended early" in row.why) == early, row.place
        assert row.settings != "paper" or not early
        if row.verdict == SHORT:
            assert row.why


def test_reward_shaping_is_judged_under_both_readings(tmp_path):
    """As printed the pseudo-reward is alone, as coded it is mixed: made-up agents that only the mixture helps."""
    rewards = [f"dim {i}" for i in range(2, 11)] + ["all"]
    for method, preset in (("ggd", "paper"), ("ggd", "paper-coded")):
        for env, seed in ((env, seed) for env in paper.STATES for seed in range(3)):
            curves = np.full((2, len(rewards), 2, 1, 3), 0.5)
            curves[1, 0], curves[0, 0] = 0.9, 0.1
            metrics = {"rewards": rewards, "variants": ["literal", "mixed"], "goals": [1, 2], "steps": [1, 2, 3]}
            own = {"env": env, "agent": "tabular", "method": method, "preset": preset, "seed": seed}
            save({**made_up(0, 0.0, "shaping", metrics.items()), "setting": own}, {"curves": curves}, tmp_path)
    (row,) = (row for row in ledger.rows(tmp_path) if row.place == "Figure 14")
    assert (row.verdict, row.coded.verdict) == ("differs", CHANGED)


def test_deviations_name_a_chapter():
    pages = {see.split("#")[0][:2] for see in remarks.SEE.values()}
    for deviation in DEVIATIONS:
        assert deviation.chapter in pages
        assert all(deviation)


def test_deviations_count_as_the_records_do():
    """Runs, steps, seeds and goals in the words are those of the records."""
    here = {deviation.what: deviation.here for deviation in DEVIATIONS}

    def steps(records):
        return sorted({record["budget"]["steps"] for record in records})

    floors = lb.results.read("point", preset="paper")
    assert all(cut_short(record["budget"]) for record in floors)
    for env in paper.FLOORS:
        for method in ("gd", "ggd"):
            assert len(lb.results.select(floors, env=env, method=method)) == 3
    told = f"3 runs of each method, cut short after {words.between(steps(floors))} steps"
    assert told in here["PointRoom, PointMaze"]
    small = [record["budget"] for record in lb.results.read("point", preset="fast")]
    assert {(budget["steps"], budget["batch"]) for budget in small} == {(2000, 512)}
    deep = lb.results.read("options", route="dqn", preset="paper")
    assert {record["setting"]["seed"] for record in deep} == {0}
    short = [record for record in deep if cut_short(record["budget"])]
    assert {record["setting"]["method"] for record in short} == {"gd"}
    assert f"cut short after {words.listed([f'{step:,}' for step in steps(short)])} steps" in here["Options"]
    assert "for 1 seed" in here["Options"]
    networks = [record["metrics"] for record in lb.results.read("shaping", agent="dqn", env="GridRoom")]
    goals = {goal for metrics in networks for goal in metrics["goals"]}
    assert f"on {len(goals)} of the {GOALS} goals, 1 agent each" in here["Agents with shaped rewards"]
    assert {tuple(metrics["variants"]) for metrics in networks} == {("mixed",)}
    groups = [
        r for r in lb.results.read("coefficients", preset="paper-scaled") if r["setting"]["group"] in paper.TABLE_6
    ]
    assert f"{words.between(steps(groups))} steps" in here["Coefficient groups"]
