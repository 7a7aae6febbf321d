"""A ResNet of bottleneck blocks written down, from bytes of pixels to pooled features."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from string import ascii_lowercase

import numpy as np

from diptych.arrays import AnyArray
from diptych.encoders.image.convolution_graph import BatchNorm, ConvolutionGraph, folded

RESNET_SIDE = 224
"""The side, in pixels, of the pictures these networks are trained on."""

_BATCH_NORM_EPSILON = 1e-3
_MEAN_RGB = (123.68, 116.779, 103.939)
_NORM_PARTS = ("gamma", "beta", "moving_mean", "moving_variance")
_STAGES = (2, 3, 4, 5)


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
            for block in self._blocks(stage):
                stride = 2 if block == "a" and stage > _STAGES[0] else 1
                values = self._block(values, f"{stage}{block}_branch", stride)
        self._graph.pooled_features(values, self._weights[f"res{_STAGES[-1]}a_branch2c/kernel"].shape[-1])

    def _blocks(self, stage: int) -> Iterator[str]:
        return (letter for letter in ascii_lowercase if f"res{stage}{letter}_branch2a/kernel" in self._weights)

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
        kernel, bias = folded(
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
