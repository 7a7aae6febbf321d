"""Trained towers as networks for ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from diptych.arrays import AnyArray
from diptych.encoders.image.convolution_graph import ConvolutionGraph
from diptych.encoders.network.graph_builder import GraphBuilder
from diptych.models.neural.mnil.convolution_plan import Convolution, ConvolutionPlan
from diptych.models.neural.mnil.feature_map import SMALLEST_NORM, Normalization
from diptych.models.neural.mnil.word_tower import N_LAYERS

Arrays = Mapping[str, AnyArray]


def write_image_tower(
    folder: Path, plan: ConvolutionPlan | None, arrays: Arrays, side: int, normalization: Normalization
) -> None:
    """Write the picture side: input ``pixels``, RGB bytes (items, side, side, 3), or ``features``; output ``points``.

    Without a plan the input are features that an encoder gave.
    """
    with ConvolutionGraph(folder) as graph:
        features = _centred_features(graph, arrays) if plan is None else _pictures(graph, plan, arrays, side)
        _write_map(graph, features, arrays, normalization)


def write_text_tower(folder: Path, arrays: Arrays, normalization: Normalization) -> None:
    """Write the text side: inputs ``codes`` (items, words) and ``lengths`` (items); output ``points``."""
    with GraphBuilder(folder) as graph:
        codes, lengths = (
            graph.input("codes", np.int64, ("items", "words")),
            graph.input("lengths", np.int32, ("items",)),
        )
        # (words, items, numbers), as the operator of the standard wants them.
        values = graph.node("Transpose", graph.node("Gather", graph.weight(arrays["words"]), codes), perm=[1, 0, 2])
        for layer in range(N_LAYERS):
            values = _memory(graph, values, lengths, arrays, layer)
        if normalization == "code":
            values = _unit(graph, values, axis=2)
        total = graph.node("ReduceSum", values, graph.whole_numbers(0), keepdims=0)
        counts = graph.node("Unsqueeze", graph.cast(lengths, np.float32), graph.whole_numbers(1))
        _write_map(graph, graph.node("Div", total, counts), arrays, normalization)


def _pictures(graph: ConvolutionGraph, plan: ConvolutionPlan, arrays: Arrays, side: int) -> str:
    def convolved(values: str, convolution: Convolution) -> str:
        kernel, bias = arrays[f"{convolution.name}.kernel"], arrays[f"{convolution.name}.bias"]
        border = convolution.size // 2
        return graph.convolution(values, kernel, bias, stride=convolution.stride, padding=(border, border))

    red, green, blue = arrays["centre"].tolist()
    values = graph.node("Relu", convolved(graph.centred_pixels(side, (red, green, blue)), plan.stem))
    if plan.pooled:
        values = graph.node("MaxPool", values, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for block in plan.blocks:
        inner = values
        for convolution in block.body[:-1]:
            inner = graph.node("Relu", convolved(inner, convolution))
        inner = convolved(inner, block.body[-1])
        values = values if block.shortcut is None else convolved(values, block.shortcut)
        values = graph.node("Relu", graph.node("Add", inner, values))
    return graph.node("Flatten", graph.node("GlobalAveragePool", values), axis=1)


def _centred_features(graph: GraphBuilder, arrays: Arrays) -> str:
    rows = graph.input("features", np.float32, ("items", len(arrays["mean"])))
    centred = graph.node("Sub", rows, graph.constant(arrays["mean"]))
    return graph.node("Div", centred, graph.constant(arrays["scale"]))


def _memory(graph: GraphBuilder, values: str, lengths: str, arrays: Arrays, layer: int) -> str:
    """Add a layer of long short-term memory; steps beyond a text's length come out as zeros."""
    from_input, from_state = (_gates(arrays[f"weight_{kind}_l{layer}"])[None] for kind in ("ih", "hh"))
    biases = np.concatenate([_gates(arrays[f"bias_{kind}_l{layer}"]) for kind in ("ih", "hh")])[None]
    steps = graph.node(
        "LSTM",
        values,
        graph.weight(from_input),
        graph.weight(from_state),
        graph.weight(biases),
        lengths,
        hidden_size=from_state.shape[2],
    )
    return graph.node("Squeeze", steps, graph.whole_numbers(1))


def _gates(rows: AnyArray) -> AnyArray:
    """Put the gates in the order of the standard: input, output, forget, cell."""
    enter, forget, cell, leave = np.split(rows, 4)
    return np.concatenate([enter, leave, forget, cell])


def _write_map(graph: GraphBuilder, features: str, arrays: Arrays, normalization: Normalization) -> None:
    if normalization == "code":
        features = _unit(graph, features, axis=1)
    weight = arrays["map.weight"]
    points = graph.affine(features, np.ascontiguousarray(weight.T), arrays["map.bias"])
    graph.output(
        "points", _unit(graph, points, axis=1) if normalization == "cosine" else points, ("items", len(weight))
    )


def _unit(graph: GraphBuilder, values: str, axis: int) -> str:
    norms = graph.node("ReduceL2", values, graph.whole_numbers(axis), keepdims=1)
    return graph.node("Div", values, graph.node("Max", norms, graph.constant(np.float32(SMALLEST_NORM))))
