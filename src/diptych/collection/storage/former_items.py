"""Items as they were before they were changed or removed, kept for a while: what an earlier state is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from diptych.collection.storage.clear_errors import with_clear_errors
from diptych.collection.storage.item import Item
from diptych.collection.storage.layout import search_package
from diptych.collection.storage.rows import item_rows, table_schema
from diptych.collection.storage.tables import Tables

_NAME = "former"


@with_clear_errors
class FormerItems:
    """The table of former items: whole rows with the texts of their captions, and the time until which they held.

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
        """Let go of what held until a time at most."""
        table = self._tables.existing(_NAME)
        if table is not None and table.count_rows(f"gone_ns <= {until_ns}"):
            table.delete(f"gone_ns <= {until_ns}")
            self._tables.committed(_NAME)

    def _rows(self, condition: str | None) -> Iterator[Any]:
        table = self._tables.existing(_NAME)
        if table is not None:
            asked = table.search() if condition is None else table.search().where(condition)
            yield from asked.to_batches()
