"""The share of visual searches."""

from __future__ import annotations

from diptych.service.schemas.document import Document


class VisualSearches(Document):
    """Which share of the searches in words asks for what can be seen; of very many queries, the most frequent count."""

    threshold: float
    """A query is visual if its visualness is above this."""
    searches: float
    """The share of visual ones among all searches."""
    clicked: float | None
    """The share of visual ones among searches with a click: larger, if visual ones are answered better."""
