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

from lapbook.layouts import Layout

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
    warn_of_ambiguity(L, spectrum)
    return spectrum


def warn_of_ambiguity(L: sp.csr_array, spectrum: Spectrum) -> None:
    """Say in plain words what leaves eigenvectors undetermined.

    >>> apart = sp.csr_array(np.zeros((2, 2)))
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     warn_of_ambiguity(apart, smallest_eigenpairs(apart, 1))
    >>> print(caught[0].message)
    the graph is disconnected: 2 components of 1, 1 states, so λ = 0 occurs 2 times
    """
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
