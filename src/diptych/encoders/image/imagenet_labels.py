"""The probabilities of the thousand ImageNet labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from diptych.arrays import AnyArray, FloatArray, as_matrix
from diptych.encoders.encoder import Encoder
from diptych.encoders.image.efficientnet_lite import EfficientNetLite
from diptych.encoders.image.image_encoder import ImageEncoder
from diptych.encoders.image.lite_networks import lite_network
from diptych.encoders.image.pictures import Picture


class ImageNetLabels(ImageEncoder):
    """How probable each of the 1,000 ImageNet labels is: the softmax of the classifier on the pooled features.

    .. math:: p = \\operatorname{softmax}(W x + b)

    with x the features of :class:`EfficientNetLite` and W, b the last layer it was trained with. The columns are those
    of :func:`imagenet_labels`. Use it to name what is in a picture, or for ConSE (Norouzi et al., "Zero-shot learning
    by convex combination of semantic embeddings", ICLR 2014), where the most probable labels stand for the picture.

    Features that are already there suffice: ``probabilities(features)`` does not touch pixels, and
    :meth:`network_encoder` is the encoder whose features it takes.

    Parameters
    ----------
    network, crop, mirror, batch_size, n_threads:
        Those of :class:`EfficientNetLite`.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.encoders import ImageNetLabels
    >>> probabilities = ImageNetLabels(network="lite0").transform([np.zeros((40, 60, 3), dtype=np.uint8)])
    >>> probabilities.shape, round(float(probabilities.sum()), 3)
    ((1, 1000), 1.0)
    """

    learns: ClassVar[bool] = False

    def __init__(
        self,
        *,
        network: str = "lite2",
        crop: Literal["whole", "centre"] = "whole",
        mirror: bool = False,
        batch_size: int = 8,
        n_threads: int | None = None,
    ) -> None:
        self.network = network
        self.crop = crop
        self.mirror = mirror
        self.batch_size = batch_size
        self.n_threads = n_threads

    @property
    def n_features(self) -> int:
        """The number of labels."""
        return 1000

    @property
    def reading_side(self) -> int:
        """That of the network."""
        return self.network_encoder().reading_side

    @property
    def weights_digest(self) -> str:
        """The digest of the weight file."""
        return lite_network(self.network).sha256

    @property
    def sources(self) -> tuple[Encoder, ...]:
        """The network, whose features suffice."""
        return self.network_encoder().sources

    def from_sources(self, features: Sequence[FloatArray]) -> FloatArray:
        """Return the probabilities, given the network's features."""
        return self.probabilities(self.network_encoder().from_sources(features))

    def check_parameters(self) -> None:
        """Raise when a parameter cannot be used."""
        self.network_encoder().check_parameters()

    def network_encoder(self) -> EfficientNetLite:
        """Return the encoder whose features :meth:`probabilities` takes."""
        kept: EfficientNetLite | None = vars(self).get("_network_encoder")
        if kept is None or kept.get_params() != self.get_params():
            kept = EfficientNetLite(**self.get_params())
            self._network_encoder = kept
        return kept

    def probabilities(self, features: FloatArray) -> FloatArray:
        """Return the probability of every label from pooled features."""
        kernel, bias = self._classifier()
        scores = as_matrix(features, name="features", width=kernel.shape[1]).astype(np.float32) @ kernel.T + bias
        scores -= scores.max(axis=1, keepdims=True)
        exponentials = np.exp(scores.astype(np.float64))
        return np.asarray(exponentials / exponentials.sum(axis=1, keepdims=True), dtype=np.float32)

    def _classifier(self) -> tuple[FloatArray, FloatArray]:
        kept: tuple[str, FloatArray, FloatArray] | None = vars(self).get("_layer")
        if kept is None or kept[0] != self.network:
            weights = lite_network(self.network).weights()
            kept = (self.network, weights["_fc.weight"], weights["_fc.bias"])
            self._layer = kept
        return kept[1], kept[2]

    def prepare(self, picture: Picture) -> NDArray[np.uint8]:
        """Return the network's square of RGB bytes."""
        return self.network_encoder().prepare(picture)

    def encode_prepared(self, prepared: Sequence[AnyArray]) -> FloatArray:
        """Return the label probabilities of prepared squares."""
        return self.probabilities(self.network_encoder().encode_prepared(prepared))
