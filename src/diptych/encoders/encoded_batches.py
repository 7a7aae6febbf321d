"""Batches of features, from one encoder and from several together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.encoders.encoder import Encoder
from diptych.encoders.image.encoded_batch import EncodedBatch

_ITEMS_AT_ONCE = 256


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
    """Make one batch of the same items' features by several encoders; what one cannot read has none.

    >>> import numpy as np
    >>> from diptych.encoders.encoded_batches import joined_batch
    >>> from diptych.encoders import EncodedBatch
    >>> whole = EncodedBatch([0, 1], np.eye(2))
    >>> half = EncodedBatch([1], np.ones((1, 1)), {0: "unreadable"})
    >>> joined_batch(2, [[whole], [half]], np.hstack).features.tolist()
    [[0.0, 1.0, 1.0]]
    """
    features: list[dict[int, AnyArray]] = []
    failures: dict[int, str] = {}
    for part in parts:
        found: dict[int, AnyArray] = {}
        for batch in part:
            found.update(zip(batch.rows, batch.features, strict=True))
            failures.update(batch.failures)
        features.append(found)
    readable = [row for row in range(n_items) if row not in failures]
    if not readable:
        return EncodedBatch(rows=[], features=np.empty((0, 0), dtype=np.float32), failures=failures)
    joined = join([np.stack([found[row] for row in readable]) for found in features])
    return EncodedBatch(rows=readable, features=joined, failures=failures)
