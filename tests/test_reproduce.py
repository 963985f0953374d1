import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import lapbook as lb
from lapbook.__main__ import main
from lapbook.reproduce import EXPERIMENTS, flat, reproduce, snapshot_steps, table1_training
from lapbook.results import matching, name

SHORT = "GridMaze-xy-gd+ritz-fast-10-3"


def test_table1_has_the_columns_of_the_paper():
    settings = EXPERIMENTS["table1"].settings
    paper = [setting for setting in settings if setting["preset"] == "paper"]
    assert len(paper) == 2 * 2 * 2 * 3
    assert {(s["env"], s["obs"]) for s in paper} == {key for key in lb.paper.TABLE_1["gd"] if key[0].startswith("Grid")}
    assert len({name(setting) for setting in settings}) == len(settings)
    for setting in paper:
        training = table1_training(setting)
        literal = (training.steps, training.batch, training.lr, training.beta, training.target_scale, training.gamma)
        assert literal == (200_000, 1024, 1e-3, 1.0, 1.0, 0.9)
        assert training.coefficients == ("equal" if setting["method"] == "gd" else "paper")


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


def test_a_killed_run_goes_on_to_the_same_record_and_is_then_skipped(tmp_path):
    """Killed hard, twice, in the middle: metrics as if nothing had happened."""
    file = tmp_path / "results" / "table1" / f"{SHORT}.json"
    checkpoint = tmp_path / "scratch" / "table1" / SHORT / "checkpoint.safetensors"
    seen = None
    for _ in range(2):
        process = subprocess.Popen(command(tmp_path), stderr=subprocess.DEVNULL, start_new_session=True)
        end = time.monotonic() + 60
        while not checkpoint.exists() or checkpoint.stat().st_mtime_ns == seen:
            assert process.poll() is None, "the run ended before it could be killed"
            assert time.monotonic() < end
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        seen = checkpoint.stat().st_mtime_ns
        assert not file.exists()
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"experiment": "table9"}, "experiment must be one of table1: got 'table9'"),
        ({"experiment": "table1", "jobs": 0}, "jobs must be at least 1, got 0"),
        ({"experiment": "table1", "only": "x"}, "only must match some setting of table1, such as GridRoom-.*: got 'x'"),
    ],
)
def test_bad_arguments_are_refused(arguments, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        reproduce(where=tmp_path, scratch=tmp_path, **arguments)
