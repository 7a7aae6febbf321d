"""Pairwise methods on 2,173 pairs: one fit at the chosen parameters, beside scikit-learn on explicit products.

    python -m bench.pairwise_speed [--quick]

The pairs are those of Wikipedia where ``DIPTYCH_DATA`` has them, otherwise generated ones of the same shape. Each
method runs in a process of its own, which reports the processor time of its fits, and how far its peak memory grew
beyond data and loaded libraries. scikit-learn's `LogisticRegression` gets the same 23,903 sampled pairs as a matrix of
1,280 products: its time leaves out making that matrix, its memory does not. It stops at its default tolerance, which is
looser than ours; whether both reach the same weights is checked at a tighter one.

The command exits with 1 when a bar is missed. All of it is processor time in one thread, because a busy machine
stretches the other.
"""

from __future__ import annotations

import mmap
import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import LogisticRegression

from bench.speed_report import SpeedReport, in_turns, speed_parser
from diptych.benchmark.peak_memory import peak_resident_bytes
from diptych.data import load_dataset
from diptych.errors import MissingDataError
from diptych.models import CMML, BipartiteCrossProduct, CrossModalModel, LogisticCrossProduct
from diptych.models.pairwise._pairs import SampledPairs
from diptych.models.preprocessed import scale_rows

RATIO = 10
# What five hold-outs of the training pairs chose, and the seconds a fit may take.
BARS: dict[str, tuple[CrossModalModel, float]] = {
    "logistic cross-product": (LogisticCrossProduct(C=1.0, ratio=RATIO), 1.0),
    "bipartite cross-product": (BipartiteCrossProduct(C=1.0, ratio=RATIO), 3.0),
    "CMML": (CMML(ratio=RATIO, sharpness=0.3, regularization=0.03), 5.0),
}
SPEED_BAR, MEMORY_BAR = 10.0, 20.0
PEER = "scikit-learn on products"
SHAPE = "2,173 pairs × (128, 10)"


@dataclass(frozen=True)
class Cost:
    """What fits took: seconds of the processor, and bytes at their peak."""

    seconds: list[float]
    peak: int


def make_pairs() -> tuple[np.ndarray, np.ndarray]:
    """Return ℓ2-scaled pictures and texts: Wikipedia's, or generated ones of the same shape."""
    try:
        train = load_dataset("wikipedia").train
        images, texts = train.images, train.texts
    except MissingDataError:
        rng = np.random.default_rng(0)
        texts = rng.dirichlet(np.full(10, 0.3), size=2173)
        images = texts @ rng.dirichlet(np.full(128, 0.3), size=10) + 0.5 * rng.dirichlet(np.full(128, 0.3), size=2173)
    return scale_rows(images, "l2"), scale_rows(texts, "l2")


def explicit_products(images: np.ndarray, texts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the products of all features of the sampled pairs, and which pairs are given ones."""
    partners = SampledPairs.unlabelled(len(images), RATIO, np.random.default_rng(0)).partners
    rows = np.repeat(np.arange(len(images)), RATIO + 1)
    images, texts = images - images.mean(axis=0), texts - texts.mean(axis=0)
    features = (images[rows][:, :, None] * texts[partners.ravel()][:, None, :]).reshape(len(rows), -1)
    return features, np.tile(np.arange(RATIO + 1) == 0, len(images))


def fit_peer(features: np.ndarray, given: np.ndarray, tol: float = 1e-4) -> np.ndarray:
    """Fit scikit-learn on the explicit products and return its weights."""
    return LogisticRegression(C=1.0, tol=tol, max_iter=10_000).fit(features, given).coef_[0]


def job(name: str, images: np.ndarray, texts: np.ndarray) -> Callable[[], object]:
    """Return the fit to be timed; what scikit-learn needs before it can start is made here."""
    if name != PEER:
        return lambda: BARS[name][0].fit(images, texts)
    features, given = explicit_products(images, texts)
    return lambda: fit_peer(features, given)


def measure(name: str, repeats: int, queue: multiprocessing.Queue) -> None:
    """Report the times of a few fits and the growth of this process's peak memory."""
    images, texts = make_pairs()
    # A first fit of a few rows loads libraries and starts threads, which belong to neither side.
    job(name, images[:40], texts[:40])()
    before = peak_resident_bytes()
    fit = job(name, images, texts)
    taken = in_turns({name: fit}, repeats, clock=time.process_time)[name]
    queue.put(Cost(taken, peak_resident_bytes() - before))


def in_a_process(name: str, repeats: int) -> Cost:
    """Measure one method in a fresh process, in one thread: on a busy machine more of them mostly wait."""
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=measure, args=(name, repeats, queue))
    process.start()
    cost: Cost = queue.get()
    process.join()
    return cost


def difference_of_weights() -> float:
    """Return the largest difference of our weights from scikit-learn's, relative to the largest weight."""
    images, texts = make_pairs()
    ours = LogisticCrossProduct(C=1.0, ratio=RATIO).fit(images, texts).W_.ravel()
    theirs = fit_peer(*explicit_products(images, texts), tol=1e-7)
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


def main() -> int:
    """Measure, print a table and return the exit code."""
    options = speed_parser(__doc__).parse_args()
    report = SpeedReport(__file__, options)
    repeats = 3 if options.quick else 7
    costs = {name: in_a_process(name, repeats) for name in (*BARS, PEER)}
    for name, (_, bar) in BARS.items():
        report.bound(f"{name}, {SHAPE}", costs[name].seconds, bar, unit="processor s")
    ours, peer = costs["logistic cross-product"], costs[PEER]
    work = f"logistic cross-product, {SHAPE}"
    report.compare(work, ours.seconds, peer.seconds, peer=PEER, unit="processor s", bar=SPEED_BAR)
    # A peak that did not grow by a page is at most one.
    peaks = [max(cost.peak, mmap.PAGESIZE) / 1e6 for cost in (ours, peer)]
    report.compare(f"memory of {work}", peaks[:1], peaks[1:], peer=PEER, unit="MB", bar=MEMORY_BAR)
    difference = difference_of_weights()
    report.hold("weights as scikit-learn's", difference <= 0.01, f"{difference:.1e} of the largest apart")
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
