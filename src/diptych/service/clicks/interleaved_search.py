"""Searches that two retrievers answer together, each picking answers in turn."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from diptych.collection import Answers, Collection, UnknownRetrieverError
from diptych.collection.searching.query import SearchRequest
from diptych.metrics import team_draft
from diptych.service.clicks.click_log import ClickLog
from diptych.service.clicks.interleavings import Interleaving
from diptych.service.clicks.records import InterleavedPage, is_plain


def interleaved_answers(
    collection: Collection,
    log: ClickLog | None,
    request: SearchRequest,
    terms: Sequence[Mapping[str, Any]],
    *,
    draw: str | None = None,
    continues: str | None = None,
) -> tuple[Answers, InterleavedPage] | None:
    """Return one page of both retrievers' answers with their teams, or None where one retriever is to answer.

    Two answer while the log says that they are interleaved, and both are there as they were when that began. Only
    searches for pictures with words alone take part. A page with the ``draw`` of an earlier one, or one that
    ``continues`` the search of that id, goes on in the same order.
    """
    # A named retriever is wanted alone, and two retrievers do not mean the same by a least probability.
    is_usual = request.target == "images" and request.retriever is None and request.min_probability is None
    if log is None or not is_usual or request.sort != "relevance" or not is_plain(str(request.query), terms):
        return None
    present = log.interleaving()
    if present is None:
        return None
    asked = {"query": str(request.query), "retriever": present.name, "fingerprint": present.fingerprint}
    if draw is None and continues is not None and log.may_continue(continues, target=request.target, **asked):
        draw = continues
    rankings = _rankings(collection, present, request)
    return None if rankings is None else _drafted_page(present, rankings, request, draw or secrets.token_hex(16))


def _rankings(collection: Collection, present: Interleaving, request: SearchRequest) -> tuple[Answers, Answers] | None:
    whole = replace(request, k=request.offset + request.k, offset=0)
    try:
        a, b = (collection.answer(replace(whole, retriever=one)) for one in (present.a, present.b))
    except UnknownRetrieverError:
        return None
    is_as_it_was = (a.fingerprint, b.fingerprint) == (present.a_fingerprint, present.b_fingerprint)
    return (a, b) if is_as_it_was else None


def _drafted_page(
    present: Interleaving, rankings: tuple[Answers, Answers], request: SearchRequest, draw: str
) -> tuple[Answers, InterleavedPage]:
    a, b = rankings
    answers = {"a": {answer.id: answer for answer in a}, "b": {answer.id: answer for answer in b}}
    end = request.offset + request.k
    drafted = team_draft(list(answers["a"]), list(answers["b"]), end, seed=bytes.fromhex(draw))[request.offset :]
    page = replace(
        a,
        found=tuple(
            replace(answers[team][item], rank=rank)
            for rank, (item, team) in enumerate(drafted, start=request.offset + 1)
        ),
        no_good_match=a.no_good_match and b.no_good_match,
        considered=max(a.considered, b.considered),
        exact=a.exact and b.exact,
        seconds=a.seconds + b.seconds,
        retriever=present.name,
        fingerprint=present.fingerprint,
        cutoff=min(a.cutoff, b.cutoff),
    )
    return page, InterleavedPage(present.number, draw, [team for _, team in drafted])
