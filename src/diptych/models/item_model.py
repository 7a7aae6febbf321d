"""Models that learn from pictures and words themselves."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from diptych.arrays import AnyArray
from diptych.errors import InvalidInputError
from diptych.estimators import scikit_learn
from diptych.models.base import CrossModalModel, Inputs, Side

ItemSide = Side


class ItemModel(CrossModalModel):
    """The contract of every model, with raw items in place of feature matrices.

    ``fit``, ``encode_images`` and ``encode_texts`` take pictures (paths, or uint8 arrays) and strings. A subclass
    writes ``fit``, ``_encode_pictures`` and ``_encode_strings``, which receive checked input, `picture_side`, and, so
    that a retriever reads pictures in threads and keeps each network once, `prepared` and `side`.
    """

    inputs: ClassVar[Inputs] = "items"
    encoding_parameters: ClassVar[tuple[str, ...] | None] = None
    """The parameters that a fitted model still goes by when it encodes; None for all. The others only shape the fit."""

    @property
    def takes_pictures(self) -> bool:
        """Whether images are pictures; False where they are rows of an encoder's features."""
        return True

    @property
    @abstractmethod
    def picture_side(self) -> int:
        """The shortest side, in pixels, below which pictures need not be read any larger."""

    def prepared(self, picture: Any) -> AnyArray:
        """Read one picture as `encode_images` would; threads may call this, and encoding goes on from the pixels."""
        # Pillow is only needed where there are pictures.
        from diptych.encoders.image.picture_decoding import read_picture

        return read_picture(picture, shortest_side=self.picture_side)

    def side(self, side: ItemSide) -> Self:
        """Return a copy that encodes one side and need not hold what the other learned."""
        del side
        return copy(self)

    @abstractmethod
    def fit(
        self, images: Any, texts: Any, labels: ArrayLike | None = None, *, progress: Callable[[Any], None] | None = None
    ) -> Self:
        """Learn from aligned pictures and strings; ``progress`` is called with a record of each epoch."""

    @abstractmethod
    def _encode_pictures(self, images: Any) -> AnyArray: ...

    @abstractmethod
    def _encode_strings(self, texts: Sequence[str]) -> AnyArray: ...

    def encode_images(self, images: Any) -> AnyArray:
        """Return the points of pictures, one row each."""
        self._check_fitted()
        return self._encode_pictures(images)

    def encode_texts(self, texts: Any) -> AnyArray:
        """Return the points of strings, one row each."""
        self._check_fitted()
        return self._encode_strings(checked_texts(texts))

    def _check_fitted(self) -> None:
        if not hasattr(self, "n_pairs_"):
            message = f"this {type(self).__name__} is not fitted yet: call fit(images, texts) first"
            raise scikit_learn("sklearn.exceptions").NotFittedError(message)


def checked_texts(texts: Any) -> Sequence[str]:
    """Return ``texts`` as a sequence of strings, or raise.

    >>> from diptych.models.item_model import checked_texts
    >>> checked_texts(["a boat", 3])
    Traceback (most recent call last):
    diptych.errors.InvalidInputError: texts must be strings, but text 1 is a int
    """
    if isinstance(texts, (str, bytes)) or not isinstance(texts, (Sequence, np.ndarray)):
        raise InvalidInputError(f"texts must be a sequence of strings, got {type(texts).__name__}; pass a list")
    if len(texts) == 0:
        raise InvalidInputError("there are no texts; pass at least one")
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise InvalidInputError(f"texts must be strings, but text {row} is a {type(text).__name__}")
    return [str(text) for text in texts]
