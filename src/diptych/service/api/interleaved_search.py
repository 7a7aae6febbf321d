"""Searches that two retrievers answer together."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace

from diptych.collection import Answers, Collection, Filter, Query, UnknownRetrieverError
from diptych.metrics import team_draft
from diptych.service.clicks import ClickLog
from diptych.service.clicks.draft import Draft
from diptych.service.clicks.interleaving import Interleaving
from diptych.service.clicks.queries import is_plain
from diptych.service.schemas.search_options import SearchOptions
from diptych.service.schemas.term_request import TermRequest

_DRAW_BYTES = 16


def interleaved_answers(
    collection: Collection,
    log: ClickLog | None,
    query: Query,
    terms: Sequence[TermRequest],
    options: SearchOptions,
    wanted: Filter | None,
) -> tuple[Answers, Draft] | None:
    """Return one page of both retrievers' answers with their teams, or None where one retriever is to answer.

    Two answer while the log says that they are interleaved, and both are there as they were when that began. Only
    searches for pictures with words alone take part: whoever names a retriever wants that one, and two retrievers do
    not mean the same by a least probability.
    """
    present = None if log is None or not _takes_part(query, terms, options) else log.interleaving()
    if log is None or present is None:
        return None
    draw = options.draw or _continued(log, present, query, options) or secrets.token_hex(_DRAW_BYTES)
    rankings = _rankings(collection, present, query, options, wanted)
    return None if rankings is None else _page(present, rankings, options, draw)


def _takes_part(query: Query, terms: Sequence[TermRequest], options: SearchOptions) -> bool:
    is_usual = options.target == "images" and options.retriever is None and options.min_probability is None
    return is_usual and is_plain(str(query), [term.model_dump(exclude_none=True) for term in terms])


def _continued(log: ClickLog, present: Interleaving, query: Query, options: SearchOptions) -> str | None:
    """Return the search that this page goes on with, whose id its teams were drawn with."""
    asked = {"query": str(query), "retriever": present.name, "fingerprint": present.fingerprint}
    search_id = options.search_id
    is_same = search_id is not None and log.may_continue(search_id, target=options.target, **asked)
    return search_id if is_same else None


def _rankings(
    collection: Collection, present: Interleaving, query: Query, options: SearchOptions, wanted: Filter | None
) -> tuple[Answers, Answers] | None:
    depth = options.offset + options.limit
    try:
        a, b = (
            collection.search(
                query, depth, filter=wanted, hybrid=options.hybrid, exact=options.exact, retriever=retriever
            )
            for retriever in (present.a, present.b)
        )
    except UnknownRetrieverError:
        return None
    is_as_it_was = (a.fingerprint, b.fingerprint) == (present.a_fingerprint, present.b_fingerprint)
    return (a, b) if is_as_it_was else None


def _page(
    present: Interleaving, rankings: tuple[Answers, Answers], options: SearchOptions, draw: str
) -> tuple[Answers, Draft]:
    a, b = rankings
    found = {"a": {answer.id: answer for answer in a}, "b": {answer.id: answer for answer in b}}
    end = options.offset + options.limit
    drafted = team_draft(list(found["a"]), list(found["b"]), end, seed=bytes.fromhex(draw))[options.offset :]
    page = tuple(
        replace(found[team][item], rank=rank) for rank, (item, team) in enumerate(drafted, start=options.offset + 1)
    )
    answers = Answers(
        page,
        no_good_match=a.no_good_match and b.no_good_match,
        considered=max(a.considered, b.considered),
        exact=a.exact and b.exact,
        seconds=a.seconds + b.seconds,
        notes=a.notes,
        retriever=present.name,
        fingerprint=present.fingerprint,
        cutoff=min(a.cutoff, b.cutoff),
    )
    return answers, Draft(present.number, draw, [team for _, team in drafted])
