"""Mean average precision of 32-bit codes, 2,000 queries × 1,000,000 items, by histograms instead of sorting.

Run ``python -m bench.hamming_map``. Prints seconds, peak extra memory and a check against the sort-based form on
the first queries. The command exits with 1 when the two forms differ or memory exceeds its bound.
"""

from __future__ import annotations

import argparse
import sys
import time
import tracemalloc

import numpy as np

from diptych import Space
from diptych.metrics import AP, SameLabel, evaluate, evaluate_scores

CLASSES = 10
ERROR_BAR = 1e-12
MEMORY = 64 << 20


def codes_of(labels: np.ndarray, prototypes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return class prototypes with a third of their bits flipped, packed."""
    codes = np.empty((len(labels), prototypes.shape[1]), dtype=np.uint8)
    for start in range(0, len(labels), 100_000):
        part = labels[start : start + 100_000]
        flips = np.packbits(rng.random((len(part), 8 * prototypes.shape[1])) < 1 / 3, axis=1)
        codes[start : start + len(part)] = prototypes[part] ^ flips
    return codes


def main() -> int:
    """Measure, print a table and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=2_000)
    parser.add_argument("--gallery", type=int, default=1_000_000)
    parser.add_argument("--bits", type=int, default=32, help="a multiple of 8")
    parser.add_argument("--checked", type=int, default=20, help="queries compared with the sort-based form")
    options = parser.parse_args()

    rng = np.random.default_rng(0)
    query_labels, gallery_labels = rng.integers(0, CLASSES, options.queries), rng.integers(0, CLASSES, options.gallery)
    prototypes = rng.integers(0, 256, (CLASSES, options.bits // 8), dtype=np.uint8)
    queries, gallery = codes_of(query_labels, prototypes, rng), codes_of(gallery_labels, prototypes, rng)
    relevance, space = SameLabel(query_labels, gallery_labels), Space("hamming")

    start = time.perf_counter()
    result = evaluate(queries, gallery, space, relevance, [AP()], memory=MEMORY)
    elapsed = time.perf_counter() - start
    # Tracing allocations slows the run, so memory is taken from a second one.
    tracemalloc.start()
    evaluate(queries, gallery, space, relevance, [AP()], memory=MEMORY)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    checked = min(options.checked, options.queries)
    subset = SameLabel(query_labels[:checked], gallery_labels)
    start = time.perf_counter()
    sorted_form = evaluate_scores(space.compare(queries[:checked], gallery), subset, [AP()])
    sorting = (time.perf_counter() - start) * options.queries / checked
    error = float(np.abs(sorted_form.values[AP()] - result.values[AP()][:checked]).max())

    print(f"{options.queries} queries x {options.gallery} items, {options.bits} bits, {CLASSES} classes")
    rows = [
        ("MAP, exact under ties", f"{result[AP()]:.4f}", f"chance {result.chance[AP()]:.4f}"),
        ("histogram form", f"{elapsed:.2f} s", f"{1000 * elapsed / options.queries:.2f} ms per query"),
        ("sort form, scaled from the subset", f"{sorting:.2f} s", f"measured on {checked} queries"),
        ("peak extra memory", f"{peak / 2**20:.1f} MiB", f"bound {MEMORY / 2**20:g} MiB"),
        ("largest difference from the sort form", f"{error:.1e}", f"bar {ERROR_BAR:g}"),
    ]
    for name, value, note in rows:
        print(f"{name:<38}{value:>12}  {note}")
    missed = [name for name, met in (("exactness", error <= ERROR_BAR), ("memory", peak <= MEMORY)) if not met]
    print(f"missed: {', '.join(missed)}" if missed else "all bars met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
