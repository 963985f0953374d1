"""Two later objectives, ALLO and NestedOMM, behind the interface of `learn`: the same pairs, encoders and budget.

Throughout, ⟨f, g⟩ = E f g over the states of the data and L = I - P is the operator of the pairs, so that
⟨f, Lf⟩ = E (f(s) - f(s'))² / 2. What is learned has ⟨f_j, f_k⟩ = τ δ_jk, with τ the `target_scale` of the settings:
unlike under the penalty of `learn`, no dimension shrinks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lapbook.layouts import Seed
from lapbook.objective import coefficients
from lapbook.rollouts import Data
from lapbook.settings import Settings, preset
from lapbook.training import Representation, learn, warn_of_collapse

NEWEST = 0.01  # share of the newest batch in the averages from which NestedOMM reads its eigenvalues

# Both are "fast" of `learn`, so that the budget is the same. With it, dual rates of 0.003 and 0.01 were tried for ALLO,
# and both ways of nesting and h = 1 and 10 for NestedOMM, by SimGT on GridRoom and GridMaze with data seed 0: judge
# them on other seeds. At h = 10 the operator has negative eigenvalues. h = 1 (beta=10), which has hardly any, came as
# far on GridRoom in these steps; on GridMaze, whose first eigenvalues are closer, it took four times as many.
PRESETS = {"allo": preset("fast"), "omm": preset("fast")}


def allo_lagrangian(X: Tensor, M1: Tensor, M2: Tensor, duals: Tensor, b: float | Tensor, target: float = 1.0) -> Tensor:
    """ALLO: Σ_i ⟨u_i, Lu_i⟩ + Σ_{k≤j} β_jk E_jk + b Σ_{k≤j} E_jk², where E_jk = ⟨u_j, [u_k]⟩ - τ δ_jk.

    To be minimised over u and maximised over β = `duals`. All matrices have shape (d, d): X holds ⟨u_j, Lu_k⟩, and M1
    and M2 both hold ⟨u_j, [u_k]⟩, exactly or in two independent estimates, which leave the square without bias. [·]
    takes no gradient, so M = U.T @ U.detach().

    Where u and β rest, E = 0 and 2Lu_j + Σ_{k≤j} β_jk u_k = 0. For j = 1 this says Lu_1 = λ_1 u_1 with β_11 = -2λ_1.
    For j = 2 its product with u_1 then gives β_21 = 0, and so on: u are eigenvectors, λ_j = -β_jj / 2, and the other
    β_jk are 0. With b τ > λ_d - λ_1 the rest is stable for the first d eigenvectors in their order, and for no others.

    >>> I, zeros = torch.eye(2), torch.zeros(2, 2)
    >>> allo_lagrangian(torch.tensor([[0.0, 0.0], [0.0, 0.5]]), I, I, zeros, b=1.0).item()  # λ_1 + λ_2
    0.5
    """
    E1, E2 = _violation(M1, target), _violation(M2, target)
    return X.trace() + (duals * (E1 + E2)).sum() / 2 + b * (E1 * E2).sum()


def omm_objective(M: Tensor, B: Tensor, c: Tensor, target: float = 1.0) -> Tensor:
    """NestedOMM: -Σ_k (c_k - c_{k+1}) tr((2τI - M_k) B_k), of the leading k × k blocks of M = VᵀV and B = VᵀAV.

    To be minimised over V. M and B have shape (d, d) and are exact or independent estimates; c has shape (d,), and
    c_{d+1} = 0. With c = d, …, 1 it is the sum over all prefixes v_1 … v_k (joint nesting). With equal c only the whole
    of V counts, and nothing but its span is found.

    If A has no negative eigenvalue the least value is -τ² Σ_i c_i a_i. It is attained where the v_i are the top
    eigenvectors in their order, with VᵀV = τI: no penalty holds them at that length. B_ii / τ is then the eigenvalue
    a_i. If A has a negative eigenvalue there is no least value, but while a_d > 0 this V is still a local minimum.

    >>> omm_objective(torch.eye(2), torch.tensor([[1.0, 0.0], [0.0, 0.5]]), torch.tensor([2.0, 1.0])).item()
    -2.5
    """
    lesser = torch.minimum(c[:, None], c)
    return (lesser * M * B).sum() - 2 * target * (c * B.diagonal()).sum()


class Allo(nn.Module):
    """`allo_lagrangian` on samples, as `learn` takes it. Each call is also a step of the duals and of the barrier.

    >>> objective, ones = Allo(preset("smoke", d=1)), lambda rows: torch.ones(len(rows), 1)
    >>> objective(ones, torch.zeros(4, 8), step=1).item(), objective.duals.item()  # f = 1: λ = 0, and nothing to mend
    (0.0, 0.0)
    """

    duals: Tensor
    grown: Tensor

    def __init__(self, settings: Settings, dual_rate: float = 0.003, growth: float = 1e-3) -> None:
        super().__init__()
        if not 0 < dual_rate < math.inf:
            raise ValueError(f"dual_rate must be positive and finite, got {dual_rate}")
        if not 0 <= growth < math.inf:
            raise ValueError(f"growth must be at least 0 and finite, got {growth}")
        _refuse_coefficients(settings, "ALLO")
        self.settings, self.dual_rate, self.growth = settings, float(dual_rate), float(growth)
        self.register_buffer("duals", torch.zeros(settings.d, settings.d))
        self.register_buffer("grown", torch.zeros(()))  # what b has gained over the β of the settings

    def forward(self, f: Callable[[Tensor], Tensor], rows: Tensor, step: int) -> Tensor:
        """The Lagrangian at this step, with f and rows as `training.sampled_loss` has them."""
        difference, F1, F2 = _sampled(f, rows)
        M1, M2 = (F.T @ F.detach() / len(F) for F in (F1, F2))
        b, target = self.settings.beta_at(step) + self.grown, self.settings.target_scale
        loss = allo_lagrangian(_gram(difference) / 2, M1, M2, self.duals, b, target)
        with torch.no_grad():
            E1, E2 = _violation(M1, target), _violation(M2, target)
            rate = self.dual_rate * self.settings.lr_at(step) / self.settings.lr
            # The method of multipliers adds 2b E at once; a share of it averages over the noise of the batches.
            self.duals = self.duals + rate * b * (E1 + E2)
            self.grown = self.grown + self.growth * self.settings.beta * (E1 * E2).sum() / target**2
        return loss

    @property
    def values(self) -> np.ndarray:
        """Eigenvalues of I - P as the duals show them, -β_jj / 2, shape (d,)."""
        return -self.duals.diagonal().numpy() / 2

    def extra_repr(self) -> str:
        """What tells it from others, besides the settings."""
        return f"dual_rate={self.dual_rate}, growth={self.growth}"


class NestedOMM(nn.Module):
    """`omm_objective` on samples, as `learn` takes it. Each call also notes what the eigenvalues are read from.

    >>> objective, ones = NestedOMM(preset("smoke", d=1)), lambda rows: torch.ones(len(rows), 1)
    >>> objective(ones, torch.zeros(4, 8), step=1).item(), objective.values.tolist()  # f = 1: a = 1 and λ = 0
    (-1.0, [0.0])
    """

    seen: Tensor

    def __init__(self, settings: Settings, sequential: bool = True) -> None:
        super().__init__()
        if sequential:
            _refuse_coefficients(settings, "sequential nesting")
        c = coefficients(settings.d, "equal" if sequential else settings.coefficients)
        self.settings, self.sequential, self.c = settings, bool(sequential), torch.tensor(c, dtype=torch.float32)
        self.register_buffer("seen", torch.zeros(2, settings.d))  # averages of ⟨f_i, Lf_i⟩ and of ⟨f_i, f_i⟩

    def forward(self, f: Callable[[Tensor], Tensor], rows: Tensor, step: int) -> Tensor:
        """The objective at this step, with f and rows as `training.sampled_loss` has them."""
        difference, F1, F2 = _sampled(f, rows)
        M1, M2, X = _gram(F1, self.sequential), _gram(F2, self.sequential), _gram(difference, self.sequential) / 2
        with torch.no_grad():
            now = torch.stack([X.diagonal(), (M1 + M2).diagonal() / 2])
            self.seen = (1 - NEWEST) * self.seen + NEWEST * now
        target = self.settings.target_scale
        h = 1 / (self.settings.beta_at(step) * target)
        # VᵀAV = M - hX. M1, M2 and X come from independent samples, and each product is of two different ones.
        return (omm_objective(M1, M2 - h * X, self.c, target) + omm_objective(M2, M1 - h * X, self.c, target)) / 2

    @property
    def values(self) -> np.ndarray:
        """Eigenvalues of I - P: ⟨f_i, Lf_i⟩ / ⟨f_i, f_i⟩, both averaged over the last batches, shape (d,)."""
        return (self.seen[0] / self.seen[1]).numpy()

    def extra_repr(self) -> str:
        """What tells it from others, besides the settings."""
        return f"sequential={self.sequential}"


def allo(
    data: Data,
    settings: Settings | str = PRESETS["allo"],
    rng: Seed = 0,
    *,
    dual_rate: float = 0.003,
    growth: float = 1e-3,
    **options: Any,
) -> tuple[Representation, np.ndarray]:
    """Train by ALLO; the representation, and the eigenvalues of I - P that its duals show, shape (d,).

    `options` are those of `learn`, fields of the settings among them: `allo(data, d=5, progress=True)`.

    The barrier b begins at `beta`, and each step adds `growth` times beta Σ_{k≤j} E_jk² / τ² to it: it grows as long
    as the constraints are violated. The duals make a share `dual_rate` of the full step 2b E of the method of
    multipliers, and less as lr falls. A large share winds them up while the network has not yet grown to its length.

    >>> from lapbook.rollouts import collect
    >>> data = collect("lapbook/GridRoom-v0", transitions=1000)
    >>> rep, values = allo(data, "smoke", d=3)
    >>> rep(data.observations).shape[1:], values.shape
    ((3,), (3,))
    """
    settings = _settled(settings, options)
    objective = Allo(settings, dual_rate, growth)
    return learn(data, settings, rng, objective=objective, **options), objective.values


def omm(
    data: Data,
    settings: Settings | str = PRESETS["omm"],
    rng: Seed = 0,
    *,
    sequential: bool = True,
    **options: Any,
) -> tuple[Representation, np.ndarray]:
    """Train by NestedOMM; the representation, and the eigenvalues of I - P, shape (d,).

    `options` are those of `learn`, fields of the settings among them: `omm(data, d=5, progress=True)`.

    The operator is A = I - hL with h = 1 / (beta·target_scale), an explicit step of length h of the heat flow. It has
    the eigenvectors of L in the wanted order, with a_i = 1 - hλ_i. h = 1 is the walk P; h = 1/2 is the lazy walk, which
    never has a negative eigenvalue. Joint nesting, divided by hτ, is `sampled_loss` with the same settings, a constant,
    and -Σ_jk min(c_j, c_k) ⟨f_j, f_k⟩ ⟨f_j, Lf_k⟩ / τ, which undoes the shrinking. So h does here what 1 / (βτ) does
    there: a large one sets the eigenvalues further apart, and dimension i vanishes where λ_i ≥ 1/h.

    With `sequential` nesting no dimension feels those after it, by stop-gradients. Otherwise the nesting is joint, with
    the `coefficients` of the settings.

    >>> from lapbook.rollouts import collect
    >>> rep, values = omm(collect("lapbook/GridRoom-v0", transitions=1000), "smoke", d=3)
    >>> bool((values > 0).all() and (values < 2).all())  # as those of I - P are
    True
    """
    settings = _settled(settings, options)
    warn_of_collapse(data, settings)
    objective = NestedOMM(settings, sequential)
    return learn(data, settings, rng, objective=objective, **options), objective.values


def _sampled(f: Callable[[Tensor], Tensor], rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """f(s) - f(s') of the pairs, and f on the two half-batches, each of shape (batch, d)."""
    fs, gs, F1, F2 = f(rows.flatten()).unflatten(0, rows.shape)
    return fs - gs, F1, F2


def _gram(F: Tensor, sequential: bool = False) -> Tensor:
    """Means of F_j F_k, shape (d, d). If `sequential`, the gradient of each goes to the later dimension alone."""
    G = F.T @ F / len(F)
    if not sequential:
        return G
    below = (F.T @ F.detach() / len(F)).tril(-1)
    return below + below.T + G.diagonal().diag()


def _violation(M: Tensor, target: float) -> Tensor:
    """E_jk = M_jk - τ δ_jk for k ≤ j, and 0 above."""
    return (M - target * torch.eye(len(M), dtype=M.dtype)).tril()


def _settled(settings: Settings | str, options: dict[str, Any]) -> Settings:
    """The settings with the changes that are among the options, which are taken out of these."""
    changes = {field.name: options.pop(field.name) for field in fields(Settings) if field.name in options}
    return preset(settings, **changes)


def _refuse_coefficients(settings: Settings, what: str) -> None:
    if settings.coefficients != "paper":
        raise ValueError(f"coefficients must be left as they are, {what} has none: got {settings.coefficients!r}")
