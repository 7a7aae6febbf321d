"""What it takes to score the 1,000 nearest codes of a collection again, by their codes and by their features.

    python -m bench.rerank_speed [--quick] [--rows N] [--width N] [--bits N]

Needs the ``search`` extra. A collection of captions, 100,000 (20,000 in the quick form) with 896 features each, has the
codes of a fitted hashing method; captions stand for rows of features, so that nothing but searching is measured. Times
are those of a whole search less those of the same search without re-ranking, in turns. By features it is measured
before the outputs behind the codes are kept beside them, when the store is asked for features, and after. Bar: 20 ms.
The command exits with 1 when it is missed.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from bench.search_speed import NumberedVectors, clustered
from bench.speed_report import SpeedReport, in_turns, speed_parser
from diptych.collection import Collection, Record
from diptych.collection.search.folding import fold_lock
from diptych.models import CVH, Preprocessed
from diptych.space import Space

DEPTH = 1000
BAR_MS = 20.0
TRAINING = 2000
QUERIES = 15
AT_ONCE = 10_000


class NumberedCodes(NumberedVectors):
    """A retriever of codes whose texts are row numbers of a matrix of features."""

    name = "codes"
    space = Space("hamming")
    fingerprint = image_fingerprint = text_fingerprint = "codes"

    def __init__(self, features: np.ndarray, bits: int) -> None:
        super().__init__(features)
        rows = features[:TRAINING]
        self._model = Preprocessed(model=CVH(n_bits=bits)).fit(rows[:, : 2 * bits], rows)

    def texts_to_points(self, features: np.ndarray) -> np.ndarray:
        """Return the codes of features."""
        return self._model.encode_texts(features)

    def texts_to_outputs(self, features: np.ndarray) -> np.ndarray:
        """Return the numbers that the bits of the codes are the signs of."""
        return self._model.decision_texts(features)

    images_to_points, images_to_outputs = texts_to_points, texts_to_outputs

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray:
        """Return the codes of the numbers."""
        return self.texts_to_points(self.text_features(texts))


def answers(collection: Collection, query: int, **options: object) -> list[str]:
    """Return the ids that a search finds."""
    found = collection.search(str(query), k=10, target="texts", hybrid=False, **options)
    return [answer.id for answer in found]


def on_top(collection: Collection, by: str, rounds: int) -> list[float]:
    """Return the milliseconds that re-ranking adds to searches, each of another query."""
    asked = iter(range(2 * (rounds + 1)))

    def search(**options: object) -> Callable[[], object]:
        # The same query in both: it is not encoded again, so both find its words encoded.
        return lambda: answers(collection, next(asked) // 2, **options)

    runs = {"alone": search(), "scored again": search(rerank=DEPTH, rerank_by=by)}
    for query in range(rounds + 1):
        answers(collection, query)
    times = in_turns(runs, rounds)
    return [1e3 * (again - alone) for alone, again in zip(times["alone"], times["scored again"], strict=True)]


def main() -> int:
    """Measure and compare."""
    parser = speed_parser(__doc__)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--width", type=int, default=896)
    parser.add_argument("--bits", type=int, default=64)
    options = parser.parse_args()
    rows = options.rows or (20_000 if options.quick else 100_000)
    report = SpeedReport(__file__, options)
    centres = np.random.default_rng(0).standard_normal((500, options.width), dtype=np.float32)
    retriever = NumberedCodes(clustered(rows, options.width, 1, centres), options.bits)
    with tempfile.TemporaryDirectory() as folder:
        collection = Collection.create(Path(folder) / "c", retriever, load_retriever=lambda _: retriever)
        for start in range(0, rows, AT_ONCE):
            numbers = range(start, min(rows, start + AT_ONCE))
            collection.add([Record(captions=[str(row)], id=str(row)) for row in numbers])
        work = f"scoring {DEPTH:,} of {rows:,} codes of {options.bits} bits again"
        report.cost(f"{work}, by codes", on_top(collection, "codes", QUERIES), unit="ms")
        by_features = {"rerank": DEPTH, "rerank_by": "features"}
        # Nobody else keeps outputs meanwhile.
        with fold_lock(collection.folder / "index", "outputs.lock"):
            report.cost(f"{work}, by features of the store", on_top(collection, "features", QUERIES), unit="ms")
            before = [answers(collection, query, **by_features) for query in range(QUERIES)]
        answers(collection, 0, **by_features)
        # It waits for the outputs that this search lets be kept.
        collection.close()
        report.bound(f"{work}, by features", on_top(collection, "features", QUERIES), BAR_MS, unit="ms")
        after = [answers(collection, query, **by_features) for query in range(QUERIES)]
        report.hold("the answers are those of the store", before == after, str(before == after))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
