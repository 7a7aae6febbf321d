"""One side of a match."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from diptych.arrays import AnyArray, FloatArray, as_matrix
from diptych.retriever.retriever import Retriever

SubjectSide = Literal["image", "text"]


@dataclass(frozen=True, eq=False)
class Subject:
    """A picture or a text with its features and its point, one row each.

    ``words`` is the text itself, None for a picture; ``name`` is what sentences call it. ``features`` are None where
    only the point is known; then what is told by features is left out of an explanation.

    >>> import numpy as np
    >>> from diptych.encoders import ColourEdgeHistograms, Tfidf
    >>> from diptych.models import SharedSpace
    >>> from diptych.retriever import Retriever, Subject
    >>> retriever = Retriever(cache=False)
    >>> retriever.text_encoder_ = Tfidf(min_documents=1).fit(["red boat"])
    >>> retriever.model_ = SharedSpace().fit(np.eye(2), np.eye(2))
    >>> Subject.of_text(retriever, "a boat").point.tolist()
    [[1.0, 0.0]]
    """

    side: SubjectSide
    features: FloatArray | None
    point: AnyArray
    words: str | None
    name: str

    @classmethod
    def of(cls, retriever: Retriever, what: Any) -> Subject:
        """Return a subject as it is, take a string for words and anything else for a picture."""
        if isinstance(what, Subject):
            return what
        return cls.of_text(retriever, what) if isinstance(what, str) else cls.of_picture(retriever, what)

    @classmethod
    def of_text(cls, retriever: Retriever, words: str) -> Subject:
        """Encode words."""
        features = retriever.text_features([words])
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
