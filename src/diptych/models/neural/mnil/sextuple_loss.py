"""The discriminative ranking loss of sextuples."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from diptych.models.neural.torch_package import torch_package

Trained = Literal["both", "image_query", "text_query"]
TRAINED: tuple[Trained, ...] = ("both", "image_query", "text_query")


class Sextuples(NamedTuple):
    """Rows of points: the pair (xᵢ, yᵢ), the positives and the negatives of either side."""

    image: Any
    text: Any
    positive_image: Any
    negative_image: Any
    positive_text: Any
    negative_text: Any


def rank_cost(ranks: Any) -> Any:
    """Return Hᵣ = Σ_{t≤r} 1/t, what a rank r costs (equation 2), by ψ(r + 1) + γ: no table that grows with the data.

    >>> import torch
    >>> from diptych.models.neural.mnil.sextuple_loss import rank_cost
    >>> rank_cost(torch.tensor([1, 2, 4])).tolist()
    [1.0, 1.5, 2.0833332538604736]
    """
    return ((ranks.double() + 1).digamma() + np.euler_gamma).clamp(min=0).float()


def sextuple_loss(
    points: Sextuples,
    image_query_weights: Any,
    text_query_weights: Any,
    *,
    margin: float,
    within_margin: float,
    image_term: float,
    text_term: float,
    direction: Trained = "both",
) -> Any:
    """Return the mean over the rows of equation 6 of Zhang et al. (2017).

        wₓ[ρ + xᵢ·yₖ − xᵢ·yⱼ]₊ + w_y[ρ + xₖ·yᵢ − xⱼ·yᵢ]₊ + β₁[τ + xᵢ·xₖ − xᵢ·xⱼ]₊ + β₂[τ + yᵢ·yₖ − yᵢ·yⱼ]₊

    The weights are constants. One ``direction`` keeps its own ranking term and the term within its query's side.

    >>> import torch
    >>> from diptych.models.neural.mnil.sextuple_loss import Sextuples, sextuple_loss
    >>> one, two = torch.eye(2)[:1], torch.eye(2)[1:]
    >>> points = Sextuples(one, one, one, one, one, two)
    >>> weights = torch.ones(1)
    >>> settings = dict(margin=0.3, within_margin=0.5, image_term=0.1, text_term=0.2)
    >>> round(sextuple_loss(points, weights, weights, **settings).item(), 4)
    0.35
    """
    parts = []
    if direction != "text_query":
        ranking = _hinge(points.image, points.positive_text, points.negative_text, margin)
        within = _hinge(points.image, points.positive_image, points.negative_image, within_margin)
        parts += [image_query_weights * ranking, image_term * within]
    if direction != "image_query":
        ranking = _hinge(points.text, points.positive_image, points.negative_image, margin)
        within = _hinge(points.text, points.positive_text, points.negative_text, within_margin)
        parts += [text_query_weights * ranking, text_term * within]
    return torch_package().stack(parts).sum(dim=0).mean()


def _hinge(anchor: Any, positive: Any, negative: Any, margin: float) -> Any:
    return (margin + (anchor * negative).sum(dim=1) - (anchor * positive).sum(dim=1)).relu()
