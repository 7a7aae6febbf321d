"""Backups: a whole collection of one moment in another folder, while others write, and the way back."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from diptych.atomic_files import make_durable, read_json, write_json
from diptych.collection.browse.saved import SAVED_FILE
from diptych.collection.changes.add_report import AddProgress, Progress
from diptych.collection.changes.maintenance import Maintenance
from diptych.collection.search.live_state import LiveState
from diptych.collection.storage import saved_retrievers
from diptych.collection.storage.layout import Layout, stamp_of_layout, stored_root
from diptych.collection.storage.place import long_read
from diptych.collection.storage.store import Store, tables_of
from diptych.collection.trusted_root import check_root, is_trusted_root, trust_root
from diptych.data.folders import reject_storage_address
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

    A collection that was backed up with problems has them again.
    """

    target: Path
    root: Path
    is_root_trusted: bool
    items: int
    pictures: int
    captions: int
    problems: tuple[str, ...]


# Choosing versions takes milliseconds, copying them minutes.
_CHOICES, _COPIES = 50, 3
_NEEDED = ("items", "captions", "thumbnails")
# Where no text was read and nothing was changed there are no such tables.
_OPTIONAL = ("picture_texts", "past_items")
_FORMAT = "diptych-backup"
_MANIFEST = "backup.json"
# What learning from clicks did, what the last run could not read, saved searches and albums.
_NOTES = ("learning.jsonl", "last_run.json", "skipped.txt", "changes.jsonl", SAVED_FILE)


def backup_collection(
    folder: str | os.PathLike[str], target: str | os.PathLike[str], progress: Progress | None = None
) -> BackupReport:
    """Write a collection as it is at one moment to a new folder; others may search and write meanwhile.

    It holds the items with their captions, thumbnails, texts, features and points, the retrievers, the history of
    learning and the click log. Pictures stay where they are; search files and the service's jobs and maps are left out;
    these are made again when they are needed. The folder appears under its name when it is whole. ``progress``
    counts rows.
    """
    reject_storage_address(folder)
    reject_storage_address(target)
    source, goal = Path(os.path.abspath(folder)), Path(os.path.abspath(target))
    layout = Layout.read(source)
    if goal.is_relative_to(source):
        raise InvalidInputError(f"{target} lies in the collection itself; choose a place outside of it")
    with _new_folder(goal) as draft:
        with long_read(layout.store):
            n_items = _copy_moment(source, draft, progress)
        has_click_log = layout.click_log.is_file()
        if has_click_log:
            _copy_click_log(layout.click_log, replace(layout, folder=draft).click_log)
        files = {path.relative_to(draft).as_posix(): path for path in sorted(draft.rglob("*")) if path.is_file()}
        n_bytes = sum(path.stat().st_size for path in files.values())
        digests = {name: _digest(path) for name, path in files.items()}
        write_json(draft / _MANIFEST, {"format": _FORMAT, "files": digests})
    return BackupReport(Path(folder), goal, n_items, n_bytes, has_click_log)


def restore_collection(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    root: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> RestoreReport:
    """Make a collection of a backup in a new folder, with every file checked against the digest taken for the backup.

    Pictures are opened only below ``root``; without it the restored collection is searched without its files until it
    is opened with a root. ``progress`` counts files.
    """
    reject_storage_address(target)
    backup, goal = Path(os.path.abspath(source)), Path(os.path.abspath(target))
    if root is not None:
        check_root(goal, root)
    digests = _digests_in(backup)
    layout = Layout.read(backup)
    with _new_folder(goal) as draft:
        click_log = replace(layout, folder=draft).click_log
        if click_log.relative_to(draft).as_posix() in digests:
            _make_private_file(click_log)
        for number, (name, digest) in enumerate(digests.items(), 1):
            _copy_checked(backup, draft, name, digest)
            if progress is not None:
                progress(AddProgress(number, len(digests)))
        root_folder = layout.root_folder if root is None else Path(root)
        restored = replace(layout, folder=draft, root=stored_root(root_folder, goal))
        restored.write()
        state = LiveState(draft, saved_retrievers.load_retriever)
        maintenance = Maintenance(state)
        status, problems = maintenance.status(), maintenance.check(all_bytes=False).problems
        state.close()
    found = replace(restored, folder=goal).root_folder
    if root is not None:
        with suppress(OSError):
            trust_root(goal, found)
    return RestoreReport(
        target=goal,
        root=found,
        is_root_trusted=is_trusted_root(goal, found),
        items=status.items,
        pictures=status.pictures,
        captions=status.captions,
        problems=problems,
    )


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


def _copy_moment(folder: Path, draft: Path, progress: Progress | None) -> int:
    """Copy everything but the click log as it is at one moment; return the number of items."""
    reason = ""
    for _ in range(_COPIES):
        layout, tables = _choose_moment(folder, draft)
        copy = replace(layout, folder=draft, root=str(layout.root_folder))
        shutil.rmtree(copy.store, ignore_errors=True)
        copy.store.mkdir()
        try:
            for done, total in Store(copy.store).copy_tables(tables):
                if progress is not None:
                    progress(AddProgress(done, total))
        except NoRoomError as problem:
            raise CollectionError(f"{problem}; or choose another place for the backup") from None
        except CollectionError as problem:
            # Writers forget old versions after an hour, and a retriever that is removed takes its tables along.
            reason = str(problem)
            continue
        copy.write()
        return int(tables["items"].count_rows())
    raise CollectionError(f"{folder} cannot be copied: {reason}; try again while less is written, or verify it")


def _choose_moment(folder: Path, draft: Path) -> tuple[Layout, dict[str, Any]]:
    """Return the layout and the tables of one moment, whose retrievers and notes are copied.

    The version of the items is chosen first: what they need was written before them, so that a later version of another
    table has it, too. Only a repair drops rows and only a change of retrievers drops tables and saved retrievers, and
    both replace ``collection.json`` before: a file that has stayed the same proves that nothing was dropped.
    """
    path = str(folder / "collection.json")
    for _ in range(_CHOICES):
        stamp = stamp_of_layout(path)
        layout = Layout.read(folder)
        try:
            _copy_small_parts(layout, draft)
            tables = Store(layout.store).pinned((*_NEEDED, *_OPTIONAL, *tables_of(layout.in_force)))
            lost = [name for name in _NEEDED if name not in tables]
            if lost:
                raise CollectionError(f"table {lost[0]} is missing")
        except (CollectionError, ValueError, RuntimeError, OSError) as problem:
            # What is missing says nothing where another process has just removed a retriever and its files.
            if stamp_of_layout(path) == stamp:
                raise CollectionError(f"{folder} cannot be copied: {problem}; mend it, or restore a backup") from None
            continue
        if stamp_of_layout(path) == stamp:
            return layout, tables
    raise CollectionError(f"the retrievers of {folder} keep changing; try again when that is done")


def _copy_small_parts(layout: Layout, draft: Path) -> None:
    copy = replace(layout, folder=draft)
    shutil.rmtree(copy.retrievers, ignore_errors=True)
    for names in layout.in_force:
        shutil.copytree(layout.saved_retriever(names), copy.saved_retriever(names))
    for name in _NOTES:
        with suppress(FileNotFoundError):
            shutil.copyfile(layout.folder / name, draft / name)


def _copy_click_log(log: Path, copy: Path) -> None:
    """Copy what is committed to the database, its journal included; who writes to it is not kept waiting."""
    _make_private_file(copy)
    try:
        with (
            closing(sqlite3.connect(f"{log.absolute().as_uri()}?mode=ro", uri=True)) as source,
            closing(sqlite3.connect(copy)) as target,
        ):
            source.backup(target)
    except sqlite3.Error as problem:
        raise CollectionError(f"the click log {log} cannot be read ({problem}); move it away, or mend it") from None


def _make_private_file(path: Path) -> None:
    """Make an empty file that only this user can read, as the service does."""
    path.parent.mkdir(mode=0o700)
    path.touch(mode=0o600)


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _digests_in(backup: Path) -> dict[str, str]:
    """Return the files of a backup with their digests."""
    path = backup / _MANIFEST
    try:
        document = read_json(path)
        digests = {str(name): str(digest) for name, digest in document["files"].items()}
        is_ours = document["format"] == _FORMAT and all(_is_inside(name) for name in digests)
    except FileNotFoundError:
        raise CollectionError(f"{backup} is no backup: {_MANIFEST} is missing; `diptych backup` makes one") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise CollectionError(f"{path} cannot be read ({problem}); take another backup") from None
    if not is_ours:
        raise CollectionError(f"{path} was not written by Diptych; take another backup")
    return digests


def _is_inside(name: str) -> bool:
    return not Path(name).is_absolute() and ".." not in Path(name).parts


def _copy_checked(backup: Path, draft: Path, name: str, digest: str) -> None:
    copy = draft / name
    copy.parent.mkdir(parents=True, exist_ok=True)
    try:
        shutil.copyfile(backup / name, copy)
    except FileNotFoundError:
        raise CollectionError(f"{backup} is damaged: {name} is missing; take another backup") from None
    if _digest(copy) != digest:
        raise CollectionError(f"{backup} is damaged: {name} has changed since; take another backup")
