"""lapbook: the Laplacian representation in reinforcement learning, from the theorem to the options.

Modules are imported when first used, so that `import lapbook` is quick and the tabular parts need neither torch nor
PyBullet.
"""

from importlib import import_module
from typing import Any

from lapbook import envs

__version__ = "0.1.0"

_MODULES = {
    "advice", "descent", "diagnosis", "dqn", "explorers", "floors", "layouts", "metrics", "objective", "options",
    "pairs", "perturbation", "plots", "qlearning", "rayleigh", "reproduction", "results", "rivals", "rollouts",
    "settings", "shaping", "spectrum", "statistics", "tables", "training",
}  # fmt: skip
_NAMES = {
    "Layout": "layouts",
    "Representation": "training",
    "advise": "advice",
    "collect": "rollouts",
    "learn": "training",
    "recorded": "results",
    "ritz": "rayleigh",
    "sim_gt": "metrics",
    "sim_run": "metrics",
    "span_distance": "metrics",
}

envs.register()


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"lapbook.{name}")
    if name in _NAMES:
        return getattr(import_module(f"lapbook.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'lapbook' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({"envs", "__version__"} | _MODULES | _NAMES.keys())
