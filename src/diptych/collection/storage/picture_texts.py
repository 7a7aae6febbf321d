"""What is written in the pictures of a collection, a row for each content that has been read, with or without words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from diptych.collection.storage.clear_errors import check_room, with_clear_errors
from diptych.collection.storage.layout import search_package
from diptych.collection.storage.rows import membership, table_schema
from diptych.collection.storage.tables import Tables
from diptych.encoders.image.text_in_pictures import PictureText, PictureWord

_TABLE = "picture_texts"
_KEYS_AT_ONCE = 1000


@with_clear_errors
class PictureTexts:
    """The table of texts in pictures, which collections of former versions get with the first text."""

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
        for start in range(0, 0 if table is None else len(keys), _KEYS_AT_ONCE):
            rows = table.search().where(membership("key", keys[start : start + _KEYS_AT_ONCE])).to_arrow()
            found |= {row["key"]: _text_of_row(row) for row in rows.to_pylist()}
        return found


def _text_of_row(row: dict[str, Any]) -> PictureText:
    boxes = np.round(np.array(row["corners"], dtype=np.float64).reshape(-1, 4, 2), 4).tolist()
    pairs = zip(row["words"], boxes, strict=True)
    return PictureText(row["text"], tuple(PictureWord(word, tuple(map(tuple, box))) for word, box in pairs))
