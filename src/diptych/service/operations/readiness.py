"""Whether searches can be answered already."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from diptych.service.hosted_collection import HostedCollection

_log = logging.getLogger("diptych.service")
_WARM_UP_WORDS = "a picture"


class Readiness:
    """Asks each collection once in the background for all that a page shows, so that the first visitor does not wait.

    Weights are loaded then, and labels, metadata and captions are counted for facets and suggestions.
    """

    def __init__(self, hosted: Sequence[HostedCollection]) -> None:
        self._hosted = hosted
        self._states = {each.name: "getting ready" for each in hosted}
        self._thread = threading.Thread(target=self._warm_up, name="warm-up", daemon=True)

    def start(self) -> None:
        """Begin in the background."""
        self._thread.start()

    def wait(self, seconds: float | None = None) -> None:
        """Wait until every collection was tried."""
        self._thread.join(seconds)

    def states(self) -> dict[str, str]:
        """Return "ready" or the reason why not, for each collection."""
        return dict(self._states)

    def _warm_up(self) -> None:
        for each in self._hosted:
            self._states[each.name] = self._tried(each)

    def _tried(self, hosted: HostedCollection) -> str:
        try:
            for target in ("images", "texts"):
                hosted.collection.search(_WARM_UP_WORDS, 1, target=target)
            hosted.collection.facets()
            hosted.collection.suggestions("")
        except Exception:
            # Whatever it is, the service goes on for the other collections; clients see no paths of this machine.
            _log.exception("collection %s cannot be searched", hosted.name)
            return "cannot be searched; the log of the service says why"
        return "ready"
