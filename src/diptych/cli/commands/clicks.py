"""``diptych clicks``: what the service remembers of searches and clicks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer
from rich.table import Column

from diptych.atomic_files import atomic_write
from diptych.cli.console.output import (
    check_writable_file,
    facts_table,
    print_json,
    print_outcome,
    results,
    table,
    writing,
)
from diptych.cli.console.paths import open_collection
from diptych.cli.options import ClickTable, ClickTableFormat, CollectionOption, JsonOption, YesOption
from diptych.errors import InvalidInputError, UnknownNameError

if TYPE_CHECKING:
    from diptych.service.clicks import ClickLog
    from diptych.service.clicks.interleavings import Interleaving, InterleavingReport
    from diptych.service.clicks.reports import LogCounts


@contextmanager
def open_click_log(collection: str | None, *, may_be_empty: bool = False) -> Iterator[ClickLog]:
    """Open the log of the collection that was named or that is meant."""
    from diptych.service.clicks import ClickLog
    from diptych.service.clicks.exports import has_searches

    with open_collection(collection) as opened:
        if not may_be_empty and not has_searches(opened.store):
            raise InvalidInputError(
                f"nothing was logged for {opened.place}; searches in `diptych serve` are, unless told not to"
            )
        with ClickLog(opened.store) as log:
            yield log


def status(collection: CollectionOption = None, as_json: JsonOption = False) -> None:
    """Show how many searches, results and clicks are logged, and since when."""
    from dataclasses import asdict

    with open_click_log(collection) as log:
        counts = log.counts()
    if as_json:
        print_json(asdict(counts))
    else:
        results().print(facts_table(_facts(counts)))


def _facts(counts: LogCounts) -> dict[str, str]:
    from datetime import datetime

    facts = {
        "searches": f"{counts.searches:,}",
        "different queries": f"{counts.queries:,}",
        "results shown": f"{counts.results_shown:,}",
        "clicks": f"{counts.clicks:,}",
    }
    if counts.since is not None and counts.until is not None:
        days = (datetime.fromtimestamp(moment).strftime("%Y-%m-%d") for moment in (counts.since, counts.until))
        facts["from, to"] = ", ".join(days)
    return facts


def export(
    file: Annotated[
        Path, typer.Argument(metavar="OUT", help="The file to write; its ending says the format. -: to stdout.")
    ],
    what: Annotated[
        ClickTable,
        typer.Option(
            "--what",
            help="triads: clicks counted by query and item; events: every click with its position; "
            "impressions: everything shown, clicked or not, by position.",
        ),
    ] = "triads",
    format: Annotated[
        ClickTableFormat | None, typer.Option("--format", help="By default the ending of the file, or csv.")
    ] = None,
    collection: CollectionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write what was clicked to a file, and print the file."""
    is_stdout = str(file) == "-"
    name: Any = format or ("csv" if is_stdout else file.suffix.removeprefix(".").lower())
    if name not in get_args(ClickTableFormat):
        raise UnknownNameError("export format", name, get_args(ClickTableFormat))
    with open_click_log(collection) as log:
        if is_stdout:
            log.export(sys.stdout.buffer, what, name)
            return
        check_writable_file(file)
        with writing(file), atomic_write(file) as draft, draft.open("wb") as stream:
            log.export(stream, what, name)
    print_outcome(str(file), {"file": file}, as_json=as_json)


def forget(
    older_than: Annotated[
        int | None, typer.Option("--older-than", metavar="DAYS", min=0, help="Only searches older than that many days.")
    ] = None,
    yes: YesOption = False,
    collection: CollectionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete logged searches, results and clicks, and rehearsals, which quote them; they are gone for good."""
    import time

    with open_click_log(collection) as log:
        before = log.counts().searches
        if not yes:
            part = "all" if older_than is None else f"those older than {older_than} days"
            if not sys.stdin.isatty():
                raise InvalidInputError(f"of {before:,} logged searches {part} would be forgotten; say --yes to do it")
            typer.confirm(f"Forget {part} of {before:,} logged searches?", abort=True, err=True)
        log.forget(None if older_than is None else time.time() - 86_400 * older_than)
        left = log.counts().searches
    facts = {"forgotten": before - left, "left": left}
    print_outcome(f"{before - left:,} searches forgotten, {left:,} left", facts, as_json=as_json)


def interleave(
    a: Annotated[
        str | None, typer.Argument(metavar="[A]", help="A stored search model (retriever) to start with.")
    ] = None,
    b: Annotated[str | None, typer.Argument(metavar="[B]", help="Another one, to compare it with.")] = None,
    stop: Annotated[bool, typer.Option("--stop", help="Let the search model in use answer alone again.")] = False,
    collection: CollectionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let two search models (retrievers) answer searches of `diptych serve` together; show whose answers are clicked.

    With two names the comparison starts, in a running service as well; without names its numbers are shown.
    """
    if (a is None) != (b is None) or (stop and a is not None):
        raise InvalidInputError("name two search models to start, --stop to end, or nothing to see the numbers")
    if a is not None and b is not None:
        _start(collection, a, b)
    with open_click_log(collection, may_be_empty=True) as log:
        if stop:
            log.stop_interleaving()
        reports = log.interleavings()
    states = _states(collection, [report.interleaving for report in reports])
    if as_json:
        print_json([_document(report, state) for report, state in zip(reports, states, strict=True)])
    else:
        _print(reports, states)


def _start(collection: str | None, a: str, b: str) -> None:
    from diptych.service.clicks import ClickLog

    with open_collection(collection) as opened:
        stored = {one.name: one for one in opened.retrievers()}
        for name in (a, b):
            if name not in stored:
                raise UnknownNameError("search model", name, list(stored))
            if not stored[name].ready:
                raise InvalidInputError(f"{name!r} has not read every item; add it again, then compare")
        with ClickLog(opened.store) as log:
            log.start_interleaving(a=(a, stored[a].fingerprint), b=(b, stored[b].fingerprint))


def _states(collection: str | None, compared: list[Interleaving]) -> list[str]:
    """Tell what runs from what waits, because one of the two retrievers is no longer there as it was."""
    if all(one.stopped is not None for one in compared):
        return ["stopped"] * len(compared)
    with open_collection(collection) as opened:
        stored = {(one.name, one.fingerprint) for one in opened.retrievers() if one.ready}
    there = [{(one.a, one.a_fingerprint), (one.b, one.b_fingerprint)} <= stored for one in compared]
    return [
        "stopped" if one.stopped is not None else "running" if is_there else "waiting"
        for one, is_there in zip(compared, there, strict=True)
    ]


def _print(reports: list[InterleavingReport], states: list[str]) -> None:
    counted = ("searches", "won by a", "won by b", "ties", "clicks a", "clicks b", "p")
    shown = table("a", "b", "since", "until", *(Column(heading, justify="right") for heading in counted))
    for report, state in zip(reports, states, strict=True):
        one = report.interleaving
        counts = (report.searches, report.wins_a, report.wins_b, report.ties, report.clicks_a, report.clicks_b)
        until = state if one.stopped is None else _day(one.stopped)
        shown.add_row(one.a, one.b, _day(one.started), until, *(f"{n:,}" for n in counts), f"{report.p_value:.3g}")
    results().print(shown if reports else "No two search models have been compared yet; name two to start.")
    if "waiting" in states:
        results().print("One of the two is no longer there as it was; the search model in use answers alone.")


def _document(report: InterleavingReport, state: str) -> dict[str, object]:
    from dataclasses import asdict

    plain = asdict(report)
    return {**plain.pop("interleaving"), **plain, "p_value": report.p_value, "state": state}


def _day(moment: float) -> str:
    from datetime import datetime

    return datetime.fromtimestamp(moment).strftime("%Y-%m-%d %H:%M")
