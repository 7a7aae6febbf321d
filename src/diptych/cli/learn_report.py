"""What ``diptych learn`` says."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rich.console import Console

from diptych.cli.terminal import print_json, results, table
from diptych.collection.learning import LearningRecord, LearningReport
from diptych.collection.learning.fusion_trial import PRESENT

_PLACES = (1, 2, 3, 5, 10, 20)


def print_learning_report(report: LearningReport, *, is_dry_run: bool, as_json: bool) -> None:
    """Print the comparison, what was fused, examples, and what was decided."""
    record = report.record
    if as_json:
        positions = None if report.positions is None else report.positions.propensities_.tolist()
        content = {**record.to_json(), "is_better": report.is_better, "propensities": positions, "notes": report.notes}
        print_json(json.dumps(content, indent=2))
        return
    console = results()
    console.print(f"{record.n_clicks:,.0f} clicks on {record.n_queries:,} queries", style="bold")
    console.print(_positions(report))
    for note in report.notes:
        console.print(note)
    if record.old is not None and record.new is not None:
        _print_comparison(record, console)
    console.print(f"\n{_decision(record, is_better=report.is_better, is_dry_run=is_dry_run)}")


def _positions(report: LearningReport) -> str:
    found = report.positions
    if found is None:
        return "The log tells no positions, so the clicks are taken as they are: items shown first seem better."
    shares = [
        f"{found.propensities_[place - 1]:.2f} at {place}" for place in _PLACES if place <= len(found.propensities_)
    ]
    told = f"Looked at, compared with the first position: {', '.join(shares)}."
    if not found.is_assumed_:
        return told
    return f"{told} Items never changed their positions, so this is assumed (1/rank^{found.eta_:.2f}), not measured."


def _print_comparison(record: LearningRecord, console: Console) -> None:
    listing = table()
    listing.add_column("retriever", no_wrap=True)
    listing.add_column(record.measure, justify="right", no_wrap=True, style="bold")
    listing.add_row("learned", f"{record.new:.4f}")
    listing.add_row(record.compared_with or record.before, f"{record.old:.4f}")
    console.print(f"\nOrder of the shown items on {record.n_held_out:,} held-out queries", style="bold")
    console.print(listing)
    named = {PRESENT: record.compared_with or record.before}
    weights = ", ".join(f"{named.get(name, name)} {weight:.2f}" for name, weight in record.parts.items())
    console.print(f"\nWeights: {weights}")
    if record.answered is not None:
        console.print(f"The log has something to say about {record.answered:.0%} of the held-out queries.")
    _print_examples("Gained most", record.gained, console)
    _print_examples("Lost most", record.lost, console)


def _print_examples(title: str, queries: Sequence[tuple[str, float, float]], console: Console) -> None:
    if not queries:
        return
    listing = table(title)
    listing.add_column("query", overflow="fold")
    listing.add_column("before", justify="right", no_wrap=True)
    listing.add_column("after", justify="right", no_wrap=True)
    for query, old, new in queries:
        listing.add_row(query, f"{old:.4f}", f"{new:.4f}")
    console.print()
    console.print(listing)


def _decision(record: LearningRecord, *, is_better: bool, is_dry_run: bool) -> str:
    told = f"{record.reason[0].upper()}{record.reason[1:]}"
    if record.p_value is not None and is_better:
        chance = f"p = {record.p_value:.4f}" if record.p_value >= 0.0001 else "p < 0.0001"
        told = f"{told} ({chance})"
    if is_dry_run:
        return f"{told}. Nothing was changed."
    if not is_better:
        return f"{told}. The present retriever stays."
    return f"{told}. The collection uses {record.after!r} now; `diptych rollback` goes back to {record.before!r}."
