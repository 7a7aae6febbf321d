"""Training on the captions of a few photographs of a collection: what is promoted, and whether that is better in truth.

    python -m bench.few_captions [--models default conse] [--captions 50] [--draws 5] [--first-draw 0]

A collection of the 1,000 photographs of Pascal Sentence uses a search model of the package. In each draw some
photographs get their five captions, and `Training` learns from them and from the other photographs, as `diptych train`
does. The truth is measured with captions it has not seen: those of all other photographs look for their own among the
1,000, before and after. Every model is learned to the end, so that the gains of those that the gate refuses are known.

Bar: at most one of twenty trainings is promoted though the truth is not better (AP of text queries).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from diptych import Retriever
from diptych.arrays import FloatArray
from diptych.collection import Collection, Record
from diptych.collection.learning import Training, unpaired_items
from diptych.data import Pairs, load_dataset
from diptych.metrics import AP, RecallAtK, SameLabel, evaluate

MEASURES = (AP(), RecallAtK(10))
MOST_WRONG = 1 / 20


def pascal() -> Pairs:
    """Return all photographs with their captions."""
    splits = load_dataset("pascal_sentence")
    parts = splits.train, splits.test
    images = [image for part in parts for image in part.images]
    texts = [text for part in parts for text in part.texts]
    starts = np.cumsum([0, *(part.n_images for part in parts)])
    owners = np.concatenate([part.owners + start for part, start in zip(parts, starts[:-1], strict=True)])
    return Pairs(images, texts, owners=owners)


def truth(retriever: Retriever, pairs: Pairs, asked: FloatArray) -> list[float]:
    """Return the means of the measures for captions of the photographs that are asked for, among all."""
    rows = np.flatnonzero(np.isin(pairs.owners, asked))
    texts = retriever.encode_texts([pairs.texts[row] for row in rows])
    relevance = SameLabel(pairs.owners[rows], np.arange(pairs.n_images))
    found = evaluate(
        texts, retriever.encode_images(pairs.images), retriever.space, relevance, MEASURES, direction="text_query"
    )
    return [found.mean[measure] for measure in MEASURES]


def main() -> int:
    """Train in every draw, and return 1 where too many are promoted wrongly."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["default", "conse"], choices=["default", "strong", "conse"])
    parser.add_argument("--captions", type=int, nargs="+", default=[50], help="photographs that have captions")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--first-draw", type=int, default=0)
    options = parser.parse_args()
    pairs = pascal()
    wrong = n_trainings = 0
    for name in options.models:
        base = Retriever.conse() if name == "conse" else Retriever.ready_made(name)
        with (
            tempfile.TemporaryDirectory() as folder,
            Collection.create(Path(folder) / "collection", base, root=Path(pairs.images[0]).parent) as collection,
        ):
            collection.add(Record(path) for path in pairs.images)
            for n_captions in options.captions:
                gains = []
                for draw in range(options.first_draw, options.first_draw + options.draws):
                    order = np.random.default_rng(draw).permutation(pairs.n_images)
                    told, rest = pairs.select(np.sort(order[:n_captions])), order[n_captions:]
                    started = time.perf_counter()
                    training = Training(collection, method=None, parameters={})
                    report = training.run(told, unpaired=unpaired_items(collection, told), force=True, dry_run=True)
                    assert report.retriever is not None
                    before, after = truth(base, pairs, rest), truth(report.retriever, pairs, rest)
                    is_promoted = report.comparison.passes
                    n_trainings += 1
                    wrong += is_promoted and after[0] <= before[0]
                    gains.append([is_promoted, *(np.array(after) - before)])
                    verdict, seconds = "promoted" if is_promoted else "kept", time.perf_counter() - started
                    values = zip(MEASURES, before, after, strict=True)
                    told_truth = ", ".join(f"{measure.label} {old:.4f} -> {new:.4f}" for measure, old, new in values)
                    print(f"{name}, {n_captions} captioned, draw {draw}: {verdict}; truth {told_truth}", flush=True)
                    print(f"    {report.comparison.reason}; {report.comparison.learned}; {seconds:.0f} s", flush=True)
                table = np.array(gains, dtype=float)
                means = " ".join(
                    f"{measure.label} {(table[:, 0] * gain).mean():+.4f} with the gate, {gain.mean():+.4f} without;"
                    for measure, gain in zip(MEASURES, table[:, 1:].T, strict=True)
                )
                print(
                    f"{name}, {n_captions} captioned: {int(table[:, 0].sum())} of {len(table)} promoted; mean {means}"
                )
    print(f"wrong promotions: {wrong} of {n_trainings}")
    return int(wrong > MOST_WRONG * n_trainings)


if __name__ == "__main__":
    sys.exit(main())
