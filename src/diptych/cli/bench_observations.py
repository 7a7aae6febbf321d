"""The observations that ``bench report`` prints."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from diptych.benchmark.reporting import Observation
from diptych.benchmark.reporting.observation import written_p
from diptych.cli.terminal import table


def print_observations(observations: Sequence[Observation], console: Console) -> None:
    """Print every claim with its verdict, p-value and evidence."""
    if not observations:
        console.print("There is no task with seen or unseen classes, so that no observation could be tested.")
        return
    listing = table("Observations")
    for heading in ("claim", "data"):
        listing.add_column(heading)
    listing.add_column("verdict", style="bold", no_wrap=True)
    listing.add_column("p", justify="right", no_wrap=True)
    listing.add_column("evidence")
    for one in observations:
        listing.add_row(one.claim, one.where, one.verdict, written_p(one.p_value), one.evidence)
    console.print(listing)
