"""Which negatives of a batch are drawn."""

from __future__ import annotations

from typing import Any, NamedTuple

from diptych.models.neural.torch_package import torch_package


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
    >>> from diptych.models.neural.mnil.violators import draw_violators
    >>> scores, keys = torch.tensor([[0.9, 0.1, 0.8]]), torch.tensor([[0.0, 0.2, 0.7]])
    >>> negative = torch.tensor([[False, True, True]])
    >>> [part.tolist() for part in draw_violators(scores, scores[:, 0], negative, 0.3, max_trials=100, keys=keys)]
    [[2], [2], [True]]
    """
    torch = torch_package()
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
