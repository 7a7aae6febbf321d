"""Getting data sets that are public by address: download, check, unpack, note."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit
from zipfile import BadZipFile, ZipFile, ZipInfo

from diptych.atomic_files import atomic_write
from diptych.data.transfer import Progress, Transfer, check_free_space
from diptych.errors import InvalidInputError, MissingDataError

__all__ = ["Download", "fetch_downloads"]
RECEIPTS_FILE = "downloads.json"
_STAGING = ".unpacking"
_ENCRYPTED = 0x1
# What the usual file systems take, in bytes.
_LONGEST_NAME = 255
# Annotations in JSON shrink to a tenth, and nothing of a data set to a hundredth; a small archive may be odd.
_LARGEST_RATIO, _FREE_BYTES = 100, 100 * 2**20
Report = Callable[[str, int, int | None], None]
"""Called with what is being done, the bytes done, and the bytes in all where they are known."""
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class Download:
    """A zip archive, where it is, and what of it a data set needs.

    ``size`` and ``sha256`` are checked where they are known and never guessed. ``members`` are patterns of the names in
    the archive; ``flat`` drops the folders before a name. ``note`` tells a user what is uncertain about the address.

    >>> from diptych.data.downloads import Download
    >>> Download("https://example.org/sets/photos.zip").file_name
    'photos.zip'
    """

    url: str
    size: int | None = None
    sha256: str | None = None
    members: tuple[str, ...] = ("*",)
    flat: bool = False
    unpacked_size: int | None = None
    note: str = ""

    def __post_init__(self) -> None:
        if urlsplit(self.url).scheme not in ("http", "https") or not self.file_name:
            raise InvalidInputError(f"a download needs the http address of a file, got {self.url!r}")

    @property
    def file_name(self) -> str:
        """The name of the file at the address."""
        return PurePosixPath(unquote(urlsplit(self.url).path)).name


class Receipts:
    """Which addresses a data set's files came from, with the size and the digest that were found."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def covers(self, url: str) -> bool:
        """Return True if what came from ``url`` is still here."""
        receipt = self._read().get(url)
        return receipt is not None and all((self._folder / name).exists() for name in receipt.get("holds", ()))

    def add(self, url: str, *, size: int, sha256: str, holds: tuple[str, ...]) -> None:
        """Note what came from ``url``: its size, its digest and the names it put into the folder."""
        receipts = self._read() | {url: {"bytes": size, "sha256": sha256, "holds": list(holds)}}
        with atomic_write(self._folder / RECEIPTS_FILE) as draft:
            draft.write_text(json.dumps(receipts, indent=2) + "\n", encoding="utf-8")

    def _read(self) -> dict[str, Any]:
        try:
            found = json.loads((self._folder / RECEIPTS_FILE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}


def unpack_zip(
    archive: Path,
    folder: Path,
    members: Sequence[str] = ("*",),
    *,
    flat: bool = False,
    progress: Progress | None = None,
) -> tuple[str, ...]:
    """Unpack the members whose names match a pattern, and return the top-level names that appeared in ``folder``.

    Archives that would grow a hundredfold and beyond 100 MiB, names that lead out of the folder or that no folder can
    hold together, links and special files are refused before anything is written, checksums are verified while reading,
    and what is unpacked appears whole: it is written aside first and moved at the end, never through a link.
    """
    staging = folder / _STAGING
    try:
        # What an earlier run left goes; a link of that name does, and nothing that it leads to.
        staging.unlink() if staging.is_symlink() else shutil.rmtree(staging, ignore_errors=True)
        with ZipFile(archive) as opened:
            chosen = _chosen_members(opened.infolist(), members, flat, archive)
            unpacked = sum(info.file_size for info in chosen.values())
            if unpacked > max(_FREE_BYTES, _LARGEST_RATIO * archive.stat().st_size):
                raise InvalidInputError(f"{archive} would become {unpacked:,} bytes, far too many; do not use it")
            check_free_space(folder, unpacked)
            _write_members(opened, chosen, staging, progress)
        tops = tuple(sorted(os.listdir(staging)))
        _merge_folders(staging, folder)
        return tops
    except (BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise InvalidInputError(f"{archive} is a damaged archive ({error}); delete it and get it again") from error
    except MissingDataError:
        raise
    except OSError as error:
        raise MissingDataError(
            f"{archive} cannot be unpacked into {folder} ({error}); make sure that it can be written, or choose another"
        ) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _chosen_members(infos: Sequence[ZipInfo], members: Sequence[str], flat: bool, archive: Path) -> dict[str, ZipInfo]:
    chosen: dict[str, ZipInfo] = {}
    for info in infos:
        if info.is_dir() or not any(fnmatchcase(info.filename, pattern) for pattern in members):
            continue
        name = _safe_name(info, archive)
        name = PurePosixPath(name).name if flat else name
        if name in chosen:
            raise InvalidInputError(f"{archive} holds {name} twice; it is not the archive that is known")
        if name.casefold() == RECEIPTS_FILE:
            raise InvalidInputError(f"{archive} holds {name}, where downloads are noted; do not use it")
        chosen[name] = info
    for name in chosen:
        both = next((str(folder) for folder in PurePosixPath(name).parents if str(folder) in chosen), None)
        if both is not None:
            raise InvalidInputError(f"{archive} holds {both} as a file and as a folder; do not use it")
    for pattern in members:
        if not any(fnmatchcase(info.filename, pattern) for info in chosen.values()):
            raise InvalidInputError(f"{archive} holds no {pattern}; it is not the archive that is known")
    return chosen


def _safe_name(info: ZipInfo, archive: Path) -> str:
    name = info.filename
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        raise InvalidInputError(f"{archive} holds {name!r}, which is a link or a special file; do not use it")
    if info.flag_bits & _ENCRYPTED:
        raise InvalidInputError(f"{archive} is encrypted; it is not the archive that is known")
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or any(sign in name for sign in '\\:\0<>|"?*'):
        raise InvalidInputError(f"{archive} holds {name!r}, which leads out of its folder; do not use it")
    if any(len(os.fsencode(part)) > _LONGEST_NAME for part in parts):
        raise InvalidInputError(f"{archive} holds {name[:60]!r}…, a name too long for a file; do not use it")
    return "/".join(parts)


def _write_members(opened: ZipFile, chosen: dict[str, ZipInfo], staging: Path, progress: Progress | None) -> None:
    done, total = 0, sum(info.file_size for info in chosen.values())
    staging.mkdir()
    for name, info in chosen.items():
        place = staging / name
        place.parent.mkdir(parents=True, exist_ok=True)
        with opened.open(info) as source, place.open("xb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
        done += info.file_size
        if progress is not None:
            progress(done, total)


def _merge_folders(source: Path, target: Path) -> None:
    for entry in sorted(source.iterdir()):
        if entry.is_dir() and (target / entry.name).is_symlink():
            raise InvalidInputError(f"{target / entry.name} is a link, through which nothing is written; move it away")
        if entry.is_dir() and (target / entry.name).is_dir():
            _merge_folders(entry, target / entry.name)
        else:
            os.replace(entry, target / entry.name)


def fetch_downloads(
    downloads: Sequence[Download],
    folder: str | os.PathLike[str],
    *,
    report: Report | None = None,
    timeout: float = 30.0,
    attempts: int = 6,
    pause: float = 1.0,
) -> None:
    """Get the archives of a data set and unpack them into ``folder``.

    What is already here is passed over, and what was interrupted goes on where it stopped. An archive whose digest is
    known must have it; of every other, the size and the checksums inside the archive are verified, and the digest that
    was found is noted in ``downloads.json``. ``timeout``, ``attempts`` and ``pause`` are those of a connection.
    """
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(f"cannot write {place}: {error.strerror}; choose another folder") from error
    receipts = Receipts(place)
    pending = [download for download in downloads if not receipts.covers(download.url)]
    check_free_space(place, sum((download.size or 0) + (download.unpacked_size or 0) for download in pending))
    tell = report or (lambda doing, done, total: None)
    for download in pending:
        archive = place / download.file_name
        transfer = Transfer(
            download.url,
            archive,
            size=download.size,
            timeout=timeout,
            attempts=attempts,
            pause=pause,
            progress=partial(tell, f"getting {download.file_name}"),
        )
        digest, size = _download_archive(transfer, download, tell)
        holds = _unpack_archive(archive, place, download, tell)
        receipts.add(download.url, size=size, sha256=digest, holds=holds)
        archive.unlink()


def _download_archive(transfer: Transfer, download: Download, tell: Report) -> tuple[str, int]:
    """Make sure that the archive is here and right; return its digest and size."""
    archive = transfer.target
    if archive.exists():
        # An earlier run was stopped between the last byte and the end of unpacking.
        digest = _digest(archive, tell)
        if download.sha256 in (None, digest):
            return digest, archive.stat().st_size
        archive.unlink()
    part = transfer.run()
    digest = _digest(part.path, tell, download.file_name)
    if download.sha256 not in (None, digest):
        part.discard()
        raise InvalidInputError(
            f"{download.url} came with the digest {digest} instead of {download.sha256}; the bytes were deleted: try "
            "again, and if that fails see the data set's home page"
        )
    part.finish()
    return digest, archive.stat().st_size


def _unpack_archive(archive: Path, place: Path, download: Download, tell: Report) -> tuple[str, ...]:
    try:
        return unpack_zip(
            archive,
            place,
            download.members,
            flat=download.flat,
            progress=partial(tell, f"unpacking {download.file_name}"),
        )
    except InvalidInputError:
        # Kept, it would be found and refused again by every later run.
        archive.unlink(missing_ok=True)
        raise


def _digest(path: Path, tell: Report, name: str = "") -> str:
    digest, done, total = hashlib.sha256(), 0, path.stat().st_size
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
            done += len(block)
            tell(f"checking {name or path.name}", done, total)
    return digest.hexdigest()
