"""What people think of two retrievers, side by side."""

from __future__ import annotations

from fastapi import APIRouter, status

from diptych.service.api.click_log_access import Logged, log_problems
from diptych.service.schemas.vote_list import VoteList
from diptych.service.schemas.vote_pair_document import VotePairDocument
from diptych.service.schemas.vote_receipt import VoteReceipt
from diptych.service.schemas.vote_request import VoteRequest
from diptych.service.security.guards import Clicking, Reading

router = APIRouter(prefix="/v1", tags=["votes"], dependencies=[Reading])

_VOTES = "/collections/{collection}/votes"


@router.post(_VOTES, status_code=status.HTTP_201_CREATED, operation_id="recordVote", dependencies=[Clicking])
def record_vote(log: Logged, vote: VoteRequest) -> VoteReceipt:
    """Remember which of two searches, of one query with two retrievers, a person prefers."""
    with log_problems():
        return VoteReceipt(id=log.record_vote(left=vote.left, right=vote.right, choice=vote.choice))


@router.get(_VOTES, operation_id="listVotes")
def list_votes(log: Logged) -> VoteList:
    """Count the votes for each two retrievers, with the sign test on them."""
    with log_problems():
        pairs = log.votes()
    return VoteList(
        pairs=[
            VotePairDocument(
                left=pair.left,
                left_fingerprint=pair.left_fingerprint,
                right=pair.right,
                right_fingerprint=pair.right_fingerprint,
                left_wins=pair.left_wins,
                right_wins=pair.right_wins,
                both=pair.both,
                neither=pair.neither,
                p_value=pair.p_value,
            )
            for pair in pairs
        ]
    )
