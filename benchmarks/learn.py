"""What a training step costs, in ratios that are measured in turn within one run, on one thread.

On a grid, where states recur: the whole step over the bare encoder, forward and backward on the table of states. On a
floor, where they do not: steps in pieces, and in bf16, over one in a single piece.

python benchmarks/learn.py [--env GridRoom] [--obs xy] [--rounds 5] [--steps 100]
python benchmarks/learn.py --env PointRoom [--rounds 5] [--steps 4]
"""

import argparse
import time
from collections.abc import Callable

import gymnasium as gym
import numpy as np
import torch

import lapbook as lb
from lapbook import tables
from lapbook.encoders import build, initialise
from lapbook.settings import preset
from lapbook.training import counted_loss, sampled_loss

FLOOR_BATCH = 8192  # as in the paper


def steppers(data: lb.rollouts.Data, batch: int) -> dict[str, Callable[[], None]]:
    """Functions that take one step at the preset `paper` each, in another way; the first is what others are over."""
    settings = preset("paper", batch=batch)
    encoder = build(settings, data.observations.shape[1:])
    initialise(encoder, settings, torch.Generator().manual_seed(0))
    table, rng = torch.from_numpy(data.observations), np.random.default_rng(0)
    c = torch.tensor(lb.objective.coefficients(settings.d), dtype=torch.float32)
    optimizer = torch.optim.Adam(encoder.parameters(), lr=settings.lr, fused=True)

    def whole_step(loss_of: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[], None]:
        def step() -> None:
            halves = lb.pairs.visited(data, 2 * batch, rng).reshape(2, -1)
            rows = np.stack([*lb.pairs.draw(data, batch, settings.gamma, rng), *halves])
            loss = loss_of(torch.from_numpy(rows))
            optimizer.zero_grad()
            loss.backward()
            assert loss.isfinite()
            optimizer.step()

        return step

    def sampled(f: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[], None]:
        return whole_step(lambda rows: sampled_loss(f, rows, c, settings.beta, settings.target_scale))

    if len(table) > 4 * batch:
        return {
            "in one piece": sampled(lambda rows: encoder(table[rows])),
            "in pieces": sampled(tables.lookup(encoder, table, gather=False)),
            "in pieces, bf16": sampled(tables.lookup(encoder, table, gather=False, precision="bf16")),
        }
    everywhere, some = tables.on_table(encoder, table), torch.randn(len(table), settings.d)

    def bare() -> None:
        optimizer.zero_grad()
        everywhere().backward(some)

    return {
        "bare encoder": bare,
        "counted": whole_step(lambda rows: counted_loss(everywhere(), rows, c, settings.beta, settings.target_scale)),
        "gathered": sampled(tables.lookup(encoder, table, gather=True)),
        "every row": sampled(lambda rows: encoder(table[rows])),
    }


def main() -> None:
    """Print milliseconds a step and the ratio to the first way, median over rounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", default="GridRoom")
    parser.add_argument("--obs", default="xy")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, help="in a round: 100 on a grid, 4 on a floor")
    given = parser.parse_args()
    torch.set_num_threads(1)
    floor = given.env.startswith("Point")
    env = f"lapbook/{given.env}-v0"
    data = lb.recorded(given.env) if floor else lb.collect(gym.make(env, obs=given.obs), rng=0)
    number = given.steps or (4 if floor else 100)
    ways = steppers(data, FLOOR_BATCH if floor else preset("paper").batch)
    taken: dict[str, list[float]] = {way: [] for way in ways}
    for round_ in range(given.rounds + 1):
        for way, step in ways.items():
            start = time.perf_counter()
            for _ in range(number if round_ else 1):
                step()
            if round_:  # the first one warms up
                taken[way].append((time.perf_counter() - start) / number)
    first = np.array(next(iter(taken.values())))
    print(f"{given.env} {given.obs}, one thread, {number} steps a round, median of {given.rounds} rounds")
    for way, seconds in taken.items():
        print(
            f"{way:<16} {1e3 * np.median(seconds):8.2f} ms   {np.median(np.array(seconds) / first):5.2f} of the first"
        )


if __name__ == "__main__":
    main()
