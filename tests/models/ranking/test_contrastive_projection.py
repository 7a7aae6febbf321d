from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from diptych.arrays import unit_rows
from diptych.devices import Card
from diptych.models import CCA, ContrastiveProjection, load_model
from diptych.models.pair_losses import softmax_slopes, structure_slopes
from diptych.models.ranking import contrastive_projection
from diptych.models.ranking._heads import new_head
from diptych.models.ranking.contrastive_projection import _same_rows, mixed_pairs


def noisy_pairs(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    meaning = rng.normal(size=(n, 8))
    images = np.tanh(meaning @ rng.normal(size=(8, 30))) + 0.8 * rng.normal(size=(n, 30))
    texts = np.tanh(meaning @ rng.normal(size=(8, 15))) + 0.8 * rng.normal(size=(n, 15))
    return images.astype(np.float32), texts.astype(np.float32)


@pytest.mark.parametrize("head", ["linear", "mlp", "gated"])
@pytest.mark.parametrize("loss", ["softmax", "sigmoid"])
def test_the_gradients_are_those_of_the_loss(loss: str, head: str) -> None:
    rng = np.random.default_rng(1)
    sides = [rng.normal(size=(6, 5)), rng.normal(size=(6, 4))]
    heads = [new_head(head, rng.normal(size=(width, 3)), 4, rng) for width in (5, 4)]
    # Biases and last layers start at zero, where half of the gradients vanish.
    heads = [[array + 0.3 * rng.normal(size=array.shape) for array in own] for own in heads]
    logit = np.array([0.7, -1.2])
    model = ContrastiveProjection(loss=loss, head=head, temperature=0.3)
    places = [*heads[0], *heads[1], *([logit] if loss == "sigmoid" else [])]
    gradients = model._loss_and_gradients(sides, sides, heads, logit)[1]
    for array, gradient in zip(places, gradients, strict=True):
        for place in np.ndindex(*array.shape):
            values = []
            for step in (1e-6, -2e-6):
                array[place] += step
                values.append(model._loss_and_gradients(sides, sides, heads, logit)[0])
            array[place] += 1e-6
            assert gradient[place] == pytest.approx((values[0] - values[1]) / 2e-6, abs=1e-6)


def test_the_softmax_loss_is_that_of_its_definition() -> None:
    cosines = np.random.default_rng(0).uniform(-1, 1, (7, 7))
    scaled = np.exp(cosines / 0.3)
    diagonal = np.diagonal(scaled)
    expected = -np.mean(np.log(diagonal / scaled.sum(axis=1)) + np.log(diagonal / scaled.sum(axis=0))) / 2
    assert softmax_slopes(cosines, 0.3)[0] == pytest.approx(expected)


def test_every_variant_starts_at_cca_or_at_the_fixed_side() -> None:
    images, texts = noisy_pairs()
    barely = {"n_components": 8, "learning_rate": 1e-12, "epochs": 1, "dropout": 0.0}
    start = CCA(n_components=8, regularization=1.0).fit(images, texts).similarity(images, texts)
    for options in ({"loss": "sigmoid"}, {"head": "mlp"}, {"head": "gated"}, {"mix": 0.5}, {"structure": 1.0}):
        model = ContrastiveProjection(**barely, **options).fit(images, texts)
        np.testing.assert_allclose(model.similarity(images, texts), start, atol=1e-5)
    model = ContrastiveProjection(fixed="images", head="mlp", epochs=2).fit(images, texts)
    points = unit_rows(model.encode_images(images))
    np.testing.assert_allclose(points, unit_rows(images - images.mean(axis=0)), atol=1e-5)
    assert model.score(images, texts) > 0.1


@pytest.mark.parametrize(
    "options", [{"loss": "sigmoid"}, {"head": "mlp"}, {"head": "gated"}, {"fixed": "texts"}, {"mix": 1.0}]
)
def test_every_variant_learns_and_is_saved(options: dict[str, Any], tmp_path: Path) -> None:
    images, texts = noisy_pairs()
    model = ContrastiveProjection(n_components=8, learning_rate=3e-3, epochs=40, batch_size=400, **options)
    losses = model.fit(images, texts).losses_
    # Mixed batches are drawn anew in each epoch, and half as large.
    assert np.mean(losses[-5:]) < 0.97 * np.mean(losses[:5])
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").encode_texts(texts), model.encode_texts(texts))


def test_mixed_pairs_have_one_share_and_one_partner_on_both_sides() -> None:
    rng = np.random.default_rng(0)
    images = rng.normal(size=(9, 4))
    texts = images @ rng.normal(size=(4, 3))
    mixed = mixed_pairs([images, texts], 0.3)
    np.testing.assert_allclose(mixed[0], 0.3 * images[:4] + 0.7 * images[4:8])
    np.testing.assert_allclose(mixed[0] @ np.linalg.lstsq(images, texts, rcond=None)[0], mixed[1], atol=1e-12)
    np.testing.assert_array_equal(mixed_pairs([images, texts], 1.0)[0], images[:4])


@pytest.mark.parametrize("divergence", ["js", "reverse"])
@pytest.mark.parametrize("levels", [1, 3])
def test_the_regulariser_has_the_gradient_of_its_value(divergence: str, levels: int) -> None:
    rng = np.random.default_rng(0)
    features, points = rng.normal(size=(6, 5)), rng.normal(size=(6, 3))
    gradient = structure_slopes(features, points, 0.5, levels, divergence)[1]
    for place in np.ndindex(*points.shape):
        step = np.zeros_like(points)
        step[place] = 1e-6
        ends = [structure_slopes(features, points + sign * step, 0.5, levels, divergence)[0] for sign in (1, -1)]
        assert gradient[place] == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-7)


def test_the_regulariser_knows_turns_and_scales_and_its_bounds() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(20, 5))
    turned = 3 * features @ np.linalg.qr(rng.normal(size=(5, 5)))[0]
    assert structure_slopes(features, turned, 0.05, 2)[0] == pytest.approx(0, abs=1e-12)
    # Two couples of neighbours in the features, two others among the points.
    features, others = np.eye(2)[[0, 0, 1, 1]], np.eye(2)[[0, 1, 0, 1]]
    assert 0 < structure_slopes(features, others, 0.05, 1)[0] <= np.log(2)
    # What the public code computes has no such bound.
    assert structure_slopes(features, others, 0.05, 1, "reverse")[0] > np.log(2)


def test_training_lowers_the_loss_from_where_cca_leaves_it() -> None:
    images, texts = noisy_pairs()
    steady = {"n_components": 8, "batch_size": 400, "dropout": 0.0}
    model = ContrastiveProjection(learning_rate=3e-3, epochs=60, **steady).fit(images, texts)
    assert model.losses_[-1] < 0.95 * model.losses_[0]
    start = CCA(n_components=8, regularization=1.0).fit(images, texts)
    barely = ContrastiveProjection(learning_rate=1e-12, epochs=1, **steady).fit(images, texts)
    np.testing.assert_allclose(barely.similarity(images, texts), start.similarity(images, texts), atol=1e-5)


def test_texts_of_one_picture_are_never_each_others_wrong_answer() -> None:
    images = np.repeat(np.random.default_rng(0).normal(size=(4, 3)), 3, axis=0)
    assert [rows.tolist() for rows in _same_rows(images)] == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]


def test_the_seed_decides() -> None:
    images, texts = noisy_pairs(60)
    first, again, other = (
        ContrastiveProjection(n_components=4, epochs=3, random_state=seed).fit(images, texts) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first.image_projection_, again.image_projection_)
    assert not np.array_equal(first.image_projection_, other.image_projection_)


def test_tensors_learn_what_arrays_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    images, texts = noisy_pairs(300)
    model = ContrastiveProjection(n_components=6, epochs=4, batch_size=64)
    by_arrays = model.fit(images, texts)
    expected = by_arrays.image_projection_, by_arrays.text_projection_, by_arrays.losses_
    monkeypatch.setattr(contrastive_projection, "card_for", lambda work: Card(torch, "cpu"))
    by_tensors = model.fit(images, texts)
    for wanted, found in zip(
        expected, (by_tensors.image_projection_, by_tensors.text_projection_, by_tensors.losses_), strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4 * np.abs(wanted).max())
