"""A route for ``diptych search`` of the same user on the same machine: its very answers, and nothing remembered."""

from __future__ import annotations

import hmac
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from diptych.service.context import Context, Hosted, Reading, Searching
from diptych.service.local_search import SIGNATURE_HEADER, answers_text, local_key, signature
from diptych.service.schemas import Document
from diptych.service.security.auth import unauthorised

# No part of the API: what it returns is that of this version.
router = APIRouter(prefix="/v1", include_in_schema=False, dependencies=[Reading])


class LocalSearch(Document):
    """What the command was told."""

    q: str
    k: int
    target: Literal["images", "texts"]
    filter: str | None = None
    hybrid: float | bool | None = None
    exact: bool | None = None
    offset: int = 0
    regions: bool = True
    rerank: int | None = None
    rerank_by: Literal["codes", "features"] = "codes"


@router.get("/collections/{collection}/answers", dependencies=[Searching])
def local_answers(
    context: Context, hosted: Hosted, request: Request, asked: Annotated[LocalSearch, Query()]
) -> Response:
    """Search as ``Collection.search`` does, for whoever has the key that lies in the collection."""
    key = local_key(context.settings.session_secret, context.settings.collections[hosted.name])
    given = request.headers.get(SIGNATURE_HEADER, "")
    if not hmac.compare_digest(given.encode(errors="replace"), signature(key, request.url.query).encode()):
        raise unauthorised("This is for whoever can read the note of this service in the collection.")
    how = asked.model_dump(exclude={"q", "k"})
    content = answers_text(hosted.collection.search(asked.q, asked.k, **how)).encode()
    return Response(content, media_type="application/json", headers={SIGNATURE_HEADER: signature(key, content)})
