"""The lock file of a fetched model: where each file came from, and its digest."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from diptych._version import __version__
from diptych.atomic_files import read_json, write_json
from diptych.errors import ModelFileError

LOCK_FILE = "diptych-model.json"
_FORMAT = 1
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class LockedFile:
    """A file of a model: its size, its SHA-256, and the digest that the hub announced."""

    size: int
    sha256: str
    hub: str


@dataclass(frozen=True)
class ModelLock:
    """What was fetched, from where, under which licence, and by which versions.

    ``revision`` is what was asked for, and ``commit`` what it was then. ``accepted`` is the licence that a user
    accepted by name. Of a model that was exported here, ``exported_from`` is the folder of the original; what else is
    known of that is known of the export.
    """

    name: str
    repository: str
    endpoint: str
    revision: str
    commit: str
    layout: str
    edition: str
    licence: str
    accepted: str
    fetched: str
    versions: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, LockedFile] = field(default_factory=dict)
    exported_from: str = ""

    @classmethod
    def of_export(cls, name: str, source: Path, folder: Path) -> ModelLock:
        """Return the lock of a folder that was written from another, which may have a lock itself."""
        original = read_lock(source) or cls(source.name, "", "", "", "", "", "", "", "", "")
        files = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
        digests = {name: Digests.of(path).sha256 for name, path in files.items()}
        return replace(
            original,
            name=name,
            layout="ONNX",
            edition="full",
            fetched=datetime.now(UTC).isoformat(timespec="seconds"),
            versions={"diptych": __version__, "torch": version("torch")},
            files={name: LockedFile(path.stat().st_size, digests[name], "") for name, path in files.items()},
            exported_from=str(source.absolute()),
        )

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(file.size for file in self.files.values())

    @property
    def command(self) -> str:
        """The command that made the folder."""
        if self.exported_from:
            return f"diptych models export {self.exported_from}"
        return f"diptych models get {f'hub:{self.repository}@{self.revision}' if '--' in self.name else self.name}"

    def write(self, folder: Path) -> None:
        """Write the lock file into a folder."""
        write_json(folder / LOCK_FILE, {"format": _FORMAT, **asdict(self)})

    def damage(self, folder: Path, *, fast: bool = False) -> dict[str, str]:
        """Return what is wrong with the files of a folder, by path; ``fast`` compares their sizes alone."""
        found = {path: self._damage_of(folder / path, file, fast) for path, file in self.files.items()}
        return {path: wrong for path, wrong in found.items() if wrong}

    @staticmethod
    def _damage_of(path: Path, expected: LockedFile, fast: bool) -> str:
        if not path.is_file():
            return "is missing"
        size = path.stat().st_size
        if size != expected.size:
            return f"has {size:,} bytes instead of {expected.size:,}"
        if not fast and Digests.of(path).sha256 != expected.sha256:
            return "has changed"
        return ""


def read_lock(folder: Path) -> ModelLock | None:
    """Return the lock of a model's folder; None where there is none, because somebody put the files there."""
    try:
        document: dict[str, Any] = read_json(folder / LOCK_FILE)
        files = {path: LockedFile(**file) for path, file in document.pop("files").items()}
        document.pop("format")
        return ModelLock(**document, files=files)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ModelFileError(
            f"{folder / LOCK_FILE} is damaged ({error}); delete {folder} and fetch the model again"
        ) from error


class Digests:
    """The SHA-256 of bytes as they come, and the SHA-1 that Git gives a file of ``size`` bytes."""

    def __init__(self, size: int) -> None:
        self._sha256 = hashlib.sha256()
        self._git = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)

    @classmethod
    def of(cls, path: Path, size: int | None = None) -> Digests:
        """Return the digests of the bytes of a file, which may be the beginning of one of ``size``."""
        digests = cls(path.stat().st_size if size is None else size)
        with path.open("rb") as stream:
            while block := stream.read(_BLOCK_BYTES):
                digests.update(block)
        return digests

    def update(self, block: bytes) -> None:
        """Take the next bytes."""
        self._sha256.update(block)
        self._git.update(block)

    @property
    def sha256(self) -> str:
        """The SHA-256 so far."""
        return self._sha256.hexdigest()

    def fit(self, announced: str) -> bool:
        """Return True if the bytes have the digest that the hub announced: SHA-256 of large files, else Git's."""
        return announced == (self.sha256 if len(announced) == len(self.sha256) else self._git.hexdigest())
