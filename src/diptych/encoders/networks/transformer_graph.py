"""Transformers as ONNX networks: their layers, the BERT family, and the towers of CLIP and SigLIP."""

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


# What a configuration leaves out when it has the usual value.
_CLIP: dict[str, Any] = {"num_hidden_layers": 12, "hidden_act": "quick_gelu", "layer_norm_eps": 1e-5}
CLIP_TEXT = _CLIP | {"hidden_size": 512, "num_attention_heads": 8, "max_position_embeddings": 77, "eos_token_id": 49407}
CLIP_VISION = _CLIP | {"hidden_size": 768, "num_attention_heads": 12, "image_size": 224, "patch_size": 32}
_SIGLIP: dict[str, Any] = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "hidden_act": "gelu_pytorch_tanh",
    "layer_norm_eps": 1e-6,
}
SIGLIP_TEXT = _SIGLIP | {"max_position_embeddings": 64, "pad_token_id": 1}
SIGLIP_VISION = _SIGLIP | {"image_size": 224, "patch_size": 16}


def add_pre_norm_layers(
    graph: TransformerGraph,
    config: Mapping[str, Any],
    weights: Weights,
    hidden: str,
    *,
    causal: bool = False,
    only: int | None = None,
) -> str:
    """Add all layers, ``encoder.layers.0`` and so on: x + attention(norm(x)), then x + mlp(norm(x)).

    Where of the result ``only`` one token is used, the last layer works out no other, which saves most of its work.
    """
    last = config["num_hidden_layers"] - 1
    for number in range(last + 1):
        layer = weights.under(f"encoder.layers.{number}.")
        hidden = _pre_norm_layer(graph, config, layer, hidden, causal, only if number == last else None)
    return hidden


def add_patches(graph: TransformerGraph, config: Mapping[str, Any], weights: Weights, pixels: str) -> str:
    """Add the embedding of square patches that do not overlap: (items, patches, width), row by row."""
    kernel = graph.weight(weights["embeddings.patch_embedding.weight"])
    bias = weights.optional("embeddings.patch_embedding.bias")
    side = config["patch_size"]
    inputs = (pixels, kernel) if bias is None else (pixels, kernel, graph.weight(bias))
    grid = graph.node("Conv", *inputs, kernel_shape=[side, side], strides=[side, side])
    return graph.node("Transpose", graph.reshape(grid, (0, 0, -1)), perm=[0, 2, 1])


def add_picture_input(graph: TransformerGraph, config: Mapping[str, Any]) -> str:
    """Add the input ``pixels``, float32 (items, 3, side, side)."""
    side = config["image_size"]
    return graph.input("pixels", np.float32, ("items", 3, side, side))


def _pre_norm_layer(
    graph: TransformerGraph, config: Mapping[str, Any], weights: Weights, hidden: str, causal: bool, only: int | None
) -> str:
    epsilon = config["layer_norm_eps"]
    normed = graph.layer_norm(hidden, weights, "layer_norm1", epsilon)
    key, value = (graph.linear(normed, weights, f"self_attn.{part}_proj") for part in "kv")
    if only is not None:
        kept = graph.whole_numbers(only)
        hidden, normed = (graph.node("Gather", tokens, kept, axis=1) for tokens in (hidden, normed))
    query = graph.linear(normed, weights, "self_attn.q_proj")
    seen = graph.attention(query, key, value, heads=config["num_attention_heads"], causal=causal)
    hidden = graph.node("Add", hidden, graph.linear(seen, weights, "self_attn.out_proj"))
    normed = graph.layer_norm(hidden, weights, "layer_norm2", epsilon)
    return graph.node("Add", hidden, graph.mlp(normed, weights, "mlp.fc1", "mlp.fc2", config["hidden_act"]))


def write_clip_vision(graph: TransformerGraph, config: Mapping[str, Any], weights: Weights, *, width: int) -> None:
    """Write the network from ``pixels`` to ``features`` (items, width), those of a class token before the patches.

    Radford et al., "Learning transferable visual models from natural language supervision", ICML 2021.
    """
    tower = weights.under("vision_model.")
    patches = add_patches(graph, config, tower, add_picture_input(graph, config))
    positions = tower["embeddings.position_embedding.weight"]
    first = tower["embeddings.class_embedding"] + positions[0]
    placed = graph.node("Add", patches, graph.weight(positions[1:]))
    hidden = graph.node("Concat", graph.repeated(first, patches), placed, axis=1)
    hidden = graph.layer_norm(hidden, tower, "pre_layrnorm", config["layer_norm_eps"])
    hidden = add_pre_norm_layers(graph, config, tower, hidden, only=0)
    pooled = graph.layer_norm(graph.token(hidden, 0), tower, "post_layernorm", config["layer_norm_eps"])
    graph.output("features", graph.linear(pooled, weights, "visual_projection"), ("items", width))


def write_clip_text(graph: TransformerGraph, config: Mapping[str, Any], weights: Weights, *, width: int) -> None:
    """Write the network from ``tokens`` (items, tokens) and ``ends`` (items, 1), both int64, to ``features``.

    Tokens look back only, so what follows the end of a text cannot change it; the token at the end is projected.
    """
    tower = weights.under("text_model.")
    tokens = graph.input("tokens", np.int64, ("items", "tokens"))
    ends = graph.input("ends", np.int64, ("items", 1))
    words = graph.embedding(tokens, tower, "embeddings.token_embedding")
    places = graph.position_embedding(tokens, tower, "embeddings.position_embedding")
    hidden = add_pre_norm_layers(graph, config, tower, graph.node("Add", words, places), causal=True)
    last = graph.layer_norm(graph.token_at(hidden, ends), tower, "final_layer_norm", config["layer_norm_eps"])
    graph.output("features", graph.linear(last, weights, "text_projection"), ("items", width))


def write_siglip_vision(graph: TransformerGraph, config: Mapping[str, Any], weights: Weights, *, width: int) -> None:
    """Write the network from ``pixels`` to ``features`` (items, width); a learned query attends to the last patches.

    Zhai et al., "Sigmoid loss for language image pre-training", ICCV 2023; the attention pooling is that of Zhai et
    al., "Scaling vision transformers", CVPR 2022.
    """
    tower = weights.under("vision_model.")
    patches = add_patches(graph, config, tower, add_picture_input(graph, config))
    hidden = graph.node("Add", patches, graph.weight(tower["embeddings.position_embedding.weight"]))
    hidden = add_pre_norm_layers(graph, config, tower, hidden)
    hidden = graph.layer_norm(hidden, tower, "post_layernorm", config["layer_norm_eps"])
    graph.output("features", _attention_pooled(graph, config, tower.under("head."), hidden), ("items", width))


def write_siglip_text(graph: TransformerGraph, config: Mapping[str, Any], weights: Weights, *, width: int) -> None:
    """Write the network from ``tokens``, int64 (items, tokens), to ``features`` (items, width).

    All tokens see each other, filling included: texts must be filled up to the length the network was trained with.
    The last token is projected.
    """
    tower = weights.under("text_model.")
    tokens = graph.input("tokens", np.int64, ("items", config["max_position_embeddings"]))
    words = graph.embedding(tokens, tower, "embeddings.token_embedding")
    places = graph.weight(tower["embeddings.position_embedding.weight"])
    hidden = add_pre_norm_layers(graph, config, tower, graph.node("Add", words, places), only=-1)
    last = graph.layer_norm(graph.token(hidden, 0), tower, "final_layer_norm", config["layer_norm_eps"])
    graph.output("features", graph.linear(last, tower, "head"), ("items", width))


def _attention_pooled(graph: TransformerGraph, config: Mapping[str, Any], weights: Weights, hidden: str) -> str:
    matrices = np.split(weights["attention.in_proj_weight"], 3)
    biases = np.split(weights["attention.in_proj_bias"], 3)
    # The query is the same for every picture, so its projection is worked out here and only repeated.
    fixed = weights["probe"][0] @ matrices[0].T + biases[0]
    key = graph.affine(hidden, matrices[1].T, biases[1])
    value = graph.affine(hidden, matrices[2].T, biases[2])
    query = graph.repeated(fixed, hidden)
    seen = graph.attention(query, key, value, heads=config["num_attention_heads"])
    pooled = graph.linear(seen, weights, "attention.out_proj")
    normed = graph.layer_norm(pooled, weights, "layernorm", config["layer_norm_eps"])
    refined = graph.node("Add", pooled, graph.mlp(normed, weights, "mlp.fc1", "mlp.fc2", config["hidden_act"]))
    return graph.token(refined, 0)
