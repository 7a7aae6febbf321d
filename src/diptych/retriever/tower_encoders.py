"""Fitted models as encoders: one side of a model that takes pictures, queries or texts themselves."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Never, Self

import numpy as np
from numpy.typing import ArrayLike

from diptych.arrays import AnyArray, FloatArray
from diptych.encoders import Encoder, ImageEncoder
from diptych.encoders.encoder import Modality, check_texts
from diptych.errors import InvalidInputError
from diptych.models import CrossModalModel, SharedSpace
from diptych.models.base import Need
from diptych.models.files import model_digest
from diptych.models.item_model import ItemModel
from diptych.models.linear import column_means
from diptych.space import Space

if TYPE_CHECKING:
    from diptych.encoders.image.picture_decoding import Picture

__all__ = ["CentredSide", "ImageTower", "TextTower"]


def side_digest(model: CrossModalModel) -> str:
    """Return a digest of what a fitted model encodes by, not of how it was trained where the model tells them apart."""
    return model_digest(model, parameters=model.encoding_parameters if isinstance(model, ItemModel) else None)


class ImageTower(ImageEncoder):
    """Turns pictures into points with a fitted model that looks at pixels, such as `MNiL`.

    A retriever, a collection and the service use the model as any other encoder. Where it takes features instead of
    pictures, ``encoder`` makes them, and caches keep those. The model stays fitted in copies by ``sklearn.base.clone``.

    Parameters
    ----------
    model :
        A fitted model whose ``encode_images`` takes pictures, or features. `of` leaves out what only texts need.
    encoder : ImageEncoder or None
        Makes the features for a model that takes them.
    batch_size, n_threads : int, int or None
        Pictures encoded at once, and threads that read them; None takes as many as there are cores.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import MNiL
    >>> from diptych.retriever import ImageTower
    >>> pictures = np.random.default_rng(0).integers(255, size=(20, 8, 8, 3), dtype=np.uint8)
    >>> texts = [f"a picture called {number}" for number in range(20)]
    >>> model = MNiL(image_side=8, image_widths=(4,), word_size=4, hidden_size=4, n_components=3, epochs=1, margin=0.02)
    >>> tower = ImageTower.of(model.fit(pictures, texts))
    >>> [(batch.rows, list(batch.failures)) for batch in tower.stream([pictures[0], "nowhere.jpg"])]
    [([0], [1])]
    """

    learns: ClassVar[bool] = False

    def __init__(
        self,
        model: CrossModalModel,
        *,
        encoder: ImageEncoder | None = None,
        batch_size: int = 32,
        n_threads: int | None = None,
    ) -> None:
        self.model = model
        self.encoder = encoder
        self.batch_size = batch_size
        self.n_threads = n_threads

    @classmethod
    def of(cls, model: CrossModalModel, *, encoder: Encoder | None = None) -> Self:
        """Return the tower of a fitted model, without what the model needs for texts alone."""
        side = model.side("image") if isinstance(model, ItemModel) else model
        if isinstance(model, ItemModel) and model.takes_pictures:
            return cls(side)
        if encoder is None:
            raise InvalidInputError(
                f"this {type(model).__name__} takes features of pictures; pass the image_encoder that made them"
            )
        if not isinstance(encoder, ImageEncoder):
            raise InvalidInputError(f"image_encoder must encode pictures one by one, got {type(encoder).__name__}")
        return cls(side, encoder=encoder)

    @property
    def identity(self) -> str:
        """The kind of model and the encoder's identity; what the model learned is in `weights_digest`."""
        features = "" if self.encoder is None else f", encoder={self.encoder.identity}"
        return f"{type(self).__name__}({type(self.model).__name__}{features})"

    @property
    def weights_digest(self) -> str:
        """The digest of the model, and of the encoder before it."""
        return self._digest if self.encoder is None else f"{self._digest} {self.encoder.fingerprint}"

    @property
    def sources(self) -> tuple[Encoder, ...]:
        """The encoder of features, where there is one: points follow from them quickly."""
        return (self,) if self.encoder is None else self.encoder.sources

    def from_sources(self, features: Sequence[FloatArray]) -> FloatArray:
        """Return the points, given what the `sources` made."""
        if self.encoder is None:
            return super().from_sources(features)
        return self._points(self.encoder.from_sources(features))

    @cached_property
    def n_features(self) -> int:
        """The dimensions of the model's space."""
        return int(self.encode_prepared([self.prepare(np.zeros((8, 8, 3), dtype=np.uint8))]).shape[1])

    @property
    def reading_side(self) -> int:
        """The shortest side that the model, or the encoder before it, can use."""
        return self._item_model.picture_side if self.encoder is None else self.encoder.reading_side

    def prepare(self, picture: Picture) -> AnyArray:
        """Read one picture and bring it to the size that the model takes."""
        return self._item_model.prepared(picture) if self.encoder is None else self.encoder.prepare(picture)

    def encode_prepared(self, prepared: Sequence[AnyArray]) -> FloatArray:
        """Return one point for each prepared picture."""
        return self._points(list(prepared) if self.encoder is None else self.encoder.encode_prepared(prepared))

    def _points(self, images: Any) -> FloatArray:
        return np.asarray(self.model.encode_images(images), dtype=np.float32)

    @property
    def _item_model(self) -> ItemModel:
        if isinstance(self.model, ItemModel) and self.model.takes_pictures:
            return self.model
        raise InvalidInputError(f"this {type(self.model).__name__} takes features; give the tower their encoder")

    @cached_property
    def _digest(self) -> str:
        return side_digest(self.model)

    def __sklearn_clone__(self) -> Self:
        return copy(self)


class TextTower(Encoder):
    """Turns strings into points with a fitted model that reads strings, such as `MNiL` or a model of clicks.

    A retriever, a collection and the service use the model as any other encoder; the row of a text is
    ``model.encode_texts([text])``. The model stays fitted in copies by ``sklearn.base.clone``.

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
        return cls(model.side("text") if isinstance(model, ItemModel) else model)

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


class CentredSide(CrossModalModel):
    """The picture side of a fitted model with inner products, its points moved so that their mean is zero.

    Texts come as points of the model already. ⟨b, a(x) − ā⟩ differs from ⟨b, a(x)⟩ by one number for each query, which
    changes no order; but the mean of its scores over the pictures is 0 for every query. In a fusion the probabilities
    of the other parts then stay in force for queries that it says nothing about.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.data.clicks import ClickLog
    >>> from diptych.models import Text2Image
    >>> from diptych.retriever import CentredSide
    >>> model = Text2Image().fit_clicks(ClickLog.from_triads(["a", "b"], ["1", "2"], [1, 1]), np.eye(2))
    >>> CentredSide.around(model, np.eye(2)).encode_images(np.eye(2)).tolist()
    [[0.5, -0.5], [-0.5, 0.5]]
    """

    needs: ClassVar[frozenset[Need]] = frozenset()
    when_to_use: ClassVar[str] = "In a fusion of a retriever with models of clicks."

    model_: CrossModalModel
    mean_: FloatArray

    @classmethod
    def around(cls, model: CrossModalModel, pictures: ArrayLike) -> Self:
        """Return the picture side of a fitted model, centred on the points of some pictures, given by features."""
        if model.space != Space("dot"):
            raise InvalidInputError(
                f"{type(model).__name__} compares points by {model.space.name}; only inner products can be centred"
            )
        points = model.encode_images(pictures)
        side = cls()
        side.model_ = model
        side.n_pairs_, side.n_image_features_ = model.n_pairs_, model.n_image_features_
        side.n_text_features_ = points.shape[1]
        side.mean_ = column_means(points)
        return side

    @property
    def space(self) -> Space:
        """The inner product."""
        return Space("dot")

    def _learn(self, images: FloatArray, texts: FloatArray, labels: object) -> Never:
        raise InvalidInputError("a picture side is taken from a fitted model: call CentredSide.around(model, pictures)")

    def _encode_images(self, images: FloatArray) -> AnyArray:
        points = self.model_.encode_images(images)
        return np.asarray(points - self.mean_.astype(points.dtype))

    def _encode_texts(self, texts: FloatArray) -> AnyArray:
        return texts


def tower_parts(model: CrossModalModel, encoder: Encoder | None = None) -> tuple[ImageTower, TextTower, SharedSpace]:
    """Return both towers of a fitted model, each with its own half alone, and the space that their points share."""
    image_tower, text_tower = ImageTower.of(model, encoder=encoder), TextTower.of(model)
    point = np.eye(1, text_tower.transform(["a picture"]).shape[1])
    return image_tower, text_tower, SharedSpace(metric=model.space.name).fit(point, point)
