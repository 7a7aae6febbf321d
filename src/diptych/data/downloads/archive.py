"""Unpacking archives that one does not trust."""

from __future__ import annotations

import os
import shutil
import stat
import zlib
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from zipfile import BadZipFile, ZipFile, ZipInfo

from diptych.data.downloads.receipts import RECEIPTS_FILE
from diptych.data.downloads.transfer import Progress
from diptych.errors import InvalidInputError, MissingDataError

_STAGING = ".unpacking"
_ENCRYPTED = 0x1
# What the usual file systems take, in bytes.
_LONGEST_NAME = 255


def unpack_zip(
    archive: Path,
    folder: Path,
    members: Sequence[str] = ("*",),
    *,
    flat: bool = False,
    progress: Progress | None = None,
) -> tuple[str, ...]:
    """Unpack the members whose names match a pattern, and return the top-level names that appeared in ``folder``.

    Names that lead out of the folder or that no folder can hold together, links and special files are refused before
    anything is written, checksums are verified while reading, and what is unpacked appears whole: it is written aside
    first and moved at the end.
    """
    staging = folder / _STAGING
    shutil.rmtree(staging, ignore_errors=True)
    try:
        with ZipFile(archive) as opened:
            chosen = _chosen(opened.infolist(), members, flat, archive)
            _check_space(chosen, folder)
            _write(opened, chosen, staging, progress)
        return _move(staging, folder)
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


def _chosen(infos: Sequence[ZipInfo], members: Sequence[str], flat: bool, archive: Path) -> dict[str, ZipInfo]:
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
    _check_folders(chosen, archive)
    for pattern in members:
        if not any(fnmatchcase(info.filename, pattern) for info in chosen.values()):
            raise InvalidInputError(f"{archive} holds no {pattern}; it is not the archive that is known")
    return chosen


def _check_folders(chosen: dict[str, ZipInfo], archive: Path) -> None:
    for name in chosen:
        both = next((str(folder) for folder in PurePosixPath(name).parents if str(folder) in chosen), None)
        if both is not None:
            raise InvalidInputError(f"{archive} holds {both} as a file and as a folder; do not use it")


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


def _check_space(chosen: dict[str, ZipInfo], folder: Path) -> None:
    wanted, free = sum(info.file_size for info in chosen.values()), shutil.disk_usage(folder).free
    if wanted > free:
        raise MissingDataError(f"{folder} has {free:,} bytes free, but unpacking needs {wanted:,}; make room there")


def _write(opened: ZipFile, chosen: dict[str, ZipInfo], staging: Path, progress: Progress | None) -> None:
    done, total = 0, sum(info.file_size for info in chosen.values())
    for name, info in chosen.items():
        place = staging / name
        place.parent.mkdir(parents=True, exist_ok=True)
        with opened.open(info) as source, place.open("xb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
        done += info.file_size
        if progress is not None:
            progress(done, total)


def _move(staging: Path, folder: Path) -> tuple[str, ...]:
    tops = sorted(os.listdir(staging))
    for top in tops:
        source, target = staging / top, folder / top
        if source.is_dir() and target.is_dir():
            _merge(source, target)
        else:
            os.replace(source, target)
    return tuple(tops)


def _merge(source: Path, target: Path) -> None:
    for entry in sorted(source.iterdir()):
        if entry.is_dir() and (target / entry.name).is_dir():
            _merge(entry, target / entry.name)
        else:
            os.replace(entry, target / entry.name)
