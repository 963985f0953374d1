"""What the paper printed: its numbers, its settings and its claims, each with the place it comes from.

Figures, tables and theorems are numbered in the order of the paper, appendix included. Our copy has no pictures:
where a claim rests on one, its caption and the text around it are all there is.
"""

from typing import NamedTuple

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


KINDS = {
    "found": "what the paper found by experiment",
    "mathematics": "mathematics",
    "printed": "settings and maps, entered or built as printed",
    "shown": "shown without a claim",
}


class Claim(NamedTuple):
    """Something that the paper says."""

    place: str
    says: str
    printed: str
    """The number or the words that stand for it there."""
    kind: str = "found"
    """A key of KINDS."""


_PICTURE, _LOST = "a picture, no number", "in a picture"
_LIKE = "all ten dimensions of ours look like the truth, the baseline's do not."
_SCALES = "Our options act on many time scales; the baseline's are all short."
_BEATS = "our best dimension beats the baseline, (x, y) and no shaping"
CLAIMS: dict[str, Claim] = {
    "eq-2": Claim(
        "Equation 2",
        "Graph drawing has infinitely many minimisers: every rotation of the eigenvectors.",
        "stated",
        "mathematics",
    ),
    "theorem-1": Claim(
        "Theorem 1",
        "With c₁ > … > c_d > 0 and λ₁ < … < λ_d the eigenvectors are the only minimiser in their span, up to signs; "
        "the minimum is Σ cᵢλᵢ.",
        "proved",
        "mathematics",
    ),
    "lemma-1": Claim(
        "Lemma 1", "Opposite blocks of the squared entries of a rotation have the same sum.", "proved", "mathematics"
    ),
    "theorem-2": Claim("Theorem 2", "Theorem 1 holds for functions on a continuum.", "proved", "mathematics"),
    "lemma-2": Claim(
        "Lemma 2", "The squared inner products of two orthonormal sets sum to 1 both ways.", "proved", "mathematics"
    ),
    "lemma-3": Claim("Lemma 3", "Lemma 1 for functions.", "proved", "mathematics"),
    "loss": Claim(
        "Equations 5 to 8",
        "Objective and constraints are expectations over sampled transitions and states.",
        "derived",
        "mathematics",
    ),
    "fig-1": Claim(
        "Figure 1",
        "In continuous control dimension 2 of ours is very similar to the truth; the baseline's diverges.",
        _PICTURE,
    ),
    "fig-2": Claim(
        "Figure 2", "Four environments, described in appendix D.", "271 and 161 states; 20×20, 18×18", "printed"
    ),
    "truth": Claim(
        "Section 4.1",
        "Finite differences, 5-point stencil, give the truth on floors.",
        "spacing not given",
        "mathematics",
    ),
    "fig-3": Claim("Figure 3", f"GridMaze: {_LIKE}", _PICTURE),
    "fig-4": Claim("Figure 4", f"PointRoom: {_LIKE}", _PICTURE),
    "fig-5-ours": Claim(
        "Figure 5(a, c)", "GridRoom: three runs of ours agree, in dimensions 1 to 3 and by SimRUN.", _PICTURE
    ),
    "fig-5-baseline": Claim("Figure 5(b, d)", "GridRoom: three runs of the baseline differ.", _PICTURE),
    "fig-6-GridRoom": Claim("Figure 6, GridRoom", _SCALES, _PICTURE),
    "fig-6-GridMaze": Claim("Figure 6, GridMaze", _SCALES, _PICTURE),
    "fig-7-rooms": Claim(
        "Figure 7(a)", "Sixteen rooms, numbered so that consecutive ones are neighbours.", "16 rooms", "printed"
    ),
    "fig-7-far": Claim(
        "Figure 7(b, c, d)", "Far rooms are reached sooner with our options than the baseline's.", _PICTURE
    ),
    "fig-7-near": Claim(
        "Figure 7(d)", "With our options far rooms take a similar number of steps as near ones.", "“similar”"
    ),
    "fig-8-a": Claim("Figure 8(a)", "GridRoom: lower dimensions of ours shape the reward better.", _PICTURE),
    "fig-8-b": Claim("Figure 8(b)", "GridMaze: lower dimensions of ours shape the reward better.", _PICTURE),
    "fig-8-c": Claim("Figure 8(c)", f"GridRoom: {_BEATS}.", "“significantly”"),
    "fig-8-d": Claim("Figure 8(d)", f"GridMaze: {_BEATS}.", "“significantly”"),
    "fig-8-deep": Claim(
        "Figure 8(c, d), deep agents", "The same with deep Q-learning, as the paper has it.", "“significantly”"
    ),
    "fig-9": Claim(
        "Figure 9",
        "During the whole training the uᵢ lie in the span of the first ten eigenvectors.",
        "cosine distance “close to 0”",
    ),
    "fig-10": Claim("Figure 10", "The ten smallest eigenvalues of both maps are distinct.", _PICTURE, "printed"),
    "fig-11-a": Claim(
        "Figure 11(a)", "Group 1 has increasing first differences, group 2 decreasing ones.", _LOST, "printed"
    ),
    "fig-11-b": Claim("Figure 11(b)", "GridMaze: both other groups are as good as the default.", _PICTURE),
    "fig-12": Claim("Figure 12", "Goals spread over each map.", _LOST, "printed"),
    "fig-13": Claim("Figure 13", "Shaping with each dimension of the baseline, “for completeness”.", _PICTURE, "shown"),
    "fig-14": Claim("Figure 14", "Our best dimension beats all ten of ours together, on both maps.", _PICTURE),
    "fig-15": Claim("Figure 15", f"GridRoom: {_LIKE}", _PICTURE),
    "fig-16": Claim("Figure 16", f"PointMaze: {_LIKE}", _PICTURE),
    "fig-17": Claim("Figure 17", "GridRoom: three runs of ours agree in all ten dimensions.", _PICTURE),
    "fig-18": Claim("Figure 18", "GridRoom: three runs of the baseline differ in all ten dimensions.", _PICTURE),
    "fig-19": Claim("Figure 19", "Options on GridRoom, drawn for each representation.", _PICTURE, "shown"),
    "fig-20": Claim("Figure 20", "More options on GridRoom.", _PICTURE, "shown"),
    "table-2": Claim("Table 2", "The network for positions.", "3 × Linear 256, ReLU", "printed"),
    "table-3": Claim("Table 3", "The network for images.", "3 × Conv2D, 16 channels, ReLU", "printed"),
    "table-4": Claim("Table 4", "Deep Q-learning of options.", f"{PRINTED} settings", "printed"),
    "table-5": Claim("Table 5", "Deep Q-learning with shaped rewards.", f"{PRINTED} settings", "printed"),
    "training": Claim(
        "Appendix E.1", "Data and training of the representations.", "200,000 steps, batch 1,024, …", "printed"
    ),
}
_NAMES = {"gd": "baseline", "ggd": "ours"}
_GROUPS = {"convex": "group 1", "concave": "group 2", "paper": "default"}
CLAIMS |= {
    f"table-1-{method}-{env}-{obs}": Claim(
        f"Table 1, {env}{' (image)' if obs == 'image' else ''}, {_NAMES[method]}",
        "SimGT, far from the truth." if method == "gd" else "SimGT, close to the truth.",
        f"{TABLE_1[method][env, obs]:.3f}",
    )
    for env, obs in TABLE_1["ggd"]
    for method in TABLE_1
}
CLAIMS |= {
    f"table-6-{group}": Claim(f"Table 6, {_GROUPS[group]}", "GridRoom: SimGT with these coefficients.", f"{value:.4f}")
    for group, value in TABLE_6.items()
}
