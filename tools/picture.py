"""Draws the picture on the title page and in the README, and the one that links to the book show elsewhere.

`python tools/picture.py` writes book/static/hero.png and book/static/preview.png.
"""

from pathlib import Path

import matplotlib.pyplot as plt
from scipy.stats import ortho_group

import lapbook as lb

STATIC = Path(__file__).parents[1] / "book/static"


def main() -> None:
    lb.plots.use_style()
    layout, d = lb.layouts.GRID_ROOM, 10
    truth = lb.spectrum.eigenvectors(layout, d).vectors
    # Any rotation of the ten eigenvectors minimises the unweighted objective just as well.
    rotated = truth @ ortho_group.rvs(d, random_state=0)
    figure, axes = plt.subplots(2, 6, figsize=(7.4, 2.9))
    for row, vectors, label in (
        (axes[0], truth, "the eigenvectors"),
        (axes[1], rotated, "mixtures of ten"),
    ):
        for k, ax in enumerate(row):
            lb.plots.heatmap(layout, vectors[:, k + 1], ax)
            if vectors is truth:
                ax.set_title(rf"$\mathbf{{e}}_{k + 2}$")
        row[0].text(-0.12, 0.5, label, rotation=90, ha="center", va="center", transform=row[0].transAxes)
    figure.savefig(STATIC / "hero.png", dpi=160)
    # 1200 by 630 is the shape that links are shown in; larger type, since it is shown small.
    figure.set_size_inches(8, 4.2)
    figure.suptitle("The Laplacian Representation, Executable", fontsize=19)
    figure.savefig(STATIC / "preview.png", dpi=150, bbox_inches=figure.bbox_inches)


if __name__ == "__main__":
    main()
