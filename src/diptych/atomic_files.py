"""Files that are whole or absent, whatever happens while they are written."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic_write(
    path: Path, *, draft: Path | None = None, durable: bool = False, private: bool = False, replace: bool = True
) -> Iterator[Path]:
    """Yield a draft beside ``path`` to write; it takes that name when the block ends well and is gone when it does not.

    ``durable`` puts the bytes on the disk before the name changes, and the name before it returns: a power cut leaves
    the old file or the new one, and later the new one. ``private`` makes a draft that nobody else may read. Without
    ``replace`` a file that exists is kept, and ``FileExistsError`` says so. A fixed ``draft`` serves where a later run
    must find what a killed one left.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from diptych.atomic_files import atomic_write
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(Path(folder) / "note.txt") as draft:
    ...         _ = draft.write_text("whole")
    ...     [(file.name, file.read_text()) for file in Path(folder).iterdir()]
    [('note.txt', 'whole')]
    """
    if draft is None:
        draft = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}")
    try:
        if private:
            draft.touch(mode=0o600, exist_ok=False)
        yield draft
        if durable:
            sync_to_disk(draft)
        if replace:
            os.replace(draft, path)
        else:
            # A link fails where a name is taken, which a renaming would overwrite.
            os.link(draft, path)
        if durable:
            sync_to_disk(path.parent)
    finally:
        draft.unlink(missing_ok=True)


def make_durable(folder: Path) -> None:
    """Bring all files of a folder to the disk, so that a file that names them later is never there without them."""
    for path in (*folder.rglob("*"), folder, folder.parent):
        sync_to_disk(path)


def sync_to_disk(path: str | os.PathLike[str]) -> None:
    """Bring the bytes of a file to the disk, or the names in a folder."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
