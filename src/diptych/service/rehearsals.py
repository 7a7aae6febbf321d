"""Rehearsals over REST: the job that makes one, and where what came out of it is kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from copy import copy
from datetime import UTC, datetime
from typing import Any

from diptych.collection import Collection
from diptych.collection.retriever_protocol import RetrieverProtocol
from diptych.errors import UnknownNameError
from diptych.service.clicks.exports import has_searches, text_query_searches
from diptych.service.jobs.store import READY_MADE

_SETTINGS = ("sample", "n_queries", "random_state")


def make_rehearsal(
    collection: Collection, parameters: Mapping[str, Any], progress: Callable[[str, int, int], None]
) -> dict[str, Any]:
    """Compare another retriever with the present one, keep the report, and return the outcome without any query.

    There is one report for each retriever that was tried, the latest; :func:`read_rehearsals` returns them. They hold
    what people typed, so they are deleted with the click log.
    """
    from diptych.collection.learning import Rehearsal, SearchLog

    name = str(parameters.get("retriever"))
    progress(f"preparing the search model {name}", 0, 0)
    settings = {setting: parameters[setting] for setting in _SETTINGS if setting in parameters}
    rehearsal = Rehearsal(collection, _candidate(collection, name), **settings)
    store = collection.store
    seen = SearchLog.from_searches(text_query_searches(store)) if has_searches(store) else None
    report = rehearsal.run(seen, progress=progress)
    made = datetime.now(UTC).isoformat(timespec="seconds")
    told = {**report.to_json(), "retriever": name, "made": made, "sampled": report.sampled}
    sql = (
        "INSERT INTO rehearsal (fingerprint, made, report) VALUES (?, ?, ?)"
        " ON CONFLICT (fingerprint) DO UPDATE SET made = excluded.made, report = excluded.report"
    )
    store.write(lambda db: db.run(sql, (told["new_fingerprint"], made, json.dumps(told))))
    return {"retriever": name, "outcome": report.outcome, "verdict": list(report.verdict)}


def _candidate(collection: Collection, name: str) -> RetrieverProtocol:
    """Return a retriever of the package as this version has it, or else a stored one."""
    from diptych.retriever import Retriever

    stored = [one.name for one in collection.retrievers()]
    if name not in READY_MADE and name not in stored:
        raise UnknownNameError("search model", name, [*READY_MADE, *stored])
    if name == "default":
        found: RetrieverProtocol = Retriever.default()
    else:
        found = Retriever.ready_made(name) if name in READY_MADE else collection.retriever_named(name)
    named = copy(found)
    named.name = name
    return named


def read_rehearsals(collection: Collection) -> list[dict[str, Any]]:
    """Return the reports of a collection, the latest first."""
    with collection.store.reading() as db:
        rows = db.rows("SELECT report FROM rehearsal ORDER BY made DESC, fingerprint")
    return [json.loads(report) for (report,) in rows]
