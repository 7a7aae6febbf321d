"""Index a folder of photos with one command: how fast, how much faster the second time, and beside what.

    python -m bench.index_folder [--limit N] [--precision auto|float32|int8]
    python -m bench.index_folder --limit N --against SRC [--rounds N]
    python -m bench.index_folder --limit N --large

The photos are Flickr8k's, the collection and the cache of features start empty, and each run is the program itself, its
start included. Bar: the second run takes at most a fiftieth of the first.

``--against`` runs the ``src`` folder of another checkout in turns with this one, and prints the ratio of photos per
second and of processor seconds. ``--large`` indexes the photos enlarged to 4,000 × 3,000 pixels, in turns with threads
that do nothing but decode them at the size that the networks need; the time that one photo takes, mostly the start of
the program, is left out there. Bar: 0.8 of that pace.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

import diptych
from diptych.cluster import available_processors
from diptych.data import load_dataset
from diptych.encoders import EfficientNetLite

BAR, LARGE_BAR = 50, 0.8
LARGE, GRAIN = (4000, 3000), 4.0
HERE = Path(diptych.__file__).parents[1]


@dataclass(frozen=True)
class Run:
    """How long a run took, and how much of the processor."""

    seconds: float
    processor_seconds: float

    def describe(self, count: int) -> str:
        """Return the pace."""
        pace, each = count / self.seconds, 1e3 * self.processor_seconds / count
        return f"{count} photos in {self.seconds:.1f} s, {pace:.1f} a second, {each:.0f} ms of processor each"


def measured(work: Callable[[], object]) -> Run:
    """Run something, in this process or in another that it waits for."""

    def processor() -> float:
        usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(usage.ru_utime + usage.ru_stime for usage in usages)

    started, before = time.perf_counter(), processor()
    work()
    return Run(time.perf_counter() - started, processor() - before)


class Indexing:
    """Runs the program of one checkout with a cache and a collection of its own."""

    def __init__(self, room: Path, source: Path, options: list[str]) -> None:
        self._cache, self._collection = room / "cache", room / "collection"
        self._command = [sys.executable, "-P", "-m", "diptych", "index", "--quiet", *options]
        # Packages that the surroundings name come after the checkout.
        paths = os.pathsep.join(filter(None, [str(source), os.environ.get("PYTHONPATH")]))
        self.environment = {**os.environ, "XDG_CACHE_HOME": str(self._cache), "PYTHONPATH": paths}
        # An installed program is compiled.
        self.environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def first(self, photos: Path) -> Run:
        """Index into an empty collection; networks that were written down before are there already."""
        shutil.rmtree(self._collection, ignore_errors=True)
        shutil.rmtree(self._cache / "diptych" / "features", ignore_errors=True)
        return self.again(photos)

    def again(self, photos: Path) -> Run:
        """Bring the collection up to date."""
        command = [*self._command, str(photos), "--collection", str(self._collection)]
        return measured(lambda: subprocess.run(command, check=True, env=self.environment))


def linked(paths: list[Path], target: Path) -> Path:
    """Return a folder of links to photos."""
    target.mkdir()
    for path in paths:
        (target / path.name).symlink_to(path)
    return target


def enlarged(paths: list[Path], target: Path) -> Path:
    """Return a folder of photos as large as a camera's, with its grain, for decoders take longer with detail."""
    target.mkdir()
    grain = np.random.default_rng(0).normal(scale=GRAIN, size=(LARGE[1], LARGE[0], 1)).astype(np.int16)

    def enlarge(path: Path) -> None:
        with Image.open(path) as image:
            pixels = np.asarray(image.convert("RGB").resize(LARGE, Image.Resampling.BICUBIC))
        grained = np.clip(pixels + grain, 0, 255).astype(np.uint8)
        Image.fromarray(grained).save(target / path.name, quality=90)

    with ThreadPoolExecutor(available_processors()) as pool:
        list(pool.map(enlarge, paths))
    return target


def decode(photos: Path, side: int) -> None:
    """Decode photos at the size that is needed, and nothing else."""

    def decoded(path: Path) -> None:
        with Image.open(path) as image:
            image.draft("RGB", (side, side))
            image.load()

    with ThreadPoolExecutor(available_processors()) as pool:
        list(pool.map(decoded, sorted(photos.iterdir())))


def compare_checkouts(photos: Path, count: int, room: Path, source: Path, options: list[str], rounds: int) -> int:
    """Index in turns with another checkout."""
    others, ours = Indexing(room / "other", source, []), Indexing(room / "ours", HERE, options)
    # Networks are written down once.
    warm = linked(sorted(photos.iterdir())[:8], room / "few")
    for indexing in (others, ours):
        indexing.first(warm)
    pairs = []
    for _ in range(rounds):
        pairs.append((others.first(photos), ours.first(photos)))
        print(f"other: {pairs[-1][0].describe(count)}\nours:  {pairs[-1][1].describe(count)}", flush=True)
    faster = statistics.median(other.seconds / our.seconds for other, our in pairs)
    less = statistics.median(other.processor_seconds / our.processor_seconds for other, our in pairs)
    print(f"{faster:.2f} times the photos per second; {less:.2f} times as many with the same processor time")
    return 0


def compare_decoding(photos: Path, count: int, room: Path, options: list[str], rounds: int) -> int:
    """Index large photos in turns with bare decoding."""
    indexing, side = Indexing(room, HERE, options), EfficientNetLite().reading_side
    one = linked(sorted(photos.iterdir())[:1], room / "few")
    indexing.first(one)
    ratios = []
    for _ in range(rounds):
        start, bare, ours = indexing.first(one), measured(lambda: decode(photos, side)), indexing.first(photos)
        ours = Run(ours.seconds - start.seconds, ours.processor_seconds - start.processor_seconds)
        ratios.append(bare.seconds / ours.seconds)
        print(f"bare decoding: {bare.describe(count)}\nindexing:      {ours.describe(count)}", flush=True)
    print(f"{statistics.median(ratios):.2f} of the pace of decoding (bar {LARGE_BAR})")
    return 0 if statistics.median(ratios) >= LARGE_BAR else 1


def compare_second_run(photos: Path, count: int, room: Path, options: list[str]) -> int:
    """Index twice."""
    indexing = Indexing(room, HERE, options)
    first = indexing.first(photos)
    print(f"first run:  {first.describe(count)}", flush=True)
    second = min(indexing.again(photos).seconds for _ in range(3))
    print(f"second run: {second:.2f} s, {first.seconds / second:.0f} times faster (bar {BAR})")
    return 0 if first.seconds >= BAR * second else 1


def main() -> int:
    """Index and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=int, help="only so many photos, the first of the training part")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--against", type=Path, metavar="SRC")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    flickr, options = load_dataset("flickr8k"), ["--precision", asked.precision]
    paths = [Path(path) for part in (flickr.train, flickr.dev, flickr.test) for path in part.images][: asked.limit]
    with tempfile.TemporaryDirectory() as scratch:
        room = Path(scratch)
        photos = (enlarged if asked.large else linked)(paths, room / "photos")
        if asked.against is not None:
            return compare_checkouts(photos, len(paths), room, asked.against, options, asked.rounds)
        if asked.large:
            return compare_decoding(photos, len(paths), room, options, asked.rounds)
        return compare_second_run(photos, len(paths), room, options)


if __name__ == "__main__":
    sys.exit(main())
