"""Learn where matches end, and measure it: "no good match", the line below good answers, and what percentages mean.

    python scripts/match_line.py [--measure]

needs Flickr8k, Pascal Sentence and the COCO pairs in DIPTYCH_DATA. It learns on development photos (Flickr8k's and
COCO's, and ten of Pascal's classes), writes what it learned into the retrievers of the package, and then asks test
photos (``--measure`` alone does that). The record is `match_line.json`, the page docs/results/good-matches.md.
"""

from __future__ import annotations

import argparse
import io
import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageOps
from sklearn.linear_model import LogisticRegression

from diptych.arrays import BoolArray, FloatArray
from diptych.data import Pairs
from diptych.encoders.text.word_pipeline import is_short_query
from diptych.retriever import Calibration, Retriever
from diptych.retriever.calibration import shared_quantile
from diptych.retriever.ready_made import READY_MADE, SHIPPED_FOLDER
from match_queries import N_QUERIES, Asked, absent, asked, development, oracle, pascal, quality, test
from shipped_measures import SPOKEN, query_points

RECORD = Path(__file__).with_name("match_line.json")
PAGE = Path(__file__).parents[1] / "docs" / "results" / "good-matches.md"
ANSWERED, N_COPIES, COPY_ODDS = 0.95, 60, 49
KINDS = ("words", "sentences")


def likely(retriever: Retriever, one: Asked) -> FloatArray:
    """Return the probability of each answer, as a search says it."""
    is_short = np.array([retriever.is_short_query(query) for query in one.queries])[:, None]
    short, other = (retriever.probability(one.scores, "text_to_image", is_short=kind) for kind in (True, False))
    return np.where(is_short, short, other)


def evidence(retriever: Retriever, queries: Sequence[str], points: FloatArray, count: int) -> FloatArray:
    """Return what the least score of a match may depend on; see `Calibration.cutoff_of`."""
    short = [float(is_short_query(query)) for query in queries]
    size = np.full((len(queries), 2), [1.0, np.log(count)])
    return np.column_stack([size, short, retriever.model_.familiarity(points)])


def learn(retriever: Retriever, sets: dict[str, tuple[Pairs, FloatArray]]) -> None:
    """Learn probabilities of words, the least score of a match and the share at which good answers end."""
    known, best, there, weights, ratios = [], [], [], [], defaultdict(list)
    listed = lines_of("src/diptych/retriever/absent_queries.txt")
    every = {name: asked(retriever, *one) for name, one in sets.items()}
    # How many pictures a word fits is seen in their captions: nothing is assumed.
    said, right = ([getattr(one["words"], part).ravel() for one in every.values()] for part in ("scores", "right"))
    line = Calibration(prior=None).fit({"text_to_image": (np.concatenate(said), np.concatenate(right))})
    retriever.calibration_.short_line_ = np.array([line.intercepts_[0], line.slopes_[0]])
    for name, (pairs, images) in sets.items():
        drawn = every[name]
        for kind, one in drawn.items():
            odds, top = likely(retriever, one), likely(retriever, one).max(axis=1, keepdims=True)
            ratios[kind].append(
                [quality(odds >= share * top, one) / oracle(one) for share in np.arange(0.2, 0.9, 0.05)]
            )
        missing = [*absent(pairs, test=False), *listed]
        points = retriever.texts_to_points(retriever.query_features(missing))
        scores = retriever.space.compare(points, images, "text_query")
        for rows in (np.arange(len(images)), np.random.default_rng(1).permutation(len(images))[: len(images) // 5]):
            for one in drawn.values():
                held = one.wanted[:, rows].any(axis=1)
                known.append(evidence(retriever, one.queries, one.points, len(rows))[held])
                best.append(one.scores[:, rows].max(axis=1)[held])
                there.append(np.ones(len(best[-1])))
            known.append(evidence(retriever, missing, points, len(rows)))
            best.append(scores[:, rows].max(axis=1))
            there.append(np.zeros(len(missing)))
            weights += [np.full(len(part), share / len(part)) for part, share in zip(best[-3:], (1, 1, 2), strict=True)]
    features, is_there = np.column_stack([np.concatenate(best), np.concatenate(known)]), np.concatenate(there)
    middle, spread = features.mean(axis=0), features.std(axis=0) + 1e-9
    fitted = LogisticRegression(max_iter=1000).fit(
        (features - middle) / spread, is_there, sample_weight=np.concatenate(weights) * 1000
    )
    slopes = fitted.coef_[0] / spread
    # As many of what is there may be refused as five in a hundred.
    least = np.quantile((features @ slopes)[is_there > 0], 1 - ANSWERED)
    retriever.calibration_.presence_ = -slopes[1:] / slopes[0]
    retriever.calibration_.presence_[0] += least / slopes[0]
    shares = [0.2 + 0.05 * int(np.mean(ratios[kind], axis=0).argmax()) for kind in KINDS]
    retriever.calibration_.line_shares_ = np.array(shares)


def learn_copies(retriever: Retriever, pairs: Pairs, images: FloatArray) -> None:
    """Learn what similarity tells a copy of a picture from another picture."""
    others = retriever.space.compare(images, images)[~np.eye(len(images), dtype=bool)]
    scores = [of_copies(retriever, pairs.images, kind) for kind in ("saved again", "mirrored")]
    low, high = float(np.quantile(others, 0.9999)), float(np.quantile(np.concatenate(scores), 0.02))
    slope = 2 * np.log(COPY_ODDS) / max(high - low, 0.02)
    retriever.calibration_.copy_line_ = np.array([-slope * (low + high) / 2, slope])


def of_copies(retriever: Retriever, paths: Sequence[Any], kind: str, *, turns: bool = False) -> FloatArray:
    """Return the similarity of some pictures to changed copies; ``turns`` takes the best way up, as searches do."""
    pictures = [ImageOps.exif_transpose(Image.open(path)).convert("RGB") for path in paths[:N_COPIES]]
    plain = retriever.encode_images([np.asarray(picture) for picture in pictures])
    changed = [np.asarray(COPIES[kind](picture)) for picture in pictures]
    found = np.diag(retriever.space.compare(retriever.encode_images(changed), plain))
    if turns:
        ways = [
            retriever.space.compare(retriever.turned_points(copy), plain[[row]]) for row, copy in enumerate(changed)
        ]
        found = np.maximum(found, np.array(ways)[:, :, 0].max(axis=1))
    return found


def is_match(retriever: Retriever, queries: Sequence[str], points: FloatArray, scores: FloatArray) -> FloatArray:
    """Return by how much the best score of each query exceeds the least score of a match."""
    known = evidence(retriever, queries, points, scores.shape[1])
    return np.asarray(scores.max(axis=1) - known @ retriever.calibration_.presence_)


def calibration_error(said: FloatArray, right: BoolArray) -> float:
    """Return the expected calibration error over all answers, in bins of a fifteenth."""
    places = np.minimum((said * 15).astype(int), 14).ravel()
    sums = [np.bincount(places, values.ravel(), 15) for values in (said, right)]
    return float(np.abs(sums[0] - sums[1]).sum() / said.size)


def measured(retriever: Retriever, pairs: Pairs, images: FloatArray) -> dict[str, float]:
    """Return everything about one set of test photos."""
    drawn, found, margins = asked(retriever, pairs, images), {}, []
    for kind, one in drawn.items():
        odds = likely(retriever, one)
        share = retriever.calibration_.line_share(is_short=kind == "words")
        found[f"{kind}: F1"] = quality(odds >= share * odds.max(axis=1, keepdims=True), one)
        found[f"{kind}: F1 of the oracle"] = oracle(one)
        found[f"{kind}: calibration error"] = calibration_error(odds, one.right)
        margins.append(is_match(retriever, one.queries, one.points, one.scores))
        found[f"{kind}: answered"] = float((margins[-1] >= 0).mean())
    missing = absent(pairs, test=True)[:N_QUERIES]
    points = retriever.texts_to_points(retriever.query_features(missing))
    strange = is_match(retriever, missing, points, retriever.space.compare(points, images, "text_query"))
    found["absent: refused"] = float((strange < 0).mean())
    at = np.quantile(np.concatenate(margins), 1 - ANSWERED)
    found["absent: refused where 95 % are answered"] = float((strange < at).mean())
    return found


def also(retriever: Retriever) -> dict[str, float]:
    """Return what becomes of class names and captions of Pascal's photos, of nonsense, and of copies of pictures."""
    seen, unseen = pascal(seen=True), pascal(seen=False)
    images = retriever.encode_images([*seen.images, *unseen.images])
    margins = []
    names = sorted({*seen.labels.tolist(), *unseen.labels.tolist()})
    kinds = [SPOKEN.get(name, name) for name in names], list(unseen.texts), lines_of("bench/absent_queries.txt")
    for queries in kinds:
        points = query_points(retriever, queries)
        scores = retriever.space.compare(points, images, "text_query")
        margins.append(is_match(retriever, queries, points, scores))
    at = shared_quantile(margins[:2], 1 - ANSWERED)
    found = {
        "class names answered": float((margins[0] >= 0).mean()),
        "captions answered": float((margins[1] >= 0).mean()),
        "absent or nonsense refused": float((margins[2] < 0).mean()),
        "the same where 95 % are answered": float((margins[2] < at).mean()),
    }
    for kind in COPIES:
        said = retriever.probability(
            of_copies(retriever, test()["Flickr8k"].images, kind, turns=True), "image_to_image"
        )
        found[f"copies {kind}: found with more than 95 %"] = float((said > 0.95).mean())
    return found


def saved_again(picture: Image.Image) -> Image.Image:
    """Return a picture as a JPEG file of low quality has it."""
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=50)
    return Image.open(buffer)


COPIES = {
    "saved again": saved_again,
    "mirrored": ImageOps.mirror,
    "turned by 90°": lambda picture: picture.transpose(Image.Transpose.ROTATE_90),
}


def lines_of(path: str) -> list[str]:
    """Return the lines of a file of the repository."""
    return (Path(__file__).parents[1] / path).read_text(encoding="utf-8").splitlines()


def with_points(retriever: Retriever, sets: dict[str, Pairs]) -> dict[str, tuple[Pairs, FloatArray]]:
    """Return each set with the points of its pictures."""
    return {name: (pairs, retriever.encode_images(pairs.images)) for name, pairs in sets.items()}


def page(record: dict[str, dict[str, dict[str, Any]]]) -> str:
    """Return the page with the tables of the record."""
    head, _, tail = PAGE.read_text(encoding="utf-8").partition("<!-- measured -->\n")
    lines = []
    for name, one in record.items():
        lines += [f"| `{name}` | {' | '.join(one['sets'])} |", f"|---|{'---:|' * len(one['sets'])}"]
        for what in next(iter(one["sets"].values())):
            lines.append(f"| {what} | {' | '.join(f'{each[what]:.3f}' for each in one['sets'].values())} |")
        lines += ["", f"| `{name}`, Pascal's classes, copies | share |", "|---|---:|"]
        lines += [*(f"| {what} | {share:.3f} |" for what, share in one["also"].items()), ""]
    return f"{head}<!-- measured -->\n" + "\n".join(lines) + "<!-- end -->" + tail.partition("<!-- end -->")[2]


def main() -> None:
    """Learn, measure, and write the record and the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--measure", action="store_true", help="measure what the package has learned")
    parser.add_argument("--only", choices=READY_MADE, help="one retriever alone")
    arguments = parser.parse_args()
    measures = {}
    for name in [arguments.only] if arguments.only else READY_MADE:
        retriever = Retriever.ready_made(name)
        if not arguments.measure:
            sets = with_points(retriever, development())
            learn(retriever, sets)
            learn_copies(retriever, *sets["Flickr8k"])
            retriever.save(SHIPPED_FOLDER / name)
        sets = with_points(retriever, test())
        measures[name] = {
            "sets": {part: measured(retriever, *one) for part, one in sets.items()},
            "also": also(retriever),
        }
        print(name, json.dumps(measures[name], indent=1), retriever.calibration_.line_shares_, flush=True)
    known = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    record = {name: (known | measures)[name] for name in READY_MADE if name in known | measures}
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(record), encoding="utf-8")


if __name__ == "__main__":
    main()
