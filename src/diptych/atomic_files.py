"""Files that are whole or absent, whatever happens while they are written, and checksums that tell damaged ones."""

from __future__ import annotations

import fcntl
import json
import os
import re
import uuid
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from diptych.errors import InvalidInputError


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


# The last member of a note: over every byte before it.
_SEAL = re.compile(rb',\n  "checksum": "([0-9a-f]{8})"\n}\n')
_SEAL_BYTES = len(b',\n  "checksum": "00000000"\n}\n')
_FOLDER_NOTE = "checksums.json"
_BYTES_AT_ONCE = 1 << 20

Checksum = list[int]


def file_checksum(path: Path) -> Checksum:
    """Return the size and the CRC-32 of a file: it sees every change of up to four bytes in a row, at 2 GB/s."""
    size = code = 0
    with path.open("rb", buffering=0) as stream:
        while part := stream.read(_BYTES_AT_ONCE):
            size, code = size + len(part), zlib.crc32(part, code)
    return [size, code]


def damage_of(path: Path, expected: Checksum, *, all_bytes: bool = True) -> str | None:
    """Return what is wrong with a file, None if nothing is; without ``all_bytes`` its size is looked at alone."""
    try:
        size = path.stat().st_size
        if size != expected[0]:
            return f"has {size:,} bytes instead of {expected[0]:,}"
        return "has changed" if all_bytes and file_checksum(path) != expected else None
    except FileNotFoundError:
        return "is missing"
    except OSError as problem:
        return f"cannot be read ({problem.strerror})"


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Write a note whole or not at all, durable and with a checksum of its bytes."""
    # Escaped: a file name that is not valid Unicode cannot be written otherwise.
    body = json.dumps({name: value for name, value in document.items() if name != "checksum"}, indent=2)
    body = body.removesuffix("\n}")
    with atomic_write(path, durable=True) as draft:
        draft.write_text(f'{body},\n  "checksum": "{zlib.crc32(body.encode()):08x}"\n}}\n', encoding="utf-8")


def read_json(path: Path) -> Any:
    """Read a note; one whose bytes are not those of its checksum raises ``ValueError``."""
    content = path.read_bytes()
    if not _is_sealed(content):
        raise ValueError("its checksum is of another content")
    document = json.loads(content.decode("utf-8"))
    del document["checksum"]
    return document


def damage_of_note(path: Path) -> str | None:
    """Return what is wrong with a note that :func:`write_json` wrote, None if nothing is."""
    try:
        return None if _is_sealed(path.read_bytes()) else "has changed"
    except FileNotFoundError:
        return "is missing"
    except OSError as problem:
        return f"cannot be read ({problem.strerror})"


def _is_sealed(content: bytes) -> bool:
    seal = _SEAL.fullmatch(content[-_SEAL_BYTES:])
    return seal is not None and int(seal[1], 16) == zlib.crc32(content[:-_SEAL_BYTES])


def seal_folder(folder: Path) -> None:
    """Note the checksums of the files of a folder that will not change any more, and bring it to the disk."""
    files = {path.name: file_checksum(path) for path in sorted(folder.iterdir()) if path.is_file()}
    write_json(folder / _FOLDER_NOTE, {"files": files})
    make_durable(folder)


def damage_in_folder(folder: Path, *, all_bytes: bool = True) -> dict[str, str]:
    """Return what is wrong with the files of a folder that was sealed, by name."""
    note = folder / _FOLDER_NOTE
    wrong = damage_of_note(note)
    if wrong is not None:
        return {_FOLDER_NOTE: wrong}
    found = {
        name: damage_of(folder / name, known, all_bytes=all_bytes) for name, known in read_json(note)["files"].items()
    }
    return {name: what for name, what in found.items() if what is not None}


Durability = Literal["power", "process"]


def checked_durability(chosen: Durability | None) -> Durability:
    """Return what an acknowledged change survives: a power cut, or the end of the process; by default as set outside.

    >>> checked_durability("process")
    'process'
    """
    name = os.environ.get("DIPTYCH_DURABILITY", "power") if chosen is None else chosen
    if name == "power":
        return "power"
    if name == "process":
        return "process"
    raise InvalidInputError(f"durability is 'power' or 'process', got {name!r}")


@contextmanager
def exclusive_lock(path: Path) -> Iterator[None]:
    """Hold a lock file of which one process at a time is the owner; raise BlockingIOError where another one is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
