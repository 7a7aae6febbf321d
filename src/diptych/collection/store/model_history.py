"""Which retrievers a collection used when and why, and the way back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from typing import Any, Literal, Protocol, Self

from diptych.collection.store.dialect import Connection

Action = Literal["promoted", "kept", "rolled back", "changed"]
Origin = Literal["clicks", "captions", "switch", "choice"]


@dataclass(frozen=True)
class LearningRecord:
    """A change of the search model in use, or a comparison after which everything stayed as it was.

    >>> from diptych.collection.learning import LearningRecord
    >>> record = LearningRecord("2026-01-01T12:00:00+00:00", "kept", "default", "f1", "default", "f1", reason="few")
    >>> LearningRecord.from_json(record.to_json()) == record
    True
    """

    time: str
    """When, ISO 8601."""
    action: Action
    """Whether a learned one took over, everything stayed, an earlier one came back, or somebody changed over."""
    before: str
    """The search model in use before."""
    before_fingerprint: str
    """The fingerprint of the one before."""
    after: str
    """The search model in use afterwards; the same when everything was kept."""
    after_fingerprint: str
    """The fingerprint of the one after."""
    reason: str = ""
    """Why it was taken or kept, in words."""
    compared_with: str = ""
    """The search model that the learned one had to beat: with captions the one beneath it, if that was learned."""
    measure: str = ""
    """What was compared, such as MAP; empty where nothing was."""
    old: float | None = None
    """Its mean over later searches, or over pictures kept back, with `compared_with`."""
    new: float | None = None
    """Its mean with the one that was learned."""
    p_value: float | None = None
    """How likely so large a difference is if neither is better: a randomisation test, two-sided."""
    alpha: float | None = None
    """How small that had to be: for clicks, what was left of the error budget."""
    n_queries: int = 0
    """How many different queries, or pictures with captions, were learned from."""
    n_held_out: int = 0
    """How many of them judged what was learned."""
    n_clicks: float = 0.0
    """How many clicks were learned from."""
    answered: float | None = None
    """The share of later searches for queries that had been asked before."""
    parts: dict[str, float] = field(default_factory=dict)
    """The weight of each part of what was learned; `present` is `compared_with`."""
    gained: tuple[tuple[str, float, float], ...] = ()
    """The queries that gained most, each with the measure before and after."""
    lost: tuple[tuple[str, float, float], ...] = ()
    """The queries that lost most."""
    origin: Origin = "clicks"
    """What began it: learning from clicks or captions, another search model, or the choice of a stored one."""
    gate: dict[str, Any] = field(default_factory=dict)
    """All that was measured: what the gate asks for, and what was found.

    Where clicks were learned from, `repeated` (queries asked before), `new` and `held_out` (kept back, answered by
    similar ones) have `old`, `new`, `relative`, `low` (at worst, 95 % sure), `p_value`, `share` of the traffic,
    `n_searches`, `n_queries` and `n_people` (null where the log tells no visitors apart); `visual_consistency`
    says whether what is clicked looks alike.
    """

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
    db.run("INSERT INTO model_history (record) VALUES (?)", (json.dumps(record.to_json()),))


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
