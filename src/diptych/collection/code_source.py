"""What a collection needs of a retriever to score codes again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from diptych.arrays import FloatArray
from diptych.collection.contract import PointSource


class CodeSource(PointSource, Protocol):
    """A point source whose points are packed binary codes and which also has the real outputs they are signs of.

    An output has one column per bit; a bit is 1 where its output is at least zero. :class:`diptych.Retriever` with a
    hashing method is one.
    """

    def image_features(self, items: Sequence[Any]) -> FloatArray:
        """Return one row of features per picture."""

    def images_to_outputs(self, features: FloatArray) -> FloatArray:
        """Return the real outputs of image features."""

    def texts_to_outputs(self, features: FloatArray) -> FloatArray:
        """Return the real outputs of text features."""
