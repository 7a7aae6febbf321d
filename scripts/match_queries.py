"""Queries whose right answers are known by captions: words and sentences that are there, and things that are not.

A caption agrees with a query when the words that they share carry a third of the query's weight (each word weighs the
logarithm of how rare it is): of all shares this one agrees best with the experts who judged pairs of Flickr8k. A photo
is right when one of its captions agrees; one that has to be found is right by three captions, or the query's own.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from build_shipped_retrievers import pascal_pairs
from diptych.arrays import BoolArray, FloatArray
from diptych.data import Pairs, load_dataset
from diptych.encoders.text.visualness import concept_names
from diptych.encoders.text.word_pipeline import find_stop_words, lemma
from diptych.retriever import Retriever

ABSENT = Path(__file__).parents[1] / "bench" / "plausible_absent_queries.txt"
N_QUERIES, SHARE_OF_WEIGHT = 200, 1 / 3
_WORD = re.compile(r"[a-z]{2,}")


class Asked(NamedTuple):
    """Queries, their scores among the pictures, which pictures are right, and which have to be found."""

    queries: list[str]
    points: FloatArray
    scores: FloatArray
    right: BoolArray
    wanted: BoolArray


@cache
def content(text: str) -> frozenset[str]:
    """Return the dictionary forms of the words of a text that say something."""
    return frozenset(lemma(word) for word in _WORD.findall(text.lower()) if word not in find_stop_words("english"))


def agreeing(queries: Sequence[str], pairs: Pairs) -> FloatArray:
    """Return how many captions of each picture (columns) agree with each query."""
    captions = [content(text) for text in pairs.texts]
    holders = defaultdict(list)
    for row, words in enumerate(captions):
        for word in words:
            holders[word].append(row)
    counts = np.zeros((len(queries), pairs.n_images))
    for row, query in enumerate(queries):
        held = np.zeros(len(captions))
        weights = {word: np.log((len(captions) + 1) / (len(holders.get(word, ())) + 0.5)) for word in content(query)}
        for word, weight in weights.items():
            held[holders.get(word, [])] += weight
        agrees = (held >= SHARE_OF_WEIGHT * sum(weights.values()) - 1e-9) & (held > 0)
        counts[row] = np.bincount(pairs.owners[agrees], minlength=pairs.n_images)
    return counts


def asked(retriever: Retriever, pairs: Pairs, images: FloatArray) -> dict[str, Asked]:
    """Draw words as often as captions hold them, and captions, and ask them."""
    rng, concepts = np.random.default_rng(0), concept_names()
    told = [word for text in pairs.texts for word in _WORD.findall(text.lower()) if len(word) > 2]
    named = [word for word in told if content(word) and {word, word.removesuffix("s")} & concepts]
    words = [named[place] for place in rng.integers(len(named), size=N_QUERIES)]
    rows = rng.permutation(pairs.n_texts)[:N_QUERIES]
    sentences, own = [pairs.texts[row] for row in rows], np.zeros((N_QUERIES, pairs.n_images), dtype=bool)
    own[np.arange(N_QUERIES), pairs.owners[rows]] = True
    # With one caption a picture, that one has to do.
    needed = 3 if pairs.n_texts >= 3 * pairs.n_images else 1
    found = {}
    for kind, queries, mine in (("words", words, np.zeros_like(own)), ("sentences", sentences, own)):
        counts, points = agreeing(queries, pairs), retriever.texts_to_points(retriever.query_features(queries))
        enough = (counts >= needed) if kind == "words" else (counts >= 3)
        right, wanted = (counts >= 1) | mine, enough | mine
        scores = retriever.space.compare(points, images, "text_query")
        kept = wanted.any(axis=1)
        found[kind] = Asked(
            [q for q, k in zip(queries, kept, strict=True) if k], points[kept], scores[kept], right[kept], wanted[kept]
        )
    return found


def absent(pairs: Pairs, *, test: bool) -> list[str]:
    """Return plausible queries that no caption speaks of: those of even lines to learn from, of odd ones to test."""
    listed = ABSENT.read_text(encoding="utf-8").splitlines()[int(test) :: 2]
    return [query for query, counts in zip(listed, agreeing(listed, pairs), strict=True) if not counts.any()]


def quality(shown: BoolArray, one: Asked) -> float:
    """Return F1 of the mean precision and the mean recall of what is shown."""
    precision = ((shown & one.right).sum(axis=1) / np.maximum(shown.sum(axis=1), 1)).mean()
    recall = ((shown & one.wanted).sum(axis=1) / one.wanted.sum(axis=1)).mean()
    return float(2 * precision * recall / max(precision + recall, 1e-9))


def oracle(one: Asked) -> float:
    """Return the same of the best threshold for each query."""
    shown = np.zeros(one.scores.shape, dtype=bool)
    for row, scores in enumerate(one.scores):
        order = np.argsort(-scores)
        right, wanted = np.cumsum(one.right[row, order]), np.cumsum(one.wanted[row, order])
        shown[
            row,
            order[
                : 1
                + int(
                    (
                        2 * right * wanted / (right * wanted[-1] + wanted * np.arange(1, len(order) + 1)).clip(1e-9)
                    ).argmax()
                )
            ],
        ] = True
    return quality(shown, one)


def development() -> dict[str, Pairs]:
    """Return the photos that are learned from."""
    return {
        "Flickr8k": load_dataset("flickr8k").dev,
        "Pascal": pascal(seen=True),
        "COCO": load_dataset("coco_pairs").dev,
    }


def test() -> dict[str, Pairs]:
    """Return the photos that are asked in the end."""
    return {
        "Flickr8k": load_dataset("flickr8k").test,
        "Pascal": pascal(seen=False),
        "COCO": load_dataset("coco_pairs").test,
    }


def pascal(*, seen: bool) -> Pairs:
    """Return the photos of half of Pascal's classes."""
    pairs = pascal_pairs()
    return pairs.select(np.flatnonzero(np.isin(pairs.labels, sorted(set(pairs.labels.tolist()))[::2]) == seen))
