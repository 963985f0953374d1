import subprocess
import sys
import zipfile
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import imports
import pytest

import lapbook as lb

ROOT = Path(__file__).resolve().parent.parent


def test_everything_promised_is_there():
    for name in dir(lb):
        assert getattr(lb, name) is not None
    with pytest.raises(AttributeError, match="module 'lapbook' has no attribute 'laplace'"):
        _ = lb.laplace


def test_import_takes_nothing_along_that_only_some_need():
    late = {"torch", "pybullet", "matplotlib", "networkx", "scipy", "minigrid", "lapbook.layouts"}
    code = f"import lapbook, sys; print(sorted({late} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_the_core_imports_nothing_from_the_floor_above():
    graph = imports.graph()
    core = {name for name in graph if not name.startswith("lapbook.reproduction") and name != "lapbook.__main__"}
    above = {(name, other) for name in core for other in graph[name] if other.startswith("lapbook.reproduction")}
    assert not above
    assert len(core) > 20
    assert "lapbook.training" in graph["lapbook.rayleigh"]  # imports for types count too


def test_imports_make_no_cycle():
    graph = imports.graph()
    list(TopologicalSorter(graph).static_order())  # raises CycleError
    with pytest.raises(CycleError):
        list(TopologicalSorter(graph | {"lapbook.layouts": {"lapbook.training"}}).static_order())


def test_the_figure_of_the_imports_is_the_graph():
    assert imports.START + imports.drawn() + imports.END in (ROOT / "CONTRIBUTING.md").read_text()


def test_the_wheel_holds_every_file_of_the_package(tmp_path):
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path],
        cwd=ROOT, check=True, capture_output=True,
    )  # fmt: skip
    (wheel,) = tmp_path.glob("*.whl")
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("lapbook/")}
    files = [path for path in (ROOT / "lapbook").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    results = [path for path in (ROOT / "book" / "results").rglob("*") if path.is_file()]
    shipped = {f"lapbook/_results/{path.relative_to(ROOT / 'book' / 'results').as_posix()}" for path in results}
    assert results
    assert inside == {path.relative_to(ROOT).as_posix() for path in files} | shipped
