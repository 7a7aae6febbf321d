"""Damage: found by the checksums of files, kept from being read, mended where it can be, and gone back before."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from diptych.atomic_files import damage_of, damage_of_note, write_json
from diptych.collection.changes.file_facts import FileFacts, FileRequest, read_files
from diptych.collection.search.live_state import LiveState
from diptych.collection.storage.change_journal import JOURNAL, ChangeJournal
from diptych.collection.storage.layout import Layout, RetrieverNames, search_package
from diptych.collection.storage.ledger import Ledger, version_of
from diptych.collection.storage.place import write_lock
from diptych.collection.storage.retriever_protocol import SIDES
from diptych.collection.storage.store import features_table, points_table
from diptych.errors import CollectionBusyError, CollectionError

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
        with suppress(CollectionBusyError, OSError), state.lock(_LOCK_SECONDS):
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
        for database in (state.folder / "service").glob("*.sqlite"):
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
    if not state.root.is_trusted:
        return
    lacking = state.items().hashes("image").unique().to_pylist()
    there = set(state.store.keys("thumbnails").to_pylist())
    files: dict[Path, str] = {}
    for content in lacking:
        if content not in there:
            for item in state.items().find("content", content):
                if item.path is not None:
                    files.setdefault(state.root.picture(item.path), content)
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


# Without these there is no collection; everything else is made again, or is a list of earlier states.
_NEEDED = ("items", "captions")
_END_OF_MANIFEST = b"LANC"
# A digit that comes before a name in a manifest is its length.
_DATA_FILE = re.compile(rb"[01]{24}[0-9a-f]{26}\.lance")


def go_back(folder: Path, write_wait: float = 0.0) -> list[str]:
    """Bring every table of a collection back to its newest version that is whole; return what was lost, in words.

    Items and captions go back to versions that belong together. Other tables of which nothing is whole go, and so do
    the files of searches: `diptych repair` makes them again. What is taken out of force is kept in the folder
    ``gone-back``, for whoever wants to look at it.
    """
    layout = Layout.read(folder)
    with write_lock(folder / "write.lock", write_wait):
        return _GoingBack(layout).run()


class _GoingBack:
    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._ledger = Ledger(layout.store)
        self._kept = layout.folder / "gone-back" / f"{datetime.now(UTC):%Y%m%dT%H%M%S}"
        self._database = search_package("lancedb").connect(str(layout.store))
        self._lost: list[str] = []

    def run(self) -> list[str]:
        known = self._ledger.known_files()
        tables = sorted(path.stem for path in self._layout.store.glob("*.lance"))
        newest = {name: self._newest_whole(name, known) for name in tables}
        for name in _NEEDED:
            if newest.get(name) is None:
                self._put_back()
                raise CollectionError(f"no version of {name} in {self._layout.store} can be read; restore a backup")
        chosen = {**newest, **self._together(known)}
        for name, version in chosen.items():
            self._take_out(name, version)
        for path in (self._layout.store / "ledger.jsonl", self._layout.store / "damaged.json"):
            self._move(path)
        shutil.rmtree(self._layout.index, ignore_errors=True)
        for name in sorted(name for name, version in chosen.items() if version is not None):
            table = self._database.open_table(name)
            for index in table.list_indices():
                # Torn ones are not noticed by reading the table.
                table.drop_index(index.name)
        return self._lost

    def _newest_whole(self, name: str, known: dict[str, Any]) -> int | None:
        """Return the newest version of a table that can be read; those after it are moved out of the way."""
        return next((version for version, _ in self._whole_versions(name, known, lambda _: True)), None)

    def _whole_versions(
        self, name: str, known: dict[str, Any], read: Callable[[Any], Any]
    ) -> Iterator[tuple[int, Any]]:
        for manifest, version in self._manifests(name):
            if self._is_whole(name, manifest, known):
                try:
                    # The engine opens the newest first, whatever is asked for.
                    table = self._database.open_table(name)
                    table.checkout(version)
                    table.to_arrow()
                    yield version, read(table)
                    continue
                except (ValueError, RuntimeError, OSError):
                    pass
            self._move(manifest)

    def _manifests(self, name: str) -> list[tuple[Path, int]]:
        versions = self._layout.store / f"{name}.lance" / "_versions"
        # The engine's note of the newest version; it does without.
        for hint in versions.glob("*hint*"):
            self._move(hint)
        found = [(path, version_of(path.name)) for path in versions.glob("*.manifest")]
        return sorted(((path, number) for path, number in found if number), key=lambda one: -one[1])

    def _is_whole(self, name: str, manifest: Path, known: dict[str, Any]) -> bool:
        """Compare the files of a version with their checksums, as far as these are known."""
        base, content = self._layout.store / f"{name}.lance", manifest.read_bytes()
        if not content.endswith(_END_OF_MANIFEST):
            # The engine takes one full of zeros for an empty table.
            return False
        files = [manifest, *(base / "data" / file.decode() for file in set(_DATA_FILE.findall(content)))]
        for file in files:
            noted = known.get(file.relative_to(self._layout.store).as_posix())
            if not file.exists() or (noted is not None and damage_of(file, noted) is not None):
                return False
        return True

    def _together(self, known: dict[str, Any]) -> dict[str, int]:
        """Return the newest versions of items and captions in which no item lacks a caption."""
        captions = list(self._whole_versions("captions", known, lambda table: set(_column(table, "id"))))
        for version, needed in self._whole_versions("items", known, _caption_ids):
            for other, there in captions:
                if needed <= there:
                    return {"items": version, "captions": other}
        self._put_back()
        raise CollectionError(f"no items in {self._layout.store} have all of their captions; restore a backup")

    def _take_out(self, name: str, version: int | None) -> None:
        """Let a version be the newest of a table; without one the table goes."""
        base = self._layout.store / f"{name}.lance"
        if version is None:
            self._move(base)
            self._lost.append(f"table {name} could not be read and is made anew, as far as it can be")
            return
        manifests = self._manifests(name)
        newest = max([self._newest_known(name), *(number for _, number in manifests)])
        for manifest, number in manifests:
            if number > version:
                self._move(manifest)
            elif number == version and newest > version:
                when = datetime.fromtimestamp(manifest.stat().st_mtime, UTC)
                self._lost.append(
                    f"table {name} is as it was in version {version} of {newest}, on {when:%Y-%m-%d %H:%M:%S} UTC; "
                    "what was changed later is lost"
                )

    def _newest_known(self, name: str) -> int:
        """Return the newest version that was there, as far as that is known."""
        moved = (self._kept / "store" / f"{name}.lance" / "_versions").glob("*.manifest")
        return max([self._ledger.acknowledged(f"{name}.lance") or 0, *(version_of(path.name) or 0 for path in moved)])

    def _move(self, path: Path) -> None:
        if path.is_dir():
            for inner in list(path.iterdir()):
                self._move(inner)
            path.rmdir()
        elif path.exists():
            target = self._kept / path.relative_to(self._layout.folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            path.rename(target)

    def _put_back(self) -> None:
        """Leave everything as it was found."""
        for moved in sorted(self._kept.rglob("*")):
            if moved.is_file():
                moved.rename(self._layout.folder / moved.relative_to(self._kept))


def _column(table: Any, name: str) -> list[Any]:
    return list(table.search().select([name]).to_arrow()[name].to_pylist())


def _caption_ids(table: Any) -> set[str]:
    return {caption for ids in _column(table, "caption_ids") for caption in ids or ()}
