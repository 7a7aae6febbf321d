from __future__ import annotations

from typing import ClassVar

import numpy as np

from diptych.models.clicks._logged_clicks import ClickScale, NeighbourQueryModel, WeightedImages


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

    def __init__(self, *, n_neighbours: int = 30, min_similarity: float = 0.3, clicks: ClickScale = "log1p") -> None:
        self.n_neighbours = n_neighbours
        self.min_similarity = min_similarity
        self.clicks = clicks

    def _weighted_images(self, query: str) -> WeightedImages:
        found, similarities = self._neighbours(query)
        lists = [self._clicks_of(number) for number in found]
        counts = np.array([len(part.rows) for part in lists])
        return WeightedImages.added(lists, similarities / (max(1, len(lists)) * np.maximum(counts, 1)))
