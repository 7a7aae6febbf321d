"""Loading: points that were made elsewhere become the items that adding would make."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from diptych.collection.indexing.loading import load_points
from diptych.collection.item import Record
from diptych.errors import InvalidInputError
from tests.doubles import ToyRetriever

from .conftest import Indexed

TOY = ToyRetriever()


def columns(n_rows: int = 30, first: int = 0) -> dict[str, Any]:
    captions = [f"boat {number % 5}" for number in range(first, first + n_rows)]
    return {
        "id": [f"item {number}" for number in range(first, first + n_rows)],
        "caption": captions,
        "labels": [["boat"] if number % 2 else [] for number in range(n_rows)],
        "metadata": [{"year": 2000 + number} for number in range(n_rows)],
        "text_point": TOY.encode_texts(captions),
    }


def said(indexed: Indexed) -> list[tuple[object, ...]]:
    return [(item.id, item.captions, item.labels, item.metadata) for item in indexed.items().values()]


@pytest.mark.parametrize("form", ["numpy", "arrow", "parquet"])
def test_what_is_loaded_is_what_would_be_added(indexed: Indexed, tmp_path: Path, form: str) -> None:
    given = columns()
    table = pa.table(given | {"text_point": list(given["text_point"])})
    pq.write_table(table, tmp_path / "items.parquet", row_group_size=7)
    batches: Any = {"numpy": given, "arrow": table.to_batches(max_chunksize=8), "parquet": tmp_path / "items.parquet"}
    told: list[int] = []
    assert load_points(indexed.store, indexed.root, indexed.sources(), batches[form], told.append) == 30
    assert told == [30]
    loaded = said(indexed)
    indexed.check_whole()
    indexed.changes.remove([item.id for item in indexed.items().values()])
    rows = zip(given["id"], given["caption"], given["labels"], given["metadata"], strict=True)
    indexed.changes.add([Record(None, [text], labels, fields, name) for name, text, labels, fields in rows], None)
    assert said(indexed) == loaded


def test_pictures_need_no_files(indexed: Indexed) -> None:
    points = np.eye(2, 8, dtype=np.float32)
    given = {
        "id": ["a", "b", "c"],
        "path": [str(indexed.folder / "deep/a.jpg"), "/elsewhere/b.jpg", None],
        "content_hash": ["0a" * 32, "0b" * 32, None],
        "image_point": [*points, None],
        "caption": [None, "of b", "alone"],
        "text_point": [None, *points],
    }
    assert load_points(indexed.store, indexed.root, indexed.sources(), [given]) == 3
    assert [item.path for item in indexed.items().values()] == ["deep/a.jpg", "/elsewhere/b.jpg", None]


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("id", "item 1", "'item 1' shares its id"),
        ("id", "there", "'there' shares its id"),
        ("id", None, "no id"),
        ("caption", " \t", "'item 2' has an empty caption"),
        ("caption", None, "'item 2' has no caption and no picture"),
        ("labels", ["x", " "], "'item 2' has an empty label"),
        ("metadata", {"a": float("nan")}, "JSON"),
        ("metadata", "[1]", "'item 2' has metadata"),
        ("metadata", '{"a": 1e999}', "'item 2' has metadata"),
        ("text_point", [np.nan] * 8, "'item 2' has numbers that are not finite"),
        ("text_point", None, "'item 2' has only one of caption and text_point"),
        ("text_point", [1.0] * 7, "text_point"),
    ],
)
def test_a_refusal_names_the_first_and_stores_nothing_of_its_group(
    indexed: Indexed, column: str, value: object, reason: str
) -> None:
    indexed.changes.add(Record(captions=["it was there"], id="there"), None)
    given = {name: list(values) for name, values in columns(4).items()}
    given[column][2] = value
    before = {"id": ["before"], "caption": ["a"], "text_point": TOY.encode_texts(["a"])}
    with pytest.raises(InvalidInputError, match=rf"{reason}.* \(the 1 items before are stored\)"):
        load_points(indexed.store, indexed.root, indexed.sources(), [before, given])
    assert set(indexed.items()) == {"there", "before"}


def test_points_of_further_models_would_be_lacking(indexed: Indexed) -> None:
    indexed.add_model(ToyRetriever(1))
    with pytest.raises(InvalidInputError, match="further retrievers would be lacking: 'toy 1'"):
        load_points(indexed.store, indexed.root, indexed.sources(), columns())
