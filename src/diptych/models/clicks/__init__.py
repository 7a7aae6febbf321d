"""Methods that learn from a click log."""

from diptych.models.clicks.click_model import ClickModel
from diptych.models.clicks.text2image import Text2Image

__all__ = ["ClickModel", "Text2Image"]
