"""A claim about methods, and what the results say about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["confirmed", "not confirmed", "not testable"]


@dataclass(frozen=True)
class Observation:
    """One claim on one experiment: the verdict, its p-value, a sentence of evidence, and a table of details.

    ``p_value`` belongs to what ``tested`` names and is None where it could not be tested. ``headings`` and ``rows`` are
    the table, as text.
    """

    claim: str
    where: str
    verdict: Verdict
    p_value: float | None
    evidence: str
    headings: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    tested: str = "the claim"

    @property
    def outcome(self) -> str:
        """The verdict with its p-value, and what that belongs to."""
        return self.verdict if self.p_value is None else f"{self.verdict}, {p_equals(self.p_value)} for {self.tested}"


def untested(claim: str, where: str, why: str) -> Observation:
    """Return a claim that these results cannot speak to, and why."""
    return Observation(claim, where, "not testable", None, why)


def p_equals(p_value: float) -> str:
    """Return a p-value as part of a sentence.

    >>> from diptych.benchmark.reporting.observation import p_equals
    >>> p_equals(0.03125), p_equals(0.00002)
    ('p = 0.031', 'p < 0.001')
    """
    written = written_p(p_value)
    return f"p {written}" if written.startswith("<") else f"p = {written}"


def signed(value: float, digits: int = 4) -> str:
    """Return a difference with its sign, a real minus.

    >>> from diptych.benchmark.reporting.observation import signed
    >>> signed(-0.25), signed(2.6, 1)
    ('−0.2500', '+2.6')
    """
    return f"{value:+.{digits}f}".replace("-", "−")


def written_p(p_value: float | None) -> str:
    """Return a p-value as text, with a bound where it is small.

    >>> from diptych.benchmark.reporting.observation import written_p
    >>> written_p(0.03125), written_p(0.00002), written_p(None)
    ('0.031', '< 0.001', '–')
    """
    if p_value is None:
        return "–"
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"
