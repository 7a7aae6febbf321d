"""Convolutional networks written down as ONNX networks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.encoders.network.graph_builder import GraphBuilder


class BatchNorm(NamedTuple):
    """What a batch normalisation learned, one number for each channel."""

    gain: AnyArray
    shift: AnyArray
    mean: AnyArray
    variance: AnyArray


class ConvolutionGraph(GraphBuilder):
    """Adds the layers of convolutional networks; values have the shape (items, channels, rows, columns)."""

    def centred_pixels(self, side: int, centre: tuple[float, ...]) -> str:
        """Add the input ``pixels``, RGB bytes (items, side, side, 3), and take ``centre`` from its colours."""
        pixels = self.input("pixels", np.uint8, ("items", side, side, 3))
        centred = self.node("Sub", self.cast(pixels, np.float32), self.constant(np.array(centre, dtype=np.float32)))
        return self.node("Transpose", centred, perm=[0, 3, 1, 2])

    def convolution(
        self, value: str, kernel: FloatArray, bias: FloatArray, *, stride: int = 1, padding: tuple[int, int] = (0, 0)
    ) -> str:
        """Add a convolution with a (filters, channels, size, size) kernel; one channel means one for each filter.

        ``padding`` is how many zeros are put before and after rows and columns.
        """
        size = kernel.shape[-1]
        return self.node(
            "Conv",
            value,
            self.weight(kernel),
            self.weight(bias),
            kernel_shape=[size, size],
            strides=[stride, stride],
            pads=[padding[0], padding[0], padding[1], padding[1]],
            group=len(kernel) if kernel.shape[1] == 1 else 1,
        )

    def pooled_features(self, value: str, width: int) -> None:
        """Give out the mean over rows and columns as ``features``."""
        pooled = self.node("GlobalAveragePool", value)
        self.output("features", self.node("Flatten", pooled, axis=1), ("items", width))


def folded(
    kernel: AnyArray, norm: BatchNorm, *, epsilon: float, bias: AnyArray | float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """Return kernel and bias of the one convolution that equals a convolution and the batch normalisation after it.

    γ (k∗x + b − μ)/√(σ² + ε) + β = (f k)∗x + (β + f (b − μ)) with f = γ/√(σ² + ε).

    >>> import numpy as np
    >>> from diptych.encoders.image.convolution_graph import BatchNorm, folded
    >>> norm = BatchNorm(*(np.array([value]) for value in (6.0, 1.0, 2.0, 3.0)))
    >>> kernel, bias = folded(np.ones((1, 1, 1, 1)), norm, epsilon=1.0)
    >>> kernel.item(), bias.item()
    (3.0, -5.0)
    """
    gain, shift, mean, variance = (np.asarray(part, dtype=np.float64) for part in norm)
    factor = gain / np.sqrt(variance + epsilon)
    scaled = kernel.astype(np.float64) * factor[:, None, None, None]
    return scaled.astype(np.float32), (shift + (bias - mean) * factor).astype(np.float32)
