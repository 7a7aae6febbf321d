"""Thumbnails that are missing, made again from the files of the pictures."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from diptych.collection.indexing.file_facts import FileFacts, FileRequest, read_files
from diptych.collection.root import Root
from diptych.collection.store.dialect import Connection
from diptych.collection.store.kept import put_thumbnails
from diptych.collection.store.store import Store

_FILES_AT_ONCE = 64
_MISSING = (
    "SELECT content.id, content.hash, min(item.path) FROM item JOIN content ON content.id = item.content "
    "LEFT JOIN thumbnail ON thumbnail.content = content.id "
    "WHERE item.path IS NOT NULL AND thumbnail.content IS NULL GROUP BY content.id, content.hash"
)


def make_missing_thumbnails(store: Store, root: Root) -> None:
    """Make the thumbnails that items lack, from files that still have the content that was indexed."""
    if not root.is_trusted:
        return
    with store.reading() as db:
        missing = db.rows(_MISSING)
    for start in range(0, len(missing), _FILES_AT_ONCE):
        rows = missing[start : start + _FILES_AT_ONCE]
        # One read of a video serves all its moments.
        files = {root.picture(path) for _, _, path in rows}
        read = [one[1] for one in read_files([FileRequest(file) for file in files]) if isinstance(one, tuple)]
        made = {facts.content_hash: facts.thumbnail for one in read for facts in _with_moments(one) if facts.thumbnail}
        jpegs = {number: made[bytes(key).hex()] for number, key, _ in rows if bytes(key).hex() in made}
        if jpegs:
            store.write(partial(_put, jpegs=jpegs))


def _put(db: Connection, jpegs: Mapping[int, bytes]) -> None:
    # Contents that nothing names may have gone meanwhile.
    condition, values = db.among("id", list(jpegs))
    there = db.ids(f"SELECT id FROM content WHERE {condition}", values).tolist()
    put_thumbnails(db, {content: jpegs[content] for content in there})


def _with_moments(facts: FileFacts) -> tuple[FileFacts, ...]:
    return facts, *(moment for _, moment in facts.moments)
