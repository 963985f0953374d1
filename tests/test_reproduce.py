import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import lapbook as lb
from lapbook.__main__ import main
from lapbook.experiments import EXPERIMENTS, options, point
from lapbook.experiments.common import Experiment, flat, snapshot_steps
from lapbook.experiments.table1 import training_settings
from lapbook.reproduce import DamagedRecord, reproduce
from lapbook.results import matching, name

SHORT = "GridMaze-xy-gd+ritz-fast-10-3"


def test_table1_has_the_columns_of_the_paper():
    settings = EXPERIMENTS["table1"].settings
    paper = [setting for setting in settings if setting["preset"] == "paper"]
    assert len(paper) == 2 * 2 * 2 * 3
    assert {(s["env"], s["obs"]) for s in paper} == {key for key in lb.paper.TABLE_1["gd"] if key[0].startswith("Grid")}
    assert len({name(setting) for setting in settings}) == len(settings)
    for setting in paper:
        training = training_settings(setting)
        literal = (training.steps, training.batch, training.lr, training.beta, training.target_scale, training.gamma)
        assert literal == (200_000, 1024, 1e-3, 1.0, 1.0, 0.9)
        assert training.coefficients == ("equal" if setting["method"] == "gd" else "paper")


def test_point_has_the_two_other_columns_and_the_ablation():
    settings = EXPERIMENTS["point"].settings
    assert {(s["env"], s["obs"]) for s in settings if s["preset"] == "paper"} == set(lb.paper.TABLE_1["gd"]) - {
        key for key in lb.paper.TABLE_1["gd"] if key[0].startswith("Grid")
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


def test_a_curve_is_flat_when_its_last_fifth_is():
    climbing = np.linspace(0, 1, 80)
    level, noise = np.full(20, 0.8), 0.01 * (-1) ** np.arange(20)
    assert not flat(np.append(climbing, 1 + climbing[:20]), 100)
    assert flat(np.append(climbing, level + noise), 100)
    assert not flat(np.append(climbing, level + 0.003 * (np.arange(20) >= 10)), 100)
    assert flat(np.append(climbing, level + 0.001 * (np.arange(20) >= 10)), 100)
    assert not flat(np.full(24, 0.5), 100)  # too early to say
    assert flat(np.full(25, 0.5), 100)
    up, down = np.linspace(0, 1, 100), np.linspace(1, 0, 100)
    assert flat((up + down) / 2, 100)
    assert not flat(np.stack([up, down], axis=1), 100)  # two that move and cancel in the mean


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
        assert not record["budget"]["stopped_flat"]
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


def test_ended_from_outside_it_takes_its_processes_along(tmp_path):
    process = subprocess.Popen(command(tmp_path), stderr=subprocess.DEVNULL, start_new_session=True)
    end = time.monotonic() + 60
    while not (tmp_path / "scratch").exists():  # a process of its own is at work
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.05)
    process.terminate()
    assert process.wait(timeout=30) == 143
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
    for damage in (whole[: len(whole) // 2], "[]", "{}"):
        file.write_text(damage)
        with pytest.warns(DamagedRecord, match=f"{only}.json is damaged, it is made anew"):
            assert reproduce("options", tmp_path / "results", tmp_path / "scratch", only=only) == [file]
        assert json.loads(file.read_text())["metrics"] == json.loads(whole)["metrics"]


def test_a_cluster_loses_nothing_when_a_worker_is_killed(tmp_path, monkeypatch):
    """Two worker processes, one killed in the middle of a run: all records are there, once each."""
    distributed = pytest.importorskip("dask.distributed")

    def slow(setting, scratch, report, hours):  # sent to the workers as it is
        scratch.mkdir(parents=True, exist_ok=True)
        (scratch / f"begun-{os.getpid()}").touch()
        time.sleep(1.5)
        return {"value": setting["seed"]}, {"wall_seconds": 1.5}, {}

    settings, scratch = tuple({"env": "none", "seed": seed} for seed in range(5)), tmp_path / "scratch"
    monkeypatch.setitem(EXPERIMENTS, "trial", Experiment(settings, slow, lambda setting: 1))
    begun = []

    def kill_one_in_the_middle():
        end = time.monotonic() + 60
        while not begun and time.monotonic() < end:
            begun.extend(scratch.glob("trial/*/begun-*"))
            time.sleep(0.05)
        os.kill(int(begun[0].name.removeprefix("begun-")), signal.SIGKILL)

    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        killer = threading.Thread(target=kill_one_in_the_middle)
        killer.start()
        files = reproduce("trial", tmp_path / "results", scratch, dask=cluster.scheduler_address)
        killer.join()
    assert begun
    assert sorted(file.name for file in files) == [f"none-{seed}.json" for seed in range(5)]
    assert [json.loads(file.read_text())["metrics"]["value"] for file in sorted(files)] == list(range(5))
    assert not list(scratch.glob("trial/*"))


def test_failures_are_told_and_do_not_leave_records(tmp_path, capfd):
    scratch = tmp_path / "scratch" / "table1" / SHORT
    scratch.mkdir(parents=True)
    (scratch / "checkpoint.safetensors").write_bytes(b"damaged")
    arguments = command(tmp_path)[3:]
    assert main(arguments) == 1
    assert "1 of 1 runs failed" in capfd.readouterr().err
    assert not list((tmp_path / "results").glob("**/*.json"))


def test_the_list_says_what_is_done(tmp_path, capsys):
    assert main(command(tmp_path, "--list")[3:]) == 0
    assert capsys.readouterr().out == f"open {SHORT}\n"
    assert [name(setting) for setting in matching(EXPERIMENTS["table1"].settings, "GridMaze-xy-gd[+]*-3")] == [SHORT]


def test_without_an_experiment_all_are_listed(capsys):
    assert main(["reproduce"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(EXPERIMENTS)
    done, known = (int(word) for word in lines[0].split()[1:4:2])
    assert known == len(EXPERIMENTS["table1"].settings)
    assert done == known


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"experiment": "table9"}, "experiment must be one of table1, .*: got 'table9'"),
        ({"experiment": "table1", "jobs": 0}, "jobs must be at least 1, got 0"),
        ({"experiment": "table1", "hours": 0}, "hours must be positive, got 0"),
        ({"experiment": "table1", "only": "x"}, "only must match some setting of table1, such as GridRoom-.*: got 'x'"),
    ],
)
def test_bad_arguments_are_refused(arguments, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        reproduce(where=tmp_path, scratch=tmp_path, **arguments)
