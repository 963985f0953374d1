"""What the paper printed: its numbers, its settings and its claims, each with the place it comes from.

Figures, tables and theorems are numbered in the order of the paper, appendix included. Our copy has no pictures:
where a claim rests on one, its caption and the text around it are all there is.
"""

import tomllib
from pathlib import Path
from typing import Any, NamedTuple

# Table 1: SimGT between learned representation and ground truth, mean of 3 runs.
TABLE_1 = {
    "gd": {
        ("GridRoom", "xy"): 0.239,
        ("GridMaze", "xy"): 0.220,
        ("GridRoom", "image"): 0.310,
        ("GridMaze", "image"): 0.229,
        ("PointRoom", "xy"): 0.239,
        ("PointMaze", "xy"): 0.255,
    },
    "ggd": {
        ("GridRoom", "xy"): 0.991,
        ("GridMaze", "xy"): 0.962,
        ("GridRoom", "image"): 0.985,
        ("GridMaze", "image"): 0.984,
        ("PointRoom", "xy"): 0.963,
        ("PointMaze", "xy"): 0.779,
    },
}

# Tables 2 and 3: the hidden layers; units, and channels, kernel, stride, padding. All are followed by ReLU.
TABLE_2 = [["Linear", 256, "ReLU"]] * 3
TABLE_3 = [["Conv2D", [16, 4, 2, 2], "ReLU"], ["Conv2D", [16, 4, 2, 2], "ReLU"], ["Conv2D", [16, 4, 1, 0], "ReLU"]]

# Tables 4 and 5, under the names of `dqn.Settings`; both also say Adam, and one gradient step after each step.
TABLE_4 = {
    "steps": 100_000, "length": 50, "lr": 1e-3, "starts": 5000, "update_every": 50, "update_rate": 0.05,
    "memory": 100_000, "batch": 128, "gamma": 0,
}  # fmt: skip
PRINTED = len(TABLE_4) + 2  # Adam and the gradient step among them
TABLE_5 = TABLE_4 | {"steps": 200_000, "length": 150, "gamma": 0.99}

# Table 6: SimGT on GridRoom for three groups of coefficients; group 1 has increasing, group 2 decreasing differences.
TABLE_6 = {"convex": 0.9905, "concave": 0.9653, "paper": 0.9913}

# Appendix E.1, under the names of `settings.Settings`; on PointRoom and PointMaze the batch is larger.
TRAINING = {"steps": 200_000, "d": 10, "batch": 1024, "lr": 1e-3, "beta": 1.0, "gamma": 0.9}
BATCH_ON_FLOORS = 8192
TRANSITIONS = {"GridRoom": 100_000, "GridMaze": 100_000, "PointRoom": 1_000_000, "PointMaze": 1_000_000}

# Appendix D.
STATES = {"GridRoom": 271, "GridMaze": 161}
FLOORS = {"PointRoom": [20.0, 20.0], "PointMaze": [18.0, 18.0]}


TEXTS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("claims.toml").read_text(encoding="utf-8"))
"""The prose of the ledger; this module has the claims in it, `ledger.remarks` what is said of them."""
KINDS: dict[str, str] = TEXTS["kinds"]


class Claim(NamedTuple):
    """Something that the paper says."""

    place: str
    says: str
    printed: str
    """The number or the words that stand for it there."""
    kind: str = "found"
    """A key of KINDS."""


_NAMES = {"gd": "baseline", "ggd": "ours"}
_GROUPS = {"convex": "group 1", "concave": "group 2", "paper": "default"}
CLAIMS: dict[str, Claim] = {key: Claim(**claim) for key, claim in TEXTS["claims"].items()}
CLAIMS |= {
    f"table-1-{method}-{env}-{obs}": Claim(
        f"Table 1, {env}{' (image)' if obs == 'image' else ''}, {_NAMES[method]}",
        TEXTS["tables"][f"table-1-{method}"],
        f"{TABLE_1[method][env, obs]:.3f}",
    )
    for env, obs in TABLE_1["ggd"]
    for method in TABLE_1
}
CLAIMS |= {
    f"table-6-{group}": Claim(f"Table 6, {_GROUPS[group]}", TEXTS["tables"]["table-6"], f"{value:.4f}")
    for group, value in TABLE_6.items()
}
