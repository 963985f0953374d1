"""Explorers: their text, their mathematics in the browser against Python's, the built pages, and live in JupyterLab."""

from __future__ import annotations

import base64
import io
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest

import lapbook as lb
from lapbook.explorers.base import joined, pack, still
from lapbook.layouts import GRID_MAZE, GRID_ROOM


def runs(layout, frames=5, d=4):
    """Two made-up runs: noise, and noise that fades into the truth with the wrong sign."""
    truth = lb.spectrum.eigenvectors(layout, d).vectors
    noise = np.random.default_rng(0).standard_normal((2, frames, layout.n, d)) / np.sqrt(layout.n)
    share = np.linspace(0, 1, frames)[:, None, None]
    return noise[0], (1 - share) * noise[1] - share * truth


def playback():
    steps = [10**k for k in range(1, 6)]
    return lb.explorers.playback([lb.explorers.film(layout, steps, *runs(layout)) for layout in (GRID_MAZE, GRID_ROOM)])


def worlds(layouts=(GRID_ROOM, GRID_MAZE), d=10):
    """The truth, the truth with noise and the wrong sign, and the truth turned by a random rotation."""
    rng, made = np.random.default_rng(0), []
    for layout in layouts:
        truth = lb.spectrum.eigenvectors(layout, d).vectors
        noise = 0.1 * rng.standard_normal(truth.shape) / np.sqrt(layout.n)
        turned = truth @ np.linalg.qr(rng.standard_normal((d, d)))[0]
        made.append((layout, {"truth": truth, "ours": noise - truth, "baseline": 30 * turned}))
    return made


def options():
    return lb.explorers.options(worlds())


def shaping():
    return lb.explorers.shaping(worlds())


MAKERS = [lb.explorers.eigenvectors, lb.explorers.rotation, lb.explorers.coefficients, playback, options, shaping]


@pytest.mark.parametrize("make", MAKERS)
def test_html_is_small_deterministic_and_safe(make):
    html = make().html()
    assert html == make().html()
    assert len(html.encode()) < 150_000
    script = re.search(r'<script type="module">(.*)</script>', html, flags=re.DOTALL).group(1)
    assert "</" not in script
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", html)
    assert "noscript" in html
    assert repr(make()) == repr(make())
    bundle, _ = make()._repr_mimebundle_()
    assert bundle["text/html"] == html
    assert "application/vnd.jupyter.widget-view+json" in bundle


def test_packed_vectors_are_the_eigenvectors():
    packed = pack(GRID_ROOM, 10)
    integers = np.frombuffer(base64.b64decode(packed["bytes"]), "<i2").reshape(10, 271)
    truth = lb.spectrum.eigenvectors(GRID_ROOM, 10)
    assert np.abs(integers.T * packed["scale"] - truth.vectors).max() < 1e-5
    assert packed["values"] == pytest.approx(truth.values, abs=1e-9)


def test_still_picture_is_a_png_of_the_map():
    pixels = plt.imread(io.BytesIO(still({"GridMaze": pack(GRID_MAZE, 7)})))
    assert pixels.shape[:2] == (19, 6 * 20)
    walls = np.abs(pixels[:, :19, :3] - np.array([59, 66, 82]) / 255).max(axis=-1) < 0.01
    assert (walls == ~GRID_MAZE.free).all()
    second = lb.spectrum.eigenvectors(GRID_MAZE, 2).vectors[:, 1]
    redder = (pixels[..., 0] - pixels[..., 2])[:, :19][GRID_MAZE.free]
    assert np.corrcoef(redder, second)[0, 1] > 0.99  # red where it is positive, blue where it is negative


def test_values_are_checked():
    w = lb.explorers.coefficients()
    with pytest.raises(ValueError, match=r"2 to 10 positive numbers: got \[1.0, -1.0\]"):
        w.coefficients = [1, -1]
    with pytest.raises(ValueError, match="dimension must lie in 1 … 20: got 21"):
        lb.explorers.eigenvectors(dimension=21)
    with pytest.raises(ValueError, match=r"plane must be \[i, j\] with 1 ≤ i < j ≤ 10: got \[3, 3\]"):
        lb.explorers.rotation(plane=(3, 3))
    with pytest.raises(ValueError, match="frame must lie in 1 … 5: got 6"):
        playback().frame = 6
    gd, ggd = runs(GRID_MAZE)
    with pytest.raises(ValueError, match=r"ggd must have shape \(steps, n, d\) = \(5, 161, 4\), got \(5, 161, 3\)"):
        lb.explorers.film(GRID_MAZE, range(5), gd, ggd[..., :3])
    seen = []
    w.observe(lambda change: seen.append(change["new"]), "coefficients")
    w.coefficients = [3, 2, 1]
    assert seen == [[3, 2, 1]]


@pytest.fixture(scope="module")
def page(browser):
    page = browser.new_page()
    yield page
    page.close()


def in_browser(page, module, expression, **arguments):
    """Evaluate a JavaScript expression with the functions of a module and the arguments in scope."""
    return page.evaluate(
        """async ([source, expression, args]) => {
            const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
            const m = await import(url);
            return new Function("m", ...Object.keys(args), `return ${expression}`)(m, ...Object.values(args));
        }""",
        [joined(module), expression, arguments],
    )


def test_objective_agrees_with_python(page):
    rng = np.random.default_rng(0)
    for layout in (GRID_ROOM, GRID_MAZE):
        L = lb.spectrum.laplacian(layout)
        U = rng.standard_normal((layout.n, 4))
        c = rng.uniform(0, 5, 4)
        found = in_browser(page, "rotation", "m.generalized(m.readMap(text), U, c)",
                           text=layout.text, U=U.T.tolist(), c=c.tolist())  # fmt: skip
        assert found == pytest.approx(lb.objective.generalized(U, L, c), rel=1e-9)


def test_turns_and_their_price_agree_with_python(page):
    truth = lb.spectrum.eigenvectors(GRID_ROOM, 5)
    gap = in_browser(page, "rotation", "m.planeGap(37, [4, 2], values)", values=truth.values[[1, 3]].tolist())
    assert gap == pytest.approx(lb.objective.plane_gap(np.deg2rad(37), (4, 2), truth.values[[1, 3]]), rel=1e-9)
    turned = in_browser(page, "rotation", "m.turn(Float64Array.from(u), Float64Array.from(v), 37).map((x) => [...x])",
                        u=truth.vectors[:, 1].tolist(), v=truth.vectors[:, 3].tolist())  # fmt: skip
    L = lb.spectrum.laplacian(GRID_ROOM)
    value = lb.objective.generalized(np.array(turned).T, L, [4, 2])
    assert value - 4 * truth.values[1] - 2 * truth.values[3] == pytest.approx(gap, rel=1e-6)


def test_polar_and_descent_agree_with_python(page):
    rng = np.random.default_rng(1)
    start = lb.descent.polar(rng.standard_normal((GRID_MAZE.n, 5)))
    rough = start + 0.02 * rng.standard_normal(start.shape)
    found = in_browser(
        page, "coefficients", "m.polar(U.map((u) => Float64Array.from(u))).map((u) => [...u])", U=rough.T.tolist()
    )
    assert np.abs(np.array(found).T - lb.descent.polar(rough)).max() < 1e-9
    c = [9.0, 5.0, 4.0, 2.0, 1.0]
    script = """(() => {
        const run = m.descent(m.readMap(text), c, start.map((u) => Float64Array.from(u)));
        for (let k = 0; k < 200; k++) run.step();
        return run.U.map((u) => [...u]);
    })()"""
    found = in_browser(page, "coefficients", script, text=GRID_MAZE.text, c=c, start=start.T.tolist())
    L = lb.spectrum.laplacian(GRID_MAZE)
    expected = lb.descent.minimise(L, 5, c, steps=200, start=start, every=1000).U
    assert np.abs(np.array(found).T - expected).max() < 1e-6


def test_random_frames_depend_on_the_seed_alone(page):
    frames = [
        in_browser(page, "coefficients", f"m.randomFrame(50, 4, {seed}).map((u) => [...u])") for seed in (1, 1, 2)
    ]
    U = np.array(frames[0])
    assert U @ U.T == pytest.approx(np.eye(4), abs=1e-9)
    assert frames[0] == frames[1] != frames[2]


def test_presets_agree_with_python(page):
    for kind in ("paper", "equal", "convex", "concave"):
        found = in_browser(page, "coefficients", f"m.PRESETS.{kind}(7)")
        assert found == pytest.approx(lb.objective.coefficients(7, kind))


def test_films_come_out_as_they_went_in(page):
    gd, ggd = runs(GRID_MAZE)
    film = lb.explorers.film(GRID_MAZE, range(5), gd, ggd)
    truth = lb.spectrum.eigenvectors(GRID_MAZE, 4).vectors
    for name, run in (("gd", gd), ("ggd", ggd)):
        frames = in_browser(page, "playback", "m.unreel(bytes, 161, 4).map((f) => f.map((u) => [...u]))",
                            bytes=film["films"][name])  # fmt: skip
        for vectors, original in zip(np.array(frames).transpose(0, 2, 1), run, strict=True):
            assert lb.sim_gt(vectors, original) > 0.999
            assert ((vectors * truth).sum(axis=0) >= 0).all()
            score = in_browser(page, "playback", "m.simGT(u, t)", u=vectors.T.tolist(), t=truth.T.tolist())
            assert score == pytest.approx(lb.sim_gt(vectors, truth), rel=1e-9)


def opened(browser, url, **options):
    page = browser.new_page(viewport={"width": 1280, "height": 900}, **options)
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.goto(url)
    page.wait_for_selector(".lb-explorer")
    return page


def picture(locator):
    return locator.evaluate(
        "e => [...e.querySelectorAll('canvas')].map(c => c.toDataURL()).join() + e.querySelector('svg')?.innerHTML"
    )


SLIDERS = (
    "01-states-as-a-graph",
    "02-graph-drawing",
    "03-the-theorem",
    "05-neural-approximation",
    "07-options",
    "08-reward-shaping",
    "09-assumptions-and-coefficients",
)


# From disk, where browsers allow less; one over http shows that it makes no difference.
@pytest.mark.parametrize(("chapter", "scheme"), [*((name, "file") for name in SLIDERS), (SLIDERS[0], "http")])
def test_every_slider_changes_its_figure_by_keyboard(browser, origins, chapter, scheme):
    page = opened(browser, f"{origins[scheme]}book/{chapter}.html")
    explorer = page.locator(".lb-explorer").first
    controls = explorer.locator("input[type=range]").all()
    assert controls
    for control in reversed(controls):  # the first one of the playground, d, takes others away
        before, value = picture(explorer), control.input_value()
        label = page.locator(f"label[for='{control.get_attribute('id')}']").inner_text()
        control.focus()
        for _ in range(3):
            page.keyboard.press("ArrowLeft" if float(value) > float(control.get_attribute("min")) + 1 else "ArrowRight")
        assert control.input_value() != value, label
        assert picture(explorer) != before, label
    assert page.problems == []
    page.close()


def run_preset(page, name, until, timeout=60):
    page.get_by_label("Preset").select_option(name)
    page.get_by_role("button", name="Run").click()
    box = page.locator("[data-simgt]").first
    end = time.time() + timeout
    while time.time() < end:
        found = box.evaluate("e => ({simgt: +e.dataset.simgt, order: e.dataset.order, steps: +e.dataset.steps})")
        if until(found):
            break
        page.wait_for_timeout(200)
    page.get_by_role("button", name="Pause").click()
    return found


def test_the_three_lessons_of_the_playground(browser, origins):
    page = opened(browser, f"{origins['http']}book/03-the-theorem.html")
    assert run_preset(page, "paper", lambda f: f["simgt"] > 0.95)["simgt"] > 0.95
    equal = run_preset(page, "equal", lambda f: f["steps"] > 2500)
    assert equal["simgt"] < 0.5
    backwards = ",".join(map(str, range(10, 0, -1)))
    assert run_preset(page, "reversed", lambda f: f["order"] == backwards)["order"] == backwards
    assert page.problems == []
    page.close()


def test_two_explorers_on_one_page_do_not_disturb_each_other(browser, tmp_path):
    same = lb.explorers.eigenvectors().html()
    path = tmp_path / "two.html"
    path.write_text(f"<!doctype html><meta charset=utf-8><h1>Two</h1>{same}{same}{lb.explorers.rotation().html()}")
    page = opened(browser, path.as_uri())
    page.wait_for_function("document.querySelectorAll('.lb-explorer').length === 3")
    first, second, third = (page.locator(".lb-explorer").nth(k) for k in range(3))
    before = picture(second), picture(third)
    first.locator("input[type=range]").first.focus()
    page.keyboard.press("ArrowRight")
    assert "λ3" in first.inner_text()
    assert (picture(second), picture(third)) == before
    assert page.problems == []
    page.close()


def test_reduced_motion_still_runs(browser, origins):
    page = opened(browser, f"{origins['file']}book/03-the-theorem.html", reduced_motion="reduce")
    assert run_preset(page, "paper", lambda f: f["simgt"] > 0.95)["simgt"] > 0.95
    page.close()


@pytest.fixture(scope="module")
def jupyter(tmp_path_factory):
    """A JupyterLab with one notebook that shows the playground; its address and folder."""
    folder = tmp_path_factory.mktemp("lab")
    code = ["import json, lapbook as lb\nw = lb.explorers.coefficients(d=3)\n"
            "w.observe(lambda _: json.dump(w.coefficients, open('seen.json', 'w')), 'coefficients')\nw",
            "w.coefficients = [7, 5, 3]"]  # fmt: skip
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in code])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, folder / "live.ipynb")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "JUPYTER_CONFIG_DIR": str(folder / "config"), "JUPYTER_DATA_DIR": str(folder / "data")}
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}", "--ip=127.0.0.1",
               "--IdentityProvider.token=", "--ServerApp.password=", f"--notebook-dir={folder}",
               "--LabApp.news_url=", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]  # fmt: skip
    log = (folder / "log.txt").open("w")
    server = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=folder)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(240):
            try:
                urllib.request.urlopen(f"{address}/api/status", timeout=1).close()
                break
            except OSError:
                assert server.poll() is None, (folder / "log.txt").read_text()
                time.sleep(0.5)
        yield address, folder
    finally:
        server.terminate()
        server.wait(timeout=30)
        log.close()


def test_live_in_jupyterlab_in_both_directions(browser, jupyter):
    address, folder = jupyter
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    page.goto(f"{address}/lab/tree/live.ipynb?reset")
    cells = page.locator(".jp-Notebook .jp-CodeCell")
    cells.first.wait_for(timeout=90_000)
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for(timeout=90_000)
    cells.nth(0).locator(".cm-content").click()
    page.keyboard.press("Shift+Enter")
    explorer = page.locator(".lb-explorer")
    explorer.wait_for(timeout=90_000)

    third = explorer.get_by_label("c3", exact=True)  # the browser moves a slider: Python sees it
    third.focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    seen = folder / "seen.json"
    for _ in range(100):
        if seen.exists() and (text := seen.read_text()) and json.loads(text)[2] == pytest.approx(1.5):
            break
        page.wait_for_timeout(100)
    assert json.loads(seen.read_text()) == pytest.approx([3, 2, 1.5])

    cells.nth(1).locator(".cm-content").click()  # Python sets the values: the sliders move
    page.keyboard.press("Shift+Enter")
    page.wait_for_function("document.querySelectorAll('.lb-weights input')[0].value === '7'", timeout=30_000)
    assert explorer.locator(".lb-weights input").evaluate_all("es => es.map(e => +e.value)") == [7, 5, 3]
    page.close()
