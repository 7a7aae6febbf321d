"""MM-NN: its pairs, the gradient of its whole loss, balance of its bits, and what it learns."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from diptych.codes import unpack_signs
from diptych.errors import InvalidInputError
from diptych.models import CVH, MMNN
from diptych.models.hashing.mmnn import PairBatch, coupled_loss
from diptych.models.labels import RelatedRows


def classes(n: int = 120, n_classes: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Classes as opposite corners, which a hyperplane does not separate, beside much that is common and useless."""
    rng, centres = np.random.default_rng(seed), np.random.default_rng(99)
    labels = np.arange(n) % n_classes
    corner = rng.choice([-1, 1], size=n)[:, None]
    common = rng.normal(size=(n, 2))
    images = corner * centres.normal(size=(n_classes, 8))[labels] * 2 + common @ centres.normal(size=(2, 8))
    texts = centres.normal(size=(n_classes, 6))[labels] * 2 + common @ centres.normal(size=(2, 6))
    return images + 0.3 * rng.normal(size=(n, 8)), texts + 0.3 * rng.normal(size=(n, 6)), labels


@pytest.fixture(scope="module")
def fitted() -> MMNN:
    return MMNN(n_bits=12, hidden=(64,), learning_rate=1e-2).fit(*classes(240))


def test_training_lowers_the_loss_and_finds_unseen_pairs(fitted: MMNN) -> None:
    assert fitted.losses_[-1] < 0.5 * fitted.losses_[0]
    unseen = classes(seed=1)
    assert fitted.score(*unseen) > 0.75
    assert fitted.score(*unseen) > CVH(n_bits=12).fit(*classes(240)).score(*unseen) + 0.2


def test_entropies_are_those_of_the_training_codes(fitted: MMNN) -> None:
    images, texts, _ = classes(240)
    for codes, entropies in zip(
        (fitted.encode_images(images), fitted.encode_texts(texts)), fitted.bit_entropies_, strict=True
    ):
        shares = (unpack_signs(codes, 12) > 0).mean(axis=0)
        mixed = (shares > 0) & (shares < 1)
        expected = -(
            shares * np.log2(np.where(mixed, shares, 1)) + (1 - shares) * np.log2(np.where(mixed, 1 - shares, 1))
        )
        np.testing.assert_allclose(entropies, expected, atol=1e-12)
    assert fitted.bit_entropies_.mean() > 0.6


def test_outputs_are_those_of_tanh_units_and_pairs_average_them(fitted: MMNN) -> None:
    images, texts, _ = classes(seed=2)
    of_images, of_texts = fitted.decision_images(images), fitted.decision_texts(texts)
    assert np.abs(of_images).max() <= 1
    np.testing.assert_allclose(fitted.decision_pairs(images, texts), (of_images + of_texts) / 2)


def test_a_collapse_to_one_code_is_reported() -> None:
    images, texts, labels = classes(60)
    with pytest.warns(ConvergenceWarning, match="same code"):
        # So strong a decay leaves nothing but the intercepts.
        MMNN(n_bits=4, weight_decay=1e3, epochs=60, learning_rate=0.03, validation=0.0).fit(images, texts, labels)


def test_without_validation_all_epochs_are_trained() -> None:
    assert len(MMNN(n_bits=4, hidden=(8,), epochs=7, validation=0.0).fit(*classes(40)).losses_) == 7


class Stopped(Exception):
    """What a test raises in the middle of training."""


@pytest.mark.parametrize("validation", [0.0, 0.2])
def test_an_interrupted_training_goes_on_to_the_same_bits(tmp_path, validation: float) -> None:
    rows = classes(60)
    settings = {"n_bits": 6, "hidden": (8,), "epochs": 7, "batch_size": 20, "validation": validation}
    whole = MMNN(**settings).fit(*rows)

    def stop(report) -> None:
        if report.epoch == 4:
            raise Stopped

    interrupted = MMNN(**settings, checkpoint=str(tmp_path / "kept"))
    with pytest.raises(Stopped):
        interrupted.fit(*rows, progress=stop)
    seen = []
    resumed = interrupted.fit(*rows, progress=seen.append)
    assert [report.epoch for report in seen] == [5, 6, 7]
    assert all(report.items_per_second > 0 for report in seen)
    np.testing.assert_array_equal(resumed.losses_, whole.losses_)
    for one, other in zip(
        [*resumed.image_layers_, *resumed.text_layers_], [*whole.image_layers_, *whole.text_layers_], strict=True
    ):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(InvalidInputError, match="another training"):
        MMNN(**settings | {"epochs": 8}, checkpoint=str(tmp_path / "kept")).fit(*rows)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.integers(2, 6), st.integers(5, 40))
def test_partners_share_a_label_or_none(seed: int, n_labels: int, n_rows: int) -> None:
    rng = np.random.default_rng(seed)
    indicator = (rng.random((n_rows, n_labels)) < 0.4).astype(float)
    indicator[np.arange(n_rows), rng.integers(n_labels, size=n_rows)] = 1
    common = indicator @ indicator.T > 0
    if common.all():
        return
    rows = rng.integers(n_rows, size=50)
    batch = PairBatch.drawn(rows, RelatedRows.of_marks(indicator), rng)
    items, similar, dissimilar = np.split(batch.rows, 3)
    np.testing.assert_array_equal(items, rows)
    assert common[rows, similar].all()
    assert not common[rows, dissimilar][batch.differs].any()
    # A row that shares a label with everybody has no dissimilar partner, and is said to have none.
    assert not batch.differs[common[rows].all(axis=1)].any()


def test_similar_partners_are_drawn_evenly_over_labels_and_rows() -> None:
    indicator = np.zeros((12, 2))
    indicator[:3, 0], indicator[2:, 1] = 1, 1
    drawn = RelatedRows.of_marks(indicator).partners(np.full(20_000, 2), np.random.default_rng(0))
    shares = np.bincount(drawn, minlength=12) / 20_000
    expected = np.r_[np.full(2, 1 / 6), 1 / 6 + 1 / 20, np.full(9, 1 / 20)]
    np.testing.assert_allclose(shares, expected, atol=0.012)


def batch_of(n: int, rng: np.random.Generator) -> PairBatch:
    return PairBatch(np.arange(3 * n), rng.random(n) < 0.5, rng.random(n) < 0.7)


def test_the_coupled_loss_is_its_formula() -> None:
    rng = np.random.default_rng(5)
    n, margin, within = 6, 2.5, 0.3
    images, texts, batch = rng.normal(size=(3 * n, 4)), rng.normal(size=(3 * n, 4)), batch_of(n, rng)

    def attract(a: np.ndarray, b: np.ndarray) -> float:
        return float(np.mean([np.sum((p - q) ** 2) / 2 for p, q in zip(a, b, strict=True)]))

    def repel(a: np.ndarray, b: np.ndarray) -> float:
        gaps = [max(0.0, margin - np.linalg.norm(p - q)) ** 2 / 2 for p, q in zip(a, b, strict=True)]
        return float(np.mean(np.array(gaps)[batch.differs]))

    near = np.where(batch.own[:, None], texts[:n], texts[n : 2 * n])
    expected = attract(images[:n], near) + repel(images[:n], texts[2 * n :])
    for side in (images, texts):
        expected += within * (attract(side[:n], side[n : 2 * n]) + repel(side[:n], side[2 * n :]))
    found = coupled_loss(torch.tensor(images), torch.tensor(texts), batch, margin=margin, within=within)
    assert found.item() == pytest.approx(expected)


def test_points_in_one_place_have_a_finite_slope() -> None:
    images, texts = (torch.ones(9, 4, requires_grad=True) for _ in range(2))
    batch = PairBatch(np.arange(9), np.zeros(3, dtype=bool), np.ones(3, dtype=bool))
    loss = coupled_loss(images, texts, batch, margin=2.0, within=0.5)
    assert loss.item() == pytest.approx(2 * 2.0**2 / 2, rel=1e-5)
    for slopes in torch.autograd.grad(loss, (images, texts)):
        assert not slopes.any()
