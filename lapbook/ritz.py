"""Rayleigh–Ritz: the eigenvectors within a learned span, by one small eigenproblem from samples."""

from __future__ import annotations

import numpy as np
import scipy.linalg


def rotation(f: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues λ, shape (d,), and Q, shape (d, d), from values f(s), g = f(s') of shape (batch, d) on sampled pairs.

    With G = E (f(s) - f(s'))(f(s) - f(s'))ᵀ / 2 and M = E f fᵀ, solve G q = λ M q. The columns of fQ are the
    eigenfunctions of I - P within the span of f, ordered, with mean square 1; λ are their eigenvalues.
    """
    f, g = np.asarray(f, dtype=float), np.asarray(g, dtype=float)
    if f.shape != g.shape or f.ndim != 2:
        raise ValueError(f"f and g must have the same shape (batch, d), got {f.shape} and {g.shape}")
    if len(f) < f.shape[1]:
        raise ValueError(f"f must have at least as many samples as dimensions: got {len(f)} for {f.shape[1]}")
    difference = f - g
    G = difference.T @ difference / (2 * len(f))
    # Both ends of a pair are states of the data; using both halves the noise of M and keeps it symmetric in time.
    M = (f.T @ f + g.T @ g) / (2 * len(f))
    weakest = np.linalg.eigvalsh(M)[0]
    if weakest <= 1e-10 * np.trace(M):
        raise ValueError(
            "the dimensions must be independent: some combination of them vanishes on the data "
            f"(smallest eigenvalue of E f fᵀ: {weakest:.1e})"
        )
    return scipy.linalg.eigh(G, M)
