"""Subspaces with and without labels: brute force over all pairs, stationarity, invariance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import eigh, fractional_matrix_power
from scipy.spatial.distance import cdist
from sklearn.covariance import oas
from sklearn.cross_decomposition import PLSRegression

from diptych.models import BLM, CCA, CCA3V, CFA, GMLDA, GMMFA, LCFS, LGCFL, MLCCA, PLS, ClusterCCA
from diptych.models.discriminant._base import shrinkage_ridge
from diptych.models.discriminant.generalized_multiview import laplacian_moment, nearest_of_class, nearest_of_others

WITH_LABELS = [CCA3V, ClusterCCA, GMLDA, GMMFA, LCFS, LGCFL, MLCCA]


def labelled_pairs(n=90, seed=0, n_classes=3):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % n_classes
    meaning = rng.normal(size=(n_classes, 4))[labels] + 0.5 * rng.normal(size=(n, 4))
    images = meaning @ rng.normal(size=(4, 7)) + 0.3 * rng.normal(size=(n, 7)) + 1
    return images, meaning @ rng.normal(size=(4, 5)) + 0.3 * rng.normal(size=(n, 5)) - 2, labels


def several_labels(n=90, seed=1):
    rng = np.random.default_rng(seed)
    indicator = (rng.random((n, 4)) < 0.4).astype(int)
    images = indicator @ rng.normal(size=(4, 7)) + 0.3 * rng.normal(size=(n, 7))
    return images, indicator @ rng.normal(size=(4, 5)) + 0.3 * rng.normal(size=(n, 5)), indicator


def same_up_to_scale(ours, theirs):
    """Compare columns as directions."""
    ours, theirs = ours / np.linalg.norm(ours, axis=0), theirs / np.linalg.norm(theirs, axis=0)
    np.testing.assert_allclose(np.abs((ours * theirs).sum(axis=0)), 1, atol=1e-7)


def test_pls_equals_deflation_of_the_data():
    images, texts, _ = labelled_pairs()
    model = PLS(n_components=4).fit(images, texts)
    reference = PLSRegression(n_components=4, scale=False, tol=1e-12, max_iter=10_000).fit(images, texts)
    same_up_to_scale(model.encode_images(images), reference.transform(images))
    scores = model.encode_images(images)
    gram = scores.T @ scores
    assert np.abs(gram - np.diag(np.diag(gram))).max() < 1e-8 * gram.max()


def test_pls_texts_get_the_scores_that_explain_them_best():
    images, texts, _ = labelled_pairs()
    model = PLS(n_components=3, text_points="least_squares").fit(images, texts)
    scores = model.encode_images(images)
    loadings = np.linalg.lstsq(scores, texts - texts.mean(axis=0), rcond=None)[0]
    expected = np.linalg.lstsq(loadings.T, (texts - texts.mean(axis=0)).T, rcond=None)[0].T
    np.testing.assert_allclose(model.encode_texts(texts), expected, atol=1e-8)
    plain = PLS(n_components=3, text_points="projection").fit(images, texts)
    np.testing.assert_allclose(plain.encode_texts(texts), (texts - texts.mean(axis=0)) @ loadings.T, atol=1e-8)


def test_pls_stops_when_no_covariance_is_left():
    rng = np.random.default_rng(3)
    meaning = rng.normal(size=(60, 2))
    model = PLS(n_components=None).fit(meaning @ rng.normal(size=(2, 6)), meaning @ rng.normal(size=(2, 5)))
    assert model.image_projection_.shape == (6, 2)


def test_blm_factors_are_those_of_the_joint_matrix():
    images, texts, _ = labelled_pairs()
    model = BLM(n_components=3, variant="factors").fit(images, texts)
    centred = [side - side.mean(axis=0) for side in (images, texts)]
    scaled = [side / np.linalg.norm(side) for side in centred]
    factors = np.linalg.svd(np.hstack(scaled), full_matrices=False)[2][:3].T
    for encode, side, rows, block in (
        (model.encode_images, images, scaled[0], factors[:7]),
        (model.encode_texts, texts, scaled[1], factors[7:]),
    ):
        expected = np.linalg.lstsq(block, rows.T, rcond=None)[0].T
        same_up_to_scale(encode(side), expected)


def test_blm_projections_solve_their_eigenproblem_and_tend_to_cfa():
    images, texts, _ = labelled_pairs()
    far = BLM(n_components=3, alpha=1e7).fit(images, texts)
    cfa = CFA(n_components=3, scale="none").fit(images, texts)
    same_up_to_scale(far.image_projection_, cfa.image_projection_)
    same_up_to_scale(far.text_projection_, cfa.text_projection_)
    model = BLM(n_components=2, alpha=3.0).fit(images, texts)
    a, b = (side - side.mean(axis=0) for side in (images, texts))
    a, b = a / np.linalg.norm(a), b / np.linalg.norm(b)
    joint = np.block([[a.T @ a, 3 * a.T @ b], [3 * b.T @ a, b.T @ b]])
    for place in range(2):
        vector = np.concatenate(
            [
                model.image_projection_[:, place] * np.linalg.norm(images - images.mean(axis=0)),
                model.text_projection_[:, place] * np.linalg.norm(texts - texts.mean(axis=0)),
            ]
        )
        value = vector @ joint @ vector / (vector @ vector)
        np.testing.assert_allclose(joint @ vector, value * vector, atol=1e-9)
    assert value > 0


@pytest.mark.parametrize("n_rows", [6, 40, 400])
def test_the_ridge_of_shrinkage_is_that_of_scikit_learn(n_rows):
    rng = np.random.default_rng(n_rows)
    rows = rng.normal(size=(n_rows, 12)) * np.linspace(0.2, 3, 12)
    share = oas(rows, assume_centered=True)[1]
    assert shrinkage_ridge(rows.T @ rows, n_rows) == pytest.approx(min(share, 0.99) / (1 - min(share, 0.99)))


def multiview_problem(model, images, texts, spread, shrink, align):
    """Return both matrices of the eigenproblem by n × n algebra, in the scaling the model uses."""
    sides = []
    for side in (images, texts):
        centred = side - side.mean(axis=0)
        sides.append(centred / np.sqrt((centred**2).sum() / len(side)))
    parts = [(side.T @ spread(side) @ side, side.T @ shrink(side) @ side) for side in sides]
    joint = sides[0].T @ align @ sides[1]
    sizes = [np.trace(side.T @ align @ side) for side in sides]
    joint *= model.alpha * np.sqrt(np.trace(parts[0][0]) * np.trace(parts[1][0])) / np.sqrt(sizes[0] * sizes[1])
    balance = np.trace(parts[0][1]) / np.trace(parts[1][1])
    metric = np.zeros((12, 12))
    for block, matrix in ((slice(0, 7), parts[0][1]), (slice(7, 12), balance * parts[1][1])):
        share = shrinkage_ridge(matrix, len(images)) if model.regularization == "auto" else model.regularization
        ridge = share * np.trace(matrix) / len(matrix)
        metric[block, block] = matrix + ridge * np.eye(len(matrix))
    return np.block([[parts[0][0], joint], [joint.T, parts[1][0]]]), metric


def scales(images, texts):
    return [np.sqrt(((side - side.mean(axis=0)) ** 2).sum() / len(side)) for side in (images, texts)]


def check_stationary(model, images, texts, joint, metric):
    image_scale, text_scale = scales(images, texts)
    values = eigh(joint, metric, eigvals_only=True)[::-1]
    for place, value in enumerate(model.eigenvalues_):
        vector = np.concatenate(
            [model.image_projection_[:, place] * image_scale, model.text_projection_[:, place] * text_scale]
        )
        np.testing.assert_allclose(joint @ vector, value * (metric @ vector), atol=1e-7 * np.abs(joint).max())
        assert value == pytest.approx(values[place])


@pytest.mark.parametrize("alignment", ["class_means", "pairs"])
def test_gmlda_solves_the_problem_of_the_averaging_matrix(alignment):
    images, texts, labels = labelled_pairs()
    model = GMLDA(alignment=alignment, energy=1.0).fit(images, texts, labels)
    same = labels[:, None] == labels[None, :]
    averaging = same / same.sum(axis=1, keepdims=True)
    align = averaging / same.sum(axis=1) if alignment == "class_means" else np.eye(len(labels))
    joint, metric = multiview_problem(
        model, images, texts, lambda _: averaging, lambda _: np.eye(len(labels)) - averaging, align
    )
    check_stationary(model, images, texts, joint, metric)


@pytest.mark.parametrize("between", ["overall", "per_class"])
def test_gmmfa_solves_the_problem_of_its_graphs(between):
    images, texts, labels = labelled_pairs(n=45)
    model = GMMFA(n_within=3, n_between=10, energy=1.0, between=between).fit(images, texts, labels)

    def laplacian(weights):
        return np.diag(weights.sum(axis=1)) - weights

    def within(side):
        distances = cdist(side, side)
        weights = np.zeros_like(distances)
        for row in range(len(side)):
            others = [j for j in np.argsort(distances[row]) if labels[j] == labels[row] and j != row]
            weights[row, others[:3]] = 1
        return laplacian(np.maximum(weights, weights.T))

    def across(side):
        distances = cdist(side, side)
        n = len(side)
        weights = np.zeros_like(distances)
        groups = [None] if between == "overall" else sorted(set(labels))
        for group in groups:
            pairs = [
                (distances[i, j], i, j)
                for i in range(n)
                for j in range(i + 1, n)
                if labels[i] != labels[j] and (group is None or group in (labels[i], labels[j]))
            ]
            for _, i, j in sorted(pairs)[:10]:
                weights[i, j] = weights[j, i] = 1
        return laplacian(weights)

    same = labels[:, None] == labels[None, :]
    align = same / same.sum(axis=1, keepdims=True) / same.sum(axis=1)
    joint, metric = multiview_problem(model, images, texts, across, within, align)
    check_stationary(model, images, texts, joint, metric)


def test_gmmfa_of_a_sample_has_the_graphs_of_that_sample():
    images, texts, labels = labelled_pairs(n=300)
    model = GMMFA(most_rows=100, n_within=5).fit(images, texts, labels)
    assert model.score(images, texts, labels) > 0.9 * GMMFA(n_within=5).fit(images, texts, labels).score(
        images, texts, labels
    )
    whole = GMMFA(most_rows=None, n_within=5).fit(images, texts, labels)
    np.testing.assert_array_equal(
        whole.image_projection_, GMMFA(most_rows=300, n_within=5).fit(images, texts, labels).image_projection_
    )
    assert not np.allclose(whole.image_projection_, model.image_projection_)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(4, 30), count=st.integers(1, 6), block=st.integers(1, 40))
def test_graphs_are_those_of_all_distances(seed, n, count, block):
    rng = np.random.default_rng(seed)
    rows, belongs = rng.normal(size=(n, 3)), rng.random((n, 3)) < 0.5
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("diptych.models.discriminant.generalized_multiview._BLOCK_BYTES", 8 * n * block)
        within, across = nearest_of_class(rows, belongs, count), nearest_of_others(rows, belongs, count)
    distances = cdist(rows, rows)
    expected = set()
    for members in belongs.T:
        own = np.flatnonzero(members)
        for i in own:
            near = sorted((j for j in own if j != i), key=lambda j: distances[i, j])[:count]
            expected |= {(min(i, j), max(i, j)) for j in near}
    assert {tuple(edge) for edge in within.tolist()} == expected
    strangers = [(i, j) for i in range(n) for j in range(i + 1, n) if not (belongs[i] & belongs[j]).any()]
    closest = sorted(strangers, key=lambda pair: distances[pair])[:count]
    assert {tuple(edge) for edge in across.tolist()} == set(closest)
    moment = sum((np.outer(rows[i] - rows[j], rows[i] - rows[j]) for i, j in closest), np.zeros((3, 3)))
    np.testing.assert_allclose(laplacian_moment(rows, across), moment, atol=1e-10)


def test_three_views_solve_the_joint_problem():
    images, texts, labels = labelled_pairs()
    ridge, model = 0.05, CCA3V(regularization=0.05, weight_power=0).fit(images, texts, labels)
    views = [side - side.mean(axis=0) for side in (images, texts, np.eye(3)[labels])]
    joint = np.hstack(views).T @ np.hstack(views)
    diagonal, start = np.zeros_like(joint), 0
    for view in views:
        block = slice(start, start + view.shape[1])
        joint[block, block] += ridge * np.trace(view.T @ view) / view.shape[1] * np.eye(view.shape[1])
        diagonal[block, block] = joint[block, block]
        start = block.stop
    values, vectors = eigh(joint, diagonal)
    values, vectors = values[::-1], vectors[:, ::-1]
    kept = int((values > 1 + 1e-4).sum())
    np.testing.assert_allclose(model.eigenvalues_, values[:kept])
    same_up_to_scale(model.image_projection_, vectors[:7, :kept])
    same_up_to_scale(model.text_projection_, vectors[7:12, :kept])
    weighted = CCA3V(regularization=0.05, weight_power=4).fit(images, texts, labels)
    np.testing.assert_allclose(weighted.image_projection_, model.image_projection_ * values[:kept] ** 4)


def brute_force_lcfs(images, texts, labels, model):
    """The iterations as published, with their n × n matrix."""
    a, b = (side / np.sqrt((side**2).sum() / len(side)) for side in (images, texts))
    weights = [np.eye(7, 3), np.eye(5, 3)]
    for _ in range(model.n_iter):
        scores = np.hstack([a @ weights[0], b @ weights[1]])
        inverse = fractional_matrix_power(scores @ scores.T + model.smoothing * np.eye(len(a)), -0.5).real
        weights = [
            np.linalg.solve(
                side.T @ side
                + model.sparsity * np.diag(1 / (2 * np.sqrt((u**2).sum(axis=1) + 1e-7)))
                + model.low_rank * side.T @ inverse @ side,
                side.T @ labels,
            )
            for side, u in zip((a, b), weights, strict=True)
        ]
    return [side @ u for side, u in zip((a, b), weights, strict=True)]


@pytest.mark.parametrize("smoothing", [1e-2, 1e-5])
def test_lcfs_equals_the_published_iterations(smoothing):
    images, texts, labels = labelled_pairs()
    model = LCFS(smoothing=smoothing, low_rank=0.05).fit(images, texts, labels)
    expected = brute_force_lcfs(images, texts, np.eye(3)[labels], model)
    np.testing.assert_allclose(model.encode_images(images), expected[0], atol=1e-6)
    np.testing.assert_allclose(model.encode_texts(texts), expected[1], atol=1e-6)


def test_lcfs_and_lgcfl_go_down_and_switch_features_off():
    images, texts, labels = labelled_pairs(n=150)
    rng = np.random.default_rng(5)
    noisy = np.hstack([images, 1e-3 * rng.normal(size=(150, 16))])
    for model in (LCFS(n_iter=40, sparsity=2.0, smoothing=1e-3), LGCFL(n_iter=40, sparsity=2.0, group_size=1)):
        steps = np.diff(model.fit(noisy, texts, labels).objectives_)
        assert (steps <= 1e-8 * np.abs(model.objectives_[:-1])).all()
        strengths = np.linalg.norm(model.image_weights_, axis=1)
        spread = noisy.std(axis=0)
        assert (strengths * spread)[7:].max() < 0.02 * (strengths * spread)[:7].max()


def test_lgcfl_drags_targets_outwards_only():
    images, texts, labels = labelled_pairs()
    model = LGCFL(sparsity=1e-6, n_iter=30).fit(images, texts, labels)
    wanted = np.eye(3)[labels].astype(bool)
    middle = (model.encode_images(images) + model.encode_texts(texts)) / 2
    plain = LGCFL(sparsity=1e-6, n_iter=1).fit(images, texts, labels)
    before = (plain.encode_images(images) + plain.encode_texts(texts)) / 2
    assert middle[wanted].mean() > before[wanted].mean()
    assert middle[~wanted].mean() < before[~wanted].mean()


@pytest.mark.parametrize("kind", ["cosine", "exponential"])
def test_ml_cca_equals_cca_of_all_weighted_pairs(kind):
    images, texts, indicator = several_labels()
    model = MLCCA(label_similarity=kind, sigma=0.7, regularization=0.1).fit(images, texts, indicator)
    there = indicator.any(axis=1)
    a, b, z = (rows[there] for rows in (images, texts, indicator.astype(float)))
    a, b = a - a.mean(axis=0), b - b.mean(axis=0)
    if kind == "cosine":
        unit = z / np.linalg.norm(z, axis=1, keepdims=True)
        alike = unit @ unit.T
    else:
        alike = np.exp(-cdist(z, z) / 0.7)
    moments = [a.T @ np.diag(alike.sum(axis=1)) @ a, b.T @ np.diag(alike.sum(axis=0)) @ b]
    ridged = [m + 0.1 * np.trace(m) / len(m) * np.eye(len(m)) for m in moments]
    whiten = [fractional_matrix_power(m, -0.5) for m in ridged]
    left, values, right = np.linalg.svd(whiten[0] @ a.T @ alike @ b @ whiten[1])
    kept = len(model.correlations_)
    np.testing.assert_allclose(model.correlations_, values[:kept], atol=1e-9)
    same_up_to_scale(model.image_projection_[:, :3], (whiten[0] @ left)[:, :3])
    same_up_to_scale(model.text_projection_[:, :3], (whiten[1] @ right.T)[:, :3])


def test_ml_cca_may_scale_its_texts_as_the_authors_do():
    images, texts, indicator = several_labels()
    model = MLCCA(unit_texts=True).fit(images, texts, indicator)
    np.testing.assert_allclose(np.linalg.norm(model.text_projection_, axis=0), 1)


@pytest.mark.parametrize("several", [False, True])
def test_cluster_cca_equals_cca_of_every_pair_of_a_class(several):
    images, texts, labels = several_labels(n=40) if several else labelled_pairs(n=30)
    belongs = labels if several else np.eye(3)[labels]
    pairs = [(i, j) for members in belongs.T for i in np.flatnonzero(members) for j in np.flatnonzero(members)]
    first, second = map(list, zip(*pairs, strict=True))
    model = ClusterCCA(regularization=0.2).fit(images, texts, labels)
    explicit = CCA(regularization=0.2, weight_power=0).fit(images[first], texts[second])
    np.testing.assert_allclose(model.correlations_, explicit.correlations_[: len(model.correlations_)], atol=1e-9)
    np.testing.assert_allclose(model.image_mean_, explicit.image_mean_, atol=1e-12)
    same_up_to_scale(model.image_projection_[:, :2], explicit.image_projection_[:, :2])
    same_up_to_scale(model.text_projection_[:, :2], explicit.text_projection_[:, :2])


@pytest.mark.parametrize("cls", [PLS, BLM, *WITH_LABELS], ids=lambda cls: cls.__name__)
def test_the_order_of_rows_changes_nothing(cls):
    images, texts, labels = labelled_pairs()
    order = np.random.default_rng(9).permutation(len(labels))
    scores = cls().fit(images, texts, labels).similarity(images, texts)
    moved = cls().fit(images[order], texts[order], labels[order]).similarity(images, texts)
    np.testing.assert_allclose(moved, scores, atol=1e-6)


@pytest.mark.parametrize("cls", [PLS, BLM, CCA3V, ClusterCCA, GMLDA, GMMFA, MLCCA], ids=lambda cls: cls.__name__)
def test_turning_the_features_changes_nothing(cls):
    images, texts, labels = labelled_pairs()
    turn = np.linalg.qr(np.random.default_rng(4).normal(size=(7, 7)))[0]
    scores = cls().fit(images, texts, labels).similarity(images, texts)
    turned = cls().fit(images @ turn, texts, labels).similarity(images @ turn, texts)
    np.testing.assert_allclose(turned, scores, atol=1e-6)


@pytest.mark.parametrize("cls", [GMLDA, GMMFA])
def test_signs_are_those_of_the_features_and_not_of_their_principal_components(cls):
    for seed in range(4):
        directions = cls(n_components=2).fit(*labelled_pairs(seed=seed)).image_projection_
        assert (directions[np.abs(directions).argmax(axis=0), [0, 1]] > 0).all()
