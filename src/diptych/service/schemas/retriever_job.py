"""The job that adds a retriever."""

from __future__ import annotations

from typing import Literal

from diptych.service.schemas.retriever_request import RetrieverRequest
from diptych.service.schemas.sent_document import SentDocument


class RetrieverJob(SentDocument):
    """Give every item a point of another retriever as well, so that both can be searched and compared."""

    kind: Literal["retriever"]
    """What is to be done."""
    parameters: RetrieverRequest
    """Which one."""
