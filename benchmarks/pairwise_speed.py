"""Pairwise methods on 2,173 pairs: one fit at the chosen parameters, beside scikit-learn on explicit products.

Run ``python benchmarks/pairwise_speed.py``. The pairs are those of Wikipedia where ``DIPTYCH_DATA`` has them, otherwise
generated ones of the same shape. Each method runs in a process of its own, which reports wall time and processor time
of its best fit, and how far its peak memory grew beyond data and loaded libraries. scikit-learn's `LogisticRegression`
gets the same 23,903 sampled pairs as a matrix of 1,280 products: its time leaves out making that matrix, its memory
does not. It stops at its default tolerance, which is looser than ours; whether both reach the same weights is checked
at a tighter one.

The command exits with 1 when a bar is missed. Speeds are compared by processor time, and a bar in seconds is met by
wall or processor time, because a busy machine stretches the first.
"""

from __future__ import annotations

import argparse
import mmap
import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import LogisticRegression

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


@dataclass(frozen=True)
class Cost:
    """What a fit took: seconds by the clock and of the processor, and bytes at its peak."""

    wall: float
    processor: float
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
    """Report the best of a few fits and the growth of this process's peak memory."""
    images, texts = make_pairs()
    # A first fit of a few rows loads libraries and starts threads, which belong to neither side.
    job(name, images[:40], texts[:40])()
    before = peak_resident_bytes()
    fit = job(name, images, texts)
    costs = []
    for _ in range(repeats):
        wall, processor = time.perf_counter(), time.process_time()
        fit()
        costs.append((time.perf_counter() - wall, time.process_time() - processor))
    peak = peak_resident_bytes() - before
    queue.put(Cost(min(wall for wall, _ in costs), min(processor for _, processor in costs), peak))


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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    costs = {name: in_a_process(name, options.repeats) for name in BARS}
    peer = costs[PEER] = in_a_process(PEER, options.repeats)
    ours = costs["logistic cross-product"]
    difference = difference_of_weights()

    print(f"one fit to 2173 pairs x (128, 10), {RATIO} unlabelled pairs each, one thread")
    print(f"{'':<26}{'wall':>10}{'processor':>12}{'memory':>12}")
    for name, cost in costs.items():
        bar = f"  (bar {BARS[name][1]:g} s)" if name in BARS else ""
        print(f"{name:<26}{cost.wall:>8.2f} s{cost.processor:>10.2f} s{cost.peak / 2**20:>8.1f} MiB{bar}")
    speed, by_the_clock = peer.processor / ours.processor, peer.wall / ours.wall
    # A peak that did not grow by a page is at most one.
    memory = peer.peak / max(ours.peak, mmap.PAGESIZE)
    print("logistic cross-product beside scikit-learn:")
    print(f"  {speed:.0f}x less processor time (bar {SPEED_BAR:g}x), {by_the_clock:.0f}x less wall time")
    print(f"  1/{memory:.0f} of its memory (bar 1/{MEMORY_BAR:g})")
    print(f"  weights differ by {difference:.1e} of the largest (bar 0.01)")
    missed = [name for name, (_, bar) in BARS.items() if min(costs[name].wall, costs[name].processor) > bar]
    missed += ["speed"] * (speed < SPEED_BAR) + ["memory"] * (memory < MEMORY_BAR)
    missed += ["agreement"] * (difference > 0.01)
    print(f"missed: {', '.join(missed)}" if missed else "all bars met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
