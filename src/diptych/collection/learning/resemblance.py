"""Whether the clicks of a log have anything to do with what the pictures show."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.stats import norm

from diptych.arrays import FloatArray, IntArray, row_blocks
from diptych.models.clicks.query_memory import ClickMixture, certainty

_SHUFFLES, _AT_A_TIME = 999, 20
_MOST_QUERIES, _MOST_PICTURES = 500, 24
_FEWEST_PICTURES, _FEWEST_CLICKS = 5, 2.0


@dataclass(frozen=True)
class Resemblance:
    """How much clearer than by luck what is clicked looks alike and scores high, in standard deviations, and its p."""

    z: float
    p_value: float
    n_queries: int


@dataclass(frozen=True, eq=False)
class Pictures:
    """The pictures of queries: which query, mean places, looks, clicks, unit vectors, scores; and the words."""

    query_ids: IntArray
    places: FloatArray
    looks: FloatArray
    clicks: FloatArray
    points: FloatArray
    scores: FloatArray
    words: Sequence[Collection[str]]


def resemblance(pictures: Pictures, *, within: bool = False) -> Resemblance:
    """Test whether pictures that are clicked look more alike, and score higher, than luck explains.

    With r how much likelier each of a query's pictures is wanted than its others, as far as that is known
    (`ClickMixture`), X the pictures' centred points and s their scores less what is usual at their places, three sums
    are looked at: Σ_q rᵀXXᵀr without its diagonal, wanted pictures of a query
    are alike (the alignment of a kernel with a target, Cristianini et al., 2001); Σ_q rᵀs, they score high; and
    Σ_qq′ J(q, q′) rᵀXX′ᵀr′, those of queries with common words (Jaccard similarity J) are alike. Each is taken in its
    standard deviations, and they are added up. Under the hypothesis
    that clicks have nothing to do with the pictures, the r of one query, place by place, could as well be those of
    another: so they are dealt anew among the queries, again and again. ``within`` deals them anew among the pictures of
    each query instead, for logs that know no places. Consistent whims, one picture for each query and no two alike,
    pass for meaningless here, as they should: nothing that is learned from them holds for any other picture.
    """
    wanted, points, scores, likeness = _tables(pictures)
    if len(wanted) < 2:
        return Resemblance(0.0, 1.0, len(wanted))
    rng = np.random.default_rng(0)
    found = np.empty((_SHUFFLES + 1, 3))
    own = np.einsum("qid,qid->qi", points, points)
    for block in row_blocks(len(found), _AT_A_TIME):
        dealt = np.repeat(wanted[:, None], block.stop - block.start, axis=1)
        # The very first are dealt as they are.
        for number in range(0 if block.start else 1, dealt.shape[1]):
            dealt[:, number] = rng.permuted(wanted, axis=1) if within else wanted[rng.permutation(len(wanted))]
        sums = dealt.astype(np.float32) @ points
        mixed = (likeness @ sums.reshape(len(sums), -1)).reshape(sums.shape)
        alike = (sums**2).sum(axis=(0, 2), dtype=np.float64) - (dealt**2 * own[:, None]).sum(axis=(0, 2))
        high = (dealt * scores[:, None]).sum(axis=(0, 2))
        found[block] = np.column_stack([alike, high, (sums * mixed).sum(axis=(0, 2), dtype=np.float64)])
    spread = found[1:].std(axis=0)
    standard = (found - found[1:].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    both = standard.sum(axis=1)
    z = float(both[0] / (both[1:].std() or 1.0))
    return Resemblance(z, float(norm.sf(z)), len(wanted))


def _tables(pictures: Pictures) -> tuple[FloatArray, FloatArray, FloatArray, sparse.csr_array]:
    """Return r, points and scores of the queries with the most looks, a place a column, and the queries' likeness.

    Places that are empty are zero.
    """
    clicks_of, looks_of = (np.bincount(pictures.query_ids, each) for each in (pictures.clicks, pictures.looks))
    counts = np.bincount(pictures.query_ids)
    chosen = np.flatnonzero((counts >= _FEWEST_PICTURES) & (clicks_of >= _FEWEST_CLICKS))
    chosen = chosen[np.argsort(-looks_of[chosen], kind="stable")[:_MOST_QUERIES]]
    order = np.lexsort((pictures.places, pictures.query_ids))
    first = np.searchsorted(pictures.query_ids[order], chosen)
    surplus = _known_surplus(pictures)
    wanted = np.zeros((len(chosen), _MOST_PICTURES))
    scores, filled = np.zeros_like(wanted), np.zeros(wanted.shape, dtype=bool)
    points = np.zeros((*wanted.shape, pictures.points.shape[1]), dtype=np.float32)
    for row, (query, start) in enumerate(zip(chosen, first, strict=True)):
        own = order[start : start + min(int(counts[query]), _MOST_PICTURES)]
        size = len(own)
        wanted[row, :size] = _unit(surplus[own] - surplus[own].mean())
        points[row, :size] = _unit(pictures.points[own] - pictures.points[own].mean(axis=0))
        scores[row, :size] = pictures.scores[own] - pictures.scores[own].mean()
        filled[row, :size] = True
    usual = scores.sum(axis=0) / np.maximum(filled.sum(axis=0), 1)
    unusual = np.where(filled, scores - usual, 0.0)
    standard = np.array([_unit(row) for row in unusual]).reshape(wanted.shape)
    return wanted, points, standard, _likeness([set(pictures.words[query]) for query in chosen.tolist()])


def _known_surplus(pictures: Pictures) -> FloatArray:
    """Return how much likelier each picture is wanted than its query's others, as far as it is known."""
    mixture = ClickMixture().fit(pictures.clicks, pictures.looks)
    likelier = mixture.surplus(pictures.clicks, pictures.looks, pictures.query_ids)
    return likelier * certainty(pictures.clicks, pictures.looks)


def _likeness(words: Sequence[set[str]]) -> sparse.csr_array:
    """Return the Jaccard similarities of sets of words, 0 of each with itself; few have any."""
    numbers = {word: number for number, word in enumerate(sorted(set().union(*words)))}
    columns = [numbers[word] for own in words for word in own]
    sizes = np.array([len(own) for own in words])
    ends = np.concatenate([[0], np.cumsum(sizes)])
    has = sparse.csr_array((np.ones(len(columns)), columns, ends), shape=(len(words), len(numbers)))
    common = (has @ has.T).tocoo()
    rows, others = common.coords
    apart = rows != others
    rows, others, shared = rows[apart], others[apart], common.data[apart]
    values = (shared / (sizes[rows] + sizes[others] - shared)).astype(np.float32)
    return sparse.coo_array((values, (rows, others)), shape=common.shape).tocsr()


def _unit(values: FloatArray) -> FloatArray:
    length = float(np.linalg.norm(values))
    return values / length if length > 0 else values
