"""CCA of 2,000,000 × (1,024, 300) from disk within 4 GB, beside reading the files and the products it needs.

    python -m bench.cca_from_disk [--rows N] [--dtype float16] [--folder FOLDER]

Writes the features block by block into a temporary folder (10.6 GB in float32), fits in a process of its own and
reports its peak memory, imports included, and its time. No fit can avoid reading the files once and the three matrix
products AᵀA, BᵀB and AᵀB; what they take alone is the limit that it is compared with, in processor time, on which other
work on the machine weighs least. Files are read plainly, not mapped, so that what is read counts as memory where it is
held; the system's copies of the files are dropped before each reading. The canonical correlations must be those of the
distribution the rows were drawn from. The command exits with 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from diptych.benchmark.peak_memory import peak_resident_bytes
from diptych.data import open_features
from diptych.models import CCA, fit_from_files

PROGRAM = (sys.executable, "-m", "bench.cca_from_disk")

MEMORY_BAR, LIMIT_BAR, ERROR_BAR = 4e9, 2.0, 0.01
WIDTHS = {"images": 1024, "texts": 300}
COMPONENTS, BLOCK, SAMPLED_BLOCKS = 10, 8192, 16


def loadings() -> dict[str, np.ndarray]:
    """Return how each side shows the latent directions that both share, some more and some less."""
    rng = np.random.default_rng(0)
    strength = np.geomspace(0.5, 0.1, COMPONENTS, dtype=np.float32)[:, None]
    return {
        side: strength * rng.standard_normal((COMPONENTS, width), dtype=np.float32) for side, width in WIDTHS.items()
    }


def write_features(folder: Path, rows: int, dtype: str) -> None:
    """Write both sides: latent directions and noise of unit variance, far from the origin."""
    rng, shows = np.random.default_rng(1), loadings()
    streams = {side: (folder / f"{side}.npy").open("wb") for side in WIDTHS}
    for side, stream in streams.items():
        header = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False}
        np.lib.format.write_array_header_1_0(stream, {**header, "shape": (rows, WIDTHS[side])})
    for start in range(0, rows, BLOCK):
        latent = rng.standard_normal((min(BLOCK, rows - start), COMPONENTS), dtype=np.float32)
        for side, stream in streams.items():
            block = rng.standard_normal((len(latent), WIDTHS[side]), dtype=np.float32)
            block += latent @ shows[side] + 3
            block.astype(dtype, copy=False).tofile(stream)
    for stream in streams.values():
        stream.flush()
        os.fsync(stream.fileno())
        stream.close()


def forget(folder: Path) -> None:
    """Drop the system's copies of the files, so that the next reading is one from disk."""
    for side in WIDTHS:
        with (folder / f"{side}.npy").open("rb") as stream:
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def expected_correlations() -> np.ndarray:
    """Return the canonical correlations of the distribution."""
    whitened = []
    for shows in loadings().values():
        values, vectors = np.linalg.eigh(shows.T.astype(np.float64) @ shows + np.eye(shows.shape[1]))
        whitened.append((vectors / np.sqrt(values)) @ vectors.T @ shows.T)
    return np.linalg.svd(whitened[0] @ whitened[1].T)[1][:COMPONENTS]


def reading_seconds(folder: Path) -> np.ndarray:
    """Return the seconds of reading all bytes once, into one buffer: on the clock, and of the processor."""
    forget(folder)
    buffer = bytearray(1 << 25)
    start = now()
    for side in WIDTHS:
        with (folder / f"{side}.npy").open("rb", buffering=0) as stream:
            while stream.readinto(buffer):
                pass
    return now() - start


def product_seconds(folder: Path, rows: int) -> np.ndarray:
    """Return the seconds of the three products of all rows on all cores, from the fastest of some blocks."""
    features = open_features(folder)
    block = next(features.blocks(features.parts()[0]))
    times = []
    for _ in range(SAMPLED_BLOCKS):
        start = now()
        block.images.T @ block.images, block.texts.T @ block.texts, block.images.T @ block.texts
        times.append(now() - start)
    return np.min(times, axis=0) * rows / len(block.images)


def now() -> np.ndarray:
    """Return what the clock says, and how much processor time this process has taken."""
    return np.array([time.perf_counter(), time.process_time()])


def fit_once(folder: Path) -> None:
    """Fit in this process and print seconds, memory and correlations."""
    start = now()
    model = fit_from_files(CCA(n_components=COMPONENTS, regularization=0.0), folder)
    seconds = now() - start
    found = {"seconds": seconds.tolist(), "peak": peak_resident_bytes(), "correlations": model.correlations_.tolist()}
    print(json.dumps(found))


def main() -> int:
    """Measure, print a table and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--dtype", choices=("float16", "float32"), default="float32", help="of the files")
    parser.add_argument("--folder", type=Path, default=None, help="where the temporary folder is made")
    parser.add_argument("--fit", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fit is not None:
        fit_once(options.fit)
        return 0
    size = options.rows * sum(WIDTHS.values()) * np.dtype(options.dtype).itemsize
    free = shutil.disk_usage(options.folder or tempfile.gettempdir()).free
    if free < 1.1 * size:
        print(f"the files take {size / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free; use --dtype, --rows or --folder")
        return 1
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        write_features(folder, options.rows, options.dtype)
        reading, products = reading_seconds(folder), product_seconds(folder, options.rows)
        forget(folder)
        done = subprocess.run([*PROGRAM, "--fit", name], capture_output=True, text=True, check=True)
    fit = json.loads(done.stdout)
    ratio = fit["seconds"][1] / (reading + products)[1]
    error = float(np.abs(np.array(fit["correlations"]) - expected_correlations()).max())
    print(f"CCA of {options.rows} x {tuple(WIDTHS.values())} from {size / 1e9:.1f} GB of {options.dtype} on disk")
    print(f"{'':<34}{'clock':>12}{'processor':>12}")
    for what, seconds in (("fit", fit["seconds"]), ("reading alone", reading), ("three products alone", products)):
        print(f"{what:<34}{seconds[0]:>10.1f} s{seconds[1]:>10.1f} s")
    lines = [
        ("processor, against both together", f"{ratio:.2f}x", f"bar {LIMIT_BAR:g}x"),
        ("peak memory of the process", f"{fit['peak'] / 1e9:.2f} GB", f"bar {MEMORY_BAR / 1e9:g} GB"),
        ("error of the correlations", f"{error:.1e}", f"bar {ERROR_BAR:g}"),
    ]
    for what, value, note in lines:
        print(f"{what:<34}{value:>12}  {note}")
    bars = {
        "time": ratio <= LIMIT_BAR,
        "memory": fit["peak"] <= MEMORY_BAR,
        "correlations": error <= ERROR_BAR,
    }
    missed = [what for what, met in bars.items() if not met]
    print(f"missed: {', '.join(missed)}" if missed else "all bars met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
