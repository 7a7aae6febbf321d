"""``diptych clicks status``: how much is in the click log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.cli.terminal import print_json, results, table

if TYPE_CHECKING:
    from diptych.service.clicks.log_counts import LogCounts


def status(
    collection: Annotated[
        Path | None, typer.Option("--collection", "-c", help="The collection; by default the one here, or the last.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Show how many searches, results and clicks are logged, since when, and in which file."""
    from dataclasses import asdict

    from diptych.cli.clicks_file import open_click_log

    with open_click_log(collection) as log:
        counts = log.counts()
        size = log.path.stat().st_size
        file = log.path
    if as_json:
        print_json(json.dumps({"file": str(file), "bytes": size, **asdict(counts)}, indent=2))
        return
    facts = table()
    facts.show_header = False
    facts.add_column(no_wrap=True)
    facts.add_column(overflow="fold")
    facts.add_row("file", f"{file} ({size / 2**20:.1f} MiB)")
    for fact, value in _facts(counts).items():
        facts.add_row(fact, value)
    results().print(facts)


def _facts(counts: LogCounts) -> dict[str, str]:
    from datetime import datetime

    facts = {
        "searches": f"{counts.searches:,}",
        "different queries": f"{counts.queries:,}",
        "results shown": f"{counts.results_shown:,}",
        "clicks": f"{counts.clicks:,}",
        "votes": f"{counts.votes:,}",
    }
    if counts.since is not None and counts.until is not None:
        days = (datetime.fromtimestamp(moment).strftime("%Y-%m-%d") for moment in (counts.since, counts.until))
        facts["from, to"] = ", ".join(days)
    return facts
