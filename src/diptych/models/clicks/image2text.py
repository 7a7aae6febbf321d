"""A picture by the words of its nearest pictures in the log: their queries, or their single words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import ClassVar, Literal

import numpy as np
import scipy

from diptych.arrays import FloatArray, IntArray, row_blocks
from diptych.encoders.text.word_pipeline import clean_query
from diptych.models.clicks._logged_clicks import AnswerCache, ClickScale, LoggedClickModel, scaled_clicks
from diptych.models.parameters import Count

# Bytes of a block of approximate distances, and numbers in a block of differences.
_BLOCK_BYTES = 1 << 27
_BLOCK_NUMBERS = 1 << 23
# Candidates beyond those asked for, among which rounding may have changed the order.
_SPARE = 16


def nearest_rows(asked: FloatArray, kept: FloatArray, count: int) -> tuple[IntArray, FloatArray]:
    """Return the ``count`` rows of ``kept`` nearest to each row of ``asked``, and their Euclidean distances.

    The nearest come first, of equals the earlier. ‖x‖² + ‖y‖² − 2⟨x, y⟩ finds candidates fast, but cancels; their
    distances are then taken from differences.
    """
    kept = kept.astype(np.float32, copy=False)
    asked = asked.astype(np.float32, copy=False)
    count = min(count, len(kept))
    halves = np.einsum("ij,ij->i", kept, kept) / 2
    rows = np.empty((len(asked), count), dtype=np.int32)
    distances = np.empty((len(asked), count), dtype=np.float32)
    for block in row_blocks(len(asked), _BLOCK_BYTES // (4 * len(kept))):
        candidates = _candidates(asked[block], kept, halves, min(count + _SPARE, len(kept)))
        rows[block], distances[block] = _ordered(asked[block], kept, candidates, count)
    return rows, distances


def _candidates(asked: FloatArray, kept: FloatArray, halves: FloatArray, count: int) -> IntArray:
    # Half the squared distance, less the part that is the same for all candidates of one row.
    gaps = asked @ kept.T
    np.subtract(halves, gaps, out=gaps)
    return np.sort(np.argpartition(gaps, count - 1, axis=1)[:, :count], axis=1)


def _ordered(asked: FloatArray, kept: FloatArray, candidates: IntArray, count: int) -> tuple[IntArray, FloatArray]:
    gaps = np.empty(candidates.shape, dtype=np.float32)
    for block in row_blocks(len(asked), _BLOCK_NUMBERS // (candidates.shape[1] * asked.shape[1])):
        gaps[block] = np.linalg.norm(kept[candidates[block]] - asked[block, None, :], axis=2)
    order = np.argsort(gaps, axis=1, kind="stable")[:, :count]
    return np.take_along_axis(candidates, order, axis=1), np.take_along_axis(gaps, order, axis=1)


ImageSimilarity = Literal["cosine", "inv_dist"]
QuerySimilarity = Literal["jaccard", "tf-idf"]
# Neighbours of so many pictures are remembered; queries are scored so many at a time.
_REMEMBERED = 100_000
_BLOCK_QUERIES = 32
_LEAST_DISTANCE = 1e-6


@dataclass(kw_only=True, eq=False, repr=False)
class Image2Text(LoggedClickModel):
    """A picture is scored by the queries that similar pictures were clicked for; nothing is trained.

    With x₁ … x_k the log pictures nearest to x in Euclidean distance, and q_i1 … q_im the queries xᵢ was clicked for,

        f(x, q) = (1/k) Σᵢ sim(x, xᵢ)·(1/mᵢ) Σ_j Jaccard(q, q_ij)·log(click_ij).

    The neighbours of a picture are searched once and remembered; only log queries that share a word with q cost time.

    Dong et al., "Cross-media similarity evaluation for web image retrieval in the wild", TMM 2018, equations 1 and 2.
    The paper leaves sim open: the cosine is ours, ``"inv_dist"`` and the limit on queries per picture are those of the
    code its authors released.

    Use it beside `Text2Image`, whose mirror image it is, in a fusion; it has something to say about every query of
    which one word is in the log. It scores lists of candidates: as an inner product the score has one coordinate per
    query of the log, too many for an index.

    Parameters
    ----------
    n_neighbours : int
        k, log pictures.
    max_queries : int
        The most clicked queries of a log picture that count.
    image_similarity : {"cosine", "inv_dist"}
        sim: the cosine, or 1/max(‖x − xᵢ‖, 10⁻⁶), under which a picture of the log is all but its only neighbour.
    query_similarity : {"jaccard", "tf-idf"}
        How queries compare: by Jaccard, or by the cosine of tf-idf vectors, which the paper tried and left.
    clicks : {"log1p", "log"}
        As in `Text2Image`.

    Attributes
    ----------
    words_, set_offsets_, set_words_, click_offsets_, clicked_images_, clicks_, images_ :
        As in `Text2Image`, but pictures keep their length.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.data.clicks import ClickLog
    >>> from diptych.models import Image2Text
    >>> log = ClickLog.from_triads(["red boat", "cat"], ["1.jpg", "2.jpg"], [3, 2])
    >>> model = Image2Text(n_neighbours=1).fit_clicks(log, np.eye(2))
    >>> model.scores(["boat", "cats", "tree"], np.eye(2)).round(2)
    array([[0.69, 0.  ],
           [0.  , 1.1 ],
           [0.  , 0.  ]], dtype=float32)
    """

    is_indexable: ClassVar[bool] = False
    why_no_points: ClassVar[str] = "a point would have one coordinate per query of the log"
    when_to_use: ClassVar[str] = "Scoring candidates for queries whose words, not the whole, are in the log."

    n_neighbours: Count = 50
    max_queries: Count = 30
    image_similarity: ImageSimilarity = "cosine"
    query_similarity: QuerySimilarity = "jaccard"
    clicks: ClickScale = "log1p"

    def answers(self, query: str) -> bool:
        """Tell whether a log query that counts shares a word with ``query``; all scores are 0 otherwise."""
        self._check_fitted()
        return bool((self._text_parts([query]).data > 0).any())

    def _kept_images(self, images: FloatArray) -> FloatArray:
        return images.astype(np.float32)

    def _scores(self, queries: Sequence[str], images: FloatArray) -> FloatArray:
        near = self._image_parts(images.astype(np.float32, copy=False))
        scores = np.empty((len(queries), len(images)), dtype=np.float32)
        for rows in row_blocks(len(queries), _BLOCK_QUERIES):
            scores[rows] = (self._text_parts(queries[rows]) @ near).toarray()
        return scores

    def _text_parts(self, queries: Sequence[str]) -> scipy.sparse.csr_array:
        """Return the (queries, log pictures) means (1/mᵢ) Σ_j Jaccard(q, q_ij)·log(click_ij)."""
        compared = self._sets.cosines if self.query_similarity == "tf-idf" else self._sets.similarities
        found = [compared(clean_query(query)) for query in queries]
        offsets = np.cumsum([0, *(len(rows) for rows, _ in found)])
        values = np.concatenate([similarities for _, similarities in found])
        columns = np.concatenate([rows for rows, _ in found])
        return scipy.sparse.csr_array((values, columns, offsets), shape=(len(queries), len(self._sets))) @ self._shares

    def _image_parts(self, images: FloatArray) -> scipy.sparse.csr_array:
        """Return the (log pictures, images) matrix of sim(x, xᵢ)/k, with k entries in each column."""
        rows, distances = self._image_neighbours(images)
        values = self._similarities(images, rows, distances) / rows.shape[1]
        columns = np.repeat(np.arange(len(images)), rows.shape[1])
        return scipy.sparse.csr_array((values.ravel(), (rows.ravel(), columns)), shape=(len(self.images_), len(images)))

    def _similarities(self, images: FloatArray, rows: IntArray, distances: FloatArray) -> FloatArray:
        gaps = distances.astype(np.float64)
        if self.image_similarity == "inv_dist":
            return np.asarray(1 / np.maximum(gaps, _LEAST_DISTANCE))
        own, others = _squares(images)[:, None], self._log_squares[rows]
        lengths = np.sqrt(own * others)
        # ⟨x, y⟩ = (‖x‖² + ‖y‖² − ‖x − y‖²)/2
        return np.asarray((own + others - gaps**2) / np.where(lengths > 0, 2 * lengths, np.inf))

    def _image_neighbours(self, images: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return the nearest log pictures of each image and their distances, from memory where it was seen before."""
        names = [(blake2b(row.tobytes(), digest_size=16).digest(), self.n_neighbours) for row in images]
        known = [self._cache.get(name) for name in names]
        new = np.array([row for row, answer in enumerate(known) if answer is None], dtype=np.int64)
        found = nearest_rows(images[new], self.images_, self.n_neighbours)
        for place, rows, distances in zip(new, *found, strict=True):
            known[place] = rows, distances
            self._cache.put(names[place], (rows, distances))
        answers = [answer for answer in known if answer is not None]
        return np.stack([rows for rows, _ in answers]), np.stack([distances for _, distances in answers])

    @property
    def _shares(self) -> scipy.sparse.csr_array:
        """The (log queries, log pictures) matrix of log(click_ij)/mᵢ over the queries of each picture that count."""
        key = (self.clicks, self.max_queries)
        known = self._known_shares.get(key)
        if known is None:
            shape = (len(self._sets), len(self.images_))
            table = scipy.sparse.csr_array((self.clicks_, self.clicked_images_, self.click_offsets_), shape=shape)
            known = self._counted(table)
            self._known_shares.put(key, known)
        return known

    def _counted(self, table: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
        return _query_shares(table, self.max_queries, self.clicks)

    @cached_property
    def _cache(self) -> AnswerCache[tuple[IntArray, FloatArray]]:
        return AnswerCache(_REMEMBERED)

    @cached_property
    def _known_shares(self) -> AnswerCache[scipy.sparse.csr_array]:
        return AnswerCache(1)

    @cached_property
    def _log_squares(self) -> FloatArray:
        return _squares(self.images_)


def _squares(rows: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))


def _query_shares(table: scipy.sparse.csr_array, max_queries: Count, scale: ClickScale) -> scipy.sparse.csr_array:
    by_image = table.tocsc()
    images = np.repeat(np.arange(table.shape[1]), np.diff(by_image.indptr))
    order = np.lexsort((by_image.indices, -by_image.data, images))
    kept = order[np.arange(len(order)) - by_image.indptr[images] < max_queries]
    counts = np.minimum(np.diff(by_image.indptr), max_queries)
    values = scaled_clicks(by_image.data[kept], scale) / counts[images[kept]]
    return scipy.sparse.csr_array((values, (by_image.indices[kept], images[kept])), shape=table.shape)


class ImageAnnotation(Image2Text):
    """A picture is annotated with the words that similar pictures were clicked for, and scored by a query's words.

    With x₁ … x_k the log pictures nearest to x in Euclidean distance, and q_i1 … q_im the queries xᵢ was clicked for, a
    word w weighs

        a(x, w) ∝ Σᵢ 1/(1 + ‖x − xᵢ‖) Σ_{j: w ∈ q_ij} log(click_ij),   Σ_w a(x, w) = 1,

    and the score is the mean weight of a query's words, f(x, q) = (1/|q|) Σ_{w ∈ q} a(x, w). `Image2Text` compares
    whole queries with one another; here what was clicked falls apart into words first, so that a long query of the log
    counts for each of its words alike.

    It is the variant of image2text that the code of Dong et al., "Cross-media similarity evaluation for web image
    retrieval in the wild", TMM 2018, has beside the one that the paper prints.

    Use it where queries are single words, or to see which words a picture would get (`annotation`). It scores lists of
    candidates: as an inner product the score has one coordinate per word of the log.

    Parameters
    ----------
    n_neighbours, max_queries, clicks
        As in :class:`Image2Text`.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.data.clicks import ClickLog
    >>> from diptych.models import ImageAnnotation
    >>> log = ClickLog.from_triads(["red boat", "cat"], ["1.jpg", "2.jpg"], [3, 2])
    >>> model = ImageAnnotation(n_neighbours=1).fit_clicks(log, np.eye(2))
    >>> model.scores(["boat", "red cats", "tree"], np.eye(2)).round(2)
    array([[0.5 , 0.  ],
           [0.25, 0.5 ],
           [0.  , 0.  ]], dtype=float32)
    >>> model.annotation([1.0, 0.1])
    [('boat', 0.5), ('red', 0.5)]
    """

    image_similarity = "inv_dist"
    why_no_points: ClassVar[str] = "a point would have one coordinate per word of the log"
    when_to_use: ClassVar[str] = "Scoring candidates for single words, and naming what a picture shows."

    def __init__(self, *, n_neighbours: Count = 50, max_queries: Count = 30, clicks: ClickScale = "log1p") -> None:
        super().__init__(n_neighbours=n_neighbours, max_queries=max_queries, clicks=clicks)

    def annotation(self, image: FloatArray | Sequence[float], count: int = 10) -> list[tuple[str, float]]:
        """Return the heaviest words of a picture, given its features, with their weights; all weights sum to one."""
        self._check_fitted()
        near = self._image_parts(np.atleast_2d(np.asarray(image, dtype=np.float32)))
        weights = (self._shares @ near).toarray()[:, 0]
        order = np.lexsort((self.words_, -weights))[:count]
        return [(self.words_[row], float(weights[row])) for row in order if weights[row] > 0]

    def _image_parts(self, images: FloatArray) -> scipy.sparse.csr_array:
        """Return the (log pictures, images) matrix of 1/(1 + ‖x − xᵢ‖), each column so that its words sum to one."""
        near = super()._image_parts(images)
        total = self._shares.sum(axis=0) @ near
        return near.multiply(1 / np.where(total > 0, total, 1.0)).tocsr()

    def _similarities(self, images: FloatArray, rows: IntArray, distances: FloatArray) -> FloatArray:
        return np.asarray(1 / (1 + distances.astype(np.float64)))

    def _text_parts(self, queries: Sequence[str]) -> scipy.sparse.csr_array:
        """Return the (queries, log pictures) mean weights of a query's words."""
        words = [set(clean_query(query)) for query in queries]
        rows = [[self._sets.row_of[word] for word in asked if word in self._sets.row_of] for asked in words]
        offsets = np.cumsum([0, *map(len, rows)])
        shares = np.repeat([1 / max(1, len(asked)) for asked in words], np.diff(offsets))
        columns = np.fromiter((row for each in rows for row in each), dtype=np.int64, count=offsets[-1])
        return scipy.sparse.csr_array((shares, columns, offsets), shape=(len(queries), len(self.words_))) @ self._shares

    def _counted(self, table: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
        """Return the (words, log pictures) sums of log(click_ij) over the queries of each picture that count."""
        held = (np.ones(len(self.set_words_)), self.set_words_, self.set_offsets_)
        holds = scipy.sparse.csr_array(held, shape=(len(self._sets), len(self.words_)))
        counts = np.minimum(np.bincount(self.clicked_images_, minlength=len(self.images_)), self.max_queries)
        return holds.T @ super()._counted(table).multiply(counts).tocsr()
