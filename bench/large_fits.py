"""Time and peak memory of fits on many pairs, each in a process of its own.

    python -m bench.large_fits [--kind subspace|hashing|kcca|disk] [--pairs N ...] [--methods NAME ...]

``subspace`` are generated pairs of 2,048 and 300 features in float32 with up to three of 81 labels, as many as the
82,081 on which Zhang et al. report that GMA, LCFS, LGCFL and ml-CCA ran out of memory. ``hashing`` are 186,000 pairs of
500 and 1,000 features with 10 labels, the size of NUS-WIDE, and codes of 32 bits; networks go over the pairs once.
``kcca`` is kernel CCA with 1,000 Nyström landmarks on 50,000 pairs. ``disk`` is CCA of 2,000,000 × (1,024, 300) from
files (10.6 GB). Bars: 8 GB and 10 minutes for subspace methods and growth of both as n^1.1 at most, 8 GB for hashing,
2 GB for KCCA, 4 GB for files. The command exits with 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.report import peak_resident_bytes
from diptych.models import CCA, KCCA, find_model, fit_from_files, method_name, model_classes
from diptych.models.hashing.hashing_model import HashingModel

BLOCK = 2048
MAX_SECONDS = 600.0
MAX_EXPONENT = 1.1
# Networks go over the pairs many times; once is enough to see what they need.
EPOCHS = {"mm-nn": 1, "dcmh": 1}
SUBSPACE = ("pls", "blm", "cfa", "cca", "gmlda", "gmmfa", "cca-3v", "lcfs", "ml-cca", "cluster-cca", "lgcfl")


class Kind(NamedTuple):
    """Methods, and the pairs that they are fitted to."""

    methods: tuple[str, ...]
    sizes: tuple[int, ...]
    widths: tuple[int, int]
    n_labels: int
    max_gib: float


HASHING = tuple(method_name(cls) for cls in model_classes().values() if issubclass(cls, HashingModel))
KINDS = {
    "subspace": Kind(SUBSPACE, (5_000, 10_000, 20_000, 40_000, 82_081), (2048, 300), 81, 8.0),
    "hashing": Kind(HASHING, (186_000,), (500, 1000), 10, 8.0),
    "kcca": Kind(("kcca",), (50_000,), (128, 20), 20, 2.0),
    "disk": Kind(("cca",), (2_000_000,), (1024, 300), 10, 4.0),
}


def blocks(n: int, kind: Kind) -> Any:
    """Yield labels, pictures and texts in blocks, so that making them is not what takes the memory."""
    rng = np.random.default_rng(0)
    meaning = [rng.normal(size=(kind.n_labels, width)).astype(np.float32) for width in kind.widths]
    for start in range(0, n, BLOCK):
        labels = np.zeros((min(BLOCK, n - start), kind.n_labels), dtype=np.int8)
        for _ in range(3):
            labels[np.arange(len(labels)), rng.integers(0, kind.n_labels, size=len(labels))] = 1
        sides = [part + 3 * rng.standard_normal(part.shape, dtype=np.float32) for part in (labels @ m for m in meaning)]
        yield labels, *sides


def generated(n: int, kind: Kind) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return pictures, texts and labels."""
    arrays = [np.empty((n, kind.n_labels), dtype=np.int8), *(np.empty((n, w), dtype=np.float32) for w in kind.widths)]
    for number, block in enumerate(blocks(n, kind)):
        for array, part in zip(arrays, block, strict=True):
            array[number * BLOCK : number * BLOCK + len(part)] = part
    return arrays[1], arrays[2], arrays[0]


def write_features(folder: Path, n: int, kind: Kind) -> None:
    """Write both sides into files."""
    paths = [folder / "images.npy", folder / "texts.npy"]
    files = [
        np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, width))
        for path, width in zip(paths, kind.widths, strict=True)
    ]
    for number, (_, *sides) in enumerate(blocks(n, kind)):
        for file, part in zip(files, sides, strict=True):
            file[number * BLOCK : number * BLOCK + len(part)] = part
    for file in files:
        file.flush()


def model_of(kind: str, method: str) -> Any:
    """Return the model to fit."""
    if kind == "kcca":
        return KCCA(solver="nystrom", rank=1_000, kappa=0.9, image_kernel="linear", text_kernel="linear")
    model = find_model(method)()
    if kind == "hashing":
        model.set_params(n_bits=32)
    return model.set_params(epochs=EPOCHS[method]) if method in EPOCHS else model


def fit_here(kind: str, method: str, n: int, folder: str) -> None:
    """Fit in this process; print the seconds of the clock and of the processor, and the peak memory."""
    # What a method says about its bits or its sample is not what is measured.
    warnings.simplefilter("ignore", UserWarning)
    data = None if kind == "disk" else generated(n, KINDS[kind])
    clock, processor = time.perf_counter(), time.process_time()
    if data is None:
        fit_from_files(CCA(n_components=10), folder)
    else:
        model_of(kind, method).fit(*data[: 2 if kind == "kcca" else 3])
    seconds = {"seconds": time.perf_counter() - clock, "processor_seconds": time.process_time() - processor}
    print(json.dumps({**seconds, "gib": peak_resident_bytes() / 2**30}))


def measure(kind: str, method: str, n: int) -> dict[str, float]:
    """Fit in a process of its own."""
    command = [sys.executable, "-m", "bench.large_fits", "--kind", kind, "--methods", method, "--pairs", str(n)]
    with tempfile.TemporaryDirectory() as folder:
        if kind == "disk":
            write_features(Path(folder), n, KINDS[kind])
        done = subprocess.run([*command, "--here", folder], capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def exponent(sizes: list[int], values: list[float]) -> float:
    """Return the slope of the logarithms, 0 for a single size."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0]) if len(sizes) > 1 else 0.0


def main() -> int:
    """Measure every method at every size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=KINDS, default="subspace")
    parser.add_argument("--pairs", type=int, nargs="+", help="numbers of pairs")
    parser.add_argument("--methods", nargs="+", help="names as in `diptych methods`")
    parser.add_argument("--here", metavar="FOLDER", help=argparse.SUPPRESS)
    options = parser.parse_args()
    kind, max_gib = KINDS[options.kind], KINDS[options.kind].max_gib
    sizes, methods = sorted(options.pairs or kind.sizes), options.methods or kind.methods
    if options.here is not None:
        fit_here(options.kind, methods[0], sizes[0], options.here)
        return 0
    print(f"{'method':<14}" + "".join(f"{f'{n:,} pairs':>20}" for n in sizes) + f"{'growth':>16}")
    missed = []
    for method in methods:
        runs = [measure(options.kind, method, n) for n in sizes]
        growth = [exponent(sizes, [run[what] for run in runs]) for what in ("seconds", "gib")]
        cells = "".join(f"{run['seconds']:>12.1f} s{run['gib']:>4.1f} GB" for run in runs)
        print(f"{method:<14}{cells}   n^{growth[0]:.2f} n^{growth[1]:.2f}", flush=True)
        is_late = options.kind == "subspace" and runs[-1]["seconds"] > MAX_SECONDS
        if is_late or runs[-1]["gib"] > max_gib or max(growth) > MAX_EXPONENT:
            missed.append(method)
    print(f"missed: {', '.join(missed)}" if missed else "all bars met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
