import json

import numpy as np
import pytest

import lapbook as lb
from lapbook.results import arrays, metric, name, read, reading_first, save

SETTING = {"env": "GridRoom", "method": "ggd", "seed": 0}


def record(**changes):
    parts = {"experiment": "trial", "setting": SETTING, "metrics": {"sim_gt": 0.5, "curve": [1, 2, 3]}, "budget": {}}
    return parts | {"provenance": lb.results.provenance("a command")} | changes


def test_what_is_saved_is_read(tmp_path):
    path = save(record(), {"vectors": np.eye(2)}, tmp_path)
    assert path == tmp_path / "trial" / "GridRoom-ggd-0.json"
    (found,) = read("trial", tmp_path)
    assert {key: found[key] for key in record()} == record()
    assert (arrays(found)["vectors"] == np.eye(2)).all()
    assert '"curve": [ 1, 2, 3 ]' in path.read_text()
    assert sorted(file.name for file in path.parent.iterdir()) == ["GridRoom-ggd-0.json", "GridRoom-ggd-0.npz"]


def test_records_are_selected_by_their_settings(tmp_path):
    for seed in range(3):
        save(record(setting=SETTING | {"seed": seed}, metrics={"sim_gt": seed / 2}), where=tmp_path)
    assert metric(read("trial", tmp_path), "sim_gt").tolist() == [0, 0.5, 1]
    assert metric(read("trial", tmp_path, seed=2), "sim_gt").tolist() == [1]
    with pytest.raises(ValueError, match="must have records with seed=3, env=GridRoom: trial has none"):
        read("trial", tmp_path, seed=3, env="GridRoom")
    with pytest.raises(ValueError, match="there are none at all"):
        read("trial", tmp_path / "nowhere")


def test_a_run_reads_the_records_of_its_own_folder_before_the_books(tmp_path, monkeypatch):
    monkeypatch.setattr(lb.results, "folder", lambda: tmp_path / "book")
    for place, seed in (("book", 0), ("book", 1), ("own", 1)):
        save(record(setting=SETTING | {"seed": seed}, metrics={"place": place}), where=tmp_path / place)
    with reading_first(tmp_path / "own"):
        found = [read("trial", seed=seed)[0]["metrics"]["place"] for seed in (0, 1)]
        assert found == ["book", "own"]
        assert len(read("trial")) == 1  # never a mixture of both
        assert len(read("trial", tmp_path / "book")) == 2
        with pytest.raises(ValueError, match="trial has none"):
            read("trial", seed=2)
    assert len(read("trial")) == 2


def test_a_failed_write_leaves_the_old_record(tmp_path):
    path = save(record(), where=tmp_path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="not JSON compliant"):
        save(record(metrics={"sim_gt": float("nan")}), where=tmp_path)
    with pytest.raises(ValueError, match=r"record must have .*: budget missing"):
        save({key: value for key, value in record().items() if key != "budget"}, where=tmp_path)
    assert path.read_bytes() == before
    assert len(list(path.parent.iterdir())) == 1


def test_a_damaged_record_is_named(tmp_path):
    path = save(record(), where=tmp_path)
    path.write_text(path.read_text()[:-20])
    with pytest.raises(ValueError, match=r"GridRoom-ggd-0.json is not a record, it may be damaged"):
        read("trial", tmp_path)


def test_provenance_says_what_ran():
    found = record()["provenance"]
    assert found["versions"]["torch"].startswith("2.")
    assert len(found["date"]) == 10
    assert found["commit"] is None or len(found["commit"].rstrip("+")) == 12


def test_every_record_of_the_book_is_whole():
    files = sorted(lb.results.folder().glob("*/*.json"))
    assert files
    for file in files:
        stored = json.loads(file.read_text())
        assert stored["experiment"] == file.parent.name
        assert name(stored["setting"]) == file.stem
        assert stored["provenance"]["commit"]
        assert not stored["provenance"]["commit"].endswith("+"), f"{file.name} is of code that was never committed"


def test_a_stored_representation_has_a_row_for_each_state():
    V = lb.results.representation("GridMaze", "ggd", "paper-scaled", seed=1)
    truth = lb.spectrum.eigenvectors(lb.layouts.GRID_MAZE, 10).vectors
    assert (V**2).mean(axis=0) == pytest.approx(np.ones(10))
    assert lb.sim_gt(V, truth) > 0.95
    with pytest.raises(ValueError, match="table1 has none"):
        lb.results.representation("GridMaze", "ggd", seed=99)
