"""Retrievers of a collection: points are made from features or files, and each change is one step."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diptych.cluster import ThreadWorkers
from diptych.collection import AddProgress
from diptych.collection.indexing.encoding import encoded, put_encoded, task_of
from diptych.collection.indexing.reencoding import ReencodeReport
from diptych.collection.item import Item
from diptych.collection.retrievers import RetrieverChanges
from diptych.collection.root import Root
from diptych.collection.store.dialect import has_table
from diptych.collection.store.model_history import records
from diptych.collection.store.models import LoadedRetrievers, all_models, model_named, models
from diptych.collection.store.points import POINT_KINDS, point_table, prune_contents, read_points
from diptych.collection.store.scoring import Scoring
from diptych.collection.store.store import Store
from diptych.collection.store.writing import PICTURE, TEXT, content_ids, put_items, remove_items
from diptych.encoders.encoder import EncodedBatch
from diptych.errors import ActiveRetrieverError, CollectionError, InvalidInputError
from diptych.space import Space
from tests.doubles import Killed, ToyRetriever, interrupt_change

N_TEXTS = 1100


class OtherEyes(ToyRetriever):
    """A retriever with another image encoder."""

    def __init__(self, turn: int = 0, space: str = "cosine") -> None:
        super().__init__(turn, space)
        self.image_fingerprint = "other"
        self.fingerprint = f"other-{turn}"


class Blind(ToyRetriever):
    """A retriever that uses stored features, or fails."""

    def stream_image_features(self, items: Sequence[Any]) -> Iterator[EncodedBatch]:
        raise AssertionError("pixels were touched")

    def text_features(self, texts: Sequence[str]) -> np.ndarray:
        raise AssertionError("texts were encoded again")


class Elsewhere(ThreadWorkers):
    """Workers that share tasks as those of a cluster do."""

    elsewhere = True


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def put(store: Store, photos: Path, names: Sequence[str], texts: Sequence[str]) -> None:
    """Store items without points."""
    items = []
    for name in names:
        path = photos / name
        status = path.stat()
        facts: dict[str, Any] = {"path": name, "content_hash": digest(path.read_bytes()), "size": status.st_size}
        items.append(Item(id=name, mtime_ns=status.st_mtime_ns, added_ns=1, updated_ns=1, **facts))
    for text in texts:
        said: dict[str, Any] = {"captions": (text,), "caption_ids": (f"{text}-1",)}
        items.append(Item(id=text, path=None, content_hash=None, added_ns=1, updated_ns=1, **said))
    store.write(lambda db: put_items(db, items))


@pytest.fixture
def make(store: Store, photos: Path) -> Callable[[], RetrieverChanges]:
    """Return the operations as a new process sees them."""
    return lambda: RetrieverChanges(store, lambda: Root(photos), LoadedRetrievers(store, ToyRetriever.load))


@pytest.fixture
def changes(store: Store, photos: Path, make: Callable[[], RetrieverChanges]) -> RetrieverChanges:
    made = make()
    made.create(ToyRetriever())
    put(store, photos, ["a.png", "b.png", "c.png"], [f"text {number}" for number in range(N_TEXTS)])
    made.fill()
    return made


def wrong(store: Store, photos: Path, name: str | None, retriever: ToyRetriever) -> list[str]:
    """Return the contents whose stored points are not those of a retriever."""
    with store.reading() as db:
        model = model_named(db, name)
        pictures = [path for (path,) in db.rows("SELECT path FROM item WHERE path IS NOT NULL")]
        texts = [text for (text,) in db.rows("SELECT text FROM caption")]
        found = {side: read_points(db, model.id, side) for side in ("image", "text")}  # type: ignore[arg-type]
    expected = {
        digest((photos / path).read_bytes()): retriever.encode_images([photos / path])[0]
        for path in pictures
        if (photos / path).exists()
    }
    expected |= dict(zip([digest(text.encode()) for text in texts], retriever.encode_texts(texts), strict=True))
    with store.reading() as db:
        hashes = {number: bytes(key).hex() for key, number in db.rows("SELECT hash, id FROM content")}
    stored = {
        hashes[content]: vector
        for contents, _, vectors in found.values()
        for content, vector in zip(contents.tolist(), vectors, strict=True)
    }
    units = {key: point / np.linalg.norm(point) for key, point in expected.items()}
    return [key for key in units if key not in stored or not np.allclose(stored[key], units[key], atol=1e-3)]


def names(changes: RetrieverChanges) -> list[tuple[str, bool, bool, int]]:
    return [(one.name, one.active, one.ready, one.missing) for one in changes.stored()]


def test_points_come_from_stored_features_or_from_files(store: Store, photos: Path, changes: RetrieverChanges) -> None:
    assert wrong(store, photos, None, ToyRetriever()) == []
    report = changes.set(Blind(1))
    assert (report.pictures, report.captions, report.read_again) == (3, N_TEXTS, 0)
    assert wrong(store, photos, None, ToyRetriever(1)) == []
    (photos / "b.png").write_text("changed since")
    (photos / "c.png").unlink()
    report = changes.add(OtherEyes(2))
    assert (report.pictures, report.captions, report.read_again) == (1, N_TEXTS, 1)
    assert set(report.failures) == {"b.png", "c.png"}
    assert "refresh" in report.failures["b.png"]
    assert names(changes) == [("toy 1", True, True, 0), ("toy 0", False, True, 0), ("toy 2", False, True, 2)]


def test_an_interrupted_change_goes_on(
    store: Store, photos: Path, changes: RetrieverChanges, make: Callable[[], RetrieverChanges]
) -> None:
    def stop(progress: AddProgress) -> None:
        if progress.done > 1000 or progress.total < 1000:
            raise Killed

    with pytest.raises(Killed):
        changes.set(OtherEyes(3), stop)
    with pytest.raises(Killed):
        changes.add(ToyRetriever(4), "other", stop)
    assert [one[:3] for one in names(changes)] == [("toy 0", True, True), ("other", False, False)]
    with pytest.raises(CollectionError, match="unfinished"):
        changes.activate("other")
    put(store, photos, [], ["added meanwhile"])
    again = RetrieverChanges(store, lambda: Root(photos), LoadedRetrievers(store, lambda _: OtherEyes(3)))
    report = again.reencode()
    assert 0 < report.captions < N_TEXTS
    assert [one[:3] for one in names(again)] == [("toy 3", True, True), ("other", False, False), ("toy 0", False, True)]
    with store.reading() as db:
        assert [(one.before, one.after, one.origin) for one in records(db)] == [("toy 0", "toy 3", "switch")]
    # On the way back, what was added since gets its points.
    make().activate("toy 0")
    assert names(again)[:2] == [("toy 0", True, True, 0), ("toy 3", False, True, 0)]
    assert wrong(store, photos, None, ToyRetriever()) == []
    assert again.reencode() == ReencodeReport()


def test_items_added_during_a_change_get_their_points(store: Store, photos: Path, changes: RetrieverChanges) -> None:
    added = []

    def add(progress: AddProgress) -> None:
        if len(added) < 2:
            added.append(f"late {len(added)}")
            put(store, photos, [], added[-1:])

    assert changes.set(ToyRetriever(1), add).captions == N_TEXTS + 2
    assert wrong(store, photos, None, ToyRetriever(1)) == []


def test_what_is_replaced_or_removed_leaves_nothing(store: Store, photos: Path, changes: RetrieverChanges) -> None:
    changes.set(OtherEyes(1), keep=False)
    interrupt_change(changes.set, OtherEyes(2))
    interrupt_change(changes.set, ToyRetriever(3))
    with pytest.raises(ActiveRetrieverError, match="active"):
        changes.remove("toy 1")
    with store.reading() as db:
        assert [(model.name, model.state) for model in all_models(db)] == [("toy 1", "active"), ("toy 3", "pending")]
        assert {side for (side,) in db.rows("SELECT side FROM encoder")} == {"image", "text"}
    changes.reencode()
    changes.remove("toy 1")
    with store.reading() as db:
        (model,) = models(db)
        numbers = range(1, model.id + 10)
        tables = {number for number in numbers for side in POINT_KINDS if has_table(db, point_table(number, side))}
        assert tables == {model.id}
        assert db.value("SELECT count(*) FROM feature") == N_TEXTS + 3
        assert len(db.rows("SELECT DISTINCT model FROM model_file")) == 1


def test_the_last_three_rest(store: Store, changes: RetrieverChanges) -> None:
    for turn in range(1, 7):
        changes.set(ToyRetriever(turn))
    assert [one[0] for one in names(changes)] == ["toy 6", "toy 3", "toy 4", "toy 5"]


def test_names_are_unique(changes: RetrieverChanges) -> None:
    changes.add(ToyRetriever(1), "trained")
    with pytest.raises(CollectionError, match="called 'trained' already"):
        changes.add(ToyRetriever(2), "trained")
    with pytest.raises(CollectionError, match="stored already, as 'trained'"):
        changes.add(ToyRetriever(1), "another")
    for name in ("", "a/b", "a\nb", " a", "a" * 81):
        with pytest.raises(InvalidInputError, match="cannot name a retriever"):
            changes.add(ToyRetriever(2), name)
    same = ToyRetriever(2)
    same.name = "trained"
    changes.add(same)
    changes.set(ToyRetriever(3))
    assert [one[0] for one in names(changes)] == ["toy 3", "trained", "trained 2", "toy 0"]


def test_new_files_and_texts_are_encoded_once_for_all_models(store: Store, photos: Path) -> None:
    changes = RetrieverChanges(store, lambda: Root(photos), LoadedRetrievers(store, ToyRetriever.load))
    changes.create(ToyRetriever())
    changes.add(Blind(1))
    changes.add(ToyRetriever(2, "hamming"))
    (photos / "d.png").write_text("bad")
    files = {digest(path.read_bytes()): (path, path.stat()) for path in sorted(photos.iterdir())}
    texts = {digest(text.encode()): text for text in ("one", "two")}
    retrievers = [ToyRetriever(), Blind(1), ToyRetriever(2, "hamming")]
    for workers in (ThreadWorkers(), Elsewhere()):
        with store.reading() as db:
            sources = list(zip(models(db), retrievers, strict=True))
            task = task_of(db, sources, files, texts).with_files(files)
        ((asker, made),) = encoded(workers, [("x", task)], sources)
        assert (asker, made.failures) == ("x", {digest(b"bad"): "it is bad"})

        def write(db: Any, made: Any = made, sources: Any = sources) -> None:
            ids = content_ids(db, list(files), PICTURE) | content_ids(db, list(texts), TEXT)
            put_encoded(db, made, sources, ids)

        store.write(write)
        with store.reading() as db:
            for model in models(db):
                assert [len(read_points(db, model.id, side)[0]) for side in ("image", "text")] == [3, 2]
            # What is stored is not encoded again; another model takes the features.
            again = task_of(db, sources, files, texts)
            assert again.pictures == [digest(b"bad")]
            assert {key: keys for (_, key), keys in again.to_encode.items() if key == "text"} == {"text": []}
        store.write(lambda db: prune_contents(db, db.ids("SELECT id FROM content")))


def test_a_point_beyond_the_range_of_its_column_is_a_reason(store: Store, photos: Path) -> None:
    class Far(ToyRetriever):
        def texts_to_points(self, features: np.ndarray) -> np.ndarray:
            return super().images_to_points(features) * np.where(features[:, :1] > 0, 1e9, 1)

    changes = RetrieverChanges(store, lambda: Root(photos), LoadedRetrievers(store, ToyRetriever.load))
    changes.create(Far(0, "dot"))
    put(store, photos, ["a.png"], [f"text {number}" for number in range(20)])
    changes.fill()
    assert 0 < changes.stored()[0].missing < 20
    with store.reading() as db:
        items = db.ids("SELECT id FROM item")
    store.write(lambda db: remove_items(db, items))
    assert changes.stored()[0].missing == 0


@pytest.mark.parametrize("space", ["cosine", "pearson", "covariance", "dot", "corrected", "euclidean"])
@pytest.mark.parametrize("side", ["image", "text"])
def test_stored_points_can_be_compared_by_their_space(space: str, side: Any) -> None:
    rng = np.random.default_rng(1)
    points, queries = rng.standard_normal((20, 8)), rng.standard_normal((3, 8))
    points[:, -1], queries[:, -1] = (1, -1) if side == "image" else (-1, 1)
    scoring = Scoring(Space(space), "text_query" if side == "image" else "image_query")
    stored = scoring.comparable(scoring.stored(points), side)
    expected = scoring.space.compare(queries, points, scoring.direction)
    np.testing.assert_allclose(scoring.space.compare(queries, stored, scoring.direction), expected, atol=0.03)
