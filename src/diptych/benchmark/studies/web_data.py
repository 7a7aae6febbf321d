"""What methods for click logs learn from, a log simulated from captions, and what they are asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy import sparse

from diptych.arrays import AnyArray, FloatArray, IntArray, row_blocks
from diptych.benchmark.studies.web_lists import (
    JudgedLists,
    caption_lists,
    class_lists,
    crowd_lists,
    expert_lists,
    word_lists,
)
from diptych.data import DatasetSplits, Pairs, load_dataset
from diptych.data.clicks import ClickLog
from diptych.encoders import EfficientNetLite, Encoder, FeatureCache, SentenceEncoder, clean_query
from diptych.errors import InvalidInputError, MissingDataError

_QUERIES_AT_ONCE = 512


def simulate_clicks(
    pairs: Pairs,
    *,
    searches: int = 3,
    shown: int = 10,
    own: float = 0.9,
    others: float = 0.7,
    noise: float = 0.1,
    seed: int = 0,
) -> ClickLog:
    """Return the clicks that simulated people leave who look for the pictures of a captioned data set.

    The log is **simulated**. For every caption somebody looks for its picture:

    1. The query is a run of the caption's words in the sense of :func:`~diptych.encoders.clean_query`. Its length is
       uniform from two words to all of them; a caption of one word is asked as it is, one of none is not asked.
    2. A search engine shows the ``shown`` pictures whose captions together hold the largest share of the query's
       words; ties are broken at random, but the picture that is looked for is shown.
    3. The query is asked ``searches`` times. Each time, the picture that is looked for is clicked with probability
       ``own``, and every other one with ``others`` times the square of the share of the query's words that its captions
       hold. With probability ``noise`` one picture of the whole data set, drawn at random, is clicked besides.

    Clicks on one picture for queries with the same words add up. All draws come from ``seed``. Use it to fit methods
    for click logs where no log is at hand, never to judge them: what people clicked here was decided by captions.

    >>> from diptych.benchmark.web import simulate_clicks
    >>> from diptych.data import Pairs
    >>> pairs = Pairs(["1.jpg", "2.jpg"], ["a black dog runs", "two cats"], ids=["1", "2"])
    >>> log = simulate_clicks(pairs, own=1.0, others=0.0, noise=0.0)
    >>> list(log.images), log.clicks.tolist()
    (['1', '2'], [3.0, 3.0])
    """
    _check(searches=searches, shown=shown)
    rng = np.random.default_rng(seed)
    words = [clean_query(text) for text in pairs.texts]
    asked = [row for row, listed in enumerate(words) if listed]
    if not asked:
        raise InvalidInputError("no caption has a word that counts, so nobody can ask anything")
    queries = [_run_of_words(words[row], rng) for row in asked]
    vocabulary = {word: column for column, word in enumerate(sorted({word for listed in words for word in listed}))}
    owners = np.asarray(pairs.owners)
    holds = _indicator(words, vocabulary, owners, pairs.n_images)
    asks = _indicator(queries, vocabulary, np.arange(len(queries)), len(queries))
    rows: list[FloatArray] = []
    for block in row_blocks(len(queries), _QUERIES_AT_ONCE):
        shares = _shares(asks[block], holds)
        wanted = owners[asked][block]
        chance = others * shares**2
        chance[np.arange(len(wanted)), wanted] = own
        page = _shown_pictures(shares, wanted, min(shown, pairs.n_images), rng)
        clicks = rng.binomial(searches, np.take_along_axis(chance, page, axis=1))
        rows.append(_triads(block.start, page, clicks, rng.binomial(searches, noise, len(wanted)), pairs.n_images, rng))
    triads = np.concatenate(rows)
    spelt = [" ".join(query) for query in queries]
    return ClickLog.from_triads(
        [spelt[int(query)] for query in triads[:, 0]],
        [str(pairs.ids[int(image)]) for image in triads[:, 1]],
        triads[:, 2],
    ).merged()


def _check(**counts: int) -> None:
    for name, count in counts.items():
        if count < 1:
            raise InvalidInputError(f"{name} must be at least 1, got {count}")


def _run_of_words(words: Sequence[str], rng: np.random.Generator) -> tuple[str, ...]:
    length = int(rng.integers(min(2, len(words)), len(words) + 1))
    start = int(rng.integers(0, len(words) - length + 1))
    return tuple(words[start : start + length])


def _indicator(
    texts: Sequence[Sequence[str]], vocabulary: dict[str, int], rows: AnyArray, n_rows: int
) -> sparse.csr_array:
    """Return which of the words each row's texts hold."""
    places = [(int(row), vocabulary[word]) for row, text in zip(rows, texts, strict=True) for word in text]
    found = sparse.csr_array((np.ones(len(places)), tuple(zip(*places, strict=True))), shape=(n_rows, len(vocabulary)))
    found.data[:] = 1
    return found


def _shares(asks: sparse.csr_array, holds: sparse.csr_array) -> FloatArray:
    """Return for each query and picture the share of the query's words that the picture's captions hold."""
    common = (asks @ holds.T).toarray()
    return np.asarray(common / asks.sum(axis=1).reshape(-1, 1))


def _shown_pictures(shares: FloatArray, wanted: AnyArray, shown: int, rng: np.random.Generator) -> IntArray:
    # Shares are fractions of a few words: noise below 1e-6 decides among equals only.
    order = shares + 1e-6 * rng.random(shares.shape)
    order[np.arange(len(wanted)), wanted] = 2
    return np.asarray(np.argpartition(-order, shown - 1, axis=1)[:, :shown])


def _triads(
    first: int, page: IntArray, clicks: IntArray, astray: IntArray, n_images: int, rng: np.random.Generator
) -> FloatArray:
    query, place = np.nonzero(clicks)
    lost = np.repeat(np.arange(len(page)), astray)
    return np.concatenate(
        [
            np.column_stack([first + query, page[query, place], clicks[query, place]]),
            np.column_stack([first + lost, rng.integers(0, n_images, len(lost)), np.ones(len(lost))]),
        ]
    )


FEATURES = {"lite2": "EfficientNet-Lite2", "lite0": "EfficientNet-Lite0"}
"""Image features by name, and what they are."""


@dataclass(frozen=True, eq=False)
class WebData:
    """A click log with features of its pictures, and lists to rank.

    ``features`` are keyed by the name of a network and the part of the data set. ``lists`` are ranked in the test part;
    ``development`` in the development part, to choose weights and parameters by; each of ``elsewhere`` in the pictures
    of another data set, a part by the same name.
    """

    splits: DatasetSplits
    log: ClickLog
    features: Mapping[str, Mapping[str, FloatArray]]
    lists: Mapping[str, JudgedLists]
    development: JudgedLists
    text_encoder: Encoder
    elsewhere: Mapping[str, JudgedLists] = field(default_factory=dict)

    def logged(self, feature: str) -> FloatArray:
        """Return the features of the log's pictures, in its order."""
        rows: FloatArray = self.features[feature]["train"][self._rows]
        return rows

    @cached_property
    def _rows(self) -> IntArray:
        return self.log.image_rows(self.splits.train.ids.tolist())

    def every_list(self) -> dict[str, tuple[JudgedLists, str]]:
        """Return each list with the part whose pictures it ranks."""
        own = {name: (lists, "test") for name, lists in self.lists.items()} | {"captions": (self.development, "dev")}
        return own | {name: (lists, name) for name, lists in self.elsewhere.items()}


def flickr8k_web(*, seed: int = 0) -> WebData:
    """Return Flickr8k with clicks simulated on its training part, and the human judgements of its test part.

    Where Pascal Sentence is at hand, its photographs are another test that nothing is learned or chosen on.
    """
    splits = load_dataset("flickr8k")
    parts, elsewhere = dict(splits.parts), {}
    with suppress(MissingDataError):
        parts["pascal"] = load_dataset("pascal_sentence", test_size=900).test
        elsewhere["pascal"] = class_lists(parts["pascal"])
    cache = FeatureCache()
    features = {
        name: {part: cache.encode(EfficientNetLite(network=name), list(pairs.images)) for part, pairs in parts.items()}
        for name in FEATURES
    }
    lists = {
        "experts": expert_lists(splits),
        "crowd": crowd_lists(splits),
        "words": word_lists(splits.train, splits.test),
    }
    development = caption_lists(_development(splits))
    log = simulate_clicks(splits.train, seed=seed)
    return WebData(splits, log, features, lists, development, SentenceEncoder(), elsewhere)


def _development(splits: DatasetSplits) -> Pairs:
    if splits.dev is None:
        raise ValueError("the data set has no development part")
    return splits.dev
