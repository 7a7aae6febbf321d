"""What MNiL minimises: the ranking loss of sextuples, with negatives drawn from the batch.

This module is imported when a training starts: nothing else needs PyTorch.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch

from diptych.models.neural.mnil._parameters import MNiLParameters, TrainedDirections


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
    direction: TrainedDirections = "both",
) -> Any:
    """Return the mean over the rows of equation 6 of Zhang et al. (2017).

        wₓ[ρ + xᵢ·yₖ − xᵢ·yⱼ]₊ + w_y[ρ + xₖ·yᵢ − xⱼ·yᵢ]₊ + β₁[τ + xᵢ·xₖ − xᵢ·xⱼ]₊ + β₂[τ + yᵢ·yₖ − yᵢ·yⱼ]₊

    The weights are constants. One ``direction`` keeps its own ranking term and the term within its query's side.
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
    return torch.stack(parts).sum(dim=0).mean()


def _hinge(anchor: Any, positive: Any, negative: Any, margin: float) -> Any:
    return (margin + (anchor * negative).sum(dim=1) - (anchor * positive).sum(dim=1)).relu()


class Violators(NamedTuple):
    """For each anchor the negative drawn, how many draws it took, and whether it violates the margin."""

    columns: Any
    draws: Any
    found: Any


def draw_violators(
    scores: Any, positives: Any, negative: Any, margin: float, *, max_trials: int, keys: Any
) -> Violators:
    """Draw negatives of each row without replacement until margin + score > positive, ``max_trials`` times at most.

    ``scores`` are (anchors, candidates), ``positives`` one score for each anchor, ``negative`` says which candidates
    may be drawn, and ``keys`` are random numbers whose order is that of the draws. Where nothing violates, the column
    is the highest-scoring negative that was drawn; a row without any negative has 0 draws and column 0.

    >>> import torch
    >>> scores, keys = torch.tensor([[0.9, 0.1, 0.8]]), torch.tensor([[0.0, 0.2, 0.7]])
    >>> negative = torch.tensor([[False, True, True]])
    >>> [part.tolist() for part in draw_violators(scores, scores[:, 0], negative, 0.3, max_trials=100, keys=keys)]
    [[2], [2], [True]]
    """
    with torch.no_grad():
        # Beyond every key, which are below 1.
        order = keys.masked_fill(~negative, 2.0)
        violates = negative & (margin + scores > positives[:, None])
        stop, columns = order.masked_fill(~violates, 2.0).min(dim=1)
        draws = ((order <= stop[:, None]) & negative).sum(dim=1)
        found = (stop < 2.0) & (draws <= max_trials)
        seen = negative
        if max_trials < scores.shape[1]:
            last = order.kthvalue(max_trials, dim=1).values
            seen = negative & (order <= last[:, None])
        hardest = scores.masked_fill(~seen, -torch.inf).argmax(dim=1)
        return Violators(torch.where(found, columns, hardest), draws.clamp(max=max_trials), found)


class RankingObjective:
    """Draws a sextuple for every pair of a batch and returns their loss.

    Negatives of an anchor are the batch's items that are not relevant to it; ⌊(n − 1)/v⌋ after v draws estimates the
    rank among all n pairs. Where nothing violates the margin the ranking term is 0, and the highest-scoring negative
    drawn serves the other side's term within; an anchor without any negative costs nothing.
    """

    def __init__(self, model: MNiLParameters, n_pairs: int) -> None:
        self._model = model
        self._n_pairs = n_pairs
        # One over the weight of the worst rank there is; of all terms alike, so that β₁ and β₂ keep their meaning.
        worst = float(rank_cost(torch.tensor(max(1, n_pairs - 1))))
        self._scale = 1 / worst if model.scale_weights else 1.0

    def loss(self, images: Any, texts: Any, groups: Any, labels: Any, generator: Any) -> tuple[Any, Any]:
        """Return (loss, sums): of draws, of anchors that found a violator, of anchors.

        ``texts`` has the same number of rows for each row of ``images``, one picture's after the other; ``groups``
        number the pictures, and ``labels`` are indicator rows of the texts, or None where only a picture's own texts
        are relevant to it.
        """
        rows = torch.arange(len(texts), device=texts.device)
        owners = rows // (len(texts) // len(images))
        to_images, to_texts = self._relevant(groups, labels, owners)
        anchors = _selected_rows(images, owners)
        text_scores, image_scores = (anchors @ texts.T).detach(), (texts @ images.T).detach()
        positive_texts = self._positives(to_texts, rows, generator)
        positive_images = self._positives(to_images, owners, generator)
        drawn_texts = self._drawn(text_scores, positive_texts, ~to_texts, generator)
        drawn_images = self._drawn(image_scores, positive_images, ~to_images, generator)
        loss = self._scale * sextuple_loss(
            Sextuples(
                anchors,
                texts,
                _selected_rows(images, positive_images),
                _selected_rows(images, drawn_images.columns),
                _selected_rows(texts, positive_texts),
                _selected_rows(texts, drawn_texts.columns),
            ),
            self._weights(drawn_texts, ~to_texts),
            self._weights(drawn_images, ~to_images),
            margin=self._model.margin,
            within_margin=self._model.within_margin,
            image_term=self._model.image_term * (drawn_images.draws > 0),
            text_term=self._model.text_term * (drawn_texts.draws > 0),
            direction=self._model.direction,
        )
        return loss, self._sums(drawn_texts, drawn_images)

    def _relevant(self, groups: Any, labels: Any, owners: Any) -> tuple[Any, Any]:
        """Return which pictures and which texts are relevant to each pair."""
        own = groups[owners]
        to_images, to_texts = own[:, None] == groups, own[:, None] == own
        if labels is None:
            return to_images, to_texts
        of_pictures = labels[:: len(owners) // len(groups)]
        return to_images | (labels @ of_pictures.T > 0), to_texts | (labels @ labels.T > 0)

    def _positives(self, relevant: Any, own: Any, generator: Any) -> Any:
        if self._model.positive == "own_pair":
            return own
        others = relevant & (torch.arange(relevant.shape[1], device=own.device) != own[:, None])
        drawn = self._keys(relevant, generator).masked_fill(~others, -1).argmax(dim=1)
        return torch.where(others.any(dim=1), drawn, own)

    def _drawn(self, scores: Any, positives: Any, negative: Any, generator: Any) -> Violators:
        model, keys = self._model, self._keys(negative, generator)
        reached = scores.gather(1, positives[:, None])[:, 0]
        return draw_violators(scores, reached, negative, model.margin, max_trials=model.max_trials, keys=keys)

    def _keys(self, like: Any, generator: Any) -> Any:
        return torch.rand(like.shape, generator=generator, device=like.device)

    def _weights(self, drawn: Violators, negative: Any) -> Any:
        base: Any = self._n_pairs - 1
        if self._model.rank_base == "negatives":
            base = (negative.float().mean(dim=1) * self._n_pairs).long()
        return rank_cost(base // drawn.draws.clamp(min=1)) * drawn.found

    def _sums(self, *sides: Violators) -> Any:
        counted = {"image_query": sides[:1], "text_query": sides[1:]}.get(self._model.direction, sides)
        draws = sum((side.draws * side.found).sum() for side in counted)
        found = sum(side.found.sum() for side in counted)
        return torch.stack([draws, found, found.new_full((), sum(len(side.found) for side in counted))]).double()


def _selected_rows(rows: Any, numbers: Any) -> Any:
    # Indexing by brackets sorts the numbers on the way back, which costs a small batch more than the products do.
    return rows.index_select(0, numbers)
