"""Backups: a collection as it is at one moment, copied to a new folder while others write, and the same way back."""

from __future__ import annotations

import os
import shutil
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from diptych.addresses import is_address
from diptych.atomic_files import make_durable
from diptych.collection.root import ROOT, check_root, is_trusted_root, root_of, stored_root, trust_root
from diptych.collection.store.sqlite import DATABASE, SqliteStore
from diptych.collection.store.store import DERIVED, put_setting, setting
from diptych.collection.upkeep.checks import verify
from diptych.data.remote_files import full_path
from diptych.errors import CollectionError, InvalidInputError, NoRoomError


@dataclass(frozen=True)
class BackupReport:
    """What a backup holds: its items, its bytes on the disk, and whether a click log is among them."""

    folder: Path
    target: Path
    items: int
    bytes: int
    has_click_log: bool


@dataclass(frozen=True)
class RestoreReport:
    """What was restored, where its pictures were or are, and whether files are opened there.

    ``problems`` are those that :meth:`verify` sees.
    """

    target: Path
    root: Path
    is_root_trusted: bool
    items: int
    pictures: int
    captions: int
    problems: tuple[str, ...]


def backup_collection(folder: str | os.PathLike[str], target: str | os.PathLike[str]) -> BackupReport:
    """Write a collection as it is at one moment to a new folder; others may search and write meanwhile.

    Pictures stay where they are; what is made again from the tables is left out. The folder appears under its name when
    it is whole, and is a collection itself.
    """
    with _copy(folder, target) as (store, copy):
        with store.reading() as db:
            n_items = int(db.value("SELECT count(*) FROM item"))
            has_click_log = db.value("SELECT 1 FROM search LIMIT 1") is not None
        n_bytes = copy.stat().st_size
    return BackupReport(_local(folder), _local(target), n_items, n_bytes, has_click_log)


def restore_collection(
    source: str | os.PathLike[str], target: str | os.PathLike[str], *, root: str | os.PathLike[str] | None = None
) -> RestoreReport:
    """Make a collection of a backup in a new folder, and verify it.

    Pictures are opened only below ``root``; without it the restored collection is searched without its files until it
    is opened with a root.
    """
    goal = _local(target)
    if root is not None:
        check_root(goal, root)
    with _copy(source, goal) as (store, _):
        if root is not None:
            named = stored_root(full_path(root), goal)
            store.write(lambda db: put_setting(db, ROOT, named))
        problems = tuple(map(str, verify(store)))
        with store.reading() as db:
            found = root_of(setting(db, ROOT, ".."), goal)
            n_items, n_pictures, n_captions = (
                int(db.value(f"SELECT count(*) FROM {rows}"))
                for rows in ("item", "item WHERE content IS NOT NULL", "caption")
            )
    if root is not None:
        with suppress(OSError):
            trust_root(goal, found)
    return RestoreReport(goal, found, is_trusted_root(goal, found), n_items, n_pictures, n_captions, problems)


def _local(place: str | os.PathLike[str]) -> Path:
    if is_address(place):
        raise InvalidInputError(
            "collections in PostgreSQL are backed up by its own programs: pg_dump -Fc -n SCHEMA, and pg_restore"
        )
    return Path(os.path.abspath(place))


@contextmanager
def _copy(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> Iterator[tuple[SqliteStore, Path]]:
    """Copy a collection to a draft beside the target, and yield the copy, open, and its file.

    The draft takes the name of the target when the block ends well, and is gone when it does not.
    """
    folder, goal = _local(source), _local(target)
    if goal.is_relative_to(folder):
        raise InvalidInputError(f"{target} lies in the collection itself; choose a place outside of it")
    original = SqliteStore.open(folder)
    try:
        with _new_folder(goal) as draft:
            _copy_database(original, draft / DATABASE)
            (draft / DERIVED).mkdir()
            copy = SqliteStore.open(draft)
            try:
                yield copy, draft / DATABASE
            finally:
                copy.close()
    finally:
        original.close()


@contextmanager
def _new_folder(target: Path) -> Iterator[Path]:
    if os.path.lexists(target):
        raise InvalidInputError(f"{target} exists already; name a new folder")
    draft = target.with_name(f".{target.name}.{uuid.uuid4().hex[:12]}")
    try:
        draft.mkdir(parents=True)
    except OSError as problem:
        raise InvalidInputError(f"cannot write {target}: {problem.strerror}; choose another place") from problem
    try:
        yield draft
        make_durable(draft)
        draft.rename(target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _copy_database(store: SqliteStore, copy: Path) -> None:
    copy.touch(mode=0o600)
    with store.reading() as db, closing(sqlite3.connect(copy, isolation_level=None)) as raw:
        try:
            # In one step: it begins again whenever others write in between.
            db.raw.backup(raw, pages=-1)
            # One file without a log, where the root is the same wherever it is restored.
            raw.execute("PRAGMA journal_mode=DELETE")
        except sqlite3.OperationalError as problem:
            # Temporary names say nothing.
            place = copy.parent.parent
            if problem.sqlite_errorname == "SQLITE_FULL":
                no_room = NoRoomError(place, copy.stat().st_size)
                raise CollectionError(f"{no_room}; or choose another place for the backup") from problem
            raise CollectionError(f"{place} cannot be written ({problem}); choose another place") from problem
        root = str(root_of(setting(db, ROOT, ".."), store.folder))
        raw.execute("UPDATE meta SET value = ? WHERE name = ?", (root, ROOT))
        raw.execute("UPDATE meta SET value = ? WHERE name = 'uuid'", (uuid.uuid4().hex,))
        # Without the salt, searches in a backup cannot be matched to visitors.
        raw.execute("DELETE FROM visitor_salt")
        verdict = raw.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if verdict != "ok":
        raise CollectionError(f"{store.folder} is damaged ({verdict}): run `diptych repair`, or take another backup")
    shutil.copymode(store.path, copy)
