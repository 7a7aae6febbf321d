"""Convolutional networks in eight-bit integers: ranges of values, rounding, and the layers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from diptych.arrays import FloatArray
from diptych.encoders.networks.onnx_graph import RUNTIME_OPERATORS, ConvolutionGraph

_STEPS = 255
_LARGEST_WEIGHT = 127
# A channel of zeros needs a scale, and any will do.
_SMALLEST_SCALE = 1e-12


class LayerStatistics(NamedTuple):
    """What the results of a layer are like: the range to keep, and the mean of each channel."""

    least: float
    largest: float
    means: FloatArray


class Quantised(NamedTuple):
    """A value of a network in bytes, which stand for ``scale`` · (byte − ``zero``), and the means of its channels."""

    name: str
    scale: np.float32
    zero: np.uint8
    means: FloatArray


class QuantisedGraph(ConvolutionGraph):
    """Adds convolutions of bytes; what lies outside the range given for a layer becomes the nearest end of it.

    A range from 0 to 6 therefore needs no ReLU6. Weights are rounded for each channel by itself, and sums are exact:
    Jacob et al., "Quantization and training of neural networks for efficient integer-arithmetic-only inference",
    CVPR 2018. What rounding the weights changes in the mean of a channel is taken back by its bias: Nagel et al.,
    "Data-free quantization through weight equalization and bias correction", ICCV 2019.
    """

    def quantised_pixels(self, side: int, centre: int, means: FloatArray) -> Quantised:
        """Add the input ``pixels``, RGB bytes (items, side, side, 3) that stand for distances from ``centre``."""
        pixels = self.input("pixels", np.uint8, ("items", side, side, 3))
        return Quantised(self.node("Transpose", pixels, perm=[0, 3, 1, 2]), np.float32(1), np.uint8(centre), means)

    def quantised_convolution(
        self,
        value: Quantised,
        kernel: FloatArray,
        bias: FloatArray,
        result: LayerStatistics,
        *,
        stride: int = 1,
        padding: tuple[int, int] = (0, 0),
    ) -> Quantised:
        """Add a convolution, grouped where the kernel has one channel."""
        scales = np.abs(kernel).reshape(len(kernel), -1).max(axis=1).astype(np.float64) / _LARGEST_WEIGHT
        scales = np.maximum(scales, _SMALLEST_SCALE).astype(np.float32)
        rounded = np.rint(kernel / scales[:, None, None, None]).astype(np.int8)
        lost = (kernel - rounded * scales[:, None, None, None]).astype(np.float64).sum(axis=(2, 3))
        means = value.means.astype(np.float64)
        corrected = bias + (lost[:, 0] * means if kernel.shape[1] == 1 else lost @ means)
        steps = np.rint(corrected / (np.float64(value.scale) * scales))
        limits = np.iinfo(np.int32)
        scale, zero = _scale_and_zero(result)
        name = self.node(
            "QLinearConv",
            *self._parts(value),
            self.weight(rounded),
            self.constant(scales),
            self.constant(np.zeros(len(kernel), dtype=np.int8)),
            self.constant(scale),
            self.constant(zero),
            self.weight(np.clip(steps, limits.min, limits.max).astype(np.int32)),
            **self.convolution_attributes(kernel, stride, padding),
        )
        return Quantised(name, scale, zero, result.means)

    def quantised_sum(self, first: Quantised, second: Quantised, result: LayerStatistics) -> Quantised:
        """Add the sum of two values."""
        scale, zero = _scale_and_zero(result)
        inputs = (*self._parts(first), *self._parts(second), self.constant(scale), self.constant(zero))
        return Quantised(self.node("QLinearAdd", *inputs, domain=RUNTIME_OPERATORS), scale, zero, result.means)

    def dequantised(self, value: Quantised) -> str:
        """Add the way back to float32."""
        return self.node("DequantizeLinear", *self._parts(value))

    def _parts(self, value: Quantised) -> tuple[str, str, str]:
        return value.name, self.constant(value.scale), self.constant(value.zero)


def _scale_and_zero(values: LayerStatistics) -> tuple[np.float32, np.uint8]:
    """Return the scale of a range, and the byte that stands for zero, which must have one: borders are padded by it."""
    low, high = min(values.least, 0.0), max(values.largest, 0.0)
    scale = max((high - low) / _STEPS, _SMALLEST_SCALE)
    return np.float32(scale), np.uint8(np.clip(np.rint(-low / scale), 0, _STEPS))
