"""The layers that CLIP and SigLIP share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from diptych.encoders.transformer.transformer_graph import TransformerGraph
from diptych.encoders.transformer.weights import Weights


def add_pre_norm_layers(
    graph: TransformerGraph, config: Mapping[str, Any], weights: Weights, hidden: str, *, causal: bool = False
) -> str:
    """Add all layers of a tower: x + attention(norm(x)), then x + mlp(norm(x)).

    ``weights`` are those of the tower, whose layers are named ``encoder.layers.0`` and so on.
    """
    for number in range(config["num_hidden_layers"]):
        hidden = _layer(graph, config, weights.under(f"encoder.layers.{number}."), hidden, causal)
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


def _layer(graph: TransformerGraph, config: Mapping[str, Any], weights: Weights, hidden: str, causal: bool) -> str:
    epsilon = config["layer_norm_eps"]
    normed = graph.layer_norm(hidden, weights, "layer_norm1", epsilon)
    query, key, value = (graph.linear(normed, weights, f"self_attn.{part}_proj") for part in "qkv")
    seen = graph.attention(query, key, value, heads=config["num_attention_heads"], causal=causal)
    hidden = graph.node("Add", hidden, graph.linear(seen, weights, "self_attn.out_proj"))
    normed = graph.layer_norm(hidden, weights, "layer_norm2", epsilon)
    return graph.node("Add", hidden, graph.mlp(normed, weights, "mlp.fc1", "mlp.fc2", config["hidden_act"]))
