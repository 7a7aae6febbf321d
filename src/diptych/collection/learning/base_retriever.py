"""The retriever beneath what was learned from clicks."""

from __future__ import annotations

from diptych.collection.collection import Collection
from diptych.collection.learning.history import learning_history
from diptych.collection.learning.promotion import active


def base_name(collection: Collection) -> str:
    """Return the name of the stored retriever that learning starts from.

    What was learned from an older log is a part of the log that is learned from now. So the models of a new log join
    the retriever that the first ones had joined, as long as it is stored, and fusions do not pile up.
    """
    stored = {each.fingerprint: each for each in collection.retrievers()}
    promoted: dict[str, str] = {}
    for record in learning_history(collection):
        if record.action == "promoted":
            # What was promoted again, after another one, had first joined an older one.
            promoted.setdefault(record.after_fingerprint, record.before_fingerprint)
    found = active(collection).fingerprint
    seen = {found}
    while promoted.get(found) in stored and promoted[found] not in seen:
        found = promoted[found]
        seen.add(found)
    return stored[found].name
