"""Regions of pictures in a ranking: a picture is as good as the better of itself and its best region."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray
from diptych.collection.search.encoded_query import EncodedQuery
from diptych.collection.search.gallery import Gallery
from diptych.encoders.image.picture_regions import REGIONS, PictureRegion


@dataclass(frozen=True)
class RegionRanking:
    """The regions of pictures beside the pictures of a query's gallery, in a space whose scores are inner products."""

    query: EncodedQuery
    regions: Gallery
    exact: bool

    def nearest(self, k: int, allowed: Sequence[BoolArray] | None) -> tuple[IntArray, FloatArray]:
        """Return rows of pictures and scores of their regions, so many that the ``k`` pictures with the best are there.

        A picture comes once for each of its regions among these.
        """
        assert self.query.vector is not None
        # Pictures before the k-th have at most all of their regions before its best one.
        n_asked = min(k * len(REGIONS), len(self.regions))
        found, scores = self.regions.search(self.query.vector, n_asked, allowed=allowed, exact=self.exact)
        there = found[0] >= 0
        rows = self._pictures(found[0][there])
        return rows[rows >= 0], scores[0][there][rows >= 0]

    def best_parts(self, rows: IntArray) -> tuple[AnyArray, list[PictureRegion | None]]:
        """Return for some pictures the points that answer the query best, and the regions whose these are."""
        kept = np.array(self.query.gallery.vectors(rows), dtype=np.float32)
        best: list[PictureRegion | None] = [None] * len(rows)
        of_picture = self._regions_of(rows)
        places = np.flatnonzero(of_picture[:, 0] >= 0)
        if len(places):
            points = self.regions.vectors(of_picture[places].ravel())
            scores = self.query.scores(points).reshape(len(places), -1)
            is_better = scores.max(axis=1) > self.query.scores(kept[places])
            numbers = scores.argmax(axis=1)
            chosen = points.reshape(*scores.shape, -1)[np.arange(len(places)), numbers]
            kept[places[is_better]] = chosen[is_better]
            for place, number in zip(places[is_better].tolist(), numbers[is_better].tolist(), strict=True):
                best[place] = REGIONS[number]
        return kept, best

    def _pictures(self, rows: IntArray) -> IntArray:
        """Return the rows of the pictures that regions belong to; −1 where a picture has no point."""
        pictures, found = self.query.gallery, np.full(len(rows), -1, dtype=np.int64)
        for number, places, inner in self.regions.located(rows):
            owners = self.regions.blocks[number].owners[inner]
            within = pictures.blocks[number].rows_at(owners, np.zeros_like(owners))
            found[places] = np.where(within < 0, -1, within + pictures.start_of(number))
        return found

    def _regions_of(self, rows: IntArray) -> IntArray:
        """Return the rows of the regions of some pictures, a line each; −1 where a picture has none."""
        found = np.full((len(rows), len(REGIONS)), -1, dtype=np.int64)
        for number, places, inner in self.query.gallery.located(rows):
            owners, block = self.query.gallery.blocks[number].owners[inner], self.regions.blocks[number]
            first = block.rows_at(owners, np.zeros_like(owners))
            start = first[first >= 0] + self.regions.start_of(number)
            found[places[first >= 0]] = start[:, None] + np.arange(len(REGIONS))
        return found
