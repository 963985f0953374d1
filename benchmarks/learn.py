"""Training steps per second: encoding each distinct state once, against the plain ways, interleaved in one run.

python benchmarks/learn.py [--env GridRoom] [--obs xy] [--threads 1] [--rounds 5] [--steps 40]
"""

import argparse
import time
from collections.abc import Callable

import gymnasium as gym
import numpy as np
import torch

import lapbook as lb
from lapbook.encoders import build, initialise
from lapbook.tables import lookup
from lapbook.training import preset, sampled_loss


def stepper(kind: str, data: lb.rollouts.Data) -> Callable[[], None]:
    """A function that takes one gradient step at the preset `paper`, encoding in that way."""
    settings = preset("paper")
    encoder = build(settings, data.observations.shape[1:])
    initialise(encoder, settings, torch.Generator().manual_seed(0))
    table, rng = torch.from_numpy(data.observations), np.random.default_rng(0)
    c = torch.tensor(lb.objective.coefficients(settings.d), dtype=torch.float32)
    optimizer = torch.optim.Adam(encoder.parameters(), lr=settings.lr, fused=True)

    def four_forwards(rows: torch.Tensor) -> torch.Tensor:
        """s, s' and the two half-batches one after the other, as public code has it."""
        return torch.cat([encoder(table[part]) for part in rows.chunk(4)])

    f = four_forwards if kind == "four forwards" else lookup(encoder, table, gather=kind == "gather")

    def step() -> None:
        halves = lb.pairs.visited(data, 2 * settings.batch, rng).reshape(2, -1)
        rows = np.stack([*lb.pairs.draw(data, settings.batch, settings.gamma, rng), *halves])
        loss = sampled_loss(f, torch.from_numpy(rows), c, settings.beta, settings.target_scale)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def main() -> None:
    """Print steps per second and the ratio to the plain way, median over rounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", default="GridRoom")
    parser.add_argument("--obs", default="xy")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=40, help="of gathering in a round; a sixth of it the plain ways")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    data = lb.collect(gym.make(f"lapbook/{given.env}-v0", obs=given.obs), rng=0)
    kinds = ("gather", "one forward", "four forwards")
    steppers = {kind: stepper(kind, data) for kind in kinds}
    rates: dict[str, list[float]] = {kind: [] for kind in kinds}
    for step in steppers.values():
        step()
    for _ in range(given.rounds):
        for kind, step in steppers.items():
            number = given.steps if kind == "gather" else -(-given.steps // 6)
            start = time.perf_counter()
            for _ in range(number):
                step()
            rates[kind].append(number / (time.perf_counter() - start))
    print(f"{given.env} {given.obs}, {given.threads} thread(s), steps per second, median of {given.rounds} rounds")
    for kind in kinds:
        ratio = np.median(np.array(rates["gather"]) / np.array(rates[kind]))
        print(f"{kind:<14} {np.median(rates[kind]):8.1f}   gather is {ratio:.1f} times as fast")


if __name__ == "__main__":
    main()
