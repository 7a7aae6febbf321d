"""Thumbnails that are about to be asked for."""

from __future__ import annotations

from contextlib import suppress

from fastapi import BackgroundTasks, Request

from diptych.collection import CollectionError
from diptych.service.hosted_collection import HostedCollection
from diptych.service.schemas.search_response import SearchResponse


def expect_thumbnails(
    request: Request, background: BackgroundTasks, hosted: HostedCollection, found: SearchResponse
) -> None:
    """Read the thumbnails of answers at once, when they have left for a page.

    A page asks for each of them next, and thirty reads of one row take about thirty times as long as one of thirty.
    Programs seldom ask, so that nothing is read for them.
    """
    if request.headers.get("sec-fetch-site") == "same-origin":
        background.add_task(_read, hosted, [answer.id for answer in found.answers if answer.picture])


def _read(hosted: HostedCollection, ids: list[str]) -> None:
    # An item may be removed meanwhile; its neighbours are then read one by one, when they are asked for.
    with suppress(CollectionError):
        hosted.collection.thumbnails(ids)
