"""Models that learn from what people clicked, and a click log as they read it: distinct queries as sets of words."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Never, Self

import numpy as np
import scipy
from numpy.typing import ArrayLike

from diptych.arrays import AnyArray, FloatArray, IntArray, as_matrix, check_scale, column_names, row_blocks
from diptych.data.clicks import ClickLog
from diptych.encoders.text.word_pipeline import clean_query
from diptych.errors import InvalidInputError
from diptych.estimators import scikit_learn
from diptych.models.base import CrossModalModel, Inputs, Need
from diptych.models.item_model import checked_texts
from diptych.space import Space


@dataclass(frozen=True, eq=False)
class WordSets:
    """Sets of words with an inverted index from words to sets.

    Set i holds the words numbered ``members[offsets[i]:offsets[i + 1]]``. The Jaccard similarity |q ∩ q′| / |q ∪ q′| of
    a query with all sets costs only the sets that share a word with it: the others have none.
    """

    words: tuple[str, ...]
    offsets: IntArray
    members: IntArray

    @classmethod
    def of(cls, queries: Iterable[Collection[str]]) -> tuple[Self, IntArray]:
        """Return the distinct sets in order of appearance, and the set of each query, −1 for one without words."""
        row_of: dict[str, int] = {}
        set_of: dict[tuple[int, ...], int] = {}
        owners = []
        for query in queries:
            rows = tuple(sorted({row_of.setdefault(word, len(row_of)) for word in query}))
            owners.append(set_of.setdefault(rows, len(set_of)) if rows else -1)
        offsets = np.zeros(len(set_of) + 1, dtype=np.int64)
        np.cumsum([len(rows) for rows in set_of], out=offsets[1:])
        members = np.fromiter((row for rows in set_of for row in rows), dtype=np.int32, count=int(offsets[-1]))
        return cls(tuple(row_of), offsets, members), np.array(owners, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, number: int) -> tuple[str, ...]:
        rows = self.members[self.offsets[number] : self.offsets[number + 1]]
        return tuple(sorted(self.words[row] for row in rows))

    def reordered(self, order: IntArray) -> Self:
        """Return the same sets, number ``order[i]`` at place i."""
        sizes = self.sizes[order]
        offsets = np.zeros(len(order) + 1, dtype=np.int64)
        np.cumsum(sizes, out=offsets[1:])
        # Where each member comes from: the start of its old set, plus its place within the set.
        places = np.arange(offsets[-1]) + np.repeat(self.offsets[:-1][order] - offsets[:-1], sizes)
        return type(self)(self.words, offsets, self.members[places])

    def similarities(self, words: Collection[str]) -> tuple[IntArray, FloatArray]:
        """Return the sets that share a word with ``words``, in ascending order, and their Jaccard similarities."""
        found, common, _ = self._shared(words, np.ones(len(self.words)))
        return found, common / (len(set(words)) + self.sizes[found] - common)

    def cosines(self, words: Collection[str]) -> tuple[IntArray, FloatArray]:
        """Return the sets that share a word with ``words``, in ascending order, and the cosines of tf-idf vectors.

        A word of df of the n sets weighs 1 + log((1 + n)/(1 + df)).
        """
        found, inner, known = self._shared(words, self._squares)
        unknown = (len(set(words)) - len(known)) * (1 + np.log(1 + len(self))) ** 2
        return found, inner / np.sqrt((self._squares[known].sum() + unknown) * self._lengths[found])

    def _shared(self, words: Collection[str], weights: FloatArray) -> tuple[IntArray, FloatArray, list[int]]:
        """Return the sets that share a word, the summed weights of what they share, and the rows of known words."""
        rows = sorted(self.row_of[word] for word in set(words) if word in self.row_of)
        if not rows:
            return np.zeros(0, dtype=np.int64), np.zeros(0), rows
        starts, holders = self._holders
        lists = [holders[starts[row] : starts[row + 1]] for row in rows]
        found, places = np.unique(np.concatenate(lists), return_inverse=True)
        shared = np.bincount(places, weights=np.repeat(weights[rows], [len(listed) for listed in lists]))
        return found.astype(np.int64), np.asarray(shared, dtype=np.float64), rows

    def nearest(self, words: Collection[str], count: int, least: float = 0.0) -> tuple[IntArray, FloatArray]:
        """Return the ``count`` most similar sets of similarity ``least`` or more, best first; of equals the earlier."""
        found, similarities = self.similarities(words)
        if len(found) > count:
            least = max(least, float(np.partition(similarities, -count)[-count]))
        near = similarities >= least
        found, similarities = found[near], similarities[near]
        order = np.argsort(-similarities, kind="stable")[:count]
        return found[order], similarities[order]

    @cached_property
    def sizes(self) -> IntArray:
        """How many words each query has."""
        return np.diff(self.offsets)

    @cached_property
    def _squares(self) -> FloatArray:
        """The squared tf-idf weight of each word."""
        frequency = np.bincount(self.members, minlength=len(self.words))
        return np.asarray((1 + np.log((1 + len(self)) / (1 + frequency))) ** 2)

    @cached_property
    def _lengths(self) -> FloatArray:
        """The squared length of the tf-idf vector of each set."""
        owners = np.repeat(np.arange(len(self)), self.sizes)
        return np.asarray(np.bincount(owners, self._squares[self.members], len(self)), dtype=np.float64)

    @cached_property
    def row_of(self) -> dict[str, int]:
        """The row of each word."""
        return {word: row for row, word in enumerate(self.words)}

    @cached_property
    def _holders(self) -> tuple[IntArray, IntArray]:
        """Where the list of each word starts, and the sets that hold it, ascending."""
        starts = np.zeros(len(self.words) + 1, dtype=np.int64)
        np.cumsum(np.bincount(self.members, minlength=len(self.words)), out=starts[1:])
        owners = np.repeat(np.arange(len(self), dtype=np.int32), self.sizes)
        return starts, owners[np.argsort(self.members, kind="stable")]


def query_table(log: ClickLog) -> tuple[WordSets, scipy.sparse.csr_array]:
    """Return the distinct queries of a log as sets of words, and the (queries, pictures) matrix of clicks.

    Log queries of the same words are one query, whose clicks are added. The most clicked come first; queries without a
    word that counts are left out.

    >>> from diptych.data.clicks import ClickLog
    >>> from diptych.models.clicks.click_model import query_table
    >>> log = ClickLog.from_triads(["cat", "red boat", "boats, red"], ["1.jpg", "2.jpg", "2.jpg"], [3, 2, 2])
    >>> sets, clicks = query_table(log)
    >>> sets[0], clicks.toarray().tolist()
    (('boat', 'red'), [[0.0, 4.0], [3.0, 0.0]])
    """
    sets, owners = WordSets.of(clean_query(query) for query in log.queries)
    if len(sets) == 0:
        raise InvalidInputError("no query of the log has a word left after cleaning; pass a log with words")
    rows = owners[log.query_ids]
    entries = (log.clicks[rows >= 0].astype(np.float64), (rows[rows >= 0], log.image_ids[rows >= 0]))
    table = scipy.sparse.csr_array(entries, shape=(len(sets), len(log.images)))
    table.sum_duplicates()
    order = np.argsort(-table.sum(axis=1), kind="stable")
    return sets.reordered(order), table[order]


# Pictures whose points are made at a time.
_BLOCK_ROWS = 16_384


class ClickModel(CrossModalModel):
    """The contract of every model of a click log: queries are strings, pictures are rows of features.

    `fit_clicks` learns from a :class:`~diptych.data.clicks.ClickLog` and the features of its pictures; `scores`
    compares any queries with any pictures; `answers` tells whether the log says anything about a query. Where the score
    is linear in the picture (``is_indexable``), `encode_images` and `encode_texts` give points whose inner product it
    is, and the model can be indexed, fused and served like any other. A subclass writes ``_fit_clicks`` and `answers`,
    and ``_encode_images`` and ``_encode_queries`` or ``_scores``.

    Dong et al., "Cross-media similarity evaluation for web image retrieval in the wild", TMM 2018, compare such models.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({"clicks"})
    inputs: ClassVar[Inputs] = "clicks"
    is_indexable: ClassVar[bool] = True
    """Whether the score is an inner product of a picture's point and a query's, of a width that an index can hold."""
    why_no_points: ClassVar[str] = ""
    """The reason where it is not."""
    space = Space("dot")

    def fit(self, images: Any, texts: Any, labels: Any = None) -> Never:
        """Refuse: pairs say nothing about clicks."""
        raise InvalidInputError(f"{type(self).__name__} learns from clicks: call fit_clicks(log, images)")

    def fit_clicks(self, log: ClickLog, images: ArrayLike) -> Self:
        """Learn from a log and return the model itself; row i of ``images`` are the features of ``log.images[i]``."""
        if not isinstance(log, ClickLog):
            raise InvalidInputError(
                f"clicks come as a ClickLog, got {type(log).__name__}; use ClickLog.from_triads or read_clicks"
            )
        rows = as_matrix(images, name="images")
        if len(rows) != len(log.images):
            raise InvalidInputError(
                f"there must be one row of features per picture of the log, got {len(rows)} rows and "
                f"{len(log.images)} pictures; use the order of log.images"
            )
        check_scale(rows, name="images")
        self._check_parameters()
        self._fit_clicks(log, rows)
        self.n_pairs_, self.n_image_features_ = log.n_triads, rows.shape[1]
        self._keep_names("image", column_names(images, name="images"))
        self._make_contiguous()
        return self

    @abstractmethod
    def answers(self, query: str) -> bool:
        """Tell whether the model has anything to say about ``query``; all its scores are 0 otherwise."""

    def encode_images(self, images: ArrayLike) -> AnyArray:
        """Return the points of pictures, given their features, one row each."""
        self._check_fitted()
        self._check_indexable()
        return self._encode_images(self._rows("image", images))

    def encode_texts(self, texts: Any) -> AnyArray:
        """Return the points of queries, given as strings, one row each; zero for a query without an answer."""
        self._check_fitted()
        self._check_indexable()
        return self._encode_queries(checked_texts(texts))

    def scores(self, queries: Sequence[str], images: ArrayLike) -> FloatArray:
        """Return the (queries, images) scores in float32; larger is better, and 0 where a query has no answer."""
        self._check_fitted()
        return self._scores(checked_texts(queries), self._rows("image", images))

    def similarity(self, images: ArrayLike, texts: Any) -> FloatArray:
        """Return the (images, texts) matrix of scores; larger is better."""
        return self.scores(texts, images).T

    def score_pairs(self, queries: Sequence[str], images: ArrayLike) -> FloatArray:
        """Return the score of each query with the picture in the same row; lists of candidates are scored this way."""
        self._check_fitted()
        texts = checked_texts(queries)
        rows = self._rows("image", images)
        if len(rows) != len(texts):
            raise InvalidInputError(
                f"queries and images must be aligned row by row, got {len(texts)} and {len(rows)}; "
                "use scores for all against all"
            )
        distinct, asked = np.unique(np.array(texts, dtype=object), return_inverse=True)
        scores = np.empty(len(texts), dtype=np.float32)
        for number, query in enumerate(distinct):
            own = asked == number
            scores[own] = self._scores([query], rows[own])[0]
        return scores

    def _fit_clicks(self, log: ClickLog, images: FloatArray) -> None:
        raise NotImplementedError

    def _encode_queries(self, queries: Sequence[str]) -> AnyArray:
        raise NotImplementedError

    def _scores(self, queries: Sequence[str], images: FloatArray) -> FloatArray:
        points = self._encode_queries(queries)
        scores = np.empty((len(queries), len(images)), dtype=np.float32)
        for rows in row_blocks(len(images), _BLOCK_ROWS):
            scores[:, rows] = self.space.compare(points, self._encode_images(images[rows]), "text_query")
        return scores

    def _check_indexable(self) -> None:
        if not self.is_indexable:
            raise InvalidInputError(
                f"{type(self).__name__} has no points, because {self.why_no_points}; call scores(queries, images), or "
                "use Text2Image or QueryBasedScoring in an index"
            )

    def _check_fitted(self) -> None:
        if not hasattr(self, "n_image_features_"):
            raise scikit_learn("sklearn.exceptions").NotFittedError(
                f"this {type(self).__name__} is not fitted yet: call fit_clicks(log, images) first"
            )
