"""Which retrievers a collection used when and why, and the way back."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from typing import Any, Literal, Protocol, Self

from diptych.collection.store.dialect import Connection

Action = Literal["promoted", "kept", "rolled back", "changed"]
Origin = Literal["clicks", "captions", "switch", "choice"]


@dataclass(frozen=True)
class LearningRecord:
    """A change of the retriever in force, or a comparison after which everything stayed as it was.

    ``before`` and ``after`` name the retrievers in force, the same when everything was kept. ``origin`` says what began
    it: learning from clicks or from captions, a switch to another retriever, or the choice of a stored one.
    ``compared_with`` is the one that a learned one had to beat; ``old`` and ``new`` are the mean of ``measure`` over
    the held-out queries or pictures. ``gate`` has all numbers of a comparison on captions. ``parts`` are the weights of
    what was fused; ``gained`` and ``lost`` are queries with their values before and after.

    >>> from diptych.collection.learning import LearningRecord
    >>> record = LearningRecord("2026-01-01T12:00:00+00:00", "kept", "default", "f1", "default", "f1", reason="few")
    >>> LearningRecord.from_json(record.to_json()) == record
    True
    """

    time: str
    action: Action
    before: str
    before_fingerprint: str
    after: str
    after_fingerprint: str
    reason: str = ""
    compared_with: str = ""
    measure: str = ""
    old: float | None = None
    new: float | None = None
    p_value: float | None = None
    alpha: float | None = None
    n_queries: int = 0
    n_held_out: int = 0
    n_clicks: float = 0.0
    answered: float | None = None
    parts: dict[str, float] = field(default_factory=dict)
    gained: tuple[tuple[str, float, float], ...] = ()
    lost: tuple[tuple[str, float, float], ...] = ()
    origin: Origin = "clicks"
    gate: dict[str, Any] = field(default_factory=dict)

    @property
    def is_change(self) -> bool:
        """Return True if another retriever came into force that was not the one before."""
        return self.action in ("promoted", "changed")

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        """Read plain values; what a newer version added is left out."""
        known = {each.name for each in fields(cls)}
        values = {name: value for name, value in document.items() if name in known}
        for name in ("gained", "lost"):
            values[name] = tuple((query, old, new) for query, old, new in values.get(name, ()))
        return cls(**values)


class _Named(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...


def from_to(before: _Named, after: _Named) -> dict[str, Any]:
    """Return the fields of a record that name two retrievers."""
    left = {"before": before.name, "before_fingerprint": before.fingerprint}
    return {**left, "after": after.name, "after_fingerprint": after.fingerprint}


def utc_now() -> str:
    """Return the present time, in UTC, as the history writes it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def records(db: Connection) -> list[LearningRecord]:
    """Return every step, oldest first."""
    rows = db.rows("SELECT record FROM model_history ORDER BY id")
    return [LearningRecord.from_json(json.loads(record)) for (record,) in rows]


def remember(db: Connection, record: LearningRecord) -> None:
    """Write down what is done in this transaction."""
    row = time.time_ns(), json.dumps(record.to_json())
    db.run("INSERT INTO model_history (time_ns, record) VALUES (?, ?)", row)


def change_to(fingerprint: str, history: Sequence[LearningRecord]) -> LearningRecord | None:
    """Return the change that brought a retriever: the latest not taken back, or else the latest."""
    standing: list[LearningRecord] = []
    for record in history:
        if record.is_change:
            standing.append(record)
        elif record.action == "rolled back":
            taken_back = _latest(standing, record.before_fingerprint)
            standing = [each for each in standing if each is not taken_back]
    return _latest(standing, fingerprint) or _latest(history, fingerprint)


def _latest(records: Sequence[LearningRecord], fingerprint: str) -> LearningRecord | None:
    """Return the latest change to a retriever from another one."""
    brought = (each for each in reversed(records) if each.is_change and each.after_fingerprint == fingerprint)
    return next((each for each in brought if each.before_fingerprint != fingerprint), None)


def learned_upon(fingerprint: str, history: Sequence[LearningRecord], *origins: Origin) -> list[str]:
    """Return a retriever and what it was learned upon, and that in turn, down to the one that was not learned."""
    promoted: dict[str, str] = {}
    for record in history:
        if record.action == "promoted" and record.origin in origins:
            # What was promoted again, after another one, had first joined an older one.
            promoted.setdefault(record.after_fingerprint, record.before_fingerprint)
    found = [fingerprint]
    while (beneath := promoted.get(found[-1])) is not None and beneath not in found:
        found.append(beneath)
    return found


def replaceable(history: Sequence[LearningRecord], in_force: str, kept: int) -> list[str]:
    """Return the fingerprints of earlier retrievers beyond the last few, which neither going back nor learning needs.

    Those that a person added and chose are theirs to remove.
    """
    back = change_to(in_force, history)
    needed = {in_force} | (set() if back is None else {back.before_fingerprint})
    learned: tuple[tuple[Origin, ...], ...] = (("clicks",), ("captions",), ("clicks", "captions"))
    needed |= {learned_upon(in_force, history, *origins)[-1] for origins in learned}
    chosen = {each.after_fingerprint for each in history if each.origin == "choice"}
    left = dict.fromkeys(each.before_fingerprint for each in reversed(history) if each.action != "kept")
    earlier = [fingerprint for fingerprint in left if fingerprint not in needed]
    return [fingerprint for fingerprint in earlier[max(0, kept - len(needed) + 1) :] if fingerprint not in chosen]
