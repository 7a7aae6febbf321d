"""All collections."""

from __future__ import annotations

from diptych.service.schemas.collection_document import CollectionDocument
from diptych.service.schemas.document import Document


class CollectionList(Document):
    """The collections of the service."""

    collections: list[CollectionDocument]
