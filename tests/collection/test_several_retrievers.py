"""Several retrievers in one collection."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diptych.collection import AddProgress, Collection, CollectionError, Record
from diptych.encoders.encoder import EncodedBatch
from diptych.errors import InvalidInputError
from tests.doubles import Killed, ToyRetriever, interrupt_change


class Negative(ToyRetriever):
    """A toy with encoders of its own: its features are the others' with the sign turned, so it is told apart."""

    def __init__(self, turn: int = 0, space: str = "cosine") -> None:
        super().__init__(turn, space)
        self.name = f"negative {turn}"
        self.image_fingerprint = self.text_fingerprint = "negative"
        self.fingerprint = f"negative-{space}-{turn}"

    def save(self, folder: Any) -> None:
        super().save(folder)
        (Path(folder) / "negative").touch()

    def stream_image_features(self, items: Sequence[Any]) -> Iterator[EncodedBatch]:
        for batch in super().stream_image_features(items):
            yield EncodedBatch(batch.rows, -batch.features, batch.failures)

    def text_features(self, texts: Sequence[str]) -> np.ndarray:
        return -super().text_features(texts)

    def encode_images(self, items: Sequence[Any]) -> np.ndarray:
        return -super().encode_images(items)


def load(folder: Path) -> ToyRetriever:
    turn, space = json.loads((Path(folder) / "toy.json").read_text())
    return (Negative if (Path(folder) / "negative").exists() else ToyRetriever)(turn, space)


@pytest.fixture
def collection(photos: Path) -> Iterator[Collection]:
    with Collection.create(photos / ".diptych", ToyRetriever(), load_retriever=load) as made:
        made.add([photos, *(Record(captions=[f"text {number}"], id=f"t{number}") for number in range(40))])
        yield made


def open_again(collection: Collection) -> Collection:
    return Collection.open(collection.folder, load_retriever=load)


def check(collection: Collection, name: str | None, retriever: ToyRetriever) -> None:
    """Every picture and caption is found by its own point, made by this very retriever."""
    items = list(collection)
    texts = {key: text for item in items for key, text in zip(item.caption_ids, item.captions, strict=True)}
    files = {item.id: collection.path_of(item) for item in items if item.path is not None}
    sides = (
        ("text", "texts", retriever.encode_texts(list(texts.values())) if texts else None, list(texts)),
        ("image", "images", retriever.encode_images(list(files.values())) if files else None, list(files)),
    )
    for side, target, expected, keys in sides:
        ids, points = collection.points(side, retriever=name)
        assert sorted(ids) == sorted(keys)
        if expected is None:
            continue
        stored = dict(zip(ids, points, strict=True))
        units = expected / np.linalg.norm(expected, axis=1, keepdims=True)
        np.testing.assert_allclose([stored[key] for key in keys], units, atol=1e-3)
        _, scores = collection.nearest(expected, 1, target=target, retriever=name)
        np.testing.assert_allclose(scores, 1, atol=1e-3)
    assert collection.verify().is_whole


def test_each_search_uses_the_points_of_its_own_retriever(collection: Collection) -> None:
    report = collection.add_retriever(Negative(1), name="other")
    assert (report.pictures, report.captions, report.read_again) == (3, 40, 3)
    assert collection.add_retriever(ToyRetriever(2)).read_again == 0
    found = {(one.name, one.fingerprint, one.active, one.ready, one.missing) for one in collection.retrievers()}
    assert found == {
        ("toy 0", "toy-cosine-0", True, True, 0),
        ("other", "negative-cosine-1", False, True, 0),
        ("toy 2", "toy-cosine-2", False, True, 0),
    }
    for one in (collection, open_again(collection)):
        check(one, None, ToyRetriever())
        check(one, "toy 0", ToyRetriever())
        check(one, "other", Negative(1))
        check(one, "toy 2", ToyRetriever(2))
        assert one.search("text 7", k=1, target="texts", retriever="other")[0].id == "t7"
        assert one.retriever_named("other").fingerprint == "negative-cosine-1"
    with pytest.raises(CollectionError, match="'toy 0', 'other', 'toy 2'"):
        collection.search("x", retriever="none")


def test_changes_are_seen_with_every_retriever(collection: Collection, photos: Path) -> None:
    collection.add_retriever(Negative(1), name="other")
    reader = open_again(collection)
    check(reader, "other", Negative(1))
    (photos / "new.png").write_text("a new picture")
    collection.add([photos, Record(captions=["a new text"], id="new")])
    collection.update("a.png", captions=["now described"])
    collection.remove(["t3", "b.png"])
    for one in (collection, reader, open_again(collection)):
        check(one, None, ToyRetriever())
        check(one, "other", Negative(1))
        assert one.search("a new text", k=1, target="texts", retriever="other")[0].id == "new"
        assert one.search("text 3", k=50, target="texts", retriever="other").considered == 41
        assert one.search("x", k=9, retriever="other").considered == 3


def test_activation_is_one_step_that_other_processes_notice(collection: Collection) -> None:
    reader = open_again(collection)
    check(reader, None, ToyRetriever())
    collection.add_retriever(Negative(1), name="other")
    collection.activate_retriever("other")
    assert [(one.name, one.active) for one in reader.retrievers()] == [("other", True), ("toy 0", False)]
    for one in (collection, reader, open_again(collection)):
        assert one.retriever.fingerprint == "negative-cosine-1"
        check(one, None, Negative(1))
        check(one, "toy 0", ToyRetriever())
        assert one.status().retriever == "other"
    collection.activate_retriever("toy 0")
    check(reader, None, ToyRetriever())


def test_the_old_retriever_stays_only_when_kept(collection: Collection) -> None:
    collection.set_retriever(ToyRetriever(1), keep=False)
    assert [one.name for one in collection.retrievers()] == ["toy 1"]
    interrupt_change(collection.set_retriever, ToyRetriever(2))
    again = open_again(collection)
    again.reencode()
    assert [one.name for one in collection.retrievers()] == ["toy 2", "toy 1"]
    check(collection, "toy 1", ToyRetriever(1))
    # Back to one that is stored: nothing is made anew, and there is still one of each.
    assert collection.set_retriever(ToyRetriever(1), keep=False).captions == 0
    assert [one.name for one in collection.retrievers()] == ["toy 1"]


def test_names_stay_unique_when_another_is_activated_during_a_change(collection: Collection) -> None:
    same = ToyRetriever(1)
    same.name = "toy 0"
    interrupt_change(collection.set_retriever, same)
    collection.add_retriever(ToyRetriever(2))
    collection.activate_retriever("toy 2")
    collection.reencode()
    assert [one.name for one in collection.retrievers()] == ["toy 0 2", "toy 0", "toy 2"]
    check(collection, None, ToyRetriever(1))
    check(collection, "toy 0", ToyRetriever(0))


def test_a_removed_retriever_leaves_nothing(collection: Collection) -> None:
    collection.add_retriever(Negative(1), name="other")
    collection.add_retriever(ToyRetriever(2))
    reader = open_again(collection)
    assert len(reader.search("x", retriever="other")) == 3
    with pytest.raises(CollectionError, match="active"):
        collection.remove_retriever("toy 0")
    collection.remove_retriever("other")
    collection.remove_retriever("toy 2")
    assert collection.verify().is_whole
    with pytest.raises(CollectionError, match="stored are 'toy 0'"):
        reader.search("x", retriever="other")
    check(reader, None, ToyRetriever())
    # The features that the remaining one uses are still there.
    assert collection.add_retriever(ToyRetriever(2)).read_again == 0


def test_an_interrupted_addition_is_known_and_goes_on(collection: Collection) -> None:
    collection.add([Record(captions=[f"many {number}"]) for number in range(1200)])

    def stop(progress: AddProgress) -> None:
        if progress.done > 1000:
            raise Killed

    with pytest.raises(Killed):
        collection.add_retriever(Negative(1), name="other", progress=stop)
    again = open_again(collection)
    other = again.retrievers()[1]
    assert (other.name, other.ready) == ("other", False)
    assert 0 < other.missing < 1200
    with pytest.raises(CollectionError, match="unfinished"):
        again.activate_retriever("other")
    assert "unfinished" in again.verify().problems[0]
    check_active = again.search("many 5", k=1, target="texts")
    assert check_active[0].score == pytest.approx(1, abs=1e-3)
    again.add([Record(captions=["added meanwhile"])])
    assert 0 < again.add_retriever(Negative(1)).captions < 1200
    again.activate_retriever("other")
    check(again, None, Negative(1))
    assert len(again) == 1244


def test_repair_finishes_an_interrupted_addition(collection: Collection) -> None:
    def stop(progress: AddProgress) -> None:
        raise Killed

    with pytest.raises(Killed):
        collection.add_retriever(Negative(1), name="other", progress=stop)
    again = open_again(collection)
    assert again.repair().is_whole
    check(again, "other", Negative(1))
    assert again.retrievers()[1].ready


def test_a_picture_one_retriever_never_got_is_counted_as_missing(collection: Collection, photos: Path) -> None:
    (photos / "c.png").unlink()
    report = collection.add_retriever(Negative(1), name="other")
    assert set(report.failures) == {"c.png"}
    other = collection.retrievers()[1]
    assert (other.ready, other.missing) == (True, 1)
    assert collection.verify().problems == (
        "1 picture has no points of the retriever 'other' and is not found; add or refresh it",
    )
    assert collection.search("x", k=9, retriever="other").considered == 2
    assert collection.search("x", k=9).considered == 3


def test_searches_and_index_of_two_retrievers_do_not_meet(collection: Collection) -> None:
    collection.add([Record(captions=[f"many {number}"]) for number in range(1000)])
    collection.add_retriever(Negative(1), name="other")
    collection.build_index()
    collection.build_index("other")
    for one in (collection, open_again(collection)):
        check(one, None, ToyRetriever())
        check(one, "other", Negative(1))


def test_points_come_by_id_and_in_order(collection: Collection) -> None:
    captions = [collection[f"t{number}"].caption_ids[0] for number in (5, 2, 9)]
    ids, points = collection.points("text", captions)
    assert ids == captions
    expected = ToyRetriever().encode_texts(["text 5", "text 2", "text 9"])
    np.testing.assert_allclose(points, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-3)
    ids, points = collection.points("image", ["t1"])
    assert (ids, len(points)) == ([], 0)
    with pytest.raises(CollectionError, match="no item 'nobody'"):
        collection.points("image", ["nobody"])
    with pytest.raises(InvalidInputError, match="side"):
        collection.points("images")  # type: ignore[arg-type]


def test_a_writer_may_wait_for_another(collection: Collection) -> None:
    patient = Collection.open(collection.folder, load_retriever=load, write_wait=20)
    hasty = Collection.open(collection.folder, load_retriever=load, write_wait=0.05)
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        collection._state.store.write(lambda db: inside.set() or leave.wait(20))

    holder = threading.Thread(target=hold)
    holder.start()
    inside.wait(20)
    started = time.monotonic()
    with pytest.raises(CollectionError, match="writing"):
        hasty.add([Record(captions=["no"])])
    assert time.monotonic() - started >= 0.05
    added: list[int] = []
    waiting = threading.Thread(target=lambda: added.append(patient.add([Record(captions=["yes"])]).added))
    waiting.start()
    time.sleep(0.1)
    assert added == []
    leave.set()
    waiting.join(20)
    holder.join(20)
    assert added == [1]


def test_a_retriever_saved_again_replaces_its_older_form(collection: Collection) -> None:
    reader = open_again(collection)
    check(reader, None, ToyRetriever())
    collection.set_retriever(ToyRetriever())
    collection.add_retriever(ToyRetriever(1))
    collection.add_retriever(ToyRetriever(1))
    assert [one.name for one in collection.retrievers()] == ["toy 0", "toy 1"]
    check(reader, None, ToyRetriever())
    check(reader, "toy 1", ToyRetriever(1))


def test_adding_goes_on_without_a_retriever_that_another_process_removes_meanwhile(tmp_path: Path) -> None:
    place = tmp_path / "collection"
    with Collection.create(place, ToyRetriever(), load_retriever=load) as first:
        first.add_retriever(ToyRetriever(1))

    def load_late(folder: Path) -> ToyRetriever:
        if load(folder).turn == 1:
            with Collection.open(place, load_retriever=load) as other:
                other.remove_retriever("toy 1")
        return load(folder)

    with Collection.open(place, load_retriever=load_late) as collection:
        collection.add([Record(captions=["a boat"], id="boat")])
        assert [stored.name for stored in collection.retrievers()] == ["toy 0"]
        assert collection.search("a boat", 1, target="texts")[0].id == "boat"
