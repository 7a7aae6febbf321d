"""The sextuple loss against equations 6 to 8 of Zhang et al. (2017), and what is drawn for it."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from diptych.models import MNiL
from diptych.models.neural.mnil._objective import (
    RankingObjective,
    Sextuples,
    draw_violators,
    rank_cost,
    sextuple_loss,
)
from diptych.models.neural.mnil._parameters import TrainedDirections

RHO, TAU, BETA_1, BETA_2 = 0.3, 0.5, 0.1, 0.2
SETTINGS = {"margin": RHO, "within_margin": TAU, "image_term": BETA_1, "text_term": BETA_2}


def sextuples(n: int = 7, width: int = 5, seed: int = 0) -> list[torch.Tensor]:
    rng = np.random.default_rng(seed)
    return [torch.tensor(rng.normal(size=(n, width)) * 0.4, requires_grad=True) for _ in range(6)]


def weights(n: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(seed)
    return torch.tensor(rng.uniform(0, 2, n)), torch.tensor(rng.uniform(0, 2, n))


@pytest.mark.parametrize("seed", range(3))
def test_gradients_are_those_of_equations_7_and_8(seed):
    points = sextuples(seed=seed)
    w_x, w_y = weights(len(points[0]), seed)
    sextuple_loss(Sextuples(*points), w_x, w_y, **SETTINGS).backward()
    p, t, p_pos, p_neg, t_pos, t_neg = (part.detach().numpy() for part in points)
    on_x = w_x.numpy() * (RHO + (p * t_neg).sum(1) - (p * t_pos).sum(1) > 0)
    on_y = w_y.numpy() * (RHO + (p_neg * t).sum(1) - (p_pos * t).sum(1) > 0)
    in_x = BETA_1 * (TAU + (p * p_neg).sum(1) - (p * p_pos).sum(1) > 0)
    in_y = BETA_2 * (TAU + (t * t_neg).sum(1) - (t * t_pos).sum(1) > 0)
    for active in (on_x, on_y, in_x, in_y):
        assert np.count_nonzero(active) > 0
    on_x, on_y, in_x, in_y = (values[:, None] for values in (on_x, on_y, in_x, in_y))
    written = [
        on_x * (t_neg - t_pos) + in_x * (p_neg - p_pos),
        on_y * (p_neg - p_pos) + in_y * (t_neg - t_pos),
        -on_y * t - in_x * p,
        on_y * t + in_x * p,
        -on_x * p - in_y * t,
        on_x * p + in_y * t,
    ]
    for part, gradient in zip(points, written, strict=True):
        np.testing.assert_allclose(part.grad.numpy() * len(p), gradient, rtol=1e-12, atol=1e-14)


def test_gradients_are_finite_differences():
    points = sextuples(n=4, seed=5)
    w_x, w_y = weights(4, 5)
    assert torch.autograd.gradcheck(lambda *parts: sextuple_loss(Sextuples(*parts), w_x, w_y, **SETTINGS), points)


def test_a_single_direction_drops_both_terms_of_the_other():
    points = Sextuples(*sextuples(seed=1))
    w_x, w_y = weights(len(points.image), 1)
    both, image, text = (
        sextuple_loss(points, w_x, w_y, direction=way, **SETTINGS).item() for way in get_args(TrainedDirections)
    )
    assert both == pytest.approx(image + text, rel=1e-12)
    x, y = points.image, points.text
    ranking = w_x * (RHO + (x * points.negative_text).sum(1) - (x * points.positive_text).sum(1)).relu()
    within = BETA_1 * (TAU + (x * points.negative_image).sum(1) - (x * points.positive_image).sum(1)).relu()
    assert image == pytest.approx((ranking + within).mean().item(), rel=1e-12)
    ranking = w_y * (RHO + (y * points.negative_image).sum(1) - (y * points.positive_image).sum(1)).relu()
    within = BETA_2 * (TAU + (y * points.negative_text).sum(1) - (y * points.positive_text).sum(1)).relu()
    assert text == pytest.approx((ranking + within).mean().item(), rel=1e-12)


def test_a_rank_costs_its_harmonic_number():
    ranks = torch.arange(0, 2000)
    wanted = np.concatenate([[0], np.cumsum(1 / np.arange(1, 2000))])
    np.testing.assert_allclose(rank_cost(ranks).numpy(), wanted, rtol=1e-6, atol=1e-7)


def drawn_one_by_one(scores, positive, negative, margin, max_trials, keys):
    """Draw as the paper says, one anchor and one negative at a time."""
    seen: list[int] = []
    for column in np.argsort(keys):
        if not negative[column]:
            continue
        if len(seen) == max_trials:
            break
        seen.append(column)
        if margin + scores[column] > positive:
            return column, len(seen), True
    best = max(seen, key=lambda column: scores[column]) if seen else 0
    return best, len(seen), False


@given(st.integers(0, 10_000), st.integers(1, 9), st.floats(0.0, 1.0))
def test_draws_equal_drawing_one_by_one(seed, max_trials, margin):
    rng = np.random.default_rng(seed)
    scores, keys = rng.normal(size=(5, 8)).astype(np.float32), rng.random((5, 8)).astype(np.float32)
    negative = rng.random((5, 8)) < 0.7
    positives = rng.normal(size=5).astype(np.float32) + 1
    drawn = draw_violators(
        *(torch.from_numpy(values) for values in (scores, positives, negative)),
        np.float32(margin).item(),
        max_trials=max_trials,
        keys=torch.from_numpy(keys),
    )
    for row in range(5):
        column, draws, found = drawn_one_by_one(
            scores[row], positives[row], negative[row], np.float32(margin), max_trials, keys[row]
        )
        assert (drawn.draws[row].item(), drawn.found[row].item()) == (draws, found)
        if draws:
            assert drawn.columns[row].item() == column


def objective(**changes) -> RankingObjective:
    return RankingObjective(MNiL(**{**SETTINGS, "positive": "own_pair", **changes}), 1000)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_weights_are_scaled_harmonic_numbers_of_the_estimated_rank():
    # One negative for each anchor, which always violates: v = 1, rank = n − 1, and the scaled weight is 1.
    points = torch.ones(2, 3) / 3**0.5
    loss, sums = objective().loss(points, points, torch.arange(2), None, generator())
    harmonic = (1 / np.arange(1, 1000)).sum()
    assert loss.item() == pytest.approx(2 * RHO + (BETA_1 + BETA_2) * TAU / harmonic, rel=1e-6)
    assert sums.tolist() == [4, 4, 4]
    plain, _ = objective(scale_weights=False).loss(points, points, torch.arange(2), None, generator())
    assert plain.item() == pytest.approx(2 * RHO * harmonic + (BETA_1 + BETA_2) * TAU, rel=1e-6)
    fewer, _ = objective(scale_weights=False, rank_base="negatives").loss(
        points, points, torch.arange(2), None, generator()
    )
    harmonic = (1 / np.arange(1, 501)).sum()
    assert fewer.item() == pytest.approx(2 * RHO * harmonic + (BETA_1 + BETA_2) * TAU, rel=1e-6)


def test_without_a_violator_only_the_terms_within_remain():
    points = torch.eye(3)
    within = objective(within_margin=1.5, scale_weights=False)
    loss, sums = within.loss(points, points, torch.arange(3), None, generator())
    assert loss.item() == pytest.approx((BETA_1 + BETA_2) * 0.5, rel=1e-6)
    assert sums.tolist() == [0, 0, 6]


def test_other_texts_of_a_picture_are_no_negatives():
    images = torch.eye(2)
    texts = torch.eye(2)[[0, 0, 1, 1]]
    _, sums = objective(margin=1.0).loss(images, texts, torch.arange(2), None, generator())
    assert sums.tolist() == [0, 0, 8]
    _, sums = objective(margin=1.01).loss(images, texts, torch.arange(2), None, generator())
    assert sums.tolist() == [8, 8, 8]


def test_items_that_share_a_label_are_no_negatives():
    points = torch.ones(4, 2) / 2**0.5
    labels = torch.tensor([[1.0, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1]])
    # Shared by 0 and 1, and by 1 and 2; the last is alone, so every anchor has a negative that violates.
    _, sums = objective().loss(points, points, torch.arange(4), labels, generator())
    assert sums[1].item() == 8
    everything = torch.ones(4, 2)
    loss, sums = objective().loss(points, points, torch.arange(4), everything, generator())
    assert (loss.item(), sums[1].item()) == (0, 0)


def test_positives_are_other_items_of_the_class_drawn_evenly():
    labels = torch.tensor([[1.0, 0], [1, 0], [1, 0], [0, 1]])
    own = torch.arange(4).repeat(400)
    drawn = objective(positive="same_class")._positives(labels.repeat(400, 1) @ labels.T > 0, own, generator())
    counts = np.bincount(drawn[::4].numpy(), minlength=4)
    assert counts[0] == counts[3] == 0
    assert abs(counts[1] - 200) < 60
    # The last one has no other, and stands for itself.
    assert (drawn[3::4] == 3).all()
    assert (objective(positive="own_pair")._positives(labels @ labels.T > 0, own[:4], generator()) == own[:4]).all()
