"""Words to token numbers, from local files: ``tokenizer.json``, or a model of SentencePiece."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diptych.errors import MissingPackageError, ModelFileError

Tokens = NDArray[np.int64]

# Numbers of fields in a model of SentencePiece, a message of Protocol Buffers: its pieces and how texts are normalised;
# a piece is written, and has a score; the normalisation is a table of replacements.
_PIECES, _NORMALISER = 1, 3
_WRITTEN, _SCORE = 1, 2
_REPLACEMENTS = 2
# The kinds of fields: a number that says itself where it ends, a length with so many bytes, and four bytes.
_VARINT, _MEASURED, _FOUR_BYTES = 0, 2, 5


class Tokenizer:
    """Cuts texts into the tokens that a network knows by number.

    ``definition`` is the content of a ``tokenizer.json`` that was put together from ``file`` and others. Texts longer
    than ``max_tokens`` are cut, keeping the marks that the network expects at either end.
    """

    def __init__(self, file: Path, *, max_tokens: int, definition: str | None = None) -> None:
        try:
            import tokenizers
        except ImportError as error:
            raise MissingPackageError("reading a tokenizer", "tokenizers") from error
        try:
            content = file.read_text(encoding="utf-8") if definition is None else definition
            self._tokenizer = tokenizers.Tokenizer.from_str(content)
        except Exception as error:
            # The library raises bare exceptions for a file that it cannot use.
            raise ModelFileError(f"{file} cannot be read as a tokenizer ({error}); copy the file again") from error
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_tokens)

    def encode(self, texts: Sequence[str]) -> list[Tokens]:
        """Return the token numbers of each text."""
        # A lone half of a surrogate pair is no character; a question mark stands in for it.
        clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        return [np.array(found.ids, dtype=np.int64) for found in self._tokenizer.encode_batch(clean)]

    def number_of(self, token: str) -> int | None:
        """Return the number of a token, or None when it is unknown."""
        number: int | None = self._tokenizer.token_to_id(token)
        return number


def sentencepiece_definition(file: Path) -> str:
    """Return the content of a ``tokenizer.json`` that cuts texts as a unigram model of SentencePiece does.

    Kudo, "Subword regularization: improving neural network translation models with multiple subword candidates", ACL
    2018: of all ways to put a text together from pieces, the likeliest. Its first three pieces stand for what is
    unknown and for the two ends of a text, which are put around every text.
    """
    try:
        pieces, replacements = _read_sentencepiece(file.read_bytes())
    except (LookupError, ValueError, struct.error) as error:
        raise ModelFileError(f"{file} cannot be read as a model of SentencePiece ({error}); copy it again") from error
    start, end = (piece for piece, _ in pieces[1:3])
    definition: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(replacements).decode("ascii")},
                # The library replaces one character at a time; accents that follow theirs are put together here.
                {"type": "NFC"},
                {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
                {"type": "Strip", "strip_left": True, "strip_right": True},
            ],
        },
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [_special(start), {"Sequence": {"id": "A", "type_id": 0}}, _special(end)],
            "pair": [],
            "special_tokens": {
                token: {"id": token, "ids": [number], "tokens": [token]} for number, token in ((1, start), (2, end))
            },
        },
        "decoder": None,
        "model": {"type": "Unigram", "unk_id": 0, "vocab": pieces, "byte_fallback": False},
    }
    return json.dumps(definition, ensure_ascii=False)


def _special(token: str) -> dict[str, Any]:
    return {"SpecialToken": {"id": token, "type_id": 0}}


def _read_sentencepiece(content: bytes) -> tuple[list[tuple[str, float]], bytes]:
    pieces, replacements = [], b""
    for field, value in _fields(content):
        if field == _PIECES:
            parts = dict(_fields(value))
            pieces.append((parts[_WRITTEN].decode("utf-8"), struct.unpack("<f", parts[_SCORE])[0]))
        elif field == _NORMALISER:
            replacements = dict(_fields(value))[_REPLACEMENTS]
    return pieces, replacements


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the bytes of each field of a message; a small number has none."""
    place = 0
    while place < len(message):
        tag, place = _varint(message, place)
        kind, length = tag & 7, 0
        if kind == _VARINT:
            _, place = _varint(message, place)
        elif kind == _MEASURED:
            length, place = _varint(message, place)
        elif kind == _FOUR_BYTES:
            length = 4
        else:
            raise ValueError(f"a field of kind {kind}")
        if place + length > len(message):
            raise ValueError("it ends within a field")
        yield tag >> 3, message[place : place + length]
        place += length


def _varint(message: bytes, place: int) -> tuple[int, int]:
    """Return a number of seven bits a byte, lowest first, and the place after it."""
    number, shift = 0, 0
    while True:
        byte = message[place]
        number |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return number, place


def batches_of_like_length(rows: Sequence[Tokens], batch_size: int) -> Iterator[NDArray[np.int64]]:
    """Yield the indices of rows in batches of similar length, the longest first, so that little is padded."""
    order = np.argsort([-len(row) for row in rows], kind="stable")
    for start in range(0, len(order), batch_size):
        yield order[start : start + batch_size]


def padded(
    rows: Sequence[Tokens], *, padding: int, length: int | None = None, left: bool = False
) -> tuple[Tokens, Tokens]:
    """Return rows as one array, filled with ``padding`` to a length or to the longest, and the mask of what is not."""
    width = max(len(row) for row in rows) if length is None else length
    tokens = np.full((len(rows), width), padding, dtype=np.int64)
    mask = np.zeros((len(rows), width), dtype=np.int64)
    for index, row in enumerate(rows):
        place = slice(width - len(row), width) if left else slice(len(row))
        tokens[index, place] = row
        mask[index, place] = 1
    return tokens, mask
