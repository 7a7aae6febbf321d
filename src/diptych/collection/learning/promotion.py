"""Changing the retriever of a collection for a learned one, and back."""

from __future__ import annotations

from dataclasses import replace

from diptych.collection.changes.add_report import Progress
from diptych.collection.changes.retriever_history import (
    LearningRecord,
    Origin,
    RetrieverHistory,
    change_to,
    from_to,
    learned_upon,
    utc_now,
)
from diptych.collection.collection import Collection
from diptych.collection.storage.retriever_protocol import RetrieverProtocol
from diptych.collection.storage.saved_retrievers import StoredRetriever
from diptych.errors import CollectionError


def learning_history(collection: Collection) -> list[LearningRecord]:
    """Return every change of the retriever, and every comparison that changed nothing, oldest first."""
    return RetrieverHistory(collection.folder).records(collection.status().fingerprint)


def remember(collection: Collection, record: LearningRecord) -> None:
    """Write down what was compared and not taken."""
    RetrieverHistory(collection.folder).remember(record)


def promote(
    collection: Collection, retriever: RetrieverProtocol, record: LearningRecord, *, progress: Progress | None = None
) -> LearningRecord:
    """Let the collection use a learned retriever, keep the one before stored, and write that down.

    Where the same retriever is in force already, nothing changes and the record says so.
    """
    collection.add_retriever(retriever, progress=progress)
    before = active_retriever(collection)
    if before.fingerprint == retriever.fingerprint:
        reason = f"the search model in use was learned from the same {record.origin}"
        kept = replace(record, action="kept", reason=reason, **from_to(before, before))
        remember(collection, kept)
        return kept
    (after,) = (each for each in collection.retrievers() if each.fingerprint == retriever.fingerprint)
    done = replace(record, action="promoted", **from_to(before, after))
    collection.activate_retriever(after.name, record=done)
    return done


def rollback(collection: Collection) -> LearningRecord:
    """Let the collection use the retriever from before the last change again; return what was written down.

    The retriever that leaves stays stored. After a second change, two calls lead back to the beginning.
    """
    now, stored = active_retriever(collection), {each.fingerprint: each for each in collection.retrievers()}
    change = change_to(now.fingerprint, learning_history(collection))
    if change is None:
        raise CollectionError(f"the search model {now.name!r} replaced no other one; there is nothing to roll back to")
    former = stored.get(change.before_fingerprint)
    if former is None:
        raise CollectionError(
            f"the search model {change.before!r} is no longer stored; set one with `diptych index --retriever`"
        )
    record = LearningRecord(time=utc_now(), action="rolled back", origin=change.origin, **from_to(now, former))
    collection.activate_retriever(former.name, record=record)
    return record


def rolls_back_to(collection: Collection, history: list[LearningRecord]) -> str | None:
    """Return the name of the retriever that going back would use again, None where there is none."""
    stored = {each.fingerprint: each.name for each in collection.retrievers()}
    change = change_to(active_retriever(collection).fingerprint, history)
    return None if change is None else stored.get(change.before_fingerprint)


def active_retriever(collection: Collection) -> StoredRetriever:
    """Return the retriever in force."""
    return collection.retrievers()[0]


def base_name(collection: Collection, *origins: Origin) -> str:
    """Return the name of the stored retriever that learning starts from: beneath what was learned before, not on top.

    ``origins`` say what it was learned from.
    """
    stored = {each.fingerprint: each for each in collection.retrievers()}
    chain = learned_upon(active_retriever(collection).fingerprint, learning_history(collection), *origins)
    return next(stored[fingerprint] for fingerprint in reversed(chain) if fingerprint in stored).name
