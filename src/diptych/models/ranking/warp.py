from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from diptych.arrays import IntArray
from diptych.models.labels import RelatedRows
from diptych.models.parameters import Count, Positive
from diptych.models.ranking._linear_ranking import LinearRankingModel, LinearSide, RankingStep, warp_step


@dataclass(kw_only=True, eq=False, repr=False)
class WARP(LinearRankingModel):
    """Weighted approximate-rank pairwise loss: two linear maps whose inner products rank right answers first.

    With f(x, y) = (Vx)·(Wy), right answer y⁺ and rank k = number of wrong answers y⁻ with f(x, y⁻) + m > f(x, y⁺),

        min  Σ over x, y⁺ of L(k) · [m − f(x, y⁺) + f(x, y⁻)]₊,   L(k) = 1 + 1/2 + … + 1/k,

    in both directions. The rank is never computed: wrong answers are drawn without replacement until one violates the
    margin, and k ≈ ⌊wrong answers / draws⌋. A query that finds no violator among all wrong answers, or among
    ``max_draws`` of them, is left alone. L makes a mistake at the top cost much more than one further down. Right
    answers share a label with the query; without labels they are the texts of the same picture (equal rows of images).

    Batches, Adam in place of plain descent, and the scale of the features (each row about one long) are ours.

    Parameters
    ----------
    n_components : int
        Dimensions of the common space.
    margin : float
        m above.
    max_draws : int or None
        Most wrong answers drawn for one query; None draws them all. The paper's own stopping rule could not be
        verified.
    max_norm : float or None
        Largest length of a feature's row of weights, which bounds the scores; longer rows are cut back after each step.
    regularization : float
        Weight of half the squared norms of V and W.
    start : {"random", "cca"}
        Random weights, or those of :class:`CCA`.
    learning_rate : float
        The largest step of Adam; it warms up and falls along a cosine.
    epochs, batch_size : int
        Passes over the rows, and rows that ask together.
    metric : str
        Name of the `Space`; the loss is made for the inner product.
    random_state : int
        Of the start, the batches and the draws.

    Attributes
    ----------
    losses_ : array
        Mean loss of each epoch.

    References
    ----------
    Weston, Bengio and Usunier, "Large scale image annotation: learning to rank with joint word-image embeddings",
    Machine Learning 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import WARP
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat([0, 1], 50)
    >>> images, texts = rng.normal(size=(100, 6)) + 2 * labels[:, None], rng.normal(size=(100, 4)) - 2 * labels[:, None]
    >>> model = WARP(n_components=4).fit(images, texts, labels)
    >>> bool(model.score(images, texts, labels) > 0.9)
    True
    """

    when_to_use: ClassVar[str] = "The first few results matter most; works with labels or with pairs alone, in seconds."

    margin: Positive = 1.0
    max_draws: Count | None = None
    max_norm: Positive | None = None

    def _step(
        self, asking: LinearSide, searched: LinearSide, related: RelatedRows, queries: IntArray, rng: Generator
    ) -> RankingStep:
        return warp_step(asking, searched, related, queries, rng, margin=self.margin, max_draws=self.max_draws)

    def _constrain(self, sides: list[LinearSide]) -> None:
        if self.max_norm is None:
            return
        for side in sides:
            lengths = np.linalg.norm(side.weights, axis=1, keepdims=True)
            side.weights[:] *= np.minimum(1, self.max_norm / np.maximum(lengths, np.finfo(np.float32).tiny))
