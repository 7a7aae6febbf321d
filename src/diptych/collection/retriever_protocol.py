"""What a collection needs of a retriever."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from diptych.arrays import AnyArray, FloatArray
from diptych.space import SearchDirection, Space

if TYPE_CHECKING:
    from diptych.encoders.encoder import EncodedBatch

Side = Literal["image", "text"]
SIDES: tuple[Side, Side] = ("image", "text")
# What has points: whole pictures, captions, and regions of pictures where they were asked for.
PointKind = Literal["image", "text", "region"]


class RetrieverProtocol(Protocol):
    """Anything that turns pictures and words into points of one space; :class:`diptych.Retriever` is one.

    ``fingerprint`` names everything that shapes the points, ``image_fingerprint`` and ``text_fingerprint`` what shapes
    the features: rows with one fingerprint are interchangeable, rows with two are never mixed.
    """

    name: str

    @property
    def space(self) -> Space:
        """How two points compare."""

    @property
    def fingerprint(self) -> str:
        """A digest of everything that shapes the points."""

    @property
    def image_fingerprint(self) -> str:
        """A digest of everything that shapes the image features."""

    @property
    def text_fingerprint(self) -> str:
        """A digest of everything that shapes the text features."""

    @property
    def cutoff(self) -> float:
        """The probability of relevance below which an answer is no good match."""

    def stream_image_features(self, items: Sequence[Any]) -> Iterator[EncodedBatch]:
        """Yield image features batch by batch, with a reason for each picture that cannot be read."""

    def text_features(self, texts: Sequence[str]) -> FloatArray:
        """Return one row of features per text."""

    def images_to_points(self, features: FloatArray) -> AnyArray:
        """Return the points of image features."""

    def texts_to_points(self, features: FloatArray) -> AnyArray:
        """Return the points of text features."""

    def encode_images(self, items: Sequence[Any]) -> AnyArray:
        """Return the points of pictures."""

    def encode_texts(self, texts: Sequence[str]) -> AnyArray:
        """Return the points of texts."""

    def probability(self, scores: FloatArray, direction: SearchDirection) -> FloatArray:
        """Return the probability of relevance of each score."""

    def score_slope(self, direction: SearchDirection) -> float:
        """Return by how much a unit of score raises the logarithm of the odds of relevance; 1 where nobody knows."""

    def save(self, folder: str | PathLike[str]) -> None:
        """Write everything to a folder."""


class HashCodeRetrieverProtocol(RetrieverProtocol, Protocol):
    """A point source whose points are packed binary codes and which also has the real outputs they are signs of.

    An output has one column per bit; a bit is 1 where its output is at least zero. Outputs are kept under the
    fingerprint, as points are. :class:`diptych.Retriever` with a hashing method is one.
    """

    def image_features(self, items: Sequence[Any]) -> FloatArray:
        """Return one row of features per picture."""

    def images_to_outputs(self, features: FloatArray) -> FloatArray:
        """Return the real outputs of image features."""

    def texts_to_outputs(self, features: FloatArray) -> FloatArray:
        """Return the real outputs of text features."""


RetrieverT = TypeVar("RetrieverT", bound=RetrieverProtocol)


def without_disk_cache(retriever: RetrieverT) -> RetrieverT:
    """Return the same retriever without a cache on disk."""
    if not getattr(retriever, "cache", False):
        return retriever
    alike = copy.copy(retriever)
    vars(alike)["cache"] = False
    return alike
