"""The picture and text towers of CLIP and SigLIP, written down as ONNX networks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from diptych.encoders.networks.safetensors_weights import Weights
from diptych.encoders.networks.transformer_graph import TransformerGraph

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
    graph: TransformerGraph, config: Mapping[str, Any], weights: Weights, hidden: str, *, causal: bool = False
) -> str:
    """Add all layers, ``encoder.layers.0`` and so on: x + attention(norm(x)), then x + mlp(norm(x))."""
    for number in range(config["num_hidden_layers"]):
        hidden = _pre_norm_layer(graph, config, weights.under(f"encoder.layers.{number}."), hidden, causal)
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
    graph: TransformerGraph, config: Mapping[str, Any], weights: Weights, hidden: str, causal: bool
) -> str:
    epsilon = config["layer_norm_eps"]
    normed = graph.layer_norm(hidden, weights, "layer_norm1", epsilon)
    query, key, value = (graph.linear(normed, weights, f"self_attn.{part}_proj") for part in "qkv")
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
