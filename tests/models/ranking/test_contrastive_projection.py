from __future__ import annotations

import numpy as np
import pytest
import torch

from diptych.devices import Card
from diptych.models import CCA, ContrastiveProjection
from diptych.models.ranking import contrastive_projection
from diptych.models.ranking.contrastive_projection import _loss_and_gradients, _same_rows


def noisy_pairs(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    meaning = rng.normal(size=(n, 8))
    images = np.tanh(meaning @ rng.normal(size=(8, 30))) + 0.8 * rng.normal(size=(n, 30))
    texts = np.tanh(meaning @ rng.normal(size=(8, 15))) + 0.8 * rng.normal(size=(n, 15))
    return images.astype(np.float32), texts.astype(np.float32)


def test_the_gradient_is_that_of_the_loss() -> None:
    rng = np.random.default_rng(1)
    sides = [rng.normal(size=(7, 5)), rng.normal(size=(7, 4))]
    projections = [rng.normal(size=(5, 3)), rng.normal(size=(4, 3))]
    loss, gradients = _loss_and_gradients(*sides, *projections, temperature=0.3)
    similarities = np.array(
        [
            [
                (x @ projections[0])
                @ (y @ projections[1])
                / np.linalg.norm(x @ projections[0])
                / np.linalg.norm(y @ projections[1])
                for y in sides[1]
            ]
            for x in sides[0]
        ]
    )
    scaled = np.exp(similarities / 0.3)
    diagonal = np.diagonal(scaled)
    expected = -np.mean(np.log(diagonal / scaled.sum(axis=1)) + np.log(diagonal / scaled.sum(axis=0))) / 2
    assert loss == pytest.approx(expected)
    for number, projection in enumerate(projections):
        for place in np.ndindex(*projection.shape):
            step = np.zeros_like(projection)
            step[place] = 1e-6
            moved = [p + step if k == number else p for k, p in enumerate(projections)]
            back = [p - step if k == number else p for k, p in enumerate(projections)]
            slope = _loss_and_gradients(*sides, *moved, temperature=0.3)[0]
            slope -= _loss_and_gradients(*sides, *back, temperature=0.3)[0]
            assert gradients[number][place] == pytest.approx(slope / 2e-6, abs=1e-6)


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
