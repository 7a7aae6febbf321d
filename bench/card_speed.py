"""A graphics card beside the processor: fits, evaluation, networks and indexing, and how far both agree.

Run ``python -m bench.card_speed`` on a machine with an NVIDIA card, PyTorch and ONNX Runtime for CUDA; with
``--photos FOLDER`` the image network of the default retriever and indexing are measured, too, also with ``--large N``
of the photos enlarged to 4,000 × 3,000 pixels. ``--only`` takes some of the parts. Data of fits and evaluation are
drawn; every number is the second run in one process, except indexing, which is the program with its start. Bars:
indexing 1,500 photos a second or 0.85 of the pace of bare decoding, 0.8 of it with large photos, and points of pictures
that agree to a cosine of 0.9995.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench.index_folder import HERE, LARGE_BAR, Indexing, decode, enlarged, linked, measured
from bench.speed_report import SpeedReport, speed_parser
from diptych import Space
from diptych.arrays import unit_rows
from diptych.devices import DEVICE_VARIABLE, card_for
from diptych.encoders import EfficientNetLite
from diptych.metrics import AP, RecallAtK, SameLabel, evaluate
from diptych.models import CCA, CVH, DCH, PLS, ContrastiveProjection, CrossModalModel, SCMSeq

PARTS = ("fits", "evaluation", "networks", "indexing")
AGREEMENT, PHOTOS_PER_SECOND, SHARE_OF_DECODING = 0.9995, 1_500, 0.85
FITS: tuple[tuple[type[CrossModalModel], dict[str, object], int], ...] = (
    (CCA, {"n_components": 256}, 1_000_000),
    # Each component takes a decomposition, which the card has no part in.
    (PLS, {"n_components": 16}, 1_000_000),
    (CVH, {"n_bits": 64}, 1_000_000),
    (SCMSeq, {"n_bits": 64}, 1_000_000),
    (DCH, {"n_bits": 64}, 1_000_000),
    (ContrastiveProjection, {"n_components": 512, "epochs": 5}, 50_000),
)
WIDTHS = 1_280, 384


def on(device: str, work: Callable[[], object], repeats: int = 1) -> tuple[list[float], Any]:
    """Return the seconds of work on a device, a first run left out, and what it returned."""
    os.environ[DEVICE_VARIABLE] = device
    times, found = [], work()
    for _ in range(repeats):
        started = time.perf_counter()
        found = work()
        times.append(time.perf_counter() - started)
    return times, found


def fits(report: SpeedReport, quick: bool) -> None:
    """Fit large numbers of pairs, and compare what is found."""
    rng = np.random.default_rng(0)
    most = max(count for *_, count in FITS) // (20 if quick else 1)
    labels = rng.integers(50, size=most)
    topics = (rng.normal(size=(50, 64))[labels] + rng.normal(size=(most, 64))).astype(np.float32)
    images, texts = (
        topics @ rng.normal(size=(64, width)).astype(np.float32)
        + rng.standard_normal((most, width), dtype=np.float32) * 4
        for width in WIDTHS
    )
    for method, parameters, count in FITS:
        rows = slice(0, count // (20 if quick else 1))
        sides = images[rows], texts[rows], labels[rows]

        def fitted(method=method, parameters=parameters, sides=sides) -> list[np.ndarray]:
            model = method(**parameters).fit(*sides)
            return [model.encode_images(sides[0][:2000]), model.encode_texts(sides[1][:2000])]

        theirs, expected = on("cpu", fitted)
        ours, found = on("cuda", fitted)
        report.compare(f"fit of {method.__name__}", ours, theirs, limit="the processor", size=len(sides[0]))
        agreement = min(_agreement(*pair) for pair in zip(expected, found, strict=True))
        report.hold(f"{method.__name__}, agreement of points", agreement > 0.999, f"{agreement:.6f}")


def _agreement(first: np.ndarray, second: np.ndarray) -> float:
    """Return the share of equal bits, or the least cosine of two points."""
    if first.dtype == np.uint8:
        return 1 - float(np.bitwise_count(first ^ second).mean()) / 8
    return float((unit_rows(first.astype(np.float64)) * unit_rows(second.astype(np.float64))).sum(axis=1).min())


def evaluation(report: SpeedReport, quick: bool) -> None:
    """Rank a large gallery, with one relevant item for a query and with very many."""
    rng = np.random.default_rng(1)
    n_queries, n_items = (200, 100_000) if quick else (1_000, 1_000_000)
    queries, gallery = (rng.standard_normal((n, 256), dtype=np.float32) for n in (n_queries, n_items))
    own = SameLabel(np.arange(n_queries), np.arange(n_items))
    classes = SameLabel(rng.integers(100, size=n_queries), rng.integers(100, size=n_items))
    for name, relevance in (("one relevant item", own), ("a hundredth relevant", classes)):

        def evaluated(relevance=relevance) -> dict[str, float]:
            measures = [AP(), RecallAtK(10)]
            return evaluate(queries, gallery, Space("cosine"), relevance, measures).mean

        theirs, expected = on("cpu", evaluated)
        ours, found = on("cuda", evaluated)
        report.compare(f"MAP and R@10, {name}, {n_queries} queries", ours, theirs, limit="the processor", size=n_items)
        difference = max(abs(found[measure] / value - 1) for measure, value in expected.items() if value)
        report.hold("relative difference of the measures", difference < 1e-3, f"{difference:.1e}")


def networks(report: SpeedReport, photos: Path) -> None:
    """Encode prepared pictures on both, and compare points."""
    prepared = [EfficientNetLite().prepare(path) for path in sorted(photos.iterdir())[:512]]
    theirs, expected = on("cpu", lambda: EfficientNetLite().encode_prepared(prepared))
    ours, found = on("cuda", lambda: EfficientNetLite().encode_prepared(prepared), repeats=5)
    paces = [[len(prepared) / seconds for seconds in times] for times in (ours, theirs * len(ours))]
    work = "image network, batch of 512"
    report.compare(work, *paces, limit="the processor", unit="photos/s")
    agreement = _agreement(expected, found)
    report.hold(f"{work}, least cosine of features", agreement >= AGREEMENT, f"{agreement:.7f}")


def indexing(report: SpeedReport, photos: Path, precision: str, n_large: int) -> None:
    """Index a folder, its start included, beside threads that only decode."""
    os.environ[DEVICE_VARIABLE] = "auto"
    options = ["--device", "cuda", "--precision", precision]
    with tempfile.TemporaryDirectory() as scratch:
        room = Path(scratch)
        run, few = Indexing(room, HERE, options), linked(sorted(photos.iterdir())[:8], room / "few")
        run.first(few)
        start = run.first(few).seconds
        ours, bare = _beside_decoding(run, photos, start)
        what, share = "indexing without the start of the program", statistics.median(ours) / statistics.median(bare)
        report.compare(what, ours, bare, limit="bare decoding on all cores", unit="photos/s")
        # Either will do: where decoding is slow, no card can help.
        if share < SHARE_OF_DECODING:
            report.bound(what, ours, PHOTOS_PER_SECOND, unit="photos/s")
        if n_large:
            paces = _beside_decoding(run, enlarged(sorted(photos.iterdir())[:n_large], room / "large"), start)
            bars = {"limit": "bare decoding on all cores", "bar": LARGE_BAR}
            report.compare(f"{what}, 4,000 × 3,000 pixels", *paces, unit="photos/s", **bars)
    report.cost("start of the program with 8 photos", [start])


def _beside_decoding(run: Indexing, photos: Path, start: float) -> tuple[list[float], list[float]]:
    """Return the photos a second of indexing and of bare decoding, each done twice."""
    side, count = EfficientNetLite().reading_side, len(list(photos.iterdir()))
    taken = [run.first(photos).seconds - start for _ in range(2)]
    bare = [measured(lambda: decode(photos, side)).seconds for _ in range(2)]
    ours, limit = ([count / seconds for seconds in times] for times in (taken, bare))
    return ours, limit


def main() -> int:
    """Measure what was asked for."""
    parser = speed_parser(__doc__)
    parser.add_argument("--photos", type=Path, metavar="FOLDER")
    parser.add_argument("--precision", default="auto", help="what indexing computes with")
    parser.add_argument("--large", type=int, default=0, metavar="N")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    options = parser.parse_args()
    if card_for(np.inf) is None:
        print("no NVIDIA card that PyTorch can use is here", file=sys.stderr)
        return 2
    report = SpeedReport(__file__, options)
    if "fits" in options.only:
        fits(report, options.quick)
    if "evaluation" in options.only:
        evaluation(report, options.quick)
    if options.photos is not None and "networks" in options.only:
        networks(report, options.photos)
    if options.photos is not None and "indexing" in options.only:
        indexing(report, options.photos, options.precision, options.large)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
