"""Time and peak memory of every subspace method as the number of pairs grows.

    python -m bench.subspace_memory [--pairs N ...] [--methods NAME ...]

Generated pairs of 2,048 and 300 features in float32 with up to three of 81 labels each, as many as the 82,081 on which
Zhang et al. report that GMA, LCFS, LGCFL and ml-CCA ran out of memory. Each fit is a process of its own. Bars: at most
8 GB and 10 minutes at the largest size, and both grow at most linearly with the pairs: the exponent of a power law,
fitted to what comes on top of an empty process, is at most 1.1.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time

import numpy as np

from diptych.benchmark.peak_memory import peak_resident_bytes
from diptych.models import find_model

PROGRAM = (sys.executable, "-m", "bench.subspace_memory")

METHODS = ("pls", "blm", "cfa", "cca", "gmlda", "gmmfa", "cca-3v", "lcfs", "ml-cca", "cluster-cca", "lgcfl")
SIZES = (5_000, 10_000, 20_000, 40_000, 82_081)
MEMORY_BAR, SECONDS_BAR, EXPONENT_BAR = 8.0, 600.0, 1.1
IMAGE_WIDTH, TEXT_WIDTH, N_LABELS = 2048, 300, 81


def generated(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return pictures, texts and labels; made in blocks, so that making them is not what takes the memory."""
    rng = np.random.default_rng(0)
    labels = np.zeros((n, N_LABELS), dtype=np.int8)
    for _ in range(3):
        labels[np.arange(n), rng.integers(0, N_LABELS, size=n)] = 1
    sides = []
    for width in (IMAGE_WIDTH, TEXT_WIDTH):
        meaning = rng.normal(size=(N_LABELS, width)).astype(np.float32)
        side = np.empty((n, width), dtype=np.float32)
        for start in range(0, n, 2048):
            part = labels[start : start + 2048].astype(np.float32)
            side[start : start + 2048] = part @ meaning + rng.normal(size=(len(part), width)).astype(np.float32)
        sides.append(side)
    return sides[0], sides[1], labels


def fit_once(method: str, n: int) -> None:
    """Fit in this process and print seconds and memory, the data's own share beside it."""
    images, texts, labels = generated(n)
    before = peak_resident_bytes()
    start = time.perf_counter()
    find_model(method)().fit(images, texts, labels)
    seconds = time.perf_counter() - start
    peak = peak_resident_bytes()
    print(json.dumps({"seconds": seconds, "peak": peak / 2**30, "data": before / 2**30}))


def measure(method: str, n: int) -> dict[str, float]:
    """Fit in a process of its own."""
    done = subprocess.run(
        [*PROGRAM, "--fit", method, "--pairs", str(n)],
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def exponent(sizes: list[int], values: list[float]) -> float:
    """Return the slope of the logarithms."""
    if len(sizes) < 2:
        return float("nan")
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(values, 1e-9)), 1)[0])


def main() -> int:
    """Measure every method at every size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, nargs="+", default=list(SIZES), help="numbers of pairs")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), help="names as in `diptych methods`")
    parser.add_argument("--fit", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fit is not None:
        fit_once(options.fit, options.pairs[0])
        return 0
    sizes = sorted(options.pairs)
    print(f"{'method':<14}" + "".join(f"{f'{n:,} pairs':>20}" for n in sizes) + f"{'growth':>16}")
    met = True
    for method in options.methods:
        runs = [measure(method, n) for n in sizes]
        growth = exponent(sizes, [run["seconds"] for run in runs]), exponent(sizes, [run["peak"] for run in runs])
        cells = "".join(f"{run['seconds']:>12.1f} s{run['peak']:>4.1f} GB" for run in runs)
        within = runs[-1]["peak"] <= MEMORY_BAR and runs[-1]["seconds"] <= SECONDS_BAR
        within &= len(sizes) < 2 or max(growth) <= EXPONENT_BAR
        met &= within
        print(f"{method:<14}{cells}   n^{growth[0]:.2f} n^{growth[1]:.2f}{'' if within else '  MISSED'}", flush=True)
    print(f"bars ({MEMORY_BAR:g} GB, {SECONDS_BAR:g} s, n^{EXPONENT_BAR:g}): {'met' if met else 'MISSED'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
