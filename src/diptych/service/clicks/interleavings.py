"""Two retrievers compared by interleaved searches: what is counted, and the sign test on it."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import dataclass, replace

from diptych.collection.store.dialect import Connection
from diptych.service.clicks.records import NEGATIVE_CLICK, InterleavingError

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
    """How many searches two retrievers answered together, and how the clicks fell.

    ``clicks_a`` and ``clicks_b`` count clicked items by the retriever whose pick they were. A search is won by the one
    with more of them; ``ties`` are searches with as many for each, and at least one. A wish for less of an item is no
    click.
    """

    interleaving: Interleaving
    searches: int
    clicks_a: int
    clicks_b: int
    wins_a: int
    wins_b: int
    ties: int

    @property
    def p_value(self) -> float:
        """How likely so uneven a split of the searches is if neither is better: the two-sided exact sign test.

        Ties are left out, as Dixon and Mood (1946) do.
        """
        # Imported lazily: opening a log does not need scipy.
        from scipy.stats import binomtest

        decided = self.wins_a + self.wins_b
        return float(binomtest(self.wins_a, decided).pvalue) if decided else 1.0


def interleaving_reports(db: Connection) -> list[InterleavingReport]:
    """Count for each interleaving, the latest first."""
    return [_report(db, Interleaving(*row)) for row in db.rows(f"{_INTERLEAVINGS} ORDER BY id DESC")]


def _report(db: Connection, one: Interleaving) -> InterleavingReport:
    searches = db.value("SELECT count(DISTINCT search) FROM draft WHERE interleaving = ?", (one.number,))
    # An item counts once in each search, however often it was clicked.
    picked: dict[int, dict[str, set[str]]] = defaultdict(lambda: {"a": set(), "b": set()})
    for search, item, place, teams in db.rows(_CLICKS, (one.number, NEGATIVE_CLICK)):
        picked[search][teams[place]].add(item)
    counts = [(len(items["a"]), len(items["b"])) for items in picked.values()]
    return InterleavingReport(
        one,
        searches,
        clicks_a=sum(a for a, _ in counts),
        clicks_b=sum(b for _, b in counts),
        wins_a=sum(a > b for a, b in counts),
        wins_b=sum(b > a for a, b in counts),
        ties=sum(a == b for a, b in counts),
    )
