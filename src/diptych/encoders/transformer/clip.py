"""The two towers of CLIP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from diptych.encoders.transformer.pre_norm_layers import add_patches, add_picture_input, add_pre_norm_layers
from diptych.encoders.transformer.transformer_graph import TransformerGraph
from diptych.encoders.transformer.weights import Weights

CLIP_TEXT: dict[str, Any] = {
    "hidden_size": 512,
    "num_hidden_layers": 12,
    "num_attention_heads": 8,
    "max_position_embeddings": 77,
    "hidden_act": "quick_gelu",
    "layer_norm_eps": 1e-5,
    "eos_token_id": 49407,
}
CLIP_VISION: dict[str, Any] = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "image_size": 224,
    "patch_size": 32,
    "hidden_act": "quick_gelu",
    "layer_norm_eps": 1e-5,
}
"""What a configuration leaves out when it has the usual value."""


def write_clip_vision(graph: TransformerGraph, config: Mapping[str, Any], weights: Weights, *, width: int) -> None:
    """Write the network from ``pixels`` to ``features`` (items, width).

    A class token goes before the patches; after the last layer it is normalised and projected.

    Radford et al., "Learning transferable visual models from natural language supervision", ICML 2021.
    """
    tower = weights.under("vision_model.")
    patches = add_patches(graph, config, tower, add_picture_input(graph, config))
    positions = tower["embeddings.position_embedding.weight"]
    first = tower["embeddings.class_embedding"] + positions[0]
    placed = graph.node("Add", patches, graph.weight(positions[1:]))
    hidden = graph.node("Concat", graph.repeated(first, patches), placed, axis=1)
    hidden = graph.layer_norm(hidden, tower, "pre_layrnorm", config["layer_norm_eps"])
    hidden = add_pre_norm_layers(graph, config, tower, hidden)
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
