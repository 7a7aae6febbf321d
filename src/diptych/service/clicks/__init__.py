"""The click log: what was asked, shown and clicked, kept on this machine."""

from diptych.service.clicks.errors import ClickLogError, NotShownError, UnknownSearchError
from diptych.service.clicks.log import ClickLog

__all__ = ["ClickLog", "ClickLogError", "NotShownError", "UnknownSearchError"]
