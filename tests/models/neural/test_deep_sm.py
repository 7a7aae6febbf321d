"""Deep semantic matching and the trivial solution on networks."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.base import clone

from diptych.errors import InvalidInputError, MissingPackageError
from diptych.models import SM, TS, DeepSM, DeepTS
from diptych.models.neural._torch import torch_package


def rings(n: int = 200, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Classes by distance from the origin, which no linear classifier tells apart."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 2
    sides = []
    for width in (3, 2):
        directions = rng.normal(size=(n, width))
        lengths = 1 + 2 * labels + 0.2 * rng.normal(size=n)
        sides.append(directions / np.linalg.norm(directions, axis=1, keepdims=True) * lengths[:, None])
    return sides[0], sides[1], labels


@pytest.fixture(scope="module")
def trained() -> DeepSM:
    return DeepSM(epochs=40, batch_size=64, learning_rate=3e-3).fit(*rings())


def test_a_network_tells_apart_what_a_linear_classifier_cannot(trained: DeepSM) -> None:
    unseen = rings(seed=1)
    assert trained.score(*unseen) > 0.95
    assert SM().fit(*rings()).score(*unseen) < 0.7


def test_points_are_probabilities_and_temperature_softens_them(trained: DeepSM) -> None:
    images = rings(seed=1)[0]
    points = trained.encode_images(images)
    np.testing.assert_allclose(points.sum(axis=1), 1)
    softer = clone(trained).set_params(temperature=5.0)
    softer.__dict__.update({name: value for name, value in vars(trained).items() if name.endswith("_")})
    soft_points = softer.encode_images(images)
    np.testing.assert_array_equal(points.argmax(axis=1), soft_points.argmax(axis=1))
    assert (soft_points.max(axis=1) <= points.max(axis=1)).all()
    logits = np.log(points) - np.log(points[:, :1])
    softened = np.exp(logits / 5)
    np.testing.assert_allclose(soft_points, softened / softened.sum(axis=1, keepdims=True), rtol=1e-6)


def test_training_stops_when_the_held_out_loss_no_longer_falls_and_keeps_the_best() -> None:
    images, texts, labels = rings(120)
    noise = np.random.default_rng(0).permutation(labels)
    model = DeepSM(epochs=200, patience=5, learning_rate=1e-2).fit(images, texts, noise)
    for losses in (model.image_losses_, model.text_losses_):
        assert len(losses) < 200
        assert len(losses) - 1 - losses.argmin() == 5


def test_rows_without_labels_teach_nothing() -> None:
    images, texts, labels = rings(100)
    several = np.eye(2, dtype=int)[labels]
    several[::10] = 0
    model = DeepSM(epochs=1, validation=0.0, batch_size=1000, dropout=0.0)
    with_gaps = model.fit(images, texts, several).image_losses_[0]
    whole = model.fit(images, texts, labels).image_losses_[0]
    # Counted as rows of no class, a tenth of them would take a tenth off the loss.
    assert with_gaps == pytest.approx(whole, rel=0.02)
    with pytest.raises(InvalidInputError, match="no row"):
        model.fit(images, texts, np.zeros_like(several))


@pytest.mark.parametrize("loss", ["cross_entropy", "squared"])
def test_both_losses_learn(loss: str) -> None:
    model = DeepSM(loss=loss, epochs=30, learning_rate=3e-3, validation=0.0).fit(*rings())
    assert model.image_losses_[-1] < 0.5 * model.image_losses_[0]


def test_training_leaves_no_trace_in_pytorch_and_the_seed_decides() -> None:
    torch = torch_package()
    torch.manual_seed(3)
    expected = torch.rand(2)
    threads = torch.get_num_threads()
    torch.manual_seed(3)
    first, again, other = (DeepSM(epochs=2, random_state=seed).fit(*rings(60)) for seed in (0, 0, 1))
    assert torch.equal(torch.rand(2), expected)
    assert torch.get_num_threads() == threads
    for left, right in zip(first.image_layers_, again.image_layers_, strict=True):
        np.testing.assert_array_equal(left, right)
    assert not np.array_equal(first.image_layers_[0], other.image_layers_[0])


def test_without_pytorch_the_command_that_installs_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = DeepSM(epochs=1).fit(*rings(60))
    monkeypatch.setitem(sys.modules, "torch", None)
    assert fitted.encode_images(rings(60)[0]).shape == (60, 2)
    with pytest.raises(MissingPackageError, match=r"pip install 'diptych\[deep\]'"):
        clone(fitted).fit(*rings(60))


def test_deep_ts_is_the_decision_of_deep_sm(trained: DeepSM) -> None:
    images, texts, _ = rings(seed=1)
    model = DeepTS(classifier=clone(trained)).fit(*rings())
    probabilities = trained.encode_images(images), trained.encode_texts(texts)
    expected = probabilities[0].argmax(axis=1)[:, None] == probabilities[1].argmax(axis=1)
    np.testing.assert_array_equal(model.similarity(images, texts), expected)
    by_probability = DeepTS(classifier=DeepSM(epochs=2), rest="by_prob").fit(*rings(60))
    assert by_probability.encode_images(images).shape == (200, 4)
    assert issubclass(DeepTS, TS)
