"""Segments: items in files say the same as items in memory, and whatever happens to the files, nothing is lost."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from diptych.collection import Collection, Filter, Item, Record
from diptych.collection.browse.segment import (
    KEYS,
    FileSegment,
    MemorySegment,
    SegmentWriter,
    _key_hash,
    _key_hashes,
    keys_of,
)
from diptych.collection.search.folding import SegmentFiles
from diptych.collection.storage.rows import item_rows
from diptych.collection.storage.store import points_table
from tests.doubles import ToyRetriever

WORDS = st.text("abé ", min_size=1, max_size=6).filter(str.strip)
ITEMS = st.builds(
    lambda number, path, captions, labels, metadata: Item(
        f"id {number}",
        f"{path}/{number}.png" if path else None,
        f"{number % 3:064d}" if path else None,
        size=number,
        width=number % 2,
        labels=tuple(labels),
        metadata=metadata,
        caption_ids=tuple(f"{number}-{place}" for place in range(len(captions))),
        captions=tuple(captions),
        added_ns=1000 * number,
        updated_ns=1000 * number,
    ),
    st.integers(1, 10**6),
    st.sampled_from(["", "x", "y/é"]),
    st.lists(WORDS, max_size=3),
    st.lists(WORDS, max_size=2),
    st.dictionaries(st.sampled_from(["a", "b", "c.d"]), st.one_of(WORDS, st.integers(-3, 3), st.booleans())),
)


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(ITEMS, max_size=20, unique_by=lambda item: item.added_ns), st.integers(1, 7))
def test_a_file_holds_what_memory_holds(
    tmp_path_factory: pytest.TempPathFactory, items: list[Item], batch: int
) -> None:
    memory = MemorySegment(items)
    in_order = list(memory.items())
    folder = tmp_path_factory.mktemp("segments") / "one"
    with pytest.MonkeyPatch.context() as patch:
        # Small batches, so that there are several.
        patch.setattr("diptych.collection.browse.segment._ROWS_AT_ONCE", 4)
        writer = SegmentWriter(folder)
        for start in range(0, len(items), batch):
            writer.add(item_rows(in_order[start : start + batch]))
        writer.finish()
        file = FileSegment(folder)
        assert list(file.items()) == in_order
        assert file.orders.tolist() == memory.orders.tolist()
        for place, item in enumerate(in_order):
            assert file.item(place) == item
            for kind in KEYS:
                for key in keys_of(item, kind):
                    assert place in file.find(kind, key)
                    assert sorted(file.find(kind, key)) == memory.find(kind, key)
        captions = [name for item in in_order for name in item.caption_ids] + ["nobody's"]
        for mine, theirs in zip(file.captions(captions), memory.captions(captions), strict=True):
            assert mine.tolist() == theirs.tolist()
        for text in ("a:a", "path:y/*", "caption:é", "label:a or b>=1", "not c.d=true", "width>0", "added>=1970"):
            wanted = Filter.parse(text)
            found = [segment.columns.matching(wanted, len(items)).tolist() for segment in (file, memory)]
            assert found[0] == found[1]
        assert file.suggestions.beginning_with("a", 5) == memory.suggestions.beginning_with("a", 5)
        if items:
            some = np.arange(0, len(items), 2)
            assert file.rows(some).equals(memory.rows(some))
            # Few and many are read in different ways.
            for places in (some, np.tile(some, 300)):
                assert file.names(places).tolist() == memory.names(places).tolist()
                assert file.names(places[:1]).tolist() == [in_order[places[0]].id]
                for segment in (file, memory):
                    assert segment.contents(places).tolist() == [in_order[place].content_hash for place in places]
            owners = np.repeat(np.arange(len(items)), [len(item.captions) for item in in_order])
            numbers = np.array([number for item in in_order for number in range(len(item.captions))], dtype=np.int32)
            for times in (1, 300):
                found = file.names(np.tile(owners, times), np.tile(numbers, times)).tolist()
                assert found == [name for item in in_order for name in item.caption_ids] * times
                for segment in (file, memory):
                    said = segment.contents(np.tile(owners, times), np.tile(numbers, times)).tolist()
                    assert said == [caption for item in in_order for caption in item.captions] * times


@settings(deadline=None, max_examples=30)
@given(st.lists(st.text(max_size=40), min_size=1, max_size=8), st.integers(0, 3))
def test_a_column_of_keys_hashes_as_each_of_them(keys: list[str], skipped: int) -> None:
    # A part of a column begins somewhere in its buffers.
    column = pa.array(["x" * skipped, *keys, "z"], pa.string()).slice(1, len(keys))
    assert _key_hashes(column).tolist() == [_key_hash(key) for key in keys]


def test_keys_that_resemble_each_other_hash_apart() -> None:
    names = [f"{folder}/picture-{number}.jpg" for folder in range(30) for number in range(3000)]
    names += [f"{number:016x}" for number in range(90_000)]
    assert len(np.unique(_key_hashes(pa.array(names)))) == len(names)


@pytest.fixture
def filled(collection: Collection, photos: Path) -> Collection:
    collection.add([photos, *(Record(captions=[f"text {number}"], id=str(number)) for number in range(30))])
    collection._state.fold()
    collection.update("3", captions=["other"])
    collection.remove("4")
    return collection


def is_as_expected(collection: Collection) -> bool:
    """Look at everything that a segment serves: items, points, words and fields."""
    ids = [str(number) for number in range(30) if number != 4]
    return (
        sorted(item.id for item in collection if item.path is None) == sorted(ids)
        and collection.search("other", k=1, target="texts")[0].id == "3"
        and collection.search("text 7", k=1, target="texts", hybrid=True)[0].id == "7"
        and len(collection.items("kind=picture")) == 3
        and collection.search("text 3", k=40, target="texts").considered == 29
    )


def reopened(collection: Collection) -> Collection:
    return Collection.open(collection.folder, load_retriever=ToyRetriever.load)


def segment_folders(collection: Collection) -> list[Path]:
    return sorted((collection.folder / "index").glob("segment-*"))


def test_files_that_are_lost_or_damaged_are_made_anew(filled: Collection) -> None:
    for name in ("about.json", "items.arrow", "orders.npy", "id_hashes.npy", "values.arrow", "../current.json"):
        (folder,) = segment_folders(filled)
        path = folder / name
        path.write_bytes(path.read_bytes()[:20])
        assert is_as_expected(reopened(filled)), name
        shutil.rmtree(filled.folder / "index")
        assert is_as_expected(reopened(filled))
        other = reopened(filled)
        other._state.fold()
        assert is_as_expected(other)


def test_a_reader_keeps_its_files_while_others_join_them(filled: Collection) -> None:
    reader = reopened(filled)
    assert is_as_expected(reader)
    before = segment_folders(filled)
    for _ in range(3):
        filled.add([Record(captions=["one more"])])
        filled._state.fold(everything=True)
        filled.remove(filled.items("caption:more")[0].id)
    assert not set(before) & set(segment_folders(filled))
    assert is_as_expected(reader)
    assert is_as_expected(reopened(filled))


def test_a_folder_that_cannot_be_written_costs_memory_alone(collection: Collection, photos: Path) -> None:
    collection.close()
    shutil.rmtree(collection.folder / "index", ignore_errors=True)
    (collection.folder / "index").write_text("in the way")
    other = reopened(collection)
    other.add([photos, *(Record(captions=[f"text {number}"], id=str(number)) for number in range(30))])
    other._state.fold()
    other.update("3", captions=["other"])
    other.remove("4")
    assert is_as_expected(other)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("diptych.collection.search.folding._FOLD_FIRST", 5)
        assert is_as_expected(reopened(collection))


def test_a_full_disk_stops_no_search(
    filled: Collection, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(SegmentFiles, "write_rows", full)
    filled._state.fold(everything=True)
    assert "No space left" in caplog.text
    assert is_as_expected(filled)
    monkeypatch.undo()
    filled._state.fold(everything=True)
    assert len(segment_folders(filled)) == 2
    assert is_as_expected(reopened(filled))


def test_points_that_come_later_are_found(filled: Collection, photos: Path) -> None:
    """They were lost in the store when the files were made, and repair makes them again."""
    filled._state.fold(everything=True)
    item = filled["a.png"]
    table = points_table(filled._state.layout.retriever, "image")
    other = reopened(filled)
    other._state.store.delete_rows(table, [str(item.content_hash)])
    shutil.rmtree(filled.folder / "index")
    assert other.search(photos / "a.png", k=5).considered == 2
    other._state.fold()
    reader = reopened(filled)
    assert reader.search(photos / "a.png", k=5).considered == 2
    filled.repair()
    for one in (filled, other, reader, reopened(filled)):
        assert one.search(photos / "a.png", k=1)[0].id == item.id


def test_repair_leaves_the_files_in_use(filled: Collection) -> None:
    filled._state.fold(everything=True)
    filled.search("x")
    (filled.folder / "index" / "left behind").mkdir()
    filled.set_retriever(ToyRetriever(1), keep=False)
    filled.search("x")
    assert filled.repair().is_whole
    (folder,) = segment_folders(filled)
    assert sorted(path.name for path in folder.iterdir() if path.is_dir()) == [
        "image-toy-cosine-1",
        "text-toy-cosine-1",
    ]
    assert is_as_expected(filled)


@given(
    st.lists(st.integers(0, 40), unique=True, max_size=20),
    st.lists(st.integers(-3, 45), max_size=20),
)
@settings(max_examples=60)
def test_places_of_orders_are_those_that_are_here(stored: list[int], asked: list[int]) -> None:
    segment = MemorySegment([Item(id=str(order), path=None, content_hash=None, added_ns=order) for order in stored])
    places, which = segment.places(np.array(asked, dtype=np.int64))
    assert [(asked[number], sorted(stored)[place]) for place, number in zip(places, which, strict=True)] == [
        (order, order) for order in asked if order in stored
    ]
