"""Clicks with the share of the position taken out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray
from diptych.collection.learning.impressions import Impressions
from diptych.collection.learning.position_model import PositionModel
from diptych.data.clicks import ClickLog

_BEST_GRADE = 3


@dataclass(frozen=True, eq=False)
class CorrectedClicks:
    """How much each item is wanted for each query, one row for each (query, item) that was shown.

    ``rates`` are the estimated shares of people who want the item among those who look at it; 0 for what was clicked no
    more often than its position alone explains. ``clicks`` are the clicks the item would have got at the top of the
    list. ``grades`` are 0 to 3, as judges would give them: 3 for the most wanted.
    """

    queries: tuple[str, ...]
    items: tuple[str, ...]
    query_ids: IntArray
    item_ids: IntArray
    rates: FloatArray
    clicks: FloatArray
    grades: FloatArray

    def __len__(self) -> int:
        return len(self.query_ids)

    def select(self, rows: AnyArray) -> CorrectedClicks:
        """Return some rows; the queries and items keep their numbers."""
        numbers = self.query_ids[rows], self.item_ids[rows]
        return CorrectedClicks(
            self.queries, self.items, *numbers, self.rates[rows], self.clicks[rows], self.grades[rows]
        )

    def of_queries(self, chosen: BoolArray) -> CorrectedClicks:
        """Return the rows of the chosen queries, given as a mask over all."""
        return self.select(chosen[self.query_ids])

    def log(self) -> ClickLog:
        """Return what was wanted as a click log."""
        rows = np.flatnonzero(self.clicks > 0)
        queries = [self.queries[number] for number in self.query_ids[rows].tolist()]
        items = [self.items[number] for number in self.item_ids[rows].tolist()]
        return ClickLog.from_triads(queries, items, self.clicks[rows])


def corrected_clicks(
    impressions: Impressions, positions: PositionModel, *, least: float = 0.05, prior: float = 1.0, floor: float = 1.0
) -> CorrectedClicks:
    """Return what people want, from what they clicked and how likely they had looked there.

    With e = Σ n·max(θ_r, ``least``) the expected number of looks at an item in n showings and c its clicks, its rate is
    (c + s·m)/(e + s): inverse propensity weighting, with propensities clipped from below and drawn towards the mean m
    of all items with the weight s = ``prior`` of one look, since a single click far down would count as many
    (Joachims et al., "Unbiased learning-to-rank with biased feedback", WSDM 2017). Whatever stays below ``floor`` times
    the mean was clicked by accident as likely as not, and counts nothing.

    >>> from diptych.collection.learning import Impressions, PositionModel, corrected_clicks
    >>> seen = Impressions.from_rows([("dog", "a", 1, 90, 60), ("dog", "b", 2, 90, 30), ("dog", "c", 3, 90, 1)])
    >>> found = corrected_clicks(seen, PositionModel().fit(seen))
    >>> [found.items[item] for item in found.item_ids], found.grades.tolist()
    (['a', 'b', 'c'], [3.0, 3.0, 0.0])
    """
    different, pair = impressions.pairs
    examined = impressions.shown * positions.examined(impressions.positions, least=least)
    looks = np.bincount(pair, examined, len(different))
    shown = np.bincount(pair, impressions.shown, len(different))
    clicks = np.bincount(pair, impressions.clicked, len(different))
    mean = float(clicks.sum() / looks.sum())
    rates = (clicks + prior * mean) / (looks + prior)
    wanted = (rates > floor * mean) & (clicks > 0)
    rates = np.where(wanted, np.minimum(rates, 1.0), 0.0)
    return _judged(impressions.queries, impressions.items, different, rates, rates * shown)


def plain_clicks(log: ClickLog) -> CorrectedClicks:
    """Return the clicks of a log without positions as they are; the most clicked item of a query is the most wanted."""
    merged = log.merged()
    counts = merged.clicks.astype(np.float64)
    most = np.zeros(len(merged.queries))
    np.maximum.at(most, merged.query_ids, counts)
    keys = merged.query_ids.astype(np.int64) * max(1, len(merged.images)) + merged.image_ids
    order = np.argsort(keys)
    rates = (counts / most[merged.query_ids])[order]
    return _judged(tuple(merged.queries), tuple(merged.images), keys[order], rates, counts[order])


def _judged(
    queries: tuple[str, ...], items: tuple[str, ...], keys: IntArray, rates: FloatArray, clicks: FloatArray
) -> CorrectedClicks:
    query_ids, item_ids = np.divmod(keys, max(1, len(items)))
    wanted = rates > 0
    # The most wanted few may be luck: what nine in ten stay below is enough for the best grade.
    top = float(np.quantile(rates[wanted], 0.9)) if wanted.any() else 1.0
    grades = np.where(wanted, np.clip(np.ceil(_BEST_GRADE * rates / top), 1, _BEST_GRADE), 0.0)
    return CorrectedClicks(queries, items, query_ids, item_ids, rates, clicks, grades)
