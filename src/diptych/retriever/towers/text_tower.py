"""The text side of a fitted model as an encoder."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from diptych.arrays import FloatArray
from diptych.encoders import Encoder
from diptych.encoders.encoder import Modality
from diptych.encoders.text.words import check_texts
from diptych.models import CrossModalModel
from diptych.models.item_model import ItemModel
from diptych.retriever.towers.side_digest import side_digest


class TextTower(Encoder):
    """Turns strings into points with a fitted model that reads strings, such as `MNiL` or a model of clicks.

    It makes an encoder of what a model has learned, so that a retriever, a collection and the service use the model
    as any other encoder. The row of a text is ``model.encode_texts([text])``. The model stays fitted: a copy made by
    ``sklearn.base.clone`` encodes as the tower itself does.

    Parameters
    ----------
    model :
        A fitted model whose ``encode_texts`` takes strings. `of` leaves out what only pictures need.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import MNiL
    >>> from diptych.retriever import TextTower
    >>> pictures = np.random.default_rng(0).integers(255, size=(20, 8, 8, 3), dtype=np.uint8)
    >>> texts = [f"a picture called {number}" for number in range(20)]
    >>> model = MNiL(image_side=8, image_widths=(4,), word_size=4, hidden_size=4, n_components=3, epochs=1, margin=0.02)
    >>> tower = TextTower.of(model.fit(pictures, texts))
    >>> tower.transform(["a picture", "nothing at all"]).shape
    (2, 3)
    """

    modality: ClassVar[Modality] = "text"
    learns: ClassVar[bool] = False

    def __init__(self, model: CrossModalModel) -> None:
        self.model = model

    @classmethod
    def of(cls, model: CrossModalModel) -> Self:
        """Return the tower of a fitted model, without what the model needs for pictures alone."""
        return cls(model.only("text") if isinstance(model, ItemModel) else model)

    @property
    def identity(self) -> str:
        """The kind of model; what it learned is in `weights_digest`."""
        return f"{type(self).__name__}({type(self.model).__name__})"

    @property
    def weights_digest(self) -> str:
        """The digest of what the model learned and of the parameters that it encodes by."""
        return self._digest

    def fit(self, items: Sequence[str]) -> Self:
        """Do nothing: the model is fitted already."""
        del items
        return self

    def transform(self, items: Sequence[str]) -> FloatArray:
        """Return one point per text."""
        check_texts(items)
        return np.asarray(self.model.encode_texts(items), dtype=np.float32)

    @cached_property
    def _digest(self) -> str:
        return side_digest(self.model)

    def __sklearn_clone__(self) -> Self:
        return copy(self)

    def __getstate__(self) -> dict[str, Any]:
        # The digest is made again, in case the model was fitted again meanwhile.
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}
