"""Methods of alignment: identities, invariances and brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from diptych.arrays import unit_rows
from diptych.errors import InvalidInputError
from diptych.models import (
    CFA,
    CSA,
    LocalCKA,
    MiniVec2Vec,
    Procrustes,
    RelativeRepresentations,
    UnpairedCCA,
    WassersteinProcrustes,
)
from diptych.models.alignment._matching import match


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def orthogonal(rng, size):
    return np.linalg.qr(rng.normal(size=(size, size)))[0]


def views(rng, n, n_images=12, n_texts=8, noise=0.2):
    meaning = rng.normal(size=(n, 6))
    return tuple(
        meaning @ rng.normal(size=(6, size)) + noise * rng.normal(size=(n, size)) for size in (n_images, n_texts)
    )


def clustered(rng, n):
    """Return skewed clusters, and the same turned: without pairs there is something to find."""
    texts = 3 * rng.exponential(size=(12, 8))[rng.integers(12, size=n)] + 0.3 * rng.normal(size=(n, 8))
    return texts @ orthogonal(rng, 8), texts


def share_ranked_above(scores):
    """Return the mean share of other items that are ranked above the true one."""
    true = np.diag(scores)[:, None]
    above = (scores > true).sum(axis=1) + 0.5 * ((scores == true).sum(axis=1) - 1)
    return float(above.mean() / (len(scores) - 1))


def test_procrustes_finds_a_rotation(rng):
    texts = unit_rows(rng.normal(size=(50, 5)))
    texts = unit_rows(np.vstack([texts, -texts]))
    turn = orthogonal(rng, 5)
    model = Procrustes().fit(texts @ turn, texts)
    np.testing.assert_allclose(model.image_projection_ @ model.text_projection_.T, turn.T, atol=1e-12)


@pytest.mark.parametrize("widths", [(6, 4), (4, 6)])
def test_procrustes_is_the_best_partial_isometry(rng, widths):
    images, texts = views(rng, 40, *widths)
    model = Procrustes().fit(images, texts)
    a, b = (unit_rows(side - side.mean(axis=0)) for side in (images, texts))
    found = np.trace(a.T @ b @ (model.image_projection_ @ model.text_projection_.T).T)
    small = min(widths)
    for _ in range(2000):
        left, right = (np.linalg.qr(rng.normal(size=(width, small)))[0] for width in widths)
        assert found >= np.trace(a.T @ b @ (left @ right.T).T) - 1e-9


def test_procrustes_keeps_what_pairs_determine_alone(rng):
    images, texts = views(rng, 3, 8, 8)
    assert Procrustes().fit(images, texts).image_projection_.shape[1] <= 3


def test_procrustes_is_factor_analysis_of_unit_rows(rng):
    images, texts = views(rng, 60)
    model = Procrustes(metric="dot").fit(images, texts)
    a, b = (unit_rows(side - side.mean(axis=0)) for side in (images, texts))
    both = CFA(scale="none", metric="dot").fit(a - a.mean(axis=0), b - b.mean(axis=0))
    turned = (a @ model.image_projection_) @ (b @ model.text_projection_).T
    assert turned.shape == model.similarity(images, texts).shape
    np.testing.assert_allclose(turned, model.similarity(images, texts), atol=1e-12)
    assert both.n_image_features_ == model.n_image_features_


@pytest.mark.parametrize(
    "model", [Procrustes(), RelativeRepresentations(), LocalCKA(), CSA(n_components=4)], ids=lambda model: model.title
)
def test_turning_and_scaling_a_side_changes_no_score(rng, model):
    images, texts = views(rng, 60)
    before = model.fit(images, texts).similarity(images, texts)
    # Local CKA divides by the deviations of features, which a turn changes.
    turn = np.eye(12) if isinstance(model, LocalCKA) else orthogonal(rng, 12)
    after = model.fit(3 * images @ turn + 1, texts).similarity(3 * images @ turn + 1, texts)
    np.testing.assert_allclose(after, before, atol=1e-8)


def test_relative_representations_are_the_cross_covariance_score(rng):
    images, texts = views(rng, 30)
    model = RelativeRepresentations(n_neighbors=None, power=1).fit(images, texts)
    a, b = (unit_rows(side - side.mean(axis=0)) for side in (images, texts))
    inner = a @ a.T @ b @ b.T
    lengths = np.linalg.norm(a @ a.T, axis=1)[:, None] * np.linalg.norm(b @ b.T, axis=1)
    np.testing.assert_allclose(model.similarity(images, texts), inner / lengths, atol=1e-12)


def test_relative_representations_do_not_know_the_order_of_pairs(rng):
    images, texts = views(rng, 30)
    order = rng.permutation(30)
    model = RelativeRepresentations(n_neighbors=5)
    scores = model.fit(images, texts).similarity(images, texts)
    np.testing.assert_allclose(model.fit(images[order], texts[order]).similarity(images, texts), scores, atol=1e-12)
    assert (np.count_nonzero(model.encode_images(images), axis=1) <= 5).all()


def linear_cka(a, b):
    a, b = a - a.mean(axis=0), b - b.mean(axis=0)
    return np.linalg.norm(a.T @ b) ** 2 / np.linalg.norm(a.T @ a) / np.linalg.norm(b.T @ b)


@pytest.mark.parametrize("widths", [(5, 7), (7, 5)])
def test_local_cka_is_that_of_one_more_pair(rng, widths):
    images, texts = views(rng, 12, *widths)
    model = LocalCKA().fit(images[:8], texts[:8])
    a, b = images / images[:8].std(axis=0), texts / texts[:8].std(axis=0)
    expected = [
        [linear_cka(np.vstack([a[:8], x]), np.vstack([b[:8], y])) - linear_cka(a[:8], b[:8]) for y in b] for x in a
    ]
    np.testing.assert_allclose(model.similarity(images, texts), expected, atol=1e-12)


def test_csa_is_a_weighted_cosine_of_canonical_variates(rng):
    images, texts = views(rng, 200)
    model = CSA(regularization=0.0, n_components=5).fit(images, texts)
    u = (images - images.mean(axis=0)) @ model.image_projection_
    v = (texts - texts.mean(axis=0)) @ model.text_projection_
    correlations = [np.corrcoef(u[:, k], v[:, k])[0, 1] for k in range(5)]
    np.testing.assert_allclose(model.correlations_, correlations, atol=1e-10)
    np.testing.assert_allclose(u.var(axis=0), 1)
    expected = unit_rows(u) * model.correlations_ @ unit_rows(v).T
    np.testing.assert_allclose(model.similarity(images, texts), expected, atol=1e-10)


def test_matching_finds_the_best_permutation(rng):
    for trial in range(10):
        left, right = (each @ each.T for each in rng.normal(size=(2, 5, 3)))
        linear = rng.normal(size=(5, 5)) * (trial % 2)

        def value(order, left=left, right=right, linear=linear):
            return (left * right[np.ix_(order, order)]).sum() + linear[np.arange(5), order].sum()

        best = max(value(np.array(order)) for order in itertools.permutations(range(5)))
        assert value(match(left, right, linear, rng)) == pytest.approx(best)


SMALL = {"n_centres": 12, "n_restarts": 8, "batch_rows": 300}


@pytest.mark.parametrize(
    "model",
    [WassersteinProcrustes(**SMALL, rounds=15), MiniVec2Vec(**SMALL), UnpairedCCA(**SMALL)],
    ids=lambda model: model.title,
)
def test_two_clustered_spaces_are_aligned_without_pairs(rng, model):
    images, texts = clustered(rng, 700)
    model.fit(None, None, more_images=images[:300], more_texts=texts[300:600])
    assert share_ranked_above(model.similarity(images[600:], texts[600:])) < 0.25
    assert model.n_pairs_ == 0


def test_pairs_help_where_geometry_alone_does_not(rng):
    images, texts = (np.abs(side) for side in views(rng, 500, 10, 10, noise=1.0))
    alone = {"more_images": images[100:250], "more_texts": texts[250:400]}
    model = WassersteinProcrustes(**SMALL, rounds=15)
    test = slice(400, 500)
    few = share_ranked_above(model.fit(images[:40], texts[:40], **alone).similarity(images[test], texts[test]))
    assert few < 0.35


def test_with_pairs_alone_it_is_procrustes(rng):
    images, texts = views(rng, 40)
    with_rounds = WassersteinProcrustes(n_centres=2).fit(images, texts).similarity(images, texts)
    np.testing.assert_allclose(with_rounds, Procrustes().fit(images, texts).similarity(images, texts), atol=1e-12)


def test_the_same_seed_gives_the_same_map(rng):
    images, texts = clustered(rng, 200)
    model = WassersteinProcrustes(**SMALL, rounds=3)
    first = model.fit(None, None, more_images=images[:100], more_texts=texts[100:]).image_projection_
    again = model.fit(None, None, more_images=images[:100], more_texts=texts[100:]).image_projection_
    np.testing.assert_array_equal(first, again)


def test_what_is_missing_is_named(rng):
    images, texts = views(rng, 20)
    with pytest.raises(InvalidInputError, match="learns from pairs"):
        Procrustes().fit(None, None, more_images=images, more_texts=texts)
    with pytest.raises(InvalidInputError, match="give at least 60 images"):
        WassersteinProcrustes().fit(None, None, more_images=images, more_texts=texts)
    with pytest.raises(InvalidInputError, match="no texts were given"):
        WassersteinProcrustes().fit(None, None, more_images=images)
    with pytest.raises(InvalidInputError, match="must have 12 features"):
        Procrustes().fit(images, texts, more_images=texts)


@pytest.mark.parametrize("method", [WassersteinProcrustes, MiniVec2Vec, UnpairedCCA])
def test_all_principal_components_are_all_features(rng, method):
    images, texts = clustered(rng, 300)
    settings = {"n_centres": 10, "n_restarts": 5}
    more = {"more_images": images[:150], "more_texts": texts[150:]}
    whole, reduced = (
        method(**settings, principal_components=count).fit(images[:20], texts[:20], **more) for count in (None, 8)
    )
    np.testing.assert_allclose(reduced.similarity(images, texts), whole.similarity(images, texts), atol=1e-6)
    few = method(**settings, principal_components=3).fit(images[:20], texts[:20], **more)
    assert few.encode_texts(texts).shape[1] <= 3
