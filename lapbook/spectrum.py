"""The ground truth: graph Laplacians L = D - A and their smallest eigenvectors (section 2.2 of the paper)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse import csgraph
from scipy.sparse.linalg import LinearOperator, eigsh, splu
from scipy.spatial import cKDTree

from lapbook.layouts import Layout
from lapbook.walls import RADIUS, floor_size, is_free

DENSE_BELOW = 600  # states; above, sparse shift-invert is faster
RESIDUAL = 1e-8  # largest ‖Le - λe‖ / max(1, ‖L‖) that is let through


class CoincidentEigenvalues(UserWarning):
    """Some eigenvalues are equal within rounding, so their eigenvectors are not determined one by one."""


class DisconnectedGraph(UserWarning):
    """The graph falls into parts, so 0 is a multiple eigenvalue."""


@dataclass(frozen=True)
class Spectrum:
    """The d smallest eigenvalues, ascending, shape (d,), and unit eigenvectors as columns, shape (n, d)."""

    values: np.ndarray
    vectors: np.ndarray
    next_value: float
    """λ_{d+1}, which tells whether the span of the first d is itself determined; inf where d = n."""

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
        floor = 1e-12 * max(1.0, float(np.abs(self.values).max()))
        close = np.append(self.gaps <= 1e-7 * scale + floor, False)
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
    """A of a layout, a matrix or a networkx graph, checked: square, finite, symmetric, no negative weight."""
    if isinstance(graph, Layout):
        return graph.adjacency
    if hasattr(graph, "adjacency") and hasattr(graph, "nodes"):
        import networkx

        graph = networkx.to_scipy_sparse_array(graph, dtype=float)
    A = sp.csr_array(graph, dtype=float)
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(f"adjacency must be a square matrix, got shape {A.shape}")
    if not np.isfinite(A.data).all():
        raise ValueError("adjacency must be finite: it holds NaN or infinity")
    if (A.data < 0).any():
        i, j = (int(k[np.argmin(A.tocoo().data)]) for k in A.tocoo().coords)
        raise ValueError(f"adjacency must not be negative: A[{i}, {j}] = {A[i, j]:g}")
    skew = abs(A - A.T).tocoo()
    if skew.nnz and skew.data.max() > 1e-12 * A.data.max():
        i, j = (int(k[np.argmax(skew.data)]) for k in skew.coords)
        raise ValueError(
            f"adjacency must be symmetric: A[{i}, {j}] = {A[i, j]:g} but A[{j}, {i}] = {A[j, i]:g}; "
            "the Laplacian representation is defined for transitions that can be undone"
        )
    return A


def eigenvectors(graph: Any, d: int) -> Spectrum:
    """The d smallest eigenvalues and eigenvectors of L for a layout, an adjacency matrix or a networkx graph.

    Small graphs are solved densely, large ones by shift-invert Lanczos. Signs follow `fix_signs`.

    >>> eigenvectors([[0, 1], [1, 0]], d=2).values.round(6).tolist()
    [0.0, 2.0]
    """
    L = laplacian(graph)
    parts, label = csgraph.connected_components(L, directed=False)
    if parts > 1:
        sizes = sorted(np.bincount(label).tolist(), reverse=True)
        shown = ", ".join(map(str, sizes[:5])) + (", …" if parts > 5 else "")
        warnings.warn(
            f"the graph is disconnected: {parts} components of {shown} states, so λ = 0 occurs {parts} times",
            DisconnectedGraph,
            stacklevel=2,
        )
    spectrum = smallest_eigenpairs(L, d)
    if spectrum.coincident:
        runs = [f"λ_{i} {'=' if j == i + 1 else '= … ='} λ_{j}" for i, j in spectrum.coincident]
        shown = ", ".join(runs[:4]) + (f" and {len(runs) - 4} more" if len(runs) > 4 else "")
        warnings.warn(
            f"{shown} within rounding: these eigenvectors are determined only up to a rotation among themselves",
            CoincidentEigenvalues,
            stacklevel=2,
        )
    return spectrum


def smallest_eigenpairs(L: sp.csr_array, d: int) -> Spectrum:
    """The d smallest eigenpairs of a symmetric positive semidefinite L, by the method that fits its size."""
    n = L.shape[0]
    if not 1 <= d <= n:
        raise ValueError(f"d must lie in 1 … {n}, the number of states: got {d}")
    wanted = min(d + 1, n)
    if n < DENSE_BELOW or wanted > n // 4:
        values, vectors = scipy.linalg.eigh(L.toarray(), subset_by_index=[0, wanted - 1])
    else:
        values, vectors = _shift_invert(L, wanted)
    norm = max(1.0, float(abs(L).sum(axis=1).max()))
    residual = np.linalg.norm(L @ vectors - vectors * values, axis=0).max()
    if residual > RESIDUAL * norm:
        raise ArithmeticError(f"eigenvectors did not converge: ‖Le - λe‖ = {residual:.1e} > {RESIDUAL * norm:.1e}")
    return Spectrum(np.maximum(values[:d], 0), fix_signs(vectors[:, :d]), float(values[d]) if wanted > d else np.inf)


def _shift_invert(L: sp.csr_array, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Lanczos on (L - σI)⁻¹ with σ just below the spectrum, where the wanted end becomes the large one."""
    n = L.shape[0]
    sigma = -1e-9 * float(L.diagonal().mean())
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
    """The sign rule of the book: in each column the first entry of at least half the largest size is positive.

    Half the largest, not the largest itself: where two entries tie, rounding must not decide the sign.

    >>> fix_signs(np.array([[0.1, -1.0], [-1.0, 1.0]])).tolist()
    [[-0.1, 1.0], [1.0, -1.0]]
    """
    large = np.abs(vectors) >= 0.5 * np.abs(vectors).max(axis=0)
    first = large.argmax(axis=0)
    signs = np.sign(vectors[first, np.arange(vectors.shape[1])])
    return vectors * np.where(signs == 0, 1, signs)


@dataclass(frozen=True)
class Eigenfunctions(Spectrum):
    """Neumann eigenfunctions on a floor, known on a lattice of points with spacing h, shape (n, 2)."""

    points: np.ndarray
    h: float

    def at(self, xy: np.ndarray) -> np.ndarray:
        """The functions at positions xy, shape (..., 2) → (..., d), scaled to mean square 1 over the floor.

        Bilinear between the four lattice points around; those outside the floor are left out, which is what a
        vanishing normal derivative asks for.
        """
        xy = np.asarray(xy, dtype=float)
        flat = xy.reshape(-1, 2)
        lattice = np.rint(self.points / self.h - 0.5).astype(int)
        index = np.full(lattice.max(axis=0) + 3, -1)
        index[tuple(lattice.T + 1)] = np.arange(len(lattice))
        corner = np.clip(np.floor(flat / self.h - 0.5).astype(int), -1, lattice.max(axis=0))
        part = flat / self.h - 0.5 - corner
        total = np.zeros((len(flat), self.d))
        weight = np.zeros(len(flat))
        for right in (0, 1):
            for down in (0, 1):
                node = index[tuple((corner + 1 + [right, down]).T)]
                w = np.abs(1 - right - part[:, 0]) * np.abs(1 - down - part[:, 1]) * (node >= 0)
                total += w[:, None] * self.vectors[node]
                weight += w
        lone = weight <= 1e-12
        if lone.any():  # in a corner that the lattice does not reach
            nearest = cKDTree(self.points).query(flat[lone])[1]
            total[lone], weight[lone] = self.vectors[nearest], 1
        scaled = np.sqrt(len(self.points)) * total / weight[:, None]
        return scaled.reshape(*xy.shape[:-1], self.d)


def neumann(domain: Layout | tuple[float, float], d: int, h: float = 0.1, radius: float = RADIUS) -> Eigenfunctions:
    """The d smallest eigenfunctions of -Δ with Neumann boundary, by the 5-point stencil with spacing h.

    On a layout the domain is where the centre of a ball of this radius can be; a tuple (a, b) is the rectangle
    [0, a]×[0, b]. Lattice points lie at ((i + ½)h, (j + ½)h); neighbours outside the domain are dropped, so the
    matrix is a graph Laplacian over h².
    """
    if not h > 0:
        raise ValueError(f"h must be positive, got {h}")
    size = floor_size(domain) if isinstance(domain, Layout) else np.asarray(domain, dtype=float)
    count = np.rint(size / h).astype(int)
    if (count < 2).any():
        raise ValueError(f"h = {h} is too coarse for a floor of {size[0]:g}×{size[1]:g}")
    x, y = ((np.arange(k) + 0.5) * h for k in count)
    lattice = np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1)
    inside = is_free(domain, lattice, radius) if isinstance(domain, Layout) else np.ones(count, dtype=bool)
    index = np.where(inside, np.cumsum(inside).reshape(inside.shape) - 1, -1)
    pairs = [(index[:-1].ravel(), index[1:].ravel()), (index[:, :-1].ravel(), index[:, 1:].ravel())]
    first, second = np.concatenate([np.stack(p)[:, (p[0] >= 0) & (p[1] >= 0)] for p in pairs], axis=1)
    n = int(inside.sum())
    A = sp.csr_array((np.ones(len(first)), (first, second)), shape=(n, n))
    spectrum = smallest_eigenpairs((csgraph.laplacian(A + A.T) / h**2).tocsr(), d)
    return Eigenfunctions(spectrum.values, spectrum.vectors, spectrum.next_value, lattice[inside], h)
