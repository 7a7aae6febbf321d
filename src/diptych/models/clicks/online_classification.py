from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from diptych.arrays import FloatArray, row_blocks, unit_rows
from diptych.models.base import check_count
from diptych.models.clicks._logged_clicks import ClickScale, NeighbourQueryModel

# Numbers in a block of cosines.
_BLOCK_NUMBERS = 1 << 23


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

    def __init__(
        self, *, n_neighbours: int = 30, n_images: int = 5, min_similarity: float = 0.3, clicks: ClickScale = "log1p"
    ) -> None:
        self.n_neighbours = n_neighbours
        self.n_images = n_images
        self.min_similarity = min_similarity
        self.clicks = clicks

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_images", self.n_images)

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
