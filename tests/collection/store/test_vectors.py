"""Nearest points: exact where all are compared, near enough in inverted lists, and never what a mask excludes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray
from diptych.collection.store.points import drop_point_tables, missing_points, put_points, remove_points
from diptych.collection.store.scoring import Scoring
from diptych.collection.store.sqlite import SqliteStore
from diptych.collection.store.store import Store
from diptych.collection.upkeep.checks import verify
from diptych.collection.vectors import vector_index as vectors
from diptych.collection.vectors.neighbours import Neighbours, VectorIndex
from diptych.collection.vectors.vector_index import (
    FileVectorIndex,
    damage_of_vector_files,
    vector_folders,
    vector_index,
)
from diptych.space import Space
from tests.collection.store.rows import add_model

WIDTH = 16


def index_of(store: Store, space: str, width: int = WIDTH) -> VectorIndex:
    scoring = Scoring(Space(space), "text_query")
    model = store.write(lambda db: add_model(db, width, scoring.form))
    return vector_index(store, model, "image", scoring)


def put(index: VectorIndex, contents: IntArray, points: AnyArray, parts: IntArray | int = 0) -> None:
    stored = index.scoring.stored(points)
    index.store.write(lambda db: put_points(db, index.model, index.side, contents, stored, parts))


def near(
    index: VectorIndex, queries: AnyArray, k: int, allowed: BoolArray | None = None, *, exact: bool = False
) -> Neighbours:
    prepared = index.scoring.query_vectors(queries)
    with index.store.reading() as db:
        return index.nearest(db, prepared, k, allowed, exact=exact)


def brute(space: Space, queries: AnyArray, contents: IntArray, points: AnyArray, k: int) -> tuple[AnyArray, FloatArray]:
    """Return the contents and scores of the best points, each content once."""
    scores = space.compare(queries, points, "text_query")
    found = []
    for row in scores:
        order = np.lexsort((contents, -row))
        found.append(order[np.sort(np.unique(contents[order], return_index=True)[1])[:k]])
    places = np.array(found)
    return contents[places], np.take_along_axis(scores, places, axis=1)


def random_points(space: str, rows: int, seed: int = 0, width: int = WIDTH) -> AnyArray:
    rng = np.random.default_rng(seed)
    if space == "hamming":
        return rng.integers(0, 256, (rows, width), dtype=np.uint8)
    points = rng.standard_normal((rows, width)).astype(np.float32)
    # Rounded as they are stored, so that what is compared is the same.
    return np.abs(points).astype(np.float16).astype(np.float32)


def clustered(rows: int, seed: int = 0, width: int = WIDTH) -> AnyArray:
    rng = np.random.default_rng(seed)
    basis = np.random.default_rng(9).standard_normal((width // 4, width))
    noise = 0.1 * rng.standard_normal((rows, width))
    return (rng.standard_normal((rows, width // 4)) @ basis + noise).astype(np.float32)


@pytest.mark.parametrize("space", ["cosine", "pearson", "covariance", "dot", "euclidean", "l1", "noisy_or", "hamming"])
def test_scores_are_those_of_the_space(store: Store, space: str) -> None:
    index = index_of(store, space)
    points, queries = random_points(space, 200), random_points(space, 3, 1)
    if space == "noisy_or":
        points, queries = points / 10, queries / 10
    contents = np.random.default_rng(2).permutation(300)[:200]
    put(index, contents, points)
    allowed = np.random.default_rng(3).random(250) < 0.4
    for mask in (None, allowed, np.zeros(0, dtype=bool)):
        rows = np.ones(200, dtype=bool) if mask is None else np.isin(contents, np.flatnonzero(mask))
        for k in (7, 200):
            found, again = near(index, queries, k, mask), near(index, queries, k, mask, exact=True)
            expected, scores = brute(Space(space), queries, contents[rows], points[rows], k)
            n_found = min(k, rows.sum())
            assert (found.contents[:, n_found:] == -1).all()
            assert np.allclose(found.scores[:, :n_found], scores, atol=2e-3, rtol=2e-3)
            assert np.array_equal(found.contents, again.contents)
            assert np.array_equal(found.scores, again.scores)
            if space in ("euclidean", "dot"):
                assert np.array_equal(found.contents[:, :n_found], expected)


def test_each_content_counts_once_by_its_best_region(store: Store) -> None:
    index = index_of(store, "cosine")
    points, queries = random_points("cosine", 600), random_points("cosine", 4, 1)
    contents, parts = np.repeat(np.arange(1, 13), 50), np.tile(np.arange(50), 12)
    put(index, contents, points, parts)
    found = near(index, queries, 12)
    expected, scores = brute(Space("cosine"), queries, contents, points, 12)
    assert np.array_equal(found.contents, expected)
    assert np.allclose(found.scores, scores, atol=1e-3)
    with store.reading() as db:
        vector = index.vectors(db, found.contents[0, :1], found.parts[0, :1])[2].astype(np.float32)
    assert np.allclose(Space("cosine").compare(queries[:1], vector), found.scores[0, 0], atol=1e-3)


def test_equal_scores_are_ordered_by_content(store: Store) -> None:
    index = index_of(store, "cosine")
    put(index, np.array([9, 4, 7, 1]), np.ones((4, WIDTH), dtype=np.float32))
    assert near(index, np.ones((1, WIDTH), dtype=np.float32), 3).contents.tolist() == [[1, 4, 7]]


@pytest.mark.parametrize("space", ["cosine", "l1"])
def test_a_model_without_points_has_no_neighbours(store: Store, space: str) -> None:
    queries = random_points(space, 2)
    index = index_of(store, space)
    missing = vector_index(store, index.model + 1, "image", index.scoring)
    for one in (index, missing):
        assert near(one, queries, 3).contents.tolist() == [[-1] * 3] * 2
        assert near(one, queries, 3, np.ones(5, dtype=bool), exact=True).contents.tolist() == [[-1] * 3] * 2
        one.build()
        with store.reading() as db:
            assert len(one.vectors(db, [1])[0]) == one.status(db).points == 0
            assert len(missing_points(db, one.model, "image")) == 0


@pytest.fixture
def file_store(tmp_path: Path) -> Iterator[Store]:
    made = SqliteStore.create(tmp_path / "store")
    yield made
    made.close()


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "MAX_FLAT", 2000)
    monkeypatch.setattr(vectors, "LOOK_EVERY_S", 0.0)


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize(("space", "width"), [("cosine", WIDTH), ("euclidean", WIDTH), ("cosine", 64)])
def test_indexes_find_nearly_all_and_never_what_is_masked(
    store: Store, space: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if store.engine == "postgres":
        monkeypatch.setattr("diptych.collection.vectors.pgvector.MAX_EXACT_IDS", 500)
    monkeypatch.setattr(vectors, "MIN_REBUILD_ROWS", 1000)
    index = index_of(store, space, width)
    points, queries = clustered(6000, 0, width), clustered(50, 1, width)
    contents = np.arange(1, 6001)
    put(index, contents[:400], points[:400])
    index.catch_up()
    with store.reading() as db:
        assert index.status(db).indexed == 0
    put(index, contents[400:], points[400:])
    index.catch_up()
    for share in (1.0, 0.4, 0.03, 0.002):
        mask = np.random.default_rng(4).random(6001) < share
        found = near(index, queries, 10, None if share == 1 else mask)
        truth = near(index, queries, 10, None if share == 1 else mask, exact=True)
        hits = (found.contents[:, :, None] == truth.contents[:, None, :]) & (truth.contents[:, None, :] >= 0)
        assert hits.sum() >= 0.9 * (truth.contents >= 0).sum()
        assert share == 1 or mask[found.contents[found.contents >= 0]].all()
        equal = found.contents[:, 0] == truth.contents[:, 0]
        assert np.array_equal(found.scores[equal, 0], truth.scores[equal, 0])
    with store.reading() as db:
        status = index.status(db)
    assert (status.points, status.indexed) == (6000, 6000)
    assert status.recall >= 0.9


@pytest.mark.usefixtures("small_limits")
def test_newer_replaced_and_removed_points_show_at_once_and_after_a_rebuild(file_store: Store) -> None:
    index = index_of(file_store, "cosine")
    points, contents = clustered(3000), np.arange(1, 3001)
    put(index, contents, points)
    index.build()
    query = clustered(1, 7)
    best = near(index, query, 5).contents[0]
    put(index, np.array([5000]), query)
    put(index, best[:1], -query)
    file_store.write(lambda db: remove_points(db, index.model, "image", best[1:2]))
    expected = [5000, *best[2:].tolist()]
    assert near(index, query, 4).contents[0].tolist() == expected
    assert near(index, -query, 1).contents.tolist() == [[best[0]]]
    (file_store.derived / ".points-draft").mkdir()
    index.build()
    assert not list(file_store.derived.glob(".*"))
    other = vector_index(file_store, index.model, "image", index.scoring)
    for one in (index, other):
        assert near(one, query, 4).contents[0].tolist() == expected
        with file_store.reading() as db:
            assert one.status(db).indexed == 3000
    assert len(vector_folders(file_store.derived)) == 1


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("name", ["index.faiss", "rows.npy", "made.json"])
@pytest.mark.parametrize("rows", [500, 3000])
def test_damaged_vector_files_are_told_and_do_without(file_store: Store, name: str, rows: int) -> None:
    index = index_of(file_store, "cosine")
    put(index, np.arange(1, rows + 1), clustered(rows))
    index.build()
    query = clustered(1, 7)
    expected = near(index, query, 5, exact=True).contents
    path: Path = vector_folders(file_store.derived)[0][1] / name
    assert damage_of_vector_files(file_store.derived) == {}
    path.write_bytes(path.read_bytes()[:-40])
    assert [damage.table.split("/")[-1] for damage in verify(file_store)] == [name]
    fresh = vector_index(file_store, index.model, "image", index.scoring)
    assert np.array_equal(near(fresh, query, 5).contents, expected)
    fresh.build()
    assert damage_of_vector_files(file_store.derived) == {}


def test_many_new_points_are_written_in_the_background(file_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "MIN_REBUILD_ROWS", 100)
    monkeypatch.setattr(vectors, "LOOK_EVERY_S", 0.0)
    index = index_of(file_store, "hamming")
    assert isinstance(index, FileVectorIndex)
    points = random_points("hamming", 300)
    put(index, np.arange(1, 301), points)
    before = near(index, points[:3], 5)
    assert index._builder is not None
    index._builder.join()
    after = near(index, points[:3], 5)
    assert np.array_equal(before.contents, after.contents)
    with file_store.reading() as db:
        assert index.status(db).indexed == 300


@pytest.mark.usefixtures("small_limits")
def test_files_with_many_removed_points_are_written_anew_once(
    file_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "COUNT_EVERY_S", 0.0)
    index = index_of(file_store, "cosine")
    put(index, np.arange(1, 501), clustered(500))
    index.build()
    others = [vector_index(file_store, index.model, "image", index.scoring) for _ in range(2)]
    query = clustered(1, 7)
    before = [near(one, query, 3) for one in others]
    assert np.array_equal(before[0].contents, before[1].contents)
    file_store.write(lambda db: remove_points(db, index.model, "image", np.arange(1, 201)))
    put(index, np.array([900]), -query)
    times = []
    for one in others:
        assert isinstance(one, FileVectorIndex)
        assert near(one, -query, 1).contents.tolist() == [[900]]
        assert one._builder is not None
        one._builder.join()
        with file_store.reading() as db:
            assert one.status(db).indexed == 301
        times.append(vector_folders(file_store.derived)[0][1].stat().st_mtime_ns)
    assert times[0] == times[1]


def test_searches_while_points_are_added_see_whole_states(store: Store) -> None:
    index = index_of(store, "cosine")
    rng = np.random.default_rng(0)
    query = rng.standard_normal((1, WIDTH)).astype(np.float32)
    wrong: list[object] = []
    ended = threading.Event()

    def search() -> None:
        counts = [0]
        while not ended.is_set():
            found = near(index, query, 500)
            count = int((found.contents >= 0).sum())
            # Batches of ten are seen whole, and never fewer than before.
            if count % 10 or count < counts[-1] or (np.diff(found.scores[0, :count]) > 0).any():
                wrong.append((count, counts[-1]))
            counts.append(count)

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    for start in range(1, 301, 10):
        put(index, np.arange(start, start + 10), rng.standard_normal((10, WIDTH)).astype(np.float32))
    ended.set()
    for thread in threads:
        thread.join()
    assert not wrong
    assert (near(index, query, 500).contents >= 0).sum() == 300


def test_an_index_of_a_removed_model_is_not_built(store: Store) -> None:
    index = index_of(store, "cosine")
    store.write(lambda db: drop_point_tables(db, index.model))
    index.catch_up()
