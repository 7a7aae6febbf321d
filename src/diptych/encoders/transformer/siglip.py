"""The two towers of SigLIP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from diptych.encoders.transformer.pre_norm_layers import add_patches, add_picture_input, add_pre_norm_layers
from diptych.encoders.transformer.transformer_graph import TransformerGraph
from diptych.encoders.transformer.weights import Weights

SIGLIP_TEXT: dict[str, Any] = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "max_position_embeddings": 64,
    "hidden_act": "gelu_pytorch_tanh",
    "layer_norm_eps": 1e-6,
    "pad_token_id": 1,
}
SIGLIP_VISION: dict[str, Any] = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "image_size": 224,
    "patch_size": 16,
    "hidden_act": "gelu_pytorch_tanh",
    "layer_norm_eps": 1e-6,
}
"""What a configuration leaves out when it has the usual value."""


def write_siglip_vision(graph: TransformerGraph, config: Mapping[str, Any], weights: Weights, *, width: int) -> None:
    """Write the network from ``pixels`` to ``features`` (items, width).

    There is no class token: a learned query attends to all patches of the last layer, and a small network follows.

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
    hidden = add_pre_norm_layers(graph, config, tower, graph.node("Add", words, places))
    last = graph.layer_norm(graph.token(hidden, -1), tower, "final_layer_norm", config["layer_norm_eps"])
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
