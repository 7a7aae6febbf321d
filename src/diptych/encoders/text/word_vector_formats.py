"""Reading tables of word vectors in the formats they are published in."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from diptych.arrays import FloatArray
from diptych.encoders.text.word_vectors import WordVectors
from diptych.errors import InvalidInputError, MissingPackageError

_LINES_AT_ONCE = 10_000


def read_npz(path: Path) -> WordVectors:
    """Read an archive of two arrays, ``words`` (strings) and ``vectors``."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            words, vectors = archive["words"], archive["vectors"]
    except (KeyError, ValueError, OSError, BadZipFile) as error:
        raise InvalidInputError(
            f"{path} does not hold word vectors: {error}; "
            "it must be an .npz with a string array 'words' and a number array 'vectors'"
        ) from error
    if words.dtype.kind != "U" or words.ndim != 1:
        raise InvalidInputError(f"'words' in {path} must be a list of strings, got {words.dtype} in {words.ndim}-d")
    return WordVectors(words.tolist(), vectors.astype(np.float32))


def read_indexed_npy(index: Path, vectors: Path) -> WordVectors:
    """Read a Parquet file whose first column is the words, beside a memory-mapped ``.npy`` of the vectors."""
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise MissingPackageError("reading the words of packaged word vectors", "pyarrow") from error
    words = parquet.read_table(index).column(0).to_pylist()
    return WordVectors(words, np.load(vectors, mmap_mode="r", allow_pickle=False))


def read_text(path: Path) -> WordVectors:
    """Read lines of a word and its numbers: GloVe, or word2vec with its line of two counts in front."""
    words: list[str] = []
    blocks: list[FloatArray] = []
    with path.open(encoding="utf-8", errors="replace", newline="\n") as lines:
        first = lines.readline()
        counts = first.split()
        headed = len(counts) == 2 and all(count.isdigit() for count in counts)
        width = int(counts[1]) if headed else len(counts) - 1
        lines.seek(0)
        numbered = enumerate(lines, start=1)
        if headed:
            next(numbered)
        while block := list(islice(numbered, _LINES_AT_ONCE)):
            blocks.append(_parsed(block, width, words, path))
    if not blocks or width < 1:
        raise InvalidInputError(f"{path} holds no word vectors; each line must be a word and its numbers")
    return WordVectors(words, np.concatenate(blocks))


def _parsed(lines: list[tuple[int, str]], width: int, words: list[str], path: Path) -> FloatArray:
    """Append the words of some lines to ``words`` and return their vectors."""
    vectors = np.empty((len(lines), width), dtype=np.float32)
    for row, (number, line) in enumerate(lines):
        # From the right, because a few published words contain spaces.
        word, *values = line.rstrip().rsplit(" ", width)
        try:
            vectors[row] = values
        except ValueError as error:
            raise InvalidInputError(f"line {number} of {path} is not a word and {width} numbers: {error}") from error
        words.append(word)
    return vectors


def read_word2vec_binary(path: Path) -> WordVectors:
    """Read the binary format of word2vec: a line of two counts, then words with float32 bytes behind them."""
    broken = InvalidInputError(f"{path} is cut short or not in the binary format of word2vec; download it again")
    with path.open("rb") as file:
        counts = file.readline(64).split()
        start = file.tell()
        if len(counts) != 2 or not all(count.isdigit() for count in counts):
            raise broken
        n_words, width = (int(count) for count in counts)
        # Checked before memory is taken for what the header promises.
        if not n_words or not width or start + n_words * (4 * width + 2) > path.stat().st_size:
            raise broken
        vectors = np.empty((n_words, width), dtype=np.float32)
        words = []
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            for row, (word, values) in enumerate(_binary_entries(content, start, n_words, 4 * width)):
                if len(values) < 4 * width:
                    raise broken
                words.append(word.decode("utf-8", "replace"))
                vectors[row] = np.frombuffer(values, dtype="<f4")
    return WordVectors(words, vectors)


def _binary_entries(content: mmap.mmap, start: int, n_words: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    for _ in range(n_words):
        end = content.find(b" ", start)
        if end < 0:
            yield b"", b""
            return
        # Some writers end each vector with a line break, others do not.
        yield content[start:end].lstrip(b"\n"), content[end + 1 : end + 1 + size]
        start = end + 1 + size
