"""The stored features of the pictures that a log is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from diptych.arrays import AnyArray, IntArray
from diptych.collection.collection import Collection
from diptych.errors import InvalidInputError


@dataclass(frozen=True, eq=False)
class LogGallery:
    """Features of items, and for each name in the log its row, −1 where the collection has no picture of that name.

    ``ids`` are the items of the rows.
    """

    ids: tuple[str, ...]
    features: AnyArray
    row_of: IntArray

    @classmethod
    def of(cls, collection: Collection, names: Sequence[str], *, retriever: str | None = None) -> LogGallery:
        """Return the features of items that are named by id or path; what the collection no longer has is left out."""
        ids = {name: collection[name].id for name in names if name in collection}
        found, features = collection.features("image", list(dict.fromkeys(ids.values())), retriever)
        if not found:
            raise InvalidInputError(
                "no item of the log is a picture of this collection; pass a log with ids or paths of its items"
            )
        row_of_id = {item_id: row for row, item_id in enumerate(found)}
        rows = [row_of_id.get(ids.get(name, ""), -1) for name in names]
        return cls(tuple(found), features, np.array(rows, dtype=np.int64))
