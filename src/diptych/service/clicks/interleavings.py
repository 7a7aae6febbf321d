"""Two retrievers compared by interleaved searches: what is counted, and the sign test on it."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from diptych.collection.store.dialect import Connection
from diptych.service.clicks.records import NEGATIVE_CLICK, InterleavingError, iso_time

if TYPE_CHECKING:
    from diptych.collection import StoredRetriever

_INTERLEAVINGS = "SELECT id, a, a_fingerprint, b, b_fingerprint, started, stopped FROM interleaving"
_CLICKS = """
SELECT draft.search, item, position - draft.first, teams FROM draft
JOIN click ON click.search = draft.search AND draft.first <= position AND position < draft.first + draft.length
WHERE interleaving = ? AND kind <> ?
"""


@dataclass(frozen=True)
class Interleaving:
    """A comparison of two retrievers on live traffic; times are seconds since 1970, ``stopped`` None while it runs."""

    number: int
    a: str
    a_fingerprint: str
    b: str
    b_fingerprint: str
    started: float
    stopped: float | None

    @property
    def name(self) -> str:
        """What the log calls the two of them as one retriever."""
        return f"{self.a} + {self.b}"

    @property
    def fingerprint(self) -> str:
        """A digest of both fingerprints, as long as each."""
        both = hashlib.sha256(f"{self.a_fingerprint} {self.b_fingerprint}".encode()).hexdigest()
        return both[: len(self.a_fingerprint)]


def running(db: Connection) -> Interleaving | None:
    """Return the interleaving that runs, or None."""
    rows = db.rows(f"{_INTERLEAVINGS} WHERE stopped IS NULL")
    return Interleaving(*rows[0]) if rows else None


def start(db: Connection, a: tuple[str, str], b: tuple[str, str], time: float) -> Interleaving:
    """Write that two retrievers, given as name and fingerprint, are interleaved from now on."""
    present = running(db)
    if present is not None:
        raise InterleavingError(f"{present.a!r} and {present.b!r} are interleaved now; stop that first")
    number = db.value(
        "INSERT INTO interleaving (a, a_fingerprint, b, b_fingerprint, started) VALUES (?, ?, ?, ?, ?) RETURNING id",
        (*a, *b, time),
    )
    return Interleaving(number, *a, *b, time, None)


def stop(db: Connection, time: float) -> Interleaving:
    """Write that the interleaving that runs has ended."""
    present = running(db)
    if present is None:
        raise InterleavingError("no retrievers are interleaved now; start with two of them")
    db.run("UPDATE interleaving SET stopped = ? WHERE id = ?", (time, present.number))
    return replace(present, stopped=time)


@dataclass(frozen=True)
class InterleavingReport:
    """Two search models that answered the same searches together, and whose answers were clicked.

    A search is won by the model with more clicked answers. A wish for less of an item is no click.
    """

    a: str
    """The name of the one."""
    a_fingerprint: str
    """Its fingerprint."""
    b: str
    """The name of the other."""
    b_fingerprint: str
    """Its fingerprint."""
    state: Literal["running", "waiting", "stopped"]
    """Whether both answer now; waiting means that one of them is no longer there as it was, so neither does."""
    started: str
    """Since when, ISO 8601."""
    stopped: str | None
    """Until when; null while it goes on."""
    searches: int
    """How many searches both answered."""
    clicks_a: int
    """Clicked answers that the one picked; an answer counts once in each search."""
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


def sign_test(wins_a: int, wins_b: int) -> float:
    """Return the p-value of the two-sided exact sign test; ties are left out, as Dixon and Mood (1946) do."""
    # Imported lazily: opening a log does not need scipy.
    from scipy.stats import binomtest

    decided = wins_a + wins_b
    return float(binomtest(wins_a, decided).pvalue) if decided else 1.0


def interleaving_reports(db: Connection, stored: Iterable[StoredRetriever] = ()) -> list[InterleavingReport]:
    """Count for each interleaving, the latest first; ``stored`` are the retrievers that can answer."""
    ready = {(one.name, one.fingerprint) for one in stored if one.ready}
    return [_report(db, Interleaving(*row), ready) for row in db.rows(f"{_INTERLEAVINGS} ORDER BY id DESC")]


def _report(db: Connection, one: Interleaving, ready: set[tuple[str, str]]) -> InterleavingReport:
    picked: dict[int, dict[str, set[str]]] = defaultdict(lambda: {"a": set(), "b": set()})
    for search, item, place, teams in db.rows(_CLICKS, (one.number, NEGATIVE_CLICK)):
        picked[search][teams[place]].add(item)
    counts = [(len(items["a"]), len(items["b"])) for items in picked.values()]
    wins_a, wins_b = sum(a > b for a, b in counts), sum(a < b for a, b in counts)
    is_whole = {(one.a, one.a_fingerprint), (one.b, one.b_fingerprint)} <= ready
    return InterleavingReport(
        one.a,
        one.a_fingerprint,
        one.b,
        one.b_fingerprint,
        state="stopped" if one.stopped is not None else "running" if is_whole else "waiting",
        started=iso_time(one.started),
        stopped=None if one.stopped is None else iso_time(one.stopped),
        searches=db.value("SELECT count(DISTINCT search) FROM draft WHERE interleaving = ?", (one.number,)),
        clicks_a=sum(a for a, _ in counts),
        clicks_b=sum(b for _, b in counts),
        wins_a=wins_a,
        wins_b=wins_b,
        ties=len(counts) - wins_a - wins_b,
        p_value=sign_test(wins_a, wins_b),
    )
