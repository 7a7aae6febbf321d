"""CCA of 100,000 × (1,024, 300) float32: speed beside scikit-learn, cost beside the products it needs.

    python -m bench.cca_speed [--quick] [--rows N]

The three matrix products AᵀA, BᵀB and AᵀB in float32 are the work that no closed form can avoid; they are timed in
turns with our fit. scikit-learn's iterative ``CCA`` is timed on four smaller numbers of rows and extrapolated in
proportion to their number, by the lowest cost of a row that was seen: the number of its iterations depends on the draw,
so that a line through the sizes may fall. Times are of the processor, in one thread. Peak memory is that of a process
which makes the input and fits. The command exits with 1 when a bar is missed.
"""

from __future__ import annotations

import multiprocessing
import sys
import time

import numpy as np
from sklearn.cross_decomposition import CCA as IterativeCCA

from bench.speed_report import SpeedReport, in_turns, speed_parser
from diptych.benchmark.peak_memory import peak_resident_bytes
from diptych.models import CCA

PEER_BAR, MEMORY_BAR = 10.0, 1.5
# Beside few rows the decompositions count, which do not grow with them.
PRODUCTS_BARS = {"quick": 2.0, "full": 1.25}
COMPONENTS, WIDTHS, REPEATS = 10, (1024, 300), 5
UNIT = "processor s"


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


def peer_seconds(rows: int, sizes: tuple[int, ...]) -> float:
    """Return scikit-learn's time extrapolated to ``rows``."""
    costs = []
    for size in sizes:
        images, texts = make_views(size, *WIDTHS)
        start = time.process_time()
        IterativeCCA(n_components=COMPONENTS).fit(images, texts)
        costs.append((time.process_time() - start) / size)
    return rows * min(costs)


def peak_bytes(rows: int, queue: multiprocessing.Queue) -> None:
    """Report the peak memory of this process beyond what it had before the data."""
    before = peak_resident_bytes()
    images, texts = make_views(rows, *WIDTHS)
    CCA(n_components=COMPONENTS).fit(images, texts)
    queue.put(peak_resident_bytes() - before)


def measured_peak(rows: int) -> int:
    """Run the fit in a fresh process and return its peak memory, the input included."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=peak_bytes, args=(rows, queue))
    process.start()
    peak = queue.get()
    process.join()
    return int(peak)


def main() -> int:
    """Measure, compare and return the exit code."""
    parser = speed_parser(__doc__)
    parser.add_argument("--rows", type=int)
    options = parser.parse_args()
    rows = options.rows or (20_000 if options.quick else 100_000)
    peer_rows = (250, 500, 1_000, 2_000) if options.quick else (1_000, 2_000, 4_000, 8_000)
    report = SpeedReport(__file__, options, threads=1)
    work = f"CCA, {rows:,} × {WIDTHS} float32"
    sizes = [rows * sum(WIDTHS) * 4 / 2**20, measured_peak(rows) / 2**20]
    # Beside few rows the libraries' own buffers count.
    bar = None if options.quick else 1 / MEMORY_BAR
    report.compare(f"memory of {work}", sizes[1:], sizes[:1], limit="the input", unit="MiB", bar=bar)
    images, texts = make_views(rows, *WIDTHS)
    runs = {
        "ours": lambda: CCA(n_components=COMPONENTS).fit(images, texts),
        "products": lambda: (images.T @ images, texts.T @ texts, images.T @ texts),
    }
    times = in_turns(runs, REPEATS, clock=time.process_time)
    bar = 1 / PRODUCTS_BARS["quick" if options.quick else "full"]
    report.compare(work, times["ours"], times["products"], limit="its three products", unit=UNIT, bar=bar)
    theirs = np.full(REPEATS, peer_seconds(rows, peer_rows))
    note = f"extrapolated from four sizes up to {peer_rows[-1]:,} rows"
    report.compare(work, times["ours"], theirs, peer="scikit-learn", unit=UNIT, bar=PEER_BAR, note=note)
    small = make_views(3_000, 40, 30)
    agreement = np.abs(
        CCA(n_components=2, regularization=0).fit(*small).correlations_
        - [np.corrcoef(*pair)[0, 1] for pair in zip(*_peer_scores(small), strict=True)]
    ).max()
    report.hold("correlations as scikit-learn's", agreement < 1e-3, f"{agreement:.1e} apart")
    return report.finish()


def _peer_scores(views: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    model = IterativeCCA(n_components=2, max_iter=5000, tol=1e-10).fit(*views)
    scores = model.transform(*views)
    return scores[0].T, scores[1].T


if __name__ == "__main__":
    sys.exit(main())
