"""What every measure and curve is, and the ranking that it reads: groups of tied items, and ways to break ties."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, cast, get_args

import numpy as np

from diptych.arrays import BoolArray, FloatArray, IntArray
from diptych.errors import InvalidInputError

Ties = Literal["expected", "random", "optimistic", "pessimistic"]


@dataclass(frozen=True, eq=False)
class RankedGroups:
    """Rankings of a block of queries, kept only where relevant items are.

    A tie group is a set of items with one score. Groups without a relevant item change no measure except through the
    number of items before later groups, so only groups with a relevant item are stored, query after query and best
    first:

    ============  =========  ==========================================================================
    ``query``     (G,)       row of ``total`` and ``gallery`` the group belongs to, ascending
    ``before``    (G,)       items ranked above the group, N in the formulas
    ``size``      (G,)       items in the group, n
    ``relevant``  (G, L)     relevant items of the group by positive grade; L = 1 for binary relevance
    ``total``     (Q, L)     relevant items of the query by grade
    ``gallery``   (Q,)       items ranked for the query
    ``grades``    (L,)       the positive grades, ascending
    ``rows``      (Q,)       number of the query in the whole evaluation
    ============  =========  ==========================================================================

    All orders inside a group are equally likely, so the exact expectation of a measure under random tie-breaking is a
    sum over groups (McSherry & Najork, "Computing information retrieval performance measures efficiently in the
    presence of tied scores", ECIR 2008).

    >>> from diptych.metrics import AP, RankedGroups
    >>> one_of_two = RankedGroups.all_tied([[1]], [2])
    >>> AP().compute(one_of_two)
    array([0.75])
    """

    query: IntArray
    before: IntArray
    size: IntArray
    relevant: IntArray
    total: IntArray
    gallery: IntArray
    grades: FloatArray
    rows: IntArray

    @classmethod
    def all_tied(
        cls, total: IntArray | list[list[int]], gallery: IntArray | list[int], grades: FloatArray | None = None
    ) -> RankedGroups:
        """Return the ranking that knows nothing: every item tied, so every measure takes its chance level."""
        counts, sizes = np.asarray(total, dtype=np.int64), np.asarray(gallery, dtype=np.int64)
        query = np.flatnonzero(counts.sum(axis=1))
        return cls(
            query=query,
            before=np.zeros(len(query), dtype=np.int64),
            size=sizes[query],
            relevant=counts[query],
            total=counts,
            gallery=sizes,
            grades=np.arange(1.0, counts.shape[1] + 1) if grades is None else grades,
            rows=np.arange(len(counts)),
        )

    @property
    def n_queries(self) -> int:
        """The number of queries in the block."""
        return len(self.gallery)

    @cached_property
    def hits(self) -> IntArray:
        """Relevant items of each group, whatever their grade: r in the formulas."""
        # A sum of one number each takes as long as a sum of many.
        return self.relevant[:, 0] if self.relevant.shape[1] == 1 else cast(IntArray, self.relevant.sum(axis=1))

    @cached_property
    def n_relevant(self) -> IntArray:
        """Relevant items of each query, whatever their grade."""
        return cast(IntArray, self.total.sum(axis=1))

    @cached_property
    def first(self) -> IntArray:
        """Index of the best group of each query that has one."""
        begins = np.ones(len(self.query), dtype=bool)
        np.not_equal(self.query[1:], self.query[:-1], out=begins[1:])
        return np.flatnonzero(begins)

    @cached_property
    def relevant_before(self) -> IntArray:
        """Relevant items ranked above each group: R₀ in the formulas."""
        earlier = np.cumsum(self.hits) - self.hits
        groups_per_query = np.diff(self.first, append=len(self.query))
        return cast(IntArray, earlier - np.repeat(earlier[self.first], groups_per_query))

    @cached_property
    def undecided(self) -> BoolArray:
        """Groups whose inner order matters: some but not all items relevant, or several grades."""
        mixed = (self.relevant > 0).sum(axis=1) > 1
        return cast(BoolArray, (self.hits < self.size) | mixed)

    def inside(self, cutoff: IntArray) -> IntArray:
        """Return how many positions of each group lie within the first ``cutoff`` (one per query)."""
        return cast(IntArray, np.clip(cutoff[self.query] - self.before, 0, self.size))

    def sum_by_query(self, values: FloatArray | IntArray) -> FloatArray:
        """Add one value per group up to one value per query, in float64."""
        return cast(FloatArray, np.bincount(self.query, weights=values, minlength=self.n_queries))

    def select(self, chosen: BoolArray) -> RankedGroups:
        """Return the block with the chosen queries alone."""
        kept = chosen[self.query]
        position = np.cumsum(chosen) - 1
        return RankedGroups(
            query=position[self.query[kept]],
            before=self.before[kept],
            size=self.size[kept],
            relevant=self.relevant[kept],
            total=self.total[chosen],
            gallery=self.gallery[chosen],
            grades=self.grades,
            rows=self.rows[chosen],
        )


def check_ties(ties: str) -> None:
    """Raise an error that lists the four policies unless ``ties`` is one of them."""
    if ties not in get_args(Ties):
        raise InvalidInputError(f"ties must be one of {', '.join(get_args(Ties))}, got {ties!r}")


def break_ties(groups: RankedGroups, ties: Ties, seed: int = 0) -> RankedGroups:
    """Return ``groups`` with ties resolved, each relevant item alone in its position.

    ``expected`` keeps the groups, because measures then take exact expectations. ``random`` gives the relevant items
    of a group a uniformly random subset of its positions; the draw depends on ``seed`` and on the number of the query
    alone, so that it does not change with the size of the blocks. ``optimistic`` puts relevant items first, higher
    grades before lower ones, ``pessimistic`` does the opposite.

    >>> from diptych.metrics import AP, RankedGroups, break_ties
    >>> one_of_two = RankedGroups.all_tied([[1]], [2])
    >>> [float(AP().compute(break_ties(one_of_two, ties))[0]) for ties in ("optimistic", "pessimistic")]
    [1.0, 0.5]
    """
    check_ties(ties)
    if ties == "expected":
        return groups
    parent = np.repeat(np.arange(len(groups.query)), groups.hits)
    offset = np.arange(len(parent)) - np.repeat(np.cumsum(groups.hits) - groups.hits, groups.hits)
    level = _levels(groups, descending=ties == "optimistic")
    if ties == "pessimistic":
        offset = offset + (groups.size - groups.hits)[parent]
    elif ties == "random":
        _shuffle(groups, offset, level, seed)
    return RankedGroups(
        query=groups.query[parent],
        before=groups.before[parent] + offset,
        size=np.ones(len(parent), dtype=np.int64),
        relevant=(level[:, None] == np.arange(len(groups.grades))).astype(np.int64),
        total=groups.total,
        gallery=groups.gallery,
        grades=groups.grades,
        rows=groups.rows,
    )


def _levels(groups: RankedGroups, *, descending: bool) -> IntArray:
    """Return the grade index of every relevant item, ordered by grade inside its group."""
    levels = np.arange(len(groups.grades))
    counts = groups.relevant
    if descending:
        levels, counts = levels[::-1], counts[:, ::-1]
    return cast(IntArray, np.repeat(np.tile(levels, len(counts)), counts.ravel()))


def _shuffle(groups: RankedGroups, offset: IntArray, level: IntArray, seed: int) -> None:
    """Draw positions and grades of the undecided groups, in place."""
    end = np.cumsum(groups.hits)
    generator, owner = np.random.default_rng(seed), -1
    for index in np.flatnonzero(groups.undecided):
        if groups.query[index] != owner:
            owner = int(groups.query[index])
            generator = np.random.default_rng([seed, int(groups.rows[owner])])
        hits = groups.hits[index]
        items = slice(end[index] - hits, end[index])
        offset[items] = np.sort(generator.choice(groups.size[index], hits, replace=False, shuffle=False))
        level[items] = generator.permutation(level[items])


class Measure(ABC):
    """A measure of a ranking, exact in expectation under ties.

    Measures are frozen dataclasses: equal parameters make equal measures, the representation is the identity, and
    ``label`` is what a table prints, with the convention in the name. A new measure defines ``label`` and
    ``_expectation`` and is then understood by :func:`diptych.metrics.evaluate`.

    >>> from diptych.metrics import AP
    >>> AP(cutoff=50, denominator="retrieved")
    AP(cutoff=50, denominator='retrieved')
    >>> AP(cutoff=50, denominator="retrieved").label
    'MAP@50 (retrieved)'
    """

    @property
    @abstractmethod
    def label(self) -> str:
        """The name to print, with its convention."""

    @abstractmethod
    def _expectation(self, groups: RankedGroups) -> FloatArray:
        """Return one value per query; what stands for queries without relevant items is overwritten."""

    def compute(self, groups: RankedGroups) -> FloatArray:
        """Return one float64 per query, NaN where the query has no relevant item."""
        values = np.asarray(self._expectation(groups), dtype=np.float64)
        return np.where(groups.n_relevant > 0, values, np.nan)

    def worst(self, groups: RankedGroups) -> FloatArray:
        """Return the value per query that stands for "nothing relevant was found"."""
        return np.zeros(groups.n_queries)

    def aggregate(self, values: FloatArray) -> float:
        """Reduce values per query to one number: their mean, NaN left out."""
        return float(np.mean(_without_nan(values)))

    def chance(self, tied: RankedGroups) -> float:
        """Return the exact value of a ranker that draws orders at random; ``tied`` has one group per query."""
        shapes, inverse = np.unique(np.column_stack([tied.gallery, tied.total]), axis=0, return_inverse=True)
        distinct = RankedGroups.all_tied(shapes[:, 1:], shapes[:, 0], tied.grades)
        values = self.compute(distinct)
        return self.aggregate(np.where(np.isnan(values), self.worst(distinct), values)[inverse.ravel()])


def _without_nan(values: FloatArray) -> FloatArray:
    known = values[~np.isnan(values)]
    if not len(known):
        raise InvalidInputError("no query has a relevant item, so there is nothing to average; check the labels")
    return known


@dataclass(frozen=True)
class CutoffMeasure(Measure):
    """A measure of the first ``cutoff`` items; a cutoff beyond the gallery means all of it."""

    cutoff: int

    def __post_init__(self) -> None:
        check_cutoff(self.cutoff)


def check_cutoff(cutoff: object, *, name: str = "cutoff") -> None:
    """Raise an error unless ``cutoff`` is a whole number of at least 1."""
    if not isinstance(cutoff, int | np.integer) or isinstance(cutoff, bool) or cutoff < 1:
        raise InvalidInputError(f"{name} must be a whole number of at least 1, got {cutoff!r}")


def effective_cutoff(cutoff: int | None, groups: RankedGroups) -> IntArray:
    """Return the cutoff of each query, which is never beyond its gallery."""
    if cutoff is None:
        return groups.gallery
    return cast(IntArray, np.minimum(groups.gallery, cutoff))


@dataclass(frozen=True, eq=False)
class CurvePoints:
    """The points of a measured curve, and what its axes mean.

    >>> import numpy as np
    >>> from diptych.metrics import CurvePoints
    >>> CurvePoints(np.array([1, 2]), np.array([0.5, 1.0]), "rank", "matched queries").y
    array([0.5, 1. ])
    """

    x: FloatArray
    y: FloatArray
    x_label: str
    y_label: str


class Curve(ABC):
    """A curve averaged over queries.

    A curve adds up what a block of queries contributes (``total``) and turns the sum into points at the end
    (``points``), so one pass over the scores fills measures and curves together, in memory of the order of one gallery.

    >>> from diptych.metrics import CMCCurve, SameLabel, evaluate_scores
    >>> relevance = SameLabel(["cat", "dog"], ["cat", "dog", "cat"])
    >>> result = evaluate_scores([[0.9, 0.8, 0.7], [0.9, 0.8, 0.7]], relevance, [CMCCurve()])
    >>> result[CMCCurve()].y
    array([0.5, 1. , 1. ])
    """

    @property
    @abstractmethod
    def label(self) -> str:
        """The name to print."""

    @abstractmethod
    def total(self, groups: RankedGroups) -> FloatArray:
        """Return what the queries of a block add; arrays of unequal length are added from their start."""

    @abstractmethod
    def points(self, total: FloatArray, n_queries: int) -> CurvePoints:
        """Return the curve, given the sum over all blocks and the number of queries to average over."""


def hypergeometric(size: int, relevant: int, drawn: int) -> tuple[IntArray, FloatArray]:
    """Return the possible numbers of relevant items among ``drawn`` of ``size`` items, and their probabilities.

    The probabilities follow from the ratios of neighbours, summed outwards from the mode: differences of log-gamma
    values would lose six digits for galleries of a million.
    """
    low, high = max(0, drawn - (size - relevant)), min(relevant, drawn)
    found = np.arange(low, high + 1)
    here = found[:-1].astype(np.float64)
    steps = np.log((relevant - here) * (drawn - here) / ((here + 1) * (size - relevant - drawn + here + 1)))
    mode = int(np.searchsorted(-steps, 0.0))
    logs = np.concatenate([-np.cumsum(steps[:mode][::-1])[::-1], [0.0], np.cumsum(steps[mode:])])
    weights = np.exp(logs)
    return found, weights / weights.sum()


def miss_probability(size: int, relevant: int, drawn: int) -> float:
    """Return C(size − relevant, drawn) / C(size, drawn), the chance that no relevant item is drawn."""
    fewer, more = sorted((relevant, drawn))
    remaining = size - np.arange(fewer, dtype=np.float64)
    return float(np.prod(np.maximum(remaining - more, 0) / remaining))
