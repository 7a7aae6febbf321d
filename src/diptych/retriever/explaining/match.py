"""A query and an answer, ready to be explained, and their score taken apart."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

import numpy as np

from diptych.arrays import AnyArray, FloatArray, as_matrix
from diptych.errors import InvalidInputError
from diptych.models import CrossModalModel, Preprocessed
from diptych.retriever.explaining.explanation import View, ViewKind
from diptych.retriever.retriever import Retriever
from diptych.space import Direction, SearchDirection, Space, on_one_scale

SubjectSide = Literal["image", "text"]


@dataclass(frozen=True, eq=False)
class Subject:
    """A picture or a text with its features and its point, one row each.

    ``words`` is the text itself, None for a picture; ``name`` is what sentences call it. ``features`` are None where
    only the point is known; then what is told by features is left out of an explanation.

    >>> import numpy as np
    >>> from diptych.encoders import ColourEdgeHistograms, TfidfTopics
    >>> from diptych.models import SharedSpace
    >>> from diptych.retriever import Retriever, Subject
    >>> retriever = Retriever(cache=False)
    >>> retriever.text_encoder_ = TfidfTopics(min_documents=1).fit(["red boat"])
    >>> retriever.model_ = SharedSpace().fit(np.eye(1), np.eye(1))
    >>> Subject.of_text(retriever, "a boat").point.round(3).tolist()
    [[1.0]]
    """

    side: SubjectSide
    features: FloatArray | None
    point: AnyArray
    words: str | None
    name: str

    @classmethod
    def of(cls, retriever: Retriever, what: Any, *, asks: bool = False) -> Subject:
        """Return a subject as it is, take a string for words and anything else for a picture."""
        if isinstance(what, Subject):
            return what
        return cls.of_text(retriever, what, asks=asks) if isinstance(what, str) else cls.of_picture(retriever, what)

    @classmethod
    def of_text(cls, retriever: Retriever, words: str, *, asks: bool = False) -> Subject:
        """Encode words, as those of a query where it ``asks``."""
        features = retriever.query_features([words]) if asks else retriever.text_features([words])
        return cls("text", features, retriever.texts_to_points(features), words, words)

    @classmethod
    def of_picture(cls, retriever: Retriever, picture: Any) -> Subject:
        """Encode a picture: a path, an array or a Pillow image."""
        name = Path(picture).name if isinstance(picture, os.PathLike) else "the picture"
        return cls.of_image_features(retriever, retriever.image_features([picture]), name)

    @classmethod
    def of_image_point(cls, point: AnyArray, name: str = "the picture") -> Subject:
        """Take a picture's point alone, as one row."""
        return cls("image", None, point, None, name)

    @classmethod
    def of_image_features(cls, retriever: Retriever, features: AnyArray, name: str = "the picture") -> Subject:
        """Take features that are there already, as one row; pixels are not read again."""
        row = as_matrix(features, name="features")
        return cls("image", row, retriever.images_to_points(row), None, name)

    @classmethod
    def of_stored_picture(
        cls, retriever: Retriever, features: AnyArray, point: AnyArray, name: str = "the picture"
    ) -> Subject:
        """Take a picture by its stored features, one row, or by its stored point alone where there are none."""
        return cls.of_image_features(retriever, features, name) if len(features) else cls.of_image_point(point, name)


def inner_model(model: CrossModalModel) -> CrossModalModel:
    """Return the model whose points are compared: scaling in front of it does not change what they mean.

    >>> from diptych.models import CCA
    >>> inner_model(Preprocessed(model=CCA()))
    CCA()
    """
    while isinstance(model, Preprocessed):
        model = model.model_ if hasattr(model, "model_") else model.model
    return model


@dataclass(frozen=True, eq=False)
class Match:
    """One term of a query beside one answer."""

    retriever: Retriever
    query: Subject
    answer: Subject
    class_names: Sequence[str] | None = None

    @property
    def space(self) -> Space:
        """How the two compare."""
        return self.retriever.space

    @property
    def direction(self) -> Direction:
        """The direction of the space, which is that of the query."""
        return "image_query" if self.query.side == "image" else "text_query"

    @property
    def score(self) -> float:
        """The score of the answer."""
        return float(self.space.compare(self.query.point, self.answer.point, self.direction)[0, 0])

    @property
    def score_slope(self) -> float:
        """How much evidence a unit of the score is."""
        return self.retriever.score_slope(cast(SearchDirection, f"{self.query.side}_to_{self.answer.side}"))

    @property
    def score_of_nothing(self) -> float:
        """The score that would say nothing about a match: none, or for codes as many bits as luck lets agree."""
        if self.space.name != "hamming":
            return 0.0
        n_bits = getattr(inner_model(self.retriever.model_), "n_bits", 8 * self.query.point.shape[1])
        return -float(n_bits) / 2

    @property
    def answer_noun(self) -> str:
        """What sentences call the answer."""
        return "picture" if self.answer.side == "image" else "text"

    def scores_instead(self, subject: Subject, points: AnyArray) -> FloatArray:
        """Return the scores if ``subject``, a side of the match, had been each of these points."""
        if subject is self.query:
            return np.asarray(self.space.compare(points, self.answer.point, self.direction)[:, 0])
        return np.asarray(self.space.compare(self.query.point, points, self.direction)[0])

    def text_points(self, subject: Subject, texts: Sequence[str]) -> AnyArray:
        """Return the points of texts in the place of a side, past the cache: nobody will ask for them again."""
        encoder = self.retriever.text_encoder_
        encode = encoder.transform_queries if subject is self.query else encoder.transform
        return self.retriever.texts_to_points(encode(list(texts)))


class Explainer(ABC):
    """Looks at a match in one way, where it has anything to say; their list in `explain` decides who speaks first."""

    kind: ClassVar[ViewKind]

    def reads_model(self, model: CrossModalModel) -> bool:
        """Return True if this idea fits the model, whatever the encoders are; False where the encoders alone decide."""
        del model
        return False

    @abstractmethod
    def views(self, match: Match) -> list[View]:
        """Return what there is to see; nothing where this idea does not fit the match."""


def is_linear(space: Space) -> bool:
    """Return True if scores of a space are inner products of points that were centred or scaled first."""
    return space.name in ("cosine", "pearson", "covariance", "dot")


def _as_in_product(space: Space, direction: Direction, point: AnyArray) -> FloatArray:
    """Return a point, given as one row, as it enters the inner product of a linear space."""
    values: FloatArray = np.asarray(point[0], dtype=np.float64)
    if space.split is not None:
        values = values[: space.split] if direction == "image_query" else values[space.split :]
    if space.name in ("pearson", "covariance"):
        # A constant point has no shape to correlate with; what rounding leaves of it must not be scaled up.
        noise = 4 * np.finfo(np.float32).eps * np.abs(values).max(initial=0.0)
        centred = values - values.mean()
        values = np.zeros_like(values) if np.abs(centred).max(initial=0.0) <= noise else centred
    if space.name in ("cosine", "pearson"):
        length = float(np.linalg.norm(values))
        return values / length if length > 0 else np.zeros_like(values)
    return values / np.sqrt(len(values)) if space.name == "covariance" else values


_FLOOR = 1e-12


def coordinate_contributions(space: Space, query: AnyArray, answer: AnyArray, direction: Direction) -> FloatArray:
    """Return what each coordinate adds to the score of two points, given as one row each.

    Class probabilities are compared by sums over coordinates: a product for inner products (after centring and
    scaling), a squared or absolute difference for distances, a log-ratio for divergences. The contributions sum to the
    score.

    >>> query, answer = np.array([[0.75, 0.25]]), np.array([[0.5, 0.5]])
    >>> coordinate_contributions(Space("l1"), query, answer, "text_query").tolist()
    [-0.25, -0.25]
    """
    if is_linear(space):
        return np.asarray(_as_in_product(space, direction, query) * _as_in_product(space, direction, answer))
    if space.name not in _DIFFERENCES or space.split is not None:
        raise InvalidInputError(f"the score of the space {space.name!r} is no sum over coordinates with a meaning")
    first, second = np.asarray(query[0], dtype=np.float64), np.asarray(answer[0], dtype=np.float64)
    if space.name == "kl" and direction == "text_query":
        first, second = second, first
    return _DIFFERENCES[space.name](first, second)


def _kl(first: FloatArray, second: FloatArray) -> FloatArray:
    floored = np.maximum(second, _FLOOR)
    logarithms = np.log(floored / floored.sum())
    return np.asarray(first * (logarithms - np.log(np.where(first > 0, first, 1.0))))


_DIFFERENCES: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "euclidean": lambda first, second: np.asarray(-((first - second) ** 2)),
    "l1": lambda first, second: np.asarray(-np.abs(first - second)),
    "kl": _kl,
    "kl_query": _kl,
    "noisy_or": lambda first, second: np.asarray(-np.log1p(-np.minimum(first * second, 1 - _FLOOR))),
}


def term_factors(matches: Sequence[Match], weights: Sequence[float]) -> FloatArray:
    """Return what the score of each term is multiplied with, so that the products sum to the score of the query.

    In a linear space the query is the unit vector along Σ vᵢ·uᵢ over the unit vectors uᵢ of the terms' points qᵢ, where
    vᵢ are the weights wᵢ brought to one scale by `on_one_scale`. So a term with score qᵢ·g counts
    vᵢ/(‖qᵢ‖·‖Σ vⱼ·uⱼ‖) times; elsewhere scores are averaged with weights wᵢ/Σ|wⱼ|.
    """
    given = np.asarray(weights, dtype=np.float64)
    if len(matches) == 1 and given[0] > 0:
        return np.ones(1)
    space = matches[0].space
    form = space.indexable()
    if form is None or space.split is not None or not (is_linear(space) or space.name == "corrected"):
        return np.asarray(given / np.abs(given).sum())
    rows = form.queries(np.vstack([match.query.point for match in matches]).astype(np.float64))
    lengths = np.linalg.norm(rows, axis=1)
    safe = np.where(lengths > 0, lengths, 1.0)
    scaled = on_one_scale(given, rows, [match.score_slope for match in matches])
    whole = float(np.linalg.norm(scaled @ (rows / safe[:, None])))
    return np.asarray(scaled / safe / whole if whole > 0 else np.zeros(len(given)))
