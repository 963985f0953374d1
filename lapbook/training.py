"""Learning from samples: the loss, the training loop, Representation (section 4.1, appendices C and E.1)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from tqdm import tqdm

from lapbook.checkpoints import adam_state, digest, flat, read, read_checkpoint, restore_adam, write
from lapbook.encoders import Normalise, build, initialise
from lapbook.layouts import Seed
from lapbook.metrics import sim_gt
from lapbook.objective import coefficients, pair_loss, penalty
from lapbook.pairs import data_spectrum, draw, visited
from lapbook.rollouts import Data
from lapbook.settings import Settings, preset
from lapbook.tables import in_precision, lookup, on_table

KNOWN_UP_TO = 1000  # distinct observations; their eigenvalues are then quick to compute


class CollapsingDimension(UserWarning):
    """The penalty is too weak to hold up some dimension against its eigenvalue."""


@dataclass(frozen=True)
class Representation:
    """A learned f: observation ↦ R^d. Call it on observations of shape (..., *shape) to get an array (..., d).

    >>> from lapbook.rollouts import collect
    >>> data = collect("lapbook/GridRoom-v0", transitions=1000)
    >>> rep = learn(data, "smoke", d=3, steps=1)
    >>> rep(data.observations[0]).shape, rep(data.observations[:8].reshape(2, 4, 2)).shape
    ((3,), (2, 4, 3))
    """

    encoder: nn.Sequential
    settings: Settings
    shape: tuple[int, ...]
    """Shape of one observation."""

    @property
    def linear(self) -> nn.Linear:
        """The last layer, shape (d, inputs): f is linear in it, so a rotation of f can be folded in."""
        last = self.encoder[-1]
        assert isinstance(last, nn.Linear)  # as `encoders.build` made it
        return last

    def __call__(self, observations: np.ndarray, batch: int = 4096) -> np.ndarray:
        """f of each observation, shape (..., d), float32."""
        x = np.ascontiguousarray(observations, dtype=np.float32)
        lead = x.shape[: x.ndim - len(self.shape)]
        if x.shape != (*lead, *self.shape):
            wanted = ", ".join(map(str, ("...", *self.shape)))
            raise ValueError(f"observations must have shape ({wanted}), got {x.shape}")
        flat = x.reshape(-1, *self.shape)
        out = np.empty((len(flat), self.settings.d), dtype=np.float32)
        with torch.no_grad():
            for i in range(0, len(flat), batch):
                out[i : i + batch] = self.encoder(torch.tensor(flat[i : i + batch])).numpy()
        return out.reshape(*lead, self.settings.d)

    def save(self, path: str | Path) -> None:
        """Write a safetensors file: weights, settings, shape. It holds no code."""
        write(
            path, "representation", self.encoder.state_dict(), {"settings": asdict(self.settings), "shape": self.shape}
        )

    @classmethod
    def load(cls, path: str | Path) -> Representation:
        """Read what `save` wrote."""
        tensors, about = read(path, "representation")
        try:
            settings, shape = Settings(**about["settings"]), tuple(map(int, about["shape"]))
            with torch.device("meta"):  # no memory is taken before the file has shown that it holds these weights
                encoder = build(settings, shape)
            _restore(encoder, tensors)
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise ValueError(f"{path} does not hold the weights its settings ask for, it may be damaged") from error
        return cls(encoder, settings, shape)


def sampled_loss(f: Callable[[Tensor], Tensor], rows: Tensor, c: Tensor, beta: float, target: float) -> Tensor:
    """Eq. (6) plus β times eq. (7) and (8), for f that turns numbers of observations, shape (n,), into (n, d).

    rows of shape (4, batch) number s, s' of the pairs and the states of the two half-batches.

    >>> twice, rows = torch.full((1, 1), 2.0), torch.zeros(4, 8, dtype=int)  # f = 2 everywhere: (4 - 1)²
    >>> sampled_loss(lambda rows: twice[rows], rows, torch.ones(1), beta=1.0, target=1.0).item()
    9.0
    """
    fs, gs, F1, F2 = f(rows.flatten()).unflatten(0, rows.shape)
    return pair_loss(fs, gs, c) + beta * penalty(F1, F2, c, target)


class _Counted(torch.autograd.Function):
    """`counted_loss` and its gradient, 2 LFC + 2β Σ_half W F (min(c_j, c_k)∘G' - τC), in closed form."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, rows: Tensor, weights: Tensor, beta: float, target: float) -> Tensor:
        F, (s, t, *halves), c, (m, batch) = table.numpy(), rows.numpy(), weights.numpy(), (len(table), rows.shape[1])
        from_s, from_t, *in_halves = (np.bincount(r, minlength=m).astype(F.dtype) / batch for r in (s, t, *halves))
        met = sp.csr_array((np.full(batch, 1 / batch, dtype=F.dtype), (s, t)), shape=(m, m))
        LF = (from_s + from_t)[:, None] * F - met @ F - met.T @ F
        WF1, WF2 = (share[:, None] * F for share in in_halves)
        G1, G2, lesser, wanted = F.T @ WF1, F.T @ WF2, np.minimum(c[:, None], c), np.diag(target * c)
        inner = (lesser * G1 * G2).sum() - (wanted * (G1 + G2)).sum() + target**2 * c.sum()
        half_gradient = LF * c + beta * (WF1 @ (lesser * G2 - wanted) + WF2 @ (lesser * G1 - wanted))
        ctx.gradient = torch.from_numpy(2 * half_gradient)
        return table.new_tensor((F * LF).sum(axis=0) @ c + beta * inner)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None, None]:
        return gradients[0] * ctx.gradient, None, None, None, None


def counted_loss(F: Tensor, rows: Tensor, c: Tensor, beta: float, target: float) -> Tensor:
    """`sampled_loss` for the values F of f on a table, shape (m, d): a form in F that only needs the batch's counts.

    With L the Laplacian of the pairs that were drawn and W the shares of the states in a half-batch, both over the
    batch, eq. (6) is tr(FᵀLFC), and E f_j f_k of eq. (7) and (8) is G = FᵀWF. No row is copied as often as it is drawn.

    >>> twice, rows = torch.full((1, 1), 2.0), torch.zeros(4, 8, dtype=int)
    >>> counted_loss(twice, rows, torch.ones(1), beta=1.0, target=1.0).item()  # as above
    9.0
    """
    return _Counted.apply(F, rows, c, beta, target)


def learn(
    data: Data,
    settings: Settings | str = "fast",
    rng: Seed = 0,
    truth: np.ndarray | None = None,
    gather: bool | None = None,
    checkpoint: str | Path | None = None,
    every: int = 1000,
    progress: bool = False,
    callback: Callable[[int, Representation], bool | None] | None = None,
    objective: nn.Module | None = None,
    **changes: Any,
) -> Representation:
    """Train an encoder on trajectories, by Adam on eq. (6) to (8): `learn(data, "fast", d=5)`.

    `settings` may be the name of a preset, and `changes` replace some of its fields. Data in which few distinct
    observations recur have each encoded once a step (`counted_loss`); `gather` decides it by hand.

    Every `every` steps and at the end: `callback(step, representation)` with the encoder as it is then, SimGT in the
    progress bar if `truth` of shape (m, d) over the rows of `data.observations` is given, and a checkpoint. A run
    that finds its own checkpoint goes on from there to the very same result. Training ends where the callback
    returns True. `rng` may be a generator; torch's seed is not touched.

    Another `objective(f, rows, step)` takes the place of `sampled_loss`. Its buffers are kept in checkpoints, its repr
    tells it from others, and it must be made anew for each run. `rivals` has two.

    >>> from lapbook.rollouts import collect
    >>> data = collect("lapbook/GridRoom-v0", transitions=1000)
    >>> first, again = (learn(data, "smoke", d=2, rng=7)(data.observations) for _ in range(2))
    >>> bool((first == again).all())
    True
    """
    if every < 1:
        raise ValueError(f"every must be at least 1 step, got {every}")
    settings = preset(settings, **changes)
    observations = _checked(data, settings, truth)
    if objective is None:
        warn_of_collapse(data, settings)
    gather = len(observations) <= 4 * settings.batch if gather is None else gather
    run = _Run(data, observations, settings, np.random.default_rng(rng), gather, objective)
    if checkpoint is not None and Path(checkpoint).exists():
        run.restore(checkpoint)
    shown: dict[str, str] = {}
    with tqdm(total=settings.steps, initial=run.step, disable=not progress, unit="step") as bar:
        while run.step < settings.steps:
            loss = run.advance()
            _check_finite(loss, run.step, checkpoint)
            bar.update()
            if run.step % every and run.step < settings.steps:
                continue
            weights = torch.cat([p.detach().flatten() for p in run.encoder.parameters()])
            _check_finite(weights, run.step, checkpoint)
            if progress:
                shown["loss"] = f"{loss.item():.4f}"
                if truth is not None:
                    shown["SimGT"] = f"{sim_gt(run.representation(observations), truth):.3f}"
                bar.set_postfix(shown)
            ended = callback is not None and callback(run.step, run.representation)
            if checkpoint is not None:  # after the callback, which a killed run may thus see twice but never misses
                run.save(checkpoint)
            if ended:
                break
    return run.representation


class _Run:
    """Everything that changes while an encoder learns."""

    def __init__(
        self,
        data: Data,
        observations: np.ndarray,
        settings: Settings,
        rng: np.random.Generator,
        gather: bool,
        objective: nn.Module | None,
    ) -> None:
        self.data, self.settings, self.rng, self.objective, self.step = data, settings, rng, objective, 0
        self.about = {
            "settings": asdict(settings),
            "data": digest(observations, data.index, data.lengths),
            "rng": rng.bit_generator.state,
            "gather": bool(gather),  # it sums in another order
            "objective": None if objective is None else repr(objective),
        }
        with torch.random.fork_rng(devices=[]):  # torch's layers draw weights when made; these are not kept
            self.encoder = build(settings, observations.shape[1:])
        initialise(self.encoder, settings, torch.Generator().manual_seed(int(rng.integers(2**63))))
        if isinstance(self.encoder[0], Normalise):
            self.encoder[0].fit(observations, data.rho, settings.normalise)
        self.representation = Representation(self.encoder, settings, observations.shape[1:])
        self.optimizer = torch.optim.Adam(self.encoder.parameters(), lr=settings.lr, fused=True)
        self.c = torch.tensor(coefficients(settings.d, settings.coefficients), dtype=torch.float32)
        table = torch.from_numpy(observations)
        self.f = lookup(self.encoder, table, gather, settings.precision)
        self.everywhere = in_precision(on_table(self.encoder, table), settings.precision) if gather else None

    def loss(self, rows: Tensor) -> Tensor:
        """The loss of a batch, rows of shape (4, batch) as `sampled_loss` has them."""
        if self.objective is not None:
            return self.objective(self.f, rows, self.step)
        beta, target = self.settings.beta_at(self.step), self.settings.target_scale
        if self.everywhere is not None:
            return counted_loss(self.everywhere(), rows, self.c, beta, target)
        return sampled_loss(self.f, rows, self.c, beta, target)

    def advance(self) -> Tensor:
        """One step of Adam on a new batch; returns its loss."""
        self.step += 1
        settings = self.settings
        halves = visited(self.data, 2 * settings.batch, self.rng).reshape(2, -1)
        drawn = draw(self.data, settings.batch, settings.gamma, self.rng)
        loss = self.loss(torch.from_numpy(np.stack([*drawn, *halves])))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.param_groups[0]["lr"] = settings.lr_at(self.step)
        self.optimizer.step()
        return loss.detach()

    def save(self, path: str | Path) -> None:
        """Write a checkpoint."""
        tensors = flat("encoder", self.encoder.state_dict()) | adam_state(self.optimizer)
        if self.objective is not None:
            tensors |= flat("objective", self.objective.state_dict())
        write(path, "checkpoint", tensors, {**self.about, "step": self.step, "now": self.rng.bit_generator.state})

    def restore(self, path: str | Path) -> None:
        """Bring everything to where the checkpoint was written."""
        tensors, found = read_checkpoint(path, self.about)
        own = {k.removeprefix("encoder."): v for k, v in tensors.items() if k.startswith("encoder.")}
        try:
            _restore(self.encoder, own)
            if self.objective is not None:
                self.objective.load_state_dict({k: tensors[f"objective.{k}"] for k in self.objective.state_dict()})
            restore_adam(self.optimizer, tensors)
            self.rng.bit_generator.state, self.step = found["now"], int(found["step"])
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise ValueError(f"checkpoint {path} is incomplete, it may be damaged: delete it to begin anew") from error


def warn_of_collapse(data: Data, settings: Settings) -> None:
    """Say which dimensions will vanish (`objective.mean_square`), where the data are few enough to tell beforehand.

    >>> walk = Data(np.eye(2), np.array([[0, 1, 0]]), np.array([2]))  # λ_2 = 2
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     warn_of_collapse(walk, preset("smoke", d=2, gamma=0, target_scale=1.5))
    >>> print(caught[0].message)
    dimension 2 will vanish: λ_2 = 2.000 ≥ beta·target_scale = 1.5; raise beta or target_scale, or ask for d = 1
    """
    if len(data.observations) > KNOWN_UP_TO:
        return
    values, strength = data_spectrum(data, settings.d, settings.gamma)[0], settings.beta * settings.target_scale
    lost = np.flatnonzero(values >= strength) + 1
    if len(lost):
        which = f"dimension {lost[0]}" if len(lost) == 1 else f"dimensions {lost[0]} to {lost[-1]}"
        warnings.warn(
            f"{which} will vanish: λ_{lost[0]} = {values[lost[0] - 1]:.3f} ≥ beta·target_scale = {strength:g}; "
            f"raise beta or target_scale, or ask for d = {lost[0] - 1}",
            CollapsingDimension,
            stacklevel=3,
        )


def _checked(data: Data, settings: Settings, truth: np.ndarray | None) -> np.ndarray:
    """The observations of the data as float32, if they, d and the truth fit together."""
    observations = np.ascontiguousarray(data.observations, dtype=np.float32)
    observations = observations.reshape(len(observations), -1) if observations.ndim == 1 else observations
    bad = ~np.isfinite(observations).all(axis=tuple(range(1, observations.ndim)))
    if bad.any():
        raise ValueError(f"observations must be finite: row {bad.argmax()} is not")
    if len(observations) < settings.d:
        raise ValueError(f"d must not exceed the number of distinct states, {len(observations)}: got {settings.d}")
    if truth is not None and np.shape(truth) != (len(observations), settings.d):
        raise ValueError(f"truth must have shape {(len(observations), settings.d)}, got {np.shape(truth)}")
    return observations


def _check_finite(tensor: Tensor, step: int, checkpoint: str | Path | None) -> None:
    if not tensor.isfinite().all():
        kept = f"; the last good checkpoint is {checkpoint}" if checkpoint and Path(checkpoint).exists() else ""
        what = "loss" if tensor.ndim == 0 else "weights"
        raise FloatingPointError(f"{what} must stay finite, but did not at step {step}: try a smaller lr{kept}")


def _restore(encoder: nn.Module, tensors: dict[str, Tensor]) -> None:
    if any(tensor.dtype != torch.float32 for tensor in tensors.values()):
        raise ValueError("weights must be float32")
    on_meta = next(encoder.parameters()).is_meta
    encoder.load_state_dict(tensors, assign=on_meta)  # the optimiser knows the tensors of an encoder in memory
