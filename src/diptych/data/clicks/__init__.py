"""Click logs: which picture was clicked for which query, and how often."""

from diptych.data.clicks.click_log import ClickLog, Grouping
from diptych.data.clicks.click_reading import CLICK_LAYOUTS, ClickLayout, read_clicks

__all__ = ["CLICK_LAYOUTS", "ClickLayout", "ClickLog", "Grouping", "read_clicks"]
