"""Networks written down in ONNX: the nodes every one needs, and those of convolutional ones."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.encoders.networks.model_files import onnx_package

RUNTIME_OPERATORS = "com.microsoft"
"""The domain of the operators that ONNX Runtime adds to the standard."""
OPSET = 20
IR_VERSION = 10
_INTEGERS = ("uint8", "int8", "int32")


class GraphBuilder:
    """Writes a network operation by operation; every method returns the name of the value it adds.

    Subclasses add the layers of a family of networks.
    """

    def __init__(self) -> None:
        self._onnx = onnx_package()
        self._nodes: list[Any] = []
        self._initialisers: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self._n_values = 0

    def content(self) -> bytes:
        """Return the network as a file of ONNX has it, weights included."""
        return bytes(self.model().SerializeToString())

    def model(self) -> Any:
        """Return the network as an ``onnx.ModelProto``, weights included."""
        helper = self._onnx.helper
        graph = helper.make_graph(self._nodes, "network", self._inputs, self._outputs, self._initialisers)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(RUNTIME_OPERATORS, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="diptych")

    def input(self, name: str, dtype: type[np.generic], shape: tuple[int | str, ...]) -> str:
        """Add an input; a string stands for a size that may vary."""
        self._inputs.append(self._value_info(name, dtype, shape))
        return name

    def output(self, name: str, value: str, shape: tuple[int | str, ...]) -> None:
        """Give out a float32 value under a name."""
        self._nodes.append(self._onnx.helper.make_node("Identity", [value], [name]))
        self._outputs.append(self._value_info(name, np.float32, shape))

    def constant(self, values: AnyArray | np.generic) -> str:
        """Add an array as it is."""
        name = self._new_name("constant")
        self._initialisers.append(self._onnx.numpy_helper.from_array(np.asarray(values), name))
        return name

    def weight(self, values: AnyArray) -> str:
        """Add a weight: whole numbers of eight bits, and biases of them, as they are, everything else as float32."""
        dtype = values.dtype if values.dtype.name in _INTEGERS else np.float32
        return self.constant(np.ascontiguousarray(values, dtype=dtype))

    def node(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add an operation with one result."""
        name = self._new_name(operator)
        self._nodes.append(self._onnx.helper.make_node(operator, list(inputs), [name], domain=domain, **attributes))
        return name

    def affine(self, value: str, matrix: FloatArray, bias: FloatArray | None = None) -> str:
        """Add ``value @ matrix + bias``."""
        product = self.node("MatMul", value, self.weight(matrix))
        return product if bias is None else self.node("Add", product, self.weight(bias))

    def cast(self, value: str, dtype: type[np.generic]) -> str:
        """Add a conversion to another type of number."""
        return self.node("Cast", value, to=self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def reshape(self, value: str, shape: tuple[int, ...]) -> str:
        """Add a change of shape; 0 keeps a size and -1 works it out."""
        return self.node("Reshape", value, self.whole_numbers(*shape))

    def whole_numbers(self, *numbers: int) -> str:
        """Add a row of integers, as sizes, axes and positions are given."""
        return self.constant(np.array(numbers, dtype=np.int64))

    def _new_name(self, stem: str) -> str:
        self._n_values += 1
        return f"{stem}_{self._n_values}"

    def _value_info(self, name: str, dtype: type[np.generic], shape: tuple[int | str, ...]) -> Any:
        number = self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self._onnx.helper.make_tensor_value_info(name, number, list(shape))


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
        """Add a convolution, grouped where the kernel has one channel; ``padding`` zeros go before and after."""
        attributes = self.convolution_attributes(kernel, stride, padding)
        return self.node("Conv", value, self.weight(kernel), self.weight(bias), **attributes)

    @staticmethod
    def convolution_attributes(
        kernel: FloatArray, stride: int = 1, padding: tuple[int, int] = (0, 0)
    ) -> dict[str, Any]:
        """Return what a node says of a convolution besides its weights."""
        size = kernel.shape[-1]
        return {
            "kernel_shape": [size, size],
            "strides": [stride, stride],
            "pads": [padding[0], padding[0], padding[1], padding[1]],
            "group": len(kernel) if kernel.shape[1] == 1 else 1,
        }

    def pooled_features(self, value: str, width: int) -> None:
        """Give out the mean over rows and columns as ``features``."""
        pooled = self.node("GlobalAveragePool", value)
        self.output("features", self.node("Flatten", pooled, axis=1), ("items", width))


def fold_batch_norm(
    kernel: AnyArray, norm: BatchNorm, *, epsilon: float, bias: AnyArray | float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """Return kernel and bias of the one convolution that equals a convolution and the batch normalisation after it.

    γ (k∗x + b − μ)/√(σ² + ε) + β = (f k)∗x + (β + f (b − μ)) with f = γ/√(σ² + ε).
    """
    gain, shift, mean, variance = (np.asarray(part, dtype=np.float64) for part in norm)
    factor = gain / np.sqrt(variance + epsilon)
    scaled = kernel.astype(np.float64) * factor[:, None, None, None]
    return scaled.astype(np.float32), (shift + (bias - mean) * factor).astype(np.float32)
