"""An EfficientNet-Lite written down, from bytes of pixels to pooled features."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from diptych.arrays import AnyArray
from diptych.encoders.image.convolution_graph import BatchNorm, ConvolutionGraph, folded
from diptych.encoders.image.lite_networks import LiteNetwork

_STRIDES = (1, 2, 2, 2, 1, 2, 1)
_BATCH_NORM_EPSILON = 1e-3
_PIXEL_CENTRE, _PIXEL_SCALE = 127.0, 128.0


def write_lite(graph: ConvolutionGraph, network: LiteNetwork) -> None:
    """Write the network: uint8 pixels (n, side, side, 3) in, float32 features (n, 1280) out.

    Batch normalisation is folded into the convolutions before it, and the division by 128 into the first one; the
    subtraction of 127 cannot be, since the borders are padded with zeros after it.
    """
    _LiteWriter(graph, network).write()


class _LiteWriter:
    """Writes block after block and keeps track of how large the picture is at that point."""

    def __init__(self, graph: ConvolutionGraph, network: LiteNetwork) -> None:
        self._graph = graph
        self._network = network
        self._weights: Mapping[str, AnyArray] = network.weights()
        self._side = network.side
        self._zero, self._six = graph.constant(np.float32(0)), graph.constant(np.float32(6))

    def write(self) -> None:
        values = self._graph.centred_pixels(self._network.side, (_PIXEL_CENTRE,) * 3)
        values = self._convolution(values, "_conv_stem", "_bn0", stride=2, scale=1 / _PIXEL_SCALE)
        block = 0
        for stride, repeats in zip(_STRIDES, self._network.repeats, strict=True):
            for repeat in range(repeats):
                values = self._block(values, f"_blocks.{block}.", stride if repeat == 0 else 1, residual=repeat > 0)
                block += 1
        self._graph.pooled_features(self._convolution(values, "_conv_head", "_bn1"), 1280)

    def _block(self, values: str, prefix: str, stride: int, *, residual: bool) -> str:
        """Write an inverted residual: widen, filter each channel, narrow; the narrow end stays linear."""
        inner = values
        if f"{prefix}_expand_conv.weight" in self._weights:
            inner = self._convolution(inner, f"{prefix}_expand_conv", f"{prefix}_bn0")
        inner = self._convolution(inner, f"{prefix}_depthwise_conv", f"{prefix}_bn1", stride=stride)
        inner = self._convolution(inner, f"{prefix}_project_conv", f"{prefix}_bn2", linear=True)
        return self._graph.node("Add", inner, values) if residual else inner

    def _convolution(
        self, values: str, name: str, norm: str, *, stride: int = 1, scale: float = 1.0, linear: bool = False
    ) -> str:
        kernel, bias = folded(
            self._weights[f"{name}.weight"] * np.float64(scale), self._norm(norm), epsilon=_BATCH_NORM_EPSILON
        )
        padding = self._padding(kernel.shape[-1], stride)
        filtered = self._graph.convolution(values, kernel, bias, stride=stride, padding=padding)
        return filtered if linear else self._graph.node("Clip", filtered, self._zero, self._six)

    def _norm(self, name: str) -> BatchNorm:
        parts = ("weight", "bias", "running_mean", "running_var")
        return BatchNorm(*(self._weights[f"{name}.{part}"] for part in parts))

    def _padding(self, size: int, stride: int) -> tuple[int, int]:
        # The weights were trained with TensorFlow, whose "same" padding puts the odd pixel after the picture.
        output = -(-self._side // stride)
        total = max(0, (output - 1) * stride + size - self._side)
        self._side = output
        return total // 2, total - total // 2
