"""Giving the regions of pictures points of their own, so that small things are found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from diptych.arrays import AnyArray
from diptych.collection.changes.content_reading import ContentReading, ReadingReport
from diptych.collection.search.encoded_query import without_disk_cache
from diptych.collection.search.gallery import Scoring
from diptych.collection.search.live_state import LiveState
from diptych.collection.storage.store import points_table
from diptych.encoders.image.picture_regions import REGIONS, read_regions
from diptych.errors import CollectionError, InvalidInputError

if TYPE_CHECKING:
    from diptych.encoders.image.picture_decoding import Picture


class RegionReading(ContentReading[AnyArray, ReadingReport]):
    """Encodes the regions of the pictures that lack them, with one stored retriever."""

    def __init__(self, state: LiveState, name: str | None) -> None:
        self._names = state.layout.named(name)
        super().__init__(state, points_table(self._names, "region"), ReadingReport())
        # Thirteen rows for each picture would fill the user's cache with what nobody asks for again.
        self._retriever = without_disk_cache(state.retriever(self._names.name))
        if not Scoring(self._retriever.space, "text_query").is_linear:
            raise InvalidInputError(
                f"the points of the search model {self._names.name!r} are not compared by inner products, so a region "
                "does not compare with a whole picture; take one that is, such as default"
            )

    def _made(self, picture: Picture) -> AnyArray:
        # The points of a picture are one row, so that a picture has all of its regions or none.
        return np.ravel(self._retriever.encode_images(read_regions(picture)))

    def _keep(self, made: Mapping[str, AnyArray]) -> None:
        if self._state.layout.with_fingerprint(self._names.fingerprint) is None:
            raise CollectionError(f"the search model {self._names.name!r} was removed meanwhile, and its regions go")
        self._state.store.add_vectors(self._table, list(made), np.stack(list(made.values())))

    def _finish(self) -> None:
        """Let searches use what is stored, here and in other processes, which see it by the time of the layout."""
        super()._finish()
        known = set(self._state.store.keys(self._table).to_pylist())
        stored = sum(item.content_hash in known for item in self._state.items())
        searched = self._state.snapshot(self._names.name).galleries.get("region", ())
        is_old = len(searched) != stored * len(REGIONS)
        if is_old:
            self._state.forget_points(self._names, "region")
        if is_old or self.report.read:
            self._state.write_layout(self._state.layout, None)


def remove_regions(state: LiveState, name: str | None) -> None:
    """Delete the regions of a retriever; the caller is the only writer."""
    names = state.layout.named(name)
    # Backups that are being made see by this that something goes, and other processes afterwards that it is gone.
    state.write_layout(state.layout, None)
    state.store.drop(points_table(names, "region"))
    state.forget_points(names, "region")
    state.write_layout(state.layout, None)
