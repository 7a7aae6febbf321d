"""How two points of the common space compare."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from diptych.arrays import AnyArray, FloatArray, row_blocks, unit_rows
from diptych.directions import DIRECTION_NAMES as DIRECTION_NAMES
from diptych.directions import DIRECTIONS as DIRECTIONS
from diptych.directions import SEARCH_DIRECTIONS as SEARCH_DIRECTIONS
from diptych.directions import Direction as Direction
from diptych.directions import SearchDirection as SearchDirection
from diptych.directions import opposite as opposite
from diptych.errors import InvalidInputError, UnknownNameError

_PROBABILITY_FLOOR = 1e-12


@dataclass(frozen=True)
class IndexForm:
    """What an index stores and asks so that its ranking equals the space's.

    ``metric`` is the engine's metric: ``inner_product`` (larger is better), ``l2`` or ``hamming`` (smaller is better).
    """

    metric: Literal["inner_product", "l2", "hamming"]
    queries: Callable[[AnyArray], AnyArray]
    gallery: Callable[[AnyArray], AnyArray]


@dataclass(frozen=True)
class Space:
    """A named way to compare points; larger scores are better.

    =============== ===========================================================================================
    ``cosine``      normalised correlation, NC of Costa Pereira et al. (2014)
    ``pearson``     centred normalised correlation, NCc: each point is centred by the mean of its own entries
    ``covariance``  the numerator of ``pearson`` alone, as in the code its authors released
    ``dot``         inner product
    ``corrected``   inner product, between a picture and a text less the correction of the one that is found: the last
                    coordinates of a point are its correction and its side, 1 for pictures and −1 for texts
    ``euclidean``   minus the squared Euclidean distance, ℓ2
    ``l1``          minus the sum of absolute differences, ℓ1
    ``kl``          minus KL(image ‖ text) of probability vectors, in both directions
    ``kl_query``    minus KL(query ‖ item)
    ``noisy_or``    −Σ log(1 − pᵢqᵢ): grows with the probability of sharing at least one label
    ``hamming``     minus the number of differing bits of packed ``uint8`` codes
    =============== ===========================================================================================

    ``split`` is for methods whose two directions live in two different spaces (regression "both ways"): an image
    query compares the first ``split`` coordinates, a text query the others. The papers' symbols ``NC``, ``NCc``, ``l2``
    and ``KL`` are understood as well.

    >>> import numpy as np
    >>> from diptych import Space
    >>> Space("cosine").compare(np.array([[1.0, 0.0]]), np.array([[2.0, 0.0], [0.0, 3.0]]))
    array([[1., 0.]])
    """

    name: str
    split: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise InvalidInputError(f"the name of a space is a string, got {self.name!r}; known: {', '.join(_SCORES)}")
        object.__setattr__(self, "name", _ALIASES.get(self.name, self.name))
        if self.name not in _SCORES:
            raise UnknownNameError("space", self.name, _SCORES)
        if self.split is not None and self.split < 1:
            raise InvalidInputError(f"split must be at least 1, got {self.split}")

    def compare(self, queries: AnyArray, gallery: AnyArray, direction: Direction = "image_query") -> FloatArray:
        """Return the (queries, gallery) matrix of scores, larger is better.

        ``direction`` says which side the queries are; only ``kl`` and split spaces depend on it.
        """
        if direction not in DIRECTIONS:
            raise InvalidInputError(f"direction must be one of {', '.join(DIRECTIONS)}, got {direction!r}")
        queries, gallery = self._part(queries, direction), self._part(gallery, direction)
        if queries.shape[1] != gallery.shape[1]:
            raise InvalidInputError(
                f"points of one space have one width, got {queries.shape[1]} and {gallery.shape[1]} columns"
            )
        if self.name == "kl" and direction == "text_query":
            return _SCORES["kl"](gallery, queries).T
        return _SCORES[self.name](queries, gallery)

    def blocks(
        self,
        queries: AnyArray,
        gallery: AnyArray,
        direction: Direction = "image_query",
        *,
        memory: int = 1 << 28,
    ) -> Iterator[tuple[slice, FloatArray]]:
        """Yield (rows, scores of these queries) so that no block of scores exceeds ``memory`` bytes.

        A block is never smaller than one query against the whole gallery.
        """
        for rows in row_blocks(len(queries), memory // (8 * max(1, len(gallery)))):
            yield rows, self.compare(queries[rows], gallery, direction)

    def indexable(self, direction: Direction = "image_query") -> IndexForm | None:
        """Return the equivalent vectors and engine metric, or None when only exact scoring can serve the space."""
        form = _index_form(self.name, direction)
        if form is None or self.split is None:
            return form
        return IndexForm(
            form.metric,
            lambda points: form.queries(self._part(points, direction)),
            lambda points: form.gallery(self._part(points, direction)),
        )

    def _part(self, points: AnyArray, direction: Direction) -> AnyArray:
        points = np.asarray(points)
        if self.name != "hamming" and points.dtype not in (np.float32, np.float64):
            # Products of small integers wrap around.
            points = points.astype(np.float64)
        if points.ndim != 2:
            raise InvalidInputError(f"points must be a matrix, one per row, got {points.ndim} dimensions")
        if self.split is None:
            return points
        return points[:, : self.split] if direction == "image_query" else points[:, self.split :]


def on_one_scale(weights: FloatArray, vectors: AnyArray, slopes: Sequence[float]) -> FloatArray:
    """Return weights for the unit vectors of a query's terms that make a score of one kind count like one of another.

    Two pictures score higher than a text and a picture that are as much alike, so a picture would drown words beside
    it. ``slopes`` say how much evidence a unit of each term's score is, ``vectors`` are the terms as an index is asked.
    A unit vector counts its slope times the usual length of the vectors with that slope, relative to the largest of
    these. Terms of one slope keep their weights.

    >>> on_one_scale(np.array([1.0, 2.0, 1.0]), np.eye(3), [20.0, 20.0, 5.0]).tolist()
    [1.0, 2.0, 0.25]
    """
    kinds = np.asarray(slopes, dtype=np.float64)
    if (kinds == kinds[0]).all():
        return weights
    lengths = np.linalg.norm(np.asarray(vectors, dtype=np.float64), axis=1)
    scales = np.zeros(len(kinds))
    for slope in np.unique(kinds):
        of_kind = kinds == slope
        # A zero vector says nothing, and nothing about the others either.
        scales[of_kind] = slope * lengths[of_kind].sum() / max(1, np.count_nonzero(lengths[of_kind]))
    return np.asarray(weights * scales / scales.max() if scales.max() > 0 else weights)


def _dot(queries: FloatArray, gallery: FloatArray) -> FloatArray:
    return cast(FloatArray, queries @ gallery.T)


def _centred(points: FloatArray) -> FloatArray:
    return np.asarray(points - points.mean(axis=1, keepdims=True))


def _cosine(queries: FloatArray, gallery: FloatArray) -> FloatArray:
    return _dot(unit_rows(queries), unit_rows(gallery))


def _centred_unit(points: FloatArray) -> FloatArray:
    """Centre and normalise; a constant point has no shape to correlate with and becomes zero."""
    centred = _centred(points)
    # Rounding leaves about eps·|x| in a constant row; normalising that residue would invent a direction.
    noise = 4 * np.finfo(centred.dtype).eps * np.abs(points).max(axis=1, keepdims=True)
    return unit_rows(np.where(np.abs(centred).max(axis=1, keepdims=True) <= noise, 0, centred))


def _pearson(queries: FloatArray, gallery: FloatArray) -> FloatArray:
    return _dot(_centred_unit(queries), _centred_unit(gallery))


def _covariance(queries: FloatArray, gallery: FloatArray) -> FloatArray:
    return np.asarray(_dot(_centred(queries), _centred(gallery)) / queries.shape[1])


def _corrected_query(points: FloatArray) -> FloatArray:
    vectors, _, side = np.split(points, [-2, -1], axis=1)
    return np.hstack([vectors, np.full_like(side, -0.5), side / 2])


def _corrected_gallery(points: FloatArray) -> FloatArray:
    vectors, correction, side = np.split(points, [-2, -1], axis=1)
    return np.hstack([vectors, correction, side * correction])


def _corrected(queries: FloatArray, gallery: FloatArray) -> FloatArray:
    if queries.shape[1] < 3:
        raise InvalidInputError("points of the space corrected end in a correction and a side, got no vector before")
    # (1 − σ σ')/2 is 1 between the sides and 0 within one, so that the whole is one inner product.
    return _dot(_corrected_query(queries), _corrected_gallery(gallery))


def _euclidean(queries: FloatArray, gallery: FloatArray) -> FloatArray:
    # The expansion cancels, which float32 cannot afford.
    queries, gallery = queries.astype(np.float64, copy=False), gallery.astype(np.float64, copy=False)
    squares = (queries**2).sum(axis=1)[:, None] + (gallery**2).sum(axis=1)
    return np.asarray(np.minimum(2 * _dot(queries, gallery) - squares, 0))


def _l1(queries: FloatArray, gallery: FloatArray) -> FloatArray:
    # SciPy is imported here alone, so that importing the package and asking for help stay instant.
    from scipy.spatial.distance import cdist

    return np.asarray(-cdist(queries, gallery, "cityblock"))


def _check_probabilities(points: FloatArray) -> None:
    if (points < 0).any():
        raise InvalidInputError("this space compares probabilities, but the points have negative entries")


def _log_floored(points: FloatArray) -> FloatArray:
    floored = np.maximum(points, _PROBABILITY_FLOOR)
    return np.asarray(np.log(floored / floored.sum(axis=1, keepdims=True)))


def _negative_entropy(points: FloatArray) -> FloatArray:
    return np.asarray((points * np.log(np.where(points > 0, points, 1.0))).sum(axis=1, keepdims=True))


def _kl(queries: FloatArray, gallery: FloatArray) -> FloatArray:
    _check_probabilities(queries)
    _check_probabilities(gallery)
    return np.asarray(_dot(queries, _log_floored(gallery)) - _negative_entropy(queries))


def _noisy_or(queries: FloatArray, gallery: FloatArray) -> FloatArray:
    _check_probabilities(queries)
    _check_probabilities(gallery)
    queries, gallery = queries.astype(np.float64, copy=False), gallery.astype(np.float64, copy=False)
    scores = np.zeros((len(queries), len(gallery)))
    for component in range(queries.shape[1]):
        both = np.outer(queries[:, component], gallery[:, component])
        scores -= np.log1p(-np.minimum(both, 1 - _PROBABILITY_FLOOR))
    return scores


def _hamming(queries: AnyArray, gallery: AnyArray) -> FloatArray:
    if queries.dtype != np.uint8 or gallery.dtype != np.uint8:
        raise InvalidInputError(
            f"hamming compares packed uint8 codes (np.packbits), got {queries.dtype} and {gallery.dtype}"
        )
    scores = np.zeros((len(queries), len(gallery)), dtype=np.float32)
    for byte in range(queries.shape[1]):
        scores -= np.bitwise_count(queries[:, byte, None] ^ gallery[:, byte])
    return scores


_SCORES: dict[str, Callable[[AnyArray, AnyArray], FloatArray]] = {
    "cosine": _cosine,
    "pearson": _pearson,
    "covariance": _covariance,
    "dot": _dot,
    "corrected": _corrected,
    "euclidean": _euclidean,
    "l1": _l1,
    "kl": _kl,
    "kl_query": _kl,
    "noisy_or": _noisy_or,
    "hamming": _hamming,
}

SPACE_NAMES: tuple[str, ...] = tuple(_SCORES)

# The symbols of Costa Pereira et al. (2014), Table IV.
_ALIASES = {"l2": "euclidean", "NC": "cosine", "NCc": "pearson", "KL": "kl", "CC": "covariance"}


def _unchanged(points: AnyArray) -> AnyArray:
    return points


def _kl_first(points: AnyArray) -> AnyArray:
    return np.hstack([points, -_negative_entropy(points)])


def _kl_second(points: AnyArray) -> AnyArray:
    return np.hstack([_log_floored(points), np.ones((len(points), 1), dtype=points.dtype)])


def _index_form(name: str, direction: Direction) -> IndexForm | None:
    forms: dict[str, IndexForm] = {
        "cosine": IndexForm("inner_product", unit_rows, unit_rows),
        "pearson": IndexForm("inner_product", _centred_unit, _centred_unit),
        "covariance": IndexForm("inner_product", _centred, _centred),
        "dot": IndexForm("inner_product", _unchanged, _unchanged),
        "corrected": IndexForm("inner_product", _corrected_query, _corrected_gallery),
        "euclidean": IndexForm("l2", _unchanged, _unchanged),
        "hamming": IndexForm("hamming", _unchanged, _unchanged),
        # −KL(p‖q) = [p, H(p)]·[log q, 1], so even an asymmetric divergence is an inner product.
        "kl_query": IndexForm("inner_product", _kl_first, _kl_second),
        "kl": IndexForm("inner_product", _kl_first, _kl_second)
        if direction == "image_query"
        else IndexForm("inner_product", _kl_second, _kl_first),
    }
    return forms.get(name)
