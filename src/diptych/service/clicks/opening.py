"""The click logs of a service."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path

from diptych.service.clicks.click_log import ClickLog
from diptych.service.clicks.click_log_error import ClickLogError
from diptych.service.hosted_collection import HostedCollection

FILE_NAME = "clicks.sqlite"
_log = logging.getLogger("diptych.service")


def click_log_path(collection_folder: Path) -> Path:
    """Return where the click log of a collection is."""
    return collection_folder / "service" / FILE_NAME


def open_click_logs(hosted: Iterable[HostedCollection]) -> dict[str, ClickLog]:
    """Open the log of each collection by the name of the collection.

    One that cannot be opened, on a disk that is read-only for example, is left out: the collection is searched without.
    """
    logs = {}
    for each in hosted:
        try:
            logs[each.name] = ClickLog(each.state_folder / FILE_NAME)
        except ClickLogError as error:
            _log.warning("collection %s is served without a click log: %s", each.name, error)
    return logs
