"""A collection as it was: its items of an earlier moment, put together beside it, to be searched and never changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from diptych.collection.search.live_state import LiveState, LoadRetriever
from diptych.collection.storage.layout import Layout, search_package
from diptych.collection.storage.rows import table_schema
from diptych.collection.storage.store import Store
from diptych.collection.storage.tables import Tables
from diptych.collection.storage.word_index import WordIndex
from diptych.errors import InvalidInputError

_PAST = ("items", "captions", "removed")


class _PastTables(Tables):
    """Tables of a moment, which go with the process, before those of the present."""

    def __init__(self, folder: Path, present: Tables) -> None:
        super().__init__(folder)
        self.ledger = None
        self._present = present

    def existing(self, name: str) -> Any:
        """Return a table of the moment, or else of the present."""
        return super().existing(name) if name in _PAST else self._present.existing(name)


class PastStore(Store):
    """The items and captions of a moment in tables of their own; everything named by content is the present store's.

    What has stayed the same since is among the present items, the rest among the past ones.
    """

    def __init__(self, folder: Path, present: Store, moment_ns: int) -> None:
        super().__init__(folder, tables=_PastTables(folder, present.tables))
        for name in _PAST:
            self.tables.created(name, table_schema(name))
        for rows in _rows_at(present, moment_ns):
            self._put(rows)
        # Words of the present tables are the writer's business.
        WordIndex(folder, self._of_moment, self.tables.committed).prepare()

    def _of_moment(self, name: str) -> Any:
        return self.tables.existing(name) if name in _PAST else None

    def _put(self, rows: Any) -> None:
        pa, pc = search_package("pyarrow"), search_package("pyarrow.compute")
        table = pa.Table.from_batches([rows])
        owners = pc.list_parent_indices(rows["caption_ids"])
        texts = {"id": pc.list_flatten(rows["caption_ids"]), "item_id": rows["id"].take(owners)}
        texts["text"] = pc.list_flatten(rows["captions"])
        self.add_rows("captions", pa.table(texts, schema=table_schema("captions")))
        self.add_rows("items", table.select(table_schema("items").names))


def _rows_at(store: Store, moment_ns: int) -> Iterator[Any]:
    pa, pc = search_package("pyarrow"), search_package("pyarrow.compute")
    seen = pa.chunked_array([], pa.int64())
    for rows in store.all_rows():
        held = rows.filter(pc.less_equal(rows["updated_ns"], moment_ns))
        seen = pa.chunked_array([*seen.chunks, held["added_ns"]], pa.int64())
        yield held
    for rows in store.past_items.at(moment_ns):
        # A writer killed before its change leaves a past row of an item that is still there.
        held = rows.filter(pc.invert(pc.is_in(rows["added_ns"], seen)))
        first = pc.index_in(pc.unique(held["added_ns"]), held["added_ns"])
        held = held.take(first)
        seen = pa.chunked_array([*seen.chunks, held["added_ns"]], pa.int64())
        yield held


class PastState(LiveState):
    """What a collection knew at a moment; searches compare everything, and nothing can be changed.

    ``fingerprint`` is that of the retriever in force then; where it is not stored any more, it is the present one.
    """

    is_past = True

    def __init__(
        self,
        collection: Path,
        load_retriever: LoadRetriever,
        moment_ns: int,
        fingerprint: str,
        root: Path | None = None,
    ) -> None:
        self._moment_ns, self._fingerprint = moment_ns, fingerprint
        # It goes with the last one who uses it.
        self._scratch = TemporaryDirectory(prefix="diptych-past-", ignore_cleanup_errors=True)
        super().__init__(collection, load_retriever, root=root)

    @contextmanager
    def writing(self, *, mending: bool = False, freeing: bool = False, wait: float | None = None) -> Iterator[None]:
        """Refuse."""
        yield from ()
        raise InvalidInputError("this is the collection as it was; open it without as_of to change it")

    def _open_tables(self) -> tuple[Store, Path]:
        folder = Path(self._scratch.name)
        present = Store(self.layout.store)
        return PastStore(folder / "store", present, self._moment_ns), folder / "index"

    def _in_force(self, layout: Layout) -> Layout:
        then = layout.with_fingerprint(self._fingerprint)
        return layout if then is None else layout.activated(then)
