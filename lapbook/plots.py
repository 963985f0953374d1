"""Figures: one look for the whole book. Eigenvectors are drawn on their map, red for positive, blue for negative."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from lapbook.floors import floor_size, wall_boxes
from lapbook.layouts import STEPS, Layout
from lapbook.options import Option

DIVERGING = "RdBu_r"  # colour-blind safe, white at 0
SEQUENTIAL = "BuPu"  # light at 0, so that walls stand out
WIDTH = 7.4  # inches: as wide as the text, so that letters in figures are as large as those around them
WALL, FLOOR = "#3b4252", "#eceff4"

# Every method keeps its colour through the whole book.
COLOURS = {
    "truth": "#6b7280",
    "gd": "#d97706",
    "ggd": "#2563eb",
    "gd+ritz": "#15803d",
    "allo": "#7c3aed",
    "omm": "#8b5a2b",
}


def use_style() -> None:
    """Set matplotlib up for the book: sizes that read like the text around them, light axes, 110 dpi.

    >>> with plt.rc_context():
    ...     use_style()
    ...     plt.rcParams["axes.prop_cycle"].by_key()["color"][0] == COLOURS["ggd"]
    True
    """
    plt.rcParams.update(
        {
            "figure.dpi": 110,
            "savefig.dpi": 110,
            "savefig.bbox": "tight",
            "figure.facecolor": "white",
            "figure.constrained_layout.use": True,
            "font.size": 10.5,
            "axes.titlesize": 10.5,
            "axes.titlepad": 5,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.color": "#e5e7eb",
            "axes.axisbelow": True,
            "axes.prop_cycle": plt.cycler(color=list(COLOURS.values())[2:] + list(COLOURS.values())[:2]),
            "legend.frameon": False,
            "lines.linewidth": 1.8,
            "image.interpolation": "nearest",
        }
    )


def draw_map(layout: Layout, ax: Axes | None = None) -> Axes:
    """Walls dark, floor light, no ticks.

    >>> ax = draw_map(Layout("#.."), Figure().subplots())
    >>> ax.images[0].get_array().astype(int).tolist()
    [[0, 1, 1]]
    """
    ax = ax or plt.gca()
    ax.imshow(layout.free, cmap=ListedColormap([WALL, FLOOR]), vmin=0, vmax=1)
    ax.set_axis_off()
    return ax


def heatmap(
    layout: Layout,
    values: np.ndarray,
    ax: Axes | None = None,
    limit: float | None = None,
    low: float | None = None,
    cmap: str = DIVERGING,
) -> Axes:
    """One value per state, shape (n,), as colours on the map.

    Colours reach from `low` to `limit`: from minus to plus the largest value by default, which puts 0 in the middle.

    >>> ax = heatmap(Layout("..."), np.array([-2, 0, 1]), Figure().subplots())
    >>> ax.images[1].get_clim()
    (-2.0, 2.0)
    """
    ax = draw_map(layout, ax)
    limit = float(np.abs(values).max()) if limit is None else limit
    low = -limit if low is None else low
    ax.imshow(np.ma.masked_invalid(layout.grid(values)), cmap=cmap, vmin=low, vmax=limit)
    return ax


def heatmaps(
    layout: Layout,
    vectors: np.ndarray,
    titles: Sequence[str] | None = None,
    columns: int = 5,
    width: float = WIDTH,
) -> Figure:
    """The columns of vectors, shape (n, d), as small multiples on one colour scale.

    >>> figure = heatmaps(Layout("..."), np.diag([1, -3, 2]))
    >>> {ax.images[1].get_clim() for ax in figure.axes[:3]}
    {(-3.0, 3.0)}
    >>> plt.close(figure)
    """
    d = vectors.shape[1]
    rows = -(-d // columns)
    height = width / columns * layout.shape[0] / layout.shape[1] + 0.25
    figure, axes = plt.subplots(rows, columns, figsize=(width, height * rows), squeeze=False)
    limit = float(np.abs(vectors).max())
    for i, ax in enumerate(axes.flat):
        if i >= d:
            ax.set_axis_off()
            continue
        heatmap(layout, vectors[:, i], ax, limit)
        ax.set_title(titles[i] if titles is not None else rf"$\mathbf{{e}}_{{{i + 1}}}$")
    return figure


def draw_option(layout: Layout, values: np.ndarray, option: Option, ax: Axes | None = None) -> Axes:
    """An option over the function it climbs, values of shape (n,): arrows for its actions, discs where it stops.

    >>> from lapbook.options import climb
    >>> corridor, f = Layout("..."), np.array([[1, 0], [1, 1], [1, 2]])
    >>> ax = draw_option(corridor, f[:, 1], climb(corridor, f, 2), Figure().subplots())
    >>> ax.lines[0].get_xydata().tolist()  # it climbs to the right
    [[2.0, 0.0]]
    """
    ax = heatmap(layout, values, ax)
    going = ~option.terminal
    rows, columns = layout.cells.T
    down, right = STEPS[option.policy[going]].T
    arrows = np.where(np.abs(values[going]) > 0.6 * np.abs(values).max(), "white", "#1f2937")
    ax.quiver(
        columns[going], rows[going], right, down, pivot="mid", color=arrows,
        scale=1.3, scale_units="xy", angles="xy", width=0.007, headwidth=4.5, headlength=5,
    )  # fmt: skip
    points = 4.6 * 21 / max(layout.shape)
    ax.plot(columns[~going], rows[~going], "o", color="#facc15", markeredgecolor="#1f2937", markersize=points)
    return ax


def draw_floor(layout: Layout, ax: Axes | None = None, ball: tuple[float, float] | None = None) -> Axes:
    """The continuous floor of a layout: walls as lines, a ball of diameter 1 where given.

    >>> ax = draw_floor(Layout("####\\n#..#\\n####"), Figure().subplots(), ball=(1, 1))
    >>> ax.patches[1].get_radius()
    0.5
    """
    ax = ax or plt.gca()
    width, height = floor_size(layout)
    ax.add_patch(Rectangle((0, 0), width, height, facecolor=FLOOR))
    for x0, y0, x1, y1 in wall_boxes(layout):
        ax.plot([x0, x1], [y0, y1], color=WALL, linewidth=2.5, solid_capstyle="projecting")
    if ball is not None:
        ax.add_patch(plt.Circle(ball, 0.5, color="#dc2626", zorder=3))
    ax.set(xlim=(-0.5, width + 0.5), ylim=(height + 0.5, -0.5), aspect="equal")
    ax.set_axis_off()
    return ax


def field(
    layout: Layout, points: np.ndarray, values: np.ndarray, ax: Axes | None = None, limit: float | None = None
) -> Axes:
    """A function on the floor as colours, from its values, shape (n,), at the points of a square lattice, shape (n, 2).

    Where the centre of the ball cannot be there is no value: a pale rim along the walls.

    >>> points = np.array([[1.5, 0.5], [2.5, 0.5]])
    >>> ax = field(Layout("####\\n#..#\\n####"), points, np.array([4, -1]), Figure().subplots())
    >>> ax.images[0].get_clim()
    (-4.0, 4.0)
    """
    ax = ax or plt.gca()
    h = float(np.diff(np.unique(points[:, 0])).min())
    place = np.rint(points / h - 0.5).astype(int)
    width, height = floor_size(layout)
    image = np.full(np.rint(np.array([height, width]) / h).astype(int), np.nan)
    image[place[:, 1], place[:, 0]] = values
    limit = float(np.abs(values).max()) if limit is None else limit
    ax.add_patch(Rectangle((0, 0), width, height, facecolor=FLOOR, zorder=-1))
    ax.imshow(np.ma.masked_invalid(image), extent=(0, width, height, 0), cmap=DIVERGING, vmin=-limit, vmax=limit)
    for x0, y0, x1, y1 in wall_boxes(layout):
        ax.plot([x0, x1], [y0, y1], color=WALL, linewidth=0.8, solid_capstyle="projecting")
    ax.set(xlim=(-0.3, width + 0.3), ylim=(height + 0.3, -0.3), aspect="equal")
    ax.set_axis_off()
    return ax


def draw_graph(layout: Layout, ax: Axes | None = None, numbers: bool = False) -> Axes:
    """The state graph over its map: a dot for each state, a line for each pair of states one step apart.

    >>> ax = draw_graph(Layout("..\\n.."), Figure().subplots())
    >>> len(ax.collections[0].get_offsets()), len(ax.lines)
    (4, 4)
    """
    ax = draw_map(layout, ax)
    rows, columns = layout.cells.T
    i, j = layout.adjacency.nonzero()
    once = i < j
    ax.plot([columns[i[once]], columns[j[once]]], [rows[i[once]], rows[j[once]]], color="#9ca3af", linewidth=1.5)
    ax.scatter(columns, rows, s=230 if numbers else 14, color="white", edgecolor="#4b5563", zorder=3)
    if numbers:
        for state, (row, column) in enumerate(layout.cells):
            ax.text(column, row, str(state), ha="center", va="center", fontsize=9, zorder=4)
    return ax
