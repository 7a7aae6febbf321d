from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from diptych.collection import Collection, Record
from diptych.errors import InvalidInputError
from tests.doubles import ToyRetriever, wrong_points

_TOY = ToyRetriever()
_RECORDS = [
    Record(
        captions=[f"a boat {number % 5} on lake {number % 3}"],
        labels=["boat", f"lake {number % 3}"] if number % 4 else [],
        metadata={"year": 2000 + number % 6, "place": {"city": "Genève"}} if number % 5 else {},
        id=f"item {number}",
    )
    for number in range(30)
]


def points_column(points: np.ndarray) -> Any:
    return pa.FixedSizeListArray.from_arrays(pa.array(points.ravel()), points.shape[1])


def columns_of(records: list[Record]) -> dict[str, Any]:
    captions = [record.captions[0] for record in records if record.captions]
    return {
        "id": pa.array([record.id for record in records], pa.string()),
        "caption": pa.array(captions),
        "labels": pa.array([record.labels for record in records], pa.list_(pa.string())),
        "metadata": pa.array([json.dumps(record.metadata) for record in records]),
        "text_point": points_column(_TOY.encode_texts(captions)),
    }


@pytest.fixture
def loaded(tmp_path: Path) -> Iterator[Collection]:
    with Collection.create(tmp_path / "loaded", ToyRetriever(), load_retriever=ToyRetriever.load) as made:
        yield made


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    """A collection of one item, which every refusal leaves as it was."""
    folder = tmp_path_factory.mktemp("refusing") / "loaded"
    with Collection.create(folder, ToyRetriever(), load_retriever=ToyRetriever.load) as made:
        made.add([Record(captions=["it was there"], id="there")])
        yield made


def known(collection: Collection) -> list[tuple[Any, ...]]:
    return [(item.id, item.captions, item.labels, item.metadata, item.path, item.size) for item in collection]


def say_the_same(loaded: Collection, collection: Collection) -> None:
    """Compare all that can be asked: items by name and in order, points, words, fields, counts and suggestions."""
    assert known(loaded) == known(collection)
    assert wrong_points(loaded) == wrong_points(collection) == []
    assert [loaded[item.id] for item in loaded] == list(loaded)
    for options in ({}, {"filter": "year>=2003 and label:boat"}, {"hybrid": True}, {"hybrid": 1.0}):
        answers = [each.search("boat 3 lake", k=30, target="texts", **options) for each in (collection, loaded)]
        assert len(answers[0]) > 1
        assert [(a.id, a.caption, a.score) for a in answers[1]] == [(a.id, a.caption, a.score) for a in answers[0]]
    assert loaded.facets() == collection.facets()
    assert loaded.facets("year=2001") == collection.facets("year=2001")
    assert loaded.suggestions("lake") == collection.suggestions("lake") != []
    assert loaded.verify() == collection.verify()


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("diptych.collection.indexing.loading.ROWS_AT_ONCE", 8)


def test_what_is_loaded_is_what_would_be_added(collection: Collection, loaded: Collection) -> None:
    collection.add(_RECORDS)
    told: list[int] = []
    # Two chunks of one table, then a record batch.
    tables = [pa.table(columns_of(part)) for part in (_RECORDS[:7], _RECORDS[7:20])]
    batches = [pa.concat_tables(tables), pa.record_batch(columns_of(_RECORDS[20:]))]
    assert loaded.load(batches, progress=told.append) == 30
    assert told == [30]
    say_the_same(loaded, collection)


@pytest.mark.usefixtures("small_groups")
@pytest.mark.parametrize("n_before", [0, 3, 12])
def test_what_was_there_is_joined_with_what_is_loaded(
    collection: Collection, loaded: Collection, n_before: int
) -> None:
    for each in (collection, loaded):
        each.add(_RECORDS[:n_before])
        if n_before:
            each.update("item 1", captions=["a boat of lake 7"])
            each.remove("item 2")
    collection.add(_RECORDS[n_before:])
    told: list[int] = []
    with Collection.open(loaded.folder, load_retriever=ToyRetriever.load) as reader:

        def look(n_stored: int) -> None:
            told.append(n_stored)
            assert len(reader) == n_stored + max(0, n_before - 1)

        assert loaded.load(pa.table(columns_of(_RECORDS[n_before:])), progress=look) == 30 - n_before
        assert told == [*range(8, 30 - n_before, 8), 30 - n_before]
        say_the_same(loaded, collection)
        say_the_same(reader, collection)


@pytest.mark.usefixtures("small_groups")
def test_an_interruption_keeps_what_was_acknowledged(loaded: Collection) -> None:
    told: list[int] = []

    def interrupt(n_stored: int) -> None:
        told.append(n_stored)
        if n_stored == 16:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        loaded.load(pa.table(columns_of(_RECORDS)), progress=interrupt)
    assert told == [8, 16]
    n_stored = len(loaded)
    assert [item.id for item in loaded] == [record.id for record in _RECORDS[:n_stored]]
    assert n_stored in (16, 24)
    assert loaded.verify().is_whole
    assert loaded.load(pa.table(columns_of(_RECORDS[n_stored:]))) == 30 - n_stored
    assert [item.id for item in loaded] == [record.id for record in _RECORDS]


def test_pictures_whose_files_are_elsewhere(loaded: Collection) -> None:
    root = loaded.root
    digests = [hashlib.sha256(name.encode()).hexdigest() for name in "ab"]
    points = np.eye(2, 8, dtype=np.float64)
    rows = {
        "id": ["a", "b", "c"],
        "path": pa.array([f"{root}/deep/a.jpg", "/elsewhere/b.jpg", None]),
        "content_hash": pa.array([*digests, None]),
        "image_point": pa.array([*points.tolist(), None]),
        "caption": pa.array([None, "of b", "alone"]),
        "text_point": pa.array([None, [0.0] * 7 + [1.0], [1.0] * 8], pa.list_(pa.float32(), 8)),
        "metadata": [{"year": 2001, "city": None}, None, {"year": 2002, "city": "Oslo"}],
    }
    assert loaded.load(pa.table(rows)) == 3
    found = {item.id: item for item in loaded}
    assert [found[name].path for name in "abc"] == ["deep/a.jpg", "/elsewhere/b.jpg", None]
    assert [dict(found[name].metadata) for name in "abc"] == [{"year": 2001}, {}, {"year": 2002, "city": "Oslo"}]
    ids, stored = loaded.points("image")
    assert ids == ["a", "b"]
    assert np.array_equal(stored, points.astype(np.float32))
    assert [found[name].captions for name in "abc"] == [(), ("of b",), ("alone",)]


def replaced(name: str, row: int, value: Any) -> dict[str, Any]:
    columns = columns_of(_RECORDS[:4])
    values = columns[name].to_pylist()
    values[row] = value
    return columns | {name: pa.array(values, columns[name].type)}


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        (replaced("id", 2, ""), "no id"),
        (replaced("labels", 2, ["x", None]), "'item 2' has an empty label"),
        (replaced("metadata", 2, '{"a": 1'), "'item 2' has metadata"),
        (replaced("metadata", 2, '{"a": "\\ud800"}'), "'item 2' has metadata"),
        (replaced("metadata", 2, '{"a": NaN}'), "'item 2' has metadata"),
        (replaced("metadata", 2, f'{{"a": 1{"0" * 400}.0}}'), "'item 2' has metadata"),
        (replaced("metadata", 2, '{"a": ' + "[" * 100_000), "'item 2' has metadata"),
        (replaced("metadata", 2, '{}, "x", {}'), "'item 2' has metadata"),
        (
            columns_of(_RECORDS[:4]) | {"metadata": ["{}", '{"a": [1', "2]}", '{"b": 1}, {"b": 2}']},
            "'item 1' has metadata",
        ),
        (replaced("text_point", 2, [None] * 8), "'item 2' has numbers that are not finite"),
        (columns_of(_RECORDS[:4]) | {"text_point": points_column(np.zeros((4, 7), dtype=np.float32))}, "text_point"),
        ({name: column for name, column in columns_of(_RECORDS[:4]).items() if name != "text_point"}, "no text_point"),
        (columns_of(_RECORDS[:4]) | {"captions": pa.nulls(4)}, "'captions' cannot be loaded"),
        ({"caption": ["x"]}, "without ids"),
        (columns_of(_RECORDS[:4]) | {"path": pa.array(["a", None, None, None])}, "'item 0' has only one of path"),
        (
            columns_of(_RECORDS[:4]) | {"content_hash": pa.array([None, "../x", None, None])},
            "'item 1' has a content_hash",
        ),
        (columns_of(_RECORDS[:4]) | {"caption": pa.array([b"\xff"] * 4)}, "the column caption must be string"),
        (
            columns_of(_RECORDS[:4])
            | {"path": ["p"] * 4, "content_hash": ["0" * 64] * 4, "image_point": points_column(np.ones((4, 8)))},
            "'item 1' shares its path",
        ),
    ],
)
def test_a_refusal_names_the_first_and_stores_nothing(
    refusing: Collection, columns: dict[str, Any], reason: str
) -> None:
    with pytest.raises(InvalidInputError, match=reason):
        refusing.load([pa.table(columns)])
    assert [(item.id, item.captions) for item in refusing] == [("there", ("it was there",))]
    assert refusing.points("text")[1].shape == (1, 8)


def test_what_was_loaded_before_a_refusal_stays(loaded: Collection) -> None:
    good, other = pa.table(columns_of(_RECORDS[:3])), pa.table(columns_of(_RECORDS[2:5])).drop_columns(["labels"])
    with pytest.raises(InvalidInputError, match=r"'item 2' shares its id .* \(the 3 items before are stored\)"):
        loaded.load([good, other])
    assert [item.id for item in loaded] == ["item 0", "item 1", "item 2"]
    assert loaded.load(other.slice(1)) == 2
    assert [item.id for item in loaded] == [f"item {number}" for number in range(5)]
    assert loaded.search(_RECORDS[4].captions[0], k=1, target="texts")[0].id == "item 4"
    assert loaded.verify().is_whole


def test_words_of_many_are_found_and_items_keep_their_captions(loaded: Collection) -> None:
    names = [f"item {number}" for number in range(20_500)]
    points = np.random.default_rng(0).standard_normal((len(names), 8), dtype=np.float32)
    captions = pa.array([None if number % 3 == 0 else f"boat{number}" for number in range(len(names))])
    has_caption = captions.is_valid().to_numpy(zero_copy_only=False)
    text_points = pa.array([row if there else None for row, there in zip(points.tolist(), has_caption, strict=True)])
    columns = {"id": names, "caption": captions, "text_point": text_points, "image_point": points_column(points)}
    columns |= {"path": names, "content_hash": [hashlib.sha256(name.encode()).hexdigest() for name in names]}
    assert loaded.load(pa.table(columns)) == len(names)
    assert [item.captions for item in loaded] == [(text,) if text else () for text in captions.to_pylist()]
    assert loaded.search("boat20000", k=1, target="texts", hybrid=1.0)[0].id == "item 20000"


def test_a_removed_item_can_be_loaded_again(loaded: Collection) -> None:
    table = pa.table(columns_of(_RECORDS[:3]))
    loaded.load(table)
    loaded.remove("item 1")
    assert loaded.load(table.slice(1, 1)) == 1
    assert [item.id for item in loaded] == ["item 0", "item 2", "item 1"]


def test_what_is_no_table_is_refused(loaded: Collection) -> None:
    with pytest.raises(InvalidInputError, match="tables and record batches of Arrow, got str"):
        loaded.load(["id"])
