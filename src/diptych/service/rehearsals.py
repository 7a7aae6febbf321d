"""Rehearsals over REST: the job that makes one, and where what came out of it is kept."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from copy import copy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from diptych.atomic_files import atomic_write
from diptych.collection import Collection
from diptych.collection.retriever_protocol import RetrieverProtocol
from diptych.errors import UnknownNameError
from diptych.service.clicks.export import text_query_searches
from diptych.service.clicks.log import click_log_path
from diptych.service.jobs.store import READY_MADE

_SETTINGS = ("sample", "n_queries", "random_state")


def make_rehearsal(
    collection: Collection, parameters: Mapping[str, Any], progress: Callable[[str, int, int], None]
) -> dict[str, Any]:
    """Compare another retriever with the present one, keep the report, and return the outcome without any query.

    There is one report for each retriever that was tried, the latest; :func:`read_rehearsals` returns them. They hold
    what people typed, so they lie beside the click log and are forgotten with it.
    """
    from diptych.collection.learning import Rehearsal, SearchLog

    name = str(parameters.get("retriever"))
    progress(f"preparing the search model {name}", 0, 0)
    settings = {setting: parameters[setting] for setting in _SETTINGS if setting in parameters}
    rehearsal = Rehearsal(collection, _candidate(collection, name), **settings)
    log = click_log_path(collection.folder)
    seen = SearchLog.from_searches(text_query_searches(log)).impressions() if log.is_file() else None
    report = rehearsal.run(seen, progress=progress)
    made = datetime.now(UTC).isoformat(timespec="seconds")
    _keep(_folder(log), {**report.to_json(), "retriever": name, "made": made, "sampled": report.sampled})
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
    """Return the reports of a collection, the latest first; one that cannot be read is left out."""
    found = []
    for file in _folder(click_log_path(collection.folder)).glob("*.json"):
        try:
            found.append(json.loads(file.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            continue
    return sorted(found, key=lambda report: str(report.get("made")), reverse=True)


def forget_rehearsals(log: Path) -> None:
    """Delete the reports beside a click log, since they quote it."""
    shutil.rmtree(_folder(log), ignore_errors=True)


def _folder(log: Path) -> Path:
    return log.with_name("rehearsals")


def _keep(folder: Path, report: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with atomic_write(folder / f"{report['new_fingerprint']}.json", private=True) as draft:
        draft.write_text(json.dumps(report), encoding="utf-8")
