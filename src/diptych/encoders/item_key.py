"""Names for items by their content, so that features survive a rename and never outlive a change."""

from __future__ import annotations

import hashlib
import os
import stat
from typing import Any

import numpy as np

from diptych.encoders.encoder import Modality


def item_key(item: Any, modality: Modality) -> bytes | None:
    """Return a digest of a file's bytes, an array's values or a text; None when there is nothing to read.

    >>> import numpy as np
    >>> from diptych.encoders.item_key import item_key
    >>> item_key("a red boat", "text") == item_key("a red boat", "text")
    True
    >>> item_key("no such file.jpg", "image") is None
    True
    """
    path = item_path(item, modality)
    if path is not None:
        return _file_key(path)
    if isinstance(item, str):
        return hashlib.sha256(b"text\0" + item.encode("utf-8", "surrogatepass")).digest()
    if isinstance(item, np.ndarray):
        return hashlib.sha256(f"{item.shape}{item.dtype}\0".encode() + np.ascontiguousarray(item).tobytes()).digest()
    return None


def item_path(item: Any, modality: Modality) -> str | None:
    """Return the path of an item that is a file, and None of any other."""
    is_path = isinstance(item, os.PathLike) or (modality == "image" and isinstance(item, str))
    return os.fspath(item) if is_path else None


def file_state(path: str) -> tuple[int, ...] | None:
    """Return what changes whenever a file is written or replaced; None when there is no file."""
    try:
        state = os.stat(path)
    except (OSError, ValueError):
        return None
    return state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns


def file_digest(path: str | os.PathLike[str]) -> bytes:
    """Return the SHA-256 of a file's bytes."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").digest()


def _file_key(path: str) -> bytes | None:
    try:
        # Opening a pipe would wait for a writer for ever; the encoder has the better words for what is no file.
        return file_digest(path) if stat.S_ISREG(os.stat(path).st_mode) else None
    except (OSError, ValueError):
        return None
