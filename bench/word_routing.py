"""Which queries words help: similarity, words, both joined, and the choice that is made by the query.

    python -m bench.word_routing [--retriever light]

A collection of the 1,000 development photos of Flickr8k (``DIPTYCH_DATA``), every second one with one of its captions,
every fifth one with a made-up name among its keywords, and 200 painted signs whose text is read. Queries of fourteen
kinds are drawn from what is known of them: other captions, words of these, names, numbers, words on signs. Prints for
each kind R@1 and R@10 (with several right answers: the share of the first ten that could be right and are), and exits
with an error where the choice is worse than similarity by more than 0.02, or its mean is not the best of all.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from diptych.collection import Collection, Record
from diptych.collection.search.query import HYBRID_OF_MODE
from diptych.collection.search.sought_words import folded_words
from diptych.data.folders import data_folder
from diptych.encoders.text.english_words import describing_words
from diptych.retriever import Retriever
from tests.doubles.painted_words import paint, words_of

MODES = ("similarity", "words", "both", "auto")
N_SIGNS, N_NAMES = 200, 40
MOST_LOST = 0.02
PLAIN = ("dog", "beach", "snow", "bicycle", "ball", "horse", "guitar", "skateboard", "pool", "boat", "bench")
PAIRS = (("brown", "dog"), ("dog", "beach"), ("red", "shirt"), ("dog", "snow"), ("boy", "ball"), ("dog", "water"))
SIGNS = ("open", "exit", "sale", "school", "street", "market", "hotel", "airport", "station", "museum", "police")


class Photo(NamedTuple):
    """A photograph: its captions, whether the first one is indexed, and a name among its keywords."""

    path: Path
    captions: list[str]
    is_captioned: bool
    keyword: str | None


class Question(NamedTuple):
    """A query and the names of the files that answer it."""

    words: str
    right: frozenset[str]


def photos(flickr8k: Path, draw: random.Random) -> list[Photo]:
    """Return the development photos with what is known of them."""
    captions: dict[str, list[str]] = defaultdict(list)
    for line in (flickr8k / "Flickr8k.token.txt").read_text(encoding="utf-8").splitlines():
        name, _, text = line.partition("\t")
        captions[name.partition("#")[0]].append(text)
    names = [words_of(1000 + number).words[1] for number in range(N_NAMES)]
    listed = (flickr8k / "Flickr_8k.devImages.txt").read_text(encoding="utf-8").split()
    return [
        Photo(flickr8k / "images" / file, captions[file], place % 2 == 0, None if place % 5 else draw.choice(names))
        for place, file in enumerate(listed)
    ]


def records(known: list[Photo], folder: Path) -> Iterator[Record]:
    """Yield what is put into the collection."""
    for photo in known:
        captions = photo.captions[:1] if photo.is_captioned else None
        yield Record(photo.path, captions, metadata={"keywords": [photo.keyword]} if photo.keyword else None)
    for seed in range(N_SIGNS):
        paint(seed).save(folder / f"scan {seed:03}.png")
        yield Record(folder / f"scan {seed:03}.png")


def questions(known: list[Photo], draw: random.Random) -> dict[str, list[Question]]:
    """Return the queries of each kind."""
    asked: dict[str, list[Question]] = defaultdict(list)

    def one(kind: str, words: str, *right: str) -> None:
        asked[kind].append(Question(words, frozenset(right)))

    for photo in draw.sample([photo for photo in known if photo.is_captioned], 150):
        one("description, captioned", photo.captions[1], photo.path.name)
    for photo in draw.sample([photo for photo in known if not photo.is_captioned], 150):
        one("description, no caption", photo.captions[1], photo.path.name)
    for photo in draw.sample(known, 150):
        words = [word for word in folded_words(photo.captions[2]) if word not in describing_words(only_frequent=True)]
        one("three words of a description", " ".join(words[:3]), photo.path.name)
    for photo in draw.sample([photo for photo in known if photo.is_captioned], 60):
        one("indexed caption itself", photo.captions[0], photo.path.name)
    for photo in draw.sample(known, 60):
        one("number in a file name", photo.path.name.partition("_")[0], photo.path.name)
    with_names = [photo for photo in known if photo.keyword]
    for name in sorted({photo.keyword or "" for photo in with_names}):
        right = [photo.path.name for photo in with_names if photo.keyword == name]
        one("a name among keywords", name.lower(), *right)
    for photo in draw.sample(with_names, 60):
        one("a name and a description", f"{photo.keyword} {photo.captions[3]}".lower(), photo.path.name)
    for words in [*((word,) for word in PLAIN), *PAIRS]:
        right = [photo.path.name for photo in known if _n_saying(words, photo) > 1]
        one("a plain word" if len(words) == 1 else "two plain words", " ".join(words), *right)
    for seed in draw.sample(range(N_SIGNS), 60):
        sign, file = words_of(seed), f"scan {seed:03}.png"
        one("all words in a picture", " ".join(sign.words).lower(), file)
        one("a name in a picture", sign.words[1], file)
        one("quoted line in a picture", f'"{" ".join(sign.lines[0])}"', file)
        one("number in a picture", sign.words[3], file)
    for word in SIGNS:
        with_word = [seed for seed in range(N_SIGNS) if word in " ".join(words_of(seed).words).lower().split()]
        one("one word on a sign", word, *(f"scan {seed:03}.png" for seed in with_word))
    return asked


def _n_saying(words: Sequence[str], photo: Photo) -> int:
    return sum({*words} <= {*folded_words(text)} for text in photo.captions[1:])


def measured(collection: Collection, asked: list[Question], hybrid: float | bool | None) -> tuple[float, float]:
    """Return R@1 and R@10."""
    first, ten = [], []
    for words, right in asked:
        found = collection.search(words, 10, hybrid=hybrid)
        hits = [answer.path is not None and answer.path.name in right for answer in found]
        first.append(hits[0])
        ten.append(sum(hits) / min(10, len(right)))
    return float(np.mean(first)), float(np.mean(ten))


def print_table(table: Mapping[str, Mapping[str, tuple[float, float]]]) -> None:
    """Print R@1 and R@10 of every kind and mode, and their means."""
    print(f"{'':30}" + "".join(f"{mode:>16}" for mode in MODES))
    for kind, row in table.items():
        print(f"{kind:30}" + "".join(f"{row[mode][0]:>10.3f} {row[mode][1]:.3f}" for mode in MODES))


def main() -> int:
    """Build the collection, ask, print, and compare with the bars."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--retriever", default="light", choices=("light", "default", "strong"))
    options = parser.parse_args()
    draw = random.Random(0)
    known = photos(data_folder() / "flickr8k", draw)
    table: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as name:
        retriever = Retriever.ready_made(options.retriever)
        with Collection.create(Path(name) / "c", retriever, root=Path(name)) as collection:
            collection.add(list(records(known, Path(name))))
            collection.read_text()
            for kind, asked in questions(known, draw).items():
                table[kind] = {mode: measured(collection, asked, HYBRID_OF_MODE[mode]) for mode in MODES}
    table["mean"] = {mode: tuple(np.mean([row[mode] for row in table.values()], axis=0)) for mode in MODES}
    print_table(table)
    lost = [kind for kind, row in table.items() if row["auto"][0] < row["similarity"][0] - MOST_LOST]
    is_best = all(table["mean"]["auto"][0] >= table["mean"][mode][0] for mode in MODES)
    print(f"worse than similarity: {', '.join(lost) or 'nothing'}")
    return int(bool(lost) or not is_best)


if __name__ == "__main__":
    sys.exit(main())
