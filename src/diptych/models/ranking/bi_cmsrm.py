"""Bi-CMSRM: lists in both directions, trained for average precision."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from diptych.arrays import IntArray
from diptych.models.base import Need
from diptych.models.parameters import check_count
from diptych.models.ranking.linear_ranking import LinearRankingModel, Start, sampled_list
from diptych.models.ranking.linear_side import LinearSide
from diptych.models.ranking.ranking_step import RankingStep
from diptych.models.ranking.violated_rankings import average_precision_loss
from diptych.models.related_rows import RelatedRows


class BiCMSRM(LinearRankingModel):
    """Bi-directional cross-media semantic representation model: a structural SVM for average precision, both ways.

    With f(x, y) = (Ux)·(Vy), a query's r relevant and m irrelevant items, rankings y with y_ij = ±1 as relevant i
    stands before or behind irrelevant j, and y* the perfect ones,

        min  (λ/2)(‖U‖² + ‖V‖²) + (1/n) Σ over queries of both sides of max over y of [ 1 − AP(y) + F(y) − F(y*) ],

        F(y) = (1/rm) Σᵢⱼ y_ij (fᵢ − fⱼ).

    The most violated ranking is found exactly by dynamic programming, the maps follow the subgradient. The loss bounds
    1 − AP from above, so that what is trained is what MAP measures. The original's text was not available to us beyond
    its abstract: objective and training are those of structural SVMs for average precision (Yue et al., 2007), with the
    two directions and the two maps of the paper.

    Relevant items share a label with the query. Without labels they are the texts of the same picture: equal rows of
    images are one picture.

    Parameters
    ----------
    n_components : int
        Dimensions of the common space.
    list_size : int
        Items that a query ranks in each step: the batch's own and others drawn at random.
    regularization : float
        λ above.
    start : {"random", "cca"}
        Random weights, or those of :class:`CCA`.
    learning_rate : float
        The largest step of Adam; it warms up and falls along a cosine.
    epochs, batch_size : int
        Passes over the rows, and rows that ask together.
    metric : str
        Name of the `Space`; the loss is made for the inner product.
    seed : int
        Of the start, the batches and the lists.

    Attributes
    ----------
    losses_ : array
        Mean objective of each epoch.

    References
    ----------
    Wu et al., "Cross-media semantic representation via bi-directional learning to rank", ACM Multimedia 2013. Yue et
    al., "A support vector method for optimizing average precision", SIGIR 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import BiCMSRM
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat(["bird", "boat"], 50)
    >>> images = rng.normal(size=(100, 6)) + 2 * (labels == "boat")[:, None]
    >>> texts = rng.normal(size=(100, 4)) - 2 * (labels == "boat")[:, None]
    >>> model = BiCMSRM(n_components=4).fit(images, texts, labels)
    >>> bool(model.score(images, texts, labels) > 0.9)
    True
    """

    needs: ClassVar[frozenset[Need]] = frozenset({"pairs"})
    when_to_use: ClassVar[str] = "Labelled items and MAP is what counts: trains for average precision, in a minute."

    def __init__(
        self,
        *,
        n_components: int = 32,
        list_size: int = 200,
        regularization: float = 1e-2,
        start: Start = "random",
        learning_rate: float = 0.03,
        epochs: int = 10,
        batch_size: int = 64,
        metric: str = "dot",
        seed: int = 0,
    ) -> None:
        self.n_components = n_components
        self.list_size = list_size
        self.regularization = regularization
        self.start = start
        self.learning_rate = learning_rate
        self.epochs = epochs
        self.batch_size = batch_size
        self.metric = metric
        self.seed = seed

    def _step(
        self,
        asking: LinearSide,
        searched: LinearSide,
        related: RelatedRows,
        queries: IntArray,
        rng: np.random.Generator,
    ) -> RankingStep:
        gallery = sampled_list(queries, len(searched.rows), self.list_size, rng)
        points, found = asking.points(queries), searched.points(gallery)
        losses, slopes = average_precision_loss(points @ found.T, related.matrix(queries, gallery))
        shares = (slopes / len(queries)).astype(points.dtype)
        return RankingStep(float(losses.mean()), shares @ found, gallery, shares.T @ points)

    def _check(self) -> None:
        super()._check()
        check_count("list_size", self.list_size)
