"""Transitions per second: the batched environments against a loop over `env.step`, in one run.

python benchmarks/collect.py [--point-transitions 1e6]
"""

import argparse
import time

import gymnasium as gym

import lapbook as lb


def loop(env: gym.Env, steps: int) -> float:
    """Transitions per second of the plain loop."""
    env.reset(seed=0)
    start = time.perf_counter()
    for _ in range(steps):
        env.step(env.action_space.sample())
    return steps / (time.perf_counter() - start)


def batch(env: gym.Env, transitions: int, length: int) -> float:
    """Transitions per second of `collect`."""
    start = time.perf_counter()
    lb.collect(env, transitions, length, rng=0)
    return transitions / (time.perf_counter() - start)


def main() -> None:
    """Print one line for each environment."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--point-transitions", type=float, default=1e6)
    arguments = parser.parse_args()
    point = (int(arguments.point_transitions), 500)
    sizes = {"GridRoom": (100_000, 50), "GridMaze": (100_000, 50), "PointRoom": point, "PointMaze": point}
    print(f"{'environment':<12} {'loop /s':>10} {'batch /s':>12} {'ratio':>7} {'transitions':>12} {'seconds':>8}")
    for name, (total, length) in sizes.items():
        env = gym.make(f"lapbook/{name}-v0")
        slow, fast = loop(env, 5000), batch(env, total, length)
        print(f"{name:<12} {slow:>10,.0f} {fast:>12,.0f} {fast / slow:>7.0f} {total:>12,} {total / fast:>8.2f}")
        env.close()


if __name__ == "__main__":
    main()
