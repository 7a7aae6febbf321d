from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from diptych.collection import AddProgress, Collection, CollectionError, Record
from diptych.data.caption_files import CaptionedPicture
from diptych.encoders.encoder import EncodedBatch
from diptych.errors import InvalidInputError
from tests.doubles import ToyRetriever, wrong_points


def test_a_folder_is_added_once(collection: Collection, photos: Path) -> None:
    first = collection.add(photos)
    assert (first.added, first.unchanged, first.skipped) == (3, 0, {})
    again = collection.add(photos)
    assert (again.added, again.unchanged, again.changed) == (0, 3, 0)
    assert sorted(str(item.path) for item in collection) == ["a.png", "b.png", "c.png"]


def test_batches_that_are_read_and_encoded_together_are_written_in_their_order(
    collection: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(200):
        # Every tenth has the content of one in an earlier batch.
        (folder / f"{number:03d}.png").write_text(f"picture {number % 100 if number % 10 == 0 else number}")
    monkeypatch.setattr("diptych.collection.indexing.adding.PICTURES_AT_ONCE", 16)
    report = collection.add(folder)
    assert (report.added, report.skipped, len(report.duplicates)) == (200, {}, 10)
    assert [str(item.path).rpartition("/")[2] for item in sorted(collection, key=lambda item: item.added_ns)] == [
        f"{number:03d}.png" for number in range(200)
    ]
    paths = sorted(folder.iterdir())
    ids, scores = collection.nearest(collection.retriever.encode_images(paths), 1, target="images")
    np.testing.assert_allclose(scores, 1, atol=1e-3)
    assert [collection[found].content_hash for found in ids[:, 0]] == [collection[path].content_hash for path in paths]


def test_unchanged_files_are_not_opened(collection: Collection, photos: Path) -> None:
    collection.add(photos)
    status = os.stat(photos / "a.png")
    (photos / "a.png").write_text("picture X")
    os.utime(photos / "a.png", ns=(status.st_atime_ns, status.st_mtime_ns))
    # Same size and time: what is written there now is not seen.
    assert collection.add(photos).unchanged == 3


def test_a_touched_file_with_the_same_content_is_unchanged(collection: Collection, photos: Path) -> None:
    collection.add(photos)
    os.utime(photos / "a.png", ns=(1, 1))
    assert collection.add(photos).unchanged == 3
    assert collection["a.png"].mtime_ns == 1


def test_new_content_under_a_known_path_is_an_update(collection: Collection, photos: Path) -> None:
    collection.add([Record(photos / "a.png", captions=["the first"])])
    before = collection["a.png"]
    (photos / "a.png").write_text("another picture")
    assert collection.add(photos / "a.png").updated == 1
    after = collection["a.png"]
    assert (after.id, after.captions, after.added_ns) == (before.id, before.captions, before.added_ns)
    assert after.content_hash != before.content_hash
    assert collection.search(photos / "a.png", k=1)[0].score == pytest.approx(1, abs=1e-3)


def test_a_copy_is_an_item_of_its_own_and_reported(collection: Collection, photos: Path) -> None:
    collection.add(photos)
    shutil.copy(photos / "a.png", photos / "copy.png")
    report = collection.add(photos)
    assert (report.added, report.duplicates) == (1, {"copy.png": "a.png"})
    shutil.copy(photos / "copy.png", photos / "new 1.png")
    (photos / "x.png").write_text("same")
    (photos / "y.png").write_text("same")
    assert set(collection.add(photos).duplicates) == {"new 1.png", "y.png"}


def test_two_renamed_copies_claim_two_items(collection: Collection, photos: Path) -> None:
    shutil.copy(photos / "a.png", photos / "a2.png")
    collection.add(photos)
    ids = {collection["a.png"].id, collection["a2.png"].id}
    (photos / "a.png").rename(photos / "p.png")
    (photos / "a2.png").rename(photos / "q.png")
    assert collection.add(photos).renamed == 2
    assert {collection["p.png"].id, collection["q.png"].id} == ids


def test_what_cannot_be_used_is_skipped_with_a_reason(collection: Collection, photos: Path) -> None:
    (photos / "bad.png").write_text("bad")
    (photos / "loop.png").symlink_to(photos / "loop.png")
    os.mkfifo(photos / "pipe.png")
    secret = photos / "secret.png"
    secret.write_text("hidden")
    secret.chmod(0)
    strange = os.fsdecode(bytes(photos) + b"/\xff\xfe.png")
    Path(strange).write_text("strange")
    names = [photos / "a.png", photos / "bad.png", photos / "loop.png", photos / "pipe.png", secret, strange]
    report = collection.add([*names, photos / "missing.png"])
    readable = os.access(secret, os.R_OK)
    assert report.added == 1 + readable
    assert len(report.skipped) == 6 - readable
    assert report.skipped[str(photos / "bad.png")] == "it is bad"
    assert "regular" in report.skipped[str(photos / "pipe.png")]
    assert "rename" in report.skipped[strange]
    assert all(report.skipped.values())


def test_captions_labels_and_metadata_come_with_records(collection: Collection, photos: Path) -> None:
    record = Record(
        photos / "a.png", captions=["one", "two"], labels=["x"], metadata={"year": 2010, "deep": {"a": [1]}}
    )
    collection.add([record])
    item = collection["a.png"]
    assert (item.captions, item.labels, item.metadata) == (("one", "two"), ("x",), {"year": 2010, "deep": {"a": [1]}})
    assert collection.add([record]).unchanged == 1
    # What is None stays, what is empty goes.
    assert collection.add([Record(photos / "a.png", captions=["two", "three"], labels=())]).updated == 1
    changed = collection["a.png"]
    assert (changed.captions, changed.labels, changed.metadata["year"]) == (("two", "three"), (), 2010)
    assert changed.caption_ids[0] == item.caption_ids[1]


def test_captioned_pictures_are_records(collection: Collection, photos: Path) -> None:
    collection.add([CaptionedPicture(photos / "a.png", ("one",), ("x",), {"year": 1})])
    assert collection["a.png"].captions == ("one",)
    # A caption file that says nothing of labels does not erase them.
    collection.add([CaptionedPicture(photos / "a.png", ("one",))])
    assert collection["a.png"].labels == ("x",)


def test_texts_are_items_too(collection: Collection) -> None:
    assert collection.add([Record(captions=["just words"]), Record(captions=["named"], id="n")]).added == 2
    assert collection.add([Record(captions=["just words"]), Record(captions=["named"], id="n")]).unchanged == 2
    assert collection["n"].path is None
    assert collection.search("named", k=1, target="texts")[0].id == "n"


def test_a_path_or_id_named_twice_counts_once(collection: Collection, photos: Path) -> None:
    report = collection.add([photos / "a.png", photos, Record(photos / "a.png", captions=["last"])])
    assert (report.added, collection["a.png"].captions) == (3, ("last",))
    report = collection.add([Record(captions=["1"], id="x"), Record(captions=["2"], id="x")])
    assert report.added == 1
    assert len(report.skipped) == 1


def test_progress_names_what_is_durable(collection: Collection, photos: Path) -> None:
    seen: list[AddProgress] = []

    def look(progress: AddProgress) -> None:
        seen.append(progress)
        with Collection.open(collection.folder, load_retriever=ToyRetriever.load) as other:
            assert set(progress.stored) <= {item.id for item in other}

    collection.add([Record(captions=[str(number)], id=f"t{number}") for number in range(5000)], progress=look)
    assert [step.done for step in seen] == sorted(step.done for step in seen)
    assert (seen[-1].done, seen[-1].total) == (5000, 5000)
    assert sum(len(step.stored) for step in seen) == 5000
    assert photos.exists()


def test_refresh_removes_what_is_gone_and_nothing_else(collection: Collection, photos: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.png"
    elsewhere.write_text("elsewhere")
    collection.add([photos, elsewhere, Record(captions=["a text"])])
    elsewhere.unlink()
    (photos / "b.png").unlink()
    (photos / "new.png").write_text("new")
    report = collection.refresh()
    assert (report.added, report.removed) == (1, ["b.png"])
    assert str(elsewhere) in collection
    assert len(collection) == 5
    (photos / "c.png").unlink()
    assert collection.remove_missing(photos / "no such folder") == []
    assert collection.remove_missing() == ["c.png", str(elsewhere)]
    assert len(collection) == 3


def test_refresh_of_a_folder_that_is_gone_removes_nothing(collection: Collection, photos: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    (disk / "d.png").write_text("on disk")
    collection.add(disk)
    shutil.rmtree(disk)
    with pytest.raises(InvalidInputError):
        collection.refresh(disk)
    assert len(collection) == 1


def test_items_are_updated_and_removed(collection: Collection, photos: Path) -> None:
    collection.add([photos, Record(captions=["words"], id="t")])
    item = collection.update("a.png", captions=["new"], labels=["l"], metadata={"k": 1})
    assert (item.captions, item.labels, item.metadata) == (("new",), ("l",), {"k": 1})
    assert collection.search("new", k=1, target="texts")[0].id == item.id
    collection.update("a.png", captions=[])
    assert collection.search("new", k=5, target="texts").considered == 1
    assert collection.update("t", labels=["l"]).captions == ("words",)
    with pytest.raises(InvalidInputError, match="remove it"):
        collection.update("t", captions=[])
    from diptych.collection import Filter

    assert set(collection.remove(Filter.parse("label:l"))) == {item.id, "t"}
    assert collection.remove(photos / "b.png")
    with pytest.raises(CollectionError, match=r"b\.png"):
        collection.remove("b.png")
    assert [item.path for item in collection] == ["c.png"]


def test_items_whose_file_is_gone_can_be_named(collection: Collection, photos: Path) -> None:
    collection.add(photos)
    (photos / "a.png").unlink()
    collection.update("a.png", labels=["lost"])
    assert collection.remove("a.png")


def test_thumbnails_and_sizes_are_kept(collection: Collection, photos: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 255, (300, 600, 3), dtype=np.uint8)
    rotated = Image.fromarray(pixels)
    exif = rotated.getexif()
    exif[0x0112] = 6
    rotated.save(photos / "real.jpg", exif=exif)
    collection.add(photos)
    item = collection["real.jpg"]
    assert (item.width, item.height) == (300, 600)
    thumbnail = collection.thumbnail("real.jpg")
    assert thumbnail is not None
    assert thumbnail[:2] == b"\xff\xd8"
    assert collection.thumbnail("a.png") is None


def nested(depth: int) -> dict[str, Any]:
    inner: dict[str, Any] = {"x": 1}
    for _ in range(depth - 1):
        inner = {"x": inner}
    return inner


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"path": "a.png", "captions": "one string"},
        {"path": "a.png", "captions": [""]},
        {"path": "a.png", "labels": ["\ud800"]},
        {"path": "a.png", "metadata": {"x": float("nan")}},
        {"path": "a.png", "metadata": {"x": object()}},
        {"path": "a.png", "id": ""},
        {"captions": ["x"], "id": "\udcff"},
        {"captions": ["a\0b"]},
        {"captions": ["a" * 100_001]},
        {"captions": ["a"] * 1_001},
        {"captions": ["a" * 90_000] * 12},
        {"path": "a.png", "labels": ["a" * 401]},
        {"path": "a.png", "metadata": nested(17)},
        {"path": "a.png", "metadata": nested(100_000)},
        {"path": "a.png", "metadata": {"x": [[[1e999]]]}},
        {"path": "a.png", "metadata": {"x": 10**400}},
        {"path": "a.png", "metadata": {"x": {"y": -(10**20)}}},
        {"path": "a.png", "metadata": {"x": "a" * 100_000}},
        {"path": "a.png", "metadata": {str(number): 1 for number in range(1_001)}},
        {"path": "a.png", "metadata": {"": 1}},
        {"path": "a.png", "metadata": {"x": ["\ud800"]}},
        {"path": "a.png", "metadata": {"x\0": 1}},
    ],
)
def test_a_record_says_what_is_wrong(arguments: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError) as raised:
        Record(**arguments)
    assert len(str(raised.value)) < 500


def test_what_is_large_but_no_nonsense_is_taken(collection: Collection) -> None:
    metadata = {"deep": nested(15), "id": 2**64 - 1, "least": -(2**63), "text": "ä" * 90_000, "tiny": 1e-300}
    collection.add(Record(captions=["a" * 100_000] * 10, labels=["b" * 400] * 1_000, metadata=metadata, id="large"))
    assert dict(collection["large"].metadata) == metadata


def test_other_things_are_refused(collection: Collection) -> None:
    with pytest.raises(InvalidInputError, match="Record"):
        collection.add([3])


class Late(ToyRetriever):
    """A retriever that finds another picture where one was hashed."""

    def stream_image_features(self, items: Sequence[Any]) -> Iterator[EncodedBatch]:
        for item in items:
            if Path(item).name == "a.png":
                other = Path(item).with_name("other")
                other.write_text("picture z")
                other.replace(item)
        yield from super().stream_image_features(items)


def test_a_file_replaced_while_it_is_read_is_not_kept(photos: Path) -> None:
    first = (photos / "a.png").read_bytes()
    made = Collection.create(photos / ".diptych", Late(), load_retriever=ToyRetriever.load)
    report = made.add(photos)
    assert report.skipped == {str(photos / "a.png"): "it changed while it was read; index again"}
    assert report.added == 2
    # Neither are its features: the content that was hashed has none yet.
    (photos / "a.png").write_bytes(first)
    again = Collection.open(made.folder, load_retriever=ToyRetriever.load)
    assert again.add(photos).added == 1
    assert not wrong_points(again)
    assert again.search(photos / "a.png", k=1)[0].score == pytest.approx(1, abs=1e-3)


def test_a_text_does_not_overwrite_the_item_that_was_it_once(collection: Collection) -> None:
    text = Record(captions=["a red ball"])
    collection.add(text)
    (first,) = collection
    collection.update(first.id, captions=["a blue boat"])
    assert collection.add(text).added == 1
    assert collection[first.id].captions == ("a blue boat",)
    assert sorted(item.captions for item in collection) == [("a blue boat",), ("a red ball",)]
    assert collection.add(text).unchanged == 1


def test_skipped_texts_are_told_apart(collection: Collection) -> None:
    twice = [Record(captions=[text], id=name) for text, name in (("x", "one"), ("y", "two"))] * 2
    report = collection.add([*twice, Record(captions=["z"]), Record(captions=["z"])])
    assert (report.added, set(report.skipped)) == (3, {"one", "two", "z"})


def test_one_bad_description_does_not_cost_the_others(collection: Collection, photos: Path) -> None:
    described = [
        CaptionedPicture(photos / "a.png", ("one",), (), {"depth": float("nan")}),
        CaptionedPicture(photos / "b.png", ("lone \udcff",), (), {}),
        CaptionedPicture(photos / "c.png", ("three",), (), {}),
    ]
    report = collection.add(described)
    assert report.added == 1
    assert set(report.skipped) == {str(photos / "a.png"), str(photos / "b.png")}
    assert "JSON" in report.skipped[str(photos / "a.png")]


class Picky(ToyRetriever):
    """A retriever that fails on some texts, whatever stands beside them."""

    def __init__(self, turn: int = 0, space: str = "cosine") -> None:
        super().__init__(turn, space)
        self.fingerprint = self.text_fingerprint = "picky"

    def text_features(self, texts: Sequence[str]) -> np.ndarray:
        if any("refused" in text for text in texts):
            raise ValueError("math domain error")
        return super().text_features(texts)


def test_a_caption_that_cannot_be_encoded_costs_its_own_record_alone(photos: Path) -> None:
    made = Collection.create(photos / ".diptych", Picky(), load_retriever=Picky.load)
    captions = {"a.png": "a dog", "b.png": "this one is refused", "c.png": "a boat"}
    records = [Record(photos / name, captions=[caption]) for name, caption in captions.items()]
    report = made.add([*records, Record(captions=["a text"]), Record(captions=["also refused"])])
    reason = "the caption {!r} cannot be encoded (math domain error)"
    assert report.skipped == {
        str(photos / "b.png"): reason.format("this one is refused"),
        "also refused": reason.format("also refused"),
    }
    assert report.added == 3
    assert not wrong_points(made)
    assert [answer.caption for answer in made.search("a boat", k=1, target="texts")] == ["a boat"]
    kept = made.items()[0]
    with pytest.raises(InvalidInputError, match="cannot be encoded"):
        made.update(kept.id, captions=["refused"])
    assert made[kept.id].captions == kept.captions


def test_captions_that_a_new_retriever_cannot_encode_are_reported(photos: Path) -> None:
    made = Collection.create(photos / ".diptych", ToyRetriever(), load_retriever=Picky.load)
    made.add([Record(captions=["a dog"]), Record(captions=["refused"])])
    report = made.set_retriever(Picky())
    assert (report.captions, list(report.failures)) == (1, ["refused"])
