"""Texts to token numbers: as a ``tokenizer.json`` says, or by a unigram model of SentencePiece, in tables on the disk.

The library of tokenizers would read the latter's 128,000 pieces at every start, for half a second, and keep them in
120 MB. A table of hashes that is mapped into memory costs neither, and processes share it.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from diptych.arrays import AnyArray
from diptych.errors import MissingPackageError, ModelFileError

Tokens = NDArray[np.int64]


class Tokenizer:
    """Cuts texts into the tokens that a network knows by number.

    ``file`` is a ``tokenizer.json``. Texts longer than ``max_tokens`` are cut, keeping the marks that the network
    expects at either end.
    """

    def __init__(self, file: Path, *, max_tokens: int) -> None:
        try:
            import tokenizers
        except ImportError as error:
            raise MissingPackageError("reading a tokenizer", "tokenizers") from error
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


# Numbers of fields in a model of SentencePiece, a message of Protocol Buffers: its pieces and how texts are normalised;
# a piece is written, and has a score; the normalisation is a table of replacements.
_PIECES, _NORMALISER = 1, 3
_WRITTEN, _SCORE = 1, 2
_REPLACEMENTS = 2
# The kinds of fields: a number that says itself where it ends, a length with so many bytes, and four bytes.
_VARINT, _MEASURED, _FOUR_BYTES = 0, 2, 5

_UNKNOWN, _START, _END = 0, 1, 2
# How much worse than the worst piece an unknown character is.
_UNKNOWN_PENALTY = 10.0
_SPACE = "▁"
# How many places there are for what is known of the pieces that begin with a character; some share one.
_FIRST_LETTERS = 1 << 16
# Most words of many texts were met before.
_REMEMBERED_WORDS = 1 << 14


class SentencePieces:
    """Cuts texts into pieces: of all ways to put a text together from pieces, the likeliest.

    Kudo, "Subword regularization: improving neural network translation models with multiple subword candidates", ACL
    2018. The first three pieces stand for what is unknown and for the two ends of a text, which are put around every
    text; unknown characters in a row are one token. Texts longer than ``max_tokens`` are cut, keeping both ends.
    ``tables`` are those of `piece_tables`.
    """

    def __init__(self, tables: Mapping[str, AnyArray], *, max_tokens: int) -> None:
        try:
            from tokenizers import Regex, normalizers
        except ImportError as error:
            raise MissingPackageError("reading a tokenizer", "tokenizers") from error
        self._letters, self._ends, self._scores, self._slots, self._reach = (
            tables[name].data for name in ("letters", "ends", "scores", "slots", "reach")
        )
        self._last_slot = len(self._slots) - 1
        self._unknown_score = float(tables["scores"].min()) - _UNKNOWN_PENALTY
        self._normalise = normalizers.Sequence(
            [
                normalizers.Precompiled(tables["replacements"].tobytes()),
                # The library replaces one character at a time; accents that follow theirs are put together here.
                normalizers.NFC(),
                normalizers.Replace(Regex(" {2,}"), " "),
                normalizers.Strip(),
            ]
        ).normalize_str
        self._max_pieces = max_tokens - 2
        self._cut_word = lru_cache(maxsize=_REMEMBERED_WORDS)(self._cut)

    def encode(self, texts: Sequence[str]) -> list[Tokens]:
        """Return the token numbers of each text."""
        return [np.array([_START, *self._cut_text(text), _END], dtype=np.int64) for text in texts]

    def _cut_text(self, text: str) -> list[int]:
        found: list[int] = []
        normal = self._normalise(clean_text(text)).replace(" ", _SPACE)
        # A piece begins with a space or has none, so every word is cut alone.
        for match in re.finditer(f"{_SPACE}[^{_SPACE}]*", normal if normal[:1] in ("", _SPACE) else _SPACE + normal):
            found += self._cut_word(match[0])
            if len(found) >= self._max_pieces:
                break
        return found[: self._max_pieces]

    def _cut(self, word: str) -> tuple[int, ...]:
        # Names of this function's own are found fastest, and it is what takes the time.
        letters, ends, scores, slots, last_slot = self._letters, self._ends, self._scores, self._slots, self._last_slot
        content, size = word.encode(), len(word)
        places = range(size + 1) if len(content) == size else [0, *accumulate(len(each.encode()) for each in word)]
        best = [0.0] + [-np.inf] * size
        before = [(0, _UNKNOWN)] * (size + 1)
        for start in range(size):
            place, here, is_known = places[start], best[start], False
            reach = self._reach[crc32(content[place : places[start + 1]]) % _FIRST_LETTERS]
            for end in range(start + 1, min(start + reach, size) + 1):
                piece = content[place : places[end]]
                slot = crc32(piece) & last_slot
                while number := slots[slot]:
                    if letters[ends[number - 1] : ends[number]] == piece:
                        is_known = is_known or end == start + 1
                        if (score := here + scores[number - 1]) > best[end]:
                            best[end], before[end] = score, (start, number - 1)
                        break
                    slot = (slot + 1) & last_slot
            if not is_known and (score := here + self._unknown_score) > best[start + 1]:
                best[start + 1], before[start + 1] = score, (start, _UNKNOWN)
        pieces: list[int] = []
        while size:
            size, found = before[size]
            if found != _UNKNOWN or pieces[-1:] != [_UNKNOWN]:
                pieces.append(found)
        return tuple(reversed(pieces))


def piece_tables(file: Path) -> dict[str, AnyArray]:
    """Return the tables of a model of SentencePiece: its pieces one after the other, their ends, and their scores.

    ``slots`` has, at the place that its hash names or the next free one, one more than the number of each piece;
    ``reach`` has, at the place that the hash of a character names, the most characters of a piece that begins with it;
    ``replacements`` says how texts are normalised.
    """
    try:
        pieces, replacements = _read_sentencepiece(file.read_bytes())
        if len(pieces) <= _END:
            raise ValueError("it has too few pieces")
    except (LookupError, ValueError, struct.error) as error:
        raise ModelFileError(f"{file} cannot be read as a model of SentencePiece ({error}); copy it again") from error
    written = [piece.encode() for piece, _ in pieces]
    slots = np.zeros(1 << (2 * len(pieces)).bit_length(), dtype=np.uint32)
    reach = np.zeros(_FIRST_LETTERS, dtype=np.uint8)
    for number, content in enumerate(written):
        slot = crc32(content) % len(slots)
        while slots[slot]:
            slot = (slot + 1) % len(slots)
        slots[slot] = number + 1
        letters = pieces[number][0]
        first = crc32(letters[:1].encode()) % _FIRST_LETTERS
        reach[first] = max(reach[first], len(letters))
    return {
        "letters": np.frombuffer(b"".join(written), dtype=np.uint8),
        "ends": np.array([0, *accumulate(map(len, written))], dtype=np.uint32),
        "scores": np.array([score for _, score in pieces], dtype=np.float32),
        "slots": slots,
        "reach": reach,
        "replacements": np.frombuffer(replacements, dtype=np.uint8),
    }


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
