"""The tokenizer of a joint model, from the files in its folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from diptych.encoders.joint.joint_folder import read_json
from diptych.encoders.transformer.tokenizer import Tokenizer
from diptych.errors import ModelFileError

TOKENIZERS = ("tokenizer.json", "vocab.json", "spiece.model")
"""One of these is in every model folder; the last cannot be read, which is an error of its own."""

# How CLIP cuts text before its byte pairs are merged: endings, words, single digits, runs of other signs.
_CLIP_PIECES = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
_CLIP_START, _CLIP_END = "<|startoftext|>", "<|endoftext|>"


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
        if (folder / name).is_file():
            token = read_json(folder / name).get("pad_token")
            text = token.get("content") if isinstance(token, dict) else token
            number = tokenizer.number_of(text) if isinstance(text, str) else None
            if number is not None:
                return number
    return default


def fills_left(folder: Path) -> bool:
    """Return whether the folder asks for the filling in front of short texts."""
    file = folder / "tokenizer_config.json"
    return file.is_file() and read_json(file).get("padding_side") == "left"


def clip_definition(folder: Path) -> dict[str, Any]:
    """Return CLIP's tokenizer, as its ``tokenizer.json`` would have it, from the vocabulary and the merges."""
    vocabulary = read_json(folder / "vocab.json")
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
