"""How long methods learn, beside scikit-learn and cca_zoo where these give the same result.

    python -m bench.models [--quick]

Pairs are generated and share ten latent directions. CCA of 100,000 × (1,024, 300) float32 is compared with the three
matrix products that no closed form can avoid, and with scikit-learn's iterative CCA, extrapolated from four smaller
numbers of rows by the lowest cost of a row; CCA of 50,000 × (128, 64) with libraries that give the same directions.
The other methods have their defaults, 32,000 pairs of 128 and 32 numbers, and ten classes. Everything runs in one
thread, by processor time; memory is the growth of a fresh process. `large_fits.py` has larger data.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
from sklearn import cross_decomposition

from bench.report import PROCESSOR_SECONDS, SpeedReport, in_turns, installed, peak_growth, speed_parser
from diptych.models import CCA, find_model

REPEATS = 3
LARGE_WIDTHS = (1024, 300)
LARGE_COMPONENTS = 10
SMALL_WIDTHS = (128, 64)
COMPONENTS = 5
PRODUCTS_BAR = 1 / 1.25
EXTRAPOLATED_BAR = 10.0
MEMORY_BAR = 1 / 1.5
# A closed form, an optimiser and a network, by their names in `diptych methods`.
METHODS = ("gmlda", "contrastive-projection", "deep-sm")

Views = tuple[np.ndarray, np.ndarray]


def large_views(rows: int) -> Views:
    """Return two float32 views that share ten latent directions, made block by block."""
    rng = np.random.default_rng(0)
    loadings = [rng.standard_normal((LARGE_COMPONENTS, width), dtype=np.float32) for width in LARGE_WIDTHS]
    images, texts = (np.empty((rows, width), dtype=np.float32) for width in LARGE_WIDTHS)
    for start in range(0, rows, 4096):
        stop = min(rows, start + 4096)
        latent = rng.standard_normal((stop - start, LARGE_COMPONENTS), dtype=np.float32)
        for view, loading in zip((images, texts), loadings, strict=True):
            rng.standard_normal(out=view[start:stop], dtype=np.float32)
            view[start:stop] += latent @ loading
    return images, texts


def small_views(rows: int) -> Views:
    """Return pictures and texts that share latent directions of falling strength."""
    rng = np.random.default_rng(0)
    latent = rng.standard_normal((rows, 10)) / np.arange(1, 11)
    images, texts = (
        latent @ rng.standard_normal((10, width)) + rng.standard_normal((rows, width)) for width in SMALL_WIDTHS
    )
    return images, texts


def labelled_pairs(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return pictures, texts and labels: a topic of its own for every pair, around that of its class."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(10, 16))
    maps = [rng.normal(size=(16, width)) for width in (128, 32)]
    labels = rng.integers(10, size=count)
    topics = centres[labels] + rng.normal(size=(count, 16))
    images, texts = ((topics @ side + rng.normal(size=(count, side.shape[1]))).astype(np.float32) for side in maps)
    return images, texts, labels


def in_a_process(work: Callable[[], int]) -> int:
    """Return what a function of this module returns in a fresh process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work)


def large_cca_peak() -> int:
    """Return the peak memory of making 100,000 pairs and fitting CCA."""
    return peak_growth(lambda: CCA(n_components=LARGE_COMPONENTS).fit(*large_views(100_000)))


def large_cca(report: SpeedReport, rows: int) -> None:
    """Compare CCA of many pairs with its matrix products, scikit-learn and the size of its input."""
    work = f"CCA, {rows:,} × {LARGE_WIDTHS} float32"
    images, texts = large_views(rows)
    runs = {
        "ours": lambda: CCA(n_components=LARGE_COMPONENTS).fit(images, texts),
        "products": lambda: (images.T @ images, texts.T @ texts, images.T @ texts),
    }
    times = in_turns(runs, REPEATS, clock=time.process_time)
    limit = "its three matrix products"
    report.compare(work, times["ours"], times["products"], limit=limit, unit=PROCESSOR_SECONDS, bar=PRODUCTS_BAR)
    costs = []
    for size in (rows // 100, rows // 50, rows // 25, 2 * rows // 25):
        started = time.process_time()
        cross_decomposition.CCA(n_components=LARGE_COMPONENTS).fit(images[:size], texts[:size])
        costs.append((time.process_time() - started) / size)
    theirs, peer = [rows * min(costs)] * REPEATS, "scikit-learn, extrapolated"
    report.compare(work, times["ours"], theirs, peer=peer, unit=PROCESSOR_SECONDS, bar=EXTRAPOLATED_BAR)
    if rows == 100_000:
        sizes = [images.nbytes + texts.nbytes, in_a_process(large_cca_peak)]
        mebibytes = [[size / 2**20] for size in sizes]
        report.compare(f"memory of {work}", mebibytes[1], mebibytes[0], limit="the input", unit="MiB", bar=MEMORY_BAR)


def beside_libraries(report: SpeedReport, rows: int) -> None:
    """Compare CCA with scikit-learn's and cca_zoo's, which give the same directions."""
    images, texts = small_views(rows)
    iterative = cross_decomposition.CCA(n_components=COMPONENTS, max_iter=5000, tol=1e-8)

    def ours() -> Views:
        model = CCA(n_components=COMPONENTS, regularization=0).fit(images, texts)
        return model.encode_images(images), model.encode_texts(texts)

    peers: dict[str, Callable[[], Views] | None] = {
        "scikit-learn": lambda: iterative.fit(images, texts).transform(images, texts),
        "cca_zoo": None,
    }
    if installed("cca_zoo"):
        from cca_zoo.linear import CCA as ZooCCA

        zoo = ZooCCA(n_components=COMPONENTS)
        peers["cca_zoo"] = lambda: zoo.fit_transform([images, texts])
    first = ours()[0][:, 0]
    theirs = [peer()[0][:, 0] for peer in peers.values() if peer is not None]
    apart = max(1 - abs(float(np.corrcoef(first, other)[0, 1])) for other in theirs)
    report.hold("first scores as the others'", apart < 1e-3, f"{apart:.1e} apart")
    work = f"CCA, {rows:,} × {SMALL_WIDTHS}"
    report.race(work, ours, peers, REPEATS, bars=dict.fromkeys(peers, 1.0))


def methods(report: SpeedReport, count: int) -> None:
    """Measure one method of each family with its defaults."""
    pairs = labelled_pairs(count)
    for name in METHODS:
        model = find_model(name)
        model().fit(*(side[:200] for side in pairs))  # Loads what the method needs.
        started = time.process_time()
        model().fit(*pairs)
        taken = time.process_time() - started
        report.cost(f"{name}, {count:,} labelled pairs", [taken], unit=PROCESSOR_SECONDS)


def main() -> int:
    """Measure and compare."""
    options = speed_parser(__doc__).parse_args()
    report = SpeedReport(__file__, options, threads=1)
    # Iterations of the others that end before the tolerance.
    warnings.simplefilter("ignore")
    large_cca(report, 20_000 if options.quick else 100_000)
    beside_libraries(report, 10_000 if options.quick else 50_000)
    methods(report, 2_000 if options.quick else 32_000)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
