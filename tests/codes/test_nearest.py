"""Exact search of codes, against sorting all distances."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.codes import codes_within, hamming_distances, nearest_codes
from diptych.codes import nearest as nearest_module
from diptych.errors import InvalidInputError


def random_codes(n_items: int, width: int, seed: int, distinct: int | None = None) -> np.ndarray:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 256, (n_items, width), dtype=np.uint8)
    return codes if distinct is None else codes[rng.integers(0, min(distinct, n_items), n_items)]


def plain_distances(queries: np.ndarray, gallery: np.ndarray) -> np.ndarray:
    return (np.unpackbits(queries, axis=1)[:, None] != np.unpackbits(gallery, axis=1)).sum(axis=2)


def plain_nearest(queries: np.ndarray, gallery: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    distances = plain_distances(queries, gallery)
    order = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(distances, order, axis=1), order


shapes = st.fixed_dictionaries(
    {
        "width": st.integers(1, 40),
        "n_queries": st.integers(1, 5),
        "n_items": st.integers(1, 80),
        "distinct": st.integers(1, 80),
        "k": st.integers(1, 100),
        "seed": st.integers(0, 1000),
    }
)


@settings(max_examples=60)
@given(shapes)
def test_distances_and_nearest_codes_agree_with_plain_counting(shape: dict[str, int]) -> None:
    queries = random_codes(shape["n_queries"], shape["width"], shape["seed"])
    gallery = random_codes(shape["n_items"], shape["width"], shape["seed"] + 1, shape["distinct"])
    queries[0] = gallery[0]
    distances = hamming_distances(queries, gallery)
    assert distances.dtype == (np.uint8 if shape["width"] < 32 else np.uint16)
    np.testing.assert_array_equal(distances, plain_distances(queries, gallery))
    near, places = plain_nearest(queries, gallery, shape["k"])
    found, positions = nearest_codes(queries, gallery, shape["k"])
    np.testing.assert_array_equal(found, near)
    np.testing.assert_array_equal(positions, places)


def test_every_code_of_two_bytes_has_its_distance() -> None:
    gallery = np.arange(1 << 16, dtype=np.uint16).view(np.uint8).reshape(-1, 2)
    queries = gallery[[0, 1, 255, 256, 0x5AA5, 0xFFFF]]
    np.testing.assert_array_equal(hamming_distances(queries, gallery), plain_distances(queries, gallery))


@pytest.mark.parametrize("has_faiss", [True, False])
@pytest.mark.parametrize("width", [3, 4, 8, 20])
@pytest.mark.parametrize(("n_queries", "k"), [(1, 10), (3, 1), (17, 200)])
def test_faiss_changes_nothing(
    width: int, n_queries: int, k: int, has_faiss: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nearest_module, "MIN_COMPARISONS_OF_FAISS", 1)
    if not has_faiss:
        monkeypatch.setattr(nearest_module, "MIN_BYTES_OF_FAISS", 1 << 10)
    gallery, queries = random_codes(9_001, width, 1, distinct=500), random_codes(n_queries, width, 2)
    near, places = nearest_codes(queries, gallery, k)
    exact = hamming_distances(queries, gallery)
    order = np.argsort(exact, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(places, order)
    np.testing.assert_array_equal(near, np.take_along_axis(exact, order, axis=1))


def test_a_query_alone_is_answered_as_in_a_batch() -> None:
    gallery, queries = random_codes(150_000, 8, 1, distinct=40_000), random_codes(9, 8, 2)
    _, together = nearest_codes(queries, gallery, 10)
    alone = np.concatenate([nearest_codes(query[None], gallery, 10)[1] for query in queries])
    np.testing.assert_array_equal(alone, together)


def test_searches_from_several_threads_at_once_agree() -> None:
    gallery, queries = random_codes(120_000, 8, 1), random_codes(10, 8, 2)
    expected = nearest_codes(queries, gallery, 5)[1]
    answers: list[np.ndarray] = []
    callers = [threading.Thread(target=lambda: answers.append(nearest_codes(queries, gallery, 5)[1])) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(answers) == 4
    for answer in answers:
        np.testing.assert_array_equal(answer, expected)


@settings(max_examples=40)
@given(shapes, st.integers(0, 64))
def test_allowed_positions_and_radius_agree_with_plain_counting(shape: dict[str, int], radius: int) -> None:
    queries = random_codes(shape["n_queries"], shape["width"], shape["seed"])
    gallery = random_codes(shape["n_items"], shape["width"], shape["seed"] + 1, shape["distinct"])
    allowed = np.random.default_rng(shape["seed"]).random(len(gallery)) < 0.5
    near, places = plain_nearest(queries, gallery[allowed], shape["k"])
    found, positions = nearest_codes(queries, gallery, shape["k"], allowed=allowed)
    np.testing.assert_array_equal(found, near)
    np.testing.assert_array_equal(positions, np.flatnonzero(allowed)[places])
    for query, (inside, spots) in enumerate(codes_within(queries, gallery, radius, allowed=allowed)):
        all_near, all_places = plain_nearest(queries[query : query + 1], gallery[allowed], len(gallery))
        kept = all_near[0] <= radius
        np.testing.assert_array_equal(inside, all_near[0][kept])
        np.testing.assert_array_equal(spots, np.flatnonzero(allowed)[all_places[0][kept]])


def test_blocks_are_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest_module, "BLOCK_PAIRS", 100)
    gallery, queries = random_codes(1_050, 2, 1, distinct=60), random_codes(3, 2, 2)
    allowed = np.arange(len(gallery)) % 3 != 0
    near, places = plain_nearest(queries, gallery[allowed], 40)
    found, positions = nearest_codes(queries, gallery, 40, allowed=allowed)
    np.testing.assert_array_equal(found, near)
    np.testing.assert_array_equal(positions, np.flatnonzero(allowed)[places])
    for query, (inside, spots) in enumerate(codes_within(queries, gallery, 5)):
        row = plain_distances(queries, gallery)[query]
        np.testing.assert_array_equal(inside, np.sort(row[row <= 5]))
        np.testing.assert_array_equal(np.sort(spots), np.flatnonzero(row <= 5))


def test_nothing_to_search_is_an_empty_answer() -> None:
    codes = random_codes(4, 2, 0)
    assert nearest_codes(codes, codes[:0], 3)[1].shape == (4, 0)
    assert nearest_codes(codes[:0], codes, 3)[0].shape == (0, 3)
    assert nearest_codes(codes, codes, 3, allowed=np.zeros(4, dtype=bool))[1].shape == (4, 0)
    assert [len(places) for _, places in codes_within(codes, codes[:0], 3)] == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (lambda codes: (codes.astype(float), codes, 1), "packed uint8"),
        (lambda codes: (codes[0], codes, 1), "one code per row"),
        (lambda codes: (codes, codes[:, :1], 1), "one width"),
        (lambda codes: (codes, codes, 0), "at least 1"),
    ],
)
def test_what_cannot_be_searched_is_explained(
    arguments: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, int]], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        nearest_codes(*arguments(random_codes(4, 2, 0)))


def test_wrong_marks_and_radius_are_explained() -> None:
    codes = random_codes(4, 2, 0)
    with pytest.raises(InvalidInputError, match="one truth value per code, 4 in all"):
        nearest_codes(codes, codes, 1, allowed=np.ones(3, dtype=bool))
    with pytest.raises(InvalidInputError, match="at least 0"):
        codes_within(codes, codes, -1)
