from __future__ import annotations

import csv
import json
import shutil
import tracemalloc
from pathlib import Path

import faiss
import numpy as np
import pyarrow.parquet
import pytest
from diptych.collection.browse.live_items import LiveItems, Part
from diptych.collection.browse.segment import MemorySegment
from diptych.collection.changes.maintenance import near_groups
from diptych.collection.storage.store import Store, points_table
from safetensors import safe_open

from diptych.atomic_files import read_json, write_json
from diptych.collection import Collection, CollectionError, Item, Record
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
    filled.export(tmp_path / "points", format="safetensors")
    arrays = np.load(tmp_path / "p.npz")
    points = ToyRetriever().encode_images([photos / f"{name}.png" for name in "abcd"])
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    by_id = dict(zip(arrays["image_ids"].tolist(), arrays["image"], strict=True))
    np.testing.assert_allclose([by_id[item.id] for item in filled], points, atol=1e-6)
    with safe_open(tmp_path / "points", "numpy") as stored:
        np.testing.assert_array_equal(stored.get_tensor("image"), arrays["image"])
        assert json.loads(stored.metadata()["text_ids"]) == arrays["text_ids"].tolist()


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
    with pytest.raises(InvalidInputError, match="parquet, npz"):
        filled.export(tmp_path / "items.csv", points=True)


def test_an_index_of_faiss_answers_as_the_collection(filled: Collection, tmp_path: Path) -> None:
    filled.export(tmp_path / "points.faiss")
    index, ids = faiss.read_index(str(tmp_path / "points.faiss")), (tmp_path / "points.ids.txt").read_text().split()
    retriever = ToyRetriever()
    form = retriever.space.indexable("text_query")
    assert form is not None
    scores, rows = index.search(np.float32(form.queries(retriever.encode_texts(["a boat"]))), 3)
    answers = filled.search("a boat", k=3, min_probability=0)
    assert sorted(ids[row] for row in rows[0]) == sorted(answer.id for answer in answers)
    np.testing.assert_allclose(scores[0], [answer.score for answer in answers], atol=1e-5)
    assert faiss.read_index(str(tmp_path / "points.captions.faiss")).ntotal == 1
    assert len((tmp_path / "points.captions.ids.txt").read_text().split()) == 1


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


def test_near_duplicates_across_blocks(monkeypatch: pytest.MonkeyPatch, collection: Collection, photos: Path) -> None:
    for number in range(30):
        (photos / f"{number}.png").write_text(f"content {number}")
    collection.add(photos)
    whole = collection.duplicates(0.6)
    monkeypatch.setattr("diptych.collection.changes.maintenance._BLOCK", 4)
    parts = collection.duplicates(0.6)
    assert [set(group.ids) for group in parts] == [set(group.ids) for group in whole]
    assert [group.similarity for group in parts] == pytest.approx([group.similarity for group in whole], abs=1e-6)


def test_repair_drops_what_nothing_uses(filled: Collection) -> None:
    filled.update("a.png", captions=["new"])
    filled.remove(["b.png"])
    # As long as it can be searched as it was, nothing but the row of the caption is unused.
    assert filled.verify().unused == {"captions": 1}
    filled.keep_history(0)
    check = filled.verify()
    assert check.is_whole
    assert check.unused["captions"] == 1
    assert len(check.unused) == 5
    after = filled.repair()
    assert (after.unused, after.is_whole) == ({}, True)
    assert sorted(str(item.path) for item in filled) == ["a.png", "c.png", "d.png"]
    assert filled.search("new", k=1, target="texts")[0].score == pytest.approx(1, abs=1e-5)


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


def test_status_notices_points_that_come_and_go(filled: Collection) -> None:
    assert filled.status().unsearchable == 0
    other = Collection.open(filled.folder, load_retriever=ToyRetriever.load)
    table = points_table(other._state.layout.retriever, "image")
    other._state.store.delete_rows(table, [str(filled.items()[1].content_hash)])
    assert filled.status().unsearchable == 1
    other.repair()
    assert filled.status().unsearchable == 0


def test_what_files_of_points_lack_is_counted_without_the_store(filled: Collection) -> None:
    """The status counts in the files that searches use; verify looks at the store, which files are made from."""
    store, table = filled._state.store, points_table(filled._state.layout.retriever, "image")
    first, second = (str(filled[name].content_hash) for name in ("a.png", "b.png"))
    store.delete_rows(table, [first])
    filled._state.fold()
    # Another file has the same content.
    assert filled.status().unsearchable == 2
    assert filled.search("x").considered == 2
    store.delete_rows(table, [second])
    assert filled.status().unsearchable == 2
    assert filled.verify().problems == ("3 pictures have no points and are not found; add or refresh them",)
    filled.remove([item.id for item in filled.items() if item.content_hash == first])
    assert filled.status().unsearchable == 0
    assert [one.missing for one in filled.retrievers()] == [0]
    assert filled.repair().is_whole


@pytest.fixture
def ten_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Join files when there are ten small ones."""
    monkeypatch.setattr("diptych.collection.storage.rows._MANY_FRAGMENTS", 10)


@pytest.mark.usefixtures("ten_are_many")
def test_many_small_commits_are_joined(collection: Collection) -> None:
    for number in range(15):
        collection.add([Record(captions=[f"text {number}"], id=str(number))])
    table = collection._state.store.tables.needed("items")
    assert table.stats()["fragment_stats"]["num_fragments"] < 10
    assert len(Collection.open(collection.folder, load_retriever=ToyRetriever.load)) == 15


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
    document = read_json(collection.folder / "collection.json")
    for change, message in (
        ({"format": "x"}, "not written by Diptych"),
        ({"format_version": 99}, "version 99"),
        ({"retriever": {}}, "incomplete"),
    ):
        write_json(collection.folder / "collection.json", document | change)
        with pytest.raises(CollectionError, match=message):
            Collection.open(collection.folder)


def test_a_creation_that_was_killed_is_made_anew(collection: Collection) -> None:
    collection.add([Record(captions=["lost with the file"])])
    (collection.folder / "collection.json").unlink()
    again = Collection.create(collection.folder, ToyRetriever(), load_retriever=ToyRetriever.load)
    assert len(again) == 0


def test_a_creation_that_was_killed_while_it_wrote_its_last_file_is_made_anew(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    folder.mkdir()
    (folder / ".collection.json.0123456789ab").write_text("{")
    # Of one that was killed in the line for the lock.
    (folder / f"write.lock.{1:020d}-1-1").touch()
    made = Collection.create(folder, ToyRetriever(), load_retriever=ToyRetriever.load)
    assert len(made) == 0
    assert not list(folder.glob(".*")) + list(folder.glob("write.lock.*"))
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / ".collection.json.mine").write_text("{")
    with pytest.raises(CollectionError, match="other files"):
        Collection.create(tmp_path / "d", ToyRetriever())


@pytest.mark.usefixtures("ten_are_many")
def test_many_updates_are_joined(collection: Collection) -> None:
    collection.add([Record(captions=["text"], id="1"), Record(captions=["other"], id="2")])
    for number in range(15):
        collection.update("1", captions=[f"text {number}"])
    stats = collection._state.store.tables.needed("captions").stats()
    assert stats["fragment_stats"]["num_fragments"] < 10
    assert collection["1"].captions == ("text 14",)
    assert collection.search("text 14", k=1, target="texts")[0].score == pytest.approx(1, abs=1e-5)


def test_many_removals_are_dropped_from_the_table(collection: Collection) -> None:
    collection.add([Record(captions=[f"text {number}"], id=str(number)) for number in range(2500)])
    collection.remove([str(number) for number in range(900)])
    stats = collection._state.store.tables.needed("items").stats()
    assert stats["fragment_stats"]["lengths"]["max"] == 2048
    collection.remove([str(number) for number in range(900, 1300)])
    stats = collection._state.store.tables.needed("items").stats()
    assert stats["fragment_stats"]["lengths"]["mean"] * stats["fragment_stats"]["num_fragments"] == 1200
    assert collection.search("text 2000", k=1, target="texts")[0].id == "2000"
    assert len(Collection.open(collection.folder, load_retriever=ToyRetriever.load)) == 1200


def test_memory_for_near_duplicates_does_not_grow_with_their_links(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 2000
    monkeypatch.setattr("diptych.collection.changes.maintenance._BLOCK", 128)
    segment = MemorySegment(Item(str(row), f"{row}.png", str(row), added_ns=row) for row in range(n))
    items = LiveItems((Part(segment),))
    alike = np.ones((n, 4), dtype=np.float32)
    alike[n // 2 :, 0] = -1
    tracemalloc.start()
    groups = near_groups(items, [str(row) for row in range(n)], alike, 0.9)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [len(group.ids) for group in groups] == [n // 2, n // 2]
    assert [group.ids[0] for group in groups] == ["0", str(n // 2)]
    # A million links, which would take twenty bytes each.
    assert peak < 8e6


def test_a_table_is_dropped_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer killed while the files of a table go must not leave a table that names files which are gone."""
    store = Store(tmp_path)
    store.prepare()
    store.add_vectors("points", ["a", "b"], np.ones((2, 3), dtype=np.float32))
    with monkeypatch.context() as killed:
        killed.setattr("diptych.collection.storage.tables.shutil.rmtree", lambda *_, **__: None)
        store.drop("points")
    again = Store(tmp_path)
    assert again.vector_tables() == []
    assert again.keys("points").to_pylist() == []
    again.add_vectors("points", ["c"], np.zeros((1, 3), dtype=np.float32))
    assert Store(tmp_path).keys("points").to_pylist() == ["c"]
    again.drop("points")
    assert not list(tmp_path.glob("*.dropped"))
