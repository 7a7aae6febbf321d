"""What a user names, as records; their ids, and what reports call them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

from diptych.collection.item import Item, Record
from diptych.collection.root import Root
from diptych.collection.store.dialect import Connection
from diptych.collection.store.items import items_by_name
from diptych.data.caption_files import CaptionedPicture
from diptych.data.picture_files import find_pictures
from diptych.errors import InvalidInputError


def collect_records(root: Root, sources: Any) -> tuple[list[Record], dict[str, str]]:
    """Return one record per picture or text of files, folders, records and captioned pictures.

    Of a path that is named twice, what is said last holds. The second result has the reason for each path that cannot
    be used.
    """
    records: dict[object, Record] = {}
    skipped: dict[str, str] = {}

    def skip(path: Path, reason: str) -> None:
        skipped[str(path)] = reason

    def each(source: Any) -> Iterable[Record]:
        if isinstance(source, Record):
            yield source
        elif isinstance(source, CaptionedPicture):
            try:
                yield Record(source.path, source.captions or None, source.labels or None, source.metadata or None)
            except InvalidInputError as reason:
                # One bad line of a caption file must not cost the others.
                skip(source.path, str(reason))
        elif isinstance(source, (str, os.PathLike)):
            path = root.given(source)
            yield from map(Record, find_pictures(path, on_unreadable=skip) if path.is_dir() else [path])
        elif isinstance(source, Iterable) and not isinstance(source, (bytes, dict)):
            for part in source:
                yield from each(part)
        else:
            raise InvalidInputError(
                f"add takes paths of pictures or folders, and Records, got {type(source).__name__}; pass a Record"
            )

    for record in each(sources):
        if record.path is not None:
            root.check_trusted()
        key = object() if record.path is None else root.given(record.path)
        records.pop(key, None)
        records[key] = record
    return list(records.values()), skipped


def record_name(record: Record) -> str:
    """Return what a report calls a record: its path, or else its id, or else its text."""
    return os.fspath(record.path) if record.path is not None else record.id or " ".join(record.captions or ())


def says_nothing_new(record: Record, item: Item | None) -> bool:
    """Return True if an item has all that a record says of it already."""
    said = ("captions", "labels", "metadata")
    return item is not None and all(getattr(record, name) in (None, getattr(item, name)) for name in said)


def text_hash(text: str) -> str:
    """Return the SHA-256 of a text."""
    return sha256(text.encode()).hexdigest()


def text_ids(db: Connection, records: Iterable[Record]) -> dict[tuple[str, ...], str]:
    """Return the public ids of texts without one, by their captions.

    It is the same for the same text, unless its item has been given other captions since.
    """
    unnamed = {tuple(record.captions or ()) for record in records if record.path is None and record.id is None}
    digests = {texts: sha256("\0".join(texts).encode()) for texts in unnamed}
    ids: dict[tuple[str, ...], str] = {}
    while digests:
        names = {texts: digest.hexdigest()[:16] for texts, digest in digests.items()}
        known = items_by_name(db, names.values())
        ids |= {texts: name for texts, name in names.items() if name not in known or known[name][1].captions == texts}
        digests = {texts: digest for texts, digest in digests.items() if texts not in ids}
        for digest in digests.values():
            digest.update(b"\0")
    return ids
