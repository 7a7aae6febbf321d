"""Spaces: every named comparison against its formula, and its index form against the comparison."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from diptych import DIRECTIONS, Space
from diptych.errors import InvalidInputError, UnknownNameError
from diptych.space import SPACE_NAMES, on_one_scale


def kl(p, q):
    return float((p * np.log(p / q)).sum())


FORMULAS = {
    "cosine": lambda p, q: p @ q / np.linalg.norm(p) / np.linalg.norm(q),
    "pearson": lambda p, q: np.corrcoef(p, q)[0, 1],
    "covariance": lambda p, q: np.mean((p - p.mean()) * (q - q.mean())),
    "dot": lambda p, q: p @ q,
    "corrected": lambda p, q: p[:-2] @ q[:-2] - (q[-2] if p[-1] != q[-1] else 0),
    "euclidean": lambda p, q: -np.sum((p - q) ** 2),
    "l1": lambda p, q: -np.abs(p - q).sum(),
    "kl": lambda p, q: -kl(p, q),
    "kl_query": lambda p, q: -kl(p, q),
    "noisy_or": lambda p, q: -np.log(np.prod(1 - p * q)),
    "hamming": lambda p, q: -int(np.unpackbits(p ^ q).sum()),
}


def points(name, rng, n, width=5):
    if name == "hamming":
        return rng.integers(0, 256, size=(n, width), dtype=np.uint8)
    if name == "corrected":
        return np.column_stack([rng.normal(size=(n, width + 1)), rng.choice([-1.0, 1.0], size=n)])
    return rng.dirichlet(np.ones(width), size=n)


def test_every_space_has_a_formula_here():
    assert set(FORMULAS) == set(SPACE_NAMES)


@pytest.mark.parametrize("name", SPACE_NAMES)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 6), m=st.integers(1, 6), width=st.integers(2, 7))
def test_compare_equals_the_formula(name, seed, n, m, width):
    rng = np.random.default_rng(seed)
    queries, gallery = points(name, rng, n, width), points(name, rng, m, width)
    expected = [[FORMULAS[name](p, q) for q in gallery] for p in queries]
    np.testing.assert_allclose(Space(name).compare(queries, gallery), expected, atol=1e-9)


@pytest.mark.parametrize("name", SPACE_NAMES)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_index_form_scores_like_the_space(name, direction):
    rng = np.random.default_rng(1)
    queries, gallery = points(name, rng, 7), points(name, rng, 9)
    space = Space(name)
    scores, form = space.compare(queries, gallery, direction), space.indexable(direction)
    if form is None:
        assert name in ("l1", "noisy_or")
        return
    left, right = form.queries(queries), form.gallery(gallery)
    if form.metric == "inner_product":
        engine = left @ right.T
    elif form.metric == "l2":
        engine = -cdist(left, right, "sqeuclidean")
    else:
        engine = -cdist(np.unpackbits(left, axis=1), np.unpackbits(right, axis=1), "cityblock")
    scale = 1 / queries.shape[1] if name == "covariance" else 1
    np.testing.assert_allclose(engine * scale, scores, atol=1e-9)


def test_kl_keeps_the_image_first_in_both_directions_and_kl_query_the_query():
    rng = np.random.default_rng(0)
    images, texts = points("kl", rng, 3), points("kl", rng, 4)
    image_query = Space("kl").compare(images, texts, "image_query")
    np.testing.assert_allclose(Space("kl").compare(texts, images, "text_query"), image_query.T)
    swapped = Space("kl_query").compare(texts, images, "text_query")
    assert not np.allclose(swapped, image_query.T)


def test_zero_probabilities_are_finite_under_kl():
    scores = Space("kl").compare(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0], [1.0, 0.0]]))
    assert np.isfinite(scores).all()
    assert scores[0, 1] == pytest.approx(0, abs=1e-9)
    assert scores[0, 0] < -20


@pytest.mark.parametrize(("name", "value"), [("cosine", 0.0), ("pearson", 0.0), ("pearson", 0.1), ("pearson", 1e6)])
def test_points_without_a_direction_score_zero(name, value):
    np.testing.assert_array_equal(Space(name).compare(np.full((1, 3), value), np.eye(3)), 0)


@pytest.mark.parametrize(("dtype", "scale"), [(np.float32, 1e30), (np.float32, 1e-30), (np.float64, 1e-170)])
def test_cosine_does_not_depend_on_the_scale(dtype, scale):
    points = (np.array([[3.0, 4.0], [4.0, -3.0]]) * scale).astype(dtype)
    np.testing.assert_allclose(Space("cosine").compare(points, points), np.eye(2), atol=1e-6)


def test_small_integers_do_not_wrap_around():
    points = np.array([[100, 100]], dtype=np.int8)
    assert Space("dot").compare(points, points)[0, 0] == 20_000
    assert Space("euclidean").compare(np.uint8([[0]]), np.uint8([[200]]))[0, 0] == -40_000


def test_close_float32_points_keep_their_distance():
    near = np.float32([[1e4, 1e4]])
    np.testing.assert_allclose(Space("euclidean").compare(near, near + np.float32(0.5)), -0.5, rtol=1e-3)


def test_certain_labels_stay_finite_in_float32():
    certain = np.ones((1, 2), dtype=np.float32)
    assert np.isfinite(Space("noisy_or").compare(certain, certain)).all()


def test_split_space_reads_the_half_of_its_direction():
    rng = np.random.default_rng(0)
    images, texts = rng.normal(size=(4, 7)), rng.normal(size=(5, 7))
    space = Space("cosine", split=3)
    plain = Space("cosine")
    np.testing.assert_allclose(space.compare(images, texts), plain.compare(images[:, :3], texts[:, :3]))
    np.testing.assert_allclose(space.compare(texts, images, "text_query"), plain.compare(texts[:, 3:], images[:, 3:]))
    form = space.indexable("text_query")
    np.testing.assert_allclose(form.queries(texts) @ form.gallery(images).T, space.compare(texts, images, "text_query"))


@given(memory=st.integers(1, 4000))
def test_blocks_cover_all_queries_within_memory(memory):
    rng = np.random.default_rng(0)
    queries, gallery = rng.normal(size=(23, 3)), rng.normal(size=(11, 3))
    blocks = list(Space("dot").blocks(queries, gallery, memory=memory))
    np.testing.assert_allclose(np.vstack([scores for _, scores in blocks]), queries @ gallery.T)
    assert all(scores.nbytes <= max(memory, 8 * 11) for _, scores in blocks)


def test_the_symbols_of_the_papers_are_understood():
    for symbol, name in {"l2": "euclidean", "NC": "cosine", "NCc": "pearson", "KL": "kl"}.items():
        assert Space(symbol) == Space(name)


def test_mistakes_are_explained():
    with pytest.raises(UnknownNameError, match="did you mean 'cosine'"):
        Space("cosin")
    with pytest.raises(InvalidInputError, match="one width"):
        Space("dot").compare(np.eye(2), np.eye(3))
    with pytest.raises(InvalidInputError, match="negative"):
        Space("kl").compare(-np.eye(2), np.eye(2))
    with pytest.raises(InvalidInputError, match="uint8"):
        Space("hamming").compare(np.eye(2), np.eye(2))
    with pytest.raises(InvalidInputError, match="direction must be one of image_query, text_query"):
        Space("dot").compare(np.eye(2), np.eye(2), "text")
    with pytest.raises(InvalidInputError, match="name of a space is a string"):
        Space(None)
    with pytest.raises(InvalidInputError, match="split"):
        Space("dot", split=0)


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=5), st.floats(0.1, 100))
def test_weights_of_one_slope_are_kept(weights: list[float], slope: float) -> None:
    given_weights, vectors = np.array(weights), np.random.default_rng(0).normal(size=(len(weights), 3))
    assert on_one_scale(given_weights, vectors, [slope] * len(weights)).tolist() == weights


@pytest.mark.parametrize("space", ["cosine", "dot", "covariance"])
def test_one_term_of_each_kind_counts_its_evidence(space: str) -> None:
    """The score of the two together orders answers as the sum of their logarithms of odds does, lengths or not."""
    rng = np.random.default_rng(1)
    queries, gallery = rng.normal(size=(2, 4)) * [[1.0], [5.0]], rng.normal(size=(30, 4))
    weights, slopes = np.array([1.0, -2.0]), [20.0, 3.0]
    form = Space(space).indexable()
    assert form is not None
    rows = form.queries(queries)
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    combined = on_one_scale(weights, rows, slopes) @ units @ form.gallery(gallery).T
    evidence = (weights * slopes) @ Space(space).compare(queries, gallery)
    assert np.corrcoef(combined, evidence)[0, 1] == pytest.approx(1)


def test_a_term_that_says_nothing_does_not_change_the_scale_of_the_others() -> None:
    vectors = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    assert on_one_scale(np.ones(3), vectors, [4.0, 4.0, 1.0]).tolist() == [1.0, 1.0, 0.25]
    assert on_one_scale(np.ones(2), np.zeros((2, 2)), [4.0, 1.0]).tolist() == [1.0, 1.0]
