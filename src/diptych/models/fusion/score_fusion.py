"""Scores of several models as one, with weights that are given or that maximise a measure one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from diptych.arrays import AnyArray, FloatArray
from diptych.errors import InvalidInputError
from diptych.estimators import BaseEstimator
from diptych.metrics import NDCG, Measure
from diptych.models.fusion._ranked_lists import RankedLists
from diptych.models.parameters import Count, NonNegative, check_choice, check_parameters
from diptych.space import IndexForm, Space


def given_weights(weights: str | Sequence[float] | FloatArray, n_parts: int) -> FloatArray:
    """Return one number for each part, not all zero; ``average`` stands for equal ones that sum to 1.

    >>> from diptych.models.fusion.score_fusion import given_weights
    >>> given_weights("average", 4).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    if isinstance(weights, str):
        if weights != "average":
            raise InvalidInputError(f"weights must be 'average' or one number for each part, got {weights!r}")
        return np.full(n_parts, 1 / n_parts)
    values = np.asarray(weights, dtype=np.float64)
    if values.shape != (n_parts,):
        raise InvalidInputError(f"give one weight for each part, got {values.size} for {n_parts}")
    if not np.isfinite(values).all() or not values.any():
        raise InvalidInputError("weights must be finite numbers, at least one of them other than 0")
    return values


Rescale = Literal["sigmoid", "zscore", "zscore_sigmoid", "none"]


def fuse_scores(
    scores: Sequence[ArrayLike],
    weights: Literal["average"] | Sequence[float] | FloatArray = "average",
    rescale: Rescale = "sigmoid",
) -> FloatArray:
    """Return the late fusion Σ λᵢ ρ(sᵢ) of the scores that several models give to the same items.

    ``scores`` has one array for each model, all of one shape, such as (queries, items); larger is better. ``weights``
    are λ, all equal for ``average``. ``rescale`` chooses ρ:

    * ``sigmoid``: 1/(1 + e⁻ˢ), as Dong et al. (2018, equation 12) write it; scores of a large scale saturate;
    * ``zscore``: (s − mean)/deviation over all scores of that model;
    * ``zscore_sigmoid``: the one after the other;
    * ``none``: scores as they are, as in the script that Dong et al. released.

    Use it for models of any kind. Where all of them compare points by inner products, `FusedModel` gives the same
    order (with ``zscore`` or ``none``) and can be indexed.

    >>> from diptych.models import fuse_scores
    >>> fuse_scores([[1.0, 3.0], [10.0, 0.0]], rescale="none").tolist()
    [5.5, 1.5]
    >>> fuse_scores([[1.0, 3.0], [10.0, 0.0]], weights=[0.9, 0.1], rescale="zscore").round(6).tolist()
    [-0.8, 0.8]
    """
    try:
        arrays = [np.asarray(values, dtype=np.float64) for values in scores]
    except (TypeError, ValueError):
        raise InvalidInputError("scores must be numbers, one array for each model") from None
    if not arrays:
        raise InvalidInputError("there are no scores to fuse; give one array for each model")
    if any(array.shape != arrays[0].shape for array in arrays):
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise InvalidInputError(f"all models score the same items, but the arrays have the shapes {shapes}")
    if not all(np.isfinite(array).all() for array in arrays):
        raise InvalidInputError("the scores hold NaN or infinity; leave those items out")
    check_choice("rescale", rescale, tuple(_RESCALINGS))
    total = np.zeros(arrays[0].shape)
    for weight, array in zip(given_weights(weights, len(arrays)), arrays, strict=True):
        total += weight * _RESCALINGS[rescale](array)
    return total


def _sigmoid(values: FloatArray) -> FloatArray:
    # The half of tanh never overflows.
    return np.asarray(0.5 * (1 + np.tanh(values / 2)))


def _zscore(values: FloatArray) -> FloatArray:
    deviation = float(values.std())
    return np.asarray((values - values.mean()) / deviation if deviation > 0 else np.zeros_like(values))


_RESCALINGS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "sigmoid": _sigmoid,
    "zscore": _zscore,
    "zscore_sigmoid": lambda values: _sigmoid(_zscore(values)),
    "none": lambda values: values,
}


@dataclass(frozen=True)
class LinearForm:
    """Turns points of a space into vectors whose inner product is the space's score, in both directions.

    A cosine is the inner product of unit vectors, a Pearson correlation that of centred unit vectors, and minus the
    divergence −KL(p‖q) = [p, H(p)]·[log q, 1] one as well. A corrected score is one less the corrections of both sides.

    >>> import numpy as np
    >>> from diptych import Space
    >>> from diptych.models.fusion.score_fusion import LinearForm
    >>> images, texts = np.array([[3.0, 4.0]]), np.array([[5.0, 0.0]])
    >>> form = LinearForm.of(Space("cosine"), "CCA")
    >>> (form.images(images) @ form.texts(texts).T).round(6).tolist(), Space("cosine").compare(images, texts).tolist()
    ([[0.6]], [[0.6]])
    """

    form: IndexForm
    is_mean: bool
    is_corrected: bool

    @classmethod
    def of(cls, space: Space, name: str) -> LinearForm:
        """Return the form of a space, or say what to do with a part whose scores are no inner products."""
        form = space.indexable("image_query")
        # A split space compares other coordinates in each direction, kl_query changes its roles with the query.
        linear = form is not None and form.metric == "inner_product" and space.name != "kl_query"
        if form is None or not linear or space.split is not None:
            kind = f"split {space.name}" if space.split is not None else space.name
            raise InvalidInputError(
                f"the scores of part {name!r} ({kind}) are no inner products, so it cannot stand beside others in one "
                "space; fuse its scores with fuse_scores, or give it the metric cosine or dot"
            )
        return cls(form, space.name == "covariance", space.name == "corrected")

    def images(self, points: AnyArray) -> FloatArray:
        """Return the vectors of pictures."""
        if self.is_corrected:
            # Whichever side is asked, the order of its answers depends on their own corrections alone.
            return np.column_stack([_floating(points[:, :-1]), np.ones(len(points), points.dtype)])
        vectors = _floating(self.form.queries(_floating(points)))
        return vectors / vectors.dtype.type(vectors.shape[1]) if self.is_mean else vectors

    def texts(self, points: AnyArray) -> FloatArray:
        """Return the vectors of texts."""
        if self.is_corrected:
            vectors = _floating(points[:, :-2])
            return np.column_stack([vectors, -np.ones(len(points), points.dtype), -points[:, -2]])
        return _floating(self.form.gallery(_floating(points)))


def _floating(points: AnyArray) -> FloatArray:
    return points if points.dtype in (np.float32, np.float64) else points.astype(np.float64)


@dataclass(frozen=True)
class AscentReport:
    """One pass over all parts: which restart and which pass of it, the measure reached, and the weights then.

    >>> from diptych.models.fusion import AscentReport
    >>> AscentReport(restart=1, passes=2, value=0.5, weights=(0.75, 0.25)).value
    0.5
    """

    restart: int
    passes: int
    value: float
    weights: tuple[float, ...]


Starts = Literal["uniform", "random"]
_FIRST_STEP, _FIRST_SHARE = 0.001, 0.05
# Values closer than this differ by rounding alone.
_EQUAL = 1e-12
_NDCG = NDCG()


@dataclass(kw_only=True, eq=False, repr=False)
class CoordinateAscent(BaseEstimator):
    """Learns the weights λ of a linear fusion f = Σ λᵢ fᵢ by maximising a measure of its rankings.

    A measure such as average precision has no gradient in the weights, so one weight is changed while the others stand
    still: steps of 0.001, 0.002, 0.004, … are added up, first upwards, then downwards, then the weight is set to zero;
    the first direction that brings a better value is taken, to its best point. Parts are visited in random order until
    a pass over all gains less than ``tolerance``; Σ |λᵢ| = 1 after each change. This schedule is that of RankLib;
    weights below zero, which it allows, are an option here. The best weights of several searches are kept, of equal
    ones those nearest to equal weights: they are never worse than the average on the queries they were learned from.

    Use it for a handful of parts and at least some dozens of judged queries, and bring the parts to a similar scale
    first, as `fuse_scores` does; look at the result on other queries.

    Parameters
    ----------
    measure : Measure
        What to maximise: any measure of `diptych.metrics`; ranks are minimised.
    restarts : int
        Searches, each with its own order of visits.
    tolerance : float
        Least gain of a pass that is worth another one.
    starts : {"uniform", "random"}
        Where searches start: all at equal weights, or all but the first at random ones.
    negative : bool
        Whether a part may count against a candidate.
    trials : int
        Steps in each direction, each twice as long as the one before.
    random_state : int
        Of the orders and of random starts.

    Attributes
    ----------
    weights_ : array
        One weight for each part, Σ |λᵢ| = 1.
    value_, average_value_ : float
        The measure at these weights and at equal ones.
    n_trials_ : int
        Different weights that were tried.

    References
    ----------
    Metzler and Croft, "Linear feature-based models for information retrieval", Information Retrieval 2007; used for
    fusion by Dong et al., "Cross-media similarity evaluation for web image retrieval in the wild", TMM 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.metrics import AP
    >>> from diptych.models import CoordinateAscent
    >>> rng = np.random.default_rng(0)
    >>> grades = [rng.integers(0, 2, 20) for _ in range(30)]
    >>> scores = [np.stack([wanted + rng.normal(size=20), rng.normal(size=20)]) for wanted in grades]
    >>> ascent = CoordinateAscent(measure=AP()).fit(scores, grades)
    >>> bool(ascent.weights_[0] > ascent.weights_[1]), bool(ascent.value_ >= ascent.average_value_)
    (True, True)
    """

    measure: Measure = _NDCG
    restarts: Count = 5
    tolerance: NonNegative = 1e-3
    starts: Starts = "uniform"
    negative: bool = False
    trials: Count = 25
    random_state: int = 0

    def fit(
        self,
        scores: Sequence[ArrayLike],
        grades: Sequence[ArrayLike],
        *,
        progress: Callable[[AscentReport], None] | None = None,
    ) -> Self:
        """Learn from one (parts, candidates) matrix of scores and one list of grades for each query.

        Grades above zero are relevant; queries may have different candidates. ``progress`` is called after each pass.
        """
        self._check()
        lists = RankedLists.of(scores, grades)
        landscape = _MeasureByWeights(lists, self.measure)
        uniform = np.full(lists.n_parts, 1 / lists.n_parts)
        rng = np.random.default_rng(self.random_state)
        best = uniform
        for restart in range(1, self.restarts + 1):
            start = uniform if restart == 1 or self.starts == "uniform" else rng.dirichlet(np.ones(lists.n_parts))
            reached = self._climb(landscape, start, rng, restart, progress)
            best = min(best, reached, key=lambda at: (-round(landscape.value(at), 11), np.abs(at - uniform).sum()))
        self.weights_ = best
        self.value_, self.average_value_ = landscape.measured(best), landscape.measured(uniform)
        self.n_trials_ = len(landscape.known)
        return self

    def _climb(
        self,
        landscape: _MeasureByWeights,
        weights: FloatArray,
        rng: np.random.Generator,
        restart: int,
        progress: Callable[[AscentReport], None] | None,
    ) -> FloatArray:
        """Return where one search ends."""
        value, gain, passes = landscape.value(weights), np.inf, 0
        while gain >= self.tolerance and len(weights) > 1:
            before = value
            for part in rng.permutation(len(weights)):
                weights, value = self._best_on_line(landscape, weights, value, int(part))
            gain, passes = value - before, passes + 1
            if progress is not None:
                shown = tuple(float(weight) for weight in weights)
                progress(AscentReport(restart, passes, landscape.measured(weights), shown))
            if gain <= _EQUAL:
                break
        return weights

    def _best_on_line(
        self, landscape: _MeasureByWeights, weights: FloatArray, value: float, part: int
    ) -> tuple[FloatArray, float]:
        """Return the weights after one part's turn, and their value."""
        fused = landscape.lists.fused(weights)
        for changes in self._directions(float(weights[part])):
            best, best_value = weights, value
            for change in changes:
                trial = weights.copy()
                trial[part] += change
                if not self.negative and trial[part] < 0:
                    break
                if not np.abs(trial).sum() > _EQUAL:
                    continue
                trial_value = landscape.value(trial, partial(landscape.lists.moved, fused, part, float(change)))
                if trial_value > best_value + _EQUAL:
                    best, best_value = trial, trial_value
            if best_value > value:
                return best / np.abs(best).sum(), best_value
        return weights, value

    def _directions(self, weight: float) -> Iterator[FloatArray]:
        """Yield the changes to try upwards, downwards, and to zero."""
        # A weight that is small for the first step gets shorter ones.
        step = _FIRST_SHARE * abs(weight) if weight and abs(weight) / 2 < _FIRST_STEP else _FIRST_STEP
        # Steps double, and their sums are 1, 3, 7, … times the first.
        lengths = step * (2.0 ** np.arange(1, self.trials + 1) - 1)
        yield lengths
        yield -lengths
        if weight:
            yield np.array([-weight])

    def _check(self) -> None:
        check_parameters(self)
        if not isinstance(self.measure, Measure):
            raise InvalidInputError(f"measure must be one of diptych.metrics such as AP(), got {self.measure!r}")


class _MeasureByWeights:
    """The measure over all weights; a direction that was asked before is remembered."""

    def __init__(self, lists: RankedLists, measure: Measure) -> None:
        self.lists = lists
        self._measure = measure
        self._sign = -1.0 if lists.is_cost(measure) else 1.0
        self.known: dict[tuple[float, ...], float] = {}

    def value(self, weights: FloatArray, fused: Callable[[], list[FloatArray]] | None = None) -> float:
        """Return the measure at ``weights``, larger is better; ``fused`` makes their sums where that is cheaper."""
        key = tuple((weights / np.abs(weights).sum()).round(12).tolist())
        if key not in self.known:
            sums = self.lists.fused(weights) if fused is None else fused()
            self.known[key] = self._sign * self.lists.value(sums, self._measure)
        return self.known[key]

    def measured(self, weights: FloatArray) -> float:
        return float(self._sign * self.value(weights))
