"""All votes, as clients see them."""

from __future__ import annotations

from diptych.service.schemas.document import Document
from diptych.service.schemas.vote_pair_document import VotePairDocument


class VoteList(Document):
    """The votes on each two retrievers that were compared."""

    pairs: list[VotePairDocument]
    """In the order of the names."""
