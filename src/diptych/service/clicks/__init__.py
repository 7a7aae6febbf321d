"""The click log: what was asked, shown and clicked, kept on this machine."""

from diptych.service.clicks.click_log import ClickLog
from diptych.service.clicks.click_log_error import ClickLogError
from diptych.service.clicks.not_shown_error import NotShownError
from diptych.service.clicks.unknown_search_error import UnknownSearchError

__all__ = ["ClickLog", "ClickLogError", "NotShownError", "UnknownSearchError"]
