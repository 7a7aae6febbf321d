from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from diptych.collection import Collection, CollectionError, Record, backup_collection
from diptych.collection.root import trust_root
from diptych.collection.store.sqlite import DATABASE
from diptych.errors import InvalidInputError
from tests.doubles import ToyRetriever
from tests.doubles.damaged_collection import answers, damage_trial, make_collection


def open_again(collection: Collection) -> Collection:
    return Collection.open(collection.folder, load_retriever=ToyRetriever.load)


def replace_bytes(path: Path, old: bytes, new: bytes) -> None:
    content = path.read_bytes()
    assert content.count(old) >= 1
    path.write_bytes(content.replace(old, new))


def test_damage_is_found_refused_and_mended(tmp_path: Path) -> None:
    """Thumbnails, points and vector files are made again; what is asked meanwhile is right or refused."""
    (tmp_path / "whole").mkdir()
    whole = make_collection(tmp_path / "whole")
    expected, counts = answers(whole), Counter[str]()
    shutil.copytree(tmp_path / "whole", tmp_path / "damaged")
    folder = tmp_path / "damaged" / ".diptych"
    trust_root(folder, folder.parent)
    vectors = next(folder.glob("derived/points-*/index.faiss"))
    content = bytearray(vectors.read_bytes())
    content[len(content) // 2] ^= 255
    vectors.write_bytes(content)
    with Collection.open(folder, load_retriever=ToyRetriever.load) as collection:
        tables = ("thumbnail", "point_1_image", "point_1_text", "point_2_image")
        for table in tables:
            some = f"SELECT min(content) FROM {table}"
            collection.store.write(
                lambda db, table=table, some=some: db.run(f"UPDATE {table} SET crc = crc + 1 WHERE content = ({some})")
            )
        damaged = collection.verify().damaged
        assert {name.partition(" ")[0] for name in damaged} == {*tables, str(vectors.relative_to(folder))}
    assert damage_trial(folder, expected, counts) == []
    assert counts["recovered"] == 1


def test_what_cannot_be_made_again_is_named(collection: Collection) -> None:
    collection.add([Record(captions=["unmistakable"], id="1")])
    collection.close()
    replace_bytes(collection.folder / DATABASE, b"unmistakable", b"unmistakaple")
    with open_again(collection) as again:
        report = again.repair()
        assert "caption 1" in report.damaged
        assert report.problems[0] == "caption of 1 is not as it was written; restore the collection from a backup"


def test_a_database_that_is_none_is_refused_in_a_sentence(collection: Collection) -> None:
    collection.add([Record(captions=["one"], id="1")])
    collection.close()
    path = collection.folder / DATABASE
    path.write_bytes(b"?" * path.stat().st_size)
    for use in (lambda: open_again(collection), lambda: backup_collection(collection.folder, collection.root / "b")):
        with pytest.raises(CollectionError, match="damaged"):
            use()


def test_durability_is_chosen_for_each_collection(
    collection: Collection, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By the caller, else by the environment, else it is that of a power cut."""

    def chosen(durability: Any) -> str:
        with Collection.open(collection.folder, load_retriever=ToyRetriever.load, durability=durability) as opened:
            return opened.store.write(lambda db: {1: "process", 2: "power"}[db.value("PRAGMA synchronous")])

    assert (chosen(None), chosen("power"), chosen("process")) == ("power", "power", "process")
    monkeypatch.setenv("DIPTYCH_DURABILITY", "process")
    assert (chosen(None), chosen("power")) == ("process", "power")
    for wrong in ("fast", "Power"):
        with pytest.raises(InvalidInputError, match="'power' or 'process'"):
            Collection.create(tmp_path / "new", ToyRetriever(), durability=wrong)


def test_a_collection_is_verified_and_saved_where_its_path_is_a_relative_one(
    collection: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection.add([Record(captions=["one"], id="1")])
    monkeypatch.chdir(collection.folder.parent)
    with Collection.open(collection.folder.name, load_retriever=ToyRetriever.load) as relative:
        assert relative.verify().damaged == {}
    assert backup_collection(collection.folder.name, tmp_path / "backup").items == 1
