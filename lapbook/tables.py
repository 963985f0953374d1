"""An encoder on a fixed table of observations: where states recur, each is encoded once a step.

Images of one map differ in few places. A convolution of kernel w at a patch x is Σ_place x[place]·w[place], and both
the values x[place] and whole patches recur: so each layer multiplies each distinct value with each place of the kernel
once, and adds up these products for each distinct patch, by a sparse matrix of zeros and ones that the table fixes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from lapbook.encoders import CONVOLUTIONS, ChannelsFirst, Normalise

PIECE = 1024  # observations that go through an encoder at once


def lookup(
    encoder: nn.Sequential, table: Tensor, gather: bool, precision: str = "float32"
) -> Callable[[Tensor], Tensor]:
    """f of the observations `table[rows]`, as a function of rows.

    With `gather` the encoder runs once on the table, however often its rows are drawn; without, it takes the rows in
    pieces that stay in the processor's cache. The values and the gradient are the same.

    >>> encoder, table, rows = nn.Sequential(nn.Linear(2, 3)), torch.eye(2), torch.tensor([0, 1, 1, 0])
    >>> torch.allclose(lookup(encoder, table, gather=True)(rows), lookup(encoder, table, gather=False)(rows))
    True
    """
    if gather:
        everywhere = in_precision(on_table(encoder, table), precision)
        # index_select, not indexing: on several threads only its gradient is summed in a fixed order
        return lambda rows: everywhere().index_select(0, rows)
    return in_precision(lambda rows: torch.cat([encoder(table[part]) for part in rows.split(PIECE)]), precision)


def in_precision(f: Callable[..., Tensor], precision: str) -> Callable[..., Tensor]:
    """f with its matrix products in that precision; what it returns is float32.

    >>> in_precision(lambda: torch.ones(1, 1) @ torch.full((1, 1), 1.001), "bf16")().item()
    1.0
    """
    if precision == "float32":
        return f

    def rounded(*arguments: Any) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return f(*arguments).float()

    return rounded


def on_table(encoder: nn.Sequential, table: Tensor) -> Callable[[], Tensor]:
    """`encoder(table)` as a function of the weights alone, for a table of observations that stays the same.

    The same output and gradient, and the less work the more the images have in common.

    >>> from lapbook.encoders import build
    >>> from lapbook.settings import Settings
    >>> encoder, images = build(Settings(steps=1), (10, 10, 1)), torch.eye(100).view(100, 10, 10, 1)
    >>> torch.allclose(on_table(encoder, images)(), encoder(images), atol=1e-6)
    True
    """
    layers = list(encoder)
    if isinstance(layers[0], Normalise):
        table = layers.pop(0)(table)
    if not isinstance(layers[0], ChannelsFirst):
        rest = nn.Sequential(*layers)
        return lambda: rest(table)
    # pixel (n, y, x) of the images is colours[where[n, y, x]]; after a layer, a position is one of its distinct patches
    colours, where = _distinct(table.numpy())
    sums, values = [], len(colours)
    for _, k, stride, pad in CONVOLUTIONS:
        padded = np.pad(where, ((0, 0), (pad, pad), (pad, pad)), constant_values=-1)  # zeros around the image
        patches = np.lib.stride_tricks.sliding_window_view(padded, (k, k), axis=(1, 2))[:, ::stride, ::stride]
        distinct, where = _distinct(patches.reshape(*patches.shape[:3], k * k))
        sums.append(_sums(distinct, values))
        values = len(distinct)
    start, last = torch.from_numpy(colours), torch.from_numpy(where.ravel())

    def run() -> Tensor:
        rows, remaining = start, iter(sums)
        for layer in layers:
            if isinstance(layer, nn.Conv2d):
                weight = layer.weight.flatten(2).permute(1, 2, 0).flatten(1)  # (inputs, k·k·channels)
                products = (rows @ weight).to(rows.dtype).view(-1, layer.out_channels)  # of each value at each place
                rows = _SparseProduct.apply(*next(remaining), products) + layer.bias
            elif isinstance(layer, nn.Flatten):
                rows = rows.index_select(0, last).view(*where.shape, -1).movedim(-1, 1).flatten(1)
            elif not isinstance(layer, ChannelsFirst):
                rows = layer(rows)
        return rows

    return run


class _SparseProduct(torch.autograd.Function):
    """S z for S and its transpose as sparse arrays of scipy, which has this product on every platform."""

    @staticmethod
    def forward(ctx: Any, S: sp.csr_array, transpose: sp.csr_array, z: Tensor) -> Tensor:
        ctx.transpose = transpose
        return torch.from_numpy(S @ z.numpy())

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, None, Tensor]:
        return None, None, torch.from_numpy(ctx.transpose @ gradients[0].numpy())


def _sums(patches: np.ndarray, values: int) -> tuple[sp.csr_array, sp.csr_array]:
    """Which products add up to which patch, and the transpose: patches (m, places) of numbers of values, or -1."""
    patch, place = np.nonzero(patches >= 0)
    column = patches[patch, place] * patches.shape[1] + place
    ones = np.ones(len(patch), dtype=np.float32)
    S = sp.csr_array((ones, (patch, column)), shape=(len(patches), values * patches.shape[1]))
    return S, S.T.tocsr()


def _distinct(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct rows of an array (n, y, x, width), shape (k, width), and which one is where, shape (n, y, x)."""
    rows, where = np.unique(array.reshape(-1, array.shape[-1]), axis=0, return_inverse=True)
    return rows, where.reshape(array.shape[:3])
