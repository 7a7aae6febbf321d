"""WARP, Bi-CMSRM and PL-ranking-style learning: their draws, losses, gradients and constraints."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.errors import InvalidInputError
from diptych.models import CCA, WARP, BiCMSRM, PLRanking
from diptych.models.labels import RelatedRows, picture_numbers
from diptych.models.ranking._linear_ranking import LinearSide, first_violators, rank_losses, sampled_list, warp_step
from diptych.models.ranking.pl_ranking import balance, neighbour_separation


def side_of_points(points: np.ndarray) -> LinearSide:
    """A side whose rows are their own points."""
    width = points.shape[1]
    return LinearSide(points, np.zeros(width), np.ones(width), np.eye(width))


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.integers(2, 5), st.integers(4, 30))
def test_rows_are_related_when_they_share_a_mark(seed: int, n_marks: int, n_rows: int) -> None:
    rng = np.random.default_rng(seed)
    marks = (rng.random((n_rows, n_marks)) < 0.3).astype(int)
    marks[0], marks[1] = 0, 0
    marks[0, 0], marks[1, 1] = 1, 1
    related, everyone = RelatedRows.of_marks(marks), np.arange(n_rows)
    shared = marks @ marks.T > 0
    np.testing.assert_array_equal(related.matrix(everyone, everyone[::-1]), shared[:, ::-1])
    np.testing.assert_array_equal(related.n_unrelated, (~shared).sum(axis=1))
    np.testing.assert_array_equal(related.known, np.flatnonzero(marks.any(axis=1)))
    with pytest.MonkeyPatch.context() as patch:
        # As with many marks, which are never written down in full.
        patch.setattr("diptych.models.labels._MOST_MARKS_IN_FULL", 0)
        sparse = RelatedRows.of_marks(marks)
        np.testing.assert_array_equal(sparse.matrix(everyone, everyone), shared)
        np.testing.assert_array_equal(sparse.n_unrelated, related.n_unrelated)
    asked = np.repeat(related.known, 5)
    assert shared[asked, related.partners(asked, rng)].all()


def test_equal_rows_are_one_picture_and_its_texts_are_related() -> None:
    rows = np.random.default_rng(0).normal(size=(4, 3))[[2, 0, 2, 1, 0]]
    numbers = picture_numbers(rows)
    assert numbers.tolist() == [0, 1, 0, 2, 1]
    related = RelatedRows.of_numbers(numbers)
    np.testing.assert_array_equal(related.matrix(np.arange(5), np.arange(5)), numbers[:, None] == numbers)
    assert related.n_unrelated.tolist() == [3, 3, 3, 4, 3]
    drawn = related.partners(np.zeros(4000, dtype=int), np.random.default_rng(1))
    assert set(drawn.tolist()) == {0, 2}
    assert np.mean(drawn == 0) == pytest.approx(0.5, abs=0.04)
    with pytest.raises(InvalidInputError, match="nothing to rank below"):
        RelatedRows.of_numbers(np.zeros(3, dtype=int))


@pytest.fixture(scope="module")
def search() -> tuple[np.ndarray, LinearSide, RelatedRows]:
    rng = np.random.default_rng(7)
    labels = rng.integers(4, size=600)
    points = rng.normal(size=(600, 3))
    return points, side_of_points(rng.normal(size=(600, 3))), RelatedRows.of_numbers(labels)


@pytest.mark.parametrize("max_draws", [None, 1, 5, 300])
def test_the_first_violator_is_the_first_wrong_answer_above_the_threshold(search, max_draws) -> None:
    points, searched, related = search
    rng = np.random.default_rng(1)
    queries, order = rng.permutation(600)[:50], rng.permutation(600)
    thresholds = rng.normal(scale=4, size=50)
    found = first_violators(points[queries], thresholds, searched, related, queries, order, max_draws)
    assert found.found.any()
    assert not found.found.all()
    for number, query in enumerate(queries):
        wrong = order[~related.matrix(np.array([query]), order)[0]][:max_draws]
        above = searched.rows[wrong] @ points[query] > thresholds[number]
        assert found.found[number] == above.any()
        if above.any():
            assert found.rows[number] == wrong[above.argmax()]
            assert found.draws[number] == above.argmax() + 1


def test_the_draws_estimate_the_rank(search) -> None:
    points, searched, related = search
    rng, queries = np.random.default_rng(2), np.zeros(1, dtype=int)
    scores = searched.rows @ points[0]
    wrong = ~related.matrix(queries, np.arange(600))[0]
    threshold = np.sort(scores[wrong])[-21:-20]
    draws = [
        first_violators(points[:1], threshold, searched, related, queries, rng.permutation(600)).draws[0]
        for _ in range(400)
    ]
    # Without replacement, 20 violators among m wrong answers are first met after (m + 1)/21 draws on average.
    expected = (wrong.sum() + 1) / 21
    assert np.mean(draws) == pytest.approx(expected, abs=4 * np.std(draws) / np.sqrt(400))
    violators = first_violators(points[:1], threshold, searched, related, queries, np.arange(600))
    assert violators.ranks(np.array([100]))[0] == 100 // violators.draws[0]


def test_without_a_violator_nothing_is_lost_and_nothing_moves(search) -> None:
    points, searched, related = search
    asking, queries = side_of_points(points), np.arange(40)
    step = warp_step(asking, searched, related, queries, np.random.default_rng(0), margin=-1e6, max_draws=None)
    assert step.loss == 0
    assert not step.query_slopes.any()
    assert not step.gallery_slopes.any()


def test_the_loss_of_a_rank_is_a_harmonic_number() -> None:
    np.testing.assert_allclose(rank_losses(5), [0, 1, 3 / 2, 11 / 6, 25 / 12, 137 / 60])


@pytest.mark.parametrize(
    "model",
    [
        WARP(regularization=0.1),
        WARP(max_draws=3),
        BiCMSRM(list_size=20, regularization=0.1),
        PLRanking(beta=0.5, n_neighbors=3, list_size=25, margin=0.3),
        PLRanking(beta=0.0),
    ],
)
def test_the_gradient_of_a_batch_is_that_of_its_loss(model) -> None:
    rng = np.random.default_rng(5)
    related = RelatedRows.of_numbers(np.arange(40) % 4)
    sides = [
        replace(LinearSide.of(rng.normal(size=(40, width)), name="rows"), weights=rng.normal(size=(width, 2)))
        for width in (5, 4)
    ]
    queries = np.arange(0, 40, 3)

    def loss_at(moved: list[LinearSide]) -> float:
        return model._loss_and_gradients(moved, related, queries, np.random.default_rng(9))[0]

    gradients = model._loss_and_gradients(sides, related, queries, np.random.default_rng(9))[1]
    for number, side in enumerate(sides):
        for place in np.ndindex(*side.weights.shape):
            step = np.zeros_like(side.weights)
            step[place] = 1e-6
            there, back = (
                [replace(one, weights=one.weights + sign * step) if one is side else one for one in sides]
                for sign in (1, -1)
            )
            slope = (loss_at(there) - loss_at(back)) / 2e-6
            assert gradients[number][place] == pytest.approx(slope, rel=1e-5, abs=1e-6)


def test_neighbours_are_separated_as_the_formula_says() -> None:
    rng = np.random.default_rng(6)
    queries, items = rng.normal(size=(8, 3)), rng.normal(size=(20, 3))
    relevant = rng.random((8, 20)) < 0.4
    relevant[0] = True
    expected = 0.0
    for query, right in zip(queries[1:], relevant[1:], strict=True):
        squares = ((items - query) ** 2).sum(axis=1)
        near, far = (np.sort(squares[kind])[:4].mean() for kind in (right, ~right))
        expected += max(0.0, 0.7 + near - far) / 8
    loss, query_slopes, item_slopes = neighbour_separation(queries, items, relevant, n_neighbors=4, margin=0.7)
    assert loss == pytest.approx(expected)
    for points, slopes in ((queries, query_slopes), (items, item_slopes)):
        for place in np.ndindex(*points.shape):
            kept, values = points[place], []
            for moved in (kept + 1e-6, kept - 1e-6):
                points[place] = moved
                values.append(neighbour_separation(queries, items, relevant, n_neighbors=4, margin=0.7)[0])
            points[place] = kept
            assert slopes[place] == pytest.approx((values[0] - values[1]) / 2e-6, abs=1e-7)


def test_balanced_factors_have_the_same_product_and_its_trace_norm() -> None:
    rng = np.random.default_rng(8)
    left, right = 5 * rng.normal(size=(9, 3)), rng.normal(size=(7, 3))
    product = left @ right.T
    balance(left, right)
    np.testing.assert_allclose(left @ right.T, product, atol=1e-10)
    np.testing.assert_allclose(left.T @ left, right.T @ right, atol=1e-9)
    half_squares = ((left**2).sum() + (right**2).sum()) / 2
    assert half_squares == pytest.approx(np.linalg.norm(product, "nuc"))
    flat = np.zeros((4, 2))
    balance(flat, np.ones((3, 2)))
    assert not flat.any()


def test_lists_hold_the_batch_and_no_row_twice() -> None:
    queries = np.array([3, 9, 1])
    drawn = sampled_list(queries, 20, 8, np.random.default_rng(0))
    assert drawn[:3].tolist() == [3, 9, 1]
    assert len(set(drawn.tolist())) == 8
    assert sorted(sampled_list(queries, 5, 100, np.random.default_rng(0)).tolist()) == [0, 1, 2, 3, 4, 9]


def test_rows_of_weights_stay_within_the_norm(problem) -> None:
    images, texts = problem.images, problem.texts
    tight = WARP(max_norm=0.7, epochs=5).fit(images, texts, problem.labels)
    for projection, rows in ((tight.image_projection_, images), (tight.text_projection_, texts)):
        lengths = np.linalg.norm(projection * LinearSide.of(rows, name="rows").scale[:, None], axis=1)
        assert lengths.max() <= 0.7 * (1 + 1e-5)
        assert lengths.max() > 0.6


@pytest.mark.parametrize("cls", [WARP, BiCMSRM, PLRanking])
def test_training_starts_at_cca_when_asked_to(problem, cls) -> None:
    start = CCA(n_components=3).fit(problem.images, problem.texts)
    model = cls(n_components=3, start="cca", learning_rate=1e-12, epochs=1)
    model.fit(problem.images, problem.texts, problem.labels)
    ours = model.similarity(problem.images, problem.texts)
    canonical = start.encode_images(problem.images) @ start.encode_texts(problem.texts).T / 3
    np.testing.assert_allclose(ours, canonical, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    "model", [cls(n_components=8, epochs=10, learning_rate=0.1, batch_size=25) for cls in (WARP, BiCMSRM)]
)
def test_pairs_alone_teach_to_find_the_partner(model) -> None:
    rng = np.random.default_rng(0)
    meaning = rng.normal(size=(80, 5))
    images = np.repeat(meaning @ rng.normal(size=(5, 12)), 2, axis=0)
    texts = np.repeat(meaning, 2, axis=0) @ rng.normal(size=(5, 8)) + 0.1 * rng.normal(size=(160, 8))
    model.fit(images[:100], texts[:100])
    assert model.losses_[-1] < 0.9 * model.losses_[0]
    # Chance is (1 + 1/2 + … + 1/30)/30, about 0.13; the inner product favours long points.
    assert model.score(images[100::2], texts[100::2]) > 0.4
