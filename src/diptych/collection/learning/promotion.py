"""Changing the retriever of a collection for a learned one, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from diptych.collection.collection import Collection, Progress
from diptych.collection.collection_error import CollectionError
from diptych.collection.contract import PointSource
from diptych.collection.learning.history import announce, learning_history, remember
from diptych.collection.learning.learning_record import LearningRecord
from diptych.collection.stored_retriever import StoredRetriever


def promote(
    collection: Collection, retriever: PointSource, record: LearningRecord, *, progress: Progress | None = None
) -> LearningRecord:
    """Let the collection use a learned retriever, keep the one before stored, and write that down.

    Whoever is interrupted leaves the old retriever in force, or the new one with the way back known. Where the same
    retriever is in force already, because it was learned from the same clicks, nothing changes and the record says so.
    """
    collection.add_retriever(retriever, progress=progress)
    before = active(collection)
    if before.fingerprint == retriever.fingerprint:
        return _kept(collection, record, before)
    (after,) = (each for each in collection.retrievers() if each.fingerprint == retriever.fingerprint)
    done = replace(
        record,
        action="promoted",
        before=before.name,
        before_fingerprint=before.fingerprint,
        after=after.name,
        after_fingerprint=after.fingerprint,
    )
    return _changed(collection, done)


def rollback(collection: Collection) -> LearningRecord:
    """Let the collection use the retriever from before the promotion that is in force; return what was written down.

    The retriever that leaves stays stored. After a second learning, two calls lead back to the beginning.
    """
    now, stored = active(collection), {each.fingerprint: each for each in collection.retrievers()}
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
    record = LearningRecord(
        time=moment(),
        action="rolled back",
        before=now.name,
        before_fingerprint=now.fingerprint,
        after=former.name,
        after_fingerprint=former.fingerprint,
    )
    return _changed(collection, record)


def promotion_to(fingerprint: str, history: Sequence[LearningRecord]) -> LearningRecord | None:
    """Return the promotion that brought a retriever: the latest not taken back, or else the latest; None without any.

    One that was promoted again after another leads back to that one first, and then to what was there before both.
    """
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


def active(collection: Collection) -> StoredRetriever:
    """Return the retriever in force."""
    return collection.retrievers()[0]


def moment() -> str:
    """Return the present time, in UTC, as the history writes it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _latest(records: Sequence[LearningRecord], fingerprint: str) -> LearningRecord | None:
    """Return the latest promotion of a retriever in place of another one."""
    return next(
        (
            record
            for record in reversed(records)
            if record.action == "promoted"
            and record.after_fingerprint == fingerprint
            and record.before_fingerprint != fingerprint
        ),
        None,
    )


def _kept(collection: Collection, record: LearningRecord, present: StoredRetriever) -> LearningRecord:
    kept = replace(
        record,
        reason="the retriever in use was learned from the same clicks",
        before=present.name,
        before_fingerprint=present.fingerprint,
        after=present.name,
        after_fingerprint=present.fingerprint,
    )
    remember(collection, kept)
    return kept
