"""The tables of the engine, what is committed to them acknowledged; two small ones: past items, texts in pictures."""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from diptych.atomic_files import damage_of
from diptych.collection.storage.clear_errors import check_room, engine_says, with_clear_errors
from diptych.collection.storage.item import Item
from diptych.collection.storage.layout import RetrieverNames, search_package
from diptych.collection.storage.ledger import DROPPED, Ledger, saved_unit
from diptych.collection.storage.place import is_being_read, long_read
from diptych.collection.storage.rows import item_rows, membership, table_schema
from diptych.encoders.image.picture_parts import PictureText, PictureWord
from diptych.errors import CollectionError

# Items come after everything that they need; each text that was read counts at once.
_ACKNOWLEDGING = ("items", "picture_texts")
# A change of retrievers writes many times before anything is acknowledged.
_UNWRITTEN_COMMITS = 32
_FOREVER = timedelta(days=36500)
# A version that is none any more is there for whoever reads it already, and for those who said that it takes long.
_READ_FOR, _READ_LONG_FOR, _TICK = timedelta(minutes=1), timedelta(hours=1), timedelta(seconds=1)
# Looking for the newest one goes over all, and the ledger knows the files of each. The engine forgets none without
# joining files and indexes, which takes longer for many rows.
_MANY_VERSIONS, _MANY_OF_LARGE = 100, 400
# Of how many of the newest rows files are joined, if that many are, and how many bytes these have at most.
_NEWEST_ROWS, _FEWEST_JOINED, _NEWEST_BYTES = 4096, 8, 64 << 20
# The engine would keep what it knows of every version, up to a gigabyte; a service that writes all day has many.
_METADATA_BYTES = 1 << 20


class Tables:
    """The tables of a folder by their names.

    Commits to the items are acknowledged at once, with everything before them, the others by :meth:`acknowledge`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ledger: Ledger | None = Ledger(folder)
        self._open: dict[str, Any] = {}
        self._index_stamps: dict[str, int] = {}
        self._shared: Any = None
        self._unwritten_commits = 0
        self._are_together = False

    def names(self) -> set[str]:
        """Return the names of all tables."""
        return {path.stem for path in self.folder.glob("*.lance")}

    def needed(self, name: str) -> Any:
        """Return a table that every collection has."""
        table = self.existing(name)
        if table is None:
            raise CollectionError(f"table {name} is missing in {self.folder}; restore it from a backup")
        return table

    def existing(self, name: str) -> Any:
        """Return a table, None where there is none; one that has lost its newest version is refused."""
        if self.ledger is not None:
            self.ledger.check_marks(unit_of(name))
        if name not in self._open or self._index_stamp(name) != self._index_stamps[name]:
            known = None if self.ledger is None else self.ledger.acknowledged(unit_of(name))
            versions = self.folder / f"{name}.lance" / "_versions"
            is_here = versions.is_dir() and any(versions.iterdir())
            if not is_here and known is not None:
                raise _unreadable(f"table {name} is missing in {self.folder}")
            if not is_here:
                return None
            table, newest = self._opened(name)
            if known is not None and newest < known:
                raise _unreadable(f"version {known} of table {name} in {self.folder} is lost, the newest is {newest}")
            self._open[name] = table
        return self._open[name]

    def kept(self) -> AbstractContextManager[None]:
        """Let the versions that are there stay for an hour, for reading that takes long; writers are not held up."""
        return long_read(self.folder)

    def pinned(self, name: str) -> Any:
        """Return a table that stays as it is now, whatever is written to it, for its one user."""
        self._open.pop(name, None)
        table = self.existing(name)
        if table is not None:
            table.checkout(table.version)
            self._open.pop(name)
        return table

    def _opened(self, name: str) -> tuple[Any, int]:
        # Before it is read: whatever comes between is found to have changed.
        self._index_stamps[name] = self._index_stamp(name)
        try:
            table = self._database(name).open_table(name)
            return table, int(table.version)
        except (ValueError, RuntimeError, OSError) as problem:
            raise _unreadable(f"table {name} in {self.folder} cannot be read ({engine_says(problem)})") from None

    def _database(self, name: str) -> Any:
        """Return a connection for a table; with indexes it has one of its own, and another one when they have changed.

        The engine would go on to keep what it has read of the indexes before. Every read asks for the newest version:
        another process may have written since.
        """
        if self._shared is not None and not self._index_stamps[name]:
            return self._shared
        engine = search_package("lancedb")
        session = engine.Session(metadata_cache_size_bytes=_METADATA_BYTES)
        database = engine.connect(str(self.folder), read_consistency_interval=timedelta(0), session=session)
        if not self._index_stamps[name]:
            self._shared = database
        return database

    def _index_stamp(self, name: str) -> int:
        """Return what is another number when indexes of a table have come or gone."""
        try:
            return os.stat(self.folder / f"{name}.lance" / "_indices").st_mtime_ns
        except FileNotFoundError:
            return 0

    def created(self, name: str, schema: Any) -> Any:
        """Return a table, which is made if there is none."""
        table = self.existing(name)
        if table is None:
            # A writer killed while it created the table leaves a folder without any version, which is no table.
            shutil.rmtree(self.folder / f"{name}.lance", ignore_errors=True)
            self._index_stamps[name] = 0
            table = self._open[name] = self._database(name).create_table(name, schema=schema)
            self.committed(name)
        return table

    def forget_handles(self, *kept: str) -> None:
        """Open tables anew: another process may have dropped them, and perhaps made them again."""
        self._open = {name: table for name, table in self._open.items() if name in kept}

    def drop(self, name: str) -> None:
        """Remove a whole table."""
        self._open.pop(name, None)
        table = self.folder / f"{name}.lance"
        if self.ledger is not None:
            self.ledger.forget(unit_of(name))
        if table.exists():
            # No table's name, in one step: a writer killed while its files go leaves no half of one.
            table.rename(self.folder / f"{uuid.uuid4().hex}{DROPPED}")
        for left in self.folder.glob(f"*{DROPPED}"):
            shutil.rmtree(left, ignore_errors=True)

    def committed(self, name: str) -> None:
        """Note what was committed, for :meth:`acknowledge`."""
        self._note(unit_of(name))
        if (name in _ACKNOWLEDGING and not self._are_together) or self._unwritten_commits >= _UNWRITTEN_COMMITS:
            self.acknowledge()

    @contextmanager
    def together(self) -> Iterator[None]:
        """Acknowledge what is committed in the block at its end, where nobody is told of a part of it."""
        self._are_together = True
        try:
            yield
        finally:
            self._are_together = False
        self.acknowledge()

    def acknowledge(self) -> None:
        """Let everything that was committed survive whatever comes; only the writer calls this."""
        if self.ledger is not None and (self._unwritten_commits or self.ledger.has_new_notes()):
            self.ledger.write()
            self._unwritten_commits = 0

    def has_many_versions(self, name: str, *, is_large: bool) -> bool:
        """Return True if there are many versions of a table that are not read any more."""
        until = time.time() - _READ_FOR.total_seconds()
        with os.scandir(self.folder / unit_of(name) / "_versions") as files:
            unread = sum(file.stat().st_mtime < until for file in files)
        return unread > (_MANY_OF_LARGE if is_large else _MANY_VERSIONS)

    def join_newest(self, name: str, table: Any, key: str) -> bool:
        """Join the files of the newest rows, and say whether that was possible; only the writer calls this.

        Where the engine joins files, it writes all indexes anew, and all rows besides. Rows that are put in the place
        of themselves come to lie in one file in one commit, and what they were in is no longer read.
        """
        if not self._are_newest_whole(name):
            return False
        newest = table.search().select([key]).with_row_id(True).offset(max(0, table.count_rows() - _NEWEST_ROWS))
        rows = newest.limit(_NEWEST_ROWS).to_arrow()["_rowid"].to_numpy()
        files = rows >> 32
        if len(np.unique(files)) < _FEWEST_JOINED:
            return False
        # The first one may be large, with most of its rows further ahead.
        joined = table.take_row_ids(rows[files > files.min()].tolist()).to_arrow()
        if len(joined[key].unique()) < len(joined):
            return False
        try:
            table.merge_insert(key).when_matched_update_all().execute(joined)
        except (ValueError, RuntimeError, OSError):
            # One of them is among older rows as well, perhaps.
            return False
        self.committed(name)
        return True

    def _are_newest_whole(self, name: str) -> bool:
        """Return True if the newest files of a table are as they were written: joined, damage could not be told."""
        known, left = {} if self.ledger is None else self.ledger.known_files(), _NEWEST_BYTES
        for file in reversed([file for file in known if file.startswith(f"{unit_of(name)}/data/")]):
            left -= known[file][0]
            if left < 0:
                break
            if damage_of(self.folder / file, known[file]) is not None:
                return False
        return True

    def tidy(self, name: str, table: Any, *, everything: bool) -> None:
        """Join the small files of a table, and forget versions that nobody reads; only the writer calls this."""
        if self.ledger is not None and self.ledger.damaged(unit_of(name)):
            # Joined with others, damage could not be told from what is whole.
            return
        if self.ledger is not None:
            check_room(self.folder, self.ledger.size_of(unit_of(name)) // 2)
        # Every version is acknowledged before any is forgotten.
        table.optimize(cleanup_older_than=_FOREVER)
        self.committed(name)
        self.acknowledge()
        now = datetime.now(UTC)
        ages = [now - version["timestamp"].astimezone(UTC) for version in table.list_versions()]
        kept_for = oldest_read(ages, _READ_LONG_FOR if is_being_read(self.folder) else _READ_FOR) + _TICK
        # The caller is the only writer, so files that belong to no version are left from a killed one.
        table.optimize(cleanup_older_than=kept_for, delete_unverified=everything)
        self.committed(name)
        self.acknowledge()
        if self.ledger is not None:
            self.ledger.tidied(unit_of(name))

    def keep_retriever(self, names: RetrieverNames) -> None:
        """Note the files of a saved retriever, for :meth:`acknowledge`."""
        if self.ledger is not None and self.ledger.acknowledged(saved_unit(names.saved)) is None:
            self._note(saved_unit(names.saved))

    def forget_retriever(self, saved: str) -> None:
        """Note that a saved retriever will be deleted."""
        if self.ledger is not None:
            self.ledger.forget(saved_unit(saved))

    def _note(self, unit: str) -> None:
        if self.ledger is not None:
            self.ledger.note(unit)
            self._unwritten_commits += 1


def oldest_read(ages: Iterable[timedelta], read_for: timedelta) -> timedelta:
    """Return the age of the oldest version that was the newest within a time: somebody may have begun to read it.

    Where that still is the newest, which is never forgotten, all that are older than the time may go.

    >>> oldest_read([timedelta(minutes=age) for age in (0, 5, 30)], timedelta(minutes=1))
    datetime.timedelta(seconds=300)
    >>> oldest_read([timedelta(minutes=age) for age in (5, 30)], timedelta(minutes=1))
    datetime.timedelta(seconds=60)
    """
    newest, *others = sorted(ages)
    return min((age for age in others if age > read_for), default=read_for) if newest <= read_for else read_for


def unit_of(name: str) -> str:
    """Return what the ledger calls a table."""
    return f"{name}.lance"


def _unreadable(what: str) -> CollectionError:
    return CollectionError(f"{what}; `diptych repair` rebuilds it if it can be, or restore a backup")


_NAME = "past_items"


@with_clear_errors
class PastItems:
    """The table of changed and removed items: whole rows with their captions, and the time until which they held.

    Rows are written before the change that they precede; where that never came, an item is found here and among the
    others.
    """

    def __init__(self, tables: Tables) -> None:
        self.folder = tables.folder
        self._tables = tables

    def keep(self, items: Sequence[Item], gone_ns: Mapping[str, int] | int) -> None:
        """Keep items that are about to be changed or removed, at a time for all or for each id."""
        if items:
            pa = search_package("pyarrow")
            times = [gone_ns if isinstance(gone_ns, int) else gone_ns[item.id] for item in items]
            rows = pa.Table.from_batches([item_rows(items)]).append_column("gone_ns", pa.array(times, pa.int64()))
            self._tables.created(_NAME, table_schema(_NAME)).add(rows.select(table_schema(_NAME).names))
            self._tables.committed(_NAME)

    def at(self, moment_ns: int) -> Iterator[Any]:
        """Yield what held at a time and does no more, as batches of rows."""
        yield from self._rows(f"updated_ns <= {moment_ns} AND gone_ns > {moment_ns}")

    def contents(self) -> Iterator[Any]:
        """Yield all rows, for what they were made of."""
        yield from self._rows(None)

    def forget(self, until_ns: int) -> None:
        """Delete what held until a time at most."""
        table = self._tables.existing(_NAME)
        if table is not None and table.count_rows(f"gone_ns <= {until_ns}"):
            table.delete(f"gone_ns <= {until_ns}")
            self._tables.committed(_NAME)

    def _rows(self, condition: str | None) -> Iterator[Any]:
        table = self._tables.existing(_NAME)
        if table is not None:
            asked = table.search() if condition is None else table.search().where(condition)
            with self._tables.kept():
                yield from asked.to_batches()


_TABLE = "picture_texts"
_KEYS_AT_ONCE = 1000


@with_clear_errors
class PictureTexts:
    """The table of texts in pictures, made with the first text."""

    def __init__(self, tables: Tables) -> None:
        self.folder = tables.folder
        self._tables = tables

    def __len__(self) -> int:
        table = self._tables.existing(_TABLE)
        return 0 if table is None else int(table.count_rows())

    def add(self, texts: Mapping[str, PictureText]) -> None:
        """Append what is written in pictures, named by their content."""
        columns = {
            "key": list(texts),
            "text": [found.text for found in texts.values()],
            "words": [[word.text for word in found.words] for found in texts.values()],
            "corners": [np.ravel([word.corners for word in found.words]) for found in texts.values()],
        }
        schema = table_schema(_TABLE)
        rows = search_package("pyarrow").table(columns, schema=schema)
        check_room(self.folder, rows.nbytes)
        self._tables.created(_TABLE, schema).add(rows)
        self._tables.committed(_TABLE)

    def get(self, keys: Sequence[str]) -> dict[str, PictureText]:
        """Return what is written in some pictures, as far as they have been read."""
        table = self._tables.existing(_TABLE)
        found: dict[str, PictureText] = {}
        # In most collections no picture has been read.
        if table is None or not table.count_rows():
            return found
        for start in range(0, len(keys), _KEYS_AT_ONCE):
            rows = table.search().where(membership("key", keys[start : start + _KEYS_AT_ONCE])).to_arrow()
            found |= {row["key"]: _text_of_row(row) for row in rows.to_pylist()}
        return found


def _text_of_row(row: dict[str, Any]) -> PictureText:
    boxes = np.round(np.array(row["corners"], dtype=np.float64).reshape(-1, 4, 2), 4).tolist()
    pairs = zip(row["words"], boxes, strict=True)
    return PictureText(row["text"], tuple(PictureWord(word, tuple(map(tuple, box))) for word, box in pairs))
