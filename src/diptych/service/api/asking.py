"""From what was sent to a query, and from answers to what is sent back."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from diptych.collection import Answer, Answers, Item, Query, Term, parse_query
from diptych.service.api.asked_filter import asked_filter
from diptych.service.api.interleaved_search import interleaved_answers
from diptych.service.clicks.draft import Draft
from diptych.service.context import ServiceContext
from diptych.service.hosted_collection import HostedCollection
from diptych.service.problem import Problem
from diptych.service.schemas.answer_document import AnswerDocument
from diptych.service.schemas.retriever_summary import RetrieverSummary
from diptych.service.schemas.search_options import SearchOptions
from diptych.service.schemas.search_response import SearchResponse
from diptych.service.schemas.term_request import TermRequest

_SHOWN_CAPTIONS = 5


def asked_terms(context: ServiceContext, query: str | None, terms: Sequence[TermRequest] | None) -> list[TermRequest]:
    """Return what is asked as terms; names of files in a text are never looked up on this machine."""
    limits = context.settings.limits
    if terms is None:
        text = query or ""
        if len(text) > limits.query_characters:
            detail = f"The query has {len(text):,} characters; ask with at most {limits.query_characters:,}."
            raise Problem(422, "query-too-long", detail)
        terms = [_sent(term) for term in parse_query(text, find_picture=lambda _: None).terms]
    if len(terms) > limits.query_terms:
        detail = f"The query has {len(terms)} terms; ask with at most {limits.query_terms}."
        raise Problem(422, "too-many-terms", detail)
    return list(terms)


def query_of(context: ServiceContext, terms: Sequence[TermRequest]) -> Query:
    """Return the query that a collection understands."""
    return Query(tuple(_term(context, term) for term in terms))


def query_text(terms: Sequence[TermRequest]) -> str:
    """Return the query as people read it."""
    return str(Query(tuple(Term(_kind(term), _shown(term), term.weight) for term in terms)))


def run_search(
    context: ServiceContext, hosted: HostedCollection, terms: Sequence[TermRequest], options: SearchOptions
) -> SearchResponse:
    """Search, remember the search where that is wanted, and return what the client gets."""
    _check_paging(context, options)
    answers, draft = _found(context, hosted, terms, options)
    context.metrics.count_search(hosted.name, no_good_match=answers.no_good_match)
    summary = RetrieverSummary(name=answers.retriever, fingerprint=answers.fingerprint)
    cutoff = answers.cutoff
    end = options.offset + options.limit
    more = len(answers) > 0 and end < answers.considered and end <= context.settings.limits.deepest_answer
    return SearchResponse(
        search_id=_remembered(context, hosted, terms, options, answers, draft) if options.log else None,
        query=query_text(terms),
        target=options.target,
        retriever=summary,
        limit=options.limit,
        offset=options.offset,
        considered=answers.considered,
        exact=answers.exact,
        seconds=answers.seconds,
        no_good_match=answers.no_good_match,
        cutoff=cutoff,
        upload=next((term.upload for term in terms if term.upload is not None), None),
        answers=[_document(answer, answer.item, cutoff) for answer in answers if answer.item is not None],
        next_offset=end if more else None,
        draw=None if draft is None else draft.draw,
    )


def _found(
    context: ServiceContext, hosted: HostedCollection, terms: Sequence[TermRequest], options: SearchOptions
) -> tuple[Answers, Draft | None]:
    query, wanted = query_of(context, terms), asked_filter(context, options.filter)
    log = context.click_logs.get(hosted.name)
    both = interleaved_answers(hosted.collection, log, query, terms, options, wanted)
    if both is not None:
        return both
    alone = hosted.collection.search(
        query,
        options.limit,
        target=options.target,
        filter=wanted,
        hybrid=options.hybrid,
        exact=options.exact,
        min_probability=options.min_probability,
        offset=options.offset,
        retriever=options.retriever,
    )
    return alone, None


def _check_paging(context: ServiceContext, options: SearchOptions) -> None:
    limits = context.settings.limits
    if options.limit > limits.page_size:
        raise Problem(422, "page-too-large", f"A page has at most {limits.page_size} answers; ask for the next page.")
    if options.offset > limits.deepest_answer:
        raise Problem(422, "page-too-deep", f"Answers end at {limits.deepest_answer:,}; ask more precisely.")


def _remembered(
    context: ServiceContext,
    hosted: HostedCollection,
    terms: Sequence[TermRequest],
    options: SearchOptions,
    answers: Answers,
    draft: Draft | None,
) -> str | None:
    log = context.click_logs.get(hosted.name)
    if log is None:
        return None
    return log.record_search(
        query=query_text(terms),
        retriever=answers.retriever,
        fingerprint=answers.fingerprint,
        target=options.target,
        shown=[(answer.id, answer.rank) for answer in answers],
        no_good_match=answers.no_good_match,
        best_probability=answers[0].probability if answers else None,
        continues=options.search_id,
        terms=[term.model_dump(exclude_none=True) for term in terms],
        draft=draft,
    )


def _document(answer: Answer, item: Item, cutoff: float) -> AnswerDocument:
    # Nothing here comes from outside, so it need not be checked again.
    return AnswerDocument.model_construct(
        rank=answer.rank,
        id=item.id,
        score=answer.score,
        probability=answer.probability,
        good=answer.probability >= cutoff,
        caption=answer.caption,
        caption_id=answer.caption_id,
        matched_by=list(answer.matched_by),
        picture=item.path is not None,
        width=item.width,
        height=item.height,
        labels=list(item.labels),
        captions=list(item.captions[:_SHOWN_CAPTIONS]),
        metadata=dict(item.metadata),
        name=None if item.path is None else os.path.basename(item.path),
        content_hash=item.content_hash,
    )


def _sent(term: Term) -> TermRequest:
    if abs(term.weight) > 100:
        raise Problem(422, "weight-too-large", f"A weight is at most 100, got {term.weight:g}; write a smaller one.")
    return TermRequest.model_validate({term.kind: term.value, "weight": term.weight})


def _term(context: ServiceContext, term: TermRequest) -> Term:
    if term.upload is not None:
        return Term("picture", context.uploads.find(term.upload).file, term.weight)
    return Term(_kind(term), _shown(term), term.weight)


def _kind(term: TermRequest) -> Any:
    return "text" if term.text is not None else "item" if term.item is not None else "picture"


def _shown(term: TermRequest) -> str:
    return term.text or term.item or f"upload:{term.upload}"
