import ast
import subprocess
import sys
import zipfile
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

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


def imports(path):
    """The modules of lapbook that a file imports anywhere, for types too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lapbook"):
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in MODULES else node.module for name in inner}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("lapbook.")}
    return found - {"lapbook"}


def module_name(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_name(path): path for path in (ROOT / "lapbook").rglob("*.py")}
GRAPH = {name: imports(path) - {name} for name, path in MODULES.items()}


def test_the_core_imports_nothing_from_the_floor_above():
    core = {name for name in MODULES if not name.startswith("lapbook.reproduction") and name != "lapbook.__main__"}
    above = {(name, other) for name in core for other in GRAPH[name] if other.startswith("lapbook.reproduction")}
    assert not above
    assert len(core) > 20


def test_imports_make_no_cycle():
    list(TopologicalSorter(GRAPH).static_order())  # raises CycleError
    assert "lapbook.pairs" in GRAPH["lapbook.training"]
    with pytest.raises(CycleError):
        list(TopologicalSorter(GRAPH | {"lapbook.layouts": {"lapbook.training"}}).static_order())


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
