"""What each kind of job does, and the process that does it: ``python -m diptych.service.jobs.work``.

The process reads one line of JSON from standard input and writes its progress and its end into the store.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import copy
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.collection import AddProgress, AddReport, Collection, Record, ReencodeReport
from diptych.data import find_pictures
from diptych.data.picture_files import describe_unread, unread_kinds
from diptych.errors import CollectionError, DiptychError, InvalidInputError, UnknownNameError, without_folders
from diptych.service.clicks.exports import has_searches, logged_queries, text_query_searches
from diptych.service.jobs.store import READY_MADE, Job, JobKind, JobStore

if TYPE_CHECKING:
    from diptych.collection.learning import LearningReport
    from diptych.collection.retriever_protocol import RetrieverProtocol
    from diptych.retriever import Retriever

PROGRESS_SECONDS = 1.0
LOCK_SECONDS = 600.0


class Reporter:
    """Remembers how far a job has come.

    >>> from diptych.service.jobs.work import Reporter
    >>> reporter = Reporter()
    >>> reporter.advance(1, 2, "reading")
    >>> reporter.advance(2, 2)
    >>> reporter.progress
    (2, 2, 'reading')
    """

    def __init__(self) -> None:
        self.progress = (0, 0, "starting")

    def advance(self, done: int, total: int, message: str | None = None) -> None:
        """Say how much is done; the message stays until there is another."""
        self.progress = (done, total, self.progress[2] if message is None else message)

    def follow(self, doing: str, done: int, total: int) -> None:
        """Say what is being done and how much of it is done."""
        self.advance(done, total, doing)

    def note(self, message: str) -> None:
        """Say what is being done, without a count."""
        self.advance(0, 0, message)


def learn(collection: Collection, reporter: Reporter, *, dry_run: bool = False, **settings: float) -> dict[str, Any]:
    """Learn from what people clicked, and use what was learned where later searches are answered better."""
    from diptych.collection.learning import Learning, SearchLog

    reporter.note("reading the clicks")
    seen = SearchLog.from_searches(text_query_searches(collection.store))
    report = Learning(collection, **settings).run(seen, dry_run=dry_run, progress=reporter.follow)
    return learning_result(report)


def learning_result(report: LearningReport) -> dict[str, Any]:
    """Return what a job tells of learning: everything but queries, since jobs are read without the token."""
    record = {name: value for name, value in report.record.to_json().items() if name not in ("gained", "lost")}
    return {"record": record, "notes": list(report.notes)}


JobFunction = Callable[..., dict[str, Any]]

# Between two of these, others may write.
_CHUNK = 256
_NAMED_FAILURES = 50


def index(collection: Collection, reporter: Reporter, *, remove_missing: bool = True) -> dict[str, Any]:
    """Bring a collection up to date with the pictures in its root."""
    unreadable: dict[str, str] = {}
    reporter.note("looking for pictures")
    collection.check_root()
    if not collection.root.is_dir():
        raise InvalidInputError("the folder of the pictures cannot be read now; nothing was changed")
    found = list(find_pictures(collection.root, on_unreadable=lambda path, why: unreadable.update({str(path): why})))
    if not found and collection.status().pictures:
        raise InvalidInputError("there is no picture in the folder any more, perhaps because a disk is not there")
    report = AddReport(skipped=dict(unreadable))
    pictures = iter(found)
    done = 0
    while chunk := list(islice(pictures, _CHUNK)):
        progress = _counting(reporter, "adding pictures", done, len(found))
        report.include(collection.add([Record(path) for path in chunk], progress=progress))
        done += len(chunk)
    if remove_missing:
        reporter.advance(done, len(found), "removing what is gone")
        report.removed += collection.remove_missing()
    kinds = unread_kinds(unreadable)
    return {
        **report.counts,
        "described": report.described,
        "reasons": _shown_reasons(collection, report.skipped),
        "unread_kinds": kinds,
        "notes": [describe_unread(kinds)] if kinds else [],
    }


def train(
    collection: Collection,
    reporter: Reporter,
    *,
    method: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    **how: Any,
) -> dict[str, Any]:
    """Learn a retriever from a collection's captions, and use it where it passes the gate."""
    from diptych.collection.learning import Training, training_pairs, unpaired_items

    _refuse_files(parameters or {})
    training = Training(collection, method=method, parameters=parameters or {})
    pairs = training_pairs(collection, reporter.note)
    reporter.note(f"learning from {pairs.n_images:,} pictures and {pairs.n_texts:,} texts")
    unpaired = unpaired_items(collection, pairs, logged_queries(collection.store))
    report = training.run(
        pairs, unpaired=unpaired, reencoding=_counting(reporter, "giving every item its new point"), **how
    )
    return {
        "comparison": {**report.record.gate, "is_better": bool(report.comparison.is_better)},
        "reason": report.record.reason,
        "retriever": report.record.after if report.is_taken else None,
        "before": report.record.before,
        "activated": report.is_taken,
    }


def reencode(collection: Collection, reporter: Reporter) -> dict[str, Any]:
    """Finish a change of retriever that was begun."""
    report = collection.reencode(progress=_counting(reporter, "reading every item with the new search model"))
    return _reencode_result(collection, report)


def add_retriever(collection: Collection, reporter: Reporter, *, name: str) -> dict[str, Any]:
    """Give every item a point of another retriever as well."""
    if name not in READY_MADE:
        raise UnknownNameError("search model", name, READY_MADE)
    reporter.note(f"preparing the search model {name}")
    retriever = _ready_made(name)
    retriever.name = name
    progress = _counting(reporter, f"reading every item with {name}")
    report = collection.add_retriever(retriever, name=name, progress=progress)
    return {"retriever": name, **_reencode_result(collection, report)}


def draw_map(collection: Collection, reporter: Reporter, *, retriever: str | None = None) -> dict[str, Any]:
    """Draw the map of a collection."""
    from diptych.service.maps import make_map

    reporter.note("drawing the map")
    return make_map(collection, retriever=retriever)


def rehearse(collection: Collection, reporter: Reporter, *, retriever: str, **settings: int) -> dict[str, Any]:
    """Compare another retriever with the present one, keep the report, and return the outcome without any query.

    The latest report of each retriever that was tried is kept. Reports hold what people typed, so they are deleted with
    the click log.
    """
    from diptych.collection.learning import Rehearsal, SearchLog

    reporter.note(f"preparing the search model {retriever}")
    rehearsal = Rehearsal(collection, _candidate(collection, retriever), **settings)
    store = collection.store
    seen = SearchLog.from_searches(text_query_searches(store)) if has_searches(store) else None
    report = rehearsal.run(seen, progress=reporter.follow)
    made = datetime.now(UTC).isoformat(timespec="seconds")
    kept = {**report.to_json(), "retriever": retriever, "made": made, "sampled": report.sampled}
    sql = (
        "INSERT INTO rehearsal (fingerprint, made, report) VALUES (?, ?, ?)"
        " ON CONFLICT (fingerprint) DO UPDATE SET made = excluded.made, report = excluded.report"
    )
    store.write(lambda db: db.run(sql, (report.new_fingerprint, made, json.dumps(kept))))
    return {"retriever": retriever, "outcome": report.outcome, "verdict": list(report.verdict)}


def _candidate(collection: Collection, name: str) -> RetrieverProtocol:
    """Return a retriever of the package as this version has it, or else a stored one."""
    stored = [one.name for one in collection.retrievers()]
    if name not in READY_MADE and name not in stored:
        raise UnknownNameError("search model", name, [*READY_MADE, *stored])
    named = copy(_ready_made(name) if name in READY_MADE else collection.retriever_named(name))
    named.name = name
    return named


def _ready_made(name: str) -> Retriever:
    from diptych.retriever import Retriever

    return Retriever.default() if name == "default" else Retriever.ready_made(name)


def read_text(collection: Collection, reporter: Reporter) -> dict[str, Any]:
    """Read the words that stand in the pictures."""
    report = collection.read_text(progress=_counting(reporter, "reading the text in pictures"))
    return _result(collection, report.skipped, read=report.read, known=report.known, with_text=report.with_text)


def regions(collection: Collection, reporter: Reporter, *, retriever: str | None = None) -> dict[str, Any]:
    """Look at parts of the pictures."""
    progress = _counting(reporter, "looking at parts of pictures")
    report = collection.add_regions(retriever, progress=progress)
    return _result(collection, report.skipped, read=report.read, known=report.known)


# What each kind of job does; the function returns the result.
JOB_FUNCTIONS: dict[JobKind, JobFunction] = {
    "index": index,
    "train": train,
    "learn": learn,
    "reencode": reencode,
    "map": draw_map,
    "retriever": add_retriever,
    "rehearse": rehearse,
    "read_text": read_text,
    "regions": regions,
}


def _refuse_files(of_method: Mapping[str, Any]) -> None:
    from diptych.models.registry import FILE_PARAMETERS

    for name in of_method:
        if name.rpartition("__")[2] in FILE_PARAMETERS:
            raise InvalidInputError(
                f"{name} names a file of the machine that serves, which is not done from here; use diptych train there"
            )


def _counting(
    reporter: Reporter, doing: str, start: int = 0, total: int | None = None
) -> Callable[[AddProgress], None]:
    return lambda step: reporter.advance(start + step.done, step.total if total is None else total, doing)


def _result(collection: Collection, reasons: Mapping[str, str], **counts: int) -> dict[str, Any]:
    return {**counts, "skipped": len(reasons), "reasons": _shown_reasons(collection, reasons)}


def _reencode_result(collection: Collection, report: ReencodeReport) -> dict[str, Any]:
    counts = {name: getattr(report, name) for name in ("pictures", "captions", "read_again")}
    return _result(collection, report.failures, **counts)


def _shown_reasons(collection: Collection, reasons: Mapping[str, str]) -> dict[str, str]:
    """Return the first reasons, with paths as seen from the root: where that lies is not a client's business."""
    root = collection.root
    shown = islice(reasons.items(), _NAMED_FAILURES)
    return {path.removeprefix(f"{root}/"): without_folders(why, root) for path, why in shown}


def main() -> int:
    """Do the job that standard input describes in one line; return the exit status."""
    request = json.loads(sys.stdin.readline())
    threading.Thread(target=_stop_with_service, daemon=True).start()
    job = Job(**request["job"])
    with Collection.open(request["collection"], write_wait=LOCK_SECONDS, root=request["root"]) as collection:
        return run(collection, job)


def run(collection: Collection, job: Job) -> int:
    """Do a claimed job and write its end; return the exit status."""
    jobs, reporter, is_over = JobStore(collection.store), Reporter(), threading.Event()
    follower = threading.Thread(target=_write_progress, args=(jobs, job, reporter, is_over), daemon=True)
    follower.start()
    result, error = None, None
    try:
        result = JOB_FUNCTIONS[job.kind](collection, reporter, **job.parameters)
    except DiptychError as problem:
        error = str(problem)
    except Exception as problem:
        traceback.print_exc()
        error = f"{type(problem).__name__}: {problem}"
    is_over.set()
    follower.join()
    if error is None:
        jobs.finish(job, "done", result=result)
        return 0
    folder = Path(collection.folder)
    jobs.finish(job, "failed", error=without_folders(error, folder, folder.parent))
    return 1


def _write_progress(jobs: JobStore, job: Job, reporter: Reporter, is_over: threading.Event) -> None:
    """Write how far a job has come, about once a second and at its end."""
    written = None
    while True:
        is_last = is_over.wait(PROGRESS_SECONDS)
        if reporter.progress != written:
            with suppress(CollectionError):
                jobs.advance(job, *reporter.progress)
                written = reporter.progress
        if is_last:
            return


def _stop_with_service() -> None:
    sys.stdin.read()
    # The result would have no reader, and the work could not be cancelled.
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
