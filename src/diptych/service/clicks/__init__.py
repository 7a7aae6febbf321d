"""The click log: what was asked, shown and clicked, kept on this machine."""

from diptych.service.clicks.log import ClickLog
from diptych.service.clicks.records import ClickLogError, NotShownError, UnknownSearchError

__all__ = ["ClickLog", "ClickLogError", "NotShownError", "UnknownSearchError"]
