"""Models that learn from what people clicked."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Never, Self

import numpy as np
from numpy.typing import ArrayLike

from diptych.arrays import AnyArray, FloatArray, as_matrix, check_scale, column_names, row_blocks
from diptych.data.clicks import ClickLog
from diptych.errors import InvalidInputError
from diptych.estimators import scikit_learn
from diptych.models.base import CrossModalModel, Inputs, Need
from diptych.models.item_model import checked_texts
from diptych.space import Space

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
