"""IMH: the operator against its dense forms, the graphs against brute force, balanced bits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import subspace_angles
from scipy.spatial.distance import cdist

from diptych.metrics import AP, SameLabel, evaluate
from diptych.models import CVH, IMH
from diptych.models.hashing.spectral import MediaAgreement, balanced_thresholds, neighbour_graph
from tests.models.hashing.sure_bits import assert_same_bits

N_PAIRS, RIDGE, SMOOTHNESS = 50, 0.3, 0.05


def centred_pairs(n_pairs: int = N_PAIRS, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    meaning = rng.normal(size=(n_pairs, 4)) * [4, 3, 2, 1]
    images = meaning @ rng.normal(size=(4, 9)) + 0.3 * rng.normal(size=(n_pairs, 9))
    texts = meaning @ rng.normal(size=(4, 6)) + 0.3 * rng.normal(size=(n_pairs, 6))
    return images - images.mean(axis=0), texts - texts.mean(axis=0)


def residual_maker(rows: np.ndarray) -> np.ndarray:
    """I − X(XᵀX + βI)⁻¹Xᵀ."""
    return np.eye(len(rows)) - rows @ np.linalg.solve(rows.T @ rows + RIDGE * np.eye(rows.shape[1]), rows.T)


def laplacian(rows: np.ndarray) -> np.ndarray:
    weights = neighbour_graph(rows, 5).toarray()
    return np.diag(weights.sum(axis=1)) - weights


def dense_parts() -> tuple[np.ndarray, np.ndarray]:
    return tuple(residual_maker(rows) + SMOOTHNESS * laplacian(rows) for rows in centred_pairs())


def agreement(images: np.ndarray, texts: np.ndarray, smoothness: float = SMOOTHNESS) -> MediaAgreement:
    sides = []
    for rows in (images, texts):
        factor = np.linalg.cholesky(rows.T @ rows + RIDGE * np.eye(rows.shape[1]))
        sides.append(np.linalg.solve(factor, rows.T).T)
    return MediaAgreement(tuple(sides), neighbour_graph(images, 5) + neighbour_graph(texts, 5), smoothness)


def test_the_five_terms_of_the_elimination_are_a_schur_complement():
    # Some pairs only: m of the n items on each side are each other's partners.
    first, second = dense_parts()
    rng = np.random.default_rng(1)
    left, right = (np.eye(N_PAIRS)[rng.permutation(N_PAIRS)[:30]] for _ in range(2))
    weight = 7.0 * np.eye(30)
    inner = second + right.T @ weight @ right
    follow = np.linalg.solve(inner, right.T @ weight @ left)
    terms = [
        first,
        left.T @ weight @ left,
        -left.T @ weight @ right @ follow,
        -follow.T @ right.T @ weight @ left,
        follow.T @ inner @ follow,
    ]
    schur = first + left.T @ weight @ left - left.T @ weight @ right @ np.linalg.solve(inner, right.T @ weight @ left)
    np.testing.assert_allclose(sum(terms), schur, atol=1e-10)


def test_the_operator_is_the_limit_of_the_papers_matrix():
    first, second = dense_parts()
    weight = 1e6
    paper = first + weight * np.eye(N_PAIRS) - weight**2 * np.linalg.inv(second + weight * np.eye(N_PAIRS))
    operator = agreement(*centred_pairs()).apply(np.eye(N_PAIRS))
    np.testing.assert_allclose(2 * np.eye(N_PAIRS) - operator, paper, atol=1e-4)
    smallest = np.linalg.eigh(paper)[1][:, :5]
    assert subspace_angles(agreement(*centred_pairs()).top(5, seed=0)[1], smallest).max() < 1e-3


def test_lanczos_finds_what_the_whole_matrix_has(monkeypatch):
    problem = agreement(*centred_pairs())
    values, vectors = np.linalg.eigh(problem.apply(np.eye(N_PAIRS)))
    monkeypatch.setattr("diptych.models.hashing.spectral._WHOLE", 0)
    found, columns = problem.top(4, seed=0)
    np.testing.assert_allclose(found, values[::-1][:4], atol=1e-8)
    assert subspace_angles(columns, vectors[:, -4:]).max() < 1e-6


def test_a_constant_is_never_a_bit():
    # So strong a graph makes every other value negative, and a constant has the value zero.
    problem = agreement(*centred_pairs(), smoothness=10.0)
    values, columns = problem.top(3, seed=0)
    assert values.max() < 0
    np.testing.assert_allclose(columns.sum(axis=0), 0, atol=1e-8)


def test_without_graphs_and_ridge_it_is_canonical_correlation():
    images, texts = centred_pairs()
    model = IMH(n_bits=4, smoothness=0.0, regularization=0.0, least_agreement=-1.0).fit(images, texts)
    correlations = CVH(n_bits=4, regularization=0.0).fit(images, texts).correlations_
    np.testing.assert_allclose(model.values_, 1 + correlations, atol=1e-8)


def test_the_graph_is_that_of_brute_force(monkeypatch):
    rows = np.random.default_rng(2).normal(size=(40, 3))
    distances = cdist(rows, rows)
    np.fill_diagonal(distances, np.inf)
    nearest = np.argsort(distances, axis=1)[:, :4]
    # The fourth and the fifth neighbour of every row are told apart by more than rounding.
    assert np.diff(np.sort(distances, axis=1), axis=1)[:, 3].min() > 1e-9
    weights = np.zeros((40, 40))
    np.put_along_axis(weights, nearest, 1, axis=1)
    np.testing.assert_array_equal(neighbour_graph(rows, 4).toarray(), (weights + weights.T) / 2)
    monkeypatch.setattr("diptych.models.hashing.spectral._BLOCK_BYTES", 8 * 40 * 7)
    np.testing.assert_array_equal(neighbour_graph(rows, 4).toarray(), (weights + weights.T) / 2)
    assert neighbour_graph(rows[:3], 10).toarray().sum() == 6


@pytest.mark.parametrize("n_rows", [2, 9, 10])
def test_thresholds_halve_the_rows_and_touch_none(n_rows):
    outputs = np.random.default_rng(3).normal(size=(n_rows, 5))
    over = (outputs > balanced_thresholds(outputs)).sum(axis=0)
    assert np.abs(over - n_rows / 2).max() <= 0.5
    assert np.abs(outputs - balanced_thresholds(outputs)).min() > 0


def test_thresholds_go_between_values_that_repeat():
    outputs = np.array([[0.0, 5.0], [0.0, 5.0], [0.0, 5.0], [1.0, 5.0], [2.0, 5.0]])
    np.testing.assert_array_equal(balanced_thresholds(outputs), [0.5, 4.0])
    np.testing.assert_array_equal(balanced_thresholds(outputs[:1]), [-1.0, 4.0])


@pytest.fixture(scope="module")
def fitted() -> IMH:
    return IMH(n_bits=12, regularization=0.01).fit(*centred_pairs(301))


def test_every_bit_is_balanced_in_training(fitted):
    images, texts = centred_pairs(301)
    for outputs in (fitted.decision_images(images), fitted.decision_texts(texts)):
        assert outputs.shape == (301, 12)
        assert np.abs((outputs >= 0).sum(axis=0) - 150.5).max() <= 0.5


def test_one_pair_alone_has_the_code_of_the_batch(fitted):
    images, texts = centred_pairs(301)
    alone = np.vstack([fitted.encode_pairs(images[i : i + 1], texts[i : i + 1]) for i in range(20)])
    batch = fitted.encode_pairs(images[:20], texts[:20])
    assert_same_bits(alone, batch, fitted.decision_pairs(images[:20], texts[:20]))


def test_bits_beyond_the_narrower_side_still_agree():
    images, texts = centred_pairs(200)
    kept, replaced = (
        IMH(n_bits=24, smoothness=0.001, least_agreement=least).fit(images, texts) for least in (-1.0, 0.1)
    )
    assert len(kept.values_) == 24
    assert len(replaced.values_) <= 6
    agreeing = [
        ((model.decision_images(images) >= 0) == (model.decision_texts(texts) >= 0)).mean()
        for model in (kept, replaced)
    ]
    assert agreeing[1] > 0.8
    assert agreeing[1] > agreeing[0] + 0.1


def test_a_sample_of_the_pairs_serves():
    images, texts = centred_pairs(240)
    model = IMH(n_bits=12, max_pairs=100).fit(images, texts)
    assert model.n_pairs_ == 240
    assert model.score(images, texts) > 10 * (1 / np.arange(1, 241)).mean()


def test_the_order_of_the_gallery_does_not_matter(fitted):
    images, texts = (rows[:80] for rows in centred_pairs(301))
    labels = (images[:, 0] > 0).astype(int)
    order = np.random.default_rng(4).permutation(80)
    means = [
        evaluate(
            fitted.encode_images(images),
            fitted.encode_texts(texts[rows]),
            fitted.space,
            SameLabel(labels, labels[rows]),
            [AP()],
        ).mean[AP()]
        for rows in (np.arange(80), order)
    ]
    assert means[0] == pytest.approx(means[1], abs=1e-12)


def test_wrong_pairs_teach_nothing():
    images, texts = centred_pairs(240)
    shuffled = texts[np.random.default_rng(5).permutation(120)]
    wrong = IMH(n_bits=12).fit(images[:120], shuffled).score(images[120:], texts[120:])
    right = IMH(n_bits=12).fit(images[:120], texts[:120]).score(images[120:], texts[120:])
    ranks = 1 / np.arange(1, 121)
    assert abs(wrong - ranks.mean()) < 4 * ranks.std() / np.sqrt(120)
    assert right > ranks.mean() + 6 * ranks.std() / np.sqrt(120)
