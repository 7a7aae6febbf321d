"""Writing what a command makes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from diptych.errors import InvalidInputError


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what the system says about an unwritable ``path`` into one clear error."""
    try:
        yield
    except OSError as problem:
        raise InvalidInputError(
            f"cannot write {path}: {problem.strerror or problem}; choose another place"
        ) from problem


def check_writable_file(path: Path) -> None:
    """Raise before any work is done when no file can be written at ``path``."""
    if path.is_dir():
        raise InvalidInputError(f"{path} is a folder; name a file in it, such as {path / 'results.json'}")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise PermissionError(13, "no permission")


def check_folder(path: Path) -> None:
    """Make the folder ``path``, or raise before any work is done."""
    if path.exists() and not path.is_dir():
        raise InvalidInputError(f"{path} is a file; name a folder")
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write ``text`` so that the file appears whole or not at all."""
    draft = path.with_name(f".{path.name}.part")
    with writing(path):
        draft.write_text(text, encoding="utf-8")
        os.replace(draft, path)
