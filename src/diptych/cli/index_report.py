"""What ``diptych index`` says when it is done."""

from __future__ import annotations

import json

from diptych.cli.indexing import IndexOutcome
from diptych.cli.shown_path import shown_path
from diptych.cli.skipped_files import report_skipped
from diptych.cli.stages import Stages
from diptych.cli.terminal import print_json, results
from diptych.collection import AddReport

# A choice of ours for when the hint is worth a line; training itself tells whether it helps.
_WORTH_TRAINING = 200


def print_index_report(outcome: IndexOutcome, stages: Stages, *, verbose: bool, as_json: bool) -> None:
    """Print the counts, list what was skipped, and say what to do next."""
    status, report = outcome.status, outcome.report
    report_skipped(report.skipped, outcome.folder / "skipped.txt", stages, verbose=verbose)
    if as_json:
        print_json(json.dumps(as_record(outcome), indent=2, ensure_ascii=False))
        return
    console = results()
    if status.pictures == 0:
        console.print("nothing could be indexed", soft_wrap=True)
        return
    counted = _counted(status.pictures, "picture")
    if status.captions:
        counted += f" and {_counted(status.captions, 'caption')}"
    verb = "is" if status.pictures == 1 and not status.captions else "are"
    where = shown_path(outcome.folder)
    console.print(f"{counted} {verb} searchable: {in_words(report)}.", soft_wrap=True)
    stages.note(f"collection: {where}")
    if report.duplicates:
        stages.note(f"{len(report.duplicates):,} of them are copies of others: diptych duplicates")
    if status.captions >= _WORTH_TRAINING and report.changed:
        stages.note("the captions can make answers better: diptych train")
    stages.note('search them: diptych search "two dogs on a beach"')


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def in_words(report: AddReport) -> str:
    """Return what was done in a few words.

    >>> from diptych.cli.index_report import in_words
    >>> from diptych.collection import AddReport
    >>> in_words(AddReport(added=12, renamed=1, unchanged=1000))
    '12 added, 1 renamed, 1,000 unchanged'
    """
    counts = {
        "added": report.added,
        "updated": report.updated,
        "renamed": report.renamed,
        "unchanged": report.unchanged,
        "removed": len(report.removed),
        "skipped": len(report.skipped),
    }
    return ", ".join(f"{count:,} {name}" for name, count in counts.items() if count) or "nothing to do"


def as_record(outcome: IndexOutcome) -> dict[str, object]:
    """Return the outcome as JSON values."""
    report = outcome.report
    return {
        "collection": str(outcome.folder),
        "pictures": outcome.status.pictures,
        "captions": outcome.status.captions,
        "retriever": outcome.status.retriever,
        "added": report.added,
        "updated": report.updated,
        "renamed": report.renamed,
        "unchanged": report.unchanged,
        "removed": list(report.removed),
        "skipped": report.skipped,
        "duplicates": report.duplicates,
        "seconds": round(report.seconds, 3),
    }
