"""What the paper printed: numbers to compare with, each with the place it comes from."""

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

# Table 6: SimGT on GridRoom for three groups of coefficients; group 1 has increasing, group 2 decreasing differences.
TABLE_6 = {"convex": 0.9905, "concave": 0.9653, "paper": 0.9913}
