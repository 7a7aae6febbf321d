"""What every encoder shares, and the batches of features in which a long encoding comes."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, ClassVar, Literal, Self, TypeVar

import numpy as np

from diptych.arrays import AnyArray, FloatArray, indexed_items
from diptych.cluster import available_processors
from diptych.errors import InvalidInputError
from diptych.estimators import BaseEstimator

Modality = Literal["image", "text"]
Made = TypeVar("Made")
_ITEMS_AT_ONCE = 256


class Encoder(BaseEstimator, ABC):
    """Turns raw items, pictures or words, into the rows of a feature matrix.

    Encoders follow the manners of scikit-learn: parameters are keyword-only and merely stored, what :meth:`fit` learns
    ends in an underscore, and ``sklearn.base.clone`` gives an unfitted copy. An item is encoded alone as it is
    encoded among others.

    What is learned is held as arrays, numbers, strings, or tuples and lists of these, so that a fitted encoder can be
    saved inside a retriever; whatever can be made again (a runtime session, a tokenizer) is kept in attributes that
    start with an underscore.
    """

    modality: ClassVar[Modality] = "text"
    """What the items are; a string is a path for an encoder of images."""

    learns: ClassVar[bool] = True
    """Whether :meth:`fit` learns anything; False for pretrained and hand-made features."""

    speed_parameters: ClassVar[tuple[str, ...]] = ()
    """Parameters that change how fast the features come, but not the features."""

    revision: ClassVar[int] = 1
    """Raised whenever the code gives other features than before, so that cached ones are not taken for them."""

    @property
    def understood_languages(self) -> frozenset[str] | None:
        """The languages whose texts have a meaning in the features, by their codes in ISO 639-1; None for any.

        Encoders that learn their words from the texts of a collection know the languages of these.
        """
        return None

    @property
    def identity(self) -> str:
        """The class and every parameter that shapes the features; equal identities give equal features.

        >>> from diptych.encoders import TfidfTopics
        >>> TfidfTopics(n_components=50).identity
        "TfidfTopics(lemmas=False, min_documents=2, n_components=50, stop_words='english')"
        """
        parameters = sorted(self.get_params().items())
        shaping = [f"{name}={value!r}" for name, value in parameters if name not in self.speed_parameters]
        return f"{type(self).__name__}({', '.join(shaping)})"

    @property
    def fingerprint(self) -> str:
        """A digest of everything that shapes the features: identity, revision, weights and what was learned.

        Two encoders with one fingerprint give the same row for the same item, today and on another machine; caches
        and stored vectors are named by it.

        >>> from diptych.encoders import TfidfTopics
        >>> encoder = TfidfTopics(min_documents=1).fit(["a red boat"])
        >>> encoder.fingerprint == TfidfTopics(min_documents=1).fit(["a blue boat"]).fingerprint
        False
        """
        digest = hashlib.sha256(f"{self.identity}\0{self.revision}\0{self.weights_digest}".encode())
        for name, value in sorted(vars(self).items()):
            if name.endswith("_") and not name.startswith("_"):
                digest.update(f"\0{name}\0".encode())
                digest.update(_bytes_of(value))
        return digest.hexdigest()[:32]

    @property
    def weights_digest(self) -> str:
        """The digest of pretrained weights that come from outside; empty for an encoder without any."""
        return ""

    @property
    def sources(self) -> tuple[Encoder, ...]:
        """The encoders whose features are worth keeping on disk; this one's follow from them by `from_sources`."""
        return (self,)

    def from_sources(self, features: Sequence[FloatArray]) -> FloatArray:
        """Return this encoder's features, given those of its `sources` for the same items."""
        (own,) = features
        return own

    @abstractmethod
    def fit(self, items: Sequence[Any]) -> Self:
        """Learn from training items; encoders without anything to learn only check the parameters."""

    @abstractmethod
    def transform(self, items: Sequence[Any]) -> FloatArray:
        """Return one row of features per item."""

    def transform_queries(self, items: Sequence[Any]) -> FloatArray:
        """Return one row of features per text that someone looks for; an encoder may read these otherwise."""
        return self.transform(items)

    def fit_transform(self, items: Sequence[Any]) -> FloatArray:
        """Learn from the items and encode them."""
        return self.fit(items).transform(items)

    def __getstate__(self) -> dict[str, Any]:
        # Runtime sessions can be neither copied nor sent to another process; they are made again when needed.
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def _made_once(self, key: tuple[Any, ...], make: Callable[[], Made]) -> Made:
        """Return what was made under a key, or make it now; threads that ask together get the same."""
        with vars(self).setdefault("_lock", threading.RLock()):
            made: dict[tuple[Any, ...], Made] = vars(self).setdefault("_made", {})
            if key not in made:
                made[key] = make()
            return made[key]


def _bytes_of(value: Any) -> bytes:
    if isinstance(value, np.ndarray):
        return f"{value.shape}{value.dtype}".encode() + np.ascontiguousarray(value).tobytes()
    if isinstance(value, (list, tuple)) and any(isinstance(part, np.ndarray) for part in value):
        return b"".join(_bytes_of(part) for part in value)
    # The words of an encoder also tell what only makes it fast, and nothing of what it has learned.
    return json.dumps(value, default=lambda part: getattr(part, "fingerprint", None) or repr(part)).encode()


def check_texts(texts: Sequence[str]) -> None:
    """Raise unless ``texts`` is a sequence of at least one string."""
    if isinstance(texts, str):
        raise InvalidInputError("texts must be a sequence of strings, got one string; pass it in a list")
    if len(indexed_items(texts, name="texts")) == 0:
        raise InvalidInputError("there are no texts; pass at least one")
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise InvalidInputError(f"texts must be strings, but text {row} is a {type(text).__name__}")


def check_pictures(pictures: Sequence[Any], purpose: str) -> None:
    """Raise unless ``pictures`` is a sequence of at least one."""
    if isinstance(pictures, (str, bytes, os.PathLike)):
        raise InvalidInputError("pictures must be a sequence, got one path; pass it in a list")
    if len(indexed_items(pictures, name="pictures")) == 0:
        raise InvalidInputError(f"there are no pictures to {purpose}; pass at least one")


@dataclass(kw_only=True, eq=False, repr=False)
class BatchEncoder(Encoder):
    """An encoder that takes ``batch_size`` items at once, in threads, by default one for each core."""

    speed_parameters: ClassVar[tuple[str, ...]] = ("batch_size", "n_threads")

    batch_size: int = 32
    n_threads: int | None = None

    @property
    def threads(self) -> int:
        """The number of threads that ``n_threads`` means on this machine."""
        return self.n_threads if self.n_threads is not None else available_processors()

    def check_parameters(self) -> None:
        """Raise when a parameter cannot be used; subclasses add their own checks."""
        if not isinstance(self.batch_size, int) or self.batch_size < 1:
            raise InvalidInputError(f"batch_size must be at least 1, got {self.batch_size!r}")
        if self.n_threads is not None and (not isinstance(self.n_threads, int) or self.n_threads < 1):
            raise InvalidInputError(f"n_threads must be at least 1, or None for all cores, got {self.n_threads!r}")


@dataclass(frozen=True)
class EncodedBatch:
    """The features of some items, and why others have none.

    ``features`` has one line for each of ``rows``, the positions of the items that could be read; ``failures`` gives
    the reason for each position that could not.

    >>> import numpy as np
    >>> from diptych.encoders import EncodedBatch
    >>> batch = EncodedBatch(rows=[0, 2], features=np.zeros((2, 3)), failures={1: "b.jpg does not exist"})
    >>> len(batch.features), sorted(batch.failures)
    (2, [1])
    """

    rows: Sequence[int]
    features: FloatArray
    failures: Mapping[int, str] = field(default_factory=dict)

    def at(self, places: Sequence[int]) -> EncodedBatch:
        """Return the batch of a selection of items, row i of which stands at ``places[i]`` among all."""
        failures = {places[row]: reason for row, reason in self.failures.items()}
        return EncodedBatch([places[row] for row in self.rows], self.features, failures)


def encoded_batches(encoder: Encoder, items: Sequence[Any]) -> Iterator[EncodedBatch]:
    """Yield the features of ``items``; an encoder that cannot go on past an unreadable one raises its error."""
    if hasattr(encoder, "stream"):
        yield from encoder.stream(items)
        return
    for start in range(0, len(items), _ITEMS_AT_ONCE):
        part = items[start : start + _ITEMS_AT_ONCE]
        rows = list(range(start, start + len(part)))
        yield EncodedBatch(rows=rows, features=encoder.transform(list(part)), failures={})


def joined_batch(
    n_items: int, parts: Iterable[Iterable[EncodedBatch]], join: Callable[[list[FloatArray]], FloatArray]
) -> EncodedBatch:
    """Make one batch of the same items' features by several encoders; what one cannot read has none."""
    streams = list(parts)
    features: list[dict[int, AnyArray]] = [{} for _ in streams]
    failures: dict[int, str] = {}
    # By turns: what one has prepared of a picture may serve the next.
    for batches in zip_longest(*streams):
        for found, batch in zip(features, batches, strict=True):
            if batch is not None:
                found.update(zip(batch.rows, batch.features, strict=True))
                failures.update(batch.failures)
    readable = [row for row in range(n_items) if row not in failures]
    if not readable:
        return EncodedBatch(rows=[], features=np.empty((0, 0), dtype=np.float32), failures=failures)
    joined = join([np.stack([found[row] for row in readable]) for found in features])
    return EncodedBatch(rows=readable, features=joined, failures=failures)
