"""Clicks, the query log, and two retrievers that are interleaved on live traffic, over REST."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from diptych.service.clicks.records import ClickKind
from diptych.service.schemas import Document, RequestDocument, with_examples
from diptych.service.schemas.retrievers import Fingerprint


class InterleavingRequest(RequestDocument):
    """Two search models of the collection."""

    model_config = with_examples({"a": "default", "b": "learned"})

    a: str = Field(min_length=1, max_length=200)
    b: str = Field(min_length=1, max_length=200)


class InterleavingDocument(Document):
    """Two search models that answered the same searches together, and whose answers were clicked."""

    a: str
    a_fingerprint: Fingerprint
    b: str
    b_fingerprint: Fingerprint
    state: Literal["running", "waiting", "stopped"]
    """Whether both answer now; waiting means that one of them is no longer there as it was, so neither does."""
    started: str
    """Since when, ISO 8601."""
    stopped: str | None
    """Until when; null while it goes on."""
    searches: int
    """How many searches both answered."""
    clicks_a: int
    """Clicked answers that the one picked."""
    clicks_b: int
    """Clicked answers that the other picked."""
    wins_a: int
    """Searches in which more of the one's answers were clicked."""
    wins_b: int
    """Searches in which more of the other's were."""
    ties: int
    """Searches in which as many were, and any at all."""
    p_value: float
    """How likely so uneven a split of the wins is if neither is better: the exact sign test, two-sided."""


class InterleavingList(Document):
    """Each two search models that were interleaved."""

    interleavings: list[InterleavingDocument]
    """The latest first; at most that one runs."""


class ClickRequest(RequestDocument):
    """What a person did with one answer of a search."""

    model_config = with_examples(
        {"search_id": "0123456789abcdef0123456789abcdef", "item": "5f2b", "position": 1, "kind": "open"}
    )

    search_id: str = Field(min_length=1, max_length=64)
    """The search that showed the answer."""
    item: str = Field(min_length=1, max_length=400)
    """The id of the answer."""
    position: int = Field(ge=1, le=2**31 - 1)
    """The rank at which it was shown, from 1."""
    kind: ClickKind = "open"
    """What was done: opened, looked at in full, or asked for more or less like it."""
    caption_id: str | None = Field(default=None, max_length=400)
    """Which text of the item it was, when texts were searched."""


class ClickReceipt(Document):
    """The click is on the disk."""

    id: int
    """Its number in the log."""


class VisibleWords(Document):
    """A part of a query that is the name of something that can be seen in pictures."""

    start: int
    """Where it begins in the query, in characters from 0."""
    end: int
    """The character behind it."""
    concept: str
    """The name, as ImageNet has it."""


QueryText = Annotated[str, Field(description="The query, in lower case.")]
TimesAsked = Annotated[int, Field(description="How often it was asked.")]
LastAsked = Annotated[str, Field(description="When it was asked last, ISO 8601.")]
Visualness = Annotated[
    float | None, Field(description="The share of its words that name something visible; null where that is not known.")
]
VisibleNames = Annotated[list[VisibleWords], Field(description="These names, from left to right.")]


class DayCount(Document):
    """How much was asked and clicked on one day."""

    day: str
    """The date, ISO 8601, by the calendar of the service."""
    searches: int
    clicks: int


class QueryCount(Document):
    """How often a query was asked, and how well it did."""

    query: QueryText
    searches: TimesAsked
    clicked_share: float
    """The share of these searches in which something was clicked."""
    last: LastAsked
    no_good_match: bool
    """Whether none of these searches had a good match."""
    visualness: Visualness
    visible: VisibleNames


class FailingQuery(Document):
    """A query that people ask in vain."""

    query: QueryText
    searches: TimesAsked
    reason: Literal["no good match", "never clicked"]
    """Why it is listed: nothing reached the cut-off, or nobody used an answer though it was asked often."""
    last: LastAsked
    visualness: Visualness
    visible: VisibleNames


class PositionCount(Document):
    """How often a place was shown and clicked."""

    position: int
    """The place, from 1."""
    shown: int
    """How often an answer was shown there."""
    clicked: int
    """In how many searches it was clicked."""


class VisualSearches(Document):
    """Which share of the searches in words asks for what can be seen; of very many queries, the most frequent count."""

    threshold: float
    """A query is visual if its visualness is above this."""
    searches: float
    """The share of visual ones among all searches."""
    clicked: float | None
    """The share of visual ones among searches with a click: larger, if visual ones are answered better."""


class QueryLogDocument(Document):
    """What was asked, what was clicked, and where the answers failed; a wish for less of an item is no click."""

    log: bool
    """Whether searches and clicks are remembered at all."""
    searches: int
    clicks: int
    visual: VisualSearches | None
    """How much is asked for what can be seen; null where that is not known, or nothing was asked in words."""
    per_day: list[DayCount]
    """Every day, the oldest first."""
    top: list[QueryCount]
    """The most frequent queries."""
    failing: list[FailingQuery]
    """The most frequent queries that found nothing."""
    positions: list[PositionCount]
    """The first hundred places of the answers."""
