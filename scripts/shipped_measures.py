"""What the model card says about a retriever: recall, class names, languages, and queries that nothing answers."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from diptych.arrays import AnyArray, BoolArray, FloatArray
from diptych.data import Pairs
from diptych.data.folders import data_folder
from diptych.retriever import Retriever
from diptych.retriever.calibration import pictures_with
from diptych.space import SearchDirection, Space

QUERIES = Path(__file__).parents[1] / "bench"
SPOKEN = {"diningtable": "dining table", "pottedplant": "potted plant", "tvmonitor": "tv monitor"}
# The words by which captions name Pascal's classes, where the class has another name.
CAPTION_WORDS = {
    "aeroplane": ("aeroplane", "airplane", "plane", "jet"),
    "bicycle": ("bicycle", "bike"),
    "boat": ("boat", "ship"),
    "bus": ("bus", "buses"),
    "cat": ("cat", "kitten"),
    "diningtable": ("table",),
    "dog": ("dog", "puppy", "puppies"),
    "motorbike": ("motorbike", "motorcycle"),
    "person": ("person", "people", "man", "men", "woman", "women", "lady", "boy", "girl", "child", "children", "baby"),
    "pottedplant": ("plant", "potted"),
    "sheep": ("sheep", "lamb"),
    "sofa": ("sofa", "couch"),
    "tvmonitor": ("television", "monitor", "screen"),
}
_LANGUAGES = ("de", "fr")


@dataclass(frozen=True)
class Recalls:
    """R@1 and R@10 of picture and of text queries, and their mean, by which candidates are chosen."""

    image_1: float
    image_10: float
    text_1: float
    text_10: float

    @property
    def mean(self) -> float:
        """The mean of the four."""
        return (self.image_1 + self.image_10 + self.text_1 + self.text_10) / 4


@dataclass(frozen=True)
class Languages:
    """Recalls of Chinese captions, and R@10 of translated sentences and of short queries by language."""

    chinese: Recalls
    sentences: dict[str, float]
    queries: dict[str, float]


def languages_of(retriever: Retriever, test: Pairs) -> Languages:
    """Ask in many languages; ``test`` are the featured test photos of Flickr8k."""
    return Languages(
        _chinese_captions(retriever, test), translated_sentences(retriever), translated_queries(retriever, test)
    )


def recalls(
    space: Space, images: AnyArray, texts: AnyArray, owners: AnyArray, asked: AnyArray | None = None
) -> Recalls:
    """Return the recalls of points; ``asked`` are the pictures whose queries count, all by default.

    Whatever is asked is ranked among all pictures and texts there are.
    """
    pictures = np.arange(len(images)) if asked is None else np.asarray(asked)
    captions = np.flatnonzero(np.isin(owners, pictures))
    by_text = space.compare(texts[captions], images, "text_query")
    own = by_text[np.arange(len(captions)), owners[captions]]
    of_texts = (by_text > own[:, None]).sum(axis=1)
    by_picture = space.compare(images[pictures], texts, "image_query")
    is_own = owners == pictures[:, None]
    of_pictures = (by_picture > np.where(is_own, by_picture, -np.inf).max(axis=1, keepdims=True)).sum(axis=1)
    return Recalls(*(float((ranks < k).mean()) for ranks in (of_pictures, of_texts) for k in (1, 10)))


def recalls_of(retriever: Retriever, pairs: Pairs, asked: AnyArray | None = None) -> Recalls:
    """Return the recalls of a retriever on pairs given by features."""
    points = retriever.images_to_points(pairs.images), retriever.texts_to_points(pairs.texts)
    return recalls(retriever.space, *points, pairs.owners, asked)


def class_names(retriever: Retriever, pictures: AnyArray, classes: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return MAP and P@10 of the names of classes as queries: as the data set spells them, and in words."""
    names = sorted(set(classes))
    labelled = np.array([np.asarray(classes) == name for name in names])
    kinds = {"as spelt": names, "in words": [SPOKEN.get(name, name) for name in names]}
    return {kind: _precisions(retriever, pictures, spelt, labelled) for kind, spelt in kinds.items()}


def names_shown(retriever: Retriever, pictures: AnyArray, captioned: Pairs) -> tuple[float, float]:
    """Return MAP and P@10 of the names of Pascal's classes in words, for what the photos show.

    Each photo has one label, and may show more: one of a dog on a sofa is a sofa's. Here those are relevant, too, whose
    captions name the class.
    """
    classes = np.asarray(captioned.labels)
    names = sorted(set(classes.tolist()))
    shown = [pictures_with(CAPTION_WORDS.get(name, (name,)), captioned).any(axis=0) for name in names]
    relevant = np.array(shown) | np.array([classes == name for name in names])
    return _precisions(retriever, pictures, [SPOKEN.get(name, name) for name in names], relevant)


def _precisions(
    retriever: Retriever, pictures: AnyArray, queries: Sequence[str], relevant: BoolArray
) -> tuple[float, float]:
    """Return MAP and P@10 of queries, a row of relevant pictures each."""
    points = retriever.images_to_points(pictures)
    scores = retriever.space.compare(query_points(retriever, queries), points, "text_query")
    ranked = np.take_along_axis(relevant, np.argsort(-scores, axis=1), axis=1)
    found = np.cumsum(ranked, axis=1) / np.arange(1, ranked.shape[1] + 1)
    return float(((found * ranked).sum(axis=1) / ranked.sum(axis=1)).mean()), float(ranked[:, :10].mean())


def query_points(retriever: Retriever, queries: Sequence[str]) -> AnyArray:
    """Return the points of queries, as a search makes them."""
    return retriever.texts_to_points(retriever.query_features(queries))


def calibration_error(retriever: Retriever, pairs: Pairs, asked: AnyArray, prior: float) -> dict[str, float]:
    """Return the expected calibration error of both directions, over all pairs of what is asked and what is there.

    The own partner alone counts as relevant, weighted so that a share ``prior`` of all is, as the probabilities assume.
    """
    points = retriever.images_to_points(pairs.images), retriever.texts_to_points(pairs.texts)
    texts = np.flatnonzero(np.isin(pairs.owners, asked))
    relevant = pairs.owners == np.arange(pairs.n_images)[:, None]
    parts: dict[SearchDirection, tuple[FloatArray, AnyArray]] = {
        "image_to_text": (retriever.space.compare(points[0][asked], points[1]), relevant[asked]),
        "text_to_image": (retriever.space.compare(points[1][texts], points[0], "text_query"), relevant[:, texts].T),
    }
    return {
        way: _expected_error(retriever.probability(values.ravel(), way), truth.ravel(), prior)
        for way, (values, truth) in parts.items()
    }


def _expected_error(probabilities: FloatArray, relevant: AnyArray, prior: float, bins: int = 15) -> float:
    weights = np.where(relevant, prior / relevant.mean(), (1 - prior) / (1 - relevant.mean()))
    places = np.minimum((probabilities * bins).astype(int), bins - 1)
    total = np.bincount(places, weights, bins)
    said, true = (np.bincount(places, weights * values, bins) for values in (probabilities, relevant))
    return float(np.abs(said - true).sum() / total.sum())


def _chinese_captions(retriever: Retriever, test: Pairs) -> Recalls:
    """Return the recalls of the human Chinese translations of Flickr8k's test captions."""
    path = data_folder() / "flickr8k_languages" / "flickr8kzhmtest.captions.txt"
    lines = [line.split(" ", 1) for line in path.read_text(encoding="utf-8").splitlines()]
    places = {str(name): row for row, name in enumerate(test.ids)}
    owners = np.array([places[name.split("#")[0]] for name, _ in lines])
    points = retriever.images_to_points(test.images), retriever.encode_texts([text.strip() for _, text in lines])
    return recalls(retriever.space, *points, owners)


def translated_sentences(retriever: Retriever, languages: Sequence[str] = _LANGUAGES) -> dict[str, float]:
    """Return R@10 of Multi30k's test sentences, in English and others, asking for their photo's English captions."""
    folder = data_folder() / "multi30k"

    def lines(name: str) -> list[str]:
        with gzip.open(folder / f"{name}.gz", "rt", encoding="utf-8") as stream:
            return [line.strip() for line in stream]

    sentences = {language: lines(f"test_2016_flickr.{language}") for language in ("en", *languages)}
    captions = [lines(f"test_2016.{number}.en") for number in range(1, 6)]
    gallery = retriever.encode_texts([text for listed in captions for text in listed])
    # The sentence that was translated is one of the five, and must not find itself.
    source = np.array([_letters(text) for text in sentences["en"]])
    is_source = np.array([[_letters(text) for text in listed] for listed in captions]) == source
    found = {}
    for language, asked in sentences.items():
        scores = retriever.space.compare(retriever.encode_texts(asked), gallery, "text_query")
        by_caption = scores.reshape(len(asked), 5, len(asked))
        by_photo = np.where(is_source, -np.inf, by_caption).max(axis=1)
        found[language] = float(((by_photo > np.diag(by_photo)[:, None]).sum(axis=1) < 10).mean())
    return found


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.lower()))


def translated_queries(retriever: Retriever, test: Pairs) -> dict[str, float]:
    """Return, for each language, the share of queries with a wanted photo among the first ten of Flickr8k's test.

    Wanted are the ten photos whose English captions lie nearest to the English query.
    """
    with (QUERIES / "language_queries.tsv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    pictures = retriever.images_to_points(test.images)
    english = query_points(retriever, [row["en"] for row in rows])
    near = retriever.space.compare(english, retriever.texts_to_points(test.texts), "text_query")
    by_photo = np.full((len(rows), test.n_images), -np.inf)
    np.maximum.at(by_photo.T, test.owners, near.T)
    wanted = by_photo >= np.sort(by_photo, axis=1)[:, -10:-9]
    found = {}
    for language in rows[0]:
        scores = retriever.space.compare(
            query_points(retriever, [row[language] for row in rows]), pictures, "text_query"
        )
        best = np.argsort(-scores, axis=1)[:, :10]
        found[language] = float(np.take_along_axis(wanted, best, axis=1).mean())
    return found
