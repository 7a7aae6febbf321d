"""The click log: what was asked, shown and clicked, kept with the collection."""

from diptych.service.clicks.click_log import ClickLog
from diptych.service.clicks.records import NotShownError, UnknownSearchError

__all__ = ["ClickLog", "NotShownError", "UnknownSearchError"]
