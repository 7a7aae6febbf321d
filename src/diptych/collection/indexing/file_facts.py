"""What is known of a file before it is encoded: status, hash, size, thumbnail, and what it says of itself."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, get_args

from diptych.cluster import available_processors
from diptych.collection.item import PLACE_FIELDS, Item, Record, is_storable, metadata_fault
from diptych.data.photo_facts.places import has_places, places_at
from diptych.data.photo_facts.reading import Sidecars
from diptych.data.picture_files import is_video, split_moment
from diptych.errors import InvalidInputError, UnknownNameError

if TYPE_CHECKING:
    from diptych.encoders.image.picture_facts import PictureFacts
    from diptych.encoders.image.reading_once import Square, Squares

_THUMBNAIL_SIDE = 160
_MAX_THREADS = 16
_BLOCK = 1 << 20
# Kinds whose size tells what comes out for another reading side.
_READ_ALIKE = (".jpg", ".png")


@dataclass(frozen=True)
class PendingRecord:
    """A record that needs more than a look: its item, its file, and the file's status if the file must be read.

    ``for_facts``: the file is the stored one, and is read for what it says of itself alone.
    """

    record: Record
    known: Item | None
    path: Path | None = None
    status: os.stat_result | None = None
    for_facts: bool = False
    is_named: bool = True  # False for a moment that was found in a video

    @property
    def reads(self) -> bool:
        """Whether the file is read."""
        return self.status is not None or self.for_facts


@dataclass(frozen=True)
class FileRequest:
    """A file to read, with the XMP files beside it; where its content is known, for what it says of itself alone.

    ``squares`` are those that networks look at, see :attr:`FileFacts.squares`.
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
    where they are wanted and reading the picture once serves for all.
    """

    content_hash: str
    width: int = 0
    height: int = 0
    thumbnail: bytes = b""
    moments: tuple[tuple[float, FileFacts], ...] = ()
    said: dict[str, Any] = field(default_factory=dict)
    trouble: str = ""
    squares: Squares = field(default_factory=dict, compare=False, repr=False)


def file_status(path: Path) -> os.stat_result:
    """Return the status of a regular file that can be stored; anything else is an error with a reason."""
    if not is_storable(os.fspath(path)):
        raise InvalidInputError("its name is not valid Unicode; rename it")
    try:
        status = os.stat(split_moment(path)[0])
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"it cannot be opened ({getattr(error, 'strerror', None) or error})") from None
    if not stat.S_ISREG(status.st_mode):
        raise InvalidInputError("it is no regular file")
    return status


def content_hash(path: Path) -> str:
    """Return the SHA-256 of a file; that of a moment of a video is made from it."""
    # Pillow comes with these, so they wait until a file is read.
    from diptych.encoders.image.picture_formats import open_regular_file

    with open_regular_file(path) as file:
        return _hash_at(_digest(file), split_moment(path)[1])


def file_facts(request: FileRequest) -> FileFacts:
    """Read a file; without a picture in it, the hash alone: the encoder says whether it is of use."""
    from diptych.encoders.image.picture_facts import picture_facts
    from diptych.encoders.image.picture_formats import open_regular_file

    with open_regular_file(request.path) as file:
        digest = request.known_content or _digest(file)
        # Decoders fail on damaged files in every way they can, and each of them means: no thumbnail.
        try:
            found = picture_facts(file, request.path, request.sidecars)
            fault = metadata_fault(found.fields)
            said: dict[str, Any] = {"said": {} if fault else found.fields, "trouble": fault or found.trouble}
            if request.known_content is not None:
                return FileFacts(digest, **said)
            small, squares = _thumbnail_and_squares(file, request, found)
            facts = FileFacts(digest, found.width, found.height, small, squares=squares, **said)
            moments = _moments(file, request.path, facts) if is_video(request.path) else ()
            return replace(facts, moments=tuple(moments))
        except Exception:
            return FileFacts(digest)


ReadFile = tuple[os.stat_result, FileFacts] | InvalidInputError


def read_files(requests: Sequence[FileRequest]) -> list[ReadFile]:
    """Read the facts of files in threads, each with its status from before, or the reason why it cannot be read."""
    with ThreadPoolExecutor(min(_MAX_THREADS, available_processors())) as pool:
        return list(pool.map(_read_file, requests))


def _read_file(request: FileRequest) -> ReadFile:
    try:
        return file_status(request.path), file_facts(request)
    except InvalidInputError as reason:
        return reason


def hashed_file(path: Path, status: os.stat_result, facts: FileFacts) -> Path:
    """Return a path that knows its content, so that encoders need not read it again."""
    from diptych.encoders.image.reading_once import HashedFile

    if split_moment(path)[1] is not None:
        # The content of a moment is not that of its file.
        return path
    return HashedFile.of(path, bytes.fromhex(facts.content_hash), status, facts.squares)


def _digest(file: BinaryIO) -> str:
    digest = hashlib.sha256()
    try:
        while block := file.read(_BLOCK):
            digest.update(block)
    except OSError as error:
        raise InvalidInputError(f"it cannot be read ({error.strerror or error})") from None
    return digest.hexdigest()


def _thumbnail(file: BinaryIO, seconds: float | None = None) -> bytes:
    from diptych.encoders.image.picture_decoding import read_picture, thumbnail

    pixels = read_picture(file, shortest_side=_THUMBNAIL_SIDE, seconds=seconds)
    return thumbnail(pixels, longest_side=_THUMBNAIL_SIDE)


def _thumbnail_and_squares(file: BinaryIO, request: FileRequest, found: PictureFacts) -> tuple[bytes, Squares]:
    """Decode a picture once for all of them."""
    from diptych.encoders.image.picture_decoding import read_picture, thumbnail
    from diptych.encoders.image.reading_once import read_alike

    side, size = max((square.reading_side for square in request.squares), default=0), (found.width, found.height)
    if side < _THUMBNAIL_SIDE or found.suffix not in _READ_ALIKE:
        return _thumbnail(file), {}
    pixels = read_picture(file, shortest_side=side)
    alike = [square for square in request.squares if read_alike(size, side, square.reading_side)]
    return thumbnail(pixels, longest_side=_THUMBNAIL_SIDE), {square: square.cut(pixels) for square in alike}


def _moments(file: BinaryIO, path: Path, video: FileFacts) -> Iterator[tuple[float, FileFacts]]:
    from diptych.encoders.image.picture_facts import video_moments

    for seconds in video_moments(file, path):
        content = _hash_at(video.content_hash, seconds)
        yield seconds, replace(video, content_hash=content, thumbnail=_thumbnail(file, seconds), trouble="")


def _hash_at(digest: str, seconds: float | None) -> str:
    return digest if seconds is None else hashlib.sha256(f"{digest}#t={seconds:.3f}".encode()).hexdigest()


FactsChoice = Literal["all", "no-places", "none"]
"""What a collection keeps of what photographs say: everything, everything but where they were taken, or nothing."""
FACTS_CHOICES: tuple[FactsChoice, ...] = get_args(FactsChoice)
# Read anew where it was read by an earlier one.
_READER = 1


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


class Describing:
    """Decides which files of one run are read for their facts, and completes what was read."""

    def __init__(self, choice: str) -> None:
        self._choice = choice
        self._sidecars = Sidecars()
        self._reader = f"{_READER} {choice}" + ("|places" if choice == "all" and has_places() else "")

    def stamp(self, path: Path) -> str:
        """Return how the facts of a picture would be read now; empty where they would not."""
        if self._choice == "none":
            return ""
        return "|".join([self._reader, *(stamp for _, stamp in self._sidecars.of(path))])

    def is_due(self, path: Path, item: Item) -> bool:
        """Return True if the facts of a stored picture were never read, or in another way than now."""
        return item.facts_read != self.stamp(path)

    def requests(self, batch: Sequence[PendingRecord], squares: tuple[Square, ...] = ()) -> list[FileRequest]:
        """Return what is to be read of the files of a batch; of known content, the facts alone."""
        return [
            FileRequest(
                work.path,
                tuple(sidecar for sidecar, _ in self._sidecars.of(work.path)),
                work.known.content_hash if work.known and work.for_facts else None,
                squares,
            )
            for work in batch
            if work.path and work.reads
        ]

    def completed(self, read: Sequence[Any]) -> list[Any]:
        """Return what was read of files, with names of places where coordinates are, and without what is not kept."""
        found = [one for one in read if isinstance(one, FileFacts) and self._choice == "all" and "latitude" in one.said]
        latitudes, longitudes = ([one.said[name] for one in found] for name in ("latitude", "longitude"))
        names: dict[int, dict[str, str]] = {}
        for one, place in zip(found, places_at(latitudes, longitudes), strict=True):
            if place is not None:
                named = {"place": place.name, "region": place.region, "country": place.country}
                names[id(one)] = {name: text for name, text in named.items() if text}
        return [
            # What people wrote into the file is nearer to the truth than the nearest town.
            replace(one, said=kept_facts({**names.get(id(one), {}), **one.said}, self._choice))
            if isinstance(one, FileFacts) and (self._choice != "all" or id(one) in names)
            else one
            for one in read
        ]
