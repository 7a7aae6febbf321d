"""``diptych queries``: what people search for, how visual it is, and where the answers fail them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Column

from diptych.addresses import is_address
from diptych.cli.console.output import (
    bold,
    facts_table,
    numbers,
    or_dash,
    print_json,
    print_table,
    results,
    scores,
    table,
    whole,
    write_text,
)
from diptych.cli.console.paths import open_collection
from diptych.cli.console.progress import Stages
from diptych.cli.console.report_files import check_report_files, save_figures
from diptych.cli.options import JsonOption, QuietOption
from diptych.errors import InvalidInputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from diptych.benchmark.query_analysis import LoggedQueries


def queries(
    log: Annotated[
        str,
        typer.Argument(
            metavar="LOG",
            help="A table of clicks (.tsv, .csv, .jsonl, .parquet, Clickture), or a served collection.",
        ),
    ],
    vocabulary: Annotated[
        list[Path] | None,
        typer.Option("--vocabulary", help="A text file of more visible names, one to a line; repeat for several."),
    ] = None,
    top: Annotated[int, typer.Option("--top", min=0, help="How many of the most frequent queries to show.")] = 20,
    plots: Annotated[Path | None, typer.Option("--plots", help="Draw figures into this folder.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the whole report to this JSON file.")
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Report on the queries of a log: their length, how visual they are, which are answered and which are not."""
    from diptych.benchmark.query_analysis import analyse_queries
    from diptych.encoders import Visualness, read_vocabulary

    check_report_files(output, plots)
    stages = Stages(quiet=quiet)
    names = [name for file in vocabulary or [] for name in read_vocabulary(file)]
    with stages.run("read", "reading the log"):
        logged = read_queries(log)
    with stages.count("measure", "measuring queries") as advance:
        report = analyse_queries(logged, Visualness(names), top=top, advance=advance)
    if as_json:
        print_json(report)
    else:
        print_queries(report, results())
    if output is not None:
        write_text(output, json.dumps(report, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
        stages.note(f"report: {output}")
    if plots is not None:
        for file in draw_queries(report, plots):
            stages.note(f"figure: {file}")


def read_queries(log: Path | str) -> LoggedQueries:
    """Read a file that :func:`diptych.data.clicks.read_clicks` reads, or what was logged for a collection."""
    is_served = is_address(log) or Path(log).is_dir()
    logged = _from_service(log) if is_served else _from_table(Path(log))
    if not len(logged.texts):
        raise InvalidInputError(f"{log} holds no query; a log begins with the first search")
    return logged


def _from_table(file: Path) -> LoggedQueries:
    import numpy as np

    from diptych.benchmark.query_analysis import LoggedQueries
    from diptych.data.clicks import read_clicks

    log = read_clicks(file)
    clicks = np.bincount(log.query_ids, weights=log.clicks, minlength=len(log.queries)).astype(np.float64)
    return LoggedQueries(list(log.queries), clicks)


def _from_service(place: Path | str) -> LoggedQueries:
    import numpy as np

    from diptych.benchmark.query_analysis import LoggedQueries
    from diptych.service.clicks.reports import query_counts

    with open_collection(place) as collection, collection.store.reading() as db:
        rows = query_counts(db)
    if not rows:
        raise InvalidInputError(f"nothing was logged for {place}; searches in `diptych serve` are, unless told not to")
    counts = np.array([row[1:] for row in rows], dtype=np.float64).reshape(len(rows), 4)
    searches, answered, unmatched, clicks = counts.T
    return LoggedQueries([row.query for row in rows], clicks, searches, answered, unmatched)


def print_queries(report: dict[str, Any], console: Console) -> None:
    """Print what was asked, how visual it is, where it fails, and the most frequent queries."""
    _print_facts(report, console)
    for title, key in (("By length", "by_length"), ("By visualness", "by_visualness")):
        console.print()
        _print_groups(title, report[key], console)
    if report["failing"]:
        console.print()
        _print_groups("Groups that fail: answered less often than the others (p < 0.05)", report["failing"], console)
    elif report["searches"] is not None:
        console.print("\nNo group of one length and visualness is answered less often than the others.")
    console.print()
    names = [name for name in report["thresholds"][0] if name != "threshold"]
    columns = [*scores("threshold"), *numbers(*(name.removeprefix("share_of_") for name in names))]
    rows = ([f"{row['threshold']:.1f}", *(_percent(row[name]) for name in names)] for row in report["thresholds"])
    print_table(columns, rows, console, title="Share that is more visual than a threshold")
    console.print()
    _print_correlations(report, console)
    console.print()
    _print_top(report["top"], console)


def _print_facts(report: dict[str, Any], console: Console) -> None:
    length, visualness = report["length"], report["visualness"]
    shares = {"answered": report["answered_share"], "no good match": report["no_good_match_share"]}
    facts = {
        "different queries": f"{report['queries']:,}",
        **({} if report["searches"] is None else {"searches": f"{report['searches']:,}"}),
        "clicks": f"{report['clicks']:,.10g}",
        **{fact: f"{_percent(share)} of searches" for fact, share in shares.items() if share is not None},
        "length": f"{length['mean']:.1f} words on average, half have up to {length['median']:g}, "
        f"the longest {length['longest']}",
        "visualness": f"{visualness['mean']:.3f} on average; nothing visible in "
        f"{_percent(visualness['share_of_none'])} of queries, all of it in {_percent(visualness['share_of_all'])}",
    }
    console.print(facts_table(facts))


def _print_groups(title: str, groups: list[dict[str, Any]], console: Console) -> None:
    knows_searches = "searches" in groups[0]
    more = [*numbers("searches", "answered", "no good match"), whole("")] if knows_searches else []
    columns = numbers("queries", "of all", "clicks", "of all", "per query")
    listing = table(bold("group"), *columns, *more, title=title)
    for group in groups:
        cells = [f"{group['queries']:,}", _percent(group["share_of_queries"]), f"{group['clicks']:,.10g}"]
        cells += [_percent(group["share_of_clicks"]), or_dash(group["clicks_per_query"], ",.2f")]
        if knows_searches:
            cells += [f"{group['searches']:,}", _percent(group["answered_share"])]
            cells += [_percent(group["no_good_match_share"]), "fails" if group["fails"] else ""]
        listing.add_row(group["group"], *cells)
    console.print(listing)


def _print_correlations(report: dict[str, Any], console: Console) -> None:
    listing = table(bold("between"), *numbers("coefficient", "p"), title="Spearman's rank correlation")
    for row in report["spearman"]:
        coefficient, p_value = row["coefficient"], row["p_value"]
        listing.add_row(
            " and ".join(row["between"]),
            or_dash(coefficient, "+.3f"),
            "< 0.001" if p_value is not None and p_value < 0.001 else or_dash(p_value, ".3f"),
        )
    console.print(listing)
    meaning = "its clicks" if report["success"] == "clicks" else "the share of its searches with a click"
    console.print(f"\nThe success of a query is {meaning}.")


def _print_top(top: list[dict[str, Any]], console: Console) -> None:
    knows_searches = bool(top) and "searches" in top[0]
    columns = numbers("visualness", *(("searches", "answered") if knows_searches else ()), "clicks")
    query = Column("query", overflow="fold", style="bold")
    listing = table(query, *columns, title="Most frequent, [visible] words in brackets")
    for row in top:
        counts = [f"{row['searches']:,}", _percent(row["answered_share"])] if knows_searches else []
        listing.add_row(row["marked"], f"{row['visualness']:.3f}", *counts, f"{row['clicks']:,.10g}")
    console.print(listing)


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def draw_queries(report: dict[str, Any], folder: Path) -> list[Path]:
    """Draw figures 2 and 9 of Dong et al. (2018) for a log, the latter also by length, and return the files."""
    drawn = {
        "visual-shares.png": _shares(report["thresholds"]),
        "visualness-groups.png": _groups(report["by_visualness"], "visualness"),
        "length-groups.png": _groups(report["by_length"], "length"),
    }
    return save_figures(drawn, folder)


def _shares(rows: list[dict[str, Any]]) -> Figure:
    from diptych import figures

    weighted = [row["share_of_clicks"] for row in rows]
    return figures.visual_shares(
        [row["threshold"] for row in rows],
        [row["share_of_queries"] for row in rows],
        # Without a single click there is nothing to weight with.
        None if None in weighted else weighted,
        title="Visual queries",
    )


def _groups(groups: list[dict[str, Any]], label: str) -> Figure:
    from diptych import figures

    key, score = "clicks_per_query", "clicks per query"
    if "searches" in groups[0]:
        key, score = "answered_share", "share of searches with a click"
    values = [float("nan") if group[key] is None else group[key] for group in groups]
    return figures.query_group_bars(
        [group["group"] for group in groups],
        {score: values},
        counts=[group["queries"] for group in groups],
        label=label,
        score=score,
        title=f"Success by {label}",
    )
