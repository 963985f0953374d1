"""One address for the repository in every place, the cell that uses it on Colab, and the workflows on GitHub."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import address
import nbformat
import pytest
import yaml
from IPython.core.inputtransformer2 import TransformerManager

from conftest import SITE, give_up

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "book").glob("*.ipynb"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
NEW = "https://github.com/some-one/the.book-2"


def test_the_address_is_the_same_everywhere():
    assert address.differences() == []


@pytest.fixture
def copy(tmp_path):
    """The files that hold the address, with two notebooks and their twins."""
    for folder in ("book", "chapters"):
        (tmp_path / folder).mkdir()
    twins = [ROOT / "chapters" / path.name for path in NOTEBOOKS[:2]]
    for path in [*(ROOT / name for name in address.PLACES), *NOTEBOOKS[:2], *twins]:
        shutil.copy(path, tmp_path / path.relative_to(ROOT))
    return tmp_path


def everything(root: Path) -> dict[Path, str]:
    return {path: path.read_text() for path in root.rglob("*") if path.is_file()}


def test_one_command_moves_it_there_and_back(copy):
    address.update_notebooks(copy)
    before, old = everything(copy), address.address()
    address.move(NEW, copy)
    assert address.address(copy) == NEW
    assert address.differences(copy) == []
    for path, text in everything(copy).items():
        assert "some-one/the.book-2" in text, path
        assert old not in text, path
    address.move(old, copy)
    assert everything(copy) == before


def test_a_wrong_address_changes_nothing(copy):
    before = everything(copy)
    for wrong in ("https://github.com/owner", "http://github.com/a/b", "https://example.org/a/b", f"{NEW}.git", "a/b"):
        with pytest.raises(ValueError, match=f"must be https://github.com/OWNER/NAME.*got '{re.escape(wrong)}'"):
            address.move(wrong, copy)
    assert everything(copy) == before


def test_differences_are_found_and_first_cells_repaired(copy):
    address.update_notebooks(copy)
    config, (lost, changed) = copy / "_config.yml", address.notebooks(copy)
    config.write_text(config.read_text().replace(address.address(), "https://github.com/an/other"))
    notebook = nbformat.read(lost, as_version=4)
    notebook.cells = [cell for cell in notebook.cells if not cell.source.startswith(address.MARK)]
    nbformat.write(notebook, lost)
    notebook = nbformat.read(changed, as_version=4)
    first = next(cell for cell in notebook.cells if cell.cell_type == "code")
    first.source += "\n# and more"
    nbformat.write(notebook, changed)
    found = address.differences(copy)
    assert len(found) == 3
    assert found[0].endswith("it names an/other")
    address.update_notebooks(copy)
    assert address.differences(copy) == found[:1]
    once = everything(copy)
    address.update_notebooks(copy)
    assert everything(copy) == once


def run_first_cell(monkeypatch, colab: bool, present: tuple[str, ...] = ()) -> tuple[dict, list]:
    """Run the cell as IPython would, with an installer that only notes what it is asked for."""
    asked, names = [], {}
    shell = SimpleNamespace(run_line_magic=lambda magic, line: asked.append((magic, line.format(**names))))
    names["get_ipython"] = lambda: shell
    monkeypatch.delitem(sys.modules, "google.colab", raising=False)
    if colab:
        monkeypatch.setitem(sys.modules, "google.colab", SimpleNamespace())
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name in present or None)
    exec(TransformerManager().transform_cell(address.first_cell(NEW)), names)
    return names, asked


def test_the_first_cell_does_nothing_elsewhere(monkeypatch, capsys):
    names, asked = run_first_cell(monkeypatch, colab=False)
    assert asked == []
    assert set(names) == {"__builtins__", "get_ipython", "sys", "find_spec"}
    assert capsys.readouterr() == ("", "")


def test_on_colab_it_installs_what_is_missing_and_no_more(monkeypatch):
    link = f"{NEW}/archive/main.zip"
    assert run_first_cell(monkeypatch, True, ("pygame",))[1] == [
        ("pip", f"install --quiet --no-deps {link} minigrid"),
    ]
    assert run_first_cell(monkeypatch, True)[1] == [("pip", f"install --quiet --no-deps {link} minigrid pygame-ce")]
    assert run_first_cell(monkeypatch, True, ("pygame", "minigrid", "lapbook"))[1] == []


def test_the_launch_button_opens_the_notebook_on_colab():
    config = yaml.safe_load((ROOT / "_config.yml").read_text())
    assert config["repository"]["branch"] == address.BRANCH
    if not (SITE / "book").exists():
        give_up(f"no built book in {SITE}: run `make book` first")
    start = f"{config['launch_buttons']['colab_url']}/github/{address.address().removeprefix('https://github.com/')}"
    for page in sorted((SITE / "book").glob("*.html")):
        links = set(re.findall(r'href="(https://colab[^"]*)"', page.read_text()))
        notebook = ROOT / "book" / f"{page.stem}.ipynb"
        wanted = {f"{start}/blob/main/chapters/{notebook.name}"} if notebook.exists() else set()
        assert links == wanted, page.name


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_call_what_there_is_with_few_rights(path):
    text = path.read_text()
    flow = yaml.safe_load(text)
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    assert flow["permissions"] == {"contents": "read"}
    assert "group" in flow["concurrency"]
    assert "secrets." not in text
    for name, job in flow["jobs"].items():
        assert job["timeout-minutes"] <= 120
        assert job.get("permissions", {}).keys() <= ({"pages", "id-token"} if name == "publish" else set())
        for step in job["steps"]:
            assert re.fullmatch(r"actions/[\w-]+@v\d+", step.get("uses", "actions/none@v0"))
            for target in re.findall(r"\bmake ([a-z]+)", step.get("run", "")):
                assert target in targets, target
            for script in re.findall(r"\bbash (\S+)", step.get("run", "")):
                assert (ROOT / script).is_file(), script


def test_there_are_workflows_for_tests_pages_and_colab():
    assert [path.stem for path in WORKFLOWS] == ["book", "colab", "test"]
    commands = {
        path.stem: [
            step.get("run") for job in yaml.safe_load(path.read_text())["jobs"].values() for step in job["steps"]
        ]
        for path in WORKFLOWS
    }
    assert "bash .ci/run" in commands["test"]
    assert "make book" in commands["book"]
    assert any(command and command.startswith("make colab") for command in commands["colab"])
