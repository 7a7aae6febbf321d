"""Items: one stored picture or text, and the record it is made from."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

from diptych.data.picture_files import is_video, split_moment
from diptych.errors import InvalidInputError


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a collection: a picture with what is known about it, or a text without a picture.

    ``path`` is relative to the collection's root when the file lies inside it, absolute otherwise, and None for an item
    without a picture. ``content_hash`` is the SHA-256 of the file. A video has an item for its beginning, with its
    path, and one for each further moment, with the seconds behind it (``clip.mp4#t=12.500``) and a hash of both.
    ``added_ns`` and ``updated_ns`` count nanoseconds since 1970; no two items were added at the same one. ``metadata``
    are what people gave, ``facts`` what the file says of itself, and ``facts_read`` says how that was read, empty where
    it never was.
    """

    id: str
    path: str | None
    content_hash: str | None
    size: int = 0
    mtime_ns: int = 0
    width: int = 0
    height: int = 0
    labels: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    caption_ids: tuple[str, ...] = ()
    captions: tuple[str, ...] = ()
    added_ns: int = 0
    updated_ns: int = 0
    facts: Mapping[str, Any] = field(default_factory=dict)
    facts_read: str = ""

    @property
    def fields(self) -> dict[str, Any]:
        """Metadata and facts as filters and facets see them: what people gave wins."""
        return joined_fields(self.facts, self.metadata)

    @property
    def added(self) -> str:
        """When the item was added, ISO 8601 in UTC."""
        return iso_time(self.added_ns)

    @property
    def updated(self) -> str:
        """When the item was last changed, ISO 8601 in UTC."""
        return iso_time(self.updated_ns)

    @property
    def seconds(self) -> float | None:
        """Where in a video the picture is, from its beginning; None for what is no video."""
        if self.path is None:
            return None
        file, seconds = split_moment(self.path)
        return 0.0 if seconds is None and is_video(file) else seconds

    @property
    def modified(self) -> str:
        """When the file was last changed, ISO 8601 in UTC; empty without a file."""
        return iso_time(self.mtime_ns) if self.path is not None else ""


PLACE_FIELDS = ("latitude", "longitude", "altitude", "place", "region", "country")


def joined_fields(facts: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return facts of a file under what people gave, with year and month of the date that holds.

    Who gives coordinates, or a date, means another place, or time: what the file says of it counts no more.

    >>> joined_fields({"taken": "2019-07-14", "taken_from": "exif", "camera": "X"}, {"taken": "2018-01-02"})
    {'camera': 'X', 'year': 2018, 'month': 1, 'taken': '2018-01-02'}
    """
    if not facts:
        return dict(given)
    replaced = {"taken_from"} if "taken" in given else set()
    if "latitude" in given or "longitude" in given:
        replaced.update(PLACE_FIELDS)
    fields = {name: value for name, value in facts.items() if name not in replaced and name not in given}
    taken = given.get("taken", facts.get("taken"))
    if isinstance(taken, str) and (match := _YEAR_AND_MONTH.match(taken)):
        fields["year"] = int(match[1])
        if match[2]:
            fields["month"] = int(match[2])
    return fields | dict(given)


_YEAR_AND_MONTH = re.compile(r"([0-9]{4})(?:-([0-9]{2}))?")


def iso_time(nanoseconds: int) -> str:
    """Return nanoseconds since 1970 as ISO 8601 in UTC.

    >>> iso_time(86_400 * 10**9)
    '1970-01-02T00:00:00+00:00'
    """
    return datetime.fromtimestamp(nanoseconds // 10**9, UTC).isoformat()


@dataclass(frozen=True)
class Record:
    """A picture file, or a text without one, with what is known about it.

    What is None is left as it is stored; an empty sequence or mapping erases it. Metadata are JSON values. A record
    without a path needs captions: it is a text to be found, not a picture. ``id`` names the item from outside; without
    it one is made up.

    >>> from diptych.collection import Record
    >>> Record("boats/1.jpg", captions=["a red boat"], labels=["boat"], metadata={"year": 2010}).labels
    ('boat',)
    """

    path: str | os.PathLike[str] | None = None
    captions: Sequence[str] | None = None
    labels: Sequence[str] | None = None
    metadata: Mapping[str, Any] | None = None
    id: str | None = None

    def __post_init__(self) -> None:
        for name in ("captions", "labels"):
            object.__setattr__(self, name, _strings(getattr(self, name), name))
        if self.path is None and not self.captions:
            raise InvalidInputError("a record without a picture needs at least one caption, which is then its text")
        if self.id is not None and (not isinstance(self.id, str) or not self.id):
            raise InvalidInputError(f"the id of a record is a string that is not empty, got {self.id!r}")
        if self.id is not None and not is_storable(self.id):
            raise InvalidInputError(f"the id of a record must be valid Unicode, got {self.id!r}; rename it")
        if self.metadata is not None:
            object.__setattr__(self, "metadata", _plain(self.metadata))


# Whatever is stored is shown in lists with others, filtered and counted, so that no item may be out of all proportion.
MOST_TEXTS, LONGEST_CAPTION, LONGEST_LABEL = 1_000, 100_000, 400
_MOST_LETTERS = 1_000_000
MOST_NAMES, LONGEST_METADATA = 1_000, 100_000
_SHORT = 100
_DEEPEST, _SMALLEST_INTEGER, _LARGEST_INTEGER = 16, -(2**63), 2**64 - 1


def _strings(values: Any, name: str) -> tuple[str, ...] | None:
    if values is None:
        return None
    if isinstance(values, str):
        raise InvalidInputError(f"{name} must be a sequence of strings, got one string; pass it in a list")
    strings = tuple(values)
    if not all(isinstance(value, str) and value.strip() and is_storable(value) for value in strings):
        raise InvalidInputError(
            f"{name} must be strings of valid Unicode that are not empty, without NUL, got {strings!r:.200}"
        )
    longest = LONGEST_CAPTION if name == "captions" else LONGEST_LABEL
    if len(strings) > MOST_TEXTS or sum(map(len, strings)) > _MOST_LETTERS:
        raise InvalidInputError(
            f"an item has at most {MOST_TEXTS:,} {name} of {_MOST_LETTERS:,} letters in all; make several items of it"
        )
    if any(len(value) > longest for value in strings):
        raise InvalidInputError(f"{name} have at most {longest:,} letters each; shorten the longest")
    return strings


def _plain(metadata: Mapping[str, Any]) -> dict[str, Any]:
    try:
        plain = json.loads(text := json.dumps(dict(metadata), ensure_ascii=False, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as problem:
        raise InvalidInputError(f"metadata must be JSON values ({problem}); convert them first") from None
    fault = metadata_fault(plain, len(text))
    if fault:
        raise InvalidInputError(f"metadata {fault}")
    return cast("dict[str, Any]", plain)


def metadata_fault(fields: Any, length: int = 0) -> str:
    """Say what is wrong with JSON values that are to be metadata, of a text that is so long; nothing where all is well.

    >>> metadata_fault({"year": 2010}), metadata_fault({"year": 10**400})
    ('', 'hold a number that is not finite or beyond 64 bits; write it as a text')
    """
    if not isinstance(fields, dict):
        return "are no mapping from names to values"
    if len(fields) > MOST_NAMES or length > LONGEST_METADATA:
        return f"have more than {MOST_NAMES:,} names or {LONGEST_METADATA:,} letters; keep the rest elsewhere"
    if is_plain(fields):
        return ""
    level: list[Any] = [fields]
    for _ in range(_DEEPEST + 1):
        names = [name for value in level if isinstance(value, dict) for name in value]
        if not all(name and len(name) <= LONGEST_LABEL for name in names):
            return f"have a name that is empty or longer than {LONGEST_LABEL} letters; rename it"
        if not all(is_storable(text) for text in (*names, *level) if isinstance(text, str)):
            return "are no valid Unicode or have a NUL; remove it, or lone surrogates"
        if not all(_is_moderate(one) for one in level):
            return "hold a number that is not finite or beyond 64 bits; write it as a text"
        level = [one for value in level for one in (value.values() if isinstance(value, dict) else _listed(value))]
        if not level:
            return ""
    return f"are nested more than {_DEEPEST} deep; flatten them"


def is_plain(fields: Mapping[Any, Any]) -> bool:
    """Return True if metadata are few short texts and moderate numbers, as most are: these have no fault."""
    for name, value in fields.items():
        kind = type(value)
        if type(name) is not str or not 0 < len(name) <= _SHORT or not name.isprintable():
            return False
        if kind is str:
            if len(value) > _SHORT or not value.isprintable():
                return False
        elif kind not in (int, float, bool) or not _is_moderate(value):
            return False
    return len(fields) <= _SHORT


def _is_moderate(value: Any) -> bool:
    if isinstance(value, int):
        return _SMALLEST_INTEGER <= value <= _LARGEST_INTEGER
    return not isinstance(value, float) or math.isfinite(value)


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def is_storable(text: str) -> bool:
    """Return True if a text is valid Unicode, which file names of another encoding are not, and has no NUL."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


def caption_ids(known: Item | None, item_id: str, texts: Sequence[str]) -> tuple[str, ...]:
    """Return the ids of captions; those of captions that stay are kept, so that their points stay where they are."""
    left: dict[str, list[str]] = {}
    if known is not None:
        item_id = known.id
        for caption_id, text in zip(known.caption_ids, known.captions, strict=True):
            left.setdefault(text, []).append(caption_id)
    return tuple(left[text].pop(0) if left.get(text) else f"{item_id}-{os.urandom(4).hex()}" for text in texts)
