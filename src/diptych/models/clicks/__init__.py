"""Methods that learn from a click log."""

from diptych.models.clicks.click_model import ClickModel
from diptych.models.clicks.devise import DeViSE
from diptych.models.clicks.image2text import Image2Text
from diptych.models.clicks.online_classification import OnlineClassification
from diptych.models.clicks.psi import PSI
from diptych.models.clicks.query_based_scoring import QueryBasedScoring
from diptych.models.clicks.text2image import Text2Image

__all__ = ["PSI", "ClickModel", "DeViSE", "Image2Text", "OnlineClassification", "QueryBasedScoring", "Text2Image"]
