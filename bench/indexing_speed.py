"""Indexing photos with the program itself: beside bare decoding, a second time, and at growing numbers.

    python -m bench.indexing_speed [--quick]

The photos are Flickr8k's, of 500 × 375 pixels, and the collection and the cache of features start empty; the start of
the program is part of every run. Bare decoding is threads that read the photos at the size that networks need, and
nothing else; the bar for photos of 4,000 × 3,000 pixels is 0.8 of its pace. The second run of the same command must
take at most a fiftieth. Both bars are for the full form: with few photos the start of the program is most of a run.
``index_folder.py`` compares with other checkouts.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from bench.index_folder import BAR, HERE, LARGE_BAR, Indexing, Run, decode, enlarged, linked, measured
from bench.speed_report import SpeedReport, speed_parser
from diptych.data import load_dataset
from diptych.encoders import EfficientNetLite

REPEATS = 3


def paces(runs: list[Run], photos: int) -> list[float]:
    """Return photos a second."""
    return [photos / run.seconds for run in runs]


def beside_decoding(
    report: SpeedReport, work: str, indexing: Indexing, photos: Path, bar: float | None = None
) -> tuple[list[Run], int]:
    """Index in turns with bare decoding, and return what indexing took and the number of photos."""
    count, side, ours, bare = sum(1 for _ in photos.iterdir()), EfficientNetLite().reading_side, [], []
    for _ in range(REPEATS):
        bare.append(measured(lambda: decode(photos, side)))
        ours.append(indexing.first(photos))
    names = {"limit": "bare decoding", "unit": "photos/s", "bar": bar}
    report.compare(f"{work}, {count:,} photos", paces(ours, count), paces(bare, count), **names)
    return ours, count


def main() -> int:
    """Measure and compare."""
    options = speed_parser(__doc__).parse_args()
    report = SpeedReport(__file__, options)
    sizes, large = ((50, 100, 200, 400), 40) if options.quick else ((250, 500, 1000, 2000, 4000), 200)
    paths = [Path(path) for path in load_dataset("flickr8k").train.images[: sizes[-1]]]
    with tempfile.TemporaryDirectory() as scratch:
        room = Path(scratch)
        indexing = Indexing(room, HERE, [])
        # Networks are written down once.
        indexing.first(linked(paths[:8], room / "few"))
        folders = {size: linked(paths[:size], room / f"photos-{size}") for size in sizes}
        for size in sizes[:-1]:
            runs = [indexing.first(folders[size]) for _ in range(REPEATS)]
            report.cost("indexing, photos", [run.seconds for run in runs], size=size)
        first, count = beside_decoding(report, "indexing, 500 × 375 pixels", indexing, folders[sizes[-1]])
        report.cost("indexing, photos", [run.seconds for run in first], size=count)
        again = [indexing.again(folders[count]).seconds for _ in range(REPEATS)]
        before = [run.seconds for run in first]
        again_bar, large_bar = (None, None) if options.quick else (BAR, LARGE_BAR)
        report.compare(f"indexing {count:,} photos again", again, before, limit="the first time", bar=again_bar)
        work = "indexing, 4,000 × 3,000 pixels"
        beside_decoding(report, work, indexing, enlarged(paths[:large], room / "large"), large_bar)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
