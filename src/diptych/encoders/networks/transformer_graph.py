"""Transformers written down as ONNX networks: their layers, and the BERT family of text networks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from diptych.arrays import FloatArray
from diptych.encoders.networks.onnx_graph import RUNTIME_OPERATORS, GraphBuilder
from diptych.encoders.networks.safetensors_weights import Weights
from diptych.errors import InvalidInputError

ACTIVATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "gelu": ("Gelu", {}),
    "quick_gelu": ("QuickGelu", {"domain": RUNTIME_OPERATORS, "alpha": 1.702}),
    **dict.fromkeys(("gelu_pytorch_tanh", "gelu_new", "gelu_fast"), ("Gelu", {"approximate": "tanh"})),
    "relu": ("Relu", {}),
}
"""The activations that model configurations name: the operator and its attributes."""
BERT_FAMILY = ("bert", "mpnet", "roberta", "xlm-roberta")
"""The values of ``model_type`` in a ``config.json`` that :func:`write_bert` understands."""
_BERT_ATTENTION = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "output": "attention.output.dense",
    "norm": "attention.output.LayerNorm",
}
_MPNET_ATTENTION = {
    "query": "attention.attn.q",
    "key": "attention.attn.k",
    "value": "attention.attn.v",
    "output": "attention.attn.o",
    "norm": "attention.LayerNorm",
}
_FARTHEST_DISTANCE = 128


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
            "MultiHeadAttention", *inputs, domain=RUNTIME_OPERATORS, num_heads=heads, unidirectional=int(causal)
        )

    def activation(self, value: str, name: str) -> str:
        """Add an activation by the name that model configurations use, one of :data:`ACTIVATIONS`."""
        if name not in ACTIVATIONS:
            raise InvalidInputError(
                f"the activation {name!r} is not supported; known: {', '.join(sorted(ACTIVATIONS))}"
            )
        operator, attributes = ACTIVATIONS[name]
        return self.node(operator, value, **attributes)

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


def write_bert(graph: TransformerGraph, config: Mapping[str, Any], weights: Weights, *, pooling: str) -> None:
    """Write the network from ``tokens`` and ``mask``, int64 (items, tokens), to ``features`` (items, width).

    Every layer attends to all tokens whose mask is 1 and normalises after each addition. ``pooling`` is ``"mean"``,
    over the tokens whose mask is 1, ``"cls"``, the first token, or ``"none"``, which gives ``features`` of each token.

    Devlin et al., "BERT: Pre-training of deep bidirectional transformers for language understanding", NAACL 2019.
    Liu et al., "RoBERTa", 2019, and Conneau et al., "Unsupervised cross-lingual representation learning at scale", ACL
    2020, count positions from the number after that of the filling; so do Song et al., "MPNet: Masked and permuted
    pre-training for language understanding", NeurIPS 2020, who also add a learned bias for the distance of two tokens.
    """
    kind = config["model_type"]
    inner = weights if "embeddings.word_embeddings.weight" in weights else weights.under(f"{kind.split('-')[-1]}.")
    tokens = graph.input("tokens", np.int64, ("items", "tokens"))
    mask = graph.input("mask", np.int64, ("items", "tokens"))
    hidden = _bert_embeddings(graph, config, inner, tokens)
    attended = graph.cast(mask, np.int32)
    bias = graph.leading(graph.weight(_distance_bias(config, inner)), tokens, axes=(2, 3)) if kind == "mpnet" else ""
    for layer in range(config["num_hidden_layers"]):
        hidden = _bert_layer(graph, config, inner.under(f"encoder.layer.{layer}."), hidden, attended, bias)
    if pooling == "none":
        graph.output("features", hidden, ("items", "tokens", config["hidden_size"]))
        return
    pooled = graph.token(hidden, 0) if pooling == "cls" else graph.masked_mean(hidden, graph.cast(mask, np.float32))
    graph.output("features", pooled, ("items", config["hidden_size"]))


def bert_first_position(config: Mapping[str, Any]) -> int:
    """Return the row of the position table that belongs to the first token."""
    if config["model_type"] == "bert":
        return 0
    filling = 1 if config["model_type"] == "mpnet" else int(config.get("pad_token_id", 1))
    return filling + 1


def bert_max_tokens(config: Mapping[str, Any]) -> int:
    """Return how many tokens the network has positions for."""
    return int(config["max_position_embeddings"]) - bert_first_position(config)


def _bert_embeddings(graph: TransformerGraph, config: Mapping[str, Any], weights: Weights, tokens: str) -> str:
    words = graph.embedding(tokens, weights, "embeddings.word_embeddings")
    first = bert_first_position(config)
    positions = graph.position_embedding(tokens, weights, "embeddings.position_embeddings", first=first)
    summed = graph.node("Add", words, positions)
    types = weights.optional("embeddings.token_type_embeddings.weight")
    if types is not None:
        # All tokens of a single text are of the first type.
        summed = graph.node("Add", summed, graph.weight(types[0]))
    return graph.layer_norm(summed, weights, "embeddings.LayerNorm", config["layer_norm_eps"])


def _bert_layer(
    graph: TransformerGraph, config: Mapping[str, Any], weights: Weights, hidden: str, mask: str, bias: str
) -> str:
    epsilon = config["layer_norm_eps"]
    names = _MPNET_ATTENTION if config["model_type"] == "mpnet" else _BERT_ATTENTION
    query, key, value = (graph.linear(hidden, weights, names[part]) for part in ("query", "key", "value"))
    seen = graph.attention(query, key, value, heads=config["num_attention_heads"], mask=mask, bias=bias)
    attended = graph.node("Add", graph.linear(seen, weights, names["output"]), hidden)
    hidden = graph.layer_norm(attended, weights, names["norm"], epsilon)
    widened = graph.mlp(hidden, weights, "intermediate.dense", "output.dense", config["hidden_act"])
    return graph.layer_norm(graph.node("Add", widened, hidden), weights, "output.LayerNorm", epsilon)


def _distance_bias(config: Mapping[str, Any], weights: Weights) -> FloatArray:
    """Return what MPNet adds to attention (1, heads, tokens, tokens).

    Half of the buckets are for tokens that come later; of each half, the first half holds one distance each, and the
    rest grow logarithmically up to a distance of 128.
    """
    table = weights["encoder.relative_attention_bias.weight"]
    half, exact = len(table) // 2, len(table) // 4
    places = np.arange(bert_max_tokens(config))
    later_by = places[None, :] - places[:, None]
    distance = np.abs(later_by)
    growth = np.log(np.maximum(distance, exact) / exact) / np.log(_FARTHEST_DISTANCE / exact)
    far = np.minimum(exact + (growth * (half - exact)).astype(np.int64), half - 1)
    bucket = np.where(distance < exact, distance, far) + half * (later_by > 0)
    return np.asarray(table[bucket].transpose(2, 0, 1)[None])
