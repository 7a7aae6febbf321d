"""The tables that ``queries`` prints."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from diptych.cli.terminal import table


def print_queries(report: dict[str, Any], console: Console) -> None:
    """Print what was asked, how visual it is, where it fails, and the most frequent queries."""
    _print_facts(report, console)
    for title, key in (("By length", "by_length"), ("By visualness", "by_visualness")):
        console.print()
        _print_groups(title, report[key], console)
    _print_failing(report, console)
    console.print()
    _print_thresholds(report["thresholds"], console)
    console.print()
    _print_correlations(report, console)
    console.print()
    _print_top(report["top"], console)


def _print_facts(report: dict[str, Any], console: Console) -> None:
    length, visualness = report["length"], report["visualness"]
    facts = {
        "different queries": f"{report['queries']:,}",
        "searches": None if report["searches"] is None else f"{report['searches']:,}",
        "clicks": f"{report['clicks']:,.10g}",
        "answered": None if report["answered_share"] is None else f"{_percent(report['answered_share'])} of searches",
        "no good match": None
        if report["no_good_match_share"] is None
        else f"{_percent(report['no_good_match_share'])} of searches",
        "length": f"{length['mean']:.1f} words on average, half have up to {length['median']:g}, "
        f"the longest {length['longest']}",
        "visualness": f"{visualness['mean']:.3f} on average; nothing visible in "
        f"{_percent(visualness['share_of_none'])} of queries, all of it in {_percent(visualness['share_of_all'])}",
    }
    listing = table()
    listing.show_header = False
    listing.add_column(no_wrap=True)
    listing.add_column(overflow="fold")
    for fact, value in facts.items():
        if value is not None:
            listing.add_row(fact, value)
    console.print(listing)


def _print_groups(title: str, groups: list[dict[str, Any]], console: Console) -> None:
    knows_searches = "searches" in groups[0]
    listing = table(title)
    listing.add_column("group", no_wrap=True, style="bold")
    headings = ["queries", "of all", "clicks", "of all", "per query"]
    if knows_searches:
        headings += ["searches", "answered", "no good match", ""]
    for heading in headings:
        listing.add_column(heading, justify="left" if not heading else "right", no_wrap=True)
    for group in groups:
        cells = [f"{group['queries']:,}", _percent(group["share_of_queries"]), f"{group['clicks']:,.10g}"]
        cells += [_percent(group["share_of_clicks"]), _decimal(group["clicks_per_query"])]
        if knows_searches:
            cells += [f"{group['searches']:,}", _percent(group["answered_share"])]
            cells += [_percent(group["no_good_match_share"]), "fails" if group["fails"] else ""]
        listing.add_row(group["group"], *cells)
    console.print(listing)


def _print_failing(report: dict[str, Any], console: Console) -> None:
    if report["searches"] is None:
        return
    console.print()
    if not report["failing"]:
        console.print("No group of one length and visualness is answered less often than the others.")
        return
    _print_groups("Groups that fail: answered less often than the others (p < 0.05)", report["failing"], console)


def _print_thresholds(thresholds: list[dict[str, Any]], console: Console) -> None:
    listing = table("Share that is more visual than a threshold")
    listing.add_column("threshold", justify="right", no_wrap=True, style="bold")
    names = [name for name in thresholds[0] if name != "threshold"]
    for name in names:
        listing.add_column(name.removeprefix("share_of_"), justify="right", no_wrap=True)
    for row in thresholds:
        listing.add_row(f"{row['threshold']:.1f}", *(_percent(row[name]) for name in names))
    console.print(listing)


def _print_correlations(report: dict[str, Any], console: Console) -> None:
    listing = table("Spearman's rank correlation")
    listing.add_column("between", no_wrap=True, style="bold")
    listing.add_column("coefficient", justify="right", no_wrap=True)
    listing.add_column("p", justify="right", no_wrap=True)
    for row in report["spearman"]:
        coefficient, p_value = row["coefficient"], row["p_value"]
        listing.add_row(
            " and ".join(row["between"]),
            "–" if coefficient is None else f"{coefficient:+.3f}",
            "–" if p_value is None else "< 0.001" if p_value < 0.001 else f"{p_value:.3f}",
        )
    console.print(listing)
    meaning = "its clicks" if report["success"] == "clicks" else "the share of its searches with a click"
    console.print(f"\nThe success of a query is {meaning}.")


def _print_top(top: list[dict[str, Any]], console: Console) -> None:
    knows_searches = bool(top) and "searches" in top[0]
    listing = table("Most frequent, [visible] words in brackets")
    listing.add_column("query", overflow="fold", style="bold")
    for heading in ("visualness", *(("searches", "answered") if knows_searches else ()), "clicks"):
        listing.add_column(heading, justify="right", no_wrap=True)
    for row in top:
        counts = [f"{row['searches']:,}", _percent(row["answered_share"])] if knows_searches else []
        listing.add_row(row["marked"], f"{row['visualness']:.3f}", *counts, f"{row['clicks']:,.10g}")
    console.print(listing)


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def _decimal(value: float | None) -> str:
    return "–" if value is None else f"{value:,.2f}"
