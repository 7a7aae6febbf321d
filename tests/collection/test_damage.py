from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from diptych.collection.storage import ledger

from diptych.collection import Collection, CollectionError, Record, backup_collection
from diptych.collection.store.history import ChangeJournal
from diptych.collection.trusted_root import trust_root
from diptych.errors import InvalidInputError
from tests.doubles import ToyRetriever
from tests.doubles.damaged_collection import answers, damage_trial, make_collection


def open_again(collection: Collection) -> Collection:
    return Collection.open(collection.folder, load_retriever=ToyRetriever.load)


def newest_manifest(collection: Collection, table: str) -> Path:
    return min((collection.folder / "store" / f"{table}.lance" / "_versions").glob("*.manifest"))


def flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 255
    path.write_bytes(content)


def found_in(collection: Collection) -> str:
    try:
        with open_again(collection) as again:
            return " ".join(again.verify().damaged)
    except CollectionError as refused:
        return str(refused)


def test_damage_is_found_refused_and_mended(tmp_path: Path) -> None:
    """Points, features, thumbnails, indexes and search files are made again; what is asked meanwhile is refused."""
    (tmp_path / "whole").mkdir()
    whole = make_collection(tmp_path / "whole")
    expected, counts = answers(whole), Counter[str]()
    store = whole / "store"
    damaged = [
        next((store / "points_text_toy-cosine-0.lance" / "data").iterdir()),
        next((store / "features_image_toy.lance" / "data").iterdir()),
        next((store / "thumbnails.lance" / "data").iterdir()),
        next((store / "captions.lance" / "_indices").rglob("*.lance")),
        next((whole / "index").rglob("vectors.npy")),
    ]
    shutil.copytree(tmp_path / "whole", tmp_path / "damaged")
    trust_root(tmp_path / "damaged" / ".diptych", tmp_path / "damaged")
    for path in damaged:
        flip(tmp_path / "damaged" / path.relative_to(tmp_path / "whole"), path.stat().st_size // 2)
    with Collection.open(tmp_path / "damaged" / ".diptych", load_retriever=ToyRetriever.load) as collection:
        assert set(collection.verify().damaged) == {str(path.relative_to(whole)) for path in damaged}
    assert damage_trial(tmp_path / "damaged" / ".diptych", expected, counts) == []
    assert counts["recovered"] == 1


def test_what_cannot_be_made_again_is_named_and_refused(collection: Collection) -> None:
    collection.add([Record(captions=["one"], id="1")])
    name = next((collection.folder / "store" / "captions.lance" / "data").iterdir())
    flip(name, 10)
    with open_again(collection) as again:
        report = again.repair()
        assert list(report.damaged) == [str(name.relative_to(collection.folder))]
        assert report.problems[0].endswith("has changed; restore the collection from a backup")
    with open_again(collection) as again, pytest.raises(CollectionError, match="is damaged"):
        list(again)


@pytest.mark.parametrize("table", ["items", "points_text_toy-cosine-0"])
def test_a_lost_latest_version_is_noticed(collection: Collection, table: str) -> None:
    collection.add([Record(captions=["one"], id="1")])
    collection.add([Record(captions=["two"], id="2")])
    newest_manifest(collection, table).unlink()
    with open_again(collection) as again:
        with pytest.raises(CollectionError, match=r"version \d+ of .*(lost|missing)"):
            again.add([Record(captions=["three"], id="3")])
        with pytest.raises(CollectionError, match="lost"):
            again.search("two", target="texts")
        assert not again.verify().is_whole
        assert again.repair().is_whole is (table != "items")


def test_a_change_of_the_ledger_or_of_a_note_is_found(collection: Collection) -> None:
    collection.add([Record(captions=["one"], id="1")])
    for name in ("store/ledger.jsonl", "last_run.json", "collection.json", "changes.jsonl"):
        path = collection.folder / name
        content = path.read_bytes()
        for place in (3, len(content) // 2, len(content) - 2):
            flip(path, place)
            assert name in found_in(collection)
            path.write_bytes(content)
    with open_again(collection) as again:
        assert again.verify().is_whole


def test_a_flip_in_the_list_of_changes_is_found_and_refused_and_repair_drops_what_it_lost(
    collection: Collection,
) -> None:
    for number in range(3):
        collection.add([Record(captions=["one"], id=str(number))])
    path = collection.folder / "changes.jsonl"
    whole, versions = path.read_bytes(), collection.history()
    for place in range(len(whole)):
        for bit in (1, whole[place] ^ ord("\n"), whole[place] ^ ord("}")):
            content = bytearray(whole)
            content[place] ^= bit
            path.write_bytes(content)
            assert (ChangeJournal(collection.folder).damage() is None) is (not bit)
    with pytest.raises(CollectionError, match=r"changes\.jsonl has changed; `diptych repair`"):
        collection.history()
    # Writing goes on, and does not make the damage look whole.
    collection.add([Record(captions=["one"], id="later")])
    assert "changes.jsonl" in collection.verify().damaged
    assert collection.repair().is_whole
    kept = collection.history()
    assert kept[: len(versions) - 1] == versions[:-1]
    assert kept[-1].items == 4


@pytest.mark.parametrize("name", ["changes.jsonl", "index/current.json"])
def test_a_deleted_note_is_named_and_made_anew(collection: Collection, name: str) -> None:
    collection.add([Record(captions=["one"], id="1")])
    collection.search("one", target="texts")
    collection._state.fold()
    collection.add([Record(captions=["two"], id="2")])
    (collection.folder / name).unlink()
    with open_again(collection) as again:
        report = again.verify()
        assert list(report.damaged) == [name]
        assert report.problems == (
            f"{name} is missing; "
            + (
                "nothing is lost, it is made anew"
                if "/" in name
                else "items are as they were, `diptych repair` drops the earlier states that it lost"
            ),
        )
        if name == "changes.jsonl":
            with pytest.raises(CollectionError, match="is missing; `diptych repair` begins it anew"):
                again.history()
        assert again.repair().is_whole
        assert [one.items for one in again.history()][-1] == 2
        assert [hit.id for hit in again.search("two", 1, target="texts")] == ["2"]


def test_what_was_not_acknowledged_is_taken_in_after_a_kill_and_back_after_a_power_cut(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection.add([Record(captions=["one"], id="1")])
    acknowledged = (collection.folder / "store" / "ledger.jsonl").read_bytes()
    collection.add([Record(captions=["two"], id="2")])
    # As if the writer had been killed before the line was written.
    (collection.folder / "store" / "ledger.jsonl").write_bytes(acknowledged)
    other = collection.folder.with_name("other")
    shutil.copytree(collection.folder, other)
    with open_again(collection) as again:
        again.add([Record(captions=["three"], id="3")])
        assert [item.id for item in again] == ["1", "2", "3"]
        assert again.verify().is_whole
    monkeypatch.setattr(ledger, "boot_id", lambda: "another start")
    with Collection.open(other, load_retriever=ToyRetriever.load) as again:
        assert [item.id for item in again] == ["1"]
        again.add([Record(captions=["three"], id="3")])
        assert [item.id for item in again] == ["1", "3"]
        assert again.verify().is_whole


def test_joining_files_does_not_hide_damage(collection: Collection) -> None:
    collection.add([Record(captions=["one"], id="1")])
    flip(next((collection.folder / "store" / "captions.lance" / "data").iterdir()), 10)
    with open_again(collection) as again:
        again._state.store.compact(everything=True)
        assert not again.verify().is_whole


def test_a_wrong_hint_of_the_engine_is_replaced_whole(collection: Collection) -> None:
    collection.add([Record(captions=["a"], id="a")])
    hint = collection.folder / "store" / "items.lance" / "_versions" / "latest_version_hint.json"
    hint.write_bytes(b"{")
    assert not collection.verify().is_whole
    with hint.open("rb") as former:
        collection.repair()
        # Written in its place, it would be empty for a moment in which a process may be killed.
        assert former.read() == b"{"
    assert collection.verify().is_whole


def test_a_collection_of_before_gets_its_ledger_with_the_first_change(collection: Collection) -> None:
    collection.add([Record(captions=["one"], id="1")])
    (collection.folder / "store" / "ledger.jsonl").unlink()
    with open_again(collection) as again:
        assert list(again.verify().damaged) == ["store/ledger.jsonl"]
        again.add([Record(captions=["two"], id="2")])
        assert again.verify().is_whole
    lines = (collection.folder / "store" / "ledger.jsonl").read_text().splitlines()
    assert "items.lance" in json.loads(lines[-1].partition(" ")[2])["heads"]


def test_durability_is_chosen_for_each_collection(
    collection: Collection, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By the caller, else by the environment, else it is that of a power cut."""
    synced: list[str] = []
    monkeypatch.setattr(ledger, "sync_to_disk", lambda path: synced.append(str(path)))

    def syncs(chosen: Any) -> bool:
        synced.clear()
        with Collection.open(collection.folder, load_retriever=ToyRetriever.load, durability=chosen) as opened:
            opened.add([Record(captions=[f"text {len(opened)}"])])
        return bool(synced)

    assert (syncs(None), syncs("power"), syncs("process")) == (True, True, False)
    monkeypatch.setenv("DIPTYCH_DURABILITY", "process")
    assert (syncs(None), syncs("power")) == (False, True)
    for wrong in ("fast", "Power"):
        with pytest.raises(InvalidInputError, match="'power' or 'process'"):
            Collection.create(tmp_path / "new", ToyRetriever(), durability=wrong)


def test_retrievers_reach_the_disk_before_they_are_in_force_whatever_the_durability(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: dict[str, bool] = {}
    layout = collection.folder / "collection.json"
    before = layout.read_bytes()
    monkeypatch.setattr(
        ledger, "sync_to_disk", lambda path: synced.update({os.path.realpath(path): layout.read_bytes() == before})
    )
    with Collection.open(collection.folder, load_retriever=ToyRetriever.load, durability="process") as opened:
        opened.set_retriever(ToyRetriever(2))
        opened.add([Record(captions=["text"])])
    (saved,) = (collection.folder.resolve() / "retrievers").glob("toy-cosine-2-*")
    assert {str(path) for path in (*saved.iterdir(), saved, saved.parent)} <= synced.keys()
    assert all(synced.values())
    assert not any(".lance" in path for path in synced)


def test_a_collection_is_verified_and_saved_where_its_path_is_a_relative_one(
    collection: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = collection.folder / "service" / "clicks.sqlite"
    log.parent.mkdir(exist_ok=True)
    with closing(sqlite3.connect(log)) as connection:
        connection.execute("CREATE TABLE searches (query TEXT)")
    monkeypatch.chdir(collection.folder.parent)
    with Collection.open(collection.folder.name, load_retriever=ToyRetriever.load) as relative:
        assert relative.verify(all_bytes=True).damaged == {}
    backup_collection(collection.folder.name, tmp_path / "backup")
    assert (tmp_path / "backup" / log.relative_to(collection.folder)).stat().st_size == log.stat().st_size
