"""A query by the pictures that were clicked for similar queries of the log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from diptych.arrays import FloatArray, row_blocks, unit_rows
from diptych.models.clicks._logged_clicks import NeighbourQueryModel, WeightedImages
from diptych.models.parameters import Count

Normalisation = Literal["sum", "count"]


@dataclass(kw_only=True, eq=False, repr=False)
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

    n_images: Count = 50
    normalisation: Normalisation = "sum"

    def _weighted_images(self, query: str) -> WeightedImages:
        rows, weights = super()._weighted_images(query).heaviest(self.n_images)
        return WeightedImages(rows, weights / (weights.sum() if self.normalisation == "sum" else self.n_images))


@dataclass(kw_only=True, eq=False, repr=False)
class QueryBasedScoring(NeighbourQueryModel):
    """The mean, over similar queries, of how much a picture looks like all the pictures clicked for them.

    With q₁ … q_k the log queries most similar to q, and m_j pictures clicked for q_j,

        f(x, q) = (1/k) Σ_j Jaccard(q, q_j)·(1/m_j) Σᵢ cos(x, xᵢ)·log(click_ij),

    which is linear in x/‖x‖, so that any index serves it. Neighbours are those of :class:`Text2Image`.

    One of the two alternatives that Dong et al., "Cross-media similarity evaluation for web image retrieval in the
    wild", TMM 2018, compare with text2image, and find weaker, because many of these pictures are irrelevant. The
    formula follows the code they released. Use it to see what keeping only the most clicked pictures is worth.

    Parameters
    ----------
    n_neighbours, min_similarity, clicks
        As in :class:`Text2Image`.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.data.clicks import ClickLog
    >>> from diptych.models import QueryBasedScoring
    >>> log = ClickLog.from_triads(["boat", "boat", "cat"], ["1.jpg", "2.jpg", "3.jpg"], [3, 1, 2])
    >>> model = QueryBasedScoring().fit_clicks(log, np.eye(3))
    >>> model.scores(["boats"], np.eye(3)).round(2)
    array([[0.69, 0.35, 0.  ]], dtype=float32)
    """

    when_to_use: ClassVar[str] = "To compare with text2image: every picture clicked for a similar query counts."

    def _weighted_images(self, query: str) -> WeightedImages:
        found, similarities = self._neighbours(query)
        lists = [self._clicks_of(number) for number in found]
        counts = np.array([len(part.rows) for part in lists])
        return WeightedImages.added(lists, similarities / (max(1, len(lists)) * np.maximum(counts, 1)))


# Numbers in a block of cosines.
_BLOCK_NUMBERS = 1 << 23


@dataclass(kw_only=True, eq=False, repr=False)
class OnlineClassification(NeighbourQueryModel):
    """A picture is scored by the five clicked pictures it resembles most.

    With w(xᵢ) = Σ_j log(click_ij)·Jaccard(q, q_j) over the log queries most similar to q, and N(x) the five of these
    pictures with the largest cosine to x,

        f(x, q) = (1/5) Σ_{xᵢ ∈ N(x)} cos(x, xᵢ)·w(xᵢ).

    Which pictures count depends on x, so that no point of the query exists: the model scores, but cannot be indexed.

    One of the two alternatives that Dong et al., "Cross-media similarity evaluation for web image retrieval in the
    wild", TMM 2018, compare with text2image. That five pictures are used is theirs; how they are weighted is ours. Use
    it to score again a short list of candidates, where a query has several looks.

    Parameters
    ----------
    n_neighbours, min_similarity, clicks
        As in :class:`Text2Image`.
    n_images : int
        Pictures that are looked at; all where there are fewer.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.data.clicks import ClickLog
    >>> from diptych.models import OnlineClassification
    >>> log = ClickLog.from_triads(["boat", "boat", "cat"], ["1.jpg", "2.jpg", "3.jpg"], [3, 1, 2])
    >>> model = OnlineClassification(n_images=1).fit_clicks(log, np.eye(3))
    >>> model.scores(["boats"], np.eye(3)).round(2)
    array([[1.39, 0.69, 0.  ]], dtype=float32)
    """

    is_indexable: ClassVar[bool] = False
    why_no_points: ClassVar[str] = "which clicked pictures count depends on the picture that is scored"
    when_to_use: ClassVar[str] = "Short lists of candidates for queries with several looks; cannot be indexed."

    n_images: Count = 5

    def _scores(self, queries: Sequence[str], images: FloatArray) -> FloatArray:
        units = unit_rows(images.astype(np.float32, copy=False))
        scores = np.zeros((len(queries), len(images)), dtype=np.float32)
        for number, query in enumerate(queries):
            clicked = self._clicked(query)
            if len(clicked.rows) == 0:
                continue
            candidates = self.images_[clicked.rows]
            for rows in row_blocks(len(units), _BLOCK_NUMBERS // len(candidates)):
                scores[number, rows] = _mean_of_closest(units[rows] @ candidates.T, clicked.weights, self.n_images)
        return scores


def _mean_of_closest(cosines: FloatArray, weights: FloatArray, count: int) -> FloatArray:
    """Return the mean of cosine times weight over the ``count`` largest cosines of each row."""
    count = min(count, len(weights))
    closest = np.argpartition(-cosines, count - 1, axis=1)[:, :count]
    return np.asarray((np.take_along_axis(cosines, closest, axis=1) * weights[closest]).mean(axis=1))
