from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

from diptych.collection import Collection, CollectionError, Record
from diptych.collection.store.points import point_table
from diptych.errors import InvalidInputError, UnknownNameError
from tests.doubles import ToyRetriever


@pytest.fixture
def filled(collection: Collection, photos: Path) -> Collection:
    shutil.copy(photos / "a.png", photos / "d.png")
    collection.add(photos)
    collection.add([Record(photos / "a.png", captions=['één, "two"'], labels=["x"], metadata={"y": 1})])
    return collection


def test_exports_hold_the_items(filled: Collection, tmp_path: Path) -> None:
    for name in ("items.csv", "items.jsonl", "items.parquet"):
        filled.export(tmp_path / name)
    with (tmp_path / "items.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["path"] for row in rows] == ["a.png", "b.png", "c.png", "d.png"]
    assert json.loads(rows[0]["captions"]) == ['één, "two"']
    lines = [json.loads(line) for line in (tmp_path / "items.jsonl").read_text(encoding="utf-8").splitlines()]
    assert (lines[0]["labels"], lines[0]["metadata"]) == (["x"], {"y": 1})
    table = pyarrow.parquet.read_table(tmp_path / "items.parquet")
    assert table["id"].to_pylist() == [item.id for item in filled]
    with pytest.raises(UnknownNameError, match="parquet"):
        filled.export(tmp_path / "items.parket")


def test_no_spreadsheet_takes_a_name_for_a_formula(collection: Collection, photos: Path, tmp_path: Path) -> None:
    (photos / "=cmd|calc!A0.png").write_text("picture z")
    collection.add([Record(photos / "=cmd|calc!A0.png", id="@x")])
    collection.export(tmp_path / "items.csv")
    with (tmp_path / "items.csv").open(encoding="utf-8", newline="") as stream:
        (row,) = csv.DictReader(stream)
    assert (row["id"], row["path"]) == ("'@x", "'=cmd|calc!A0.png")
    assert int(row["width"]) == 0


def test_exports_hold_the_points(filled: Collection, photos: Path, tmp_path: Path) -> None:
    filled.export(tmp_path / "p.npz")
    arrays = np.load(tmp_path / "p.npz")
    points = ToyRetriever().encode_images([photos / f"{name}.png" for name in "abcd"])
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    by_id = dict(zip(arrays["image_ids"].tolist(), arrays["image"], strict=True))
    np.testing.assert_allclose([by_id[item.id] for item in filled], points, atol=1e-3)


def test_a_parquet_file_may_hold_the_points_too(filled: Collection, tmp_path: Path) -> None:
    filled.add([Record(captions=["only words"])])
    filled.export(tmp_path / "p.npz")
    filled.export(tmp_path / "items.parquet", points=True)
    arrays = np.load(tmp_path / "p.npz")
    by_id = dict(zip(arrays["image_ids"].tolist(), arrays["image"], strict=True))
    rows = pyarrow.parquet.read_table(tmp_path / "items.parquet").to_pylist()
    assert [row["point"] is None for row in rows] == [False] * 4 + [True]
    for row in rows[:4]:
        np.testing.assert_array_equal(np.array(row["point"], dtype=np.float32), by_id[row["id"]])
    with pytest.raises(InvalidInputError, match="parquet or npz"):
        filled.export(tmp_path / "items.csv", points=True)


def test_duplicates_are_exact_or_near(filled: Collection, photos: Path) -> None:
    exact = filled.duplicates(None)
    assert [(group.exact, group.paths) for group in exact] == [(True, ("a.png", "d.png"))]
    features = ToyRetriever()._drawn([(photos / f"{name}.png").read_bytes() for name in "abc"])
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    cosine = float((unit @ unit.T)[np.triu_indices(3, 1)].max())
    near = filled.duplicates(cosine - 1e-4)[1:]
    assert len(near) == 1
    assert not near[0].exact
    assert near[0].similarity == pytest.approx(cosine, abs=1e-5)
    assert filled.duplicates(cosine + 1e-4)[1:] == []
    everything = filled.duplicates(-1.0)[1:]
    assert sorted(everything[0].paths) == ["a.png", "b.png", "c.png", "d.png"]
    with pytest.raises(InvalidInputError):
        filled.duplicates(2.0)


def test_what_no_item_uses_is_deleted_with_the_last_one_that_does(filled: Collection) -> None:
    before = counts(filled)
    filled.update("a.png", captions=["new"])
    filled.remove(["b.png"])
    assert counts(filled) == [before[0] - 1, before[1] - 1, before[2]]
    assert filled.verify().is_whole
    assert sorted(str(item.path) for item in filled) == ["a.png", "c.png", "d.png"]
    assert filled.search("new", k=1, target="texts")[0].score == pytest.approx(1, abs=1e-3)


def counts(collection: Collection) -> list[int]:
    """Return how many contents there are, and how many points of pictures and texts."""
    with collection.store.reading() as db:
        tables = ("content", point_table(1, "image"), point_table(1, "text"))
        return [db.value(f"SELECT count(*) FROM {table}") for table in tables]


def test_status_tells_what_is_there(filled: Collection, photos: Path) -> None:
    (photos / "bad.png").write_text("bad")
    filled.add(photos)
    status = filled.status()
    assert (status.items, status.pictures, status.captions, status.unsearchable) == (4, 4, 1, 0)
    assert status.failures == {str(photos / "bad.png"): "it is bad"}
    assert status.store_bytes > 0
    assert status.retriever == "toy 0"
    assert status.updated == max(item.updated for item in filled)
    assert filled.status() == status


def forget_point(collection: Collection, name: str) -> None:
    sql = f"DELETE FROM {point_table(1, 'image')} WHERE content = (SELECT content FROM item WHERE path = ?)"
    collection.store.write(lambda db: db.run(sql, (name,)))


def test_status_notices_points_that_come_and_go(filled: Collection) -> None:
    assert filled.status().unsearchable == 0
    with Collection.open(filled.folder, load_retriever=ToyRetriever.load) as other:
        forget_point(other, "a.png")
        # Another file has the same content.
        assert filled.status().unsearchable == 2
        assert filled.search("x").considered == 2
        forget_point(other, "b.png")
        assert filled.verify().problems == ("3 pictures have no points and are not found; add or refresh them",)
        filled.remove(["a.png", "d.png"])
        assert [filled.status().unsearchable, *(one.missing for one in filled.retrievers())] == [1, 1]
        assert other.repair().is_whole
    assert filled.status().unsearchable == 0
    assert filled.search("x").considered == 2


def test_a_collection_moves_with_its_pictures(filled: Collection, photos: Path, tmp_path: Path) -> None:
    filled.close()
    photos.rename(tmp_path / "moved")
    place = tmp_path / "moved"
    moved = Collection.open(place / ".diptych", load_retriever=ToyRetriever.load, root=place)
    assert moved.refresh().unchanged == 4
    path = moved.search("x", k=1)[0].path
    assert path is not None
    assert path.is_file()


def test_a_root_elsewhere_is_kept(photos: Path, tmp_path: Path) -> None:
    made = Collection.create(tmp_path / "apart", ToyRetriever(), root=photos, load_retriever=ToyRetriever.load)
    made.add(photos)
    assert sorted(str(item.path) for item in made) == ["a.png", "b.png", "c.png"]
    again = Collection.open_or_create(tmp_path / "apart", load_retriever=ToyRetriever.load)
    assert again.root == photos
    assert len(again) == 3


def test_folders_that_are_no_collection_say_so(photos: Path, collection: Collection, tmp_path: Path) -> None:
    with pytest.raises(CollectionError, match="already"):
        Collection.create(collection.folder, ToyRetriever())
    with pytest.raises(CollectionError, match="other files"):
        Collection.create(photos, ToyRetriever())
    with pytest.raises(CollectionError, match="is a file"):
        Collection.create(photos / "a.png", ToyRetriever())
    with pytest.raises(CollectionError, match="not a collection"):
        Collection.open(tmp_path)
    collection.store.write(lambda db: db.run("UPDATE meta SET value = '99' WHERE name = 'format'"))
    with pytest.raises(CollectionError, match="format 99"):
        Collection.open(collection.folder)


def test_a_creation_that_was_killed_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "collection.sqlite").touch()
    (tmp_path / "c" / "write.lock").touch()
    with pytest.raises(CollectionError, match="interrupted"):
        Collection.open(tmp_path / "c")
    with Collection.create(tmp_path / "c", ToyRetriever(), load_retriever=ToyRetriever.load) as made:
        assert len(made) == 0
