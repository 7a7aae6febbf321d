"""Losses over pairs and their gradients, against finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import check_grad

from diptych.models.pairwise._bilinear import evaluate_terms
from diptych.models.pairwise._pairs import AllPairs, PairTerm, distance_loss, first_matches, own_matches
from diptych.models.pairwise.cmml import evaluate_distances
from diptych.models.pairwise.pair_classifiers import evaluate_concatenation
from tests.models.pairwise.made_up_pairs import brute_force_terms, every_pair, make_pairs


@pytest.mark.parametrize("ratio", [None, 3])
@pytest.mark.parametrize("kind", ["logistic", "squared", "ranking"])
@pytest.mark.parametrize(("image_width", "text_width"), [(5, 3), (2, 4)])
@pytest.mark.parametrize("swapped", [False, True])
def test_bilinear_gradients_are_those_of_finite_differences(ratio, kind, image_width, text_width, swapped):
    images, texts, _ = make_pairs(12, image_width, text_width)
    term = PairTerm(*brute_force_terms(12, ratio, kind), swapped)
    shape = (image_width, text_width)

    def value(flat):
        return evaluate_terms(images, texts, flat[:-1].reshape(shape), flat[-1], [term])[0]

    def gradient(flat):
        _, slope, bias_slope = evaluate_terms(images, texts, flat[:-1].reshape(shape), flat[-1], [term])
        return np.append(slope.ravel(), bias_slope)

    at = np.random.default_rng(1).normal(size=image_width * text_width + 1)
    assert check_grad(value, gradient, at) < 1e-4 * max(1, np.abs(gradient(at)).max())


@pytest.mark.parametrize("ratio", [None, 3])
def test_concatenation_gradients_are_those_of_finite_differences(ratio):
    images, texts, _ = make_pairs(12)
    pairs, loss = brute_force_terms(12, ratio, "logistic")

    def value(flat):
        return evaluate_concatenation(images, texts, flat[:-1], flat[-1], pairs, loss)[0]

    def gradient(flat):
        _, slope, bias_slope = evaluate_concatenation(images, texts, flat[:-1], flat[-1], pairs, loss)
        return np.append(slope, bias_slope)

    at = np.random.default_rng(1).normal(size=9)
    assert check_grad(value, gradient, at) < 1e-4


@pytest.mark.parametrize("ratio", [None, 3])
@pytest.mark.parametrize("sharpness", [0.5, 3.0])
def test_distance_gradients_are_those_of_finite_differences(ratio, sharpness):
    images, texts, _ = make_pairs(12)
    signs = own_matches(12) if ratio is None else first_matches(ratio + 1)
    pairs = brute_force_terms(12, ratio, "logistic")[0]
    loss = distance_loss(signs, sharpness)

    def maps(flat):
        return flat[:10].reshape(5, 2), flat[10:].reshape(3, 2)

    def value(flat):
        return evaluate_distances(images, texts, *maps(flat), pairs, loss)[0]

    def gradient(flat):
        return np.concatenate(
            [part.ravel() for part in evaluate_distances(images, texts, *maps(flat), pairs, loss)[1:]]
        )

    at = 0.4 * np.random.default_rng(1).normal(size=16)
    assert check_grad(value, gradient, at) < 1e-4 * np.abs(gradient(at)).max()


def test_distances_and_their_loss_are_the_defined_ones():
    images, texts, _ = make_pairs(9)
    rng = np.random.default_rng(2)
    image_map, text_map = rng.normal(size=(5, 2)), rng.normal(size=(3, 2))
    rows, columns, signs = every_pair(9)
    squared = ((images[rows] @ image_map - texts[columns] @ text_map) ** 2).sum(axis=1)
    expected = (np.logaddexp(0, 3 * signs * (squared - 1)) / 3).sum()
    loss = distance_loss(own_matches(9), 3.0)
    assert evaluate_distances(images, texts, image_map, text_map, AllPairs(9), loss)[0] == pytest.approx(expected)
