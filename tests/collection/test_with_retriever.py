"""The whole way: drawn scenes, files, a learned retriever, a collection."""

from __future__ import annotations

import copy
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from diptych.collection import Collection, Record
from diptych.data import load_dataset
from diptych.data.sample_photographs import PHOTOGRAPHS_FOLDER
from diptych.encoders import ColourEdgeHistograms, TfidfTopics, read_picture
from diptych.models import CCA
from diptych.retriever import Retriever

N_TEST = 120


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str], Retriever]:
    dataset = load_dataset("scenes", n_train=300, n_test=N_TEST, size=48)
    parts = {"image_encoder": ColourEdgeHistograms(size=32), "text_encoder": TfidfTopics()}
    retriever = Retriever(model=CCA(n_components=16), cache=False, **parts).fit(dataset.train, baseline=None)
    folder = tmp_path_factory.mktemp("scenes")
    for number in range(N_TEST):
        Image.fromarray(np.asarray(dataset.test.images[number])).save(folder / f"{number:03}.png")
    captions = [dataset.test.texts[int(np.flatnonzero(dataset.test.owners == number)[0])] for number in range(N_TEST)]
    return folder, captions, retriever


def test_words_find_their_pictures(scenes: tuple[Path, list[str], Retriever]) -> None:
    folder, captions, retriever = scenes
    with Collection.create(folder / ".diptych", retriever) as collection:
        first = collection.add(folder)
        assert first.added == N_TEST
        found = [collection.search(words, k=10) for words in captions[:60]]
        hits = sum(f"{n:03}.png" in [a.path.name for a in answers if a.path] for n, answers in enumerate(found))
        # By luck it would be 60 · 10 / 120 = 5.
        assert hits >= 20
        scores = retriever.similarity([folder / "000.png"], captions[:1])[0, 0]
        answer = collection.search(captions[0], k=N_TEST, filter="name:000.png")[0]
        assert answer.score == pytest.approx(scores, abs=1e-3)
        assert answer.probability == pytest.approx(retriever.probability([scores], "text_to_image")[0], abs=5e-3)
    with Collection.open(folder / ".diptych") as again:
        assert again.add(folder).unchanged == N_TEST
        assert [a.id for a in again.search(captions[0])] == [a.id for a in found[0]]


def test_judgements_change_the_probabilities_alone(scenes: tuple[Path, list[str], Retriever], tmp_path: Path) -> None:
    folder, captions, trained = scenes
    retriever = copy.deepcopy(trained)
    retriever.calibration_.cutoff_ = 0.37
    with Collection.create(tmp_path / "c", retriever, root=folder) as collection:
        collection.add([Record(folder / f"{number:03}.png") for number in range(40)])
        before = collection.search(captions[0], k=40)
        judged = [
            (captions[n], f"{other:03}.png", n == other)
            for n in range(40)
            for other in (n, (n + 7) % 40, (n + 19) % 40)
        ]
        collection.calibrate(judged)
        after = Collection.open(tmp_path / "c").search(captions[0], k=40)
        assert [answer.id for answer in after] == [answer.id for answer in before]
        assert max(answer.probability for answer in after) > max(answer.probability for answer in before)
        assert not collection.status().stale
        fitted, kept = collection.retriever.calibration_, retriever.calibration_
        assert fitted is not kept
        assert fitted.slopes_[0] != kept.slopes_[0]
        np.testing.assert_array_equal(fitted.intercepts_[1:], kept.intercepts_[1:])
        np.testing.assert_array_equal(fitted.slopes_[1:], kept.slopes_[1:])
        assert fitted.cutoff_ == 0.37


def test_what_is_asked_is_not_kept_on_disk(scenes: tuple[Path, list[str], Retriever], tmp_path: Path) -> None:
    """Features of pictures and captions are worth keeping; queries are private, and there is no end of them."""
    folder, captions, retriever = scenes
    kept = copy.copy(retriever)
    kept.cache = tmp_path / "cache"
    with Collection.create(tmp_path / "c", kept, root=folder) as collection:
        collection.add([Record("000.png", [captions[0]])])
        before = {path: path.read_bytes() for path in (tmp_path / "cache").rglob("*") if path.is_file()}
        assert before
        first = collection.search("something that nobody should know", k=3)
        again = collection.search("something that nobody should know", k=3)
        assert [answer.score for answer in first] == [answer.score for answer in again]
        after = {path: path.read_bytes() for path in (tmp_path / "cache").rglob("*") if path.is_file()}
        assert after == before
        assert collection.search("a red car", k=1)[0].score == pytest.approx(
            float(retriever.similarity([folder / "000.png"], ["a red car"])[0, 0]), abs=1e-3
        )


@pytest.fixture(scope="module")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    """Some photographs of the package, searched by its networks."""
    folder = tmp_path_factory.mktemp("photographs")
    for name in ("panda.jpg", "pisa.jpg", "mountains.jpg"):
        shutil.copy(PHOTOGRAPHS_FOLDER / name, folder)
    retriever = Retriever.ready_made("default")
    retriever.cache = False
    collection = Collection.create(folder / ".diptych", retriever, root=folder)
    collection.add(folder)
    return collection


@pytest.mark.parametrize("quarters", [0, 1, 2, 3])
def test_a_picture_finds_its_copy_that_was_turned(photographs: Collection, quarters: int) -> None:
    panda = np.ascontiguousarray(np.rot90(read_picture(PHOTOGRAPHS_FOLDER / "panda.jpg"), quarters))
    best = photographs.search(panda)[0]
    assert best.path is not None
    assert best.path.name == "panda.jpg"
    assert best.probability > 0.95


def test_another_picture_is_no_copy(photographs: Collection) -> None:
    assert photographs.search(PHOTOGRAPHS_FOLDER / "windmill.jpg")[0].probability < 0.95
