"""Every chapter as a reader on Google Colab meets it: its twin, alone in an empty folder, installs the package first.

Colab's image cannot be had here, so an environment stands for it: Colab's versions of what the book imports (but for
torch, gigabytes in each version, and for Python itself), below them what is installed here, less what Colab lacks.
The install lines of the first cell really run, with the wheel in the place of the repository's address.

`make colab` runs this file; `make unit` leaves it out, since it runs every chapter once more.
"""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable
from pathlib import Path

import address
import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "chapters").glob("*.ipynb"))
LINK = f"{address.address()}/archive/{address.BRANCH}.zip"
HERE = Path(sysconfig.get_path("purelib"))
STORE = Path(sys.prefix) / "colab"

# What Colab had in 2026: its widgets and kernel are years older than the rest.
VERSIONS = [
    "numpy==2.1.3", "scipy==1.16.3", "networkx==3.6.1", "joblib==1.5.3", "safetensors==0.7.0", "tqdm==4.67.1",
    "gymnasium==1.3.0", "Farama-Notifications==0.0.4", "pygame==2.6.1", "matplotlib==3.10.0", "pillow==11.3.0",
    "anywidget==0.9.21", "psygnal==0.15.1", "ipywidgets==7.7.1", "widgetsnbextension==3.6.10",
    "jupyterlab-widgets==3.0.16", "ipython==7.34.0", "ipython-genutils==0.2.0", "ipykernel==6.17.1",
    "jupyter-client==7.4.9", "traitlets==5.7.1", "matplotlib-inline==0.2.1", "backcall==0.2.0", "decorator==4.4.2",
    "entrypoints==0.4", "nest-asyncio==1.6.0", "pickleshare==0.7.5",
]  # fmt: skip
LACKING = ("distributed", "lapbook", "minigrid", "pybullet", "pygame")  # the last one: Colab has pygame, not pygame-ce

pytestmark = pytest.mark.skipif(sys.version_info >= (3, 14), reason="Colab's versions have no wheels for this Python")


@pytest.fixture(scope="session")
def versions() -> Path:
    """A folder with Colab's versions, kept in .venv for the next time; the list in it is written last."""
    with open(f"{STORE}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run side by side, and one of them is enough to fill it
        done = STORE / "versions.json"
        if not done.exists() or json.loads(done.read_text()) != VERSIONS:
            shutil.rmtree(STORE, ignore_errors=True)
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
                       "--only-binary=:all:", "--no-compile", "--target", STORE, *VERSIONS]  # fmt: skip
            subprocess.run(command, check=True)
            done.write_text(json.dumps(VERSIONS))
    return STORE


@pytest.fixture(scope="session")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="session")
def rest(tmp_path_factory) -> Path:
    """A folder that shows what is installed here, less what Colab lacks, and a google.colab that is only a name."""
    folder = tmp_path_factory.mktemp("rest")
    for entry in HERE.iterdir():
        if not entry.name.lower().lstrip("_").startswith(LACKING) and entry.suffix != ".pth":
            (folder / entry.name).symlink_to(entry)
    (folder / "google").unlink(missing_ok=True)
    (folder / "google" / "colab").mkdir(parents=True)
    (folder / "google" / "colab" / "__init__.py").touch()
    return folder


@pytest.fixture
def run(tmp_path, monkeypatch, versions, rest, wheel) -> Callable[[list], Path]:
    """A function that runs the cells of a notebook in a fresh environment and an empty folder.

    The environment's own site-packages is where installs go: no test changes what another one or .venv sees.
    """
    home, folder = tmp_path / "environment", tmp_path / "content"
    folder.mkdir()
    venv.create(home, with_pip=False, symlinks=True)
    (site,) = home.glob("lib/python*/site-packages")
    (site / "below.pth").write_text(f"{versions}\n{rest}\nimport google.colab\n")
    spec = tmp_path / "jupyter" / "kernels" / "colab" / "kernel.json"
    spec.parent.mkdir(parents=True)
    argv = [str(home / "bin" / "python"), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    variables = {"PYTHONPATH": "", "OMP_NUM_THREADS": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    spec.write_text(json.dumps({"argv": argv, "display_name": "Colab", "language": "python", "env": variables}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))

    def run_cells(cells: list) -> Path:
        for cell in cells:
            cell.source = cell.source.replace(LINK, str(wheel))
        notebook = nbformat.v4.new_notebook(cells=cells)
        place = {"metadata": {"path": str(folder)}}
        NotebookClient(notebook, kernel_name="colab", timeout=300, resources=place).execute()
        return site

    return run_cells


def code(source: str) -> nbformat.NotebookNode:
    return nbformat.v4.new_code_cell(source)


def text(cell: nbformat.NotebookNode) -> str:
    return "".join(output.text for output in cell.outputs if output.get("name") == "stdout")


LOOK = f"""
import json, sys
from importlib.metadata import version
import anywidget, gymnasium, ipywidgets, lapbook, matplotlib, minigrid, numpy, pygame, scipy, torch
files = {{name: module.__file__ for name, module in sys.modules.items() if getattr(module, "__file__", None)}}
print(json.dumps([files, [f"{{p}}=={{version(p)}}" for p in {[pin.split("==")[0] for pin in VERSIONS]}]]))
"""


def assert_only_the_missing_was_installed(site: Path, look: nbformat.NotebookNode) -> None:
    files, found = json.loads(text(look))
    assert found == VERSIONS
    assert {path.name.split("-")[0] for path in site.glob("*.dist-info")} == {"lapbook", "minigrid"}
    for name in ("lapbook", "minigrid"):
        assert Path(files[name]).is_relative_to(site)
    for name in ("numpy", "scipy", "gymnasium", "matplotlib", "ipywidgets", "anywidget", "pygame"):
        assert Path(files[name]).is_relative_to(STORE), files[name]
    assert "pybullet" not in files


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_chapter_runs_alone_in_an_empty_folder(run, path):
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    assert cells[0].source.count(LINK) == 1
    look = code(LOOK)
    site = run([*cells, look])
    assert_only_the_missing_was_installed(site, look)


def test_a_second_run_is_free_and_what_is_imported_stays(run):
    source = address.first_cell(address.address())
    before = code("import gymnasium, numpy, scipy, torch\nprint(numpy.__version__, torch.__version__)")
    first, second, look = code(source), code(source), code(LOOK)
    after = code("print(numpy.__version__, torch.__version__)\nassert numpy.linalg.eigvalsh(numpy.eye(3)).sum() == 3")
    site = run([before, first, second, look, after])
    assert second.outputs == []
    assert text(before) == text(after)
    assert_only_the_missing_was_installed(site, look)


MOVES = {"eigenvectors": ("dimension", 5), "rotation": ("angle", 60), "coefficients": ("coefficients", [3.0, 2.0]),
         "playback": ("frame", 3), "options": ("dimension", 4), "shaping": ("dimension", 4)}  # fmt: skip
MOVE = f"""
import sys
sys.path.insert(0, {str(ROOT / "tests")!r})
import ipywidgets
from test_explorers import MAKERS
assert ipywidgets.__version__ == "7.7.1"
for make in MAKERS:
    w, sent, seen = make(), [], []
    trait, value = {MOVES}[w.name]
    before, old = w.html(), getattr(w, trait)
    w.observe(seen.append, trait)
    w.comm.send = lambda data, *rest, **more: sent.append(data)

    setattr(w, trait, value)  # from Python to the page
    assert seen[-1]["new"] == value
    assert sent[-1]["method"] == "update" and sent[-1]["state"] == {{trait: value}}
    assert w.html() != before

    update = {{"method": "update", "state": {{trait: old}}, "buffer_paths": []}}  # from the page to Python
    w.comm.handle_msg({{"content": {{"data": update}}, "buffers": []}})
    assert seen[-1]["new"] == old and w.html() == before
    bundle = w._repr_mimebundle_()[0]
    assert bundle["text/html"] == before and "application/vnd.jupyter.widget-view+json" in bundle
    print(w.name)
"""


def test_explorers_live_with_the_widgets_of_colab(run):
    moved = code(MOVE)
    run([code(address.first_cell(address.address())), moved])
    assert sorted(text(moved).split()) == sorted(MOVES)
