"""Pictures that were sent: checked, kept for a while to search with, or added to a collection for good."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Self

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from diptych.atomic_files import atomic_write
from diptych.collection import Collection, Item
from diptych.data.picture_files import split_moment
from diptych.data.remote_files import is_remote
from diptych.encoders.image.picture_decoding import read_sent_picture, thumbnail
from diptych.encoders.image.picture_facts import picture_facts
from diptych.encoders.image.plain_pictures import is_plain
from diptych.errors import InvalidInputError
from diptych.service.problems import Problem
from diptych.service.settings import Limits

__all__ = ["Upload", "UploadStore"]


@dataclass(frozen=True)
class Upload:
    """A picture that was sent, kept for a while."""

    id: str
    file: Path  # as it came, so that it is encoded as it would be from a disk, unless that takes long
    preview: Path
    width: int
    height: int
    expires: float  # in seconds since 1970


_PREVIEW_SIDE = 512
# JPEG is decoded at a fraction of its size.
_QUICK_JPEG_PIXELS, _QUICK_PIXELS = 32_000_000, 8_000_000


@dataclass(frozen=True)
class CheckedPicture:
    """A picture that could be read: its size as it is seen, the ending its file should have, and its pixels, fewer."""

    width: int
    height: int
    suffix: str
    pixels: NDArray[np.uint8]

    @classmethod
    def read(cls, file: BinaryIO, limits: Limits) -> Self:
        """Decode what was sent, or say what is wrong with it; sizes are looked at before anything is decoded."""
        size = file.seek(0, os.SEEK_END)
        if size > limits.upload_bytes:
            detail = f"The picture has {size:,} bytes; send at most {limits.upload_bytes:,} bytes."
            raise Problem(413, "picture-too-large", detail)
        # Decoders meet damaged files with any kind of exception, so all of them mean the same here.
        try:
            facts = picture_facts(file, Path())
        except Exception as reason:
            detail = f"What was sent is no picture that can be read: {_reason_text(reason)}."
            raise Problem(415, "not-a-picture", detail) from None
        width, height = facts.width, facts.height
        if width * height > limits.upload_pixels:
            most = f"{limits.upload_pixels:,}"
            detail = f"The picture has {width:,} × {height:,} pixels; scale it to at most {most} in all."
            raise Problem(413, "picture-too-large", detail)
        try:
            pixels = read_sent_picture(file, shortest_side=_PREVIEW_SIDE, max_pixels=limits.upload_pixels)
        except InvalidInputError as reason:
            detail = f"The picture cannot be decoded: {_reason_text(reason)}."
            raise Problem(422, "unreadable-picture", detail) from None
        finally:
            file.seek(0)
        return cls(width, height, facts.suffix, pixels)


def _reason_text(reason: Exception) -> str:
    return (" ".join(str(reason).split()) or type(reason).__name__).removesuffix(".")[:300]


_ID = re.compile(r"[0-9a-f]{32}")


class UploadStore:
    """Keeps pictures that were sent in a folder that all processes of a service share.

    Names are 128 random bits, so that only who sent a picture can ask for it. Pictures go after some time, and the
    oldest ones when there are too many or they take too much room.

    >>> import io, tempfile
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from diptych.encoders import thumbnail
    >>> from diptych.service.settings import Limits
    >>> from diptych.service.uploads import UploadStore
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     uploads = UploadStore(Path(folder), Limits())
    ...     kept = uploads.add(io.BytesIO(thumbnail(np.zeros((30, 40, 3), dtype=np.uint8))))
    ...     uploads.find(kept.id).width
    40
    """

    def __init__(self, folder: Path, limits: Limits) -> None:
        self._folder = folder
        self._limits = limits

    @classmethod
    def shared_by(cls, collections: Iterable[Path | str], limits: Limits) -> UploadStore:
        """Return the store that every process serving these collections for this user finds."""
        names = "\0".join(sorted(os.path.abspath(place) for place in collections))
        owner = os.getuid() if hasattr(os, "getuid") else "user"
        base = Path(tempfile.gettempdir()) / f"diptych-{owner}"
        _make_private(base)
        folder = base / hashlib.sha256(names.encode()).hexdigest()[:16]
        _make_private(folder)
        return cls(folder, limits)

    def add(self, file: BinaryIO) -> Upload:
        """Keep a picture, or raise why it is none."""
        picture = CheckedPicture.read(file, self._limits)
        file = _quick_to_read(file, picture)
        self._make_room(file.seek(0, os.SEEK_END))
        file.seek(0)
        name = secrets.token_hex(16)
        draft = self._folder / f".{name}"
        draft.mkdir(mode=0o700)
        with (draft / "picture").open("wb") as target:
            shutil.copyfileobj(file, target)
        (draft / "preview.jpg").write_bytes(thumbnail(picture.pixels, longest_side=_PREVIEW_SIDE))
        (draft / "size.json").write_text(json.dumps([picture.width, picture.height]))
        # Whole or not at all: another process may look for it at once.
        draft.rename(self._folder / name)
        return self.find(name)

    def find(self, upload_id: str) -> Upload:
        """Return a picture that is still kept."""
        folder = self._folder / upload_id
        try:
            # Anything else than an id could lead out of the folder.
            if not _ID.fullmatch(upload_id):
                raise FileNotFoundError
            expires = folder.stat().st_mtime + self._limits.upload_seconds
            width, height = json.loads((folder / "size.json").read_text())
        except FileNotFoundError:
            raise _gone(upload_id) from None
        if expires < time.time():
            raise _gone(upload_id)
        return Upload(upload_id, folder / "picture", folder / "preview.jpg", width, height, expires)

    def read_preview(self, upload_id: str) -> tuple[Upload, bytes]:
        """Return a picture that is still kept, with its small JPEG."""
        found = self.find(upload_id)
        try:
            return found, found.preview.read_bytes()
        except FileNotFoundError:
            # It went this moment.
            raise _gone(upload_id) from None

    def _make_room(self, size: int) -> None:
        """Remove what is too old, and the oldest, until one more of this size has room."""
        kept = sorted(self._kept(), reverse=True)
        oldest = time.time() - self._limits.upload_seconds
        for place, (made, path, taken) in enumerate(kept, start=2):
            size += taken
            if place > self._limits.kept_uploads or size > self._limits.kept_upload_bytes or made < oldest:
                shutil.rmtree(path, ignore_errors=True)

    def _kept(self) -> Iterator[tuple[float, str, int]]:
        """Yield when each picture came, where it lies, and its size."""
        for entry in os.scandir(self._folder):
            # Another process may make room as well.
            with suppress(FileNotFoundError):
                size = sum(file.stat().st_size for file in os.scandir(entry.path))
                yield entry.stat().st_mtime, entry.path, size


def _quick_to_read(file: BinaryIO, picture: CheckedPicture) -> BinaryIO:
    """Return a file as it came, or what it shows where that takes long: each search with it would keep others waiting.

    No encoder looks at more pixels than are left.
    """
    most = _QUICK_JPEG_PIXELS if picture.suffix == ".jpg" else _QUICK_PIXELS
    if is_plain(file) and picture.width * picture.height <= most:
        return file
    content = io.BytesIO()
    Image.fromarray(picture.pixels).save(content, "PNG", compress_level=1)
    return content


def _gone(upload_id: str) -> Problem:
    return Problem(404, "no-such-upload", f"There is no uploaded picture {upload_id!r} any more; send it again.")


def _make_private(folder: Path) -> None:
    """Make a folder that only this user can look into; one that someone else prepared is refused."""
    folder.mkdir(mode=0o700, exist_ok=True)
    status = os.lstat(folder)
    is_own = not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o077)
    if not stat.S_ISDIR(status.st_mode) or not is_own:
        raise InvalidInputError(f"{folder} is not a private folder of this user; remove it, or set TMPDIR")


_FOLDER = "uploads"
_STORED_NAME = re.compile(rf"{_FOLDER}/[0-9a-f]{{32}}\.[a-z0-9]+")


def store_picture(collection: Collection, file: BinaryIO, suffix: str) -> Path:
    """Write a picture into the folder ``uploads`` of a root, named by its content, and return its path."""
    collection.check_root()
    if is_remote(collection.root):
        raise InvalidInputError(f"{collection.root} is only read; put the picture there by other means and index again")
    folder = collection.root / _FOLDER
    folder.mkdir(exist_ok=True)
    file.seek(0)
    # Typed as a file that can be read into a buffer, as every binary file can.
    digest = hashlib.file_digest(file, "sha256")  # type: ignore[arg-type]
    target = folder / f"{digest.hexdigest()[:32]}{suffix}"
    # A file of that name has the same content already.
    if not target.exists():
        file.seek(0)
        draft_of_target = atomic_write(target, durable=True, replace=False)
        with suppress(FileExistsError), draft_of_target as draft, draft.open("xb") as stream:
            shutil.copyfileobj(file, stream)
    return target


def remove_stored_picture(collection: Collection, item: Item) -> None:
    """Delete the file of a removed item if it was sent here, so that the next look at the folder does not add it."""
    if item.path is None or not collection.is_root_trusted or is_remote(collection.root):
        return
    name = split_moment(item.path)[0]
    if _STORED_NAME.fullmatch(name.as_posix()):
        remove_unused_picture(collection, collection.root / name)


def remove_unused_picture(collection: Collection, path: Path) -> None:
    """Delete a picture that was sent here unless an item has it."""
    # With an asterisk, for the moments of a video are items of the same file.
    if not collection.items(f"path:{_FOLDER}/{path.name}*"):
        path.unlink(missing_ok=True)
