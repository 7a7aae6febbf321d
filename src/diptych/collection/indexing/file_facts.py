"""What is known of a file before it is encoded: status, hash, size, thumbnail, and what it says of itself."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, get_args

import numpy as np
from numpy.lib.format import open_memmap

from diptych.cluster import available_processors
from diptych.collection.item import PLACE_FIELDS, is_storable, metadata_fault
from diptych.data.photo_facts.places import has_places, places_at
from diptych.data.photo_facts.reading import Sidecars
from diptych.data.picture_files import is_video, split_moment
from diptych.data.remote_files import RemotePath
from diptych.errors import InvalidInputError, UnknownNameError

if TYPE_CHECKING:
    from diptych.encoders.image.picture_facts import PictureFacts
    from diptych.encoders.image.reading_once import Square, Squares

THUMBNAIL_SIDE = 160
MAX_THREADS = 16
FILES_AT_ONCE = 8
SHARED_MEMORY = "/dev/shm"
BLOCK_BYTES = 1 << 20
CANNOT_OPEN = "it cannot be opened"
# Kinds whose size tells what comes out for another reading side.
READ_ALIKE = (".jpg", ".png")

FactsChoice = Literal["all", "no-places", "none"]
"""What a collection keeps of what photographs say: everything, everything but where they were taken, or nothing."""
FACTS_CHOICES: tuple[FactsChoice, ...] = get_args(FactsChoice)
# Facts that another version has read are read again.
READER_VERSION = 1


@dataclass(frozen=True)
class FileRequest:
    """A file to read, with the XMP files beside it.

    Of a file with a ``known_content`` only the facts are read. ``squares`` are what networks look at.
    """

    path: Path
    sidecars: tuple[Path, ...] = ()
    known_content: str | None = None
    squares: tuple[Square, ...] = ()


@dataclass(frozen=True)
class FileFacts:
    """The content hash of a file, and the size and thumbnail of its picture; 0 and empty when it shows none.

    Of a video they are those of its beginning, and ``moments`` has the further ones, each with its seconds. ``said`` is
    what the file says of itself, ``trouble`` what of that could not be read; ``squares`` are what networks look at,
    where they are wanted and reading the picture once serves for all. ``status`` is from before the file was read.
    """

    content_hash: str
    status: os.stat_result = field(compare=False, repr=False)
    width: int = 0
    height: int = 0
    thumbnail: bytes = b""
    moments: tuple[tuple[float, FileFacts], ...] = ()
    said: dict[str, Any] = field(default_factory=dict)
    trouble: str = ""
    squares: Squares = field(default_factory=dict, compare=False, repr=False)


ReadFile = FileFacts | InvalidInputError
"""What was read of a file, or the reason why it cannot be read."""


def file_status(path: Path) -> os.stat_result:
    """Return the status of a regular file that can be stored; anything else is an error with a reason."""
    if not is_storable(os.fspath(path)):
        raise InvalidInputError("its name is not valid Unicode; rename it")
    try:
        status = split_moment(path)[0].stat()
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"{CANNOT_OPEN} ({getattr(error, 'strerror', None) or error})") from None
    if not stat.S_ISREG(status.st_mode):
        raise InvalidInputError("it is no regular file")
    return status


def content_hash(path: Path) -> str:
    """Return the SHA-256 of a file; that of a moment of a video is made from it."""
    # Pillow comes with these, so they wait until a file is read.
    from diptych.encoders.image.picture_formats import open_regular_file

    with open_regular_file(path) as file:
        return _hash_at(_digest(file), split_moment(path)[1])


def read_files(requests: Sequence[FileRequest], *, in_processes: bool = False) -> list[ReadFile]:
    """Read the facts of files in threads, or in processes where threads that share one interpreter are too slow."""
    if in_processes:
        return _read_in_processes(requests)
    # What is far away is waited for, which needs no processor.
    is_far = any(isinstance(request.path, RemotePath) for request in requests)
    with ThreadPoolExecutor(MAX_THREADS if is_far else min(MAX_THREADS, available_processors())) as pool:
        return list(pool.map(_read_file, requests))


def _read_in_processes(requests: Sequence[FileRequest]) -> list[ReadFile]:
    """Read files in processes, which are kept for the next batch; squares come back in shared memory, not by pipes."""
    from joblib import Parallel, delayed

    squares = dict.fromkeys(square for request in requests for square in request.squares)
    shared = SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else None
    # Maps stay after their files are gone.
    with TemporaryDirectory(dir=shared, ignore_cleanup_errors=True) as room:
        files = {square: f"{room}/{number}.npy" for number, square in enumerate(squares)}
        maps = {
            square: open_memmap(file, "w+", np.uint8, (len(requests), square.side, square.side, 3))
            for square, file in files.items()
        }
        parallel = Parallel(n_jobs=available_processors(), batch_size=FILES_AT_ONCE)
        read: list[ReadFile] = parallel(delayed(_read_into)(files, *numbered) for numbered in enumerate(requests))
    return [
        replace(facts, squares={square: maps[square][row] for square in facts.squares})
        if isinstance(facts, FileFacts)
        else facts
        for row, facts in enumerate(read)
    ]


def _read_into(files: Mapping[Square, str], row: int, request: FileRequest) -> ReadFile:
    read = _read_file(request)
    if isinstance(read, FileFacts):
        for square, pixels in read.squares.items():
            open_memmap(files[square], "r+")[row] = pixels
        return replace(read, squares=dict.fromkeys(read.squares, np.empty(0, dtype=np.uint8)))
    return read


def _read_file(request: FileRequest) -> ReadFile:
    try:
        return file_facts(request)
    except InvalidInputError as reason:
        return reason


def file_facts(request: FileRequest) -> FileFacts:
    """Read a file; without a picture in it, the hash alone: the encoder says whether it is of use."""
    from diptych.encoders.image.picture_facts import picture_facts
    from diptych.encoders.image.picture_formats import open_regular_file

    status = file_status(request.path)
    with open_regular_file(request.path) as file:
        facts = FileFacts(request.known_content or _digest(file), status)
        # Decoders fail on damaged files in every way they can, and each of them means: no thumbnail.
        try:
            found = picture_facts(file, request.path, request.sidecars)
            fault = metadata_fault(found.fields)
            said = replace(facts, said={} if fault else found.fields, trouble=fault or found.trouble)
            if request.known_content is not None:
                return said
            small, squares = _thumbnail_and_squares(file, request, found)
            shown = replace(said, width=found.width, height=found.height, thumbnail=small, squares=squares)
            return replace(shown, moments=tuple(_moments(file, request.path, shown)))
        except Exception:
            return facts


def hashed_file(path: Path, facts: FileFacts) -> Path:
    """Return a path that knows its content, so that encoders need not read it again."""
    from diptych.encoders.image.reading_once import hashed_path

    if split_moment(path)[1] is not None:
        # The content of a moment is not that of its file.
        return path
    return hashed_path(path, bytes.fromhex(facts.content_hash), facts.status, facts.squares)


def _digest(file: BinaryIO) -> str:
    digest = hashlib.sha256()
    try:
        while block := file.read(BLOCK_BYTES):
            digest.update(block)
    except OSError as error:
        raise InvalidInputError(f"it cannot be read ({error.strerror or error})") from None
    return digest.hexdigest()


def _thumbnail_and_squares(file: BinaryIO, request: FileRequest, found: PictureFacts) -> tuple[bytes, Squares]:
    """Decode a picture once for all of them."""
    from diptych.encoders.image.picture_decoding import read_picture, thumbnail
    from diptych.encoders.image.reading_once import read_alike

    side = max((square.reading_side for square in request.squares), default=0)
    if side < THUMBNAIL_SIDE or found.suffix not in READ_ALIKE:
        return _thumbnail(file), {}
    pixels, size = read_picture(file, shortest_side=side), (found.width, found.height)
    alike = [square for square in request.squares if read_alike(size, side, square.reading_side)]
    return thumbnail(pixels, longest_side=THUMBNAIL_SIDE), {square: square.cut(pixels) for square in alike}


def _thumbnail(file: BinaryIO, seconds: float | None = None) -> bytes:
    from diptych.encoders.image.picture_decoding import read_picture, thumbnail

    pixels = read_picture(file, shortest_side=THUMBNAIL_SIDE, seconds=seconds)
    return thumbnail(pixels, longest_side=THUMBNAIL_SIDE)


def _moments(file: BinaryIO, path: Path, video: FileFacts) -> Iterator[tuple[float, FileFacts]]:
    from diptych.encoders.image.picture_facts import video_moments

    for seconds in video_moments(file, path) if is_video(path) else ():
        content = _hash_at(video.content_hash, seconds)
        yield seconds, replace(video, content_hash=content, thumbnail=_thumbnail(file, seconds), trouble="")


def _hash_at(digest: str, seconds: float | None) -> str:
    return digest if seconds is None else hashlib.sha256(f"{digest}#t={seconds:.3f}".encode()).hexdigest()


# What a collection keeps of it


def checked_choice(choice: str) -> FactsChoice:
    """Return a choice that there is."""
    if choice not in FACTS_CHOICES:
        raise UnknownNameError("choice of facts", choice, FACTS_CHOICES)
    return choice


def kept_facts(facts: Mapping[str, Any], choice: str) -> dict[str, Any]:
    """Return those of the facts that a collection keeps.

    >>> kept_facts({"camera": "X", "latitude": 38.7, "place": "Lisbon"}, "no-places")
    {'camera': 'X'}
    """
    dropped = {"all": (), "no-places": PLACE_FIELDS, "none": facts}[choice]
    return {name: value for name, value in facts.items() if name not in dropped}


class FactsReader:
    """How one run reads what files say of themselves: by the choice of the collection, with the files beside them."""

    def __init__(self, choice: str) -> None:
        self._choice = choice
        self._sidecars = Sidecars()
        self._reader = f"{READER_VERSION} {choice}" + ("|places" if choice == "all" and has_places() else "")

    def sidecars(self, path: Path) -> tuple[Path, ...]:
        """Return the XMP files beside a picture."""
        return tuple(sidecar for sidecar, _ in self._sidecars.of(path))

    def stamp(self, path: Path) -> str:
        """Return how the facts of a picture are read now, which changes with the files beside it; empty if not."""
        if self._choice == "none":
            return ""
        return "|".join([self._reader, *(stamp for _, stamp in self._sidecars.of(path))])

    def completed(self, facts: FileFacts) -> FileFacts:
        """Return facts with the names of their place, and without what is not kept."""
        said = facts.said
        if self._choice == "all" and "latitude" in said:
            (place,) = places_at([said["latitude"]], [said["longitude"]])
            named = {} if place is None else {"place": place.name, "region": place.region, "country": place.country}
            # What people wrote into the file is nearer to the truth than the nearest town.
            said = {**{name: text for name, text in named.items() if text}, **said}
        return replace(facts, said=kept_facts(said, self._choice))
