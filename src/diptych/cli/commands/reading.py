"""``diptych read-text`` and ``diptych regions``: words that stand in pictures, and small things, become findable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diptych.cli.console.output import print_json, results
from diptych.cli.console.paths import open_collection, printable
from diptych.cli.console.progress import Stages
from diptych.cli.options import CollectionOption, JsonOption, QuietOption
from diptych.errors import counted

if TYPE_CHECKING:
    from diptych.collection import Collection, ReadingReport, TextReport

_SHOWN = 10
_INTERRUPTED = 130


def read_text(collection: CollectionOption = None, as_json: JsonOption = False, quiet: QuietOption = False) -> None:
    """Read the words that stand in the pictures (signs, screenshots, receipts), so that searches find them.

    Each picture is read once, in the background of everything else; stop it at any time, the same command goes on.
    """
    with open_collection(collection, quiet=quiet) as opened:
        report = read_texts(opened, Stages(quiet=quiet))
    _print(report, summarise_texts(report), as_json=as_json)


def regions(
    collection: CollectionOption = None,
    retriever: Annotated[
        str | None, typer.Option(help="The search model that looks at them, by its name in the collection.")
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Delete the regions again.")] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Look at thirteen parts of every picture as well, so that searches find small things and say where they are.

    It takes thirteen times as long as indexing, in the background of everything else; stop it at any time, the same
    command goes on.
    """
    with open_collection(collection, quiet=quiet) as opened:
        if remove:
            opened.remove_regions(retriever)
            results().print("regions are searched no more", soft_wrap=True)
            return
        report = read_regions(opened, Stages(quiet=quiet), retriever)
    _print(report, summarise_regions(report), as_json=as_json)


def _print(report: ReadingReport, summary: str, *, as_json: bool) -> None:
    if as_json:
        print_json(asdict(report))
    else:
        results().print(summary, soft_wrap=True)


def read_texts(collection: Collection, stages: Stages) -> TextReport:
    """Read the text that is unread."""
    report: TextReport = _read("text", "reading the text in pictures", collection.read_text, stages)
    return report


def read_regions(collection: Collection, stages: Stages, retriever: str | None = None) -> ReadingReport:
    """Look at the regions of pictures that lack them."""

    def add(**how: Any) -> ReadingReport:
        return collection.add_regions(retriever, **how)

    report: ReadingReport = _read("regions", "looking at parts of pictures", add, stages)
    return report


def _read(name: str, doing: str, read: Callable[..., Any], stages: Stages) -> Any:
    """Read with a bar that shows pace and remaining time; an interruption keeps what is done."""
    try:
        with stages.count(name, doing) as advance:
            report = read(progress=lambda step: advance(step.done, step.total))
    except KeyboardInterrupt:
        stages.note("stopped; what was read is kept and searchable, the same command goes on")
        raise typer.Exit(_INTERRUPTED) from None
    for path, reason in list(report.skipped.items())[:_SHOWN]:
        stages.note(f"  {printable(path)}: {printable(reason)}")
    return report


def summarise_texts(report: TextReport) -> str:
    """Return what was done in one line.

    >>> from diptych.collection import TextReport
    >>> summarise_texts(TextReport(read=120, with_text=7, known=1000))
    '120 pictures read, 7 of them have text; 1,000 had been read before'
    """
    return f"{counted(report.read, 'picture')} read, {report.with_text:,} of them have text{_rest(report)}"


def summarise_regions(report: ReadingReport) -> str:
    """Return what was done in one line.

    >>> from diptych.collection import ReadingReport
    >>> summarise_regions(ReadingReport(read=120, skipped={"a.jpg": "it has changed"}))
    'parts of 120 pictures are searchable; 1 could not be read'
    """
    return f"parts of {counted(report.read, 'picture')} are searchable{_rest(report)}"


def _rest(report: ReadingReport) -> str:
    known = f"; {report.known:,} had been read before" if report.known else ""
    return known + (f"; {len(report.skipped):,} could not be read" if report.skipped else "")
