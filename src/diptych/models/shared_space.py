from __future__ import annotations

from typing import ClassVar

from diptych.arrays import AnyArray, FloatArray
from diptych.errors import InvalidInputError
from diptych.models.base import CrossModalModel, Need
from diptych.models.labels import Targets


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

    def __init__(self, *, metric: str = "cosine") -> None:
        self.metric = metric

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets | None) -> None:
        if images.shape[1] != texts.shape[1]:
            raise InvalidInputError(
                f"images have {images.shape[1]} features and texts {texts.shape[1]}: they share no space; "
                "learn one, for example with CCA"
            )

    def _encode_images(self, images: FloatArray) -> AnyArray:
        return images

    def _encode_texts(self, texts: FloatArray) -> AnyArray:
        return texts
