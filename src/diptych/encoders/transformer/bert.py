"""The BERT family of text networks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from diptych.encoders.transformer.graph_builder import GraphBuilder
from diptych.encoders.transformer.weights import Weights

BERT_FAMILY = ("bert",)
"""The values of ``model_type`` in a ``config.json`` that :func:`write_bert` understands."""


def write_bert(graph: GraphBuilder, config: Mapping[str, Any], weights: Weights, *, pooling: str) -> None:
    """Write the network from ``tokens`` and ``mask``, int64 (items, tokens), to ``features`` (items, width).

    Every layer attends to all tokens whose mask is 1 and normalises after each addition. ``pooling`` is ``"mean"``,
    over the tokens whose mask is 1, or ``"cls"``, the first token.

    Devlin et al., "BERT: Pre-training of deep bidirectional transformers for language understanding", NAACL 2019.
    """
    inner = weights if "embeddings.word_embeddings.weight" in weights else weights.under("bert.")
    tokens = graph.input("tokens", np.int64, ("items", "tokens"))
    mask = graph.input("mask", np.int64, ("items", "tokens"))
    hidden = _embeddings(graph, config, inner, tokens)
    attended = graph.cast(mask, np.int32)
    for layer in range(config["num_hidden_layers"]):
        hidden = _layer(graph, config, inner.under(f"encoder.layer.{layer}."), hidden, attended)
    pooled = graph.token(hidden, 0) if pooling == "cls" else graph.masked_mean(hidden, graph.cast(mask, np.float32))
    graph.output("features", pooled, ("items", config["hidden_size"]))


def _embeddings(graph: GraphBuilder, config: Mapping[str, Any], weights: Weights, tokens: str) -> str:
    words = graph.embedding(tokens, weights, "embeddings.word_embeddings")
    positions = graph.position_embedding(tokens, weights, "embeddings.position_embeddings")
    # All tokens of a single text are of the first type.
    first_type = graph.weight(weights["embeddings.token_type_embeddings.weight"][0])
    summed = graph.node("Add", graph.node("Add", words, positions), first_type)
    return graph.layer_norm(summed, weights, "embeddings.LayerNorm", config["layer_norm_eps"])


def _layer(graph: GraphBuilder, config: Mapping[str, Any], weights: Weights, hidden: str, mask: str) -> str:
    epsilon = config["layer_norm_eps"]
    query, key, value = (graph.linear(hidden, weights, f"attention.self.{part}") for part in ("query", "key", "value"))
    seen = graph.attention(query, key, value, heads=config["num_attention_heads"], mask=mask)
    attended = graph.node("Add", graph.linear(seen, weights, "attention.output.dense"), hidden)
    hidden = graph.layer_norm(attended, weights, "attention.output.LayerNorm", epsilon)
    widened = graph.mlp(hidden, weights, "intermediate.dense", "output.dense", config["hidden_act"])
    return graph.layer_norm(graph.node("Add", widened, hidden), weights, "output.LayerNorm", epsilon)
