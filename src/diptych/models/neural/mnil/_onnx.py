"""Trained towers as networks for ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from diptych.arrays import AnyArray, as_matrix, row_blocks
from diptych.encoders.networks.onnx_graph import ConvolutionGraph, GraphBuilder
from diptych.errors import InvalidInputError
from diptych.models.item_model import ItemSide
from diptych.models.neural.mnil._items import square
from diptych.models.neural.mnil._plan import (
    N_LAYERS,
    SMALLEST_NORM,
    Arrays,
    Convolution,
    ConvolutionPlan,
    Normalization,
)


@dataclass(frozen=True)
class TrainedNetworks:
    """Encodes with the arrays that a training left, which may lack a side; a network is made when it is first asked.

    ``side`` is that of the squares that pictures are squeezed into, ``edge`` that of the middle which is looked at.
    """

    arrays: Mapping[ItemSide, Arrays]
    plan: ConvolutionPlan | None
    normalization: Normalization
    side: int
    edge: int
    networks: dict[ItemSide, Any] = field(default_factory=dict)

    def features_to_points(self, images: Any) -> AnyArray:
        """Return the points of rows of an encoder's features."""
        rows = as_matrix(images, name="images", width=len(self._of("image")["mean"]))
        return self._run("image", len(rows), lambda block: {"features": rows[block].astype(np.float32)})

    def pictures_to_points(self, pictures: Sequence[Any] | AnyArray) -> AnyArray:
        """Return the points of pictures."""
        return self._run("image", len(pictures), lambda block: {"pixels": self._pixels(pictures, block)})

    def word_ids_to_points(self, word_ids: AnyArray, lengths: AnyArray) -> AnyArray:
        """Return the points of rows of word numbers."""
        counts = lengths.astype(np.int32)
        return self._run("text", len(word_ids), lambda block: {"codes": word_ids[block], "lengths": counts[block]})

    def states_to_points(self, states: AnyArray, lengths: AnyArray) -> AnyArray:
        """Return the points of texts whose tokens have one row each of ``states``, one text after the other."""
        counts, ends = lengths.astype(np.int32), np.cumsum(lengths)

        def inputs(block: slice) -> dict[str, AnyArray]:
            here, first = counts[block], int(ends[block.start] - lengths[block.start])
            vectors = np.zeros((len(here), int(here.max()), states.shape[1]), dtype=np.float32)
            vectors[np.arange(vectors.shape[1]) < here[:, None]] = states[first : int(ends[block.stop - 1])]
            return {"vectors": vectors, "lengths": here}

        return self._run("text", len(lengths), inputs)

    def _pixels(self, pictures: Sequence[Any] | AnyArray, block: slice) -> AnyArray:
        made = np.stack([square(pictures[row], self.side) for row in range(block.start, block.stop)])
        corner = (self.side - self.edge) // 2
        middle = slice(corner, corner + self.edge)
        return np.ascontiguousarray(made[:, middle, middle])

    def _run(self, side: ItemSide, n_items: int, inputs: Callable[[slice], dict[str, AnyArray]]) -> AnyArray:
        if side not in self.networks:
            from diptych.encoders.networks.onnx_network import Network

            self.networks[side] = Network(self.content(side))
        run = self.networks[side].run
        return np.concatenate([run("points", inputs(block)) for block in row_blocks(n_items, 64)])

    def content(self, side: ItemSide) -> bytes:
        """Return one network as an ONNX file."""
        if side == "text":
            return text_tower(self._of("text"), self.normalization)
        return image_tower(self.plan, self._of("image"), self.edge, self.normalization)

    def _of(self, side: ItemSide) -> Arrays:
        if side not in self.arrays:
            raise InvalidInputError(f"this model was parted and holds no {side} side; use the whole model")
        return self.arrays[side]


def image_tower(plan: ConvolutionPlan | None, arrays: Arrays, side: int, normalization: Normalization) -> bytes:
    """Return the picture side: input ``pixels``, RGB bytes (items, side, side, 3), or without a plan ``features``."""
    graph = ConvolutionGraph()
    features = _centred_features(graph, arrays) if plan is None else _pictures(graph, plan, arrays, side)
    _write_map(graph, features, arrays, normalization)
    return graph.content()


def text_tower(arrays: Arrays, normalization: Normalization) -> bytes:
    """Return the text side: inputs ``codes`` (items, words) and ``lengths`` (items); output ``points``.

    A side without word vectors of its own has ``vectors`` (items, words, numbers) in place of ``codes``.
    """
    graph = GraphBuilder()
    vectors = _own_words(graph, arrays) if "words" in arrays else _scaled_states(graph, arrays)
    lengths = graph.input("lengths", np.int32, ("items",))
    # (words, items, numbers), as the operator of the standard wants them.
    values = graph.node("Transpose", vectors, perm=[1, 0, 2])
    for layer in range(N_LAYERS):
        values = _memory(graph, values, lengths, arrays, layer)
    if normalization == "code":
        values = _unit(graph, values, axis=2)
    total = graph.node("ReduceSum", values, graph.whole_numbers(0), keepdims=0)
    counts = graph.node("Unsqueeze", graph.cast(lengths, np.float32), graph.whole_numbers(1))
    _write_map(graph, graph.node("Div", total, counts), arrays, normalization)
    return graph.content()


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
    scaled = graph.node("Div", centred, graph.constant(arrays["scale"]))
    if "hidden.weight" not in arrays:
        return scaled
    weight = np.ascontiguousarray(arrays["hidden.weight"].T)
    return graph.node("Relu", graph.affine(scaled, weight, arrays["hidden.bias"]))


def _own_words(graph: GraphBuilder, arrays: Arrays) -> str:
    codes = graph.input("codes", np.int64, ("items", "words"))
    return graph.node("Gather", graph.weight(arrays["words"]), codes)


def _scaled_states(graph: GraphBuilder, arrays: Arrays) -> str:
    states = graph.input("vectors", np.float32, ("items", "words", arrays["memory.weight_ih_l0"].shape[1]))
    return graph.node("Div", states, graph.constant(arrays["scale"]))


def _memory(graph: GraphBuilder, values: str, lengths: str, arrays: Arrays, layer: int) -> str:
    """Add a layer of long short-term memory; steps beyond a text's length come out as zeros."""
    from_input, from_state = (_gates(arrays[f"memory.weight_{kind}_l{layer}"])[None] for kind in ("ih", "hh"))
    biases = np.concatenate([_gates(arrays[f"memory.bias_{kind}_l{layer}"]) for kind in ("ih", "hh")])[None]
    weights = [graph.weight(part) for part in (from_input, from_state, biases)]
    steps = graph.node("LSTM", values, *weights, lengths, hidden_size=from_state.shape[2])
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
    points = _unit(graph, points, axis=1) if normalization == "cosine" else points
    graph.output("points", points, ("items", len(weight)))


def _unit(graph: GraphBuilder, values: str, axis: int) -> str:
    norms = graph.node("ReduceL2", values, graph.whole_numbers(axis), keepdims=1)
    return graph.node("Div", values, graph.node("Max", norms, graph.constant(np.float32(SMALLEST_NORM))))
