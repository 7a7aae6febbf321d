from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.collection.search.approximate_index import ApproximateIndex
from diptych.collection.search.gallery import Gallery, GrowingMatrix, Scoring, top_rows
from diptych.space import Space

SPACES = ["cosine", "pearson", "covariance", "dot", "euclidean", "l1", "kl", "kl_query", "noisy_or", "hamming"]


def points(space: str, rows: int, width: int = 8, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if space == "hamming":
        return rng.integers(0, 256, (rows, width), dtype=np.uint8)
    if space in ("kl", "kl_query", "noisy_or"):
        return rng.dirichlet(np.ones(width), rows).astype(np.float32)
    return (rng.standard_normal((rows, width)) + (100 if space == "euclidean" else 0)).astype(np.float32)


class Points:
    """A store of points by content, and a gallery of them."""

    def __init__(self, matrix: np.ndarray) -> None:
        self.matrix = matrix
        self.fetched: list[str] = []

    def wanted(self, rows: Sequence[int]) -> dict[str, tuple[str, int]]:
        return {f"key {row}": (f"hash {row}", int(row)) for row in rows}

    def fetch(self, keys: Sequence[str]) -> Mapping[str, Any]:
        self.fetched += keys
        return {key: self.matrix[int(key.split()[1])] for key in keys if int(key.split()[1]) < len(self.matrix)}


def gallery_of(space: str, matrix: np.ndarray, rows: Sequence[int], width: int | None = None) -> Gallery:
    source = Points(matrix)
    return Gallery(Scoring(Space(space, width), "text_query")).synchronised(source.wanted(rows), source.fetch)


@pytest.mark.parametrize("space", SPACES)
def test_exact_search_is_the_ranking_of_the_space(space: str) -> None:
    matrix, queries = points(space, 60), points(space, 3, seed=1)
    gallery = gallery_of(space, matrix, range(60))
    allowed = np.zeros(60, dtype=bool)
    allowed[::3] = True
    rows, scores = gallery.search(gallery.scoring.query_vectors(queries), 7, allowed=allowed, exact=True)
    truth = Space(space).compare(queries, matrix, "text_query")
    for query in range(3):
        order = sorted(np.flatnonzero(allowed), key=lambda row: (-truth[query, row], row))[:7]
        np.testing.assert_allclose(scores[query], truth[query, order], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(truth[query, rows[query]], truth[query, order], rtol=1e-4, atol=1e-5)


def test_a_split_space_compares_the_half_of_its_direction() -> None:
    matrix, queries = points("cosine", 20), points("cosine", 2, seed=1)
    gallery = gallery_of("cosine", matrix, range(20), 3)
    rows, _ = gallery.search(gallery.scoring.query_vectors(queries), 1)
    truth = Space("cosine", 3).compare(queries, matrix, "text_query")
    assert rows[:, 0].tolist() == truth.argmax(axis=1).tolist()


@given(st.lists(st.lists(st.integers(0, 30), max_size=20, unique=True), min_size=1, max_size=6))
def test_a_gallery_holds_what_is_wanted_after_any_changes(states: list[list[int]]) -> None:
    # Row 30 has no point in the store and can never be found.
    source = Points(points("dot", 30))
    gallery = Gallery(Scoring(Space("dot"), "text_query"))
    for rows in states:
        before = gallery
        contents = {key: gallery.vectors[row].tolist() for key, row in gallery.row_of.items()}
        gallery = gallery.synchronised(source.wanted(rows), source.fetch)
        present = [row for row in rows if row < 30]
        assert sorted(gallery.row_of) == sorted(f"key {row}" for row in present)
        for row in present:
            np.testing.assert_array_equal(gallery.vector(f"key {row}"), source.matrix[row : row + 1])
        # A reader of the gallery before sees nothing of the change.
        assert {key: before.vectors[row].tolist() for key, row in before.row_of.items()} == contents
        if present:
            query = source.matrix[:1]
            found = gallery.search(query, 3)[0][0]
            best = sorted(present, key=lambda row: -float(query[0] @ source.matrix[row]))[:3]
            assert [gallery.keys[row] for row in found if row >= 0] == [f"key {row}" for row in best]


def test_points_are_fetched_once() -> None:
    source = Points(points("dot", 30))
    gallery = Gallery(Scoring(Space("dot"), "text_query")).synchronised(source.wanted(range(10)), source.fetch)
    gallery.synchronised(source.wanted(range(5, 12)), source.fetch)
    assert source.fetched == [f"hash {row}" for row in range(12)]


def test_changed_content_under_a_key_is_a_new_row() -> None:
    source = Points(points("dot", 30))
    gallery = Gallery(Scoring(Space("dot"), "text_query")).synchronised({"a": ("hash 1", 0)}, source.fetch)
    gallery = gallery.synchronised({"a": ("hash 2", 0)}, source.fetch)
    np.testing.assert_array_equal(gallery.vector("a"), source.matrix[2:3])
    assert len(gallery) == 1


@given(st.lists(st.integers(-2, 2), min_size=1, max_size=30), st.integers(1, 35), st.randoms())
def test_top_rows_are_sorted_rows(values: list[int], k: int, dice: Any) -> None:
    scores = np.where(np.array(values) == -2, -np.inf, np.array(values, dtype=float))
    order = list(range(len(values)))
    dice.shuffle(order)
    expected = sorted((row for row in range(len(values)) if values[row] > -2), key=lambda r: (-values[r], order[r]))
    assert top_rows(scores, np.array(order), k).tolist() == expected[:k]


def test_a_growing_matrix_never_touches_rows_handed_out() -> None:
    first = GrowingMatrix(np.zeros((2, 2)))
    second = first.appended(np.ones((1, 2)))
    other = first.appended(np.full((1, 2), 7.0))
    third = second.appended(np.full((5, 2), 2.0))
    assert second.rows.tolist() == [[0, 0], [0, 0], [1, 1]]
    assert other.rows[2].tolist() == [7, 7]
    assert third.rows[:, 0].tolist() == [0, 0, 1, 2, 2, 2, 2, 2]


CLUSTERED = 30_000


@pytest.fixture(scope="module")
def clustered() -> tuple[np.ndarray, Gallery]:
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((300, 16)).astype(np.float32)
    matrix = centres[rng.integers(0, 300, CLUSTERED)] + 0.5 * rng.standard_normal((CLUSTERED, 16)).astype(np.float32)
    gallery = gallery_of("cosine", matrix, range(CLUSTERED - 100))
    index = ApproximateIndex.build(gallery.vectors, "inner_product")
    return matrix, gallery.with_index(index, gallery.keys, gallery.hashes)


def recall(gallery: Gallery, queries: np.ndarray, allowed: np.ndarray | None = None) -> float:
    asked = gallery.scoring.query_vectors(queries)
    found, _ = gallery.search(asked, 10, allowed=allowed)
    truth, _ = gallery.search(asked, 10, allowed=allowed, exact=True)
    return float(np.mean([len(set(a) & set(b)) / 10 for a, b in zip(found, truth, strict=True)]))


def test_the_index_reaches_its_recall(clustered: tuple[np.ndarray, Gallery]) -> None:
    matrix, gallery = clustered
    assert gallery.index is not None
    assert gallery.index.probes < gallery.index.engine.nlist
    rng = np.random.default_rng(1)
    queries = matrix[rng.integers(0, CLUSTERED, 400)] + 0.3 * rng.standard_normal((400, 16)).astype(np.float32)
    # The index is tuned to 0.95 on queries of its own; others may fall a little short of it.
    assert recall(gallery, queries) >= 0.93


def test_filters_keep_the_recall_and_fill_the_page(clustered: tuple[np.ndarray, Gallery]) -> None:
    matrix, gallery = clustered
    allowed = np.random.default_rng(2).random(len(gallery.keys)) < 0.8
    assert recall(gallery, matrix[:50], allowed) >= 0.95
    few = np.zeros(len(gallery.keys), dtype=bool)
    few[[5, 17, 20_000]] = True
    rows, scores = gallery.search(gallery.scoring.query_vectors(matrix[:2]), 10, allowed=few)
    assert [set(row[row >= 0].tolist()) for row in rows] == [{5, 17, 20_000}] * 2
    assert (np.diff(scores[:, :3]) <= 0).all()


def test_new_rows_are_found_beside_the_index_and_dead_ones_are_not(clustered: tuple[np.ndarray, Gallery]) -> None:
    matrix, gallery = clustered
    source = Points(matrix)
    kept = [row for row in range(CLUSTERED) if row != 7]
    changed = gallery.synchronised(source.wanted(kept), source.fetch)
    assert changed.index is gallery.index
    newest, dead = matrix[CLUSTERED - 1 :], matrix[7:8]
    assert changed.keys[changed.search(changed.scoring.query_vectors(newest), 1)[0][0, 0]] == f"key {CLUSTERED - 1}"
    found = changed.search(changed.scoring.query_vectors(dead), 10)[0][0]
    assert "key 7" not in [changed.keys[row] for row in found]
    assert gallery.keys[gallery.search(gallery.scoring.query_vectors(dead), 1)[0][0, 0]] == "key 7"
    assert 0 < changed.outdated_share < 0.01
    assert not changed.wants_index


def test_the_index_survives_the_loss_of_most_rows(clustered: tuple[np.ndarray, Gallery]) -> None:
    matrix, gallery = clustered
    source = Points(matrix)
    rows = range(0, CLUSTERED - 100, 3)
    smaller = gallery.synchronised(source.wanted(rows), source.fetch)
    assert len(smaller.keys) == len(rows)
    assert smaller.wants_index
    queries = smaller.scoring.query_vectors(matrix[rows[:20]])
    assert [smaller.keys[row] for row in smaller._indexed(queries, 1, smaller.live)[0][:, 0]] == [
        f"key {row}" for row in rows[:20]
    ]


def test_distances_rank_far_from_the_origin() -> None:
    matrix = points("euclidean", 50) + 1e4
    gallery = gallery_of("euclidean", matrix, range(50))
    rows, _ = gallery.search(gallery.scoring.query_vectors(matrix[:10]), 1)
    assert rows[:, 0].tolist() == list(range(10))


def test_rounded_lists_are_scored_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("diptych.collection.search.approximate_index._LARGEST_FLAT", 0)
    monkeypatch.setattr("diptych.collection.search.gallery._FEW_ROWS", 0)
    matrix = points("euclidean", 4000, 16)
    gallery = gallery_of("euclidean", matrix, range(4000))
    index = ApproximateIndex.build(gallery.vectors, "l2")
    assert index.is_coarse
    gallery = gallery.with_index(index, gallery.keys, gallery.hashes)
    queries = points("euclidean", 20, 16, seed=1)
    rows, scores = gallery.search(queries, 5)
    truth = Space("euclidean").compare(queries, matrix)
    np.testing.assert_allclose(scores, np.take_along_axis(truth, rows, axis=1), rtol=1e-4, atol=1e-3)
    assert recall(gallery, queries) >= 0.9
