"""Put this folder on PYTHONPATH to see how the book goes where PyBullet is not installed."""

raise ImportError("PyBullet is hidden by tools/without_pybullet")
