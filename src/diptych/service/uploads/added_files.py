"""Pictures that were sent to stay."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from pathlib import Path
from typing import BinaryIO

_FOLDER = "uploads"
_BLOCK = 1 << 20


def write_added_file(root: Path, file: BinaryIO, suffix: str) -> Path:
    """Write a picture into the folder ``uploads`` of a root, named by its content, and return its path.

    A file of that name is never replaced: it has the same content already.
    """
    folder = root / _FOLDER
    folder.mkdir(exist_ok=True)
    target = folder / f"{_digest(file)[:32]}{suffix}"
    if target.exists():
        return target
    draft = folder / f".{secrets.token_hex(8)}"
    file.seek(0)
    try:
        with draft.open("xb") as stream:
            shutil.copyfileobj(file, stream)
            stream.flush()
            os.fsync(stream.fileno())
        # A link fails where a name is taken, which a renaming would overwrite.
        os.link(draft, target)
    except FileExistsError:
        return target
    finally:
        draft.unlink(missing_ok=True)
    return target


def _digest(file: BinaryIO) -> str:
    digest = hashlib.sha256()
    file.seek(0)
    while block := file.read(_BLOCK):
        digest.update(block)
    return digest.hexdigest()
