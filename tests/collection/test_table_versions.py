"""Versions of tables: how long they stay, and what the engine remembers of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.collection import Collection, Item, Record
from diptych.collection.changes.encoding import KnownKeys
from diptych.collection.storage import store as store_module
from diptych.collection.storage import tables
from diptych.collection.storage.place import is_being_read, long_read
from diptych.collection.storage.store import Store

_READING = """
import sys, time
from pathlib import Path
from diptych.collection.storage.place import long_read
with long_read(Path(sys.argv[1])):
    print("reading", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(tables, "_READ_FOR", timedelta(0))
    monkeypatch.setattr(tables, "_TICK", timedelta(0))
    store = Store(tmp_path)
    store.prepare()
    return store


def _item(number: int) -> Item:
    return Item(f"i{number}", None, "", added_ns=number + 1, updated_ns=number + 1)


def _versions(store: Store, name: str) -> int:
    return len(list((store.folder / f"{name}.lance" / "_versions").glob("*.manifest")))


def test_files_of_megabytes_are_joined_later_than_small_ones(store: Store) -> None:
    large = np.zeros((300, 2048), dtype=np.float32)
    for number in range(42):
        keys = [f"{number} {row}" for row in range(300)]
        store.add_vectors("features", keys, large)
        store.add_vectors("points", keys[:3], large[:3, :2])
    store.compact(n_changed=1000)
    pieces = [store.tables.needed(name).stats()["fragment_stats"]["num_fragments"] for name in ("features", "points")]
    assert pieces == [42, 1]
    store.compact(everything=True)
    assert store.tables.needed("features").stats()["fragment_stats"]["num_fragments"] == 1
    assert store.tables.needed("features").count_rows() == 42 * 300


def test_new_rows_of_a_large_table_are_joined_without_its_other_rows(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "_INDEXED_FROM", 500)
    store.put_items([replace(_item(number), labels=("old",)) for number in range(500)])
    store.compact(everything=True)
    for number in range(500, 545):
        store.put_items([replace(_item(number), labels=("new",))])
        store.compact(n_changed=1)
    table = store.tables.needed("items")
    assert table.stats()["fragment_stats"]["num_fragments"] < 10
    assert table.index_stats("labels_idx").num_indexed_rows == 500
    assert sorted(item.added_ns for item in store.changed_items(-1, 1000) or ()) == list(range(1, 546))
    assert [len(store.words.any_of(word, 1000)[0].keys) for word in ("old", "new")] == [500, 45]


def test_new_rows_with_damage_are_left_where_they_are(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "_INDEXED_FROM", 100)
    store.put_items([_item(number) for number in range(100)])
    for number in range(100, 145):
        store.put_items([_item(number)])
    table = store.tables.needed("items")
    before = table.stats()["fragment_stats"]["num_fragments"]
    newest = max((store.folder / "items.lance" / "data").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    content = bytearray(newest.read_bytes())
    content[len(content) // 2] ^= 1
    newest.write_bytes(content)
    assert not store.tables.join_newest("items", table, "added_ns")
    content[len(content) // 2] ^= 1
    newest.write_bytes(content)
    assert store.tables.join_newest("items", table, "added_ns")
    assert before > table.stats()["fragment_stats"]["num_fragments"] == 2


def test_rows_of_which_one_is_there_twice_are_joined_by_the_engine(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "_INDEXED_FROM", 100)
    keys = [f"key {number}" for number in range(100)]
    vectors = np.arange(300, dtype=np.float32).reshape(100, 3)
    store.add_vectors("points", keys, vectors)
    for number in range(45):
        store.add_vectors("points", [f"new {number % 44}"], vectors[:1])
    store.compact(n_changed=1000)
    table = store.tables.needed("points")
    assert (table.stats()["fragment_stats"]["num_fragments"], table.count_rows()) == (1, 145)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["own", "other", "change", "remove", "tidy", "look"]), st.integers(1, 4))))
def test_what_a_writer_knows_to_have_changed_is_what_the_store_says(steps: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        own, now, written, known = Store(Path(folder)), 0, list[Item](), 0
        own.prepare()
        for step, number in [*steps, ("look", 0)]:
            now += 10
            if step in ("own", "other"):
                items = [
                    replace(_item(now + place), captions=(f"c{now + place}",), caption_ids=(f"{now + place}",))
                    for place in range(number)
                ]
                store = own if step == "own" else Store(Path(folder))
                store.add_captions([(item.caption_ids[0], item.id, item.captions[0]) for item in items])
                store.put_items(items)
                written += items
            elif step == "change" and written:
                replaced = written[-number:][:1]
                changed = [replace(item, updated_ns=now, metadata={"year": 1999.0, "tags": ["a"]}) for item in replaced]
                own.put_items(changed, replaced)
                written[written.index(replaced[0])] = changed[0]
            elif step == "remove" and written:
                own.delete_items([written.pop()], now)
            elif step == "tidy":
                own.compact(everything=True)
            elif step == "look":
                for since in (known, known // 2):
                    found = own.changed_items(since, 1000)
                    assert sorted(found or [], key=lambda item: item.id) == sorted(
                        (item for item in written if item.updated_ns > since), key=lambda item: item.id
                    )
                known = now + 10


def test_who_has_written_items_alone_does_not_ask_for_them(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    assert store.changed_items(-1, 10) == []
    monkeypatch.setattr(store, "_captions_of", None)
    store.put_items([_item(1)])
    store.put_items([_item(2)])
    assert [item.id for item in store.changed_items(0, 10) or ()] == ["i1", "i2"]
    assert [item.id for item in store.changed_items(2, 10) or ()] == ["i2"]


def test_a_key_is_looked_for_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.add_vectors("points", ["a", "b"], np.zeros((2, 3), dtype=np.float32))
    asked: list[str] = []
    look = store.present_keys
    monkeypatch.setattr(store, "present_keys", lambda name, keys: asked.extend(keys) or look(name, keys))
    known = KnownKeys(store)
    assert known.among("points", ["a", "c"]) == {"a"}
    known.add_vectors("points", ["c"], np.zeros((1, 3), dtype=np.float32))
    assert known.among("points", ["a", "b", "c", "d"]) == {"a", "b", "c"}
    assert known.among("points", ["d", "b"]) == {"b"}
    assert asked == ["a", "c", "b", "d"]
    assert known.among("points", [f"n{number}" for number in range(5000)] + ["b", "c"]) == {"b", "c"}


def test_what_is_read_for_long_stays_as_it_was(store: Store) -> None:
    store.put_items([_item(number) for number in range(5)])
    with store.tables.kept():
        read = store.tables.pinned("items")
        store.put_items([_item(number) for number in range(5, 50)])
        store.delete_items([_item(number) for number in range(5)], 100)
        store.compact(everything=True)
        assert sorted(read.search().to_arrow()["id"].to_pylist()) == [f"i{number}" for number in range(5)]
    store.put_items([_item(99)])
    store.compact(everything=True)
    with pytest.raises((RuntimeError, ValueError, OSError)):
        read.search().to_arrow()


def test_a_reader_in_another_process_holds_versions_until_it_ends(tmp_path: Path) -> None:
    assert not is_being_read(tmp_path)
    reader = subprocess.Popen([sys.executable, "-c", _READING, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert reader.stdout is not None
    with reader.stdout:
        assert reader.stdout.readline() == "reading\n"
    assert is_being_read(tmp_path)
    reader.send_signal(signal.SIGKILL)
    reader.wait()
    assert not is_being_read(tmp_path)
    assert not os.listdir(tmp_path)


def test_whoever_may_not_write_reads_without_saying_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with long_read(tmp_path / "file"):
        assert not is_being_read(tmp_path)
    with long_read(tmp_path), long_read(tmp_path):
        assert is_being_read(tmp_path)
    assert not is_being_read(tmp_path)
    # of another user, say
    (tmp_path / "reading.that cannot be opened").mkdir()
    assert is_being_read(tmp_path)


@given(st.lists(st.integers(0, 1000), min_size=1, unique=True), st.integers(0, 1000))
def test_the_version_that_was_newest_a_moment_ago_stays(ages: list[int], read_for: int) -> None:
    kept = tables.oldest_read([timedelta(seconds=age) for age in ages], timedelta(seconds=read_for))
    # by its definition: each was the newest one until the next younger came; the youngest still is, and never goes
    until = {age: max((other for other in ages if other < age), default=0) for age in ages if age != min(ages)}
    needed = [age for age in until if until[age] < read_for]
    assert all(timedelta(seconds=age) <= max(kept, timedelta(seconds=read_for)) for age in needed)
    gone = [age for age in until if timedelta(seconds=age) > kept]
    assert all(until[age] >= read_for for age in gone)


def test_versions_and_files_of_many_small_changes_do_not_add_up(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "_READ_FOR", timedelta(0))
    monkeypatch.setattr(tables, "_TICK", timedelta(0))
    monkeypatch.setattr(tables, "_MANY_VERSIONS", 10)
    for number in range(25):
        collection.add([Record(captions=[f"text {number}"], id=f"t{number}")])
        collection.update(f"t{number}", labels=["x"])
        if number >= 5:
            collection.remove([f"t{number - 5}"])
    assert len(collection) == 5
    assert _versions(collection._state.store, "items") < 30
    ledger = collection._state.store.tables.ledger
    assert ledger is not None
    assert len(ledger.known_files()) < 600


def test_a_table_is_opened_anew_when_its_indexes_change(store: Store) -> None:
    store.add_captions([(f"c{number}", "i", f"text {number}") for number in range(10)])
    opened = store.tables.existing("captions")
    assert store.tables.existing("captions") is opened
    store.compact(everything=True)
    again = store.tables.existing("captions")
    assert again is not opened
    assert again.count_rows() == opened.count_rows() == 10
