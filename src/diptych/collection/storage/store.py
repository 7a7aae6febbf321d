"""The durable tables: a thin layer over LanceDB, which only this module and that of the word index know."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np

from diptych.arrays import AnyArray
from diptych.collection.storage.engine import engine_package
from diptych.collection.storage.item import Item
from diptych.collection.storage.layout import RetrieverNames, search_package
from diptych.collection.storage.place import TableCopies
from diptych.collection.storage.retriever_protocol import SIDES, Side
from diptych.collection.storage.rows import (
    item_of_row,
    items_table,
    rows_with_captions,
    table_schema,
    vector_column,
    vectors_of,
)
from diptych.collection.storage.word_index import index_words, lacks_words, word_query
from diptych.errors import CollectionError

_FIXED_TABLES = ("items", "captions", "thumbnails", "removed")
# Looked up by these: below a few thousand rows the engine reads them all as fast.
_INDEXED = {"items": ("updated_ns", "added_ns"), "captions": ("item_id",), "removed": ("removed_ns",)}
_INDEXED_FROM = 10_000


def features_table(names: RetrieverNames, side: Side) -> str:
    """Return the table of features, named by the encoder that made them."""
    return f"features_{side}_{names.image_fingerprint if side == 'image' else names.text_fingerprint}"


def points_table(names: RetrieverNames, side: Side) -> str:
    """Return the table of points, named by the retriever that made them."""
    return f"points_{side}_{names.fingerprint}"


def tables_of(retrievers: Iterable[RetrieverNames]) -> dict[str, Side]:
    """Return the tables of some retrievers with their sides."""
    return {
        table(names, side): side for names in retrievers for side in SIDES for table in (features_table, points_table)
    }


_DROPPED = ".dropped"
_KEYS_AT_ONCE = 1000
_ROWS_AT_ONCE = 1 << 14
# Beyond this many, reading the whole table is faster than asking for rows.
_MANY_KEYS = 4000
_READ_ATTEMPTS = 3
_MANY_FRAGMENTS = 40
# Looking how worn the tables are takes longer than a commit.
_COMMITS_BETWEEN_LOOKS = 4
_MANY_CHANGED = 100
_MANY_DELETED = 1000
_BYTES_AT_ONCE = 1 << 27


class Store:
    """The tables of a collection.

    ``items`` decides what exists: captions, thumbnails and vectors are written before the items that use them and are
    named by id or content, so that whatever a killed writer leaves behind is unused rows, never half an item. Each call
    that writes is one commit of one table; it is durable when the call returns. Where the folder is a copy, ``copies``
    fetches tables that it lacks and sends every commit on.
    """

    def __init__(self, folder: Path, copies: TableCopies | None = None) -> None:
        self._folder = folder
        self._copies = copies
        # Every read asks for the newest version: another process may have written since.
        self._database = engine_package().connect(str(folder), read_consistency_interval=timedelta(0))
        self._tables: dict[str, Any] = {}

    def prepare(self) -> None:
        """Make the tables of an empty collection; only the writer calls this."""
        for name in _FIXED_TABLES:
            self._created(name, table_schema(name))
        self.prepare_words()

    def prepare_words(self) -> None:
        """Let the engine find captions by their words, as this version cuts them; only the writer calls this."""
        if index_words(self._table("captions")):
            self._committed("captions")

    def captions_with(self, words: str, limit: int) -> tuple[list[str], list[float]]:
        """Return the ids of the captions with the most of some words by BM25, and their scores, best first."""
        found = self._table("captions").search(word_query(words)).select(["id", "_score"]).limit(limit).to_arrow()
        return found["id"].to_pylist(), found["_score"].to_pylist()

    def version(self) -> int:
        """Return a number that changes whenever items are added, changed or removed, by whichever process."""
        return int(self._table("items").version)

    def version_folder(self) -> Path:
        """Return the folder that gets a new file with every commit to the items."""
        return self._folder / "items.lance" / "_versions"

    def changed_items(self, since_ns: int, limit: int) -> list[Item] | None:
        """Return the items that were added or changed after a time, with their captions; None where there are more."""
        for _ in range(_READ_ATTEMPTS):
            items = self._table("items")
            found = items.search().where(f"updated_ns > {since_ns}").limit(limit + 1).to_arrow()
            if len(found) > limit:
                return None
            rows = found.to_pylist()
            try:
                texts = self._captions_of([row["id"] for row in rows])
                return [item_of_row(row, [texts[name] for name in row["caption_ids"]]) for row in rows]
            except KeyError:
                # Another process replaced captions and cleaned up between the two reads.
                continue
        raise CollectionError(f"captions are missing in {self._folder}; restore the collection from a backup")

    def _captions_of(self, ids: Sequence[str]) -> dict[str, str]:
        texts: dict[str, str] = {}
        for start in range(0, len(ids), _KEYS_AT_ONCE):
            wanted = _membership("item_id", ids[start : start + _KEYS_AT_ONCE])
            found = self._table("captions").search().where(wanted).select(["id", "text"]).to_arrow()
            texts.update(zip(found["id"].to_pylist(), found["text"].to_pylist(), strict=True))
        return texts

    def all_rows(self) -> Iterator[Any]:
        """Yield every item of one version in the order of addition, in batches of rows with the texts of captions."""
        pa, pc = search_package("pyarrow"), search_package("pyarrow.compute")
        items = self._database.open_table("items")
        items.checkout(items.version)
        orders = items.search().select(["added_ns"]).with_row_id(True).to_arrow()
        rows = orders["_rowid"].to_numpy()[np.argsort(orders["added_ns"].to_numpy(), kind="stable")].tolist()
        captions = self._table("captions").search().select(["id", "text"]).to_batches()
        # Captions are held until their items come, most often at once.
        held = table_schema("captions").empty_table().select(["id", "text"])
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            taken = items.take_row_ids(rows[start : start + _ROWS_AT_ONCE]).to_arrow().sort_by("added_ns")
            wanted = taken["caption_ids"].combine_chunks().flatten()
            missing = wanted.filter(pc.invert(pc.is_in(wanted, held["id"])))
            while len(missing):
                found = next(captions, None)
                if found is None:
                    raise CollectionError(f"captions are missing in {self._folder}; restore it from a backup")
                held = pa.concat_tables([held, pa.Table.from_batches([found])])
                missing = missing.filter(pc.invert(pc.is_in(missing, found["id"])))
            texts = held["text"].take(pc.index_in(wanted, held["id"]))
            held = held.filter(pc.invert(pc.is_in(held["id"], wanted))).combine_chunks()
            yield from rows_with_captions(taken, texts)

    def removed_orders(self, since_ns: int) -> dict[int, int]:
        """Return the items that were to be removed after a time: when they were added, and when they went."""
        rows = self._table("removed").search().where(f"removed_ns > {since_ns}").to_arrow()
        return dict(zip(rows["added_ns"].to_pylist(), rows["removed_ns"].to_pylist(), strict=True))

    def present_orders(self, orders: Sequence[int]) -> set[int]:
        """Return which of some items, named by their time of addition, are there."""
        if not orders:
            return set()
        wanted = f"added_ns IN ({', '.join(map(str, orders))})"
        return set(self._table("items").search().where(wanted).select(["added_ns"]).to_arrow()["added_ns"].to_pylist())

    def add_items(self, items: Sequence[Item]) -> None:
        """Append items that are not there yet."""
        self.add_rows("items", items_table(items))

    def add_rows(self, name: str, rows: Any) -> None:
        """Append rows of Arrow to a fixed table, whose columns they have."""
        if len(rows):
            self._table(name).add(rows)
            self._committed(name)

    def replace_items(self, items: Sequence[Item]) -> None:
        """Put items in the place of those with the same ids, and append the others, in one commit."""
        if items:
            table = items_table(items)
            merge = self._table("items").merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
            merge.execute(table)
            self._committed("items")

    def delete_items(self, items: Sequence[Item], removed_ns: int) -> None:
        """Remove items in one commit; it is noted before, for those who know the items already."""
        if items:
            pa = search_package("pyarrow")
            orders = [item.added_ns for item in items]
            noted = {"added_ns": orders, "removed_ns": [removed_ns] * len(orders)}
            self.add_rows("removed", pa.table(noted, schema=table_schema("removed")))
            self._table("items").delete(f"added_ns IN ({', '.join(map(str, orders))})")
            self._committed("items")

    def add_captions(self, captions: Sequence[tuple[str, str, str]]) -> None:
        """Append captions: (id, id of the item, text)."""
        if captions:
            schema = table_schema("captions")
            arrays = dict(zip(schema.names, map(list, zip(*captions, strict=True)), strict=True))
            self.add_rows("captions", search_package("pyarrow").table(arrays, schema=schema))

    def keep_originals(self, files: Mapping[str, Path]) -> None:
        """Keep picture files by their content hashes, where others cannot read them in their folders."""
        if self._copies is not None and files:
            self._copies.keep_originals(files)

    def add_thumbnails(self, thumbnails: Mapping[str, bytes]) -> None:
        """Append thumbnails, named by the content of their pictures."""
        if thumbnails:
            columns = {"key": list(thumbnails), "jpeg": list(thumbnails.values())}
            self.add_rows("thumbnails", search_package("pyarrow").table(columns, schema=table_schema("thumbnails")))

    def thumbnail_places(self) -> dict[str, int]:
        """Return where the thumbnails lie now, by key, for :meth:`thumbnails_at`."""
        rows = self._table("thumbnails").search().select(["key"]).with_row_id(True).to_arrow()
        return dict(zip(rows["key"].to_pylist(), rows["_rowid"].to_pylist(), strict=True))

    def thumbnails_at(self, places: Sequence[int]) -> list[tuple[str, bytes]]:
        """Return keys and thumbnails at some places; after a change of the table other ones or none."""
        if not len(places):
            return []
        try:
            rows = self._table("thumbnails").take_row_ids(list(places)).select(["key", "jpeg"]).to_arrow()
        except (ValueError, RuntimeError, OSError):
            # Joining files has taken the places away.
            return []
        return list(zip(rows["key"].to_pylist(), rows["jpeg"].to_pylist(), strict=True))

    def add_vectors(self, name: str, keys: Sequence[str], vectors: Any) -> None:
        """Append vectors, an array or a column, to a table, which the first ones create: float32, or bytes of codes."""
        if len(keys):
            pa = search_package("pyarrow")
            column = vector_column(vectors) if isinstance(vectors, np.ndarray) else vectors
            rows = pa.table({"key": pa.array(keys, pa.string()), "vector": column})
            self._created(name, rows.schema).add(rows)
            self._committed(name)

    def keys(self, name: str) -> Any:
        """Return the keys of a table, the ids of captions, as a column; an empty one when there is no such table."""
        table, key = self._existing(name), _key_column(name)
        if table is None:
            return search_package("pyarrow").chunked_array([], "string")
        return table.search().select([key]).to_arrow()[key]

    def table_version(self, name: str) -> int:
        """Return a number that changes whenever a table does, by whichever process; 0 when there is none."""
        table = self._existing(name)
        return 0 if table is None else int(table.version)

    def vector_form(self, name: str) -> tuple[int, np.dtype[Any]] | None:
        """Return the width and the kind of numbers of a table of vectors, None when there is none."""
        table = self._existing(name)
        if table is None:
            return None
        column = table.schema.field("vector").type
        return int(column.list_size), np.dtype(column.value_type.to_pandas_dtype())

    def present_keys(self, name: str, keys: Sequence[str]) -> list[str]:
        """Return those of ``keys`` that a table of vectors holds."""
        table = self._existing(name)
        if table is None:
            return []
        if len(keys) > _MANY_KEYS:
            there, wanted = self.keys(name), search_package("pyarrow").array(keys)
            return list(there.filter(search_package("pyarrow.compute").is_in(there, wanted)).to_pylist())
        present: list[str] = []
        for start in range(0, len(keys), _KEYS_AT_ONCE):
            wanted = _membership("key", keys[start : start + _KEYS_AT_ONCE])
            present += table.search().where(wanted).select(["key"]).to_arrow()["key"].to_pylist()
        return present

    def read_vectors(self, name: str, keys: Sequence[str] | None = None) -> Iterator[tuple[list[str], AnyArray]]:
        """Yield the vectors of a table in batches, all of them or those of some keys."""
        table = self._existing(name)
        if table is None or (keys is not None and not len(keys)):
            return
        if keys is None:
            yield from map(vectors_of, table.search().select(["key", "vector"]).to_batches())
            return
        if len(keys) > _MANY_KEYS:
            wanted_keys = set(keys)
            for found, vectors in map(vectors_of, table.search().select(["key", "vector"]).to_batches()):
                chosen = [row for row, key in enumerate(found) if key in wanted_keys]
                if chosen:
                    yield [found[row] for row in chosen], vectors[chosen]
            return
        for start in range(0, len(keys), _KEYS_AT_ONCE):
            wanted = _membership("key", keys[start : start + _KEYS_AT_ONCE])
            yield from map(vectors_of, table.search().where(wanted).select(["key", "vector"]).to_batches())

    def vectors_by_key(self, name: str, keys: Sequence[str]) -> dict[str, AnyArray]:
        """Return the vectors of some keys, as far as a table has them."""
        return {key: row for found, rows in self.read_vectors(name, keys) for key, row in zip(found, rows, strict=True)}

    def delete_rows(self, name: str, keys: Sequence[str]) -> None:
        """Remove rows of a table by key, captions by id."""
        table = self._existing(name)
        for start in range(0, 0 if table is None else len(keys), _KEYS_AT_ONCE):
            table.delete(_membership(_key_column(name), keys[start : start + _KEYS_AT_ONCE]))
            self._committed(name)

    def vector_tables(self) -> list[str]:
        """Return the names of all tables of vectors."""
        there = {path.stem for path in self._folder.glob("*.lance")}
        return sorted((there if self._copies is None else there.union(self._copies.tables())).difference(_FIXED_TABLES))

    def drop(self, name: str) -> None:
        """Remove a whole table of vectors."""
        self._tables.pop(name, None)
        table = self._folder / f"{name}.lance"
        if table.exists():
            # No table's name, in one step: a writer killed while its files go leaves no half of one.
            table.rename(self._folder / f"{uuid.uuid4().hex}{_DROPPED}")
        if self._copies is not None:
            self._copies.dropped(name)
        for left in self._folder.glob(f"*{_DROPPED}"):
            shutil.rmtree(left, ignore_errors=True)

    def write_next_versions(self) -> None:
        """Write a further version of every table, so that whoever was about to write that one cannot any more."""
        for name in (*_FIXED_TABLES, *self.vector_tables()):
            table = self._existing(name)
            if table is not None:
                table.checkout(table.version)
                table.restore()
                self._committed(name)

    def pinned(self, names: Iterable[str]) -> dict[str, Any]:
        """Return tables for :meth:`copy_tables` as they are now, one after the other; what is not there is left out."""
        tables = {}
        for name in names:
            self._tables.pop(name, None)
            if (table := self._existing(name)) is not None:
                table.checkout(table.version)
                tables[name] = self._tables.pop(name)
        return tables

    def copy_tables(self, tables: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
        """Fill an empty store with the rows of others' tables; yield how many are there, and how many there will be."""
        done, total = 0, sum(table.count_rows() for table in tables.values())
        for name, table in tables.items():
            copy = self._created(name, table.schema)
            for rows in _large_batches(name, table):
                copy.add(rows)
                done += len(rows)
                yield done, total
        self.prepare()
        for name in tables:
            self._index_columns(name, self._table(name))

    def compact(self, n_changed: int = 0, *, everything: bool = False) -> None:
        """Join the small files that many commits leave behind, drop deleted rows, forget versions older than an hour.

        ``everything`` does so however few there are, and keeps versions for a minute: enough for a reader to finish.
        Words that a former version has indexed are indexed as this one cuts them.
        """
        self.prepare_words()
        if not (everything or n_changed >= _MANY_CHANGED) and self.version() % _COMMITS_BETWEEN_LOOKS:
            return
        kept_for = timedelta(minutes=1) if everything else timedelta(hours=1)
        for name in (*_FIXED_TABLES, *self.vector_tables()):
            table = self._existing(name)
            if table is None:
                continue
            if everything or _is_worn(table.stats()) or lacks_words(table):
                if self._copies is not None:
                    # Every version is sent before any is forgotten.
                    table.optimize()
                    self._committed(name)
                # The caller is the only writer, so files that belong to no version are left from a killed one.
                table.optimize(cleanup_older_than=kept_for, delete_unverified=everything)
                self._committed(name)
                if self._copies is not None:
                    self._copies.tidied(name, kept_for)
            self._index_columns(name, table)

    def _committed(self, name: str) -> None:
        if self._copies is not None:
            self._copies.committed(name)

    def _index_columns(self, name: str, table: Any) -> None:
        if table.count_rows() >= _INDEXED_FROM:
            there = {column for index in table.list_indices() for column in index.columns}
            for column in _INDEXED.get(name, ("key",)):
                if column not in there:
                    table.create_index(column, config=search_package("lancedb.index").BTree())
                    self._committed(name)

    def _table(self, name: str) -> Any:
        table = self._existing(name)
        if table is None:
            raise CollectionError(f"table {name} is missing in {self._folder}; restore it from a backup")
        return table

    def _created(self, name: str, schema: Any) -> Any:
        table = self._existing(name)
        if table is None:
            # A writer killed while it created the table leaves a folder without any version, which is no table.
            shutil.rmtree(self._folder / f"{name}.lance", ignore_errors=True)
            table = self._tables[name] = self._database.create_table(name, schema=schema)
        return table

    def _existing(self, name: str) -> Any:
        if name not in self._tables:
            versions = self._folder / f"{name}.lance" / "_versions"
            is_here = versions.is_dir() and any(versions.iterdir())
            if not is_here and (self._copies is None or not self._copies.fetch(name)):
                return None
            try:
                self._tables[name] = self._database.open_table(name)
            except (ValueError, RuntimeError, OSError) as problem:
                raise CollectionError(
                    f"table {name} in {self._folder} cannot be read ({problem}); restore it from a backup"
                ) from None
        return self._tables[name]


def _key_column(name: str) -> str:
    return "id" if name == "captions" else "key"


def _large_batches(name: str, table: Any) -> Iterator[Any]:
    """Yield the rows of a table in batches of many bytes: each will be one commit and one file."""
    pa, held = search_package("pyarrow"), []
    try:
        for batch in table.search().to_batches():
            held.append(batch)
            if sum(each.nbytes for each in held) >= _BYTES_AT_ONCE:
                yield pa.Table.from_batches(held)
                held = []
    except (ValueError, RuntimeError, OSError) as problem:
        raise CollectionError(f"table {name} cannot be read to its end ({problem})") from None
    if held:
        yield pa.Table.from_batches(held)


def _is_worn(stats: dict[str, Any]) -> bool:
    """Say whether a table has many small files, or many rows that were deleted and are still read over."""
    fragments = stats["fragment_stats"]
    written = fragments["num_fragments"] * fragments["lengths"]["mean"]
    deleted = written - stats["num_rows"]
    return bool(fragments["num_small_fragments"] >= _MANY_FRAGMENTS or deleted >= max(_MANY_DELETED, written / 2))


def _membership(column: str, values: Iterable[str]) -> str:
    quoted = ", ".join("'" + value.replace("'", "''") + "'" for value in values)
    return f"{column} IN ({quoted})"
