"""What decides a training run besides the data and the seed: `Settings`, and presets of them (appendix E.1)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lapbook.objective import coefficients

PRECISIONS = ("float32", "bf16")
ENCODERS = ("auto", "mlp", "conv", "fourier")
ANNEALED = 0.1  # share of the steps over which β falls to its value


@dataclass(frozen=True)
class Settings:
    """Everything that decides a training run besides the data and the seed.

    >>> Settings(steps=100, coefficients=[2, 1], d=2).coefficients
    (2.0, 1.0)
    """

    steps: int
    """Gradient steps."""
    d: int = 10
    """Dimensions of the representation."""
    coefficients: str | tuple[float, ...] = "paper"
    """c_1 … c_d: a kind that `objective.coefficients` knows, or d decreasing numbers."""
    batch: int = 1024
    """Pairs a step, and states in each of the two half-batches of the penalty."""
    lr: float = 1e-3
    """Adam's step size."""
    decay: float = 0.0
    """The last share of the steps, in [0, 1], over which lr falls linearly to 0: it quiets the noise of the batches."""
    beta: float = 1.0
    """Weight β of the penalty."""
    anneal: float = 1.0
    """β begins at so many times its value and falls to it, geometrically, over the first tenth of the steps. While
    a network is still rough, its dimensions have large eigenvalues and would vanish under a weak penalty."""
    target_scale: float = 1.0
    """τ, the mean square wanted of each f_i; a dimension with eigenvalue λ_i ≥ β τ vanishes."""
    gamma: float = 0.9
    """Discount γ of the multi-step pairs, in [0, 1)."""
    encoder: str = "auto"
    """"mlp" (3×256 ReLU), "conv" (Tab. 3), "fourier" (fixed sines and cosines, then the MLP), or "auto", which takes
    "conv" for images, observations of shape (rows, columns, channels), and "mlp" for all others."""
    normalise: float = 0.0
    """If positive, observations are centred on their mean in the data and scaled to that root mean square length:
    images of one map are nearly the same, and a network must be told where they differ."""
    fourier_sigma: float = 8.0
    """Standard deviation of the frequencies of "fourier"."""
    fourier_features: int = 128
    """Number of frequencies of "fourier"; each gives a sine and a cosine."""
    precision: str = "float32"
    """Of the encoder's matrix products: "bf16" keeps 8 bits of them, and is faster on processors that have it."""

    def __post_init__(self) -> None:
        if not isinstance(self.coefficients, str):
            object.__setattr__(self, "coefficients", tuple(float(c) for c in self.coefficients))
        for name in ("steps", "d", "batch", "fourier_features"):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or value < 1:
                raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")
            object.__setattr__(self, name, int(value))
        for name in ("lr", "beta", "target_scale", "fourier_sigma"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be positive and finite, got {getattr(self, name)}")
        if not 1 <= self.anneal < math.inf:
            raise ValueError(f"anneal must be at least 1 and finite, got {self.anneal}")
        if not 0 <= self.normalise < math.inf:
            raise ValueError(f"normalise must be at least 0 and finite, got {self.normalise}")
        if not 0 <= self.gamma < 1:
            raise ValueError(f"gamma must lie in [0, 1), got {self.gamma}")
        if not 0 <= self.decay <= 1:
            raise ValueError(f"decay must lie in [0, 1], got {self.decay}")
        if self.encoder not in ENCODERS:
            raise ValueError(f"encoder must be one of {', '.join(ENCODERS)}: got {self.encoder!r}")
        if self.precision not in PRECISIONS:
            raise ValueError(f"precision must be one of {', '.join(PRECISIONS)}: got {self.precision!r}")
        # a kind is known or not whatever d is, and the d of a file may be absurdly large
        coefficients(1 if isinstance(self.coefficients, str) else self.d, self.coefficients)

    def beta_at(self, step: int) -> float:
        """β at a step, counted from 1.

        >>> few = Settings(steps=100, beta=2.0, anneal=10.0)
        >>> few.beta_at(1), few.beta_at(50)
        (20.0, 2.0)
        """
        return self.beta * self.anneal ** max(0.0, 1 - (step - 1) / (ANNEALED * self.steps))

    def lr_at(self, step: int) -> float:
        """lr at a step, counted from 1.

        >>> few = Settings(steps=10, lr=1.0, decay=0.5)
        >>> few.lr_at(1), few.lr_at(10)
        (1.0, 0.2)
        """
        left = (self.steps - step + 1) / self.steps
        return self.lr * min(1, left / self.decay) if self.decay else self.lr


# "fast" was picked among seven settings by SimGT against the truth on GridRoom, data seeds 0 and 2, one run each, so
# these two seeds flatter it: judge it on others. It is not for small maps: a dimension with λ ≥ β τ = 0.1 vanishes.
# What "fast-images" adds was found on one data set of each map, seed 7. The frequencies of "fast-positions" follow from
# the floor (the sides of a wall are 0.1 apart as observed); its target was the best of 0.1, 0.3 and 1 on PointMaze, and
# its budget was tried on one data set of each floor.
PRESETS = {
    "paper": Settings(steps=200_000),
    "paper-coded": Settings(steps=200_000, target_scale=0.1),
    "paper-coded-images": Settings(steps=200_000, target_scale=0.1, anneal=10.0, normalise=10.0),
    "paper-scaled": Settings(steps=25_000, target_scale=0.1),
    "paper-scaled-images": Settings(steps=50_000, target_scale=0.1, anneal=10.0, normalise=10.0),
    "fast": Settings(steps=5_000, lr=2e-3, decay=0.5, target_scale=0.1),
    "fast-images": Settings(steps=8_000, lr=2e-3, decay=0.5, target_scale=0.1, anneal=10.0, normalise=10.0),
    "fast-positions": Settings(
        steps=2_000, batch=512, lr=2e-3, decay=0.5, target_scale=0.3, encoder="fourier", fourier_sigma=10.0
    ),
    "smoke": Settings(steps=50, batch=128),
}


def preset(name: str | Settings, **changes: Any) -> Settings:
    """The settings of that name, or given ones, with changes: `preset("fast", d=5)`.

    `"paper"` is appendix E.1 as printed. `"paper-coded"` has the target 1/d (at d = 10) of the public code for the
    unweighted objective, which the paper says it follows. `"paper-scaled"` is that with fewer steps;
    `"paper-coded-images"` and `"paper-scaled-images"` have what images need with them. `"fast"` adds a falling step
    size, `"fast-images"` and `"fast-positions"` are for these, and `"smoke"` only shows that everything runs.

    >>> preset("fast", d=5).d, preset("paper").steps
    (5, 200000)
    """
    if isinstance(name, str) and name not in PRESETS:
        raise ValueError(f"preset must be one of {', '.join(PRESETS)}: got {name!r}")
    return replace(PRESETS[name] if isinstance(name, str) else name, **changes)
