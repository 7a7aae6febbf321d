"""Damage: found by the checksums of files, kept from being read, and mended where something is left to mend it with."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing, suppress
from pathlib import Path

from diptych.atomic_files import damage_of_note, write_json
from diptych.collection.changes.file_facts import FileFacts, FileRequest
from diptych.collection.changes.file_reading import read_files
from diptych.collection.search.live_state import LiveState
from diptych.collection.storage.change_journal import JOURNAL, ChangeJournal
from diptych.collection.storage.layout import RetrieverNames
from diptych.collection.storage.ledger import Ledger
from diptych.collection.storage.retriever_protocol import SIDES
from diptych.collection.storage.store import features_table, points_table
from diptych.data.picture_files import split_moment
from diptych.errors import CollectionBusyError

_LOCK_SECONDS = 30.0
_PICTURES_AT_ONCE = 256
# Made again from others: of removals nobody needs to know after the search files were made anew.
_EMPTIED = ("thumbnails", "removed", "picture_texts")


def find_damage(state: LiveState, *, all_bytes: bool) -> dict[str, str]:
    """Return what is wrong with the files of a collection, by name; it is kept from being read from then on.

    What is found while others write is looked at again when they have done: files of old versions go at any time.
    """
    ledger = state.store.tables.ledger
    if ledger is None:
        return {}
    wrong = _look(state, ledger, all_bytes)
    if wrong:
        with suppress(CollectionBusyError, OSError), state.place.writing(_LOCK_SECONDS):
            wrong = _look(state, ledger, all_bytes)
            if any(name.startswith("index/") for name in wrong):
                # Nothing is lost with them: searches make them anew.
                state.segment_files.forget()
            ledger.mark(_by_unit(name for name in map(_in_ledger, wrong) if name and ledger.is_needed(name)))
    return wrong


def _look(state: LiveState, ledger: Ledger, all_bytes: bool) -> dict[str, str]:
    folder, layout = state.layout.folder, state.layout
    found = {_plain(name): what for name, what in ledger.damaged(all_bytes=all_bytes).items()}
    found |= {f"index/{name}": what for name, what in state.segment_files.damaged(all_bytes=all_bytes).items()}
    found |= ledger.wrong_notes()
    if (what := ChangeJournal(folder).damage()) is not None:
        found[JOURNAL] = what
    for note in (folder / "collection.json", layout.last_run, folder / "saved.json"):
        if note.exists() and (what := damage_of_note(note)) is not None:
            found[note.name] = what
    if all_bytes:
        for database in (state.place.home / "service").glob("*.sqlite"):
            if (what := _database_damage(database)) is not None:
                found[f"service/{database.name}"] = what
    return found


def _database_damage(path: Path) -> str | None:
    """Return what SQLite finds wrong with a database: its order, not every byte."""
    # One that nobody uses is looked at without leaving a journal behind.
    used = "" if path.with_name(f"{path.name}-wal").exists() else "&immutable=1"
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro{used}", uri=True)) as connection:
            (said,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    except sqlite3.Error as problem:
        said = str(problem)
    return None if said == "ok" else f"is damaged ({said.splitlines()[0]})"


def _plain(name: str) -> str:
    """Return the name of a file of the ledger as seen from the collection."""
    return name.removeprefix("../") if name.startswith("../") else f"store/{name}"


def _in_ledger(name: str) -> str | None:
    """Return what the ledger calls a file, None if it does not know it."""
    if name.startswith("retrievers/"):
        return f"../{name}"
    return name.removeprefix("store/") if name.startswith("store/") else None


def _by_unit(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the files of the ledger by the table or the retriever that they belong to."""
    units: dict[str, list[str]] = {}
    for name in names:
        parts = name.removeprefix("../").split("/")
        unit = f"../{parts[0]}/{parts[1]}" if parts[0] == "retrievers" else parts[0]
        units.setdefault(unit, []).append(name)
    return units


def mend(state: LiveState) -> bool:
    """Drop what is damaged and can be made again, and say whether everything can be; the caller is the only writer.

    Of tables of features the points go too: both are made again from the pictures and captions. What cannot be made
    again stays refused, and a check names it.
    """
    tables, ledger = state.store.tables, state.store.tables.ledger
    if ledger is None:
        return True
    damaged = ledger.damaged()
    needed = _by_unit(name for name in damaged if ledger.is_needed(name))
    lost = {}
    ledger.mark({})
    missing = ledger.wrong_notes()
    if state.segment_files.damaged() or "index/current.json" in missing or "removed.lance" in needed:
        state.segment_files.forget()
        state.segment_files.delete_unused(())
    ChangeJournal(state.layout.folder).mend()
    if "last_run.json" in missing or damage_of_note(state.layout.last_run) == "has changed":
        write_json(state.layout.last_run, {"skipped": {}})
    for unit, names in needed.items():
        table = unit.removesuffix(".lance")
        if table in _EMPTIED or table.startswith(("points_", "features_")):
            for one in {table, *_made_of(table, state.layout.in_force)}:
                tables.drop(one)
        elif all(name.startswith(f"{unit}/_indices/") for name in names):
            state.store.drop_indexes(table)
        else:
            lost[unit] = names
    ledger.discard(name for name in damaged if not any(name in names for names in lost.values()))
    ledger.mark(lost)
    if not lost:
        state.store.prepare()
        _remake_thumbnails(state)
    return not lost


def _made_of(table: str, retrievers: Iterable[RetrieverNames]) -> set[str]:
    """Return the tables of points that were made of a table of features."""
    sharing = ((names, side) for names in retrievers for side in SIDES if features_table(names, side) == table)
    return {points_table(names, side) for names, side in sharing}


def _remake_thumbnails(state: LiveState) -> None:
    """Make the thumbnails that are missing from the pictures, as far as these are there as they were."""
    lacking = state.items().hashes("image").unique().to_pylist()
    there = set(state.store.keys("thumbnails").to_pylist())
    files: dict[Path, str] = {}
    for content in lacking:
        if content not in there:
            for item in state.items().find("content", content):
                if item.path is not None:
                    files.setdefault(split_moment(state.root.file(item.path))[0], content)
    paths = list(files)
    for start in range(0, len(paths), _PICTURES_AT_ONCE):
        read = read_files([FileRequest(path, (), None) for path in paths[start : start + _PICTURES_AT_ONCE]])
        found = [one[1] for one in read if isinstance(one, tuple)]
        found += [moment for facts in found for _, moment in facts.moments]
        state.store.add_thumbnails(
            {facts.content_hash: facts.thumbnail for facts in found if _is_wanted(facts, lacking, there)}
        )


def _is_wanted(facts: FileFacts, lacking: Iterable[str], there: set[str]) -> bool:
    return bool(facts.thumbnail) and facts.content_hash in lacking and facts.content_hash not in there


def sentences(wrong: dict[str, str]) -> list[str]:
    """Return what is said of damaged files."""
    return [f"{name} {what}; {_remedy(name)}" for name, what in wrong.items()]


def _remedy(name: str) -> str:
    table = name.removeprefix("store/").partition(".lance/")[0]
    if name.startswith("index/") or name == "last_run.json":
        return "nothing is lost, it is made anew"
    if name == JOURNAL:
        return "items are as they were, `diptych repair` drops the earlier states that it lost"
    if name.startswith("service/"):
        return "restore it from a backup, or move it away, and a new one is begun"
    if name.startswith("retrievers/"):
        return "put the retriever in again, or restore a backup"
    if table in ("items", "captions") and "/_indices/" not in name and "/_transactions/" not in name:
        return "restore the collection from a backup"
    return "`diptych repair` makes it again" if name.startswith("store/") else "restore it from a backup"
