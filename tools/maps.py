"""Repeats the search that chose the maps of the book and of its race: `python tools/maps.py` (a minute).

Among random candidates it keeps the one whose first twelve eigenvalues are best apart: the largest of the smallest
relative gaps (λ_{i+1} - λ_i)/λ_{i+1}. It fails if the winners are not the maps in the package.
"""

from itertools import pairwise

import numpy as np
import scipy.linalg

from lapbook import layouts
from lapbook.reproduction import race
from lapbook.spectrum import laplacian

# Rooms 1 … 16 of the spiral, as (row, column) of the 4×4 rooms.
SPIRAL = [(0, 0), (0, 1), (0, 2), (0, 3), (1, 3), (2, 3), (3, 3), (3, 2),
          (3, 1), (3, 0), (2, 0), (1, 0), (1, 1), (1, 2), (2, 2), (2, 1)]  # fmt: skip


def spiral(seed: int) -> layouts.Layout:
    """Sixteen rooms along the spiral with doors at random places."""
    rng = np.random.default_rng(seed)
    free = np.zeros((21, 21), dtype=bool)
    inside = np.flatnonzero(np.arange(21) % 5)
    free[np.ix_(inside, inside)] = True
    for (r, c), (r2, c2) in pairwise(SPIRAL):
        door = 1 + rng.integers(4)
        cell = (5 * r + door, 5 * max(c, c2)) if r == r2 else (5 * max(r, r2), 5 * c + door)
        free[cell] = True
    return layouts.Layout("\n".join("".join(".#"[not cell] for cell in row) for row in free))


def apart(layout: layouts.Layout) -> float:
    values = scipy.linalg.eigh(laplacian(layout).toarray(), subset_by_index=[0, 11], eigvals_only=True)
    return float((np.diff(values) / values[1:]).min())


def main() -> None:
    searches = (
        ("GRID_ROOM", spiral, 600, layouts.GRID_ROOM),
        ("GRID_MAZE", lambda seed: layouts.maze(9, 9, rng=seed), 400, layouts.GRID_MAZE),
        ("SmallMaze", lambda seed: layouts.maze(4, 4, rng=seed), 100, race.MAPS["SmallMaze"]),
        ("Rooms64", lambda seed: layouts.rooms(8, 8, 4, rng=seed), 60, race.MAPS["Rooms64"]),
    )
    for name, make, seeds, chosen in searches:
        scores = [apart(make(seed)) for seed in range(seeds)]
        best = int(np.argmax(scores))
        print(f"{name}: seed {best} of {seeds}, smallest gap {scores[best]:.3f}, median {np.median(scores):.3f}")
        if make(best).text != chosen.text:
            raise SystemExit(f"{name} in the package is not the winner of the search")


if __name__ == "__main__":
    main()
