"""The filter that a request brings along."""

from __future__ import annotations

from diptych.collection import Filter
from diptych.service.context import ServiceContext
from diptych.service.problem import Problem


def asked_filter(context: ServiceContext, text: str | None) -> Filter | None:
    """Return what a text filters by; every condition costs a look at every item, so there may be only so many."""
    if text is None:
        return None
    wanted = Filter.parse(text)
    most = context.settings.limits.filter_conditions
    conditions = _count(wanted)
    if conditions > most:
        raise Problem(422, "filter-too-long", f"The filter has {conditions} conditions; write it with at most {most}.")
    return wanted


def _count(wanted: Filter) -> int:
    return sum(_count(part) for part in wanted.parts) or 1
