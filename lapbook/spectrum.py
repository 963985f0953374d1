"""The ground truth: graph Laplacians L = D - A and their smallest eigenvectors (section 2.2 of the paper)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.sparse import csgraph
from scipy.sparse.linalg import LinearOperator, eigsh, splu
from scipy.spatial import cKDTree

from lapbook.layouts import Layout
from lapbook.walls import RADIUS, floor_size, is_free

DENSE_BELOW = 600  # states; above, sparse shift-invert is faster
RESIDUAL = 1e-12  # largest ‖Le - λe‖ / ‖L‖ that is let through; ‖L‖ ≤ 8 on a map


class CoincidentEigenvalues(UserWarning):
    """Some eigenvalues are equal within rounding, so their eigenvectors are not determined one by one."""


class DisconnectedGraph(UserWarning):
    """The graph falls into parts, so 0 is a multiple eigenvalue."""


@dataclass(frozen=True)
class Spectrum:
    """The d smallest eigenvalues, ascending, shape (d,), and unit eigenvectors as columns, shape (n, d).

    >>> eigenvectors([[0, 1, 0], [1, 0, 1], [0, 1, 0]], d=2).gaps.round(6).tolist()  # of a path: 0, 1, 3
    [1.0, 2.0]
    """

    values: np.ndarray
    vectors: np.ndarray
    next_value: float
    """λ_{d+1}, which tells whether the span of the first d is itself determined; inf where d = n."""
    norm: float
    """‖L‖, the largest row sum of |L|: what rounding errors are measured by."""

    @property
    def d(self) -> int:
        """Number of eigenvectors."""
        return len(self.values)

    @property
    def gaps(self) -> np.ndarray:
        """λ_{i+1} - λ_i for i = 1…d, shape (d,); the last one reaches λ_{d+1}."""
        return np.diff(np.append(self.values, self.next_value))

    @property
    def coincident(self) -> list[tuple[int, int]]:
        """Runs λ_i = … = λ_j of eigenvalues that are equal within rounding, as (i, j) counted from 1."""
        upper = np.append(self.values[1:], self.next_value)
        scale = np.where(np.isfinite(upper), np.abs(upper), 0)
        close = np.append(self.gaps <= 1e-7 * scale + 1e-13 * self.norm, False)
        runs, first = [], 0
        for i in range(1, len(close) + 1):
            if not close[i - 1]:
                if i - 1 > first:
                    runs.append((first + 1, i))
                first = i
        return runs


def laplacian(graph: Any) -> sp.csr_array:
    """L = D - A of a layout, an adjacency matrix (dense or sparse) or a networkx graph, as a sparse (n, n) array.

    >>> laplacian([[0, 1, 0], [1, 0, 1], [0, 1, 0]]).toarray().astype(int).tolist()
    [[1, -1, 0], [-1, 2, -1], [0, -1, 1]]
    """
    return csgraph.laplacian(adjacency(graph)).tocsr()


def adjacency(graph: Any) -> sp.csr_array:
    """A of a layout, a matrix or a networkx graph, checked: square, finite, symmetric, no negative weight.

    >>> adjacency([[0, 2], [2, 0]]).toarray().tolist()
    [[0.0, 2.0], [2.0, 0.0]]
    """
    if isinstance(graph, Layout):
        return graph.adjacency
    if hasattr(graph, "adjacency") and hasattr(graph, "nodes"):
        import networkx

        graph = networkx.to_scipy_sparse_array(graph, dtype=float)
    if isinstance(graph, str) or np.iscomplexobj(graph):
        raise ValueError("graph must be a Layout, a real matrix or a networkx graph")
    A = sp.csr_array(graph, dtype=float)
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(f"adjacency must be a square matrix, got shape {A.shape}")
    if not np.isfinite(A.data).all():
        raise ValueError("adjacency must be finite: it holds NaN or infinity")
    if (A.data < 0).any():
        i, j = _where_largest(-A)
        raise ValueError(f"adjacency must not be negative: A[{i}, {j}] = {A[i, j]:g}")
    skew = abs(A - A.T)
    if skew.max() > 1e-12 * A.max():
        i, j = _where_largest(skew)
        raise ValueError(
            f"adjacency must be symmetric: A[{i}, {j}] = {A[i, j]:g} but A[{j}, {i}] = {A[j, i]:g}; "
            "the Laplacian representation is defined for transitions that can be undone"
        )
    return A


def _where_largest(A: sp.csr_array) -> tuple[int, int]:
    entries = A.tocoo()
    largest = np.argmax(entries.data)
    return int(entries.row[largest]), int(entries.col[largest])


def eigenvectors(graph: Any, d: int) -> Spectrum:
    """The d smallest eigenvalues and eigenvectors of L for a layout, an adjacency matrix or a networkx graph.

    Small graphs are solved densely, large ones by shift-invert Lanczos. Signs follow `fix_signs`.

    >>> eigenvectors([[0, 1], [1, 0]], d=2).values.round(6).tolist()
    [0.0, 2.0]
    """
    L = laplacian(graph)
    spectrum = smallest_eigenpairs(L, d)
    _warn(L, spectrum)
    return spectrum


def _warn(L: sp.csr_array, spectrum: Spectrum) -> None:
    """Say in plain words what leaves eigenvectors undetermined."""
    parts, label = csgraph.connected_components(L, directed=False)
    if parts > 1:
        sizes = sorted(np.bincount(label).tolist(), reverse=True)
        shown = ", ".join(map(str, sizes[:5])) + (", …" if parts > 5 else "")
        warnings.warn(
            f"the graph is disconnected: {parts} components of {shown} states, so λ = 0 occurs {parts} times",
            DisconnectedGraph,
            stacklevel=3,
        )
    if spectrum.coincident:
        runs = [f"λ_{i} {'=' if j == i + 1 else '= … ='} λ_{j}" for i, j in spectrum.coincident]
        shown = ", ".join(runs[:4]) + (f" and {len(runs) - 4} more" if len(runs) > 4 else "")
        warnings.warn(
            f"{shown} within rounding: these eigenvectors are determined only up to a rotation among themselves",
            CoincidentEigenvalues,
            stacklevel=3,
        )


def smallest_eigenpairs(L: sp.csr_array, d: int) -> Spectrum:
    """The d smallest eigenpairs of a symmetric positive semidefinite L, by the method that fits its size.

    >>> round(smallest_eigenpairs(laplacian(1 - np.eye(5)), d=1).next_value, 6)  # five states, all joined
    5.0
    """
    n = L.shape[0]
    if not (isinstance(d, int | np.integer) and 1 <= d <= n):
        raise ValueError(f"d must be a whole number in 1 … {n}, the number of states: got {d!r}")
    wanted = min(d + 1, n)
    if n < DENSE_BELOW or wanted > n // 4:
        values, vectors = scipy.linalg.eigh(L.toarray(), subset_by_index=[0, wanted - 1])
    else:
        values, vectors = _shift_invert(L, wanted)
    norm = float(abs(L).sum(axis=1).max())
    residual = np.linalg.norm(L @ vectors - vectors * values, axis=0).max()
    if residual > RESIDUAL * norm:
        raise ArithmeticError(f"eigenvectors did not converge: ‖Le - λe‖ = {residual:.1e} > {RESIDUAL * norm:.1e}")
    next_value = float(values[d]) if wanted > d else np.inf
    return Spectrum(np.maximum(values[:d], 0), fix_signs(vectors[:, :d]), next_value, norm)


def _shift_invert(L: sp.csr_array, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Lanczos on (L - σI)⁻¹ with σ just below the spectrum, where the wanted end becomes the large one."""
    n = L.shape[0]
    sigma = -1e-9 * (float(L.diagonal().mean()) or 1.0)
    # L - σI is positive definite: factorise with a symmetric ordering and pivots from the diagonal.
    factor = splu(
        (L - sigma * sp.eye_array(n)).tocsc(),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    inverse = LinearOperator((n, n), matvec=factor.solve, dtype=float)
    start = np.random.default_rng(0).standard_normal(n)
    values, vectors = eigsh(L, k, sigma=sigma, OPinv=inverse, v0=start, ncv=min(n, max(2 * k + 1, 30)))
    order = np.argsort(values)
    return values[order], vectors[:, order]


def fix_signs(vectors: np.ndarray) -> np.ndarray:
    """The sign rule of the book: in each column the first entry of nearly half the largest size or more is positive.

    Not the largest itself, and a little less than half: where two entries tie, as they often do on a symmetric map,
    rounding must not decide the sign.

    >>> fix_signs(np.array([[0.1, -1.0], [-1.0, 1.0]])).tolist()
    [[-0.1, 1.0], [1.0, -1.0]]
    """
    large = np.abs(vectors) >= (0.5 - 1e-6) * np.abs(vectors).max(axis=0)
    first = large.argmax(axis=0)
    signs = np.sign(vectors[first, np.arange(vectors.shape[1])])
    return vectors * np.where(signs == 0, 1, signs)


@dataclass(frozen=True)
class Eigenfunctions(Spectrum):
    """Neumann eigenfunctions on a floor, known on a lattice of points with spacing h, shape (n, 2).

    >>> floor = neumann((2.0, 1.0), d=2)  # the second one is √2 cos(πx/2), up to its sign
    >>> np.abs(floor.at([[0, 0], [1, 0.3], [2, 1]])).round(2).tolist()
    [[1.0, 1.41], [1.0, 0.0], [1.0, 1.41]]
    """

    points: np.ndarray
    h: float

    @cached_property
    def _index(self) -> np.ndarray:
        """Number of the lattice point at each place, -1 outside the floor, with a margin of one all around."""
        place = np.rint(self.points / self.h - 0.5).astype(int)
        index = np.full(place.max(axis=0) + 3, -1)
        index[tuple(place.T + 1)] = np.arange(len(place))
        return index

    def at(self, xy: ArrayLike) -> np.ndarray:
        """The functions at positions xy, shape (..., 2) → (..., d), scaled to mean square 1 over the floor.

        Bilinear between the four lattice points around; those outside the floor are left out, which is what a
        vanishing normal derivative asks for. Positions must be on the floor, give or take 2h.
        """
        xy = np.asarray(xy, dtype=float)
        flat = xy.reshape(-1, 2)
        if not np.isfinite(flat).all():
            raise ValueError("xy must be finite positions on the floor: it holds NaN or infinity")
        last = np.array(self._index.shape) - 3
        corner = np.clip(np.floor(flat / self.h - 0.5).astype(int), -1, last)
        part = np.clip(flat / self.h - 0.5 - corner, 0, 1)
        total = np.zeros((len(flat), self.d))
        weight = np.zeros(len(flat))
        for right in (0, 1):
            for down in (0, 1):
                node = self._index[tuple((corner + 1 + [right, down]).T)]
                w = np.abs(1 - right - part[:, 0]) * np.abs(1 - down - part[:, 1]) * (node >= 0)
                total += w[:, None] * self.vectors[node]
                weight += w
        alone = weight <= 1e-12
        if alone.any():  # in a corner that the lattice does not reach
            away, nearest = cKDTree(self.points).query(flat[alone])
            if away.max() > 2 * self.h:
                x, y = flat[alone][away.argmax()]
                raise ValueError(f"xy must be on the floor: ({x:g}, {y:g}) is {away.max():.3g} away from it")
            total[alone], weight[alone] = self.vectors[nearest], 1
        scaled = np.sqrt(len(self.points)) * total / weight[:, None]
        return scaled.reshape(*xy.shape[:-1], self.d)


def neumann(domain: Layout | tuple[float, float], d: int, h: float = 0.1, radius: float = RADIUS) -> Eigenfunctions:
    """The d smallest eigenfunctions of -Δ with Neumann boundary, by the 5-point stencil with spacing h.

    On a layout the domain is where the centre of a ball of this radius can be; a tuple (a, b) is the rectangle
    [0, a]×[0, b]. Lattice points lie at ((i + ½)h, (j + ½)h); neighbours outside the domain are dropped, so the
    matrix is a graph Laplacian over h². For the lattice to fit the walls h must divide the sides of a rectangle, and
    1 and the radius on a layout.

    >>> neumann((2.0, 1.0), d=2).values.round(1).tolist()  # 0 and (π/2)² = 2.467…
    [0.0, 2.5]
    """
    if not h > 0:
        raise ValueError(f"h must be positive, got {h}")
    layout = domain if isinstance(domain, Layout) else None
    size = np.asarray(domain, dtype=float) if layout is None else floor_size(layout)
    for length in size if layout is None else (1.0, radius):
        cells = length / h
        if round(cells) < 1 or abs(cells - round(cells)) > 1e-6:
            raise ValueError(
                f"h must divide {length:g}, for the lattice to fit the walls: got {length:g}/h = {cells:.4g}"
            )
    count = np.rint(size / h).astype(int)
    x, y = ((np.arange(k) + 0.5) * h for k in count)
    lattice = np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1)
    inside = np.ones(count, dtype=bool) if layout is None else is_free(layout, lattice, radius)
    if layout is not None and not inside.any():
        raise ValueError(f"radius {radius} leaves no room on {layout.name}")
    index = np.where(inside, np.cumsum(inside).reshape(inside.shape) - 1, -1)
    pairs = [(index[:-1].ravel(), index[1:].ravel()), (index[:, :-1].ravel(), index[:, 1:].ravel())]
    first, second = np.concatenate([np.stack(p)[:, (p[0] >= 0) & (p[1] >= 0)] for p in pairs], axis=1)
    n = int(inside.sum())
    A = sp.csr_array((np.ones(len(first)), (first, second)), shape=(n, n))
    L = (csgraph.laplacian(A + A.T) / h**2).tocsr()
    spectrum = smallest_eigenpairs(L, d)
    _warn(L, spectrum)
    return Eigenfunctions(**vars(spectrum), points=lattice[inside], h=h)
