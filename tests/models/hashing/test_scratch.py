"""SCRATCH: the alternation against its objective written out, and codes of pairs without labels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from diptych.models import SCRATCH
from diptych.models.hashing.scratch import AnchoredSide, FactorWeights, RbfAnchors, RotatedFactorisation

WEIGHTS = FactorWeights(reconstruction=0.5, labels=20.0, agreement=30.0, ridge=2.0)


@pytest.fixture(scope="module")
def triples() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    labels = np.arange(160) % 4
    meaning = np.eye(4)[labels]
    images = meaning @ rng.normal(size=(4, 9)) + 0.5 * rng.normal(size=(160, 9))
    texts = meaning @ rng.normal(size=(4, 6)) + 0.5 * rng.normal(size=(160, 6))
    return images, texts, labels


@pytest.fixture
def factors(triples) -> RotatedFactorisation:
    images, texts, labels = triples
    ridge = WEIGHTS.ridge / WEIGHTS.agreement
    sides = AnchoredSide.of(images, 30, ridge, 0), AnchoredSide.of(texts, 20, ridge, 0)
    return RotatedFactorisation(sides, np.eye(4)[labels], WEIGHTS, n_bits=5, seed=0)


def objective(factors: RotatedFactorisation, latent: np.ndarray, blocks: dict[str, np.ndarray]) -> float:
    """The objective as it is written, with every other variable given."""
    (image, text), (first, second) = factors.sides, blocks["bases"]
    image_weights, text_weights = blocks["regressions"]
    total = WEIGHTS.reconstruction * ((image.features - latent @ first) ** 2).sum()
    total += WEIGHTS.reconstruction * ((text.features - latent @ second) ** 2).sum()
    total += WEIGHTS.labels * ((factors.labels - latent @ blocks["labels"]) ** 2).sum()
    total += WEIGHTS.agreement * ((latent - image.features @ image_weights) ** 2).sum()
    total += WEIGHTS.agreement * ((latent - text.features @ text_weights) ** 2).sum()
    total += ((blocks["codes"] - latent @ blocks["rotation"]) ** 2).sum()
    norms = (first, second, blocks["labels"], image_weights, text_weights, latent)
    return float(total + WEIGHTS.ridge * sum((part**2).sum() for part in norms))


def blocks_of(factors: RotatedFactorisation) -> dict[str, np.ndarray]:
    gram = factors.latent.T @ factors.latent
    return {
        "bases": factors.bases(),
        "regressions": factors.regressions(),
        "labels": np.linalg.solve(gram + WEIGHTS.ridge / WEIGHTS.labels * np.eye(5), factors.latent.T @ factors.labels),
        "codes": np.where(factors.latent @ factors.rotation >= 0, 1.0, -1.0),
        "rotation": factors.rotation,
    }


def test_a_round_minimises_over_the_latent_rows_and_reports_the_objective(factors):
    factors.update()
    blocks = blocks_of(factors)
    value = factors.update()
    best = objective(factors, factors.latent, blocks)
    rng = np.random.default_rng(1)
    for _ in range(3):
        step = 1e-3 * rng.normal(size=factors.latent.shape)
        up, down = (objective(factors, factors.latent + sign * step, blocks) for sign in (1, -1))
        # A minimum of a quadratic: both directions rise, by the same amount.
        assert min(up, down) > best
        assert up - best == pytest.approx(down - best, rel=1e-4)
    rotated = {**blocks, "rotation": factors.rotation}
    assert value == pytest.approx(objective(factors, factors.latent, rotated), rel=1e-9)
    assert value <= best


def test_the_objective_never_rises(triples):
    history = SCRATCH(n_bits=8, n_anchors=40, n_iter=15).fit(*triples).objectives_
    assert len(history) == 15
    assert (np.diff(history) <= 1e-9 * history[0]).all()
    assert history[-1] < history[0]


def test_regressions_are_ridge_regressions_and_the_rotation_is_one(factors):
    factors.update()
    for side, weights in zip(factors.sides, factors.regressions(), strict=True):
        gram = side.features.T @ side.features + WEIGHTS.ridge / WEIGHTS.agreement * np.eye(side.features.shape[1])
        np.testing.assert_allclose(gram @ weights, side.features.T @ factors.latent, atol=1e-8)
    np.testing.assert_allclose(factors.rotation.T @ factors.rotation, np.eye(5), atol=1e-10)


def test_anchor_features_are_the_kernel_at_twice_the_mean_squared_distance(triples, monkeypatch):
    images = triples[0]
    anchors = RbfAnchors.drawn(images, 25, seed=3)
    width = 2 * (cdist(images, images) ** 2).mean()
    centres = anchors.anchors * anchors.scale + anchors.mean
    expected = np.exp(-(cdist(images, centres) ** 2) / width)
    np.testing.assert_allclose(anchors.features(images), expected, rtol=1e-9)
    assert np.isclose(expected, 1).any(axis=0).all(), "an anchor is a training row"
    monkeypatch.setattr("diptych.arrays.BLOCK_ROWS", 7)
    projection = np.random.default_rng(0).normal(size=(25, 3))
    np.testing.assert_allclose(anchors.project(images, projection, np.ones(3)), expected @ projection - 1, atol=1e-9)


def test_outputs_of_pairs_minimise_the_objective_without_label_and_code(triples):
    images, texts, labels = triples
    model = SCRATCH(n_bits=5, n_anchors=30, label_weight=20.0, agreement=30.0, ridge=2.0, n_iter=4)
    model.fit(images, texts, labels)
    ridge = WEIGHTS.ridge / WEIGHTS.agreement
    sides = AnchoredSide.of(images, 30, ridge, 0), AnchoredSide.of(texts, 30, ridge, 0)
    factors = RotatedFactorisation(sides, np.eye(4)[labels], WEIGHTS, n_bits=5, seed=0)
    for _ in range(4):
        factors.update()
    latent = model.decision_pairs(images, texts) @ factors.rotation.T
    slope = WEIGHTS.ridge * latent
    for side, basis, weights in zip(sides, factors.bases(), factors.regressions(), strict=True):
        slope += WEIGHTS.reconstruction * (latent @ basis - side.features) @ basis.T
        slope += WEIGHTS.agreement * (latent - side.features @ weights)
    np.testing.assert_allclose(slope, 0, atol=1e-8)


def test_one_pair_alone_has_the_outputs_of_the_batch(triples):
    images, texts, labels = triples
    model = SCRATCH(n_bits=8, n_anchors=40).fit(images, texts, labels)
    batch = model.decision_pairs(images[:8], texts[:8])
    alone = np.vstack([model.decision_pairs(images[i : i + 1], texts[i : i + 1]) for i in range(8)])
    np.testing.assert_allclose(alone, batch, rtol=1e-9, atol=1e-12)


def test_labels_teach_codes_that_unseen_pairs_keep(triples):
    images, texts, labels = triples
    model = SCRATCH(n_bits=12, n_anchors=60).fit(images[:100], texts[:100], labels[:100])
    assert model.score(images[100:], texts[100:], labels[100:]) > 0.8


def test_wrong_pairs_and_labels_teach_nothing():
    rng = np.random.default_rng(6)
    meaning = rng.normal(size=(240, 5))
    images, texts = meaning @ rng.normal(size=(5, 9)), meaning @ rng.normal(size=(5, 7))
    labels = (meaning[:, :4] > 0).astype(int)
    labels[~labels.any(axis=1), 0] = 1
    order, other = rng.permutation(120), rng.permutation(120)
    wrong = SCRATCH(n_bits=12, n_anchors=50).fit(images[:120], texts[order], labels[other])
    right = SCRATCH(n_bits=12, n_anchors=50).fit(images[:120], texts[:120], labels[:120])
    ranks = 1 / np.arange(1, 121)
    deviation = ranks.std() / np.sqrt(120)
    assert abs(wrong.score(images[120:], texts[120:]) - ranks.mean()) < 3 * deviation
    assert right.score(images[120:], texts[120:]) > ranks.mean() + 6 * deviation
