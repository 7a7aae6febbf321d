"""CCA of 100,000 × (1,024, 300) float32: speed beside scikit-learn, cost beside the products it needs.

Run ``python benchmarks/cca_speed.py``. The three matrix products AᵀA, BᵀB and AᵀB in float32 are the work that no
closed form can avoid; scikit-learn's iterative ``CCA`` is timed on fewer rows and extrapolated in proportion to their
number, by the lowest cost of a row that was seen: the number of its iterations depends on the draw, so that a line
through two sizes may fall. Peak memory is that of a process which makes the input and fits. The command exits with 1
when a bar is missed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time

import numpy as np
from sklearn.cross_decomposition import CCA as IterativeCCA

from diptych.benchmark.peak_memory import peak_resident_bytes
from diptych.models import CCA

PEER_BAR, PRODUCTS_BAR, MEMORY_BAR = 10.0, 2.0, 1.5
COMPONENTS = 10


def make_views(rows: int, image_width: int, text_width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return two float32 views that share ten latent directions, made block by block."""
    rng = np.random.default_rng(0)
    loadings = [rng.standard_normal((COMPONENTS, width), dtype=np.float32) for width in (image_width, text_width)]
    views = tuple(np.empty((rows, width), dtype=np.float32) for width in (image_width, text_width))
    for start in range(0, rows, 4096):
        stop = min(rows, start + 4096)
        latent = rng.standard_normal((stop - start, COMPONENTS), dtype=np.float32)
        for view, loading in zip(views, loadings, strict=True):
            rng.standard_normal(out=view[start:stop], dtype=np.float32)
            view[start:stop] += latent @ loading
    return views


def best_of(run, repeats: int = 3) -> float:
    """Return the seconds of the fastest of a few runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def our_seconds(images: np.ndarray, texts: np.ndarray) -> tuple[float, float]:
    """Return the seconds of our fit and of the three products, which are timed before and after it."""

    def multiply() -> None:
        images.T @ images, texts.T @ texts, images.T @ texts

    before = best_of(multiply)
    ours = best_of(lambda: CCA(n_components=COMPONENTS).fit(images, texts))
    return ours, min(before, best_of(multiply))


def peer_seconds(rows: int, sizes: list[int], widths: tuple[int, int]) -> tuple[float, list[float]]:
    """Return scikit-learn's time extrapolated to ``rows``, and the times it is extrapolated from."""
    times = []
    for size in sizes:
        images, texts = make_views(size, *widths)
        times.append(best_of(lambda a=images, b=texts: IterativeCCA(n_components=COMPONENTS).fit(a, b), repeats=1))
    return rows * min(spent / size for size, spent in zip(sizes, times, strict=True)), times


def peak_bytes(rows: int, widths: tuple[int, int], queue: multiprocessing.Queue) -> None:
    """Report the peak memory of this process beyond what it had before the data."""
    before = peak_resident_bytes()
    images, texts = make_views(rows, *widths)
    CCA(n_components=COMPONENTS).fit(images, texts)
    queue.put(peak_resident_bytes() - before)


def measured_peak(rows: int, widths: tuple[int, int]) -> int:
    """Run the fit in a fresh process and return its peak memory, the input included."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=peak_bytes, args=(rows, widths, queue))
    process.start()
    peak = queue.get()
    process.join()
    return int(peak)


def main() -> int:
    """Measure, print a table and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--peer-rows", type=int, nargs="+", default=[2_000, 4_000, 8_000])
    options = parser.parse_args()
    widths = (1024, 300)
    input_bytes = options.rows * sum(widths) * 4

    peak = measured_peak(options.rows, widths)
    ours, products = our_seconds(*make_views(options.rows, *widths))
    peer, peer_times = peer_seconds(options.rows, options.peer_rows, widths)

    small = make_views(3_000, 40, 30)
    agreement = np.abs(
        CCA(n_components=2, regularization=0).fit(*small).correlations_
        - [np.corrcoef(*pair)[0, 1] for pair in zip(*_peer_scores(small), strict=True)]
    ).max()

    shown = ", ".join(f"{size}: {spent:.1f} s" for size, spent in zip(options.peer_rows, peer_times, strict=True))
    rows = [
        ("ours", f"{ours:.2f} s", f"{COMPONENTS} components"),
        ("three products in float32", f"{products:.2f} s", f"{ours / products:.2f}x (bar {PRODUCTS_BAR:g}x)"),
        ("scikit-learn, extrapolated", f"{peer:.0f} s", f"{peer / ours:.0f}x (bar {PEER_BAR:g}x), from {shown}"),
        ("peak memory with the input", f"{peak / 2**20:.0f} MiB", f"{peak / input_bytes:.2f}x (bar {MEMORY_BAR:g}x)"),
        ("difference of correlations", f"{agreement:.1e}", "from scikit-learn's, 3,000 x (40, 30)"),
    ]
    print(f"CCA of {options.rows} x {widths} float32, {input_bytes / 2**20:.0f} MiB")
    for name, value, note in rows:
        print(f"{name:<30}{value:>12}  {note}")
    bars = {
        "products": ours <= PRODUCTS_BAR * products,
        "scikit-learn": peer >= PEER_BAR * ours,
        "memory": peak <= MEMORY_BAR * input_bytes,
        "agreement": agreement < 1e-3,
    }
    missed = [name for name, met in bars.items() if not met]
    print(f"missed: {', '.join(missed)}" if missed else "all bars met")
    return 1 if missed else 0


def _peer_scores(views: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    model = IterativeCCA(n_components=2, max_iter=5000, tol=1e-10).fit(*views)
    scores = model.transform(*views)
    return scores[0].T, scores[1].T


if __name__ == "__main__":
    sys.exit(main())
