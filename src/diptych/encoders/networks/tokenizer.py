"""Texts to token numbers: as a ``tokenizer.json`` says, or by a model of SentencePiece."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from diptych.errors import ModelFileError, import_package

Tokens = NDArray[np.int64]


class Tokenizer:
    """Cuts texts into the tokens that a network knows by number.

    ``file`` is a ``tokenizer.json``. Texts longer than ``max_tokens`` are cut, keeping the marks that the network
    expects at either end.
    """

    def __init__(self, file: Path, *, max_tokens: int) -> None:
        tokenizers = import_package("tokenizers", "reading a tokenizer", "tokenizers")
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(str(file))
        except Exception as error:
            # The library raises bare exceptions for a file that it cannot use.
            raise ModelFileError(f"{file} cannot be read as a tokenizer ({error}); copy the file again") from error
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_tokens)

    def encode(self, texts: Sequence[str]) -> list[Tokens]:
        """Return the token numbers of each text."""
        found = self._tokenizer.encode_batch([clean_text(text) for text in texts])
        return [np.array(each.ids, dtype=np.int64) for each in found]

    def number_of(self, token: str) -> int | None:
        """Return the number of a token, or None when it is unknown."""
        number: int | None = self._tokenizer.token_to_id(token)
        return number


def clean_text(text: str) -> str:
    """Return a text of whole characters: a question mark stands in for a lone half of a surrogate pair."""
    return text.encode("utf-8", "replace").decode("utf-8")


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


class SentencePieces:
    """Cuts texts into pieces: of all ways to put a text together from pieces, the likeliest.

    Kudo, "Subword regularization: improving neural network translation models with multiple subword candidates", ACL
    2018. Both ends of a text get their marks; texts longer than ``max_tokens`` are cut, keeping both. ``file`` is a
    model of SentencePiece, whose library reads 128,000 pieces in two thirds of the time that the other one takes.
    """

    def __init__(self, file: Path, *, max_tokens: int) -> None:
        sentencepiece = import_package("sentencepiece", "reading a tokenizer", "sentencepiece")
        self._processor = sentencepiece.SentencePieceProcessor(model_file=str(file))
        self._max_pieces = max_tokens - 2

    def encode(self, texts: Sequence[str]) -> list[Tokens]:
        """Return the token numbers of each text."""
        start, end = self._processor.bos_id(), self._processor.eos_id()
        found = self._processor.encode([clean_text(text) for text in texts])
        return [np.array([start, *row[: self._max_pieces], end], dtype=np.int64) for row in found]
