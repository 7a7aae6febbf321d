"""Verify that every row is as it was written, and make again what can be made again."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from diptych.collection.store.dialect import SQLITE_WORDS, Connection, has_table, schema_statements
from diptych.collection.store.points import POINT_KINDS, point_blocks, point_crc, point_table
from diptych.collection.store.store import Store
from diptych.collection.store.writing import CAPTION_COLUMNS, COLUMNS, row_crc, say_again
from diptych.collection.vectors.vector_index import damage_of_vector_files
from diptych.errors import CollectionBusyError, CollectionError

ROWS_AT_ONCE = 2000
MAX_PROBLEMS_OF_FILE = 100

# Table, its key, and the columns of its checksum.
CHECKED: Sequence[tuple[str, tuple[str, ...], tuple[str, ...]]] = (
    ("item", ("id",), tuple(COLUMNS)),
    ("caption", ("id",), tuple(CAPTION_COLUMNS)),
    ("thumbnail", ("content",), ("content", "jpeg")),
    ("picture_text", ("content",), ("content", "text", "words", "boxes")),
)
CHECKSUMMED = frozenset({"feature", "model_file", *(table for table, _, _ in CHECKED)})
# Rows of these are made again from the pictures and captions.
DISPENSABLE = frozenset({"thumbnail", "picture_text", "feature"})


# The owner of a row: the path of an item, or else its id, by the first values of the key.
_OWNER = "SELECT coalesce(path, name) FROM item WHERE"
_OF_CONTENT = f"{_OWNER} content = ? OR id IN (SELECT item FROM caption WHERE caption.content = ?) ORDER BY id LIMIT 1"
_OWNERS = {
    "item": f"{_OWNER} id = ?",
    "caption": f"{_OWNER} id = (SELECT item FROM caption WHERE id = ?)",
    "model_file": "SELECT name FROM model WHERE id = ?",
}


@dataclass(frozen=True)
class Damage:
    """What is wrong with one row, or with a whole table or the database.

    ``key`` are the values of the row's key, ``owner`` is the path or the id of the item that it belongs to, if any.
    """

    table: str
    key: tuple[Any, ...]
    problem: str
    owner: str = ""

    def __str__(self) -> str:
        row = self.owner or ", ".join(map(str, self.key))
        of = "of " if self.owner and self.table != "item" else ""
        return f"{self.table} {of}{row} {self.problem}" if row else f"{self.table} {self.problem}"


def verify(store: Store) -> list[Damage]:
    """Return what is damaged: of the database as a whole, of the word index, and of rows with a checksum."""
    found: list[Damage] = []
    for check in (_database, _unchecked_tables, _words, _rows, _features, _points, _model_files, _vector_files):
        try:
            found += check(store)
        except CollectionBusyError:
            raise
        # Damaged rows may have other columns, or values of other types.
        except (CollectionError, sqlite3.Error, ValueError, LookupError, TypeError) as problem:
            found.append(Damage("database", (), f"cannot be read: {problem}"))
    return [_with_owner(store, damage) for damage in found]


def _with_owner(store: Store, damage: Damage) -> Damage:
    if not damage.key:
        return damage
    # Features are of an encoder and a content; points, thumbnails and texts of a content.
    content = damage.key[1 if damage.table == "feature" else 0]
    sql, values = _OWNERS.get(damage.table), damage.key[:1]
    # What is damaged may hide who it belongs to.
    with suppress(CollectionError, sqlite3.Error), store.reading() as db:
        owner = db.value(_OF_CONTENT, (content, content)) if sql is None else db.value(sql, values)
        return replace(damage, owner=str(owner or ""))
    return damage


def repair(store: Store) -> list[Damage]:
    """Make again what can be made, remove damaged rows that are, and return what stays damaged: restore a backup.

    What is removed is made again from the pictures: points and thumbnails by the caller, the rest when it is needed.
    """
    found = verify(store)
    if not found:
        return []
    tables = {damage.table for damage in found}
    if store.engine == "sqlite" and "database" in tables:
        store.write(lambda db: db.run("REINDEX"))
    store.write(lambda db: _remove_damaged(db, found), freeing=True)
    if "word" in tables:
        _say_all_again(store)
    shutil.rmtree(store.derived, ignore_errors=True)
    store.derived.mkdir(parents=True, exist_ok=True)
    return verify(store)


def _remove_damaged(db: Connection, found: Sequence[Damage]) -> None:
    keys = {"feature": ("encoder", "content"), **{table: key for table, key, _ in CHECKED}}
    for damage in found:
        if damage.table in DISPENSABLE and damage.key:
            where = " AND ".join(f"{name} = ?" for name in keys[damage.table])
            db.run(f"DELETE FROM {damage.table} WHERE {where}", damage.key)
        elif damage.table == "feature":
            db.run(
                "DELETE FROM feature WHERE encoder NOT IN (SELECT id FROM encoder) "
                "OR content NOT IN (SELECT id FROM content)"
            )
        elif damage.table.startswith("point_") and damage.key:
            # All regions of a picture are made together.
            db.run(f"DELETE FROM {damage.table} WHERE content = ?", damage.key[:1])


def _database(store: Store) -> Iterator[Damage]:
    if store.engine != "sqlite":
        return
    with store.reading() as db:
        for (problem,) in db.rows(f"PRAGMA integrity_check({MAX_PROBLEMS_OF_FILE})"):
            if problem != "ok":
                yield Damage("database", (), problem)
        made = dict(db.rows("SELECT name, sql FROM sqlite_schema"))
        with closing(sqlite3.connect(":memory:")) as empty:
            for statement in schema_statements(db.engine, db.words):
                empty.execute(statement)
            for name, sql in empty.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'"):
                if made.get(name) != sql:
                    yield Damage("database", (), f"describes {name} otherwise than it was made")
        for table, row, parent, _ in db.rows("PRAGMA foreign_key_check"):
            # The number of the row, which for features is not their key.
            key = () if row is None or table == "feature" else (row,)
            yield Damage(table, key, f"names a row of {parent} that is missing")


def _unchecked_tables(store: Store) -> Iterator[Damage]:
    """Read every row of tables without checksums: a flipped byte may make a text that cannot be decoded."""
    if store.engine != "sqlite":
        return
    with closing(sqlite3.connect(":memory:")) as empty:
        for statement in schema_statements(store.engine, SQLITE_WORDS):
            empty.execute(statement)
        names = [name for (name,) in empty.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    for name in names:
        if name in CHECKSUMMED or name.startswith(("word", "sqlite_")):
            continue
        try:
            with store.reading() as db:
                for _ in db.raw.execute(f"SELECT * FROM {name}"):
                    pass
        except (CollectionError, sqlite3.Error, ValueError) as problem:
            yield Damage(name, (), f"cannot be read: {problem}")


def _words(store: Store) -> Iterator[Damage]:
    def check(db: Connection) -> None:
        if db.engine == "sqlite" and has_table(db, "word"):
            # Rank 1 compares the index with the rows it is of.
            db.run("INSERT INTO word (word, rank) VALUES ('integrity-check', 1)")

    try:
        store.write(check, freeing=True)
    except CollectionBusyError:
        raise
    except CollectionError:
        yield Damage("word", (), "does not agree with what is said")


def _say_all_again(store: Store) -> None:
    store.write(lambda db: db.run("INSERT INTO word (word) VALUES ('rebuild')"))
    with store.reading() as db:
        ids = db.ids("SELECT id FROM item")
    ids.sort()
    for start in range(0, len(ids), ROWS_AT_ONCE):
        store.write(lambda db, some=ids[start : start + ROWS_AT_ONCE]: say_again(db, some))  # type: ignore[misc]


def _vector_files(store: Store) -> Iterator[Damage]:
    for path, problem in damage_of_vector_files(store.derived).items():
        yield Damage(f"{store.derived.name}/{path}", (), problem)


def _rows(store: Store) -> Iterator[Damage]:
    for table, key, columns in CHECKED:
        for *values, code in _pieces(store, table, key, (*columns, "crc")):
            if row_crc(values[len(key) :]) != code:
                yield Damage(table, tuple(values[: len(key)]), "is not as it was written")


def _features(store: Store) -> Iterator[Damage]:
    for encoder, content, body, code in _pieces(store, "feature", ("encoder", "content"), ("v", "crc")):
        if point_crc(content, encoder, bytes(body)) != code:
            yield Damage("feature", (encoder, content), "is not as it was written")


def _points(store: Store) -> Iterator[Damage]:
    with store.reading() as db:
        found = [int(model) for (model,) in db.rows("SELECT id FROM model ORDER BY id")]
        tables = [(model, side) for model in found for side in POINT_KINDS if has_table(db, point_table(model, side))]
    for model, side in tables:
        table = point_table(model, side)
        after = 0
        while True:
            with store.reading() as db:
                block = next(point_blocks(db, model, side, after), None)
                if block is None:
                    break
                codes = db.rows(
                    f"SELECT crc FROM {table} WHERE id > ? AND id <= ? ORDER BY id", (after, int(block[0][-1]))
                )
            after = int(block[0][-1])
            for content, part, vector, (code,) in zip(*map(list, block[1:]), codes, strict=True):
                if point_crc(int(content), int(part), vector.tobytes()) != code:
                    yield Damage(table, (int(content), int(part)), "is not as it was written")


def _model_files(store: Store) -> Iterator[Damage]:
    for *key, body, expected in _pieces(store, "model_file", ("model", "name"), ("body", "sha256"), rows_at_once=1):
        if hashlib.sha256(body).hexdigest() != expected:
            yield Damage("model_file", tuple(key), "is not as it was written")


def _pieces(
    store: Store, table: str, key: Sequence[str], columns: Sequence[str], rows_at_once: int = ROWS_AT_ONCE
) -> Iterator[tuple[Any, ...]]:
    """Yield the key and the columns of all rows, a piece in a transaction: a long one would hinder writers."""
    keys = ", ".join(key)
    query = f"SELECT {keys}, {', '.join(columns)} FROM {table}"
    end = f"ORDER BY {keys} LIMIT {rows_at_once}"
    last: tuple[Any, ...] = ()
    while True:
        after = f"WHERE ({keys}) > ({', '.join('?' * len(key))})" if last else ""
        with store.reading() as db, _decoding_all(db):
            rows = db.rows(f"{query} {after} {end}", last)
        yield from rows
        if len(rows) < rows_at_once:
            return
        last = rows[-1][: len(key)]


@contextmanager
def _decoding_all(db: Any) -> Iterator[None]:
    """Read damaged texts of SQLite with replacement signs instead of raising: their checksums tell."""
    if db.engine == "sqlite":
        db.raw.text_factory = lambda content: content.decode("utf-8", "replace")
    try:
        yield
    finally:
        if db.engine == "sqlite":
            db.raw.text_factory = str
