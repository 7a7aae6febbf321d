"""What the models share that answer from the log itself."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from diptych.arrays import FloatArray, IntArray, unit_rows
from diptych.data.clicks import ClickLog
from diptych.encoders.text.clean_query import clean_query
from diptych.models.clicks.click_model import ClickModel
from diptych.models.clicks.click_scale import CLICK_SCALES, ClickScale
from diptych.models.clicks.query_table import query_table
from diptych.models.clicks.word_sets import WordSets
from diptych.models.parameters import check_choice


class LoggedClickModel(ClickModel):
    """A model that keeps the log: who clicked what is looked up when a query comes.

    Queries are sets of words after :func:`~diptych.encoders.text.clean_query`; log queries of the same words are one
    query, whose clicks on a picture are added. The most clicked come first, also among equally similar ones.
    """

    clicks: ClickScale

    words_: tuple[str, ...]
    set_offsets_: IntArray
    set_words_: IntArray
    click_offsets_: IntArray
    clicked_images_: IntArray
    clicks_: FloatArray
    images_: FloatArray

    def _fit_clicks(self, log: ClickLog, images: FloatArray) -> None:
        self._check_parameters()
        self._forget()
        sets, table = query_table(log)
        self.words_, self.set_offsets_, self.set_words_ = sets.words, sets.offsets, sets.members
        self.click_offsets_ = table.indptr.astype(np.int64)
        self.clicked_images_, self.clicks_ = table.indices.astype(np.int32), table.data.astype(np.float32)
        self.images_ = self._kept_images(images)

    def neighbours(self, query: str) -> list[tuple[tuple[str, ...], float]]:
        """Return the log queries, as words, that answer for ``query``, and how similar they are."""
        self._check_fitted()
        found, similarities = self._neighbours(query)
        return [(self._sets[int(number)], float(share)) for number, share in zip(found, similarities, strict=True)]

    def _neighbours(self, query: str) -> tuple[IntArray, FloatArray]:
        return self._sets.nearest(clean_query(query), len(self._sets))

    def _check_parameters(self) -> None:
        check_choice("clicks", self.clicks, CLICK_SCALES)

    def _kept_images(self, images: FloatArray) -> FloatArray:
        return unit_rows(images.astype(np.float32, copy=False))

    def _forget(self) -> None:
        """Drop what was derived from an earlier fit."""
        self.__dict__.pop("_sets", None)

    @cached_property
    def _sets(self) -> WordSets:
        return WordSets(self.words_, self.set_offsets_, self.set_words_)
