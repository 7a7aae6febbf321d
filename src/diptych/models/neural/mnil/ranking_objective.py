"""The loss of a batch: who is relevant, what is drawn, what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from diptych.models.neural.mnil.sextuple_loss import Sextuples, Trained, rank_cost, sextuple_loss
from diptych.models.neural.mnil.violators import Violators, draw_violators
from diptych.models.neural.torch_package import torch_package

Positive = Literal["own_pair", "same_class"]
POSITIVES: tuple[Positive, ...] = ("own_pair", "same_class")
RankBase = Literal["pairs", "negatives"]
RANK_BASES: tuple[RankBase, ...] = ("pairs", "negatives")


@dataclass(frozen=True)
class RankingObjective:
    """Draws a sextuple for every pair of a batch and returns their loss.

    Negatives of an anchor are the batch's items that are not relevant to it, drawn in random order; ⌊(n − 1)/v⌋ after
    v draws estimates the rank among all n training pairs. Where nothing violates the margin the ranking term is 0, and
    the highest-scoring negative drawn serves the other side's term within; an anchor without any negative costs
    nothing.
    """

    n_pairs: int
    margin: float
    within_margin: float
    image_term: float
    text_term: float
    direction: Trained = "both"
    positive: Positive = "own_pair"
    max_trials: int = 100
    rank_base: RankBase = "pairs"
    scaled: bool = True

    def loss(self, images: Any, texts: Any, groups: Any, labels: Any, generator: Any) -> tuple[Any, Any]:
        """Return (loss, sums): of draws, of anchors that found a violator, of anchors.

        ``texts`` has the same number of rows for each row of ``images``, one picture's after the other; ``groups``
        number the pictures, and ``labels`` are indicator rows of the texts, or None where only a picture's own texts
        are relevant to it.
        """
        torch = torch_package()
        owners = torch.arange(len(texts), device=texts.device) // (len(texts) // len(images))
        to_images, to_texts = self._relevant(groups, labels, owners)
        rows = torch.arange(len(texts), device=texts.device)
        anchors = _taken(images, owners)
        text_scores, image_scores = (anchors @ texts.T).detach(), (texts @ images.T).detach()
        positive_texts = self._positives(to_texts, rows, generator)
        positive_images = self._positives(to_images, owners, generator)
        drawn_texts = self._drawn(text_scores, positive_texts, ~to_texts, generator)
        drawn_images = self._drawn(image_scores, positive_images, ~to_images, generator)
        loss = sextuple_loss(
            Sextuples(
                anchors,
                texts,
                _taken(images, positive_images),
                _taken(images, drawn_images.columns),
                _taken(texts, positive_texts),
                _taken(texts, drawn_texts.columns),
            ),
            self._weights(drawn_texts, ~to_texts),
            self._weights(drawn_images, ~to_images),
            margin=self.margin,
            within_margin=self.within_margin,
            image_term=self.image_term * (drawn_images.draws > 0),
            text_term=self.text_term * (drawn_texts.draws > 0),
            direction=self.direction,
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
        if self.positive == "own_pair":
            return own
        return self._keys(relevant, generator).masked_fill(~relevant, -1).argmax(dim=1)

    def _drawn(self, scores: Any, positives: Any, negative: Any, generator: Any) -> Violators:
        keys = self._keys(negative, generator)
        reached = scores.gather(1, positives[:, None])[:, 0]
        return draw_violators(scores, reached, negative, self.margin, max_trials=self.max_trials, keys=keys)

    def _keys(self, like: Any, generator: Any) -> Any:
        return torch_package().rand(like.shape, generator=generator, device=like.device)

    def _weights(self, drawn: Violators, negative: Any) -> Any:
        base: Any = self.n_pairs - 1
        if self.rank_base == "negatives":
            base = (negative.float().mean(dim=1) * self.n_pairs).long()
        weights = rank_cost(base // drawn.draws.clamp(min=1)) * drawn.found
        largest = rank_cost(torch_package().tensor(max(1, self.n_pairs - 1))).item() if self.scaled else 1.0
        return weights / largest

    def _sums(self, *sides: Violators) -> Any:
        torch = torch_package()
        kept = {"image_query": sides[:1], "text_query": sides[1:]}.get(self.direction, sides)
        return torch.stack(
            [
                sum((side.draws * side.found).sum() for side in kept),
                sum(side.found.sum() for side in kept),
                kept[0].draws.new_full((), sum(len(side.found) for side in kept)),
            ]
        ).double()


def _taken(rows: Any, numbers: Any) -> Any:
    # Indexing by brackets sorts the numbers on the way back, which costs a small batch more than the products do.
    return rows.index_select(0, numbers)
