"""Transformers written down as ONNX networks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.encoders.transformer.weights import Weights
from diptych.errors import InvalidInputError, MissingPackageError

ACTIVATIONS: dict[str, str] = {
    "gelu": "gelu",
    "quick_gelu": "quick_gelu",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "relu": "relu",
}
"""The activations that model configurations name, and what this builder calls them."""

NETWORK_FILE, WEIGHTS_FILE = "network.onnx", "weights.bin"

# Offsets at page boundaries let the runtime map the weights instead of copying them.
_ALIGNMENT = 4096
_OPSET, _IR_VERSION = 20, 10
_RUNTIME_OPERATORS = "com.microsoft"


class GraphBuilder:
    """Writes a network operation by operation; every method returns the name of the value it adds.

    Weights go straight to a file beside the graph, one at a time, so that a model of any size is converted in the
    memory of its largest matrix. Hidden values have the shape (items, tokens, width).

    The operations are those that ONNX Runtime runs fused on a processor: attention and quick GELU of its own set, layer
    normalisation and GELU of the standard set. Vaswani et al., "Attention is all you need", NeurIPS 2017.

    Parameters
    ----------
    folder:
        An existing folder, where ``network.onnx`` and ``weights.bin`` are written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from diptych.encoders.transformer.graph_builder import GraphBuilder
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with GraphBuilder(Path(folder)) as graph:
    ...         vectors = graph.input("vectors", np.float32, ("items", 3))
    ...         graph.output("halves", graph.node("Mul", vectors, graph.constant(np.float32(0.5))), ("items", 3))
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['network.onnx', 'weights.bin']
    """

    def __init__(self, folder: Path) -> None:
        try:
            import onnx
        except ImportError as error:
            raise MissingPackageError("converting a transformer for ONNX Runtime", "onnx") from error
        self._onnx = onnx
        self._folder = folder
        self._nodes: list[Any] = []
        self._initialisers: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self._n_values = 0

    def __enter__(self) -> GraphBuilder:
        self._file = (self._folder / WEIGHTS_FILE).open("wb")
        return self

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        # On the disk before the folder gets its final name: after a power cut a cached network is whole or absent.
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        if failure is None:
            self._write_graph()

    def input(self, name: str, dtype: type[np.generic], shape: tuple[int | str, ...]) -> str:
        """Add an input; a string stands for a size that may vary."""
        self._inputs.append(self._value_info(name, dtype, shape))
        return name

    def output(self, name: str, value: str, shape: tuple[int | str, ...]) -> None:
        """Give out a float32 value under a name."""
        self._nodes.append(self._onnx.helper.make_node("Identity", [value], [name]))
        self._outputs.append(self._value_info(name, np.float32, shape))

    def constant(self, values: AnyArray | np.generic) -> str:
        """Add a small constant, kept inside the graph."""
        name = self._new_name("constant")
        self._initialisers.append(self._onnx.numpy_helper.from_array(np.asarray(values), name))
        return name

    def weight(self, values: FloatArray) -> str:
        """Add a float32 weight, kept in the file beside the graph."""
        name = self._new_name("weight")
        content = np.ascontiguousarray(values, dtype="<f4").tobytes()
        self._file.write(b"\0" * (-self._file.tell() % _ALIGNMENT))
        tensor = self._onnx.TensorProto(
            name=name,
            data_type=self._onnx.TensorProto.FLOAT,
            dims=values.shape,
            data_location=self._onnx.TensorProto.EXTERNAL,
        )
        place = {"location": WEIGHTS_FILE, "offset": str(self._file.tell()), "length": str(len(content))}
        for key, value in place.items():
            tensor.external_data.add(key=key, value=value)
        self._file.write(content)
        self._initialisers.append(tensor)
        return name

    def node(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add an operation with one result."""
        name = self._new_name(operator)
        self._nodes.append(self._onnx.helper.make_node(operator, list(inputs), [name], domain=domain, **attributes))
        return name

    def linear(self, value: str, weights: Weights, name: str) -> str:
        """Add ``value @ weightᵀ + bias``, the bias where the weights have one."""
        return self.affine(value, weights[f"{name}.weight"].T, weights.optional(f"{name}.bias"))

    def affine(self, value: str, matrix: FloatArray, bias: FloatArray | None = None) -> str:
        """Add ``value @ matrix + bias``."""
        product = self.node("MatMul", value, self.weight(matrix))
        return product if bias is None else self.node("Add", product, self.weight(bias))

    def layer_norm(self, value: str, weights: Weights, name: str, epsilon: float) -> str:
        """Add a normalisation over the width, scaled and shifted."""
        scale, shift = self.weight(weights[f"{name}.weight"]), self.weight(weights[f"{name}.bias"])
        return self.node("LayerNormalization", value, scale, shift, axis=-1, epsilon=epsilon)

    def embedding(self, indices: str, weights: Weights, name: str) -> str:
        """Add the rows of a table for an array of indices."""
        return self.node("Gather", self.weight(weights[f"{name}.weight"]), indices, axis=0)

    def position_embedding(self, tokens: str, weights: Weights, name: str, *, first: int = 0) -> str:
        """Add rows of a table from ``first`` on, as many as there are tokens in an (items, tokens) array."""
        return self.leading(self.weight(weights[f"{name}.weight"][first:]), tokens, axes=(0,))

    def leading(self, value: str, tokens: str, *, axes: tuple[int, ...]) -> str:
        """Add the beginning of ``value`` along some axes, as long as an (items, tokens) array has tokens."""
        length = self.node("Gather", self.node("Shape", tokens), self._whole(*(1 for _ in axes)), axis=0)
        return self.node("Slice", value, self._whole(*(0 for _ in axes)), length, self._whole(*axes))

    def attention(
        self, query: str, key: str, value: str, *, heads: int, mask: str = "", bias: str = "", causal: bool = False
    ) -> str:
        """Add scaled dot-product attention of several heads.

        ``mask``, int32 (items, tokens), is 0 for keys that nobody may look at; ``bias`` (1, heads, tokens, tokens) is
        added to the scaled products; ``causal`` lets tokens look back alone.
        """
        inputs = [query, key, value, "", mask, bias]
        while not inputs[-1]:
            inputs.pop()
        return self.node(
            "MultiHeadAttention",
            *inputs,
            domain=_RUNTIME_OPERATORS,
            num_heads=heads,
            unidirectional=int(causal),
        )

    def activation(self, value: str, name: str) -> str:
        """Add an activation by the name that model configurations use, one of :data:`ACTIVATIONS`."""
        if name not in ACTIVATIONS:
            raise InvalidInputError(
                f"the activation {name!r} is not supported; known: {', '.join(sorted(ACTIVATIONS))}"
            )
        match ACTIVATIONS[name]:
            case "quick_gelu":
                return self.node("QuickGelu", value, domain=_RUNTIME_OPERATORS, alpha=1.702)
            case "gelu_tanh":
                return self.node("Gelu", value, approximate="tanh")
            case "relu":
                return self.node("Relu", value)
            case _:
                return self.node("Gelu", value)

    def mlp(self, value: str, weights: Weights, widen: str, narrow: str, activation: str) -> str:
        """Add two linear layers, named ``widen`` and ``narrow``, with an activation between them."""
        return self.linear(self.activation(self.linear(value, weights, widen), activation), weights, narrow)

    def token(self, value: str, position: int) -> str:
        """Add the choice of one token of every item; -1 is the last."""
        return self.node("Gather", value, self.constant(np.int64(position)), axis=1)

    def token_at(self, value: str, positions: str) -> str:
        """Add the choice of one token of every item, at its own position, int64 (items, 1)."""
        index = self.node("Unsqueeze", positions, self._whole(-1))
        return self.node("Squeeze", self.node("GatherND", value, index, batch_dims=1), self._whole(1))

    def repeated(self, token: FloatArray, like: str) -> str:
        """Add one and the same token for every item of ``like``: (items, 1, width)."""
        items = self.node("Slice", self.node("Shape", like), self._whole(0), self._whole(1))
        shape = self.node("Concat", items, self.constant(np.array([1, token.size], dtype=np.int64)), axis=0)
        return self.node("Expand", self.weight(token.reshape(1, 1, -1)), shape)

    def masked_mean(self, value: str, mask: str) -> str:
        """Add the mean over the tokens whose float32 mask (items, tokens) is 1."""
        sums = self.node("MatMul", self.node("Unsqueeze", mask, self._whole(1)), value)
        counts = self.node("ReduceSum", mask, self._whole(1), keepdims=1)
        return self.node("Div", self.node("Squeeze", sums, self._whole(1)), counts)

    def cast(self, value: str, dtype: type[np.generic]) -> str:
        """Add a conversion to another type of number."""
        return self.node("Cast", value, to=self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def reshape(self, value: str, shape: tuple[int, ...]) -> str:
        """Add a change of shape; 0 keeps a size and -1 works it out."""
        return self.node("Reshape", value, self.constant(np.array(shape, dtype=np.int64)))

    def _whole(self, *numbers: int) -> str:
        return self.constant(np.array(numbers, dtype=np.int64))

    def _new_name(self, stem: str) -> str:
        self._n_values += 1
        return f"{stem}_{self._n_values}"

    def _value_info(self, name: str, dtype: type[np.generic], shape: tuple[int | str, ...]) -> Any:
        number = self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self._onnx.helper.make_tensor_value_info(name, number, list(shape))

    def _write_graph(self) -> None:
        helper = self._onnx.helper
        graph = helper.make_graph(self._nodes, "transformer", self._inputs, self._outputs, self._initialisers)
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_RUNTIME_OPERATORS, 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION, producer_name="diptych")
        (self._folder / NETWORK_FILE).write_bytes(model.SerializeToString())
