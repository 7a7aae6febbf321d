"""Transformers written down as ONNX networks."""

from __future__ import annotations

import numpy as np

from diptych.arrays import FloatArray
from diptych.encoders.network.graph_builder import RUNTIME_OPERATORS, GraphBuilder
from diptych.encoders.transformer.weights import Weights
from diptych.errors import InvalidInputError

ACTIVATIONS: dict[str, str] = {
    "gelu": "gelu",
    "quick_gelu": "quick_gelu",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "relu": "relu",
}
"""The activations that model configurations name, and what this builder calls them."""


class TransformerGraph(GraphBuilder):
    """Adds the layers of transformers to a network; hidden values have the shape (items, tokens, width).

    The operations are those that ONNX Runtime runs fused on a processor: attention and quick GELU of its own set, layer
    normalisation and GELU of the standard set. Vaswani et al., "Attention is all you need", NeurIPS 2017.
    """

    def linear(self, value: str, weights: Weights, name: str) -> str:
        """Add ``value @ weightᵀ + bias``, the bias where the weights have one."""
        return self.affine(value, weights[f"{name}.weight"].T, weights.optional(f"{name}.bias"))

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
        length = self.node("Gather", self.node("Shape", tokens), self.whole_numbers(*(1 for _ in axes)), axis=0)
        return self.node("Slice", value, self.whole_numbers(*(0 for _ in axes)), length, self.whole_numbers(*axes))

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
            domain=RUNTIME_OPERATORS,
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
                return self.node("QuickGelu", value, domain=RUNTIME_OPERATORS, alpha=1.702)
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
        index = self.node("Unsqueeze", positions, self.whole_numbers(-1))
        return self.node("Squeeze", self.node("GatherND", value, index, batch_dims=1), self.whole_numbers(1))

    def repeated(self, token: FloatArray, like: str) -> str:
        """Add one and the same token for every item of ``like``: (items, 1, width)."""
        items = self.node("Slice", self.node("Shape", like), self.whole_numbers(0), self.whole_numbers(1))
        shape = self.node("Concat", items, self.whole_numbers(1, token.size), axis=0)
        return self.node("Expand", self.weight(token.reshape(1, 1, -1)), shape)

    def masked_mean(self, value: str, mask: str) -> str:
        """Add the mean over the tokens whose float32 mask (items, tokens) is 1."""
        sums = self.node("MatMul", self.node("Unsqueeze", mask, self.whole_numbers(1)), value)
        counts = self.node("ReduceSum", mask, self.whole_numbers(1), keepdims=1)
        return self.node("Div", self.node("Squeeze", sums, self.whole_numbers(1)), counts)
