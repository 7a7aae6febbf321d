"""Backups: a whole collection of one moment in another folder, while others write, and the way back."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diptych.addresses import is_address, without_password
from diptych.atomic_files import make_durable, read_json, write_json
from diptych.collection.indexing.add_report import AddProgress, Progress
from diptych.collection.root import root_of, stored_root
from diptych.collection.store.dialect import Connection
from diptych.collection.store.opening import open_store
from diptych.collection.store.sqlite import DATABASE, SqliteStore
from diptych.collection.store.store import DERIVED, Store
from diptych.collection.trusted_root import check_root, is_trusted_root, trust_root
from diptych.collection.upkeep.checks import verify
from diptych.data.remote_files import full_path
from diptych.errors import CollectionError, InvalidInputError, NoRoomError

DUMP = "collection.dump"
MANIFEST = "backup.json"
BACKUP_FORMAT = "diptych-backup"


@dataclass(frozen=True)
class BackupReport:
    """What a backup holds: its items, its bytes on the disk, and whether a click log is among them."""

    folder: Path | str
    target: Path
    items: int
    bytes: int
    has_click_log: bool


@dataclass(frozen=True)
class RestoreReport:
    """What was restored, where its pictures were or are, and whether files are opened there.

    ``problems`` are those that :meth:`verify` sees.

    A collection that was backed up with problems has them again.
    """

    target: Path | str
    root: Path
    is_root_trusted: bool
    items: int
    pictures: int
    captions: int
    problems: tuple[str, ...]


def backup_collection(
    folder: str | os.PathLike[str], target: str | os.PathLike[str], progress: Progress | None = None
) -> BackupReport:
    """Write a collection as it is at one moment to a new folder; others may search and write meanwhile.

    ``folder`` may be the address of a collection in PostgreSQL: then ``pg_dump`` is needed. Pictures stay where they
    are; what is made again from the tables is left out. The folder appears under its name when it is whole.
    """
    goal = Path(os.path.abspath(target))
    source: Path | str = str(folder) if is_address(folder) else Path(os.path.abspath(folder))
    if isinstance(source, Path) and goal.is_relative_to(source):
        raise InvalidInputError(f"{target} lies in the collection itself; choose a place outside of it")
    store = open_store(source)
    try:
        with _new_folder(goal) as draft:
            if isinstance(store, SqliteStore):
                manifest: dict[str, Any] = {"engine": "sqlite", "file": DATABASE}
                counts = _copy_sqlite(store, draft / DATABASE)
            else:
                manifest = {"engine": "postgres", "file": DUMP, "schema": vars(store)["schema"]}
                counts = _dump_postgres(store, draft / DUMP)
            copy = draft / manifest["file"]
            n_bytes = copy.stat().st_size
            write_json(draft / MANIFEST, {"format": BACKUP_FORMAT, **manifest, "sha256": _digest(copy)})
            if progress is not None:
                progress(AddProgress(counts[0], counts[0]))
    finally:
        store.close()
    n_items, has_click_log = counts
    return BackupReport(
        source if isinstance(source, Path) else without_password(source), goal, n_items, n_bytes, has_click_log
    )


def restore_collection(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    root: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> RestoreReport:
    """Make a collection of a backup in a new folder, or in an empty schema of PostgreSQL, and verify it.

    Pictures are opened only below ``root``; without it the restored collection is searched without its files until it
    is opened with a root.
    """
    backup, goal = Path(os.path.abspath(source)), store_place(target)
    manifest = _manifest_of(backup)
    if root is not None and isinstance(goal, Path):
        check_root(goal, root)
    if _digest(backup / manifest["file"]) != manifest["sha256"]:
        raise CollectionError(f"{backup} is damaged: {manifest['file']} has changed since; take another backup")
    if isinstance(goal, Path) != (manifest["engine"] == "sqlite"):
        kind = "a folder" if manifest["engine"] == "sqlite" else "an address of PostgreSQL"
        raise InvalidInputError(f"{backup} is restored to {kind}, got {target}")
    if isinstance(goal, Path):
        with _new_folder(goal) as draft:
            shutil.copyfile(backup / DATABASE, draft / DATABASE)
            (draft / DERIVED).mkdir()
            _rename(SqliteStore(draft), root, goal)
    else:
        _restore_postgres(backup / DUMP, goal, manifest["schema"])
        _rename(open_store(goal), root, goal)
    store = open_store(goal)
    place = store.folder
    try:
        problems = tuple(map(str, verify(store)))
        with store.reading() as db:
            found = root_of(_root_in(db), place)
            n_items, n_pictures, n_captions = (
                int(db.value(f"SELECT count(*) FROM {rows}"))
                for rows in ("item", "item WHERE content IS NOT NULL", "caption")
            )
    finally:
        store.close()
    if progress is not None:
        progress(AddProgress(n_items, n_items))
    if root is not None:
        with suppress(OSError):
            trust_root(place, found)
    shown = goal if isinstance(goal, Path) else without_password(goal)
    return RestoreReport(shown, found, is_trusted_root(place, found), n_items, n_pictures, n_captions, problems)


def store_place(place: str | os.PathLike[str]) -> Path | str:
    """Return the address of a database server as it is, and a folder with its full path."""
    return str(place) if is_address(place) else Path(os.path.abspath(place))


@contextmanager
def _new_folder(target: Path) -> Iterator[Path]:
    """Yield a draft beside ``target``; it takes that name when the block ends well, and is gone when it does not."""
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


def _copy_sqlite(store: SqliteStore, copy: Path) -> tuple[int, bool]:
    try:
        copy.touch(mode=0o600)
        with store.reading() as db, closing(sqlite3.connect(copy, isolation_level=None)) as raw:
            # In one step: it begins again whenever others write in between.
            _copy_pages(db.raw, raw, copy)
            counts = _counts(db)
            # One file without a log, where the root is the same wherever it is restored.
            raw.execute("PRAGMA journal_mode=DELETE")
            root = str(root_of(_root_in(db), store.folder))
            raw.execute("UPDATE meta SET value = ? WHERE name = 'root'", (root,))
            # Without the salt, searches in a backup cannot be matched to visitors.
            raw.execute("DELETE FROM visitor_salt")
            problem = raw.execute("PRAGMA integrity_check(1)").fetchone()[0]
    except NoRoomError as error:
        raise CollectionError(f"{error}; or choose another place for the backup") from None
    if problem != "ok":
        raise CollectionError(f"{store.folder} is damaged ({problem}): run `diptych repair`, or restore a backup")
    shutil.copymode(store.path, copy)
    return counts


def _copy_pages(database: sqlite3.Connection, raw: sqlite3.Connection, copy: Path) -> None:
    try:
        database.backup(raw, pages=-1)
    except sqlite3.OperationalError as problem:
        if problem.sqlite_errorname == "SQLITE_FULL":
            # Temporary names say nothing.
            raise NoRoomError(copy.parent.parent, copy.stat().st_size) from problem
        raise CollectionError(f"{copy.parent.parent} cannot be written ({problem}); choose another place") from problem


def _counts(db: Connection) -> tuple[int, bool]:
    return int(db.value("SELECT count(*) FROM item")), db.value("SELECT 1 FROM search LIMIT 1") is not None


def _root_in(db: Connection) -> str:
    return db.value("SELECT value FROM meta WHERE name = 'root'") or ".."


def _rename(store: Store, root: str | os.PathLike[str] | None, goal: Path | str) -> None:
    """Give a restored collection a name of its own, and the root where its pictures are now."""

    def job(db: Connection) -> None:
        db.run("UPDATE meta SET value = ? WHERE name = 'uuid'", (uuid.uuid4().hex,))
        if root is not None:
            there = stored_root(Path(root), goal) if isinstance(goal, Path) else str(full_path(root))
            db.run(
                "INSERT INTO meta (name, value) VALUES ('root', ?) "
                "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                (there,),
            )

    store.write(job)
    store.close()


def _dump_postgres(store: Any, copy: Path) -> tuple[int, bool]:
    with store.reading() as db:
        counts = _counts(db)
        snapshot = db.value("SELECT pg_export_snapshot()")
        _run("pg_dump", store, "-Fc", "-n", store.schema, f"--snapshot={snapshot}", "-f", copy)
    return counts


def _restore_postgres(dump: Path, address: str, schema: str) -> None:
    from diptych.collection.store.postgres import EXTENSION, PostgresStore

    store = PostgresStore(address)
    try:
        # A dump names its schema: it is restored under this name, and then renamed.
        with store.reading() as db:
            for name in (schema, store.schema):
                if db.value("SELECT 1 FROM pg_namespace WHERE nspname = ?", (name,)):
                    raise CollectionError(f"{store.place}: schema {name} exists already; name another, or a database")
        store.run_alone(EXTENSION)
        _run("pg_restore", store, "--single-transaction", "--no-owner", "--no-privileges", dump)
        if schema != store.schema:
            store.run_alone(f"ALTER SCHEMA {schema} RENAME TO {store.schema}")
    finally:
        store.close()


def _run(program: str, store: Any, *arguments: object) -> None:
    """Run a program of PostgreSQL; the password goes through the environment, where others do not see it."""
    if shutil.which(program) is None:
        raise CollectionError(f"{program} is not installed: install PostgreSQL's client programs")
    address, password = store.program_address()
    command = [program, "-d", address, *map(str, arguments)]
    environment = {**os.environ, **({"PGPASSWORD": password} if password else {})}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        raise CollectionError(f"{store.place} cannot be copied: {reason}")


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except FileNotFoundError:
        raise CollectionError(f"{path.parent} is damaged: {path.name} is missing; take another backup") from None


def _manifest_of(backup: Path) -> dict[str, Any]:
    path = backup / MANIFEST
    try:
        document: dict[str, Any] = read_json(path)
        is_ours = document["format"] == BACKUP_FORMAT and document["file"] in (DATABASE, DUMP)
    except FileNotFoundError:
        raise CollectionError(f"{backup} is no backup: {MANIFEST} is missing; `diptych backup` makes one") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise CollectionError(f"{path} cannot be read ({problem}); take another backup") from None
    if not is_ours:
        raise CollectionError(f"{path} was not written by Diptych; take another backup")
    return document
