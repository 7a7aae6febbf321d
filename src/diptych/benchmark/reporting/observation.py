"""A claim about methods, and what the results say about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["confirmed", "not confirmed", "not testable"]


@dataclass(frozen=True)
class Observation:
    """One claim on one experiment: the verdict, its p-value, one sentence of evidence, and a table with the details.

    ``p_value`` belongs to the whole claim and is None where it could not be tested. ``headings`` and ``rows`` are the
    table, as text.
    """

    claim: str
    where: str
    verdict: Verdict
    p_value: float | None
    evidence: str
    headings: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


def untested(claim: str, where: str, why: str) -> Observation:
    """Return a claim that these results cannot speak to, and why."""
    return Observation(claim, where, "not testable", None, why)


def written_p(p_value: float | None) -> str:
    """Return a p-value as text, with a bound where it is small.

    >>> from diptych.benchmark.reporting.observation import written_p
    >>> written_p(0.03125), written_p(0.00002), written_p(None)
    ('0.031', '< 0.001', '–')
    """
    if p_value is None:
        return "–"
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"
