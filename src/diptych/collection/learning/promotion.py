"""Changing the retriever of a collection for a learned one, and back, with the history of it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Self

from diptych.collection.changes.adding import Progress
from diptych.collection.collection import Collection
from diptych.collection.storage.retriever_protocol import RetrieverProtocol
from diptych.collection.storage.saved_retrievers import StoredRetriever
from diptych.errors import CollectionError

Action = Literal["promoted", "kept", "rolled back"]


@dataclass(frozen=True)
class LearningRecord:
    """What was compared when, and what became of it.

    ``before`` and ``after`` name the retrievers in force, the same when everything was kept. ``compared_with`` is the
    one that the learned one had to beat; ``old`` and ``new`` are the mean of ``measure`` over the held-out queries.
    ``parts`` are the weights of what was fused; ``gained`` and ``lost`` are queries with their values before and after.

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


def learning_history(collection: Collection) -> list[LearningRecord]:
    """Return every step of learning from clicks, oldest first.

    A promotion that was announced but not confirmed counts if the next step starts from what it promoted.
    """
    records: list[LearningRecord] = []
    announced: LearningRecord | None = None
    for is_announcement, record in _lines(history_file(collection)):
        if announced is not None and announced != record and announced.after_fingerprint == record.before_fingerprint:
            records.append(announced)
        announced = record if is_announcement else None
        if not is_announcement:
            records.append(record)
    if announced is not None and collection.status().fingerprint == announced.after_fingerprint:
        records.append(announced)
    return records


def history_file(collection: Collection) -> Path:
    """Return the file of the history, whether it is there or not."""
    return collection.folder / "learning.jsonl"


def announce(collection: Collection, record: LearningRecord) -> None:
    """Write down what is about to be done."""
    _append(history_file(collection), {"announced": True, **record.to_json()})


def remember(collection: Collection, record: LearningRecord) -> None:
    """Write down what was done."""
    _append(history_file(collection), record.to_json())


def _append(path: Path, document: dict[str, object]) -> None:
    # A line that a killed writer left unfinished must not swallow this one.
    torn = path.exists() and path.stat().st_size > 0 and not path.read_bytes().endswith(b"\n")
    with path.open("a", encoding="utf-8") as stream:
        stream.write(("\n" if torn else "") + json.dumps(document) + "\n")
        stream.flush()
        os.fsync(stream.fileno())


def _lines(path: Path) -> list[tuple[bool, LearningRecord]]:
    if not path.exists():
        return []
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            document = json.loads(line)
            found.append((bool(document.get("announced")), LearningRecord.from_json(document)))
        except (ValueError, TypeError, AttributeError):
            # Half a line of a killed writer says nothing.
            continue
    return found


def promote(
    collection: Collection, retriever: RetrieverProtocol, record: LearningRecord, *, progress: Progress | None = None
) -> LearningRecord:
    """Let the collection use a learned retriever, keep the one before stored, and write that down.

    Where the same retriever is in force already, nothing changes and the record says so.
    """
    collection.add_retriever(retriever, progress=progress)
    before = active_retriever(collection)
    if before.fingerprint == retriever.fingerprint:
        kept = replace(
            record, reason="the retriever in use was learned from the same clicks", **from_to(before, before)
        )
        remember(collection, kept)
        return kept
    (after,) = (each for each in collection.retrievers() if each.fingerprint == retriever.fingerprint)
    return _changed(collection, replace(record, action="promoted", **from_to(before, after)))


def rollback(collection: Collection) -> LearningRecord:
    """Let the collection use the retriever from before the promotion that is in force; return what was written down.

    The retriever that leaves stays stored. After a second learning, two calls lead back to the beginning.
    """
    now, stored = active_retriever(collection), {each.fingerprint: each for each in collection.retrievers()}
    promotion = promotion_to(now.fingerprint, learning_history(collection))
    if promotion is None:
        raise CollectionError(
            f"the retriever {now.name!r} was not promoted by learning from clicks, so there is nothing to roll back to"
        )
    former = stored.get(promotion.before_fingerprint)
    if former is None:
        raise CollectionError(
            f"the retriever {promotion.before!r} is no longer stored; set one with `diptych index --retriever`"
        )
    return _changed(collection, LearningRecord(time=utc_now(), action="rolled back", **from_to(now, former)))


def promotion_to(fingerprint: str, history: Sequence[LearningRecord]) -> LearningRecord | None:
    """Return the promotion that brought a retriever: the latest not taken back, or else the latest."""
    standing: list[LearningRecord] = []
    for record in history:
        if record.action == "promoted":
            standing.append(record)
        elif record.action == "rolled back":
            taken_back = _latest(standing, record.before_fingerprint)
            standing = [each for each in standing if each is not taken_back]
    return _latest(standing, fingerprint) or _latest(history, fingerprint)


def _changed(collection: Collection, record: LearningRecord) -> LearningRecord:
    announce(collection, record)
    collection.activate_retriever(record.after)
    remember(collection, record)
    return record


def from_to(before: StoredRetriever, after: StoredRetriever) -> dict[str, Any]:
    """Return the fields of a record that name two retrievers."""
    left = {"before": before.name, "before_fingerprint": before.fingerprint}
    return {**left, "after": after.name, "after_fingerprint": after.fingerprint}


def active_retriever(collection: Collection) -> StoredRetriever:
    """Return the retriever in force."""
    return collection.retrievers()[0]


def utc_now() -> str:
    """Return the present time, in UTC, as the history writes it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _latest(records: Sequence[LearningRecord], fingerprint: str) -> LearningRecord | None:
    """Return the latest promotion of a retriever in place of another one."""
    promotions = (record for record in reversed(records) if record.action == "promoted")
    brought = (record for record in promotions if record.after_fingerprint == fingerprint)
    return next((record for record in brought if record.before_fingerprint != fingerprint), None)


def base_name(collection: Collection) -> str:
    """Return the name of the stored retriever that learning starts from: beneath what older logs gave, not on top."""
    stored = {each.fingerprint: each for each in collection.retrievers()}
    promoted: dict[str, str] = {}
    for record in learning_history(collection):
        if record.action == "promoted":
            # What was promoted again, after another one, had first joined an older one.
            promoted.setdefault(record.after_fingerprint, record.before_fingerprint)
    found = active_retriever(collection).fingerprint
    seen = {found}
    while promoted.get(found) in stored and promoted[found] not in seen:
        found = promoted[found]
        seen.add(found)
    return stored[found].name
