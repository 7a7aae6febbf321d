"""``diptych learn`` and ``rollback``: clicks teach the collection's retriever, and the one before comes back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from diptych.cli.console.output import folded, numbers, print_json, results, scores, table, whole
from diptych.cli.console.paths import open_collection
from diptych.cli.console.progress import Stages, stage_by_stage
from diptych.cli.options import QuietOption
from diptych.errors import InvalidInputError

if TYPE_CHECKING:
    from diptych.collection.learning import Impressions, LearningRecord, LearningReport
    from diptych.data.clicks import ClickLog

_PLACES = (1, 2, 3, 5, 10, 20)


def learn(
    collection: Annotated[
        Path | None, typer.Argument(metavar="[COLLECTION]", help="By default the collection here, or the last.")
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option("--log", metavar="FILE", help="A table of query, item, clicks instead of what was served here."),
    ] = None,
    held_out: Annotated[
        float, typer.Option(min=0.05, max=0.5, help="The share of queries kept back for the comparison.")
    ] = 0.2,
    alpha: Annotated[
        float, typer.Option(min=0.0001, max=0.5, help="The largest p-value that changes anything.")
    ] = 0.01,
    seed: Annotated[int, typer.Option(help="Random seed of that draw.")] = 0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Compare only; change nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
    quiet: QuietOption = False,
) -> None:
    """Learn from clicks, compare with the present retriever on held-out queries, and keep the better."""
    from diptych.collection.learning import Learning

    stages = Stages(quiet=quiet)
    with open_collection(collection, quiet=quiet) as opened:
        with stages.run("read", "reading the clicks"):
            clicks = clicks_to_learn(opened.home, log)
        learning = Learning(opened, held_out=held_out, alpha=alpha, seed=seed)
        with stage_by_stage(stages) as progress:
            report = learning.run(clicks, dry_run=dry_run, progress=progress)
    print_learning_report(report, is_dry_run=dry_run, as_json=as_json)


def clicks_to_learn(collection: Path, log: Path | None) -> Impressions | ClickLog:
    """Return what was shown and clicked in the service, or the triads of a file, which know no positions."""
    from diptych.data.clicks import read_clicks

    if log is not None:
        return read_clicks(log)
    from diptych.collection.learning import Impressions
    from diptych.service.clicks.export import text_query_impressions
    from diptych.service.clicks.log import click_log_path

    path = click_log_path(collection)
    if not path.is_file():
        raise InvalidInputError(
            f"nothing was logged for {collection}; search and click in `diptych serve` first, or pass a table of "
            "clicks with --log FILE"
        )
    seen = Impressions.from_rows(text_query_impressions(path))
    if not seen.n_clicks:
        raise InvalidInputError(
            f"nobody has clicked a picture of {collection} that was found by words; search and click in "
            "`diptych serve` first"
        )
    return seen


def print_learning_report(report: LearningReport, *, is_dry_run: bool, as_json: bool) -> None:
    """Print the comparison, what was fused, examples, and what was decided."""
    record = report.record
    if as_json:
        positions = None if report.positions is None else report.positions.propensities_.tolist()
        content = {**record.to_json(), "is_better": report.is_better, "propensities": positions, "notes": report.notes}
        print_json(content)
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
    shares = [f"{share:.2f} at {place}" for place, share in enumerate(found.propensities_, 1) if place in _PLACES]
    told = f"Looked at, compared with the first position: {', '.join(shares)}."
    if not found.is_assumed_:
        return told
    return f"{told} Items never changed their positions, so this is assumed (1/rank^{found.eta_:.2f}), not measured."


def _print_comparison(record: LearningRecord, console: Console) -> None:
    from diptych.collection.learning.fusion_trial import PRESENT

    listing = table(whole("retriever"), *scores(record.measure))
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
    listing = table(folded("query"), *numbers("before", "after"), title=title)
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


def rollback(
    collection: Annotated[
        Path | None, typer.Argument(metavar="[COLLECTION]", help="By default the collection here, or the last.")
    ] = None,
) -> None:
    """Go back to the retriever that was in use before `diptych learn` promoted another one."""
    from diptych.collection.learning import rollback as roll_back

    with open_collection(collection) as opened:
        record = roll_back(opened)
    results().print(f"The collection uses {record.after!r} again; {record.before!r} stays stored.")
