from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diptych.collection import AddProgress, Collection, CollectionError, Record
from diptych.collection.root import trust_root
from diptych.encoders.encoder import EncodedBatch
from tests.doubles import Killed, ToyRetriever, interrupt_change, wrong_points

# More than are encoded at once, and than are kept in memory.
N_TEXTS = 2100


class Blind(ToyRetriever):
    """A retriever that cannot read pictures: whoever asks it to has not used the stored features."""

    def stream_image_features(self, items: Sequence[Any]) -> Iterator[EncodedBatch]:
        raise AssertionError("pixels were touched")

    def text_features(self, texts: Sequence[str]) -> np.ndarray:
        raise AssertionError("texts were encoded again")


class OtherEyes(ToyRetriever):
    """A retriever with another image encoder."""

    def __init__(self, turn: int = 0, space: str = "cosine") -> None:
        super().__init__(turn, space)
        self.image_fingerprint = "other"
        self.fingerprint = f"other-{turn}"


@pytest.fixture(scope="module")
def filled_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of three pictures whose collection also has many texts."""
    folder = tmp_path_factory.mktemp("filled")
    for name in "abc":
        (folder / f"{name}.png").write_text(f"picture {name}")
    with Collection.create(folder / ".diptych", ToyRetriever(), load_retriever=ToyRetriever.load) as made:
        made.add([folder, *(Record(captions=[f"text {number}"]) for number in range(N_TEXTS))])
    return folder


@pytest.fixture
def filled(filled_folder: Path, photos: Path) -> Iterator[Collection]:
    """A copy of it that a test may change."""
    shutil.copytree(filled_folder, photos, dirs_exist_ok=True)
    trust_root(photos / ".diptych", photos)
    with Collection.open(photos / ".diptych", load_retriever=ToyRetriever.load) as opened:
        yield opened


def points_are_of(collection: Collection, turn: int, photos: Path) -> bool:
    if wrong_points(collection):
        return False
    answer = collection.search(Path(photos / "a.png"), k=1)[0]
    expected = ToyRetriever(turn).encode_images([photos / "a.png"])
    _, stored = collection.points("image", [answer.id])
    return bool(np.allclose(stored, expected / np.linalg.norm(expected), atol=1e-3))


def test_a_new_model_uses_the_stored_features(filled: Collection, photos: Path) -> None:
    assert points_are_of(filled, 0, photos)
    report = filled.set_retriever(Blind(1))
    assert (report.pictures, report.captions, report.read_again) == (3, N_TEXTS, 0)
    filled.close()
    again = Collection.open(filled.folder, load_retriever=ToyRetriever.load)
    assert points_are_of(again, 1, photos)
    assert again.status().fingerprint == "toy-cosine-1"


def test_another_encoder_reads_the_pictures_again(filled: Collection, photos: Path) -> None:
    (photos / "b.png").write_text("changed since")
    (photos / "c.png").unlink()
    report = filled.set_retriever(OtherEyes(2))
    assert (report.pictures, report.read_again) == (1, 1)
    assert set(report.failures) == {"b.png", "c.png"}
    assert "refresh" in report.failures["b.png"]
    assert len(filled) == N_TEXTS + 3
    assert len(filled.search("x", k=10)) == 1
    assert filled.status().unsearchable == 2
    assert not filled.verify().is_whole
    # What is there again becomes searchable again.
    (photos / "c.png").write_text("picture c")
    filled.refresh()
    assert filled.repair().is_whole
    assert len(filled.search("x", k=10)) == 3


def test_an_interrupted_change_keeps_the_old_model_and_goes_on(filled: Collection, photos: Path) -> None:
    def stop(progress: AddProgress) -> None:
        if progress.done > 1000:
            raise Killed

    with pytest.raises(Killed):
        filled.set_retriever(ToyRetriever(3), progress=stop)
    assert points_are_of(filled, 0, photos)
    status = filled.status()
    assert (status.stale, status.pending, status.fingerprint) == (True, "toy 3", "toy-cosine-0")
    again = Collection.open(filled.folder, load_retriever=ToyRetriever.load)
    again.add([Record(captions=["added meanwhile"], id="meanwhile")])
    assert points_are_of(again, 0, photos)
    report = again.reencode()
    assert 0 < report.captions < N_TEXTS
    assert points_are_of(again, 3, photos)
    assert not again.status().stale
    assert again.search("added meanwhile", k=1, target="texts")[0].id == "meanwhile"
    # The first process follows at its next search.
    assert points_are_of(filled, 3, photos)


def test_searches_go_on_during_the_change(filled: Collection, photos: Path) -> None:
    seen = []

    def look(progress: AddProgress) -> None:
        seen.append((points_are_of(filled, 0, photos), filled.status().stale))

    filled.set_retriever(ToyRetriever(1), progress=look)
    assert seen
    assert all(old and stale for old, stale in seen)


def test_the_same_points_need_no_work(filled: Collection) -> None:
    assert filled.set_retriever(Blind(0)).captions == 0
    assert not filled.status().stale


def test_the_points_of_a_retriever_that_is_not_kept_go(filled: Collection, photos: Path) -> None:
    filled.set_retriever(ToyRetriever(1), keep=False)
    assert [one.name for one in filled.retrievers()] == ["toy 1"]
    assert filled.verify().is_whole
    assert points_are_of(filled, 1, photos)


class Trained(ToyRetriever):
    """A retriever that can be fitted again."""

    def fit(self, turn: int) -> None:
        vars(self).update(vars(ToyRetriever(turn)))


class Single(Trained):
    """A retriever that cannot be copied."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Single:
        raise TypeError("there is only one")


def test_training_a_retriever_leaves_a_collection_that_uses_it_alone(photos: Path) -> None:
    retriever = Trained()
    made = Collection.create(photos / ".diptych", retriever, load_retriever=ToyRetriever.load)
    made.add(photos / "a.png")
    retriever.fit(5)
    made.add(photos)
    assert points_are_of(made, 0, photos)
    made.set_retriever(retriever)
    retriever.fit(6)
    made.add(Record(captions=["later"]))
    assert points_are_of(made, 5, photos)


def test_a_retriever_without_copies_is_refused_once_it_is_another(photos: Path) -> None:
    retriever = Single()
    made = Collection.create(photos / ".diptych", retriever, load_retriever=ToyRetriever.load)
    made.add(photos / "a.png")
    retriever.fit(5)
    for write in (lambda: made.add(photos), lambda: made.update("a.png", captions=["x"]), made.repair):
        with pytest.raises(CollectionError, match="set_retriever"):
            write()
    assert len(made) == 1
    made.set_retriever(retriever)
    made.add(photos)
    assert points_are_of(made, 5, photos)


def test_a_saved_retriever_whose_weights_changed_is_refused(filled: Collection, photos: Path) -> None:
    again = Collection.open(filled.folder, load_retriever=lambda _: ToyRetriever(4))
    for use in (lambda: again.add(Record(captions=["new"])), lambda: again.search("new")):
        with pytest.raises(CollectionError, match=r"weights.*diptych index --retriever"):
            use()
    assert len(again) == N_TEXTS + 3
    again.set_retriever(ToyRetriever(4))
    assert points_are_of(again, 4, photos)


def test_the_same_points_keep_a_change_that_was_begun(filled: Collection, photos: Path) -> None:
    interrupt_change(filled.set_retriever, ToyRetriever(1))
    filled.set_retriever(Blind(0))
    assert filled.status().pending == "toy 1"
    filled.reencode()
    assert points_are_of(filled, 1, photos)
