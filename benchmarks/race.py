"""Steps and seconds to SimGT 0.95 and 0.98 for all methods on the same data, and their ratios, in one run.

python benchmarks/race.py [--env GridRoom] [--obs xy] [--seed 4] [--methods gd+ritz allo omm ggd ggd-literal gd]

Seconds are those of this process, training and the turn of gd+ritz, without evaluation. A method that is not there
after the steps of its preset has a bound, as in `> 5000 (> 8.3)`; give the paper's own penalty more with
`--literal-steps`. The baseline `gd` is not turned and has no reason ever to be there.
"""

import argparse
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from lapbook.reproduction import race

LEVELS = (0.95, 0.98)


def reached(curve: dict, level: float) -> tuple[bool, np.ndarray]:
    """Whether SimGT ever is at the level, and steps and seconds until it is for the first time, else all of them."""
    there = np.flatnonzero(np.array(curve["sim_gt"]) >= level)
    at = there[0] if len(there) else -1
    return len(there) > 0, np.array([curve["steps"][at], curve["seconds"][at]], dtype=float)


def cells(there: bool, numbers: np.ndarray, best: np.ndarray | None) -> list[str]:
    """Each number and how many times the best it is; bounds from below for a method that is not there.

    >>> cells(False, np.array([5000.0, 90.0]), best=np.array([600.0, 10.0]))
    ['> 5000 (> 8.3)', '> 90 (> 9.0)']
    """
    above = "" if there else "> "
    ratios = [""] * 2 if best is None else [f" ({above}{ratio:.1f})" for ratio in numbers / best]
    return [f"{above}{number:.0f}{ratio}" for number, ratio in zip(numbers, ratios, strict=True)]


def main() -> None:
    """Run the methods one after the other and print what they needed, as multiples of the best."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", default="GridRoom", choices=race.MAPS)
    parser.add_argument("--obs", default="xy", choices=("xy", "image"))
    parser.add_argument("--seed", type=int, default=4)
    parser.add_argument("--methods", nargs="+", default=["gd+ritz", "allo", "omm", "ggd", "ggd-literal", "gd"])
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
        there = [numbers for arrived, numbers in needed.values() if arrived]
        best = np.min(there, axis=0) if there else None
        print(f"\n{f'to SimGT {level}':<14}{'steps (times the best)':>26}{'seconds (times the best)':>28}")
        for method, (arrived, numbers) in needed.items():
            steps, seconds = cells(arrived, numbers, best)
            print(f"{method:<14}{steps:>26}{seconds:>28}")


if __name__ == "__main__":
    main()
