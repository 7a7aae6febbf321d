"""Models that learn nothing: random points, and features that share a space already."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.errors import InvalidInputError
from diptych.models.base import CrossModalModel, Need, Side
from diptych.models.labels import Targets
from diptych.models.parameters import Count
from diptych.space import Space


@dataclass(kw_only=True, eq=False, repr=False)
class Random(CrossModalModel):
    """Random points: what a table looks like when nothing was learned.

    A row's point is drawn from a generator seeded by its content, its side and ``random_state``. Scores of a measure
    scatter around its exact chance level, which every evaluation reports; this model shows how widely.

    Parameters
    ----------
    n_components : int
        Dimensions of the common space.
    random_state : int
        Another number is another draw.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import Random
    >>> model = Random(n_components=4).fit(np.eye(3), np.eye(3))
    >>> np.array_equal(model.encode_images(np.eye(3))[:1], model.encode_images(np.eye(3)[:1]))
    True
    """

    needs: ClassVar[frozenset[Need]] = frozenset()
    when_to_use: ClassVar[str] = "Never for search: it shows the chance level and its spread in a table."
    title: ClassVar[str] = "random"
    space = Space("cosine")

    n_components: Count = 16
    random_state: int = 0

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets | None) -> None:
        """Learn nothing."""

    def _encode_side(self, side: Side, rows: FloatArray) -> FloatArray:
        salt = f"{side}:{self.random_state}:".encode()
        points = np.empty((len(rows), self.n_components), dtype=rows.dtype)
        for number, row in enumerate(rows):
            # Adding zero turns -0.0 into 0.0: equal rows must have equal bytes.
            content = salt + (row.astype(np.float64) + 0.0).tobytes()
            seed = int.from_bytes(hashlib.blake2b(content, digest_size=16).digest(), "little")
            points[number] = np.random.default_rng(seed).normal(size=self.n_components)
        return points


@dataclass(kw_only=True, eq=False, repr=False)
class SharedSpace(CrossModalModel):
    """The two sides as they are: for encoders that were trained together and already share a space.

    Radford et al., "Learning transferable visual models from natural language supervision", ICML 2021, is the best
    known kind. Use it with the encoders of a local CLIP or SigLIP model; there is nothing to learn.

    Parameters
    ----------
    metric : str
        How points compare.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import SharedSpace
    >>> model = SharedSpace().fit(np.eye(3), np.eye(3))
    >>> model.similarity([[1.0, 0.0, 0.0]], [[0.0, 2.0, 0.0], [3.0, 0.0, 0.0]]).tolist()
    [[0.0, 1.0]]
    """

    needs: ClassVar[frozenset[Need]] = frozenset()
    when_to_use: ClassVar[str] = "Encoders of a joint model such as CLIP, whose features already share a space."
    is_method: ClassVar[bool] = False

    metric: str = "cosine"

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets | None) -> None:
        if images.shape[1] != texts.shape[1]:
            raise InvalidInputError(
                f"images have {images.shape[1]} features and texts {texts.shape[1]}: they share no space; "
                "learn one, for example with CCA"
            )

    def _encode_side(self, side: Side, rows: FloatArray) -> AnyArray:
        return rows
