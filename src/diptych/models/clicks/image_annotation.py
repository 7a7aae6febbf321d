from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import scipy

from diptych.arrays import FloatArray, IntArray
from diptych.encoders.text.word_pipeline import clean_query
from diptych.models.clicks._logged_clicks import ClickScale
from diptych.models.clicks.image2text import Image2Text


class ImageAnnotation(Image2Text):
    """A picture is annotated with the words that similar pictures were clicked for, and scored by a query's words.

    With x₁ … x_k the log pictures nearest to x in Euclidean distance, and q_i1 … q_im the queries xᵢ was clicked for, a
    word w weighs

        a(x, w) ∝ Σᵢ 1/(1 + ‖x − xᵢ‖) Σ_{j: w ∈ q_ij} log(click_ij),   Σ_w a(x, w) = 1,

    and the score is the mean weight of a query's words, f(x, q) = (1/|q|) Σ_{w ∈ q} a(x, w). `Image2Text` compares
    whole queries with one another; here what was clicked falls apart into words first, so that a long query of the log
    counts for each of its words alike.

    It is the variant of image2text that the code of Dong et al., "Cross-media similarity evaluation for web image
    retrieval in the wild", TMM 2018, has beside the one that the paper prints.

    Use it where queries are single words, or to see which words a picture would get (`annotation`). It scores lists of
    candidates: as an inner product the score has one coordinate per word of the log.

    Parameters
    ----------
    n_neighbours, max_queries, clicks
        As in :class:`Image2Text`.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.data.clicks import ClickLog
    >>> from diptych.models import ImageAnnotation
    >>> log = ClickLog.from_triads(["red boat", "cat"], ["1.jpg", "2.jpg"], [3, 2])
    >>> model = ImageAnnotation(n_neighbours=1).fit_clicks(log, np.eye(2))
    >>> model.scores(["boat", "red cats", "tree"], np.eye(2)).round(2)
    array([[0.5 , 0.  ],
           [0.25, 0.5 ],
           [0.  , 0.  ]], dtype=float32)
    >>> model.annotation([1.0, 0.1])
    [('boat', 0.5), ('red', 0.5)]
    """

    image_similarity = "inv_dist"
    why_no_points: ClassVar[str] = "a point would have one coordinate per word of the log"
    when_to_use: ClassVar[str] = "Scoring candidates for single words, and naming what a picture shows."

    def __init__(self, *, n_neighbours: int = 50, max_queries: int = 30, clicks: ClickScale = "log1p") -> None:
        self.n_neighbours = n_neighbours
        self.max_queries = max_queries
        self.clicks = clicks

    def annotation(self, image: FloatArray | Sequence[float], count: int = 10) -> list[tuple[str, float]]:
        """Return the heaviest words of a picture, given its features, with their weights; all weights sum to one."""
        self._check_fitted()
        near = self._image_parts(np.atleast_2d(np.asarray(image, dtype=np.float32)))
        weights = (self._shares @ near).toarray()[:, 0]
        order = np.lexsort((self.words_, -weights))[:count]
        return [(self.words_[row], float(weights[row])) for row in order if weights[row] > 0]

    def _image_parts(self, images: FloatArray) -> scipy.sparse.csr_array:
        """Return the (log pictures, images) matrix of 1/(1 + ‖x − xᵢ‖), each column so that its words sum to one."""
        near = super()._image_parts(images)
        total = self._shares.sum(axis=0) @ near
        return near.multiply(1 / np.where(total > 0, total, 1.0)).tocsr()

    def _similarities(self, images: FloatArray, rows: IntArray, distances: FloatArray) -> FloatArray:
        return np.asarray(1 / (1 + distances.astype(np.float64)))

    def _text_parts(self, queries: Sequence[str]) -> scipy.sparse.csr_array:
        """Return the (queries, log pictures) mean weights of a query's words."""
        words = [set(clean_query(query)) for query in queries]
        rows = [[self._sets.row_of[word] for word in asked if word in self._sets.row_of] for asked in words]
        offsets = np.cumsum([0, *map(len, rows)])
        shares = np.repeat([1 / max(1, len(asked)) for asked in words], np.diff(offsets))
        columns = np.fromiter((row for each in rows for row in each), dtype=np.int64, count=offsets[-1])
        return scipy.sparse.csr_array((shares, columns, offsets), shape=(len(queries), len(self.words_))) @ self._shares

    def _counted(self, table: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
        """Return the (words, log pictures) sums of log(click_ij) over the queries of each picture that count."""
        held = (np.ones(len(self.set_words_)), self.set_words_, self.set_offsets_)
        holds = scipy.sparse.csr_array(held, shape=(len(self._sets), len(self.words_)))
        counts = np.minimum(np.bincount(self.clicked_images_, minlength=len(self.images_)), self.max_queries)
        return holds.T @ super()._counted(table).multiply(counts).tocsr()
