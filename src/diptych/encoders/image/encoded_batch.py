"""Some rows of a long encoding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from diptych.arrays import FloatArray


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
