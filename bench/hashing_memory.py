"""Time and peak memory of every hashing method on 186,000 pairs.

    python -m bench.hashing_memory [--pairs N] [--methods NAME ...] [--bits N]

Generated pairs of 500 and 1,000 features in float32 with up to three of 10 labels each: the size of NUS-WIDE with its
ten commonest labels, on which papers on hashing report. Each fit is a process of its own and keeps the defaults of its
method, except that networks go over the pairs once. Bars: every method stays within 8 GB, the data included, and CVH,
SCM-orth, SCM-seq, LCMFH, DCH and SCRATCH take less than 2 minutes on 2 cores.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings

import numpy as np

from diptych.benchmark.hashing import hashing_methods
from diptych.benchmark.peak_memory import peak_resident_bytes

MEMORY_BAR, SECONDS_BAR = 8.0, 120.0
FAST = ("cvh", "scm-orth", "scm-seq", "lcmfh", "dch", "scratch")
IMAGE_WIDTH, TEXT_WIDTH, N_LABELS = 500, 1000, 10
N_ENCODED = 10_000
# Networks go over the pairs many times; once is enough to see what they need, and the table says so.
EPOCHS = {"mm-nn": 1, "dcmh": 1}


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
            side[start : start + 2048] = part @ meaning + 3 * rng.standard_normal((len(part), width), dtype=np.float32)
        sides.append(side)
    return sides[0], sides[1], labels


def fit_once(method: str, n: int, n_bits: int) -> None:
    """Fit in this process and print seconds and memory, the data's own share beside it."""
    images, texts, labels = generated(n)
    before = peak_resident_bytes()
    model = hashing_methods()[method](n_bits=n_bits)
    if method in EPOCHS:
        model.set_params(epochs=EPOCHS[method])
    start = time.perf_counter()
    with warnings.catch_warnings():
        # What a method says about its bits or its sample is not what is measured.
        warnings.simplefilter("ignore", UserWarning)
        model.fit(images, texts, labels)
    fit = time.perf_counter() - start
    start = time.perf_counter()
    model.encode_images(images[:N_ENCODED])
    model.encode_texts(texts[:N_ENCODED])
    encode = time.perf_counter() - start
    peak = peak_resident_bytes()
    print(json.dumps({"fit": fit, "encode": encode, "peak": peak / 2**30, "data": before / 2**30}))


def measure(method: str, n: int, n_bits: int) -> dict[str, float]:
    """Fit in a process of its own."""
    command = [sys.executable, "-m", "bench.hashing_memory", "--fit", method, "--pairs", str(n), "--bits", str(n_bits)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> int:
    """Measure every method."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=186_000, help="number of pairs")
    parser.add_argument("--bits", type=int, default=32, help="length of the codes")
    parser.add_argument("--methods", nargs="+", default=list(hashing_methods()), help="names as in `diptych methods`")
    parser.add_argument("--fit", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fit is not None:
        fit_once(options.fit, options.pairs, options.bits)
        return 0
    print(f"{options.pairs:,} pairs of {IMAGE_WIDTH} and {TEXT_WIDTH:,} features, {options.bits} bits")
    print(f"{'method':<12}{'fit':>12}{'peak':>10}{'of it data':>12}{'encode, per pair':>20}")
    met = True
    for method in options.methods:
        run = measure(method, options.pairs, options.bits)
        within = run["peak"] <= MEMORY_BAR and (method not in FAST or run["fit"] <= SECONDS_BAR)
        met &= within
        pace = f"{1e6 * run['encode'] / min(N_ENCODED, options.pairs):.1f} µs"
        fit, peak, data = f"{run['fit']:.1f} s", f"{run['peak']:.1f} GB", f"{run['data']:.1f} GB"
        note = ", one epoch" if method in EPOCHS else ""
        print(f"{method:<12}{fit:>12}{peak:>10}{data:>12}{pace:>20}{note}{'' if within else '  MISSED'}", flush=True)
    print(f"bars ({MEMORY_BAR:g} GB; {SECONDS_BAR:g} s for {', '.join(FAST)}): {'met' if met else 'MISSED'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
