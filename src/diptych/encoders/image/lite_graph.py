"""An EfficientNet-Lite as an ONNX graph, from bytes of pixels to pooled features."""

from __future__ import annotations

from typing import Any

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.encoders.image.lite_networks import LiteNetwork
from diptych.errors import MissingPackageError

_STRIDES = (1, 2, 2, 2, 1, 2, 1)
_BATCH_NORM_EPSILON = 1e-3
_PIXEL_CENTRE, _PIXEL_SCALE = 127.0, 128.0
_OPSET, _IR_VERSION = 17, 8


def lite_graph(network: LiteNetwork) -> bytes:
    """Return the ONNX model: uint8 pixels (n, side, side, 3) in, float32 features (n, 1280) out.

    Batch normalisation is folded into the convolutions before it, and the division by 128 into the first one; the
    subtraction of 127 cannot be, since the borders are padded with zeros after it.
    """
    return _GraphWriter(network).model()


class _GraphWriter:
    """Writes nodes one after the other and keeps track of how large the picture is at that point."""

    def __init__(self, network: LiteNetwork) -> None:
        try:
            import onnx
        except ImportError as error:
            raise MissingPackageError("the image network", "onnx") from error
        self._onnx = onnx
        self._network = network
        self._weights = network.weights()
        self._side = network.side
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._zero = self._constant("zero", np.float32(0))
        self._six = self._constant("six", np.float32(6))

    def model(self) -> bytes:
        onnx, side = self._onnx, self._network.side
        pixels = onnx.helper.make_tensor_value_info("pixels", onnx.TensorProto.UINT8, ["n", side, side, 3])
        features = onnx.helper.make_tensor_value_info("features", onnx.TensorProto.FLOAT, ["n", 1280])
        self._write_network()
        graph = onnx.helper.make_graph(self._nodes, self._network.name, [pixels], [features], self._constants)
        opset = onnx.helper.make_opsetid("", _OPSET)
        model = onnx.helper.make_model(graph, opset_imports=[opset], ir_version=_IR_VERSION)
        onnx.checker.check_model(model)
        return bytes(model.SerializeToString())

    def _write_network(self) -> None:
        centre = self._constant("centre", np.float32(_PIXEL_CENTRE))
        real = self._node("Cast", ["pixels"], to=self._onnx.TensorProto.FLOAT)
        channels_first = self._node("Transpose", [self._node("Sub", [real, centre])], perm=[0, 3, 1, 2])
        values = self._convolution(channels_first, "_conv_stem", "_bn0", stride=2, scale=1 / _PIXEL_SCALE)
        block = 0
        for stride, repeats in zip(_STRIDES, self._network.repeats, strict=True):
            for repeat in range(repeats):
                values = self._block(values, f"_blocks.{block}.", stride if repeat == 0 else 1, residual=repeat > 0)
                block += 1
        values = self._convolution(values, "_conv_head", "_bn1")
        pooled = self._node("GlobalAveragePool", [values])
        self._node("Flatten", [pooled], output="features", axis=1)

    def _block(self, values: str, prefix: str, stride: int, *, residual: bool) -> str:
        """Write an inverted residual: widen, filter each channel, narrow; the narrow end stays linear."""
        inner = values
        if f"{prefix}_expand_conv.weight" in self._weights:
            inner = self._convolution(inner, f"{prefix}_expand_conv", f"{prefix}_bn0")
        inner = self._convolution(inner, f"{prefix}_depthwise_conv", f"{prefix}_bn1", stride=stride)
        inner = self._convolution(inner, f"{prefix}_project_conv", f"{prefix}_bn2", linear=True)
        return self._node("Add", [inner, values]) if residual else inner

    def _convolution(
        self, values: str, name: str, norm: str, *, stride: int = 1, scale: float = 1.0, linear: bool = False
    ) -> str:
        kernel, bias = self._folded(name, norm, scale)
        size = kernel.shape[-1]
        before, after = self._padding(size, stride)
        filtered = self._node(
            "Conv",
            [values, self._constant(f"{name}.kernel", kernel), self._constant(f"{name}.bias", bias)],
            kernel_shape=[size, size],
            strides=[stride, stride],
            pads=[before, before, after, after],
            group=len(kernel) if kernel.shape[1] == 1 else 1,
        )
        return filtered if linear else self._node("Clip", [filtered, self._zero, self._six])

    def _padding(self, size: int, stride: int) -> tuple[int, int]:
        # The weights were trained with TensorFlow, whose "same" padding puts the odd pixel after the picture.
        output = -(-self._side // stride)
        total = max(0, (output - 1) * stride + size - self._side)
        self._side = output
        return total // 2, total - total // 2

    def _folded(self, name: str, norm: str, scale: float) -> tuple[FloatArray, FloatArray]:
        kernel = self._weights[f"{name}.weight"].astype(np.float64)
        gain, shift, mean, variance = (
            self._weights[f"{norm}.{part}"].astype(np.float64)
            for part in ("weight", "bias", "running_mean", "running_var")
        )
        factor = gain / np.sqrt(variance + _BATCH_NORM_EPSILON)
        folded = kernel * factor[:, None, None, None] * scale
        return folded.astype(np.float32), (shift - mean * factor).astype(np.float32)

    def _constant(self, name: str, value: AnyArray | np.float32) -> str:
        self._constants.append(self._onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def _node(self, kind: str, inputs: list[str], output: str | None = None, **attributes: Any) -> str:
        name = output or f"{kind.lower()}_{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(kind, inputs, [name], **attributes))
        return name
