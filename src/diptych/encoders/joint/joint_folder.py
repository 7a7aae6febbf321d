"""What the layouts of joint model folders have in common: towers, preparation of pictures, tokenizer files."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diptych.arrays import FloatArray
from diptych.encoders.joint.preparation import Clean, PicturePreparation, without_punctuation
from diptych.encoders.networks.model_files import digest_of_files, read_model_json
from diptych.encoders.networks.tokenizer import Tokenizer, Tokens, padded
from diptych.errors import ModelFileError

RunImageTower = Callable[[FloatArray], FloatArray]
"""Takes prepared pictures, float32 (items, 3, height, width), and returns their features."""
# Newer folders keep the preparation of pictures inside the processor's configuration.
PREPROCESSOR_FILES = ("preprocessor_config.json", "processor_config.json")
TOKENIZER_FILES = ("tokenizer.json", "vocab.json", "merges.txt", "tokenizer_config.json", "special_tokens_map.json")
TOKENIZERS = ("tokenizer.json", "vocab.json", "spiece.model")
"""One of these is in every model folder; the last cannot be read, which is an error of its own."""
# How CLIP cuts text before its byte pairs are merged: endings, words, single digits, runs of other signs.
_CLIP_PIECES = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
_CLIP_START, _CLIP_END = "<|startoftext|>", "<|endoftext|>"


@dataclass(frozen=True)
class JointTextTower:
    """Takes texts, cuts them into tokens and runs them through the network."""

    tokenizer: Tokenizer
    run: Callable[[Tokens, Tokens], FloatArray]  # of tokens and their mask, both int64 (items, tokens)
    padding: int  # the token that fills up shorter texts
    length: int | None = None  # what all texts are filled up to; None for the longest of the batch
    fill_left: bool = False
    one_by_one: bool = False  # where texts that are run together would change each other
    clean: Clean | None = None  # what is done to texts before, whether the tokenizer sees to it or not

    def tokens(self, texts: Sequence[str]) -> list[Tokens]:
        """Cut each text into tokens, cleaned as the model was trained."""
        return self.tokenizer.encode(texts if self.clean is None else [self.clean(text) for text in texts])

    def features(self, rows: Sequence[Tokens]) -> FloatArray:
        """Return one row of features for each row of tokens."""
        if self.one_by_one and len(rows) > 1:
            return np.concatenate([self.features([row]) for row in rows])
        return self.run(*padded(rows, padding=self.padding, length=self.length, left=self.fill_left))


class JointFolder(ABC):
    """A folder with an image tower and a text tower; nothing outside it is read, and nothing in it is executed."""

    family: str
    """The kind of network, such as ``"clip"``."""

    preparation: PicturePreparation
    """How pictures are prepared."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    @abstractmethod
    def n_features(self) -> int:
        """The width of the space that pictures and texts share."""

    @property
    def logit_scale(self) -> float | None:
        """What cosines are multiplied with before they become probabilities; None where the folder does not say."""
        return None

    @property
    def logit_bias(self) -> float | None:
        """What is added then; None for models trained with a softmax, which have none."""
        return None

    @abstractmethod
    def open_image_tower(self, n_threads: int | None) -> RunImageTower:
        """Return the image tower, ready to run."""

    @abstractmethod
    def open_text_tower(self, n_threads: int | None) -> JointTextTower:
        """Return the text tower, ready to run."""

    @abstractmethod
    def files(self) -> Iterable[Path]:
        """Return every file that shapes the features."""

    @property
    def digest(self) -> str:
        """A digest of every file that shapes the features."""
        return digest_of_files(self.files())

    def existing(self, names: Iterable[str]) -> list[Path]:
        """Return those of the named files that the folder has."""
        return [self.path / name for name in names if (self.path / name).is_file()]


def check_complete(path: Path, *needed: Iterable[str]) -> None:
    """Raise one error that names everything missing; each thing needed is a choice of files, the usual one first."""
    choices = [tuple(names) for names in needed]
    missing = [names[0] for names in choices if not any((path / name).is_file() for name in names)]
    if missing:
        raise ModelFileError(f"{path} lacks {', '.join(missing)}; copy the whole model folder")


def read_preparation(path: Path) -> PicturePreparation:
    """Read how pictures are prepared from the files that usually say so."""
    for file in (path / name for name in PREPROCESSOR_FILES if (path / name).is_file()):
        config = read_model_json(file)
        config = config.get("image_processor", config)
        if "size" in config or "image_mean" in config:
            return PicturePreparation.from_config(config)
    raise ModelFileError(f"{path} lacks preprocessor_config.json; copy the whole model folder")


def open_tokenizer(folder: Path, *, max_tokens: int) -> Tokenizer:
    """Read ``tokenizer.json``, or CLIP's ``vocab.json`` and ``merges.txt`` where there is none."""
    check_tokenizer(folder)
    if (folder / "tokenizer.json").is_file():
        return Tokenizer(folder / "tokenizer.json", max_tokens=max_tokens)
    definition = json.dumps(clip_definition(folder), ensure_ascii=False)
    return Tokenizer(folder / "vocab.json", max_tokens=max_tokens, definition=definition)


def check_tokenizer(folder: Path) -> None:
    """Raise unless the folder has the files of a tokenizer that can be read."""
    if (folder / "tokenizer.json").is_file() or all((folder / name).is_file() for name in ("vocab.json", "merges.txt")):
        return
    if (folder / "spiece.model").is_file():
        raise ModelFileError(
            f"{folder} has its tokenizer as spiece.model only; put the tokenizer.json of the same model beside it (its "
            "ONNX edition, and newer editions of the model, carry one)"
        )
    raise ModelFileError(f"{folder} lacks tokenizer.json (or vocab.json and merges.txt); copy the whole model folder")


def padding_token(folder: Path, tokenizer: Tokenizer, default: int) -> int:
    """Return the number of the token that the folder fills up short texts with."""
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        token = read_model_json(folder / name, {}).get("pad_token")
        text = token.get("content") if isinstance(token, dict) else token
        number = tokenizer.number_of(text) if isinstance(text, str) else None
        if number is not None:
            return number
    return default


def pads_left(folder: Path) -> bool:
    """Return whether the folder asks for the filling in front of short texts."""
    return bool(read_model_json(folder / "tokenizer_config.json", {}).get("padding_side") == "left")


def siglip_cleaning(folder: Path) -> Clean:
    """Return what SigLIP was trained on: words in small letters, the first generation without punctuation."""
    tokenizer = str(read_model_json(folder / "tokenizer_config.json", {}).get("tokenizer_class"))
    return without_punctuation if tokenizer.startswith("SiglipTokenizer") else str.lower


def clip_definition(folder: Path) -> dict[str, Any]:
    """Return CLIP's tokenizer, as its ``tokenizer.json`` would have it, from the vocabulary and the merges."""
    vocabulary = read_model_json(folder / "vocab.json")
    lines = (folder / "merges.txt").read_text(encoding="utf-8").splitlines()
    merges = [line for line in lines if line and not line.startswith("#version")]
    missing = [token for token in (_CLIP_START, _CLIP_END) if token not in vocabulary]
    if missing:
        raise ModelFileError(f"{folder / 'vocab.json'} lacks {', '.join(missing)}; put the tokenizer.json beside it")
    start, end = ((token, vocabulary[token]) for token in (_CLIP_START, _CLIP_END))
    return {
        "version": "1.0",
        "added_tokens": [_special(*token) for token in (start, end)],
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                {"type": "NFC"},
                {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "},
                {"type": "Lowercase"},
            ],
        },
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": _CLIP_PIECES}, "behavior": "Removed", "invert": True},
                {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
            ],
        },
        "post_processor": {
            "type": "RobertaProcessing",
            "sep": list(end),
            "cls": list(start),
            "trim_offsets": False,
            "add_prefix_space": False,
        },
        "model": {
            "type": "BPE",
            "unk_token": _CLIP_END,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "</w>",
            "fuse_unk": False,
            "vocab": vocabulary,
            "merges": merges,
        },
    }


def _special(token: str, number: int) -> dict[str, Any]:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": True}
    return {"id": number, "content": token, "special": True, **flags}
