"""The clicks that ``diptych learn`` means."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from diptych.errors import InvalidInputError

if TYPE_CHECKING:
    from diptych.collection.learning import Impressions
    from diptych.data.clicks import ClickLog


def clicks_to_learn(collection: Path, log: Path | None) -> Impressions | ClickLog:
    """Return what was shown and clicked in the service, or the triads of a file, which know no positions."""
    from diptych.data.clicks import read_clicks

    if log is not None:
        return read_clicks(log)
    from diptych.collection.learning import Impressions
    from diptych.service.clicks.opening import click_log_path
    from diptych.service.clicks.plain_impressions import plain_impressions

    path = click_log_path(collection)
    if not path.is_file():
        raise InvalidInputError(
            f"nothing was logged for {collection}; search and click in `diptych serve` first, or pass a table of "
            "clicks with --log FILE"
        )
    seen = Impressions.from_rows(plain_impressions(path))
    if not seen.n_clicks:
        raise InvalidInputError(
            f"nobody has clicked a picture of {collection} that was found by words; search and click in "
            "`diptych serve` first"
        )
    return seen
