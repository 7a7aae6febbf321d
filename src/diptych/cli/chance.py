"""A ranking that prefers nothing."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from diptych.arrays import FloatArray
from diptych.models import CrossModalModel
from diptych.models.base import Need
from diptych.models.labels import Targets
from diptych.space import Space


class AllTied(CrossModalModel):
    """Gives every pair the same score.

    Ties are resolved by expectation over all orders, so what is measured of this model is exactly what a random ranking
    scores: the chance level of every curve and of every category, where an evaluation keeps only that of its means.

    >>> import numpy as np
    >>> from diptych.cli.chance import AllTied
    >>> AllTied().fit(np.eye(2), np.eye(2)).similarity(np.eye(2), np.eye(2))
    array([[0., 0.],
           [0., 0.]])
    """

    needs: ClassVar[frozenset[Need]] = frozenset()
    when_to_use: ClassVar[str] = "To draw chance levels."

    @property
    def space(self) -> Space:
        """Inner product."""
        return Space("dot")

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets | None) -> None:
        """Learn nothing."""

    def _encode_images(self, images: FloatArray) -> FloatArray:
        return np.zeros((len(images), 1))

    def _encode_texts(self, texts: FloatArray) -> FloatArray:
        return np.zeros((len(texts), 1))
