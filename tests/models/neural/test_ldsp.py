"""LDSP: its batches, its loss and what it learns."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch

from diptych.errors import InvalidInputError, MissingPackageError
from diptych.models import LDSP, load_model
from diptych.models.labels import RelatedRows
from diptych.models.neural.ldsp import CaptionBatch, CaptionedRows, StructureLoss, caption_batches

SMALL = {"n_components": 16, "image_hidden": (32,), "text_hidden": (32,), "batch_size": 60, "device": "cpu"}


def captions(n: int = 150, per_picture: int = 3, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    meaning = rng.normal(size=(n, 4))
    images = np.repeat(np.tanh(meaning @ rng.normal(size=(4, 12))), per_picture, axis=0)
    words = np.repeat(meaning, per_picture, axis=0) @ rng.normal(size=(4, 9))
    return images, np.tanh(words) + 0.1 * rng.normal(size=(n * per_picture, 9))


def unit(points: np.ndarray) -> np.ndarray:
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def loss_by_hand(images: np.ndarray, texts: np.ndarray, batch: CaptionBatch, loss: StructureLoss) -> float:
    """Write the loss out, one anchor after the other."""

    def apart(a: np.ndarray, b: np.ndarray) -> float:
        return float(np.sqrt(np.sum((a - b) ** 2) + 1e-4))

    def top(right: float, wrong: list[float], n_items: int) -> float:
        hinges = sorted((max(0.0, loss.margin + right - one) for one in wrong), reverse=True)
        count = min(loss.n_violators, n_items)
        return sum(hinges[:count]) / count

    def structure(points: np.ndarray, related: np.ndarray) -> float:
        terms = []
        for anchor in range(len(points)):
            relatives = [apart(points[anchor], points[o]) for o in np.flatnonzero(related[anchor]) if o != anchor]
            wrong = [apart(points[anchor], points[o]) for o in np.flatnonzero(~related[anchor])]
            if relatives:
                terms.append(top(max(relatives), wrong, len(points)))
        return float(np.mean(terms)) if terms else 0.0

    by_text, by_image = [], []
    for t, answer in enumerate(batch.answers):
        right = apart(texts[t], images[answer])
        wrong_images = [apart(texts[t], images[p]) for p in np.flatnonzero(~batch.related[t])]
        wrong_texts = [apart(texts[o], images[answer]) for o in np.flatnonzero(~batch.related[:, answer])]
        by_text.append(top(right, wrong_images, len(images)))
        by_image.append(top(right, wrong_texts, len(texts)))
    within = loss.text_structure * structure(texts, batch.text_related)
    within += loss.image_structure * structure(images, batch.picture_related)
    return loss.text_query * float(np.mean(by_text)) + float(np.mean(by_image)) + within


@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("n_violators", [3, 100])
def test_the_loss_is_its_formula(labelled: bool, n_violators: int) -> None:
    rng = np.random.default_rng(4)
    numbers = np.array([0, 0, 1, 2, 2, 3, 4])
    related = RelatedRows.of_numbers(numbers % 2 if labelled else numbers)
    batch = CaptionBatch.of(np.arange(7), numbers, related, rng)
    images, texts = unit(rng.normal(size=(5, 3))), unit(rng.normal(size=(7, 3)))
    loss = StructureLoss(0.3, n_violators, text_query=1.5, image_structure=0.2, text_structure=0.4)
    value = loss.of(torch.from_numpy(images), torch.from_numpy(texts), batch).item()
    assert value == pytest.approx(loss_by_hand(images, texts, batch, loss))
    assert value > 0


def test_points_in_one_place_have_a_finite_slope() -> None:
    numbers = np.array([0, 0, 1, 1])
    batch = CaptionBatch.of(np.arange(4), numbers, RelatedRows.of_numbers(numbers), np.random.default_rng(0))
    images = torch.ones(2, 3, requires_grad=True)
    texts = torch.ones(4, 3, requires_grad=True)
    loss = StructureLoss(0.1, 10, 1.5, 0.1, 0.1).of(images / 3**0.5, texts / 3**0.5, batch)
    for slope in torch.autograd.grad(loss, [images, texts]):
        assert torch.isfinite(slope).all()


def test_batches_lead_every_text_once_and_bring_others_of_its_picture() -> None:
    numbers = np.repeat(np.arange(30), 5)
    related, rows = RelatedRows.of_numbers(numbers), np.arange(10, 150)
    met = np.zeros(150, dtype=int)
    for batch in caption_batches(rows, numbers, related, size=20, per_picture=3, rng=np.random.default_rng(0)):
        met[batch.texts] += 1
        assert len(np.unique(batch.texts)) == len(batch.texts)
        assert (np.bincount(numbers[batch.texts])[numbers[batch.pictures]] >= 3).all()
        # A picture that two texts brought stands there once, and all its texts are right.
        assert len(np.unique(numbers[batch.pictures])) == len(batch.pictures)
        np.testing.assert_array_equal(numbers[batch.pictures][batch.answers], numbers[batch.texts])
        own = numbers[batch.texts][:, None] == numbers[batch.pictures]
        np.testing.assert_array_equal(batch.related, own)
    assert not met[:10].any()
    assert (met[10:] >= 1).all()
    # 7 batches of 20 leading texts with two followers each.
    assert 200 < met.sum() <= 420


def test_every_other_text_of_a_picture_follows_as_often() -> None:
    numbers = np.repeat(np.arange(40), 4)
    related, rng = RelatedRows.of_numbers(numbers), np.random.default_rng(3)
    together = np.zeros((4, 4))
    for _ in range(60):
        # One leader in a batch: who is with it followed it.
        for batch in caption_batches(np.arange(160), numbers, related, size=1, per_picture=2, rng=rng):
            one, two = batch.texts % 4
            together[one, two] += 1
    shares = together[np.triu_indices(4, 1)] / together.sum()
    np.testing.assert_allclose(shares, 1 / 6, atol=0.02)


def test_labels_make_answers_of_other_pictures() -> None:
    labels = np.arange(24) % 3
    related = RelatedRows.of_numbers(labels)
    batch = CaptionBatch.of(np.arange(24), np.arange(24), related, np.random.default_rng(0))
    assert (labels[batch.answers] == labels).all()
    assert (batch.answers != np.arange(24)).any()


@pytest.mark.parametrize("labelled", [False, True])
def test_pictures_are_held_out_with_all_their_texts(labelled: bool) -> None:
    images, texts = captions(40)
    indicator = np.eye(2)[np.repeat(np.arange(40) % 2, 3)] if labelled else None
    if indicator is not None:
        indicator[:6] = 0
    rows = CaptionedRows.of(images, texts, indicator, validation=0.25, rng=np.random.default_rng(0))
    assert not set(rows.numbers[rows.train]) & set(rows.numbers[rows.held_out])
    assert len(rows.held_out) == 3 * len(rows.held_out_pictures) == (27 if labelled else 30)
    assert len(rows.train) + len(rows.held_out) == (114 if labelled else 120)


def test_it_finds_unseen_partners_and_reports_how_it_comes_along() -> None:
    images, texts = captions()
    reports = []
    model = LDSP(epochs=25, patience=25, dropout=0.1, learning_rate=3e-3, **SMALL)
    model.fit(images[:300], texts[:300], progress=reports.append)
    # Chance is (1 + 1/2 + … + 1/50)/50, about 0.09.
    assert model.score(images[300::3], texts[300::3]) > 0.5
    assert [report.epoch for report in reports] == list(range(1, 26))
    assert reports[-1].loss < 0.5 * reports[0].loss
    assert reports[-1].recall >= reports[0].recall
    table = np.array([[report.epoch, report.loss, report.judged, report.recall] for report in reports])
    np.testing.assert_array_equal(model.history_, table)
    points = model.encode_texts(texts[:5])
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1)


def test_what_is_relevant_can_be_chosen(problem) -> None:
    by_labels, by_pairs, without = (
        LDSP(epochs=2, relevance=relevance, **SMALL).fit(problem.images, problem.texts, labels)
        for relevance, labels in (("auto", problem.labels), ("pairs", problem.labels), ("auto", None))
    )
    np.testing.assert_array_equal(by_pairs.image_layers_[0], without.image_layers_[0])
    assert not np.array_equal(by_labels.image_layers_[0], by_pairs.image_layers_[0])
    with pytest.raises(InvalidInputError, match="call fit"):
        LDSP(relevance="labels", **SMALL).fit(problem.images, problem.texts)


def test_only_training_needs_pytorch(problem, tmp_path, monkeypatch) -> None:
    model = LDSP(epochs=1, **SMALL).fit(problem.images, problem.texts)
    model.save(tmp_path / "model")
    expected = model.encode_images(problem.images)
    monkeypatch.setitem(sys.modules, "torch", None)
    np.testing.assert_array_equal(load_model(tmp_path / "model").encode_images(problem.images), expected)
    with pytest.raises(MissingPackageError, match=r"diptych\[deep\]"):
        LDSP(**SMALL).fit(problem.images, problem.texts)
