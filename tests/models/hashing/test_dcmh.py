"""DCMH: its loss against the dense formula, and what it learns."""

from __future__ import annotations

import numpy as np
import pytest

from diptych.codes import pack_signs
from diptych.models import DCMH
from diptych.models.hashing.dcmh import HashObjective
from diptych.models.neural._torch import torch_package


@pytest.fixture(scope="module")
def several() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Thirty pairs with one or more of four labels."""
    rng = np.random.default_rng(0)
    labels = (rng.random((30, 4)) < 0.3).astype(int)
    labels[np.arange(30), np.arange(30) % 4] = 1
    images = labels @ rng.normal(size=(4, 7)) + 0.3 * rng.normal(size=(30, 7))
    texts = labels @ rng.normal(size=(4, 5)) + 0.3 * rng.normal(size=(30, 5))
    return images, texts, labels


def dense_loss(outputs, others, codes, labels, gamma: float, eta: float) -> float:
    """One side of the objective, written as in the paper, with all n × n pairs at once."""
    theta = outputs @ others.T / 2
    shared = (labels @ labels.T > 0).astype(float)
    likelihood = (np.log1p(np.exp(theta)) - shared * theta).sum()
    return likelihood + gamma * ((codes - outputs) ** 2).sum() + eta * (outputs.sum(axis=0) ** 2).sum()


def test_the_loss_of_all_rows_is_the_dense_formula(several) -> None:
    torch, rng = torch_package(), np.random.default_rng(1)
    labels = several[2]
    own, other = rng.normal(size=(30, 6)), rng.normal(size=(30, 6))
    codes = np.where(own + other >= 0, 1.0, -1.0)
    tensors = {"own": own, "other": other, "codes": codes}
    objective = HashObjective(torch.tensor(labels, dtype=torch.float64), 0.7, 1.3, 100, balanced=False)
    loss = objective.side(
        torch.tensor(own), np.arange(30), **{name: torch.tensor(value) for name, value in tensors.items()}
    )
    assert loss.item() * 30 * 30 == pytest.approx(dense_loss(own, other, codes, labels, 0.7, 1.3))


def test_batches_add_up_and_draws_stand_for_all(several) -> None:
    torch, rng = torch_package(), np.random.default_rng(2)
    own, other, labels = rng.normal(size=(30, 6)), rng.normal(size=(30, 6)), several[2]
    codes = np.where(own + other >= 0, 1.0, -1.0)
    tensors = {name: torch.tensor(v) for name, v in (("own", own), ("other", other), ("codes", codes))}
    objective = HashObjective(torch.tensor(labels, dtype=torch.float64), 0.7, 0.0, 10, balanced=False)
    parts = np.array_split(rng.permutation(30), 4)
    total = sum(objective.side(torch.tensor(own[rows]), rows, **tensors).item() * 30 * len(rows) for rows in parts)
    assert total == pytest.approx(dense_loss(own, other, codes, labels, 0.7, 0.0))
    uneven = HashObjective(objective.indicator, 0.0, 1.0, 100, balanced=False)
    own += 0.3
    batches = [rng.permutation(30)[:6] for _ in range(500)]
    estimates = [uneven.side(torch.tensor(own[rows]), rows, **tensors).item() * 30 * 30 for rows in batches]
    expected = dense_loss(own, other, codes, labels, 0.0, 1.0)
    assert np.mean(estimates) == pytest.approx(expected, abs=4 * np.std(estimates) / np.sqrt(500))
    rows = np.arange(5)
    whole = objective.side(torch.tensor(own[rows]), rows, **tensors).item()
    drawn = [
        objective.side(torch.tensor(own[rows]), rows, compared=objective.compared(rng), **tensors).item()
        for _ in range(400)
    ]
    assert np.mean(drawn) == pytest.approx(whole, abs=4 * np.std(drawn) / np.sqrt(400))


def test_balanced_pairs_count_half_each(several) -> None:
    torch, labels = torch_package(), several[2]
    nothing = torch.zeros((30, 6), dtype=torch.float64)
    indicator = torch.tensor(labels, dtype=torch.float64)
    objective = HashObjective(indicator, 0.0, 0.0, 100, balanced=True)
    live = torch.zeros((30, 6), dtype=torch.float64, requires_grad=True)
    other = torch.ones((30, 6), dtype=torch.float64)
    loss = objective.side(live, np.arange(30), own=nothing, other=other, codes=nothing)
    assert loss.item() == pytest.approx(np.log(2))
    # At zero every pair pulls with weight ½; similar and dissimilar ones cancel exactly when they count alike.
    (slope,) = torch.autograd.grad(loss, live)
    np.testing.assert_allclose(slope.sum(dim=0).numpy(), 0, atol=1e-12)


@pytest.fixture(scope="module")
def fitted(several) -> DCMH:
    return DCMH(n_bits=12, image_hidden=(32,), text_hidden=(32,), learning_rate=1e-2).fit(*several)


def test_training_lowers_both_losses_and_retrieves(fitted: DCMH, several) -> None:
    assert (fitted.losses_[-1] < fitted.losses_[0]).all()
    assert fitted.score(*several) > 0.8


def test_unified_codes_are_the_sign_of_both_outputs(fitted: DCMH, several) -> None:
    images, texts, _ = several
    both = fitted.decision_images(images) + fitted.decision_texts(texts)
    np.testing.assert_array_equal(fitted.encode_pairs(images, texts), pack_signs(both))


def test_the_seed_decides(several) -> None:
    images, texts, labels = several
    parameters = {"n_bits": 4, "image_hidden": (8,), "text_hidden": (8,), "epochs": 3}
    first, again, other = (DCMH(**parameters, random_state=seed).fit(images, texts, labels) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.decision_images(images), again.decision_images(images))
    assert not np.array_equal(first.decision_images(images), other.decision_images(images))
