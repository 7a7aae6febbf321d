"""What was wanted for a query, told from noise by how often a look ends in a click, and remembered."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
import scipy
from scipy.special import expit

from diptych.arrays import AnyArray, FloatArray, IntArray, as_matrix, row_blocks, unit_rows
from diptych.data.clicks import ClickLog
from diptych.encoders.text.word_pipeline import clean_query
from diptych.errors import InvalidInputError
from diptych.models.clicks.click_model import ClickModel, WordSets
from diptych.models.parameters import Count, Fraction, NonNegative, Positive

_LEAST_CHANCE = 1e-9
_APART = 2.0
_SHARE_ROUNDS = 20


@dataclass(kw_only=True, eq=False, repr=False)
class ClickMixture:
    """Wanted and unwanted items, told apart by how often a look at them ends in a click.

    An item with e looks is clicked c times, c ~ Poisson(ρ·e) if it is wanted and Poisson(ε·e) if not; a share π of the
    items is wanted. Expectation maximisation (Dempster, Laird & Rubin, 1977) estimates ``wanted_rate_`` ρ,
    ``noise_rate_`` ε and ``share_`` π, and Bayes' rule then says how likely an item is wanted. One click says the same
    whether ten looks or a tenth of one were expected where it happened; a rate c/e does not.

    Parameters
    ----------
    n_iterations : int
        At most so many rounds.
    tolerance : float
        Stop when no estimate changes by more, relatively.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models.clicks.query_memory import ClickMixture
    >>> clicks, looks = np.array([8.0, 9.0, 1.0, 1.0, 0.0, 0.0]), np.full(6, 10.0)
    >>> mixture = ClickMixture().fit(clicks, looks)
    >>> round(mixture.wanted_rate_, 2), round(mixture.noise_rate_, 2), mixture.wanted(clicks, looks).round(2).tolist()
    (0.85, 0.05, [1.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    """

    n_iterations: int = 500
    tolerance: float = 1e-6

    def fit(self, clicks: FloatArray, looks: FloatArray) -> Self:
        """Estimate the rates from the clicks and looks of items."""
        mean = max(float(clicks.sum() / max(looks.sum(), _LEAST_CHANCE)), _LEAST_CHANCE)
        values = np.array([4 * mean, mean / 2, 0.2])
        for _ in range(self.n_iterations):
            self.wanted_rate_, self.noise_rate_, self.share_ = values.tolist()
            weight = self._posterior(clicks, looks, self.share_)
            new = np.array([_rate(weight, clicks, looks), _rate(1 - weight, clicks, looks), weight.mean()])
            new = np.clip(new, _LEAST_CHANCE, [np.inf, np.inf, 1 - _LEAST_CHANCE])
            change = float(np.abs(new / values - 1).max())
            values = new
            if change < self.tolerance:
                break
        self.wanted_rate_, self.noise_rate_, self.share_ = values.tolist()
        return self

    def wanted(self, clicks: FloatArray, looks: FloatArray) -> FloatArray:
        """Return how likely each item is wanted; 0 for all where the two kinds are hardly different."""
        if self.wanted_rate_ < _APART * self.noise_rate_:
            return np.zeros(len(clicks))
        return self._posterior(clicks, looks, self.share_)

    def surplus(
        self, clicks: FloatArray, looks: FloatArray, groups: IntArray, *, prior: float = 10.0, shape: float = 3.0
    ) -> FloatArray:
        """Return how much likelier each item is wanted than the items of its group (a query) on the whole.

        The share of wanted items in a group is estimated as if it had ``prior`` items more, of the common share. Items
        of one kind are not all alike: their rates are taken to follow a Gamma distribution of this ``shape`` around ρ
        or ε, which makes c negative binomial, so that many looks at a rate between both do not decide. Kinds that are
        hardly different give values near 0.
        """
        sizes = np.bincount(groups)
        shares = np.full(len(sizes), self.share_)
        for _ in range(_SHARE_ROUNDS):
            likely = self._posterior(clicks, looks, shares[groups], shape)
            found = np.bincount(groups, likely, len(sizes))
            shares = np.clip((found + prior * self.share_) / (sizes + prior), _LEAST_CHANCE, 1 - _LEAST_CHANCE)
        return np.asarray(self._posterior(clicks, looks, shares[groups], shape) - shares[groups])

    def _posterior(
        self, clicks: FloatArray, looks: FloatArray, share: float | FloatArray, shape: float = np.inf
    ) -> FloatArray:
        wanted, noise = self.wanted_rate_, self.noise_rate_
        if np.isinf(shape):
            unclicked: AnyArray = looks * (wanted - noise)
        else:
            unclicked = (clicks + shape) * np.log((shape + looks * wanted) / (shape + looks * noise))
        return np.asarray(expit(np.log(share / (1 - share)) + clicks * np.log(wanted / noise) - unclicked))


def certainty(clicks: FloatArray, looks: FloatArray) -> FloatArray:
    """Return how much of items is known, from 0 to 1: s/(s + 1) for s looks and clicks.

    >>> certainty(np.array([0.0, 1.0]), np.array([0.0, 2.0])).tolist()
    [0.0, 0.75]
    """
    known = looks + clicks
    return known / (known + 1)


def _rate(weight: FloatArray, clicks: FloatArray, looks: FloatArray) -> float:
    return float(weight @ clicks) / max(float(weight @ looks), _LEAST_CHANCE)


# Principal axes are those of so many pictures; more change them little.
_AXES_FROM = 10_000
# The pictures of a query of which most is known; the others say little.
_MOST_PICTURES = 1_000
_SMALLEST = 1e-3
# A query starts from the directions of so many others of this Jaccard similarity: one common word of two will do.
_MOST_RELATED, _RELATED = 200, 0.3


@dataclass(kw_only=True, eq=False, repr=False)
class QueryMemory(ClickModel):
    """A query is the direction in which its wanted pictures lie from its unwanted ones: a ridge regression for each.

    Of the pictures of a query some are wanted. How often a picture x was looked at (e) and clicked (c) says how likely
    it is one of them, as a `ClickMixture` of all queries' pictures tells: a click counts fully even where a look was
    hardly expected. With y that probability less the share of wanted pictures of the query, and z the picture's
    principal components, of unit length, the direction is

        w_q = argmin Σ_x s_x/(s_x + 1) · (y_x − ⟨w, z_x⟩)² / λ + ‖w‖²,   s = e + c,

    the posterior mean of a linear model whose observations are the surer, the more is known of a picture. Queries with
    common words want like pictures: ‖w − m_q‖² takes the place of ‖w‖² in a second round, with m_q the mean of the
    first directions of related queries, weighted by looks and similarity and shrunk by ``prior``. A score is ⟨w_q, z⟩,
    so that any index serves it. What is not known moves nothing, and a query of words that nobody asked gives no
    direction: beside a retriever the log speaks as loud as it knows. With ``reach`` another query gets the mean of the
    first directions of all queries that share enough words with it, weighted and shrunk in the same way.

    Rocchio, "Relevance feedback in information retrieval", 1971, sums wanted less unwanted documents; the regression
    accounts for what they have in common. `fit_looks` learns from looks and clicks. `fit_clicks` learns from a log
    of clicks alone, in which every picture of a query counts as looked at e times, as often as that query was clicked;
    since unwanted ones are not known there, y = c/(e + 1), with the weight e, in one round; with ``reach`` a query
    that was asked is then one of those in the mean.

    Use it for what a service's own visitors ask again and again; `diptych learn` does.

    Parameters
    ----------
    n_components : int
        Principal components of the picture features, at most.
    noise : float
        λ, the variance of what is known for certain about a picture, relative to that of the directions.
    reach : bool
        Whether similar queries answer for one another, so that some are answered that nobody asked.
    min_similarity : float
        The least Jaccard similarity of such queries.
    prior : float
        Looks that stand for "as before" in their mean.

    Attributes
    ----------
    words_, set_offsets_, set_words_ :
        The distinct queries as sets of words.
    directions_ : array of shape (queries, components)
    own_directions_ : array of shape (queries, components)
        Of the first round: what a query's own pictures say; `fit_looks` alone has a second.
    looks_ : array of shape (queries,)
        How much each direction was learned from.
    mean_, axes_ :
        Of the picture features.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import QueryMemory
    >>> pictures = np.random.default_rng(0).standard_normal((6, 4))
    >>> shown, looks, clicks = [0, 1, 2], [9.0, 9.0, 9.0], [8.0, 0.0, 0.0]
    >>> model = QueryMemory(reach=False).fit_looks(["red boat"], [0, 0, 0], shown, looks, clicks, pictures)
    >>> int(np.argmax(model.scores(["boats, red"], pictures))), model.answers("boat")
    (0, False)
    """

    when_to_use: ClassVar[str] = "The clicks of a service's own visitors, with what else they saw: what is asked again."

    directions_: FloatArray = field(init=False)
    own_directions_: FloatArray = field(init=False)
    mean_: FloatArray = field(init=False)
    axes_: FloatArray = field(init=False)

    n_components: Count = 256
    noise: Positive = 1.0
    reach: bool = True
    min_similarity: Fraction = 0.3
    prior: NonNegative = 10.0

    def fit_looks(
        self,
        queries: Sequence[str],
        query_ids: Sequence[int] | IntArray,
        rows: Sequence[int] | IntArray,
        looks: Sequence[float] | FloatArray,
        clicks: Sequence[float] | FloatArray,
        images: AnyArray,
        *,
        axes_of: QueryMemory | None = None,
    ) -> Self:
        """Learn from pictures (``rows`` of ``images``) that were looked at and clicked so often for queries.

        ``axes_of`` lends the principal axes of another one that was learned on the same pictures.
        """
        self._check_parameters()
        features = as_matrix(images, name="images")
        if axes_of is None:
            self._fit_axes(features)
        else:
            self.mean_, self.axes_ = axes_of.mean_, axes_of.axes_
        asked, shown = np.asarray(query_ids, dtype=np.int64), np.asarray(rows, dtype=np.int64)
        seen = np.maximum(np.asarray(looks, dtype=np.float64), _SMALLEST)
        clicked = np.asarray(clicks, dtype=np.float64)
        owners = self._fit_sets(queries)[asked]
        # Group 0 is that of queries without a word, which get no direction.
        mixture = ClickMixture().fit(clicked, seen)
        wanted = mixture.surplus(clicked, seen, owners + 1)
        evidence = _Evidence.of(owners, shown, seen, wanted, certainty(clicked, seen))
        self._fit_directions(evidence, features)
        self.own_directions_ = self.directions_
        self.directions_ = self._ridges(evidence, features, self._starts())
        self.n_pairs_, self.n_image_features_ = len(asked), features.shape[1]
        self._make_contiguous()
        return self

    def without(self, queries: Sequence[str]) -> QueryMemory:
        """Return the same memory with some queries forgotten, as if nobody had asked them."""
        kept = copy(self)
        known = {self._sets[number]: number for number in range(len(self._sets))}
        words = (tuple(sorted(set(clean_query(query)))) for query in queries)
        forgotten = [known[each] for each in words if each in known]
        for name in {"directions_", "own_directions_", "looks_"} & vars(self).keys():
            values = getattr(self, name).copy()
            values[forgotten] = 0.0
            setattr(kept, name, values)
        return kept

    def answers(self, query: str) -> bool:
        """Tell whether the query, or with ``reach`` a similar one, was asked; all scores are 0 otherwise."""
        self._check_fitted()
        return len(self._known(query)[0]) > 0

    def _fit_clicks(self, log: ClickLog, images: FloatArray) -> None:
        self._fit_axes(images)
        counts = log.clicks.astype(np.float64)
        looks = np.maximum(np.bincount(log.query_ids, counts, len(log.queries))[log.query_ids], _SMALLEST)
        owners = self._fit_sets(list(log.queries))[log.query_ids]
        self._fit_directions(_Evidence.of(owners, log.image_ids, looks, counts / (looks + 1), looks), images)
        vars(self).pop("own_directions_", None)

    def _fit_axes(self, images: FloatArray) -> None:
        centred = images[:: -(-len(images) // _AXES_FROM)].astype(np.float64)
        self.mean_ = centred.mean(axis=0)
        centred -= self.mean_
        count = min(self.n_components, *centred.shape)
        is_wide = centred.shape[1] > len(centred)
        products = centred @ centred.T if is_wide else centred.T @ centred
        last = len(products) - 1
        values, vectors = scipy.linalg.eigh(products, subset_by_index=(last - count + 1, last))
        kept = values > values[-1] * 1e-10
        lengths = np.sqrt(values[kept])
        vectors = centred.T @ vectors[:, kept] / lengths if is_wide else vectors[:, kept]
        # Between principal components, which the first few rule, and whitened ones, which are mostly noise.
        self.axes_ = np.ascontiguousarray(vectors / np.sqrt(lengths), dtype=np.float32)

    def _fit_sets(self, queries: Sequence[str]) -> IntArray:
        """Learn the distinct queries, and return for each query which of them it is, −1 where no word is left."""
        sets, owners = WordSets.of([clean_query(query) for query in queries])
        if len(sets) == 0:
            raise InvalidInputError("no query of the log has a word left after cleaning; pass a log with words")
        self.words_, self.set_offsets_, self.set_words_ = sets.words, sets.offsets, sets.members
        vars(self).pop("_sets", None)
        return owners

    def _fit_directions(self, evidence: _Evidence, images: FloatArray) -> None:
        """Learn the direction of each distinct query from its own pictures."""
        self.looks_ = np.bincount(evidence.owners, evidence.looks, len(self._sets)).astype(np.float64)
        nothing = np.zeros((len(self._sets), self.axes_.shape[1]), dtype=np.float32)
        self.directions_ = self._ridges(evidence, images, nothing)

    def _ridges(self, evidence: _Evidence, images: FloatArray, starts: FloatArray) -> FloatArray:
        """Return the direction of each distinct query from where it starts, 0 for those without pictures."""
        directions = np.zeros_like(starts)
        used, places = np.unique(evidence.rows, return_inverse=True)
        points = self._points(images, used)
        for own in evidence.by_owner():
            number = evidence.owners[own[0]]
            pictures = points[places[own]].astype(np.float64)
            missing = evidence.targets[own] - pictures @ starts[number]
            directions[number] = starts[number] + _ridge(pictures, missing, self.noise / evidence.weights[own])
        return directions

    def _starts(self) -> FloatArray:
        """Return for each query what the own pictures of related ones say."""
        starts = np.zeros_like(self.own_directions_)
        for number in range(len(starts)):
            found, similarities = self._sets.nearest(self._sets[number], _MOST_RELATED, _RELATED)
            starts[number] = self._mean_direction(found[found != number], similarities[found != number])
        return starts

    def _mean_direction(self, queries: IntArray, similarities: FloatArray) -> FloatArray:
        # Memories of clicks alone have one direction for each query.
        own = getattr(self, "own_directions_", self.directions_)
        weights = similarities * self.looks_[queries]
        return np.asarray(weights @ own[queries] / max(weights.sum() + self.prior, _SMALLEST))

    def _points(self, images: FloatArray, rows: IntArray | None = None) -> FloatArray:
        """Return the points of pictures, or of some ``rows`` of them, of which only a few are copied at a time."""
        mean, chosen = self.mean_.astype(np.float32), np.arange(len(images)) if rows is None else rows
        points = np.empty((len(chosen), self.axes_.shape[1]), dtype=np.float32)
        for block in row_blocks(len(chosen)):
            points[block] = unit_rows((images[chosen[block]].astype(np.float32, copy=False) - mean) @ self.axes_)
        return points

    def _known(self, query: str) -> tuple[IntArray, FloatArray]:
        """Return the queries that answer for one, and how similar they are."""
        least = self.min_similarity if self.reach else 1.0
        return self._sets.nearest(clean_query(query), len(self._sets), least)

    def _encode_images(self, images: FloatArray) -> AnyArray:
        return self._points(images)

    def _encode_queries(self, queries: Sequence[str]) -> FloatArray:
        points = np.zeros((len(queries), self.directions_.shape[1]), dtype=np.float32)
        for row, query in enumerate(queries):
            found, similarities = self._known(query)
            if len(found) and (not self.reach or self._is_asked(int(found[0]), float(similarities[0]))):
                points[row] = self.directions_[found[0]]
            elif len(found):
                points[row] = self._mean_direction(found, similarities)
        return points

    def _is_asked(self, number: int, similarity: float) -> bool:
        """Return True if the most similar query is the very same, and its direction started from related ones."""
        return similarity == 1 and self.looks_[number] > 0 and hasattr(self, "own_directions_")

    @cached_property
    def _sets(self) -> WordSets:
        return WordSets(self.words_, self.set_offsets_, self.set_words_)


@dataclass(frozen=True, eq=False)
class _Evidence:
    """Pictures (``rows``) of queries (``owners``): how often they were looked at, what to learn, and how sure it is."""

    owners: IntArray
    rows: IntArray
    looks: FloatArray
    targets: FloatArray
    weights: FloatArray

    @classmethod
    def of(
        cls, owners: IntArray, rows: IntArray, looks: FloatArray, targets: FloatArray, weights: FloatArray
    ) -> _Evidence:
        """Return it by query, the surest first, without queries that have no word, and only what tells most of each."""
        order = np.lexsort((-weights, owners))
        order = order[owners[order] >= 0]
        sorted_owners = owners[order]
        nth = np.arange(len(order)) - np.searchsorted(sorted_owners, sorted_owners)
        kept = order[nth < _MOST_PICTURES]
        return cls(owners[kept], rows[kept], looks[kept], targets[kept], weights[kept])

    def by_owner(self) -> list[IntArray]:
        """Return the places of each query's pictures."""
        if not len(self.owners):
            return []
        return np.split(np.arange(len(self.owners)), np.flatnonzero(np.diff(self.owners)) + 1)


def _ridge(points: FloatArray, targets: FloatArray, variances: FloatArray) -> FloatArray:
    """Return the ridge regression of targets on points, in its dual form: queries have fewer pictures than axes."""
    products = points @ points.T
    products[np.diag_indices_from(products)] += variances
    return np.asarray(points.T @ np.linalg.solve(products, targets))
