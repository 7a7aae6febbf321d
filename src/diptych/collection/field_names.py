"""The names of fields in filters."""

from __future__ import annotations

OWN_FIELDS = (
    "id",
    "path",
    "name",
    "kind",
    "label",
    "caption",
    "width",
    "height",
    "size",
    "added",
    "updated",
    "modified",
)
"""What every item has; any other field is a metadatum."""


def filter_name(metadatum: str) -> str:
    """Return the field of a filter that stands for a metadatum.

    >>> from diptych.collection.field_names import filter_name
    >>> filter_name("camera"), filter_name("path")
    ('camera', 'meta.path')
    """
    hidden = metadatum.lower() in OWN_FIELDS or metadatum.startswith("meta.")
    return f"meta.{metadatum}" if hidden else metadatum
