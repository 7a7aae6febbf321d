"""What a collection has learned from clicks, and when."""

from __future__ import annotations

import json
import os
from pathlib import Path

from diptych.collection.collection import Collection
from diptych.collection.learning.learning_record import LearningRecord

FILE_NAME = "learning.jsonl"


def learning_history(collection: Collection) -> list[LearningRecord]:
    """Return every step of learning from clicks, oldest first.

    A promotion is written down before it takes place and confirmed after it. One that was interrupted in between counts
    if the next step, or the collection where there is none, starts from what it promoted.
    """
    records: list[LearningRecord] = []
    announced: LearningRecord | None = None
    for is_announcement, record in _lines(history_file(collection)):
        if announced is not None and announced != record and announced.after_fingerprint == record.before_fingerprint:
            records.append(announced)
        announced = record if is_announcement else None
        if not is_announcement:
            records.append(record)
    if announced is not None and _active_fingerprint(collection) == announced.after_fingerprint:
        records.append(announced)
    return records


def history_file(collection: Collection) -> Path:
    """Return the file of the history, whether it is there or not."""
    return collection.folder / FILE_NAME


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


def _active_fingerprint(collection: Collection) -> str:
    return collection.status().fingerprint
