import json
import re
from fnmatch import fnmatch
from pathlib import Path

import nbformat
import numpy as np
import pytest
from docutils.nodes import make_id

import lapbook as lb
from lapbook import ledger, paper, verdicts
from lapbook.experiments import EXPERIMENTS
from lapbook.experiments.common import cut_short
from lapbook.results import folder, name, save
from lapbook.verdicts import compare, holds, shown

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


def test_three_seeds_wherever_the_paper_has_three():
    """Table 1 and the pictures of three runs; a run that was cut short is told as such."""
    for claim in (entry for entries in ledger.ENTRIES.values() for entry in entries):
        if not re.match(r"table-[16]|fig-(3|5|6|1[578])\b", claim.claim):
            continue
        experiment, only = claim.sources[1 if claim.claim.startswith("fig-6") else 0].split("/")
        found = [json.loads(f.read_text()) for f in (folder() / experiment).glob("*.json") if fnmatch(f.stem, only)]
        assert len(found) >= 3 or (found and all(cut_short(record["budget"]) for record in found)), claim.claim


def test_commands_name_settings_that_there_are():
    for entry in (entry for entries in ledger.ENTRIES.values() for entry in entries):
        for source in entry.sources:
            experiment, only = source.lstrip("?").split("/")
            assert any(fnmatch(name(setting), only) for setting in EXPERIMENTS[experiment].settings), source


def test_texts_belong_to_claims():
    for texts in (ledger.NOTES, ledger.WHYS, ledger.SEE):
        for pattern in texts:
            assert any(fnmatch(claim, pattern) for claim in paper.CLAIMS), pattern


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
    [([0.99, 0.98, 0.985], "reproduced"), ([0.96, 0.96, 0.963], "differs"), ([0.4], "differs")],
)
def test_a_cell_of_table_1_from_made_up_records(values, verdict, tmp_path):
    for seed, value in enumerate(values):
        save(made_up(seed, value), {"vectors": np.eye(5)}, tmp_path)
        save(made_up(seed, 0.99, preset="paper-scaled"), where=tmp_path)
    found = {row.place: row for row in ledger.rows(tmp_path)}
    row = found["Table 1, GridRoom, ours"]
    assert row.verdict == verdict
    assert row.better[:2] == ("reproduced", f"with target τ = 1/d: {shown([0.99] * len(values))}")
    assert row.printed == 0.991
    assert row.numbers[0] == pytest.approx(np.mean(values))
    assert row.numbers[1] <= row.numbers[0] <= row.numbers[2]
    assert bool(row.why) == (verdict == "differs")
    assert row.seeds == ", ".join(str(seed) for seed in range(len(values)))
    assert row.records[0] == "table1/GridRoom-xy-ggd-paper-10-0.json"
    others = [row for row in found.values() if row.place != "Table 1, GridRoom, ours"]
    assert {row.verdict for row in others if "GridRoom-xy-ggd-paper" not in row.command} == {ledger.OPEN}


def test_a_row_without_record_and_a_record_without_provenance_are_faults(tmp_path):
    record = made_up(0, 0.5)
    del record["provenance"]["commit"]
    save(record, where=tmp_path)
    save(made_up(0, 0.5, preset="paper-scaled"), where=tmp_path)
    found = ledger.faults(ledger.rows(tmp_path), tmp_path)
    assert "table1/GridRoom-xy-ggd-paper-10-0.json does not tell its commit" in found
    assert "Theorem 1 has no record" in found
    assert "Theorem 1 has no verdict" in found
    assert not any("Table 1, GridRoom, ours" in fault for fault in found)


def test_a_run_cut_short_says_so(tmp_path):
    record = made_up(0, 0.4, "point", env="PointRoom")
    record["budget"] |= {"steps": 2000, "steps_allowed": 200_000}
    record["provenance"]["command"] += " --only x --hours 0.6"
    save(record, where=tmp_path)
    turned = {"sim_gt_ritz": 0.99}.items()
    save(made_up(3, 0.3, "point", turned, env="PointRoom", obs="fourier", method="gd", preset="fast"), where=tmp_path)
    (row,) = (row for row in ledger.rows(tmp_path) if row.place == "Table 1, PointRoom, ours")
    assert (row.verdict, row.better.verdict) == ("differs", "exceeded")
    assert row.budget.startswith("1 run, 2,000 steps, 1 cut short of 200,000, 10 min; 1 run")
    assert row.command.splitlines()[0].endswith("'PointRoom-xy-ggd-paper-10-*' --hours 0.6")


def test_pictures_are_judged_by_their_worst_dimension():
    good, bad, base = ({"metrics": {"sim_gt_per_dim": d}} for d in ([1.0, 0.95], [1.0, 0.85], [0.2, 0.4]))
    assert verdicts.looks_alike([good], [base]).verdict == "reproduced"
    assert verdicts.looks_alike([bad], [base]).verdict == "differs"
    assert verdicts.looks_alike([good], [good]).verdict == "differs"


def test_runs_agree_or_do_not(tmp_path):
    rng = np.random.default_rng(0)
    same, others = [], []
    for seed in range(3):
        for group, vectors in ((same, np.eye(8)[:, :4]), (others, rng.standard_normal((40, 4)))):
            file = save(made_up(seed, 0.0), {"vectors": vectors}, tmp_path / str(len(same) + 10 * len(others)))
            group.append({"file": str(file)})
    assert verdicts.agreement_of_runs(same, alike=True).verdict == "reproduced"
    assert verdicts.agreement_of_runs(same, alike=False).verdict == "differs"
    assert verdicts.agreement_of_runs(others, alike=False).verdict == "reproduced"


def agents(where, method, heights, goals=(3, 5), steps=(10, 20), variant="mixed"):
    """A made-up record of shaped agents whose success is constant: a height for each reward."""
    curves = np.ones((1, len(heights), len(goals), 1, len(steps))) * np.reshape(
        list(heights.values()), (1, -1, 1, 1, 1)
    )
    metrics = {"rewards": list(heights), "variants": [variant], "goals": list(goals), "steps": list(steps)}
    record = made_up(0, 0.0, "shaping", metrics.items(), method=method)
    return {**record, "file": str(save(record, {"curves": curves}, where))}


def test_deep_agents_are_compared_on_common_goals_and_steps(tmp_path):
    ours = agents(tmp_path / "a", "ggd", {"dim 2": 0.9, "all": 0.5}, goals=(3, 5, 7), steps=(10, 20, 30))
    none = agents(tmp_path / "b", "none", {"position": 0.4, "sparse": 0.2})
    base = agents(tmp_path / "c", "gd", {"dim 7": 0.3, "all": 0.5})
    finding = verdicts.deep_agents([ours], [none], [base])
    assert finding.verdict == "reproduced"
    assert finding.ours.startswith("2 goals, 20 steps: area 0.68; ahead of all of ours +0.30 [+0.30, +0.30]")
    better = agents(tmp_path / "d", "gd", {"dim 7": 0.95, "all": 0.5})
    assert verdicts.deep_agents([ours], [none], [better]).verdict == "differs"
    assert verdicts.deep_on_maps([ours], [none], [], [], [], []).verdict == "differs"  # not all of it was run
    assert verdicts.deep_on_maps(*[[ours], [none], [base]] * 2).verdict == "reproduced"


def test_counts(rows):
    found = ledger.count(rows)
    assert sum(found[verdict] for verdict in verdicts.VERDICTS) == len(rows)
    assert 0 <= found["with changes"] <= found["differs"] + found["not possible"]


def test_deviations_name_a_chapter():
    pages = {see.split("#")[0][:2] for see in ledger.SEE.values()}
    for deviation in ledger.deviations():
        assert deviation.chapter in pages
        assert all(deviation)
