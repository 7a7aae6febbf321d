"""``diptych clicks``: what the service remembers of searches and clicks."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer
from rich.table import Column

from diptych.addresses import is_address
from diptych.atomic_files import atomic_write
from diptych.cli.console.output import (
    bold,
    check_writable_file,
    confirm,
    facts_table,
    numbers,
    print_json,
    print_listing,
    print_outcome,
    print_table,
    results,
    whole,
    writing,
)
from diptych.cli.console.paths import open_collection
from diptych.cli.console.progress import Stages
from diptych.cli.options import (
    ClickTable,
    ClickTableFormat,
    CollectionOption,
    Group,
    JsonOption,
    QuietOption,
    YesOption,
)
from diptych.errors import InvalidInputError, UnknownNameError

if TYPE_CHECKING:
    from diptych.benchmark.query_analysis import LoggedQueries
    from diptych.collection import Collection
    from diptych.service.clicks import ClickLog
    from diptych.service.clicks.interleavings import InterleavingReport

clicks = typer.Typer(
    cls=Group,
    help="Look at the click log of `diptych serve`, export it, delete it.",
)


@contextmanager
def open_click_log(collection: str | None, *, may_be_empty: bool = False) -> Iterator[tuple[Collection, ClickLog]]:
    """Open the collection that was named or that is meant, and its log."""
    from diptych.service.clicks import ClickLog
    from diptych.service.clicks.exports import has_searches

    with open_collection(collection) as opened:
        if not may_be_empty and not has_searches(opened.store):
            raise InvalidInputError(
                f"nothing was logged for {opened.place}; searches in `diptych serve` are, unless told not to"
            )
        with ClickLog(opened.store) as log:
            yield opened, log


@clicks.command()
def status(collection: CollectionOption = None, as_json: JsonOption = False) -> None:
    """Show how many searches, results and clicks are logged, and since when."""
    with open_click_log(collection) as (_, log):
        counts = log.counts()
    if as_json:
        print_json(counts)
        return
    facts = {
        "searches": f"{counts.searches:,}",
        "different queries": f"{counts.queries:,}",
        "results shown": f"{counts.results_shown:,}",
        "clicks": f"{counts.clicks:,}",
    }
    if counts.since is not None and counts.until is not None:
        days = (datetime.fromtimestamp(moment).strftime("%Y-%m-%d") for moment in (counts.since, counts.until))
        facts["from, to"] = ", ".join(days)
    results().print(facts_table(facts))


@clicks.command()
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
    with open_click_log(collection) as (_, log):
        if is_stdout:
            log.export(sys.stdout.buffer, what, name)
            return
        check_writable_file(file)
        with writing(file), atomic_write(file) as draft, draft.open("wb") as stream:
            log.export(stream, what, name)
    print_outcome(str(file), {"file": file}, as_json=as_json)


@clicks.command()
def forget(
    older_than: Annotated[
        int | None, typer.Option("--older-than", metavar="DAYS", min=0, help="Only searches older than that many days.")
    ] = None,
    yes: YesOption = False,
    collection: CollectionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete logged searches, results and clicks, and rehearsals, which quote them; they are gone for good."""
    with open_click_log(collection) as (_, log):
        before = log.counts().searches
        part = "all" if older_than is None else f"those older than {older_than} days"
        told = f"of {before:,} logged searches {part} would be forgotten"
        confirm(f"Forget {part} of {before:,} logged searches?", yes=yes, told=told)
        log.forget(None if older_than is None else time.time() - 86_400 * older_than)
        left = log.counts().searches
    facts = {"forgotten": before - left, "left": left}
    print_outcome(f"{before - left:,} searches forgotten, {left:,} left", facts, as_json=as_json)


@clicks.command()
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
    with open_click_log(collection, may_be_empty=True) as (opened, log):
        stored = {one.name: one for one in opened.retrievers()}
        if a is not None and b is not None:
            for name in (a, b):
                if name not in stored:
                    raise UnknownNameError("search model", name, list(stored))
                if not stored[name].ready:
                    raise InvalidInputError(f"{name!r} has not read every item; add it again, then compare")
            log.start_interleaving(a=(a, stored[a].fingerprint), b=(b, stored[b].fingerprint))
        if stop:
            log.stop_interleaving()
        compared = log.interleavings(stored.values())
    if as_json:
        print_json([asdict(report) for report in compared])
        return
    counted = numbers("searches", "won by a", "won by b", "ties", "clicks a", "clicks b", "p")
    print_listing(
        compared,
        ["a", "b", "since", "until", *counted],
        _interleaving_cells,
        as_json=False,
        empty="No two search models have been compared yet; name two to start.",
    )
    if any(report.state == "waiting" for report in compared):
        results().print("One of the two is no longer there as it was; the search model in use answers alone.")


def _interleaving_cells(report: InterleavingReport) -> list[str]:
    since, until = (
        None if moment is None else datetime.fromisoformat(moment).astimezone().strftime("%Y-%m-%d %H:%M")
        for moment in (report.started, report.stopped)
    )
    counts = (report.searches, report.wins_a, report.wins_b, report.ties, report.clicks_a, report.clicks_b)
    numbers = [f"{count:,}" for count in counts]
    return [report.a, report.b, since or "", until or report.state, *numbers, f"{report.p_value:.3g}"]


@clicks.command()
def queries(
    log: Annotated[
        str | None,
        typer.Argument(
            metavar="[LOG]",
            help="A table of clicks (.tsv, .csv, .jsonl, .parquet, Clickture), or a served collection; by default the "
            "collection here, or the last.",
        ),
    ] = None,
    vocabulary: Annotated[
        list[Path] | None,
        typer.Option("--vocabulary", help="A text file of more visible names, one to a line; repeat for several."),
    ] = None,
    top: Annotated[int, typer.Option("--top", min=0, help="How many of the most frequent queries to show.")] = 20,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Report on the queries of a log: their length, how visual they are, which are answered and which are not."""
    from diptych.benchmark.query_analysis import analyse_queries
    from diptych.encoders import Visualness, read_vocabulary

    stages = Stages(quiet=quiet)
    names = [name for file in vocabulary or [] for name in read_vocabulary(file)]
    with stages.run("read", "reading the log"):
        logged = read_queries(log)
    with stages.run("measure", "measuring queries") as advance:
        report = analyse_queries(logged, Visualness(names), top=top, advance=advance)
    if as_json:
        print_json(report)
    else:
        print_queries(report)


def read_queries(log: str | None) -> LoggedQueries:
    """Read a file that :func:`diptych.data.clicks.read_clicks` reads, or what was logged for a collection."""
    is_served = log is None or is_address(log) or Path(log).is_dir()
    logged = _queries_of_service(log) if is_served or log is None else _queries_of_table(Path(log))
    if not len(logged.texts):
        raise InvalidInputError(f"{log} holds no query; a log begins with the first search")
    return logged


def _queries_of_table(file: Path) -> LoggedQueries:
    import numpy as np

    from diptych.benchmark.query_analysis import LoggedQueries
    from diptych.data.clicks import read_clicks

    log = read_clicks(file)
    clicks = np.bincount(log.query_ids, weights=log.clicks, minlength=len(log.queries)).astype(np.float64)
    return LoggedQueries(list(log.queries), clicks)


def _queries_of_service(named: str | None) -> LoggedQueries:
    import numpy as np

    from diptych.benchmark.query_analysis import LoggedQueries
    from diptych.service.clicks.reports import query_counts

    with open_click_log(named) as (collection, _), collection.store.reading() as db:
        rows = query_counts(db)
    counts = np.array([row[1:] for row in rows], dtype=np.float64).reshape(len(rows), 4)
    searches, answered, unmatched, clicks = counts.T
    return LoggedQueries([row.query for row in rows], clicks, searches, answered, unmatched)


def print_queries(report: dict[str, Any]) -> None:
    """Print what was asked, how visual it is, where it fails, and the most frequent queries; JSON has the rest."""
    console = results()
    length, visualness = report["length"], report["visualness"]
    facts = {
        "different queries": f"{report['queries']:,}",
        "searches": "unknown" if report["searches"] is None else f"{report['searches']:,}",
        "clicks": f"{report['clicks']:,.10g}",
        "answered": f"{_percent(report['answered_share'])} of searches",
        "no good match": f"{_percent(report['no_good_match_share'])} of searches",
        "length": f"{length['mean']:.1f} words on average, the longest {length['longest']}",
        "visualness": f"{visualness['mean']:.3f} on average; nothing visible in "
        f"{_percent(visualness['share_of_none'])} of queries, all of it in {_percent(visualness['share_of_all'])}",
    }
    console.print(facts_table(facts))
    _print_groups("By length", report["by_length"])
    _print_groups("By visualness", report["by_visualness"])
    if report["failing"]:
        _print_groups("Groups that fail: answered less often than the others (p < 0.05)", report["failing"])
    rows = [
        [row["marked"], f"{row['visualness']:.3f}", f"{row.get('searches', 0):,}", f"{row['clicks']:,.10g}"]
        for row in report["top"]
    ]
    query = Column("query", overflow="fold", style="bold")
    console.print()
    columns = [query, *numbers("visualness", "searches", "clicks")]
    print_table(columns, rows, console, title="Most frequent, [visible] words in brackets")


def _print_groups(title: str, groups: list[dict[str, Any]]) -> None:
    rows = [
        [
            group["group"],
            f"{group['queries']:,}",
            _percent(group["share_of_queries"]),
            f"{group['clicks']:,.10g}",
            _percent(group["share_of_clicks"]),
            _percent(group.get("answered_share")),
            "fails" if group.get("fails") else "",
        ]
        for group in groups
    ]
    results().print()
    columns = [bold("group"), *numbers("queries", "of all", "clicks", "of all", "answered"), whole("")]
    print_table(columns, rows, results(), title)


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"
