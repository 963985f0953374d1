"""Ten smallest Laplacian eigenvectors of random maps: lapbook against dense numpy and scipy's eigsh with its defaults.

    python benchmarks/spectrum.py [--sizes 1e3 1e4 1e5 1e6] [--kind rooms maze] [--patience 120]

All in one run, so that the ratios hold on a noisy machine. A rival that takes longer than `--patience` seconds is
stopped and shown as "> seconds", one that fails as "failed"; larger sizes are then not tried ("—"). Times of lapbook
are the best of three runs up to 5e5 states, all others are single runs.
"""

import argparse
import multiprocessing
import resource
import time
import warnings
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh

from lapbook import layouts, spectrum

D = 10


def smallest_magnitude(L: sp.csr_array) -> None:
    """scipy's eigsh asked for the small end, all else by default."""
    eigsh(L, D, which="SM")


def dense(L: sp.csr_array) -> None:
    """All eigenvectors of the full matrix."""
    np.linalg.eigh(L.toarray())


def seconds(function: Callable[..., object], *arguments: object, repeat: int = 1) -> float:
    """The shortest of `repeat` runs."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        function(*arguments)
        times.append(time.perf_counter() - start)
    return min(times)


def _report(queue: "multiprocessing.Queue[float]", function: Callable[..., object], L: sp.csr_array) -> None:
    queue.put(seconds(function, L))


def limited(function: Callable[..., object], L: sp.csr_array, patience: float) -> float | str:
    """Seconds of one run in a process of its own, or what happened instead."""
    queue: multiprocessing.Queue[float] = multiprocessing.Queue()
    process = multiprocessing.Process(target=_report, args=(queue, function, L))
    process.start()
    process.join(patience)
    if process.is_alive():
        process.kill()
        process.join()
        return f"> {patience:.0f}"
    return queue.get() if process.exitcode == 0 else "failed"


def make(kind: str, n: int) -> layouts.Layout:
    """A random map with about n states."""
    side = max(2, round((n / (2 if kind == "maze" else 17)) ** 0.5))
    return (layouts.maze if kind == "maze" else layouts.rooms)(side, side, rng=0)


def main() -> None:
    """Print one table for each kind of map."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", type=float, default=[1e3, 1e4, 1e5, 1e6])
    parser.add_argument("--kind", nargs="+", default=["rooms", "maze"], choices=["rooms", "maze"])
    parser.add_argument("--patience", type=float, default=120, help="seconds allowed for one run of a rival")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", spectrum.CoincidentEigenvalues)
    for kind in arguments.kind:
        print(f"\n{kind}: {D} eigenvectors, seconds (times lapbook's)")
        print(f"{'states':>9} {'lapbook':>9} {'eigsh SM':>20} {'dense':>20} {'residual':>9} {'exponent':>8}")
        gone: set[Callable[..., object]] = set()
        before = None
        for n in arguments.sizes:
            layout = make(kind, int(n))
            L = spectrum.laplacian(layout)
            found = spectrum.eigenvectors(layout, D)
            residual = np.linalg.norm(L @ found.vectors - found.vectors * found.values, axis=0).max()
            ours = seconds(spectrum.eigenvectors, layout, D, repeat=1 if n > 5e5 else 3)
            cells = []
            for rival in (smallest_magnitude, dense):
                if rival in gone or (rival is dense and layout.n > 2e4):  # 1e5 states would need 80 GB
                    cells.append("—")
                    continue
                taken = limited(rival, L, arguments.patience)
                if isinstance(taken, str):
                    gone.add(rival)
                    more = f" (> {arguments.patience / ours:,.0f}×)" if taken.startswith(">") else ""
                    cells.append(taken + more)
                else:
                    cells.append(f"{taken:.2f} ({taken / ours:,.1f}×)")
            exponent = np.log(ours / before[1]) / np.log(layout.n / before[0]) if before else np.nan
            before = layout.n, ours
            print(
                f"{layout.n:>9,} {ours:>9.3f} {cells[0]:>20} {cells[1]:>20} {residual:>9.0e} {exponent:>8.2f}",
                flush=True,
            )
    print(f"\npeak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f} GiB")


if __name__ == "__main__":
    main()
