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
    if isinstance(item, os.PathLike) or (modality == "image" and isinstance(item, str)):
        return _file_key(os.fspath(item))
    if isinstance(item, str):
        return hashlib.sha256(b"text\0" + item.encode("utf-8", "surrogatepass")).digest()
    if isinstance(item, np.ndarray):
        return hashlib.sha256(f"{item.shape}{item.dtype}\0".encode() + np.ascontiguousarray(item).tobytes()).digest()
    return None


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
