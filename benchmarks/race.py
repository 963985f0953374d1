"""Steps and seconds to SimGT 0.95 and 0.98 for all methods on the same data, and their ratios, in one run.

python benchmarks/race.py [--env GridRoom] [--obs xy] [--seed 4] [--methods gd+ritz allo omm ggd ggd-literal]

Seconds are those of this process, training and the turn of gd+ritz, without evaluation. A method that is not there
after the steps of its preset has `-`; give the paper's own penalty more with `--literal-steps`.
"""

import argparse
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from lapbook.experiments import race

LEVELS = (0.95, 0.98)


def reached(curve: dict, level: float) -> tuple[float, float]:
    """Steps and seconds until SimGT is at the level for the first time; infinite if it never is."""
    there = np.flatnonzero(np.array(curve["sim_gt"]) >= level)
    return (curve["steps"][there[0]], curve["seconds"][there[0]]) if len(there) else (np.inf, np.inf)


def main() -> None:
    """Run the methods one after the other and print what they needed, as multiples of the best."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", default="GridRoom", choices=race.MAPS)
    parser.add_argument("--obs", default="xy", choices=("xy", "image"))
    parser.add_argument("--seed", type=int, default=4)
    parser.add_argument("--methods", nargs="+", default=["gd+ritz", "allo", "omm", "ggd", "ggd-literal"])
    parser.add_argument("--literal-steps", type=int, default=5_000, help="for ggd-literal; the paper takes 200,000")
    given = parser.parse_args()
    torch.set_num_threads(1)
    usual = race.training_settings
    race.training_settings = lambda setting: (
        replace(usual(setting), steps=given.literal_steps) if setting["method"] == "ggd-literal" else usual(setting)
    )
    found = {}
    for method in given.methods:
        setting = {"env": given.env, "obs": given.obs, "method": method, "preset": "fast", "beta": 1.0}
        setting |= {"d": 10, "seed": given.seed}
        with tempfile.TemporaryDirectory() as scratch, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of dimensions that will vanish: the table shows it
            metrics, _, _ = race.run(setting, Path(scratch), lambda *report: None, np.inf)
        found[method] = metrics
        print(f"{method:<12} SimGT {metrics['sim_gt']:.3f}, ceiling of the data {metrics['ceiling']:.3f}", flush=True)
    for level in LEVELS:
        needed = {method: reached(metrics["curve"], level) for method, metrics in found.items()}
        best = np.min(list(needed.values()), axis=0)
        print(f"\nto SimGT {level}:   steps (times the best)   seconds (times the best)")
        for method, numbers in needed.items():
            cells = [
                f"{n:>8.0f} ({n / b:4.1f})" if np.isfinite(n) else "       -       "
                for n, b in zip(numbers, best, strict=True)
            ]
            print(f"{method:<12}  " + "          ".join(cells))


if __name__ == "__main__":
    main()
