"""Pictures at addresses such as ``s3://bucket/photos``, read through fsspec: paths that behave like those of files.

Credentials come from the environment or the configuration of the provider's own tools (``AWS_ACCESS_KEY_ID``,
``~/.aws``, ``FSSPEC_S3_ENDPOINT_URL``), never from the address: addresses are stored and printed.
"""

from __future__ import annotations

import errno
import io
import os
import re
import shutil
import stat
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from diptych.errors import InvalidInputError, MissingPackageError

SCHEMES = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "sftp", "ssh", "ftp", "smb", "memory")
COMPUTERS = ("sftp", "ssh", "ftp", "smb")
# Larger files, such as videos, are copied to disk while they are read.
IN_MEMORY_BYTES = 64 << 20
BLOCK_BYTES = 8 << 20
# pathlib joins slashes, so that both forms of an address are met.
_ADDRESS = re.compile(rf"(?P<scheme>{'|'.join(SCHEMES)}):/+(?P<rest>.*)", re.DOTALL)
_TIMES = ("LastModified", "last_modified", "mtime", "modified", "updated", "modify", "created")
_VERSIONS = ("ETag", "etag", "md5Hash", "crc32c")


def is_remote(place: object) -> bool:
    """Return True if a place is an address of remote files; a path of this machine is none.

    >>> is_remote("s3://bucket/photos"), is_remote("/home/ann/photos"), is_remote("postgresql://host/photos")
    (True, False, False)
    """
    return isinstance(place, (str, os.PathLike)) and _ADDRESS.match(os.fspath(place)) is not None


def full_path(place: str | os.PathLike[str]) -> Path:
    """Return the absolute path of a place on this machine, or the path of an address.

    >>> str(full_path("s3://bucket/photos/")), str(full_path("/photos/../pictures"))
    ('s3://bucket/photos', '/pictures')
    """
    if isinstance(place, RemotePath):
        return place
    return RemotePath(place) if is_remote(place) else Path(os.path.abspath(place))


class RemotePath(type(Path())):  # type: ignore[misc]
    """The path of a remote file or folder; what fails raises OSError, as for a file of this machine.

    Only reading is possible. ``listed`` is the status of a file that comes from a listing of its folder.

    >>> path = RemotePath("s3://bucket/photos") / "a.jpg"
    >>> str(path), path.suffix, str(path.parent)
    ('s3://bucket/photos/a.jpg', '.jpg', 's3://bucket/photos')
    """

    listed: os.stat_result | None = None

    def __str__(self) -> str:
        """Return the address."""
        name = super().__str__()
        found = _ADDRESS.match(name)
        return name if found is None else f"{found['scheme']}://{found['rest']}"

    def __reduce__(self) -> tuple[Any, ...]:
        return RemotePath, (str(self),)

    def absolute(self) -> RemotePath:
        """Return the path itself."""
        return self

    def as_uri(self) -> str:
        """Return the address."""
        return str(self)

    def is_absolute(self) -> bool:
        """Return True."""
        return True

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Return True if there are files below the address; raise with a reason where that cannot be told."""
        del follow_symlinks
        with _as_refusal(self), _as_os_error():
            files, name = self._opened()
            files.invalidate_cache(name)
            try:
                entries = files.ls(name, detail=True)
            except FileNotFoundError:
                return False
            return [one["name"].rstrip("/") for one in entries if one["type"] == "file"] != [name]

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Return True if there is a file that can be reached."""
        del follow_symlinks
        with suppress(OSError):
            return stat.S_ISREG(self.stat().st_mode)
        return False

    def exists(self, *, follow_symlinks: bool = True) -> bool:
        """Return True if there is a file or a folder."""
        del follow_symlinks
        return self.is_file() or self.is_dir()

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Ask for the present size and time of a file."""
        del follow_symlinks
        with _as_os_error():
            files, name = self._opened()
            # Listings are remembered otherwise.
            files.invalidate_cache(name)
            return _status(files.info(name))

    def open(self, mode: str = "r", *_: Any, **__: Any) -> BinaryIO:
        """Read the whole file, and return it as an open one; only mode ``rb`` is possible."""
        if mode != "rb":
            raise OSError(errno.EROFS, f"files of {self.parts[0]}// are only read", str(self))
        size = (self.listed or self.stat()).st_size
        with _as_os_error():
            files, name = self._opened()
            if size <= IN_MEMORY_BYTES:
                return io.BytesIO(files.cat_file(name))
            copy = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
            with files.open(name, "rb", block_size=BLOCK_BYTES) as source:
                shutil.copyfileobj(source, copy, BLOCK_BYTES)
            copy.seek(0)
            return copy

    def files(self) -> Iterator[RemotePath]:
        """Yield the files below, by name, each with its status; names that are no paths are left out."""
        with _as_refusal(self), _as_os_error():
            files, name = self._opened()
            files.invalidate_cache(name)
            found = files.find(name, detail=True)
            files.invalidate_cache(name)
        for file, info in sorted(found.items()):
            below = file[len(name) :].lstrip("/")
            if all(part not in ("", ".", "..") for part in below.split("/")):
                path = self / below
                path.listed = _status(info)
                yield path

    def _opened(self) -> tuple[Any, str]:
        """Return the file system, and the name of this path in it."""
        refuse_address(self)
        try:
            from fsspec.core import url_to_fs
        except ImportError:
            raise MissingPackageError("reading pictures at addresses", "'diptych[remote]'") from None
        scheme, _, rest = str(self).partition("://")
        host, _, below = rest.partition("/")
        try:
            # Of the host alone: what comes after it is the name of a file and nothing else.
            files, base = url_to_fs(f"{scheme}://{host}")
        except ImportError as problem:
            raise MissingPackageError(f"reading {scheme}:// addresses ({problem})", "'diptych[remote]'") from None
        return files, f"{base.rstrip('/')}/{below}".rstrip("/")


def refuse_address(path: Path) -> None:
    """Raise where an address may not be used: it has a password, names no host, or climbs out of its folder."""
    scheme, _, rest = str(path).partition("://")
    host = rest.partition("/")[0]
    user, _, server = host.rpartition("@")
    if ":" in user or "?" in host or "::" in host:
        raise InvalidInputError(
            f"the address {scheme}://…{server.partition('?')[0]} must not hold a password, a signature or another "
            "address; put credentials into the environment, as the provider's own tools read them"
        )
    if not server or ".." in path.parts:
        raise InvalidInputError(f"{scheme}://{rest} is no address of pictures; name it like s3://bucket/photos")


def is_whole_computer(path: Path) -> bool:
    """Return True for the root of a computer's file system."""
    return path.parts[0].rstrip(":") in COMPUTERS and len(path.parts) == 2


@contextmanager
def _as_refusal(path: RemotePath) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise InvalidInputError(
            f"{path} cannot be read ({problem.strerror or problem}); check the address, the network and the "
            "credentials in the environment"
        ) from None


@contextmanager
def _as_os_error() -> Iterator[None]:
    try:
        yield
    except (OSError, InvalidInputError, MissingPackageError) as problem:
        if isinstance(problem, FileNotFoundError):
            raise FileNotFoundError(errno.ENOENT, "there is no such file") from None
        if isinstance(problem, OSError) and not problem.strerror:
            raise type(problem)(problem.errno or errno.EIO, _first_line(problem)) from None
        raise
    except Exception as problem:
        # Each provider's library has errors of its own.
        raise OSError(errno.EIO, _first_line(problem)) from None


def _first_line(problem: Exception) -> str:
    return (str(problem).strip().splitlines() or [type(problem).__name__])[0].rstrip(".")


def _status(info: Mapping[str, Any]) -> os.stat_result:
    """Return what is known of a file; its version, where it has one, stands in the nanoseconds of its time."""
    mode = stat.S_IFDIR if info.get("type") == "directory" else stat.S_IFREG
    moment = next((time for name in _TIMES if (time := _nanoseconds(info.get(name))) is not None), 0)
    version = next((str(info[name]) for name in _VERSIONS if info.get(name)), "")
    if version:
        # Times are those of whole seconds, in which a file can be written twice.
        moment = moment // 10**9 * 10**9 + zlib.crc32(version.strip('"').encode()) % 10**9
    numbers = (mode, 0, 0, 1, 0, 0, int(info.get("size") or 0), *[moment // 10**9] * 3)
    return os.stat_result(numbers, dict.fromkeys(("st_atime_ns", "st_mtime_ns", "st_ctime_ns"), moment))


def _nanoseconds(time: object) -> int | None:
    if isinstance(time, str):
        with suppress(ValueError):
            time = datetime.fromisoformat(time)
    if isinstance(time, datetime):
        time = (time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp()
    return int(time * 10**9) if isinstance(time, (int, float)) else None
