"""Pictures encoded per second, decoding included, beside the bare runtime on tensors that lie ready in memory.

Run ``python -m bench.encoding_speed`` with DIPTYCH_DATA set, or give a folder of photos. Both sides run the same
network on the same number of threads with the same batches, in turns, so that a busy machine slows both alike; the
bare runtime keeps its own default settings. The bar is 85 % of its pace. Decoding needs a core of its own to
hide behind the network: on fewer than four cores the bar is put on the network with one core left free, and the pace
with all cores is only reported. The command exits with 1 when the bar is missed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime

from diptych.data.folders import data_folder
from diptych.encoders import EfficientNetLite
from diptych.encoders.networks.onnx_graph import NETWORK_FILE, ConvolutionGraph

BAR = 0.85
CORES_FOR_OVERLAP = 4


def seconds(run: Callable[[], object]) -> float:
    """Return how long one run takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def bare_session(network: str, threads: int) -> onnxruntime.InferenceSession:
    """Return the same network in a session of the runtime's own making."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    with tempfile.TemporaryDirectory() as folder:
        with ConvolutionGraph(Path(folder)) as graph:
            EfficientNetLite(network=network).write_network(graph)
        return onnxruntime.InferenceSession(
            str(Path(folder) / NETWORK_FILE), options, providers=["CPUExecutionProvider"]
        )


def run_bare(session: onnxruntime.InferenceSession, tensors: list[np.ndarray]) -> None:
    """Encode ready tensors."""
    for tensor in tensors:
        session.run(None, {"pixels": tensor})


def measured(
    photos: list[Path], network: str, threads: int, batch_size: int, rounds: int
) -> tuple[list[float], list[float]]:
    """Return pictures per second of the bare runtime and of the encoder, round by round."""
    encoder = EfficientNetLite(network=network, batch_size=batch_size, n_threads=threads)
    pixels = np.stack([encoder.prepare(photo) for photo in photos])
    tensors = [pixels[start : start + batch_size] for start in range(0, len(pixels), batch_size)]
    session = bare_session(network, threads)
    run_bare(session, tensors[:1])
    encoder.transform(photos[:batch_size])
    bare, ours = [], []
    for _ in range(rounds):
        bare.append(len(photos) / seconds(lambda: run_bare(session, tensors)))
        ours.append(len(photos) / seconds(lambda: encoder.transform(photos)))
    return bare, ours


def reported(label: str, bare: list[float], ours: list[float]) -> float:
    """Print the medians of one comparison and return that of the ratios, each of two neighbours in time."""
    ratio = statistics.median(mine / other for mine, other in zip(ours, bare, strict=True))
    print(f"{label:<42}{statistics.median(bare):9.1f}{statistics.median(ours):9.1f}{ratio:9.1%}")
    return ratio


def main() -> int:
    """Measure, print and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=data_folder() / "flickr8k" / "images")
    parser.add_argument("--network", default="lite2")
    parser.add_argument("--photos", type=int, default=128)
    parser.add_argument("--batch-size", type=int, default=EfficientNetLite().batch_size)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    photos = sorted(options.folder.glob("*.jpg"))[: options.photos]
    if not photos:
        raise SystemExit(f"no photos in {options.folder}; set DIPTYCH_DATA or give a folder of .jpg files")
    cores = EfficientNetLite().threads
    print(f"{len(photos)} photos, {options.network}, batches of {options.batch_size}, {cores} cores, ", end="")
    print(f"load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "load unknown")
    print(f"{'pictures per second':<42}{'bare':>9}{'ours':>9}{'ratio':>9}")

    def ratio(label: str, threads: int) -> float:
        return reported(label, *measured(photos, options.network, threads, options.batch_size, options.rounds))

    judged = ratio(f"network on all {cores} cores", cores)
    if 1 < cores < CORES_FOR_OVERLAP:
        print(f"{cores} cores are too few for decoding to overlap with a network that takes them all")
        judged = ratio(f"network on {cores - 1}, one core free for decoding", cores - 1)
    print(f"bar {BAR:.0%}: {'met' if judged >= BAR else 'missed'} with {judged:.1%}")
    return 0 if judged >= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
