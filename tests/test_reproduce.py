import importlib.util
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
import torch

import lapbook as lb
from lapbook.reproduction import options, point, public
from lapbook.reproduction import paper as paper_numbers
from lapbook.reproduction.cli import cost, main
from lapbook.reproduction.common import Experiment, cut_short, snapshot_steps
from lapbook.reproduction.experiments import EXPERIMENTS
from lapbook.reproduction.runner import DamagedRecord, FailedRun, reproduce, tasks
from lapbook.reproduction.table1 import training_settings
from lapbook.results import matching, name, provenance, save

SHORT = "GridMaze-xy-gd+ritz-fast-10-3"


def test_table1_has_the_columns_of_the_paper():
    settings = EXPERIMENTS["table1"].settings
    paper = [setting for setting in settings if setting["preset"] == "paper"]
    assert len(paper) == 2 * 2 * 2 * 3
    assert {(s["env"], s["obs"]) for s in paper} == {
        key for key in paper_numbers.TABLE_1["gd"] if key[0].startswith("Grid")
    }
    assert len({name(setting) for setting in settings}) == len(settings)
    for setting in paper:
        training = training_settings(setting)
        literal = (training.steps, training.batch, training.lr, training.beta, training.target_scale, training.gamma)
        assert literal == (200_000, 1024, 1e-3, 1.0, 1.0, 0.9)
        assert training.coefficients == ("equal" if setting["method"] == "gd" else "paper")


def test_the_second_reading_differs_by_the_target_alone():
    printed, coded = (lb.settings.PRESETS[name] for name in ("paper", "paper-coded"))
    assert coded == replace(printed, target_scale=1 / printed.d)
    images = replace(coded, anneal=10.0, normalise=10.0)  # without these no dimension is left
    for setting in EXPERIMENTS["table1"].settings:
        if setting["preset"] == "paper-coded":
            assert training_settings(setting) == (images if setting["obs"] == "image" else coded)


def test_public_maps_are_read_measured_and_asked_for(tmp_path, monkeypatch):
    """A folder with maps of the same names, much smaller; the run is Table 1's, then options climb what it learned."""
    monkeypatch.setattr(public, "STATES", {"GridRoom-16": 44, "GridMaze-19": 17})
    monkeypatch.setitem(lb.settings.PRESETS, "paper", replace(lb.settings.PRESETS["smoke"], steps=20))
    (tmp_path / "GridRoom-16.txt").write_text(lb.layouts.rooms(1, 9, size=2).text.replace("#", "X").replace(".", " "))
    where = (tmp_path / "results", tmp_path / "scratch")
    with pytest.raises(ValueError, match=r"maps must be a folder with the file GridRoom-16.txt .*: got None"):
        reproduce("public", *where, only="GridRoom-16-*-truth-*")
    for only in ("GridRoom-16-*-truth-*", "GridRoom-16-*-none-*", "GridRoom-16-xy-ggd-paper-10-0"):
        (file,) = reproduce("public", *where, only=only, maps=tmp_path)
        record = json.loads(file.read_text())
        assert record["metrics"]["far"] > 0
        assert record["provenance"]["command"].endswith("--maps FOLDER")
    assert {"sim_gt", "ceiling", "lengths", "rank_correlation"} <= record["metrics"].keys()
    assert record["budget"]["settings"]["precision"] == "float32"
    (tmp_path / "GridMaze-19.txt").write_text("...")
    with pytest.raises(ValueError, match="maps must hold the public GridMaze-19 with 17 states: got one with 3"):
        reproduce("public", *where, only="GridMaze-19-*-truth-*", maps=tmp_path)


def test_point_has_the_two_other_columns_and_the_ablation():
    settings = EXPERIMENTS["point"].settings
    assert {(s["env"], s["obs"]) for s in settings if s["preset"] == "paper"} == set(paper_numbers.TABLE_1["gd"]) - {
        key for key in paper_numbers.TABLE_1["gd"] if key[0].startswith("Grid")
    }
    assert {s["obs"] for s in settings} == {"xy", "fourier"}
    paper = point.training_settings(settings[0])
    assert (paper.steps, paper.batch, paper.lr, paper.target_scale, paper.encoder) == (200_000, 8192, 1e-3, 1.0, "auto")
    for setting in settings:
        small = point.training_settings(setting)
        assert setting["preset"] == "paper" or small.steps * small.batch * 100 <= paper.steps * paper.batch


def test_a_small_point_run_tells_before_and_after_the_turn(tmp_path, monkeypatch):
    data = lb.recorded("PointRoom")
    few = lb.rollouts.Data(data.observations, data.index[:40], data.lengths[:40], data.states)
    monkeypatch.setattr(point, "collected", lambda *arguments: few)
    monkeypatch.setattr(point, "ULAM_PAIRS", 200_000)
    setting = {"env": "PointRoom", "obs": "fourier", "method": "gd", "preset": "fast", "d": 4, "seed": 3}
    monkeypatch.setattr(point, "training_settings", lambda setting: lb.training.preset("smoke", d=4, steps=40))
    monkeypatch.setattr(point, "PAIRS", 5000)
    reports = []
    metrics, budget, arrays = point.run(setting, tmp_path, lambda *report: reports.append(report), np.inf)
    assert metrics["curve"]["steps"] == list(range(2, 41, 2))
    assert metrics["sim_gt"] == pytest.approx(metrics["curve"]["sim_gt"][-1], abs=1e-3)
    assert metrics["sim_gt_ritz"] == pytest.approx(metrics["curve"]["sim_gt_ritz"][-1], abs=1e-3)
    assert 0 <= metrics["eigenvalues_ritz"][0] <= metrics["eigenvalues_ritz"][3] < 1
    assert budget["samples"] == 40 * budget["batch"]
    assert sum(steps for steps, _ in reports) == 40
    assert arrays["ritz"].shape == arrays["vectors"].shape == (4382, 4)


def test_options_have_every_representation_and_both_routes():
    settings = EXPERIMENTS["options"].settings
    assert len({name(setting) for setting in settings}) == len(settings)
    climbed = {(s["env"], s["method"], s["preset"], s["seed"]) for s in settings if s["route"] == "climb"}
    for env in ("GridRoom", "GridMaze"):
        assert (env, "truth", "exact", 0) in climbed
        for method in ("gd", "ggd"):
            assert {(env, method, "paper", seed) for seed in range(3)} <= climbed
    assert {(s["env"], s["method"]) for s in settings if s["route"] == "dqn"} == {
        (env, method) for env in ("GridRoom", "GridMaze") for method in ("gd", "ggd")
    }


def test_a_small_run_of_learned_options_tells_how_they_agree_with_climbing(tmp_path, monkeypatch):
    setting = {"env": "GridMaze", "route": "dqn", "method": "ggd", "preset": "paper", "d": 10, "seed": 0}
    small = lb.dqn.preset("options", steps=60, starts=10, width=8, batch=16)
    monkeypatch.setitem(lb.dqn.PRESETS, "options", small)
    monkeypatch.setattr(options, "EVERY", 20)
    reports = []
    metrics, budget, arrays = options.run(setting, tmp_path, lambda *report: reports.append(report), np.inf)
    assert metrics["curve"]["steps"][-1] == budget["steps"] == sum(steps for steps, _ in reports)
    assert len(metrics["agreement"]) == len(metrics["loops"]) == 18
    assert len(metrics["lengths"]) == 9
    layout, vectors = lb.layouts.GRID_MAZE, lb.results.representation("GridMaze", "ggd")
    climbing = lb.options.climbs(layout, vectors)
    assert (arrays["terminals"] == [option.terminal for option in climbing]).all()
    for share, policy, option in zip(metrics["agreement"], arrays["policies"], climbing, strict=True):
        inside = ~option.terminal  # on a maze no two neighbours are equally good
        assert share == pytest.approx((policy == option.policy)[inside].mean(), abs=1e-3)
    assert [options.agreement(layout, vectors, option) for option in climbing] == [1.0] * 18


def test_rollouts_between_rooms_agree_with_the_equations():
    house = lb.layouts.rooms(1, 3, size=3, name="house", rng=0)
    climbing = lb.options.climbs(house, lb.spectrum.eigenvectors(house, 3).vectors)
    exact = lb.options.room_times(house, climbing)
    sampled, error = options.sampled_room_times(house, climbing, np.random.default_rng(0))
    off = ~np.eye(3, dtype=bool)
    assert (np.abs(sampled - exact) < 4.5 * error)[off].all()
    assert (error < 0.1 * exact)[off].all()


def test_snapshots_are_few_and_end_with_the_last_step():
    steps = snapshot_steps(200_000, 1000)
    assert min(steps) == 1000
    assert max(steps) == 200_000
    assert 8 <= len(steps) <= 13


def command(tmp_path, *more):
    where = ["--where", str(tmp_path / "results"), "--scratch", str(tmp_path / "scratch")]
    return [sys.executable, "-m", "lapbook", "reproduce", "table1", "--only", SHORT, *where, *more]


def test_a_run_cut_short_and_then_killed_goes_on_to_the_same_record(tmp_path):
    """Out of time, then killed hard in the middle: in the end, metrics as if nothing had happened."""
    file = tmp_path / "results" / "table1" / f"{SHORT}.json"
    checkpoint = tmp_path / "scratch" / "table1" / SHORT / "checkpoint.safetensors"
    for _ in range(2):  # the second time there is a record that has had its hours
        reproduce("table1", tmp_path / "results", tmp_path / "scratch", only=SHORT, hours=1e-6)
        record = json.loads(file.read_text())
        assert record["budget"]["steps"] == 200 < record["budget"]["steps_allowed"]
        assert cut_short(record["budget"])
        assert record["provenance"]["command"].endswith("--hours 1e-06")
    seen = checkpoint.stat().st_mtime_ns
    process = subprocess.Popen(command(tmp_path), stderr=subprocess.DEVNULL, start_new_session=True)
    end = time.monotonic() + 60
    while checkpoint.stat().st_mtime_ns == seen:
        assert process.poll() is None, "the run ended before it could be killed"
        assert time.monotonic() < end
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert json.loads(file.read_text()) == record
    (again,) = reproduce("table1", tmp_path / "results", tmp_path / "scratch", only=SHORT)
    assert again == file
    (whole,) = reproduce("table1", tmp_path / "whole", tmp_path / "scratch", only=SHORT)
    record, other = (json.loads(path.read_text()) for path in (file, whole))
    assert record["metrics"] == other["metrics"]
    assert record["metrics"]["sim_gt"] > 0.95
    assert record["metrics"]["curve"]["sim_gt"][-1] < 0.6  # before it is turned
    assert record["metrics"]["curve"]["steps"] == list(range(200, 2001, 200))
    with np.load(file.with_suffix(".npz")) as mine, np.load(whole.with_suffix(".npz")) as theirs:
        assert (mine["vectors"] == theirs["vectors"]).all()
        assert (mine["snapshot_steps"] == theirs["snapshot_steps"]).all()
        assert (mine["curve_per_dim"] == theirs["curve_per_dim"]).all()
    assert reproduce("table1", tmp_path / "results", tmp_path / "scratch", only=SHORT) == []


ENDLESS = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's job in the background begins by ignoring it
from lapbook.reproduction.cli import main
from lapbook.reproduction.experiments import EXPERIMENTS
from lapbook.reproduction.common import Experiment

def endless(setting, scratch, report, hours):
    scratch.mkdir(parents=True)
    while True:
        report(1, "")
        time.sleep(0.05)

EXPERIMENTS["trial"] = Experiment(({"seed": 0}, {"seed": 1}), endless, lambda setting: 1)
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("jobs", "how", "status"),
    [
        (1, lambda process: process.terminate(), 143),
        (2, lambda process: process.terminate(), 143),
        (2, lambda process: os.killpg(process.pid, signal.SIGINT), 130),  # Ctrl-C reaches the whole group
        (2, lambda process: process.kill(), -signal.SIGKILL),
    ],
    ids=["terminated alone", "terminated", "interrupted", "killed"],
)
def test_ended_from_outside_it_takes_its_processes_along(jobs, how, status, tmp_path):
    where = ["--where", str(tmp_path / "results"), "--scratch", str(tmp_path / "scratch")]
    arguments = [sys.executable, "-c", ENDLESS, "reproduce", "trial", "--jobs", str(jobs), *where]
    process = subprocess.Popen(arguments, stderr=subprocess.DEVNULL, start_new_session=True)
    end = time.monotonic() + 120
    while len(list(tmp_path.glob("scratch/trial/*"))) < jobs:  # all are at work
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.05)
    how(process)
    assert process.wait(timeout=60) == status
    while time.monotonic() < end:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:  # none of the group is left
            return
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    pytest.fail("a process went on alone")


def test_a_damaged_record_is_told_and_made_anew(tmp_path):
    only = "GridMaze-climb-gd-paper-10-0"
    (file,) = reproduce("options", tmp_path / "results", tmp_path / "scratch", only=only)
    whole = file.read_text()
    assert reproduce("options", tmp_path / "results", tmp_path / "scratch", only=only) == []
    arrays = file.with_suffix(".npz")
    damages = [(file, damage.encode()) for damage in (whole[: len(whole) // 2], "[]", "{}")]
    for damaged, damage in [*damages, (arrays, arrays.read_bytes()[:-30])]:
        damaged.write_bytes(damage)
        with pytest.warns(DamagedRecord, match=f"{only}.json is damaged, it will be made anew"):
            assert reproduce("options", tmp_path / "results", tmp_path / "scratch", only=only) == [file]
        assert json.loads(file.read_text())["metrics"] == json.loads(whole)["metrics"]


def trial(monkeypatch, run, settings):
    only = {"trial": Experiment(settings, run, lambda setting: 1)}
    monkeypatch.setattr("lapbook.reproduction.runner.EXPERIMENTS", only)


def test_everything_runs_end_to_end_once(tmp_path, monkeypatch):
    """The tiny preset: each experiment has its records, from each other's; then nothing is left to do."""
    physics = () if importlib.util.find_spec("pybullet") else ("point", "recorded")
    here = {title: experiment for title, experiment in EXPERIMENTS.items() if title not in physics}
    monkeypatch.setattr("lapbook.reproduction.runner.EXPERIMENTS", here)
    monkeypatch.setattr(lb.results, "folder", lambda: tmp_path / "book")  # none of its records may be needed
    scratch = ["--scratch", str(tmp_path / "scratch")]
    assert main(["reproduce", "all", "--preset", "smoke", *scratch]) == 0
    where = tmp_path / "scratch" / "smoke"
    wanted = {f"{title}/{name(setting)}.json" for title, setting in tasks("all", preset="smoke")}
    assert {title for title, _ in tasks("all", preset="smoke")} == set(here) - {"public"}  # its maps are not here
    assert {file.relative_to(where).as_posix() for file in where.glob("*/*.json")} == wanted
    assert not (tmp_path / "book").exists()
    for file in where.glob("*/*.json"):
        ran = json.loads(file.read_text())["provenance"]["command"]
        assert shlex.split(ran)[3:] == ["reproduce", file.parent.name, "--only", file.stem, "--preset", "smoke"]
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "scratch").rglob("*")}
    assert main(["reproduce", "all", "--preset", "smoke", "--jobs", "2", *scratch]) == 0
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "scratch").rglob("*")} == before
    file = where / "table1" / "GridMaze-xy-ggd-smoke-4-0.json"
    whole = file.read_text()
    file.write_text(whole[:-100])
    with pytest.warns(DamagedRecord, match=f"{file.name} is damaged, it will be made anew"):
        assert reproduce("all", scratch=tmp_path / "scratch", preset="smoke") == [file]
    assert json.loads(file.read_text())["metrics"] == json.loads(whole)["metrics"]


def test_the_tiny_settings_have_names_of_their_own():
    for title, experiment in EXPERIMENTS.items():
        if experiment.smoke:  # public has none: its maps are not here
            tiny = [name(setting) for setting in experiment.at("smoke")]
            assert len(set(tiny)) == len(tiny) > 0
            assert not set(tiny) & {name(setting) for setting in experiment.at("paper")}, title


def test_what_reads_records_waits_for_them(tmp_path, monkeypatch):
    """Two at a time, but no run of a stage begins before the last one of the stage before is stored."""

    def add(setting, scratch, report, hours):
        time.sleep(0.2 * (setting["seed"] == 0))
        from lapbook.results import read

        earlier = [read(f"trial{i}")[0]["metrics"]["values"] for i in range(setting["stage"])]
        return {"values": [*(value for values in earlier for value in values), 1]}, {"wall_seconds": 0}, {}

    settings = {i: tuple({"stage": i, "seed": seed} for seed in range(2)) for i in (2, 0, 1)}
    trials = {
        f"trial{i}": Experiment(settings[i], add, lambda setting: 1, stage=lambda setting: setting["stage"])
        for i in settings
    }
    monkeypatch.setattr("lapbook.reproduction.runner.EXPERIMENTS", trials)
    files = reproduce("all", tmp_path / "results", tmp_path / "scratch", jobs=2)
    assert [file.parent.name for file in files] == ["trial0"] * 2 + ["trial1"] * 2 + ["trial2"] * 2
    assert [len(json.loads(file.read_text())["metrics"]["values"]) for file in files] == [1, 1, 2, 2, 4, 4]


def test_a_process_that_dies_does_not_stop_the_others(tmp_path, monkeypatch):
    """One dies once and is begun again; one dies always, when the others are over."""
    monkeypatch.setattr("lapbook.reproduction.runner.TRIES", 2)

    def mortal(setting, scratch, report, hours):
        scratch.mkdir(parents=True, exist_ok=True)
        end = time.monotonic() + 60
        while setting["dies"] == 99 and len(list(tmp_path.glob("results/trial/*"))) < 4 and time.monotonic() < end:
            time.sleep(0.05)
        if setting["dies"] > len(list(scratch.iterdir())):
            (scratch / str(time.monotonic_ns())).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return {}, {"wall_seconds": 0}, {}

    trial(monkeypatch, mortal, tuple({"dies": dies, "seed": seed} for seed, dies in enumerate((0, 1, 99, 0, 0))))
    told = pytest.warns(FailedRun, match="trial 99-2 failed: of the processes that tried, 2 died")
    with told as warned, pytest.raises(RuntimeError, match="1 of 5 runs failed"):
        reproduce("trial", tmp_path / "results", tmp_path / "scratch", jobs=2)
    assert len(warned) == 1
    stored = sorted(file.stem for file in tmp_path.glob("results/trial/*.json"))
    assert stored == ["0-0", "0-3", "0-4", "1-1"]


def test_what_is_no_record_is_a_failure_like_any_other(tmp_path, monkeypatch):
    def nan(setting, scratch, report, hours):
        return {"value": float("nan") if setting["seed"] == 0 else 1.0}, {"wall_seconds": 0}, {}

    trial(monkeypatch, nan, ({"seed": 0}, {"seed": 1}))
    threads = torch.get_num_threads()
    told = pytest.warns(FailedRun, match="trial 0 failed: it cannot be stored, .*nan")
    with told, pytest.raises(RuntimeError, match="1 of 2 runs failed"):
        reproduce("trial", tmp_path / "results", tmp_path / "scratch")
    assert [file.name for file in tmp_path.glob("results/trial/*")] == ["1.json"]
    assert torch.get_num_threads() == threads


def test_a_cluster_loses_nothing_when_a_worker_is_killed(tmp_path, monkeypatch):
    """Two worker processes, one killed in the middle of a run: all records are there, once each."""
    distributed = pytest.importorskip("dask.distributed")

    def slow(setting, scratch, report, hours):  # sent to the workers as it is
        scratch.mkdir(parents=True, exist_ok=True)
        (scratch / f"begun-{os.getpid()}").touch()
        time.sleep(1.5)
        return {"value": setting["seed"]}, {"wall_seconds": 1.5}, {}

    scratch, begun, over = tmp_path / "scratch", [], threading.Event()
    trial(monkeypatch, slow, tuple({"env": "none", "seed": seed} for seed in range(5)))

    def kill_one_in_the_middle():
        while not begun and not over.wait(0.05):  # on a busy machine a worker takes a minute to begin
            begun.extend(scratch.glob("trial/*/begun-*"))
        if begun:
            os.kill(int(begun[0].name.removeprefix("begun-")), signal.SIGKILL)

    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        killer = threading.Thread(target=kill_one_in_the_middle)
        killer.start()
        files = reproduce("trial", tmp_path / "results", scratch, dask=cluster.scheduler_address)
        over.set()
        killer.join()
    assert begun
    assert sorted(file.name for file in files) == [f"none-{seed}.json" for seed in range(5)]
    assert [json.loads(file.read_text())["metrics"]["value"] for file in sorted(files)] == list(range(5))
    assert not list(scratch.glob("trial/*"))


def test_failures_are_told_and_do_not_leave_records(tmp_path, capfd):
    scratch = tmp_path / "scratch" / "table1" / SHORT
    scratch.mkdir(parents=True)
    (scratch / "checkpoint.safetensors").write_bytes(b"damaged")
    with pytest.warns(FailedRun, match=rf"(?s)table1 {re.escape(SHORT)} failed: Traceback .* is damaged"):
        assert main(command(tmp_path)[3:]) == 1
    assert "1 of 1 runs failed" in capfd.readouterr().err
    assert not list((tmp_path / "results").glob("**/*.json"))


def test_the_list_says_what_is_done(tmp_path, capsys):
    assert main(command(tmp_path, "--list")[3:]) == 0
    assert capsys.readouterr().out == f"open {SHORT}\n"
    assert [name(setting) for setting in matching(EXPERIMENTS["table1"].settings, "GridMaze-xy-gd[+]*-3")] == [SHORT]


def test_the_list_calls_open_what_would_be_run(tmp_path, capsys):
    """What was cut short, unless it has had these hours, and what is damaged."""
    (task,) = tasks("table1", SHORT)
    budget = {"steps": 500, "steps_allowed": 2000, "wall_seconds": 3600.0}
    record = {"experiment": task[0], "setting": task[1], "metrics": {}, "budget": budget}
    file = save(record | {"provenance": provenance("a command")}, where=tmp_path / "results")

    def listed(*more):
        assert main(command(tmp_path, "--list", *more)[3:]) == 0
        return capsys.readouterr().out

    assert listed() == listed("--hours", "2") == f"open {SHORT}\n"
    assert listed("--hours", "1") == f"done {SHORT}\n"
    file.write_text("{")
    with pytest.warns(DamagedRecord, match="it will be made anew"):
        assert listed() == f"open {SHORT}\n"
    assert file.read_text() == "{"  # nothing was made


def test_without_an_experiment_all_are_listed(capsys):
    assert main(["reproduce"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [*EXPERIMENTS, "all"]
    done, known = (int(word) for word in lines[0].split()[1:4:2])
    assert known == len(EXPERIMENTS["table1"].settings)
    assert 0 < done <= known


def test_what_is_missing_costs_what_its_like_did(tmp_path):
    wanted = [("trial", {"env": env, "method": m, "seed": 0}) for env in ("a", "b", "c") for m in ("gd", "ggd")]
    whole = "0 of them cut short"
    assert cost(wanted, tmp_path) == f"  0 of   6 stored,  {whole},   0.0 hours;         ? hours to come"

    def store(task, hours, **budget):
        record = {
            "experiment": task[0],
            "setting": task[1],
            "metrics": {},
            "budget": budget | {"wall_seconds": 3600 * hours},
        }
        save(record | {"provenance": provenance("a command")}, where=tmp_path)

    for task, hours in zip(wanted, (1, 4, 3), strict=False):
        store(task, hours)
    told = f"  3 of   6 stored,  {whole},   8.0 hours;      10.0 hours to come"  # one of 2 and two of 4
    assert cost(wanted, tmp_path) == told
    assert cost(wanted[:3], tmp_path) == f"  3 of   3 stored,  {whole},   8.0 hours;       0.0 hours to come"
    more = [*wanted, ("trial", {"env": "a", "method": "ritz", "seed": 0})]
    assert cost(more, tmp_path) == f"  3 of   7 stored,  {whole},   8.0 hours;  10.0 + ? hours to come"
    store(more[-1], 2, steps=500, steps_allowed=2000)  # a quarter of it is done
    short = "1 of them cut short"
    assert cost(more[-1:], tmp_path) == f"  1 of   1 stored,  {short},   2.0 hours;       6.0 hours to come"
    like = [*more[-1:], ("trial", {"env": "b", "method": "ritz", "seed": 0})]
    assert cost(like, tmp_path) == f"  1 of   2 stored,  {short},   2.0 hours;      14.0 hours to come"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"experiment": "table9"}, "experiment must be one of table1, .*: got 'table9'"),
        ({"experiment": "table1", "preset": "tiny"}, "preset must be one of paper, smoke: got 'tiny'"),
        ({"experiment": "all", "only": "x"}, "only must match some setting of all, such as GridRoom-.*: got 'x'"),
        ({"experiment": "table1", "jobs": 0}, "jobs must be at least 1, got 0"),
        ({"experiment": "table1", "hours": 0}, "hours must be positive, got 0"),
        ({"experiment": "table1", "only": "x"}, "only must match some setting of table1, such as GridRoom-.*: got 'x'"),
    ],
)
def test_bad_arguments_are_refused(arguments, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        reproduce(where=tmp_path, scratch=tmp_path, **arguments)


def test_tiny_records_are_never_put_among_the_books(tmp_path):
    with pytest.raises(ValueError, match=r"where must not be .* with the preset smoke: it holds .* the book"):
        reproduce("all", lb.results.folder(), tmp_path, preset="smoke")
