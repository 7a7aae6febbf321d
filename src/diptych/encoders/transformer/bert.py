"""The BERT family of text networks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from diptych.arrays import FloatArray
from diptych.encoders.transformer.transformer_graph import TransformerGraph
from diptych.encoders.transformer.weights import Weights

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


def write_bert(graph: TransformerGraph, config: Mapping[str, Any], weights: Weights, *, pooling: str) -> None:
    """Write the network from ``tokens`` and ``mask``, int64 (items, tokens), to ``features`` (items, width).

    Every layer attends to all tokens whose mask is 1 and normalises after each addition. ``pooling`` is ``"mean"``,
    over the tokens whose mask is 1, or ``"cls"``, the first token.

    Devlin et al., "BERT: Pre-training of deep bidirectional transformers for language understanding", NAACL 2019.
    Liu et al., "RoBERTa", 2019, and Conneau et al., "Unsupervised cross-lingual representation learning at scale", ACL
    2020, count positions from the number after that of the filling; so do Song et al., "MPNet: Masked and permuted
    pre-training for language understanding", NeurIPS 2020, who also add a learned bias for the distance of two tokens.
    """
    kind = config["model_type"]
    inner = weights if "embeddings.word_embeddings.weight" in weights else weights.under(f"{kind.split('-')[-1]}.")
    tokens = graph.input("tokens", np.int64, ("items", "tokens"))
    mask = graph.input("mask", np.int64, ("items", "tokens"))
    hidden = _embeddings(graph, config, inner, tokens)
    attended = graph.cast(mask, np.int32)
    bias = graph.leading(graph.weight(_distance_bias(config, inner)), tokens, axes=(2, 3)) if kind == "mpnet" else ""
    for layer in range(config["num_hidden_layers"]):
        hidden = _layer(graph, config, inner.under(f"encoder.layer.{layer}."), hidden, attended, bias)
    pooled = graph.token(hidden, 0) if pooling == "cls" else graph.masked_mean(hidden, graph.cast(mask, np.float32))
    graph.output("features", pooled, ("items", config["hidden_size"]))


def first_position(config: Mapping[str, Any]) -> int:
    """Return the row of the position table that belongs to the first token."""
    if config["model_type"] == "bert":
        return 0
    filling = 1 if config["model_type"] == "mpnet" else int(config.get("pad_token_id", 1))
    return filling + 1


def max_tokens(config: Mapping[str, Any]) -> int:
    """Return how many tokens the network has positions for."""
    return int(config["max_position_embeddings"]) - first_position(config)


def _embeddings(graph: TransformerGraph, config: Mapping[str, Any], weights: Weights, tokens: str) -> str:
    words = graph.embedding(tokens, weights, "embeddings.word_embeddings")
    first = first_position(config)
    positions = graph.position_embedding(tokens, weights, "embeddings.position_embeddings", first=first)
    summed = graph.node("Add", words, positions)
    types = weights.optional("embeddings.token_type_embeddings.weight")
    if types is not None:
        # All tokens of a single text are of the first type.
        summed = graph.node("Add", summed, graph.weight(types[0]))
    return graph.layer_norm(summed, weights, "embeddings.LayerNorm", config["layer_norm_eps"])


def _layer(
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
    places = np.arange(max_tokens(config))
    later_by = places[None, :] - places[:, None]
    distance = np.abs(later_by)
    growth = np.log(np.maximum(distance, exact) / exact) / np.log(_FARTHEST_DISTANCE / exact)
    far = np.minimum(exact + (growth * (half - exact)).astype(np.int64), half - 1)
    bucket = np.where(distance < exact, distance, far) + half * (later_by > 0)
    return np.asarray(table[bucket].transpose(2, 0, 1)[None])
