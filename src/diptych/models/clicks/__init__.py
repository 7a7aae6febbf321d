"""Methods that learn from a click log."""

from typing import TYPE_CHECKING

from diptych.lazy_exports import declared_exports

if TYPE_CHECKING:
    from diptych.models.clicks.click_model import ClickModel as ClickModel
    from diptych.models.clicks.image2text import Image2Text as Image2Text
    from diptych.models.clicks.image2text import ImageAnnotation as ImageAnnotation
    from diptych.models.clicks.neighbour_queries import OnlineClassification as OnlineClassification
    from diptych.models.clicks.neighbour_queries import QueryBasedScoring as QueryBasedScoring
    from diptych.models.clicks.neighbour_queries import Text2Image as Text2Image
    from diptych.models.clicks.query_memory import QueryMemory as QueryMemory
    from diptych.models.clicks.ranked_clicks import PSI as PSI
    from diptych.models.clicks.ranked_clicks import DeViSE as DeViSE
else:
    # Each is imported when it is asked for: a search needs few of them.
    __getattr__, __all__ = declared_exports(__name__)
