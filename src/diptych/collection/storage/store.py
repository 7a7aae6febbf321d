"""The durable tables: a thin layer over LanceDB, which only this module and those of words and of texts know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from diptych.arrays import AnyArray
from diptych.collection.storage.clear_errors import check_room, with_clear_errors
from diptych.collection.storage.item import Item
from diptych.collection.storage.layout import RetrieverNames, search_package
from diptych.collection.storage.retriever_protocol import SIDES, PointKind, Side
from diptych.collection.storage.rows import (
    WrittenItems,
    has_many_deleted,
    has_many_files,
    item_of_row,
    items_table,
    large_batches,
    membership,
    rows_with_captions,
    table_schema,
    vector_column,
    vectors_of,
)
from diptych.collection.storage.tables import PastItems, PictureTexts, Tables
from diptych.collection.storage.word_index import WordIndex, lacks_words
from diptych.errors import CollectionError, NoRoomError

# The last one is made when something is first changed.
_FIXED_TABLES = ("items", "captions", "thumbnails", "removed", "picture_texts", "past_items")
# Looked up by these: below a few thousand rows the engine reads them all as fast.
_INDEXED = {
    "items": ("updated_ns", "added_ns"),
    "captions": ("item_id",),
    "removed": ("removed_ns",),
    "past_items": ("gone_ns",),
}
_INDEXED_FROM = 10_000
# Their rows are named by nothing alone.
_OF_NO_KEY = ("removed", "past_items")


def features_table(names: RetrieverNames, side: Side) -> str:
    """Return the table of features, named by the encoder that made them."""
    return f"features_{side}_{names.image_fingerprint if side == 'image' else names.text_fingerprint}"


def points_table(names: RetrieverNames, kind: PointKind) -> str:
    """Return the table of points, named by the retriever that made them; a row of regions has those of a picture."""
    return f"points_{kind}_{names.fingerprint}"


def tables_of(retrievers: Iterable[RetrieverNames]) -> dict[str, Side]:
    """Return the tables of some retrievers with their sides."""
    tables: dict[str, Side] = {}
    for names in retrievers:
        tables |= {table(names, side): side for side in SIDES for table in (features_table, points_table)}
        tables[points_table(names, "region")] = "image"
    return tables


_KEYS_AT_ONCE = 1000
_ROWS_AT_ONCE = 1 << 14
# Beyond this many, and this share of its rows, reading the whole table is faster than asking for rows.
_MANY_KEYS = 4000
_MANY_ROWS = 1 / 32
_READ_ATTEMPTS = 3
# Looking how worn the tables are takes longer than a commit.
_COMMITS_BETWEEN_LOOKS = 4
_MANY_CHANGED = 100


@with_clear_errors
class Store:
    """The tables of a collection.

    ``items`` decides what exists: captions, thumbnails and vectors are written before the items that use them and are
    named by id or content, so that whatever a killed writer leaves behind is unused rows, never half an item. Each call
    that writes is one commit of one table; those of items are durable when the call returns, with all before them, and
    the others when :meth:`Tables.acknowledge` does.
    """

    def __init__(self, folder: Path, *, tables: Tables | None = None) -> None:
        self.folder = folder
        self.tables = tables or Tables(folder)
        self.words = WordIndex(folder, self.tables.existing, self.tables.committed)
        self.picture_texts = PictureTexts(self.tables)
        self.past_items = PastItems(self.tables)
        self._written = WrittenItems()
        # What was done to items, for whoever notes it.
        self.changes: Counter[str] = Counter()

    def prepare(self) -> None:
        """Make the tables of an empty collection; only the writer calls this."""
        with self.tables.together():
            for name in _FIXED_TABLES[:-1]:
                self.tables.created(name, table_schema(name))
            self.words.prepare()

    def version(self) -> int:
        """Return a number that changes whenever items are added, changed or removed, by whichever process."""
        return int(self.tables.needed("items").version)

    def count_items(self) -> int:
        """Return how many items there are."""
        return int(self.tables.needed("items").count_rows())

    def forget_past(self, until_ns: int) -> None:
        """Delete items that were changed or removed until a time."""
        self.past_items.forget(until_ns)

    def version_folder(self) -> Path:
        """Return the folder that gets a new file with every commit to the items."""
        return self.folder / "items.lance" / "_versions"

    def changed_items(self, since_ns: int, limit: int) -> list[Item] | None:
        """Return the items that were added or changed after a time, with their captions; None where there are more."""
        for _ in range(_READ_ATTEMPTS):
            version, written = self.version(), self._written
            if written.are_all(since_ns, version):
                return [item for item in written.items if item.updated_ns > since_ns]
            items = self.tables.needed("items")
            rows = []
            if items.count_rows():
                found = items.search().where(f"updated_ns > {since_ns}").limit(limit + 1).to_arrow()
                if len(found) > limit:
                    return None
                rows = found.to_pylist()
            try:
                texts = self._captions_of([row["id"] for row in rows if row["caption_ids"]])
                changed = [item_of_row(row, [texts[name] for name in row["caption_ids"]]) for row in rows]
            except KeyError:
                # Another process replaced captions and cleaned up between the two reads.
                continue
            self._written = WrittenItems(max([since_ns, *(item.updated_ns for item in changed)]), version)
            return changed
        raise CollectionError(f"captions are missing in {self.folder}; restore the collection from a backup")

    def _captions_of(self, ids: Sequence[str]) -> dict[str, str]:
        texts: dict[str, str] = {}
        for start in range(0, len(ids), _KEYS_AT_ONCE):
            wanted = membership("item_id", ids[start : start + _KEYS_AT_ONCE])
            found = self.tables.needed("captions").search().where(wanted).select(["id", "text"]).to_arrow()
            texts.update(zip(found["id"].to_pylist(), found["text"].to_pylist(), strict=True))
        return texts

    def all_rows(self) -> Iterator[Any]:
        """Yield every item of one version in the order of addition, in batches of rows with the texts of captions."""
        with self.tables.kept():
            yield from self._all_rows()

    def _all_rows(self) -> Iterator[Any]:
        pa, pc = search_package("pyarrow"), search_package("pyarrow.compute")
        items = self.tables.pinned("items")
        orders = items.search().select(["added_ns"]).with_row_id(True).to_arrow()
        rows = orders["_rowid"].to_numpy()[np.argsort(orders["added_ns"].to_numpy(), kind="stable")].tolist()
        captions = self.tables.needed("captions").search().select(["id", "text"]).to_batches()
        # Captions are held until their items come, most often at once.
        held = table_schema("captions").empty_table().select(["id", "text"])
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            taken = items.take_row_ids(rows[start : start + _ROWS_AT_ONCE]).to_arrow().sort_by("added_ns")
            wanted = taken["caption_ids"].combine_chunks().flatten()
            missing = wanted.filter(pc.invert(pc.is_in(wanted, held["id"])))
            while len(missing):
                found = next(captions, None)
                if found is None:
                    raise CollectionError(f"captions are missing in {self.folder}; restore it from a backup")
                held = pa.concat_tables([held, pa.Table.from_batches([found])])
                missing = missing.filter(pc.invert(pc.is_in(missing, found["id"])))
            texts = held["text"].take(pc.index_in(wanted, held["id"]))
            held = held.filter(pc.invert(pc.is_in(held["id"], wanted))).combine_chunks()
            yield from rows_with_captions(taken, texts)

    def removed_orders(self, since_ns: int) -> dict[int, int]:
        """Return the items that were to be removed after a time: when they were added, and when they went."""
        removed = self.tables.needed("removed")
        if not removed.count_rows():
            return {}
        rows = removed.search().where(f"removed_ns > {since_ns}").to_arrow()
        return dict(zip(rows["added_ns"].to_pylist(), rows["removed_ns"].to_pylist(), strict=True))

    def present_orders(self, orders: Sequence[int]) -> set[int]:
        """Return which of some items, named by their time of addition, are there."""
        if not orders:
            return set()
        wanted = f"added_ns IN ({', '.join(map(str, orders))})"
        return set(
            self.tables.needed("items").search().where(wanted).select(["added_ns"]).to_arrow()["added_ns"].to_pylist()
        )

    def add_rows(self, name: str, rows: Any) -> None:
        """Append rows of Arrow to a fixed table, whose columns they have."""
        if len(rows):
            check_room(self.folder, rows.nbytes)
            self.tables.needed(name).add(rows)
            self.tables.committed(name)
            self.changes.update(added=len(rows) if name == "items" else 0)

    def put_items(self, items: Sequence[Item], replaced: Sequence[Item] = ()) -> None:
        """Put items in the place of those with the same ids, and append the others, in one commit.

        ``replaced`` are those whose places they take, which are kept for a while.
        """
        rows = items_table(items)
        check_room(self.folder, 2 * rows.nbytes)
        self.past_items.keep(replaced, {item.id: item.updated_ns for item in items})
        version = self.version()
        if items and replaced:
            merge = self.tables.needed("items").merge_insert("id")
            merge.when_matched_update_all().when_not_matched_insert_all().execute(rows)
            self.tables.committed("items")
            self.changes.update(added=len(items) - len(replaced), changed=len(replaced))
        else:
            self.add_rows("items", rows)
        self._written = self._written.followed_by(items, rows, version, self.version())

    def delete_items(self, items: Sequence[Item], removed_ns: int) -> None:
        """Remove items in one commit; it is noted before, for those who know the items already."""
        if items:
            pa = search_package("pyarrow")
            orders = [item.added_ns for item in items]
            noted = {"added_ns": orders, "removed_ns": [removed_ns] * len(orders)}
            self.add_rows("removed", pa.table(noted, schema=table_schema("removed")))
            self.past_items.keep(items, removed_ns)
            self.tables.needed("items").delete(f"added_ns IN ({', '.join(map(str, orders))})")
            self.tables.committed("items")
            self.changes.update(removed=len(items))

    def add_captions(self, captions: Sequence[tuple[str, str, str]]) -> None:
        """Append captions: (id, id of the item, text)."""
        if captions:
            schema = table_schema("captions")
            arrays = dict(zip(schema.names, map(list, zip(*captions, strict=True)), strict=True))
            self.add_rows("captions", search_package("pyarrow").table(arrays, schema=schema))

    def add_thumbnails(self, thumbnails: Mapping[str, bytes]) -> None:
        """Append thumbnails, named by the content of their pictures."""
        if thumbnails:
            columns = {"key": list(thumbnails), "jpeg": list(thumbnails.values())}
            self.add_rows("thumbnails", search_package("pyarrow").table(columns, schema=table_schema("thumbnails")))

    def thumbnail_places(self) -> dict[str, int]:
        """Return where the thumbnails lie now, by key, for :meth:`thumbnails_at`."""
        rows = self.tables.needed("thumbnails").search().select(["key"]).with_row_id(True).to_arrow()
        return dict(zip(rows["key"].to_pylist(), rows["_rowid"].to_pylist(), strict=True))

    def thumbnails_at(self, places: Sequence[int]) -> list[tuple[str, bytes]]:
        """Return keys and thumbnails at some places; after a change of the table other ones or none."""
        if not len(places):
            return []
        try:
            rows = self.tables.needed("thumbnails").take_row_ids(list(places)).select(["key", "jpeg"]).to_arrow()
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
            check_room(self.folder, rows.nbytes)
            self.tables.created(name, rows.schema).add(rows)
            self.tables.committed(name)

    def keys(self, name: str) -> Any:
        """Return the keys of a table, the ids of captions, as a column; an empty one when there is no such table."""
        table, key = self.tables.existing(name), _key_column(name)
        if table is None:
            return search_package("pyarrow").chunked_array([], "string")
        return table.search().select([key]).to_arrow()[key]

    def table_version(self, name: str) -> int:
        """Return a number that changes whenever a table does, by whichever process; 0 when there is none."""
        table = self.tables.existing(name)
        return 0 if table is None else int(table.version)

    def vector_form(self, name: str) -> tuple[int, np.dtype[Any]] | None:
        """Return the width and the kind of numbers of a table of vectors, None when there is none."""
        table = self.tables.existing(name)
        if table is None:
            return None
        column = table.schema.field("vector").type
        return int(column.list_size), np.dtype(column.value_type.to_pandas_dtype())

    def present_keys(self, name: str, keys: Sequence[str]) -> list[str]:
        """Return those of ``keys`` that a table of vectors holds."""
        table = self.tables.existing(name)
        if table is None:
            return []
        if len(keys) > _MANY_KEYS:
            there, wanted = self.keys(name), search_package("pyarrow").array(keys)
            return list(there.filter(search_package("pyarrow.compute").is_in(there, wanted)).to_pylist())
        present: list[str] = []
        for start in range(0, len(keys), _KEYS_AT_ONCE):
            wanted = membership("key", keys[start : start + _KEYS_AT_ONCE])
            present += table.search().where(wanted).select(["key"]).to_arrow()["key"].to_pylist()
        return present

    def read_vectors(self, name: str, keys: Sequence[str] | None = None) -> Iterator[tuple[list[str], AnyArray]]:
        """Yield the vectors of a table in batches, all of them or those of some keys."""
        table = self.tables.existing(name)
        if table is None or (keys is not None and not len(keys)):
            return
        if keys is None or (len(keys) > _MANY_KEYS and len(keys) > _MANY_ROWS * table.count_rows()):
            with self.tables.kept():
                whole = map(vectors_of, table.search().select(["key", "vector"]).to_batches())
                yield from whole if keys is None else _chosen(whole, set(keys))
            return
        for start in range(0, len(keys), _KEYS_AT_ONCE):
            wanted = membership("key", keys[start : start + _KEYS_AT_ONCE])
            yield from map(vectors_of, table.search().where(wanted).select(["key", "vector"]).to_batches())

    def vectors_by_key(self, name: str, keys: Sequence[str]) -> dict[str, AnyArray]:
        """Return the vectors of some keys, as far as a table has them."""
        return {key: row for found, rows in self.read_vectors(name, keys) for key, row in zip(found, rows, strict=True)}

    def delete_rows(self, name: str, keys: Sequence[str]) -> None:
        """Remove rows of a table by key, captions by id."""
        table = self.tables.existing(name)
        for start in range(0, 0 if table is None else len(keys), _KEYS_AT_ONCE):
            table.delete(membership(_key_column(name), keys[start : start + _KEYS_AT_ONCE]))
            self.tables.committed(name)

    def vector_tables(self) -> list[str]:
        """Return the names of all tables of vectors."""
        return sorted(self.tables.names().difference(_FIXED_TABLES))

    def forget_handles(self) -> None:
        """Open tables of vectors anew: another process may have dropped them, and perhaps made them again."""
        self.tables.forget_handles(*_FIXED_TABLES)

    def drop(self, name: str) -> None:
        """Remove a whole table of vectors."""
        self.tables.drop(name)

    def drop_indexes(self, name: str) -> None:
        """Remove the engine's indexes of a table; :meth:`compact` makes them again."""
        table = self.tables.needed(name)
        for index in table.list_indices():
            table.drop_index(index.name)
        self.tables.committed(name)

    def pinned(self, names: Iterable[str]) -> dict[str, Any]:
        """Return tables for :meth:`copy_tables` as they are now, one after the other; what is not there is left out."""
        found = ((name, self.tables.pinned(name)) for name in names)
        return {name: table for name, table in found if table is not None}

    def copy_tables(self, tables: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
        """Fill an empty store with the rows of others' tables; yield how many are there, and how many there will be."""
        done, total = 0, sum(table.count_rows() for table in tables.values())
        for name, table in tables.items():
            copy = self.tables.created(name, table.schema)
            for rows in large_batches(name, table):
                copy.add(rows)
                done += len(rows)
                yield done, total
            self.tables.committed(name)
        for name in tables:
            self._index_columns(name, self.tables.needed(name))
        self.prepare()

    def compact(self, n_changed: int = 0, *, everything: bool = False) -> None:
        """Join the small files that many commits leave behind, drop deleted rows, forget versions that nobody reads.

        ``everything`` does so however few there are.
        """
        self.words.prepare()
        if not (everything or n_changed >= _MANY_CHANGED) and self.version() % _COMMITS_BETWEEN_LOOKS:
            return
        for name in (*_FIXED_TABLES, *self.vector_tables()):
            table = self.tables.existing(name)
            if table is None:
                continue
            # What is stored is stored; joining files can wait for room.
            with suppress(NoRoomError):
                if everything or self._is_worn(name, table):
                    self.tables.tidy(name, table, everything=everything)
            self._index_columns(name, table)
        self.tables.acknowledge()

    def _is_worn(self, name: str, table: Any) -> bool:
        """Return True if a table needs the engine's care, which takes seconds for a million rows."""
        stats = table.stats()
        is_large = stats["num_rows"] >= _INDEXED_FROM
        if has_many_deleted(stats) or lacks_words(table) or self.tables.has_many_versions(name, is_large=is_large):
            return True
        can_join = is_large and name not in _OF_NO_KEY
        return has_many_files(stats) and not (can_join and self.tables.join_newest(name, table, _key_column(name)))

    def _index_columns(self, name: str, table: Any) -> None:
        if table.count_rows() >= _INDEXED_FROM:
            there = {column for index in table.list_indices() for column in index.columns}
            for column in _INDEXED.get(name, ("key",)):
                if column not in there:
                    table.create_index(column, config=search_package("lancedb.index").BTree())
                    self.tables.committed(name)


def _chosen(batches: Iterable[tuple[list[str], AnyArray]], keys: set[str]) -> Iterator[tuple[list[str], AnyArray]]:
    for found, vectors in batches:
        rows = [row for row, key in enumerate(found) if key in keys]
        if rows:
            yield [found[row] for row in rows], vectors[rows]


def _key_column(name: str) -> str:
    return {"captions": "id", "items": "added_ns"}.get(name, "key")
