"""The networks of appendix E.1 (Tables 2 and 3), Fourier features for positions, each a plain torch module."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from lapbook.settings import Settings

CONVOLUTIONS = ((16, 4, 2, 2), (16, 4, 2, 2), (16, 4, 1, 0))  # Tab. 3: channels, kernel, stride, padding
SMALLEST_IMAGE = 10  # pixels a side; of less, the third convolution has nothing left to look at


class Normalise(nn.Module):
    """x ↦ (x - mean) · scale, fixed by the data.

    >>> layer = Normalise((1,))
    >>> layer.fit(np.array([[1.0], [3.0]]), rho=np.array([0.5, 0.5]), length=10.0)
    >>> layer(torch.tensor([[1.0], [3.0]])).tolist()
    [[-10.0], [10.0]]
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(shape))
        self.register_buffer("scale", torch.ones(()))

    def fit(self, table: np.ndarray, rho: np.ndarray, length: float) -> None:
        """Make the mean 0 and the root mean square length `length`, for observations (m, ...) with weights rho (m,)."""
        mean = np.tensordot(rho, table, axes=1)
        spread = np.sqrt(rho @ ((table - mean) ** 2).reshape(len(table), -1).sum(axis=1))
        self.mean.copy_(torch.from_numpy(mean))
        self.scale.fill_(length / max(spread, 1e-12))

    def forward(self, x: Tensor) -> Tensor:  # noqa: D102
        return (x - self.mean) * self.scale


class ChannelsFirst(nn.Module):
    """Images (batch, rows, columns, channels) as convolutions want them, (batch, channels, rows, columns).

    >>> tuple(ChannelsFirst()(torch.zeros(2, 19, 21, 3)).shape)
    (2, 3, 19, 21)
    """

    def forward(self, x: Tensor) -> Tensor:  # noqa: D102
        return x.movedim(-1, 1).contiguous()


class Fourier(nn.Module):
    """x ↦ (sin xW, cos xW) with W fixed, shape (batch, inputs) → (batch, 2·features): cures an MLP's smoothness.

    >>> Fourier(inputs=2, features=3)(torch.zeros(1, 2)).tolist()  # sin 0 and cos 0
    [[0.0, 0.0, 0.0, 1.0, 1.0, 1.0]]
    """

    W: Tensor

    def __init__(self, inputs: int, features: int) -> None:
        super().__init__()
        self.register_buffer("W", torch.zeros(inputs, features))

    def forward(self, x: Tensor) -> Tensor:  # noqa: D102
        return torch.cat([torch.sin(x @ self.W), torch.cos(x @ self.W)], dim=1)


def build(settings: Settings, shape: tuple[int, ...]) -> nn.Sequential:
    """The encoder, not yet initialised, for observations of that shape; its last layer is linear with d outputs.

    >>> build(Settings(steps=1, d=10), (2,))[-1]
    Linear(in_features=256, out_features=10, bias=True)
    """
    first: list[nn.Module] = [Normalise(shape)] if settings.normalise else []
    kind = settings.encoder if settings.encoder != "auto" else "conv" if len(shape) == 3 else "mlp"
    if kind == "conv":
        if len(shape) != 3 or min(shape[:2]) < SMALLEST_IMAGE:
            least = f"(rows, columns, channels) with at least {SMALLEST_IMAGE} rows and columns"
            raise ValueError(f"encoder 'conv' needs observations of shape {least}, got {shape}")
        layers = [*first, ChannelsFirst()]
        (*sides, width) = shape
        for channels, kernel, stride, padding in CONVOLUTIONS:
            layers += [nn.Conv2d(width, channels, kernel, stride, padding), nn.ReLU()]
            sides, width = [(side + 2 * padding - kernel) // stride + 1 for side in sides], channels
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(width * math.prod(sides), settings.d))
    layers, width = [*first, nn.Flatten()], math.prod(shape)
    if kind == "fourier":
        layers, width = [*layers, Fourier(width, settings.fourier_features)], 2 * settings.fourier_features
    for _ in range(3):
        layers, width = [*layers, nn.Linear(width, 256), nn.ReLU()], 256
    return nn.Sequential(*layers, nn.Linear(width, settings.d))


def initialise(encoder: nn.Sequential, settings: Settings, generator: torch.Generator) -> None:
    """Weights and biases uniform within ±1/√(inputs), as torch has it, and frequencies W ~ N(0, σ²).

    >>> settings = Settings(steps=1)
    >>> encoder = build(settings, (100,))
    >>> initialise(encoder, settings, torch.Generator().manual_seed(0))
    >>> round(encoder[1].weight.abs().max().item(), 3)  # 1 / √100
    0.1
    """
    with torch.no_grad():
        for layer in encoder:
            if isinstance(layer, nn.Linear | nn.Conv2d):
                bound = layer.weight[0].numel() ** -0.5
                for parameter in layer.parameters():
                    parameter.uniform_(-bound, bound, generator=generator)
            elif isinstance(layer, Fourier):
                layer.W.normal_(0, settings.fourier_sigma, generator=generator)
