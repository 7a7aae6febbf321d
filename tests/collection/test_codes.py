"""A retriever whose points are binary codes: stored packed, found as by brute force, scored again by real numbers."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from PIL import Image

from diptych.arrays import unit_rows
from diptych.codes import unpack_signs
from diptych.collection import Answers, Collection, Query, Record
from diptych.collection.searching.options import RerankBy
from diptych.data import load_dataset
from diptych.encoders import ColourEdgeHistograms, TfidfTopics
from diptych.errors import InvalidInputError
from diptych.models import CCA, CVH, Preprocessed
from diptych.retriever import Retriever
from diptych.space import Space
from tests.doubles import ToyRetriever

N = 100
N_BITS = 12
ROUNDING = 1e-5


class World(NamedTuple):
    """Pictures with captions and classes, a retriever of codes, and one of vectors with the same encoders."""

    folder: Path
    files: list[Path]
    captions: list[str]
    labels: np.ndarray
    codes: Retriever
    vectors: Retriever
    features: np.ndarray

    def collection(self, folder: Path, retriever: Retriever | None = None) -> Collection:
        made = Collection.create(folder, retriever or self.codes, root=self.folder)
        captioned = zip(self.files, self.captions, strict=True)
        made.add(Record(path, [text], metadata={"n": number}) for number, (path, text) in enumerate(captioned))
        return made

    @property
    def pictures(self) -> np.ndarray:
        """The codes of the pictures."""
        return self.codes.images_to_points(self.features)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    dataset = load_dataset("scenes", n_train=200, n_test=N, size=32)
    folder = tmp_path_factory.mktemp("scenes")
    files = [folder / f"{number:03}.png" for number in range(N)]
    for number, path in enumerate(files):
        Image.fromarray(np.asarray(dataset.test.images[number])).save(path)
    captions = [dataset.test.texts[int(np.flatnonzero(dataset.test.owners == number)[0])] for number in range(N)]
    parts = {"image_encoder": ColourEdgeHistograms(size=32), "text_encoder": TfidfTopics()}
    train = dataset.train.with_features(images=parts["image_encoder"].transform(dataset.train.images))
    codes = Retriever(model=Preprocessed(model=CVH(n_bits=N_BITS)), name="codes", cache=False, **parts)
    codes.fit(train, baseline=None)
    vectors = copy.copy(codes).set_params(name="vectors")
    vectors.model_ = CCA(n_components=8).fit(*codes.featured(train).aligned())
    features = codes.image_features(files)
    return World(folder, files, captions, np.asarray(dataset.test.labels), codes, vectors, features)


@pytest.fixture(scope="module")
def stored(world: World, tmp_path_factory: pytest.TempPathFactory) -> Collection:
    return world.collection(tmp_path_factory.mktemp("stored") / "c")


def numbers(answers: Answers) -> list[int]:
    return [int(answer.metadata["n"]) for answer in answers]


def ranked(distances: np.ndarray) -> list[int]:
    return np.argsort(distances, kind="stable").tolist()


def test_codes_are_stored_packed_and_status_says_so(stored: Collection, world: World) -> None:
    ids, codes = stored.points("image")
    assert len(ids) == N
    assert (codes.dtype, codes.shape) == (np.uint8, (N, 2))
    np.testing.assert_array_equal(codes, world.pictures)
    status = stored.status()
    assert (status.point_bytes, status.is_codes, status.memory_bytes) == (2, True, 2 * 2 * N)


def test_status_of_vectors_and_of_nothing(world: World, tmp_path: Path) -> None:
    with Collection.create(tmp_path / "c", world.vectors, root=world.folder) as collection:
        assert (collection.status().point_bytes, collection.status().memory_bytes) == (0, 0)
        collection.add([Record("000.png", [world.captions[0]])])
        status = collection.status()
        assert (status.point_bytes, status.is_codes, status.memory_bytes) == (16, False, 32)


def test_answers_are_those_of_brute_force(stored: Collection, world: World) -> None:
    space = Space("hamming")
    pictures, texts = world.pictures, world.codes.encode_texts(world.captions)
    for number in (0, 7):
        from_words = -space.compare(texts[number : number + 1], pictures)[0]
        answers = stored.search(Query.text(world.captions[number]), k=N, hybrid=False)
        assert numbers(answers) == ranked(from_words)
        assert [answer.score for answer in answers] == sorted(-from_words, reverse=True)
        is_short = world.codes.is_short_query(world.captions[number])
        expected = world.codes.probability(answers[0].score, "text_to_image", is_short=is_short)
        assert answers[0].probability == pytest.approx(expected)
        assert answers.exact
        from_picture = -space.compare(pictures[number : number + 1], texts)[0]
        assert numbers(stored.search(world.files[number], k=N, target="texts")) == ranked(from_picture)
        alike = -space.compare(pictures[number : number + 1], pictures)[0]
        assert numbers(stored.search(world.files[number], k=N)) == ranked(alike)
        others = [row for row in ranked(alike) if row != number]
        assert numbers(stored.search(Query.item(stored[world.files[number]].id), k=N)) == others


def test_a_combined_query_is_the_mean_of_its_distances(stored: Collection, world: World) -> None:
    """Which is one real query against bits: Σ w·(n − q·b)/2 over the terms."""
    query = 2 * Query.text("a red ball") + Query.picture(world.files[3]) - Query.text("snow")
    points = np.vstack([world.codes.encode_texts(["a red ball", "snow"]), world.codes.encode_images([world.files[3]])])
    pictures = world.pictures
    scores = np.array([2, -1, 1]) @ Space("hamming").compare(points, pictures) / 4
    bits = unpack_signs(pictures, N_BITS)
    one_query = np.array([2, -1, 1]) @ unpack_signs(points, N_BITS) / 4
    np.testing.assert_allclose(scores, (bits @ one_query - N_BITS * 2 / 4) / 2)
    answers = stored.search(query, k=N)
    assert numbers(answers) == ranked(-scores)
    assert [answer.score for answer in answers] == pytest.approx(sorted(scores, reverse=True))


@pytest.mark.parametrize("by", ["codes", "features"])
@pytest.mark.parametrize("depth", [30, 500])
def test_reranked_answers_are_those_of_brute_force(stored: Collection, world: World, by: RerankBy, depth: int) -> None:
    item = stored[world.files[5]].id
    query = Query.text(world.captions[0]) + 0.5 * Query.picture(world.files[3]) - 0.3 * Query.item(item)
    text = world.codes.texts_to_outputs(world.codes.text_features([world.captions[0]]))
    images = world.codes.images_to_outputs(world.features)
    asked = np.array([1, 0.5, -0.3]) @ unit_rows(np.vstack([text, images[3], images[5]]))
    known = unit_rows(images) if by == "features" else unpack_signs(world.pictures, N_BITS)
    gains = known @ asked

    def equal_codes_in_order(rows: list[int]) -> dict[bytes, list[int]]:
        """Return the pictures of each code in the order in which they were found."""
        groups: dict[bytes, list[int]] = {}
        for row in rows:
            groups.setdefault(world.pictures[row].tobytes(), []).append(row)
        return groups

    by_codes = numbers(stored.search(query, k=N))
    answers = stored.search(query, k=N, rerank=depth, rerank_by=by)
    found = numbers(answers)
    assert sorted(found[:depth]) == sorted(by_codes[:depth])
    assert found[depth:] == by_codes[depth:]
    # Near ties may come in either order, for the two sums round differently; equal codes keep theirs.
    assert (np.diff(gains[found[:depth]]) < ROUNDING).all()
    assert by == "features" or equal_codes_in_order(found) == equal_codes_in_order(by_codes)
    assert {answer.id: answer.score for answer in answers} == {
        answer.id: answer.score for answer in stored.search(query, k=N)
    }
    pages = [stored.search(query, k=20, offset=start, rerank=depth, rerank_by=by) for start in range(0, N, 20)]
    assert [number for page in pages for number in numbers(page)] == found
    few = numbers(stored.search(query, k=N, filter="n<10", rerank=500, rerank_by=by))
    assert sorted(few) == [number for number in range(10) if number != 5]
    assert (np.diff(gains[few]) < ROUNDING).all()


def mean_average_precision(found: list[list[int]], labels: np.ndarray) -> float:
    values = []
    for number, answers in enumerate(found):
        right = labels[answers] == labels[number]
        values.append(float((np.cumsum(right) / np.arange(1, len(right) + 1))[right].mean()))
    return float(np.mean(values))


def test_reranking_finds_more_than_bare_codes(stored: Collection, world: World) -> None:
    precision, recall = [], []
    for options in ({}, {"rerank": N}, {"rerank": N, "rerank_by": "features"}):
        found = [numbers(stored.search(Query.text(words), k=N, hybrid=False, **options)) for words in world.captions]
        precision.append(mean_average_precision(found, world.labels))
        recall.append(np.mean([number in answers[:10] for number, answers in enumerate(found)]))
    assert precision[0] + 0.01 < precision[1] < precision[2]
    assert recall[0] + 0.03 < recall[1] < recall[2]


def test_hybrid_search_joins_the_reranked_order(stored: Collection, world: World) -> None:
    words = world.captions[2]
    alone = numbers(stored.search(Query.text(words), k=N, hybrid=False, rerank=N))
    assert numbers(stored.search(Query.text(words), k=N, hybrid=0.0, rerank=N)) == alone
    joined = stored.search(Query.text(words), k=N, hybrid=True, rerank=N)
    by_words = numbers(stored.search(Query.text(words), k=N, hybrid=1.0))
    found = sum("words" in answer.matched_by for answer in joined)
    gains = np.array([0.5 / (61 + alone.index(number)) for number in range(N)])
    gains[by_words[:found]] += 0.5 / (61 + np.arange(found))
    np.testing.assert_allclose(gains[numbers(joined)], np.sort(gains)[::-1])


def test_what_has_no_features_is_scored_by_its_bits(world: World, tmp_path: Path) -> None:
    with world.collection(tmp_path / "c") as collection:
        collection.store.write(lambda db: db.run("DELETE FROM feature"))
        bits = unpack_signs(world.pictures, N_BITS)
        text = world.codes.texts_to_outputs(world.codes.text_features([world.captions[0]]))[0]
        found = collection.search(Query.text(world.captions[0]), k=N, hybrid=False, rerank=N, rerank_by="features")
        gains = (bits @ text)[numbers(found)]
        assert (np.diff(gains) < ROUNDING).all()
        item = collection[world.files[4]].id
        again = collection.search(Query.item(item), k=N, rerank=N)
        assert numbers(again) == numbers(collection.search(Query.item(item), k=N))


def test_codes_come_from_stored_features_and_live_beside_vectors(world: World, tmp_path: Path) -> None:
    with world.collection(tmp_path / "c", world.vectors) as collection:
        report = collection.set_retriever(world.codes, keep=True)
        assert (report.pictures, report.captions, report.read_again) == (N, len(set(world.captions)), 0)
        collection.remove([world.files[0], world.files[1]])
        collection.add([Record("000.png", [world.captions[0]], metadata={"n": 0})])
        # Added again, so it is the last of those equally far away.
        place = np.array([N, *range(1, N)])
        there = np.array([row != 1 for row in range(N)])
        query = Query.text(world.captions[9])
        distances = -Space("hamming").compare(world.codes.encode_texts([world.captions[9]]), world.pictures)
        expected = [row for row in np.lexsort((place, distances[0])).tolist() if there[row]]
        assert numbers(collection.search(query, k=N, hybrid=False)) == expected
        assert numbers(Collection.open(tmp_path / "c").search(query, k=N, hybrid=False)) == expected
        assert collection.search(query, k=1, retriever="vectors")[0].score > 0
        assert not collection.verify().problems
        assert collection.duplicates(None) == []
        collection.export(tmp_path / "points.npz")
        assert np.load(tmp_path / "points.npz")["image"].shape == (N - 1, 2)


def test_reranking_needs_codes_with_outputs(stored: Collection, world: World, tmp_path: Path) -> None:
    vectors = Collection.create(tmp_path / "c", world.vectors, root=world.folder)
    with pytest.raises(InvalidInputError, match="no binary codes"):
        vectors.search("a ball", rerank=10)
    codes_alone = Collection.create(tmp_path / "t", ToyRetriever(0, "hamming"), load_retriever=ToyRetriever.load)
    with pytest.raises(InvalidInputError, match="leave rerank out"):
        codes_alone.search("a ball", rerank=10)
    with pytest.raises(InvalidInputError, match="at least 1, got 0"):
        stored.search("a ball", rerank=0)
    with pytest.raises(InvalidInputError, match="rerank_by must be one of codes, features"):
        stored.search("a ball", rerank=5, rerank_by="points")  # type: ignore[arg-type]


def test_an_empty_collection_reranks_nothing(world: World, tmp_path: Path) -> None:
    with Collection.create(tmp_path / "c", world.codes, root=world.folder) as collection:
        assert len(collection.search("a ball", rerank=10)) == 0
        collection.add([Record("000.png")])
        assert [answer.path for answer in collection.search("a ball", rerank=10)] == [world.files[0]]
