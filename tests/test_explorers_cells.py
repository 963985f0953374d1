"""The explorers in which a cell is picked, options and shaping: their data, their mathematics, their use."""

from __future__ import annotations

import re

import matplotlib.pyplot as plt
import numpy as np
import pytest
from test_explorers import in_browser, opened, options, shaping, worlds

import lapbook as lb
from lapbook.explorers.base import joined, pack_all, unpack
from lapbook.layouts import GRID_MAZE, GRID_ROOM, Layout
from lapbook.options import climb, mean_length, path, run

SMALL = Layout("...#\n.#..\n....", "Small")
MAPS = (GRID_ROOM, GRID_MAZE)


@pytest.fixture(scope="module")
def page(browser):
    page = browser.new_page()
    yield page
    page.close()


def test_modules_hold_the_shared_files_they_import_and_no_other():
    for name in ("eigenvectors", "rotation", "coefficients", "playback", "options", "shaping"):
        text = joined(name)
        assert not re.search(r"^import ", text, flags=re.MULTILINE)
        assert text.count("function standIn(") == 1
        assert text.count("function readWorlds(") == (name in ("options", "shaping"))


def test_packed_columns_keep_size_sign_and_the_way_up():
    for layout, representations in worlds():
        entry = pack_all(layout, representations)
        truth = lb.spectrum.eigenvectors(layout, 10).vectors
        columns = unpack(entry)
        assert entry["names"] == ["truth", "ours", "baseline"]
        for k, given in enumerate(representations.values()):
            integers, scales = columns[:, 10 * k : 10 * k + 10], np.array(entry["scales"][k])
            turned = given * np.where((given * truth).sum(axis=0) < 0, -1, 1)
            assert np.abs(integers * scales - turned).max() < 2e-4 * np.abs(given).max()
            for dimension in range(2, 11):
                for sign in (1, -1):
                    exact, packed = climb(layout, turned, dimension, sign), climb(layout, integers, dimension, sign)
                    assert (exact.terminal == packed.terminal).all()
                    to = [layout.moves[np.arange(layout.n), option.policy] for option in (exact, packed)]
                    reached = turned[to, dimension - 1]  # two ways up may be as good as equal
                    assert np.abs(reached[0] - reached[1])[~exact.terminal].max() < 1e-9 * np.abs(given).max()


def test_equal_values_stay_equal_when_packed():
    noise = np.array([0, 1e-13, -1e-13, 0, 2e-13, 0, 0, 0, 0, 0])
    given = np.stack([np.ones(10), np.array([3, 3, 2, 1, 1, 1, 0, -1, -1, -2]) + noise], axis=1)
    column = unpack(pack_all(SMALL, {"ours": given}))[:, 1]
    assert np.abs(column).tolist() == [32000, 32000, 21333, 10667, 10667, 10667, 0, 10667, 10667, 21333]


def test_worlds_and_values_are_checked():
    room, maze = worlds()
    bad = {**room[1], "ours": room[1]["ours"][:, :9]}
    cases = {
        r"ours must have shape \(n, d\) = \(271, 10\) on GridRoom, got \(271, 9\)": [(GRID_ROOM, bad)],
        r"truth must have shape \(n, d\) = \(161, 10\) on GridMaze, got \(271, 10\)": [room, (GRID_MAZE, room[1])],
        r"truth must have shape \(n, d\) = \(10, 2\) on Small, got \(10,\)": [(SMALL, {"truth": np.ones(10)})],
        "truth must be finite on Small: got nan or inf": [(SMALL, {"truth": np.full((10, 2), np.nan)})],
        "worlds must have maps of different names: got GridRoom twice": [room, room],
        "the representations truth, ours, baseline on every map: got truth on GridMaze": [
            room,
            (GRID_MAZE, {"truth": maze[1]["truth"]}),
        ],
        r"worlds must hold at least one map with at least one representation: got \[\]": [],
        "layout must be a Layout, such as Layout": [(GRID_ROOM.text, room[1])],
    }
    for message, wrong in cases.items():
        for make in (lb.explorers.options, lb.explorers.shaping):
            with pytest.raises(ValueError, match=message):
                make(wrong)
    with pytest.raises(ValueError, match="dimension must lie in 2 … 10: got 1"):
        lb.explorers.options([room], dimension=1)
    with pytest.raises(ValueError, match="sign must be one of 1, -1: got 0"):
        lb.explorers.options([room], sign=0)
    with pytest.raises(ValueError, match="goal must lie in 0 … 270: got 271"):
        lb.explorers.shaping([room, maze], goal=271)
    with pytest.raises(ValueError, match="goal must lie in 0 … 160: got 161"):
        lb.explorers.shaping([maze, room], goal=161)
    with pytest.raises(ValueError, match="representation must be one of truth, ours, baseline: got 'theirs'"):
        options().representation = "theirs"
    with pytest.raises(ValueError, match="kind must be one of one dimension, all dimensions, position: got 'none'"):
        shaping().kind = "none"


def test_a_state_belongs_to_its_map():
    w = options()
    steps, _ = run(GRID_ROOM, climb(GRID_ROOM, worlds()[0][1]["truth"], 2))
    assert steps[w.start] == steps.max()
    w.start = np.int64(270)
    w.map = "GridMaze"
    assert w.start == 160
    w.set_state({"start": 200, "map": "GridRoom"})  # as the browser sends it, in any order
    assert (w.map, w.start) == ("GridRoom", 200)
    assert repr(shaping()) == (
        "Shaping(dimension=2, goal=135, kind='one dimension', map='GridRoom', representation='truth')"
    )


def test_options_agree_with_python(page):
    w = options()
    found = in_browser(page, "options", """Object.fromEntries(Object.entries(m.readWorlds(data)).map(([name, world]) =>
        [name, world.names.flatMap((key) => world.vectors[key].slice(1).flatMap((u) => [1, -1].map((sign) => {
            const next = m.climb(world.map, u.map((x) => sign * x));
            const ways = next.map((_, s) => m.walk(next, s));
            const some = ways.filter((_, s) => s % 8 === 0);
            return {ends: ways.map((way) => way.at(-1)), mean: m.meanLength(next), ways: some};
        })))]))""", data=w.data)  # fmt: skip
    for layout in MAPS:
        columns = unpack(w.data[layout.name])
        made = [climb(layout, columns[:, 10 * k : 10 * k + 10], dimension, sign)
                for k in range(3) for dimension in range(2, 11) for sign in (1, -1)]  # fmt: skip
        for option, there in zip(made, found[layout.name], strict=True):
            steps, ends = run(layout, option)
            assert there["ends"] == ends.tolist()
            assert there["mean"] == pytest.approx(mean_length(layout, option), rel=1e-12)
            assert [len(way) - 1 for way in there["ways"]] == steps[::8].tolist()
            assert there["ways"][:5] == [path(layout, option, s) for s in range(0, 40, 8)]


def test_ties_go_to_the_first_action_and_end_on_plateaus(page):
    rng = np.random.default_rng(0)
    for layout in (*MAPS, SMALL):
        for levels in (2, 3, 5):
            f = rng.integers(levels, size=(layout.n, 2))
            option = climb(layout, f, 2)
            follow = np.where(option.terminal, np.arange(layout.n), layout.moves[np.arange(layout.n), option.policy])
            found = in_browser(page, "options", "m.climb(m.readMap(text), f)", text=layout.text, f=f[:, 1].tolist())
            assert found == follow.tolist()


def climbed(layout, reward, goal):
    """Where greedy climbing leads from each state, one step at a time: states that reach the goal, false summits."""
    reached, summits = [], []
    for start in set(range(layout.n)) - {goal}:
        at = start
        while reward[layout.moves[at]].max() > reward[at]:
            at = layout.moves[at][reward[layout.moves[at]].argmax()]
        reached += [start] if at == goal else []
        summits += [start] if at == start else []
    return reached, summits


def plain_reward(layout, f, kind, dimension, goal):
    if kind == "one dimension":
        return -((f[:, dimension - 1] - f[goal, dimension - 1]) ** 2)
    f = f if kind == "all dimensions" else layout.cells[:, ::-1]
    return -np.sqrt(sum((u - u[goal]) ** 2 for u in f.T))  # added up in turn, as the browser does


@pytest.mark.parametrize("layout", MAPS, ids=lambda layout: layout.name)
def test_shaped_rewards_agree_with_plain_numpy(page, layout):
    w = shaping()
    entry = w.data[layout.name]
    goals = [0, layout.n // 2, layout.n - 1]
    cases = [["one dimension", name, dimension, goal]
             for name in entry["names"] for dimension in (2, 3, 6, 10) for goal in goals]  # fmt: skip
    cases += [["all dimensions", name, 2, goal] for name in entry["names"] for goal in goals]
    cases += [["position", "truth", 2, goal] for goal in goals]
    found = in_browser(page, "shaping", """cases.map(([kind, representation, i, goal]) => {
        const world = m.readWorlds(data)[name];
        const reward = m.REWARDS[kind](world, representation, i, goal);
        const {reached, summits} = m.climbing(world.map, reward, goal);
        return {reward: [...reward], reached, summits};
    })""", data=w.data, name=layout.name, cases=cases)  # fmt: skip
    for (kind, name, dimension, goal), there in zip(cases, found, strict=True):
        k = entry["names"].index(name)
        f = unpack(entry)[:, 10 * k : 10 * k + 10].astype(float)
        reward = plain_reward(layout, f * entry["scales"][k] if kind == "all dimensions" else f, kind, dimension, goal)
        assert there["reward"] == pytest.approx(reward, rel=1e-12)
        assert (there["reached"], there["summits"]) == climbed(layout, reward, goal)


def test_rewards_are_dark_where_they_are_large_as_in_matplotlib(page):
    values = np.linspace(-1, 0, 256)
    found = in_browser(page, "shaping", "values.map(m.sequential)", values=values.tolist())
    expected = 255 * plt.get_cmap(lb.plots.SEQUENTIAL)(np.arange(256))[:, :3]
    assert np.abs(np.array(found) - expected).max() < 1.5


def test_arrow_keys_cross_walls_and_reach_every_cell(page):
    for layout in (*MAPS, SMALL):
        found = in_browser(page, "options", """[[0, -1], [0, 1], [-1, 0], [1, 0]].map((key) => {
            const map = m.readMap(text);
            return map.cells.map((_, s) => m.beyond(map, s, key));
        })""", text=layout.text)  # fmt: skip
        for (down, right), targets in zip(lb.layouts.STEPS, found, strict=True):
            for (row, column), target in zip(layout.cells, targets, strict=True):
                line = layout.index[row] if right else layout.index[:, column]
                ahead = (
                    line[(column if right else row) :][1:]
                    if down + right > 0
                    else line[: column if right else row][::-1]
                )
                free = ahead[ahead >= 0]
                assert target == (free[0] if len(free) else layout.index[row, column])
        seen, edge = {0}, [0]
        while edge:
            edge = sorted({targets[s] for s in edge for targets in found} - seen)
            seen.update(edge)
        assert len(seen) == layout.n


THEME = """<!doctype html><html lang="en" data-theme="{theme}"><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><style>
html {{ --pst-color-text-base: #222832; --pst-color-border: #d1d5da; --pst-color-background: #fff; }}
[data-theme="dark"] {{ --pst-color-text-base: #ced6dd; --pst-color-border: #48566b; --pst-color-background: #14181e; }}
body {{ margin: 16px; max-width: 43rem; }}</style>{html}"""


@pytest.fixture
def shown(browser, tmp_path):
    """Show an explorer in a page of its own."""
    pages = []

    def show(explorer, theme="light", **settings):
        file = tmp_path / "page.html"
        file.write_text(THEME.format(theme=theme, html=explorer.html()), encoding="utf-8")
        pages.append(opened(browser, file.as_uri(), **settings))
        return pages[-1]

    yield show
    for page in pages:
        assert page.problems == []
        page.close()


def drawing(page):
    return page.locator(".lb-board").evaluate(
        "e => e.querySelector('canvas').toDataURL() + e.querySelector('svg').innerHTML"
    )


def figures(page):
    return page.locator(".lb-figures").inner_text()


def click(page, layout, row, column):
    box = page.locator(".lb-board").bounding_box()
    rows, columns = layout.shape
    page.mouse.click(box["x"] + box["width"] * (column + 0.5) / columns, box["y"] + box["height"] * (row + 0.5) / rows)


def told(layout, w, start):
    """What the text of `options` has to say about a walk on the truth."""
    option = climb(layout, unpack(w.data[layout.name])[:, :10], w.dimension, w.sign)
    steps, _ = run(layout, option)
    row, column = layout.cells[start]
    own = "1 step" if steps[start] == 1 else f"{steps[start]:.0f} steps"
    return (
        f"From row {row}, column {column} the option takes {own}. From the {np.sum(steps > 0)} states "
        f"where it can begin it takes {mean_length(layout, option):.1f} in the mean. "
        f"It ends in {option.terminal.sum()} cells, the local {'maxima' if w.sign > 0 else 'minima'}."
    )


def test_an_option_is_followed_by_mouse_and_keyboard(shown):
    w = options()
    w.dimension, w.start = 6, 0
    page = shown(w)
    assert figures(page) == told(GRID_ROOM, w, 0)
    click(page, GRID_ROOM, 16, 17)
    assert figures(page) == told(GRID_ROOM, w, GRID_ROOM.index[16, 17])
    page.locator(".lb-board").focus()
    page.keyboard.press("ArrowUp")  # across a wall
    for _ in range(3):  # the last one would leave the map
        page.keyboard.press("ArrowRight")
    start = GRID_ROOM.index[14, 19]
    assert figures(page) == told(GRID_ROOM, w, start)
    before = drawing(page)
    page.get_by_label("Direction", exact=True).select_option("to smaller values")
    w.sign = -1
    assert figures(page) == told(GRID_ROOM, w, start)
    assert drawing(page) != before
    page.get_by_label("Map", exact=True).select_option("GridMaze")
    start = GRID_MAZE.index[13, 17]  # the same place in the other map, as near as can be
    assert figures(page) == told(GRID_MAZE, w, start)
    page.get_by_label("Dimension i", exact=True).focus()
    page.keyboard.press("ArrowLeft")
    w.dimension = 5
    assert figures(page) == told(GRID_MAZE, w, start)
    page.get_by_label("Representation", exact=True).select_option("baseline")
    assert figures(page) != told(GRID_MAZE, w, start)
    ends = page.locator(".lb-board circle:not(.lb-gold)").count()
    assert f"It ends in {ends} cells" in figures(page)


def test_an_option_cannot_begin_where_it_ends(shown):
    option = climb(GRID_ROOM, unpack(options().data["GridRoom"])[:, :10], 6)
    w = lb.explorers.options(worlds(), dimension=6, start=np.flatnonzero(option.terminal)[0])
    row, column = GRID_ROOM.cells[w.start]
    assert figures(shown(w)).startswith(f"The option cannot begin in row {row}, column {column}, where it ends. From")


def test_a_goal_is_moved_and_rewards_are_chosen(shown):
    every = "Climbing reaches the goal in row 10, column 12 from 270 of the 270 other states. There is no false summit."
    assert figures(shown(shaping())) == every
    page = shown(lb.explorers.shaping(worlds(), dimension=3, goal=0))
    pictures = [drawing(page)]
    click(page, GRID_ROOM, 0, 0)  # a wall, whose nearest cell is the goal that is set
    assert drawing(page) == pictures[0]
    for kind in ("all dimensions", "position"):
        page.get_by_label("Reward from", exact=True).select_option(kind)
        pictures.append(drawing(page))
        assert page.get_by_label("Dimension i", exact=True).is_disabled()
        assert page.get_by_label("Representation", exact=True).is_disabled() == (kind == "position")
    assert len(set(pictures)) == 3
    page.locator(".lb-board").focus()
    page.keyboard.press("ArrowDown")
    goal = GRID_ROOM.index[2, 1]
    reached, summits = climbed(GRID_ROOM, plain_reward(GRID_ROOM, None, "position", 2, goal), goal)
    assert figures(page) == (
        f"Climbing reaches the goal in row 2, column 1 from {len(reached)} of the 270 other states. "
        f"There are {len(summits)} false summits."
    )
    assert page.locator(".lb-board .lb-mark:not(.lb-gold)").count() == len(summits)
    page.wait_for_function("document.querySelector('.lb-status').textContent.includes('position')")
    label = page.locator(".lb-board").get_attribute("aria-label")
    assert label.startswith("Reward from the position on GridRoom, arrow keys move the goal. Climbing reaches")


@pytest.mark.parametrize("make", [options, shaping])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_on_a_phone_nothing_hangs_over_and_all_is_labelled(shown, make, theme):
    page = shown(make(), theme, is_mobile=True, has_touch=True)
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    board = page.locator(".lb-board")
    assert board.bounding_box()["width"] > 300
    before = drawing(page)
    board.tap(position={"x": 40, "y": 40})
    assert drawing(page) != before
    controls = page.locator(".lb-explorer :is(input, select)").all()
    assert len(controls) == 4
    for control in controls:
        assert page.locator(f"label[for='{control.get_attribute('id')}']").inner_text()
    assert page.locator("[data-lm-suppress-shortcuts=true]").count() == 5
    colour = page.locator(".lb-explorer").evaluate("e => getComputedStyle(e).backgroundColor")
    assert colour == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 30)"}[theme]


def test_the_walk_is_drawn_at_once_where_motion_is_unwelcome(shown):
    names = [
        shown(options(), reduced_motion=motion)
        .locator(".lb-board .lb-walk")
        .first.evaluate("e => getComputedStyle(e).animationName")
        for motion in ("no-preference", "reduce")
    ]
    assert names == ["lb-draw", "none"]
