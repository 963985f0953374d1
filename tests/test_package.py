import subprocess
import sys
import zipfile
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
