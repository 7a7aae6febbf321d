"""SOTAlign: the sigmoid loss, transport plans, and what unpaired rows change."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime, linear_sum_assignment

from diptych.errors import InvalidInputError
from diptych.models import SOTAlign
from diptych.models.alignment.sotalign import transport_plan
from diptych.models.pair_losses import sigmoid_loss, sigmoid_slopes


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_gradients_of_the_sigmoid_loss_are_those_of_differences(rng):
    cosines, logit = rng.uniform(-1, 1, size=(5, 5)), np.array([1.5, -2.0])
    slopes, of_logit = sigmoid_slopes(cosines, logit)
    numeric = approx_fprime(cosines.ravel(), lambda flat: sigmoid_loss(flat.reshape(5, 5), logit))
    np.testing.assert_allclose(slopes.ravel(), numeric, atol=1e-6)
    np.testing.assert_allclose(of_logit, approx_fprime(logit, lambda each: sigmoid_loss(cosines, each)), atol=1e-6)


def test_a_plan_has_uniform_margins_and_forgets_what_is_added_to_a_row(rng):
    similarities = rng.uniform(-1, 1, size=(6, 4))
    logs, _ = transport_plan(similarities, 0.05, 500)
    np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1 / 6, atol=1e-6)
    np.testing.assert_allclose(np.exp(logs).sum(axis=0), 1 / 4, atol=1e-6)
    shifted, _ = transport_plan(similarities + rng.normal(size=(6, 1)) + rng.normal(size=4), 0.05, 500)
    np.testing.assert_allclose(shifted, logs, atol=1e-6)


def test_a_sharp_plan_is_the_assignment(rng):
    similarities = rng.uniform(-1, 1, size=(4, 4))
    logs, _ = transport_plan(similarities, 0.005, 3000)
    rows, columns = linear_sum_assignment(similarities, maximize=True)
    assert (np.exp(logs)[rows, columns] > 0.24).all()


def test_the_slope_of_the_divergence_is_that_of_differences(rng):
    """d KL(P* ‖ P) / dK = (P − P*)/ε, with the ε of P."""
    similarities, other = rng.uniform(-1, 1, size=(2, 4, 4))
    target = np.exp(transport_plan(other, 0.3, 2000)[0])

    def divergence(flat):
        return float(-(target * transport_plan(flat.reshape(4, 4), 0.2, 2000)[0]).sum())

    slopes = (np.exp(transport_plan(similarities, 0.2, 2000)[0]) - target) / 0.2
    np.testing.assert_allclose(slopes.ravel(), approx_fprime(similarities.ravel(), divergence), atol=1e-5)


def test_unpaired_rows_help_a_student_that_has_few_pairs(rng):
    meaning = rng.normal(size=(1200, 10))
    images = meaning @ rng.normal(size=(10, 40)) + rng.normal(size=(1200, 40))
    texts = meaning @ rng.normal(size=(10, 30)) + rng.normal(size=(1200, 30))
    few, test = slice(0, 30), slice(1000, 1200)
    model = SOTAlign(n_components=10, steps=60, batch_size=128, learning_rate=1e-3)
    alone = model.fit(images[few], texts[few]).score(images[test], texts[test])
    more = model.fit(images[few], texts[few], more_images=images[30:500], more_texts=texts[500:1000])
    assert more.score(images[test], texts[test]) > alone + 0.03


def test_one_pair_is_too_few(rng):
    with pytest.raises(InvalidInputError, match="at least 2 pairs"):
        SOTAlign().fit(np.eye(3)[:1], np.eye(3)[:1], more_images=np.eye(3), more_texts=np.eye(3))
