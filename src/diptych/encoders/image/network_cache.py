"""ONNX networks kept on disk, so that they are put together once for each machine."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from diptych.data.folders import cache_folder


def cached_network(key: str, build: Callable[[], bytes]) -> bytes:
    """Return the network kept under ``key``, or build and keep it.

    The name of a file ends in the digest of its bytes, so a damaged one is never used. A folder that cannot be written
    costs time, not the result.
    """
    folder = cache_folder() / "networks"
    for path in sorted(folder.glob(f"{key}-*.onnx")):
        content = _content(path)
        if content is not None and path.name == _file_name(key, content):
            return content
    content = build()
    _keep(folder, _file_name(key, content), content)
    return content


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _file_name(key: str, content: bytes) -> str:
    return f"{key}-{hashlib.sha256(content).hexdigest()[:32]}.onnx"


def _keep(folder: Path, name: str, content: bytes) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(dir=folder, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.replace(part, folder / name)
        finally:
            Path(part).unlink(missing_ok=True)
    except OSError:
        return
