"""Getting a data set: download, check, unpack, note."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from diptych.data.downloads.archive import unpack_zip
from diptych.data.downloads.download import Download
from diptych.data.downloads.receipts import Receipts
from diptych.data.downloads.transfer import Transfer
from diptych.errors import InvalidInputError, MissingDataError

Report = Callable[[str, int, int | None], None]
"""Called with what is being done, the bytes done, and the bytes in all where they are known."""

_BLOCK_BYTES = 1 << 20


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
    _make(place)
    receipts = Receipts(place)
    pending = [download for download in downloads if not receipts.covers(download.url)]
    _check_space(pending, place)
    tell = report or _ignore
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
        digest, size = _got(transfer, download, tell)
        holds = _unpacked(archive, place, download, tell)
        receipts.add(download.url, size=size, sha256=digest, holds=holds)
        archive.unlink()


def _make(place: Path) -> None:
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(f"cannot write {place}: {error.strerror}; choose another folder") from error


def _check_space(pending: Sequence[Download], place: Path) -> None:
    wanted = sum((download.size or 0) + (download.unpacked_size or 0) for download in pending)
    free = shutil.disk_usage(place).free
    if wanted > free:
        raise MissingDataError(f"{place} has {free:,} bytes free, but {wanted:,} are needed; choose another folder")


def _got(transfer: Transfer, download: Download, tell: Report) -> tuple[str, int]:
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


def _unpacked(archive: Path, place: Path, download: Download, tell: Report) -> tuple[str, ...]:
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


def _ignore(doing: str, done: int, total: int | None) -> None:
    """Tell nobody."""
