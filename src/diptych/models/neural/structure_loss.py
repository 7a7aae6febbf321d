"""The bi-directional ranking loss that keeps the structure within each side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from diptych.models.neural.caption_batch import CaptionBatch
from diptych.models.neural.torch_package import torch_package

_SMALLEST = 1e-4


@dataclass(frozen=True)
class StructureLoss:
    """Hinges on distances between unit points, over the largest violations of a batch.

    Of all wrong answers y⁻ to an anchor the ``n_violators`` with the largest [m + d(anchor, right) − d(anchor, y⁻)]₊
    count, zeros included. Texts search pictures with weight ``text_query``, pictures search texts with weight 1. Within
    a side, an anchor's farthest relative must be nearer than what is not related to it.
    """

    margin: float
    n_violators: int
    text_query: float
    image_structure: float
    text_structure: float

    def of(self, images: Any, texts: Any, batch: CaptionBatch) -> Any:
        """Return the loss of unit points, which come in the order of ``batch.pictures`` and ``batch.texts``."""
        torch = torch_package()
        answers, related, text_related, picture_related = (
            torch.from_numpy(values).to(images.device)
            for values in (batch.answers, batch.related, batch.text_related, batch.picture_related)
        )
        between = distances(texts, images)
        right = between.gather(1, answers[:, None])
        loss = self.text_query * self._violations(right, between, related).mean()
        loss = loss + self._violations(right, between[:, answers].T, related[:, answers].T).mean()
        for weight, points, relatives in (
            (self.text_structure, texts, text_related),
            (self.image_structure, images, picture_related),
        ):
            if weight:
                loss = loss + weight * self._structure(distances(points, points), relatives)
        return loss

    def _structure(self, apart: Any, related: Any) -> Any:
        others = related.clone().fill_diagonal_(fill_value=False)
        farthest = apart.masked_fill(~others, 0).amax(dim=1, keepdim=True)
        counted = others.any(dim=1)
        return (self._violations(farthest, apart, related) * counted).sum() / counted.sum().clamp(min=1)

    def _violations(self, right: Any, apart: Any, related: Any) -> Any:
        """Return for each row the mean of its largest violations."""
        hinges = (self.margin + right - apart).relu().masked_fill(related, 0)
        return hinges.topk(min(self.n_violators, hinges.shape[1]), dim=1).values.mean(dim=1)


def distances(left: Any, right: Any) -> Any:
    """Return the Euclidean distances of unit points; the root stays clear of zero, where its slope is infinite."""
    return ((2 - 2 * left @ right.T).clamp(min=0) + _SMALLEST).sqrt()
