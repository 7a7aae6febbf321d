"""The thousand ImageNet labels: their names, and their probabilities as features."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from diptych.arrays import AnyArray, FloatArray
from diptych.encoders.encoder import Encoder
from diptych.encoders.image.efficientnet_lite import EfficientNetLite


class ImageNetLabel(NamedTuple):
    """One label: the WordNet synset and its words, the most usual first."""

    synset: str
    lemmas: tuple[str, ...]


@cache
def imagenet_labels() -> tuple[ImageNetLabel, ...]:
    """Return the 1,000 labels of ILSVRC 2012 in the order of the columns of :class:`ImageNetLabels`.

    Reference: Russakovsky et al., "ImageNet large scale visual recognition challenge", IJCV 2015; the words are those
    of WordNet 3.0.

    >>> from diptych.encoders import imagenet_labels
    >>> imagenet_labels()[207]
    ImageNetLabel(synset='n02099601', lemmas=('golden retriever',))
    """
    text = files("diptych.encoders.image").joinpath("imagenet_labels.tsv").read_text(encoding="utf-8")
    lines = [line.split("\t") for line in text.splitlines() if not line.startswith("#")]
    return tuple(ImageNetLabel(synset, tuple(lemmas.split(", "))) for synset, lemmas in lines)


class ImageNetLabels(EfficientNetLite):
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

    n_features = 1000

    @property
    def sources(self) -> tuple[Encoder, ...]:
        """The network, whose features suffice."""
        return (self.network_encoder(),)

    def from_sources(self, features: Sequence[FloatArray]) -> FloatArray:
        """Return the probabilities, given the network's features."""
        (pooled,) = features
        return self.probabilities(pooled)

    def network_encoder(self) -> EfficientNetLite:
        """Return the encoder whose features :meth:`probabilities` takes."""
        parameters = self.get_params()
        return self._made_once(tuple(parameters.values()), lambda: EfficientNetLite(**parameters))

    def encode_prepared(self, prepared: Sequence[AnyArray]) -> FloatArray:
        """Return the label probabilities of prepared squares."""
        return self.probabilities(super().encode_prepared(prepared))
