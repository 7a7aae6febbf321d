from __future__ import annotations

from typing import ClassVar, Literal

from diptych.models.base import check_choice, check_count
from diptych.models.clicks._logged_clicks import ClickScale, NeighbourQueryModel, WeightedImages

Normalisation = Literal["sum", "count"]


class Text2Image(NeighbourQueryModel):
    """A query is the weighted mean of the pictures clicked for similar queries; nothing is trained.

    With q₁ … q_k the log queries most similar to q, each log picture weighs

        w(xᵢ) = Σ_j log(click_ij)·Jaccard(q, q_j),

    and with the k′ heaviest of them the score of a picture x is

        f(x, q) = (1/k′) Σᵢ cos(x, xᵢ)·w(xᵢ) = ⟨x/‖x‖, (1/k′) Σᵢ w(xᵢ)·xᵢ/‖xᵢ‖⟩,

    an inner product, so that any index serves it. A query that is in the log, as a set of words, is its own only
    neighbour. A query without a neighbour (`answers`) is the zero vector.

    Dong et al., "Cross-media similarity evaluation for web image retrieval in the wild", TMM 2018, equations 3 and 4,
    who find it the best single method for the queries of real users. k′, the least similarity, the default logarithm
    and weights that sum to one are those of the code they released. Ties are broken by us: between queries by their
    clicks, between pictures by the log's order.

    Use it first: it needs no training and follows new clicks at once, but needs a word shared with the log.

    Parameters
    ----------
    n_neighbours : int
        k, log queries at most.
    n_images : int
        k′, pictures that stand for a query at most.
    min_similarity : float
        Log queries less similar than this are no neighbours.
    clicks : {"log1p", "log"}
        log(1 + click), or the paper's log(click), under which single clicks count nothing.
    normalisation : {"sum", "count"}
        Weights sum to one, or are divided by k′ as printed. The order of the answers to a query is the same; the size
        of the scores, which matters in a fusion, is not.

    Attributes
    ----------
    words_, set_offsets_, set_words_ :
        The distinct queries as sets of words, the most clicked first.
    click_offsets_, clicked_images_, clicks_ :
        The clicks of each.
    images_ : array of shape (pictures of the log, features)
        Of unit length.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.data.clicks import ClickLog
    >>> from diptych.models import Text2Image
    >>> log = ClickLog.from_triads(["red boat", "boats", "cat"], ["1.jpg", "2.jpg", "3.jpg"], [3, 1, 2])
    >>> model = Text2Image().fit_clicks(log, np.eye(3))
    >>> model.scores(["boat", "red boat", "a photo of a cat", "tree"], np.eye(3)).round(2).tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    >>> model.neighbours("my boat at sea"), model.answers("tree")
    ([(('boat',), 0.5), (('boat', 'red'), 0.3333333333333333)], False)
    """

    when_to_use: ClassVar[str] = "A click log and nothing else: the strongest simple method for queries people repeat."

    def __init__(
        self,
        *,
        n_neighbours: int = 30,
        n_images: int = 50,
        min_similarity: float = 0.3,
        clicks: ClickScale = "log1p",
        normalisation: Normalisation = "sum",
    ) -> None:
        self.n_neighbours = n_neighbours
        self.n_images = n_images
        self.min_similarity = min_similarity
        self.clicks = clicks
        self.normalisation = normalisation

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_images", self.n_images)
        check_choice("normalisation", self.normalisation, ("sum", "count"))

    def _weighted_images(self, query: str) -> WeightedImages:
        rows, weights = super()._weighted_images(query).heaviest(self.n_images)
        return WeightedImages(rows, weights / (weights.sum() if self.normalisation == "sum" else self.n_images))
