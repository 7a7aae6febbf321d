"""What clicks said of retrievers."""

from __future__ import annotations

from diptych.service.schemas.document import Document
from diptych.service.schemas.interleaving_document import InterleavingDocument


class InterleavingList(Document):
    """Each two retrievers that were interleaved."""

    interleavings: list[InterleavingDocument]
    """The latest first; at most that one runs."""
