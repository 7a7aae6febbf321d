"""Pictures with what was typed about them, as records for a collection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from diptych.collection import Collection, Record
from diptych.data import find_pictures
from diptych.errors import InvalidInputError


def described_records(
    collection: Collection,
    paths: Sequence[Path],
    *,
    captions: Sequence[str],
    labels: Sequence[str],
    metadata: Mapping[str, Any],
    replace: bool,
) -> list[Record]:
    """Return a record for each picture, or one without a picture when there are only words.

    Captions, labels and metadata join those the collection has, unless they ``replace`` them.
    """
    if not paths and not captions:
        raise InvalidInputError("there is nothing to add; name pictures, or give the words of a text with --caption")
    if not paths:
        return [Record(captions=captions, labels=labels or None, metadata=metadata or None)]
    if replace:
        return [Record(path, captions, labels, metadata) for path in _pictures(paths)]
    return [_joined(collection, path, captions, labels, metadata) for path in _pictures(paths)]


def _pictures(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            found = [picture.absolute() for picture in find_pictures(path)]
            if not found:
                raise InvalidInputError(f"there is no picture in {path}; name another folder")
            yield from found
        else:
            yield path.absolute()


def _joined(
    collection: Collection, path: Path, captions: Sequence[str], labels: Sequence[str], metadata: Mapping[str, Any]
) -> Record:
    if path not in collection:
        return Record(path, captions or None, labels or None, metadata or None)
    known = collection[path]
    return Record(
        path,
        tuple(dict.fromkeys((*known.captions, *captions))) if captions else None,
        tuple(dict.fromkeys((*known.labels, *labels))) if labels else None,
        {**known.metadata, **metadata} if metadata else None,
    )
