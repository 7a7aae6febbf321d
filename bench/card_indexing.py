"""Photos a second when indexing on a graphics card, or wherever networks run here, and where the time goes.

    python -m bench.card_indexing [--photos 20000] [--precision int8] [--bar 1500]

The photos are made here, 500 × 375 pixels each. The network is that of the default retriever with random weights, so
that no package of weights is needed: for pace alone. Reading and the network are measured by themselves first, then
`Collection.add` with everything that belongs to it: hashes, facts, thumbnails, features, points, rows on the disk.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from PIL import Image

from bench.report import SpeedReport, speed_parser
from diptych.collection import Collection
from diptych.collection.indexing.add_report import AddProgress
from diptych.collection.indexing.adding import MAX_PICTURES_AT_ONCE
from diptych.collection.indexing.file_facts import FileRequest, read_files
from diptych.devices import network_device
from diptych.encoders import EfficientNetLite, Tfidf
from diptych.encoders.image import lite_network
from diptych.encoders.networks.onnx_network import Network
from diptych.models import CCA
from diptych.retriever import Calibration, Retriever

SIZE = (500, 375)
WORDS = ("dog", "boat", "snow", "city", "night", "child", "ball", "river", "street", "horse", "tree", "beach")
WIDTHS, KERNELS, STEM, HEAD = (16, 24, 40, 80, 112, 192, 320), (3, 3, 5, 3, 5, 5, 3), 32, 1280


def write_photos(first: int, last: int, folder: Path) -> None:
    """Write photos of smooth colours with some grain, which take as many bytes as real ones."""
    for number in range(first, last):
        rng = np.random.default_rng(number)
        colours = Image.fromarray(rng.integers(0, 256, (9, 12, 3), dtype=np.uint8))
        pixels = np.asarray(colours.resize(SIZE, Image.Resampling.BICUBIC)) + rng.normal(scale=6, size=(*SIZE[::-1], 1))
        Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).save(folder / f"{number:06}.jpg", quality=88)


def random_weights(network: lite_network.LiteNetwork) -> dict[str, np.ndarray]:
    """Return weights of the right shapes, of such sizes that values neither vanish nor explode."""
    rng, weights = np.random.default_rng(0), dict[str, np.ndarray]()

    def layer(name: str, norm: str, outputs: int, inputs: int, size: int) -> None:
        shape = (outputs, inputs, size, size)
        weights[f"{name}.weight"] = rng.normal(scale=(2 / (inputs * size**2)) ** 0.5, size=shape).astype(np.float32)
        for part, value in (("weight", 1), ("bias", 0), ("running_mean", 0), ("running_var", 1)):
            weights[f"{norm}.{part}"] = np.full(outputs, value, dtype=np.float32)

    layer("_conv_stem", "_bn0", STEM, 3, 3)
    block, width = 0, STEM
    for stage, (output, kernel) in enumerate(zip(WIDTHS, KERNELS, strict=True)):
        for _ in range(network.repeats[stage]):
            prefix, inner = f"_blocks.{block}.", width if stage == 0 else 6 * width
            if inner != width:
                layer(f"{prefix}_expand_conv", f"{prefix}_bn0", inner, width, 1)
            layer(f"{prefix}_depthwise_conv", f"{prefix}_bn1", inner, 1, kernel)
            layer(f"{prefix}_project_conv", f"{prefix}_bn2", output, inner, 1)
            block, width = block + 1, output
    layer("_conv_head", "_bn1", HEAD, width, 1)
    return weights


class RandomNetwork(lite_network.LiteNetwork):
    """The same network with random weights."""

    def weights(self) -> dict[str, np.ndarray]:
        """Return them."""
        return random_weights(self)


def encoder_of(precision: str | None) -> EfficientNetLite:
    """Return the encoder of the default retriever, for which a random network lies in the cache."""
    encoder = EfficientNetLite(network="lite1-captions", precision=precision)
    network = RandomNetwork(**vars(lite_network.lite_network(encoder.network)))
    Network.made_once(encoder.network_name, lambda: network.model(in_eight_bits=precision is not None), encoder.threads)
    return encoder


def retriever_of(encoder: EfficientNetLite) -> Retriever:
    """Return a retriever on that encoder and a text encoder without weights."""
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, 4)) for _ in range(400)]
    made = Retriever(image_encoder=encoder, text_encoder=Tfidf(), name="random", cache=False)
    made.image_encoder_, made.text_encoder_ = encoder, Tfidf(min_documents=1).fit(texts)
    images = rng.normal(size=(len(texts), encoder.n_features)).astype(np.float32)
    made.model_ = CCA(n_components=len(WORDS) - 1, regularization=1.0).fit(images, made.text_encoder_.transform(texts))
    made.calibration_ = Calibration.assumed(10.0, -5.0)
    return made


def rate(count: int, started: float) -> float:
    """Return how many were done in each second since a time."""
    return count / (time.perf_counter() - started)


def main() -> int:
    """Make photos, and measure."""
    parser = speed_parser(__doc__)
    parser.add_argument("--photos", type=int, default=20_000)
    parser.add_argument("--precision", choices=["int8"])
    parser.add_argument("--bar", type=float, default=1500.0, help="photos a second")
    options = parser.parse_args()
    count = 200 if options.quick else options.photos
    report = SpeedReport(__file__, options)
    # Large enough for the photos and fast: in memory where there is such a folder.
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place) as scratch:
        os.environ["XDG_CACHE_HOME"] = f"{scratch}/cache"
        folder = Path(scratch, "photos")
        folder.mkdir()
        with ProcessPoolExecutor() as pool:
            for start in range(0, count, 100):
                pool.submit(write_photos, start, min(start + 100, count), folder)
        paths = sorted(folder.iterdir())
        encoder = encoder_of(options.precision)
        requests = [FileRequest(path, squares=(encoder.square,)) for path in paths[: 8 * MAX_PICTURES_AT_ONCE]]
        read_files(requests[:MAX_PICTURES_AT_ONCE], in_processes=True)
        started = time.perf_counter()
        for start in range(0, len(requests), MAX_PICTURES_AT_ONCE):
            read_files(requests[start : start + MAX_PICTURES_AT_ONCE], in_processes=True)
        report.cost("reading alone, in processes", [rate(len(requests), started)], unit="photos/s")
        shape, turns = (encoder.pictures_at_once, encoder.side, encoder.side, 3), 8 if options.quick else 80
        squares = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
        encoder.encode_prepared(squares)
        started = time.perf_counter()
        for _ in range(turns):
            encoder.encode_prepared(squares)
        work = f"the network alone, {len(squares)} at once on {network_device()}"
        report.cost(work, [rate(turns * len(squares), started)], unit="photos/s")
        last: list[AddProgress] = []
        with Collection.create(Path(scratch, "collection"), retriever_of(encoder), root=folder) as collection:
            started = time.perf_counter()
            added = collection.add(folder, progress=lambda told: last.append(told)).added
            ours = rate(added, started)
        report.hold("all photos are in the collection", added == count, f"{added:,}; slowest stage: {last[-1].slowest}")
        report.bound(f"Collection.add of {added:,} photos", [ours], options.bar, unit="photos/s")
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
