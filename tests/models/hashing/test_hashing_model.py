"""What holds for every hashing method, found by discovery."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from diptych.codes import pack_signs, unpack_signs
from diptych.metrics import AP, SameLabel, evaluate
from diptych.models import model_classes
from diptych.models.hashing.hashing_model import HashingModel, LinearHashingModel

METHODS = {name: cls for name, cls in model_classes().items() if issubclass(cls, HashingModel)}
N_BITS = 12


@pytest.fixture(scope="module")
def pairs():
    rng = np.random.default_rng(2)
    labels = np.arange(60) % 4
    images = rng.normal(size=(4, 8))[labels] + 0.5 * rng.normal(size=(60, 8))
    texts = rng.normal(size=(4, 6))[labels] + 0.5 * rng.normal(size=(60, 6))
    return images, texts, labels


@pytest.fixture(scope="module", params=sorted(METHODS))
def fitted(request, pairs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return METHODS[request.param](n_bits=N_BITS).fit(*pairs)


def test_codes_are_the_signs_of_the_outputs_and_hold_two_symbols(fitted, pairs):
    images, texts, _ = pairs
    for codes, outputs in (
        (fitted.encode_images(images), fitted.decision_images(images)),
        (fitted.encode_texts(texts), fitted.decision_texts(texts)),
        (fitted.encode_pairs(images, texts), fitted.decision_pairs(images, texts)),
    ):
        assert outputs.shape == (60, N_BITS)
        np.testing.assert_array_equal(codes, pack_signs(outputs))
        assert set(np.unique(unpack_signs(codes, N_BITS))) <= {-1.0, 1.0}


def test_a_pair_alone_has_the_unified_code_it_has_in_a_batch(fitted, pairs):
    images, texts, _ = pairs
    alone = [fitted.decision_pairs(images[row : row + 1], texts[row : row + 1]) for row in range(12)]
    np.testing.assert_allclose(np.vstack(alone), fitted.decision_pairs(images[:12], texts[:12]), rtol=1e-7, atol=1e-9)


def test_the_order_of_the_gallery_does_not_matter(fitted, pairs):
    images, texts, labels = pairs
    order = np.random.default_rng(0).permutation(60)
    codes, gallery = fitted.encode_images(images), fitted.encode_texts(texts)
    plain = evaluate(codes, gallery, fitted.space, SameLabel(labels, labels), [AP()])
    mixed = evaluate(codes, gallery[order], fitted.space, SameLabel(labels, labels[order]), [AP()])
    np.testing.assert_allclose(plain.values[AP()], mixed.values[AP()], rtol=1e-12)


class OtherOrder(LinearHashingModel):
    """Random hyperplanes, by a library of matrix products that sums a row alone from the other end."""

    def __init__(self, *, n_bits=64):
        self.n_bits = n_bits

    def _fit(self, images, texts, targets):
        directions = np.random.default_rng(0).normal(size=(images.shape[1], self.n_bits))
        self.image_projection_ = self.text_projection_ = directions
        self.image_mean_ = self.text_mean_ = np.zeros(len(directions))

    def _decide(self, side, images):
        step = -1 if len(images) == 1 else 1
        products = images[:, ::step, None] * self.image_projection_[::step].astype(images.dtype)
        return products.cumsum(axis=1, dtype=images.dtype)[:, -1]


@pytest.mark.parametrize("n_bits", [2, 64])
def test_an_item_alone_has_the_code_that_it_has_in_a_batch_in_float32_too(n_bits):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(400, 8)).astype(np.float32)
    model = OtherOrder(n_bits=n_bits).fit(rows, rows)
    # Rows in the plane of the first two hyperplanes: two outputs are zero, but for what float32 rounds.
    basis = np.linalg.svd(model.image_projection_[:, :2].T)[2][2:]
    level = (rows.astype(np.float64) @ basis.T @ basis).astype(np.float32)
    single = np.vstack([model.encode_images(level[i : i + 1]) for i in range(len(level))])
    np.testing.assert_array_equal(single, model.encode_images(level))
