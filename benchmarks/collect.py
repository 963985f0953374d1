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


def batch(envs: gym.vector.VectorEnv, length: int) -> float:
    """Transitions per second of `collect`."""
    start = time.perf_counter()
    lb.collect(envs, length, rng=0)
    return envs.num_envs * length / (time.perf_counter() - start)


def main() -> None:
    """Print one line for each environment."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--point-transitions", type=float, default=1e6)
    arguments = parser.parse_args()
    balls = int(arguments.point_transitions / 500)
    sizes = {"GridRoom": (2000, 50), "GridMaze": (2000, 50), "PointRoom": (balls, 500), "PointMaze": (balls, 500)}
    print(f"{'environment':<12} {'loop /s':>10} {'batch /s':>12} {'ratio':>7} {'transitions':>12} {'seconds':>8}")
    for name, (number, length) in sizes.items():
        env = gym.make(f"lapbook/{name}-v0")
        envs = gym.make_vec(f"lapbook/{name}-v0", num_envs=number)
        slow, fast = loop(env, 5000), batch(envs, length)
        total = number * length
        print(f"{name:<12} {slow:>10,.0f} {fast:>12,.0f} {fast / slow:>7.0f} {total:>12,} {total / fast:>8.2f}")
        env.close()
        envs.close()


if __name__ == "__main__":
    main()
