"""Several encoders side by side."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from diptych.arrays import FloatArray, unit_rows
from diptych.data.item_sequences import SelectedItems
from diptych.encoders.encoder import EncodedBatch, Encoder, Modality, check_pictures, encoded_batches, joined_batch
from diptych.errors import InvalidInputError
from diptych.estimators import clone

_PICTURES_AT_ONCE = 256


@dataclass(kw_only=True, eq=False, repr=False)
class Concatenated(Encoder):
    """The features of several encoders of one modality, side by side.

    Each part is scaled to unit length and weighted, so that no part rules by its units: the row of an item is
    [w₁ x₁/‖x₁‖, w₂ x₂/‖x₂‖, …]. Use it when two encoders see different things, such as a network's features and
    colours.

    Parameters
    ----------
    encoders:
        Two or more encoders, all of images or all of texts.
    weights:
        One factor per encoder; None weighs all alike.

    Attributes
    ----------
    encoders_:
        The fitted parts.

    Examples
    --------
    >>> from diptych.encoders import Concatenated, LdaTopics, TfidfTopics
    >>> texts = ["red boat sea", "red ship sea", "small cat grass", "small dog grass"]
    >>> parts = (TfidfTopics(n_components=2, min_documents=1), LdaTopics(n_topics=3, min_documents=1))
    >>> Concatenated(encoders=parts).fit_transform(texts).shape
    (4, 5)
    """

    encoders: tuple[Encoder, ...]
    weights: tuple[float, ...] | None = None

    @property
    def modality(self) -> Modality:  # type: ignore[override]
        """What all parts encode."""
        return self.encoders[0].modality

    @property
    def learns(self) -> bool:  # type: ignore[override]
        """Whether any part learns."""
        return any(encoder.learns for encoder in self.encoders)

    @property
    def identity(self) -> str:
        """The parts and their weights."""
        return f"Concatenated([{', '.join(encoder.identity for encoder in self.encoders)}], weights={self.weights!r})"

    @property
    def weights_digest(self) -> str:
        """The fingerprints of the parts."""
        return " ".join(encoder.fingerprint for encoder in self._parts)

    @property
    def fingerprint(self) -> str:
        """A digest of the parts' fingerprints and the weights; a fit that learns nothing does not change it."""
        shaping = (type(self).__name__, self.revision, self.weights, self.weights_digest)
        return hashlib.sha256("\0".join(map(str, shaping)).encode()).hexdigest()[:32]

    @property
    def sources(self) -> tuple[Encoder, ...]:
        """The sources of all parts."""
        return tuple(source for encoder in self._parts for source in encoder.sources)

    def from_sources(self, features: Sequence[FloatArray]) -> FloatArray:
        """Join the parts' features."""
        parts, left = [], list(features)
        for encoder in self._parts:
            count = len(encoder.sources)
            parts.append(encoder.from_sources(left[:count]))
            left = left[count:]
        return self._joined(parts)

    def fit(self, items: Sequence[Any]) -> Self:
        """Fit a copy of every part to the same items."""
        self._check()
        self.encoders_ = tuple(clone(encoder).fit(items) for encoder in self.encoders)
        return self

    def transform(self, items: Sequence[Any]) -> FloatArray:
        """Return the parts' rows side by side."""
        self._check()
        return self._joined([encoder.transform(items) for encoder in self._parts])

    def transform_queries(self, items: Sequence[Any]) -> FloatArray:
        """Return what each part makes of what someone looks for, side by side."""
        self._check()
        return self._joined([encoder.transform_queries(items) for encoder in self._parts])

    def stream(self, items: Sequence[Any]) -> Iterator[EncodedBatch]:
        """Encode pictures batch by batch, in order, and go on past those that some part cannot read."""
        self._check()
        if self.modality != "image":
            raise InvalidInputError("only encoders of images go on past unreadable items; call transform for texts")
        check_pictures(items, "encode")
        return self._stream(items)

    def _stream(self, items: Sequence[Any]) -> Iterator[EncodedBatch]:
        for start in range(0, len(items), _PICTURES_AT_ONCE):
            rows = range(start, min(start + _PICTURES_AT_ONCE, len(items)))
            window = SelectedItems(items, rows)
            parts = [encoded_batches(part, window) for part in self._parts]
            yield joined_batch(len(rows), parts, self._joined).at(rows)

    @property
    def _parts(self) -> tuple[Encoder, ...]:
        # Parts that learn nothing work without a fit.
        return getattr(self, "encoders_", self.encoders)

    def _joined(self, parts: Sequence[FloatArray]) -> FloatArray:
        weights = self.weights or (1.0,) * len(parts)
        scaled = [weight * unit_rows(part) for weight, part in zip(weights, parts, strict=True)]
        return np.concatenate(scaled, axis=1).astype(np.float32)

    def _check(self) -> None:
        if len({encoder.modality for encoder in self.encoders}) != 1:
            raise InvalidInputError("encoders must be at least one, and all of images or all of texts")
        if self.weights is not None and len(self.weights) != len(self.encoders):
            raise InvalidInputError(f"give one weight per encoder, got {len(self.weights)} for {len(self.encoders)}")


class SideBySide(Concatenated):
    """The features of several encoders of one modality, side by side and unscaled: [x₁, x₂, …].

    Use it where each part's features go to a model of their own, as in a fusion, which takes its columns as the part
    made them. `Concatenated` is for one model of all: it scales the parts to unit length.

    Examples
    --------
    >>> from diptych.encoders import LdaTopics, SideBySide, TfidfTopics
    >>> texts = ["red boat sea", "red ship sea", "small cat grass", "small dog grass"]
    >>> parts = (TfidfTopics(n_components=2, min_documents=1), LdaTopics(n_topics=3, min_documents=1))
    >>> both = SideBySide(encoders=parts).fit(texts)
    >>> bool((both.transform(texts)[:, :2] == both.encoders_[0].transform(texts)).all())
    True
    """

    @property
    def identity(self) -> str:
        """The parts."""
        return f"SideBySide([{', '.join(encoder.identity for encoder in self.encoders)}])"

    def _joined(self, parts: Sequence[FloatArray]) -> FloatArray:
        return np.concatenate(parts, axis=1).astype(np.float32)
