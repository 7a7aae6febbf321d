"""``diptych rehearse``: another retriever answers the collection's own questions, before anything is changed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from diptych.cli.console.output import (
    check_writable_file,
    folded,
    numbers,
    print_json,
    results,
    scores,
    table,
    whole,
    write_text,
)
from diptych.cli.console.paths import open_collection, shown_path
from diptych.cli.console.progress import Stages, stage_by_stage
from diptych.cli.options import QuietOption, complete_retriever

if TYPE_CHECKING:
    from collections.abc import Sequence

    from diptych.collection.learning import Impressions, RehearsalReport, RehearsedQuestion, RehearsedQuestions

_EXAMPLES = 5


def rehearse(
    retriever: Annotated[
        str,
        typer.Option(
            autocompletion=complete_retriever,
            help="The search model (retriever): light, default, strong or conse, which come with Diptych, or the "
            "folder of a saved one or of a CLIP or SigLIP model.",
        ),
    ],
    collection: Annotated[
        Path | None, typer.Argument(metavar="[COLLECTION]", help="By default the collection here, or the last.")
    ] = None,
    sample: Annotated[int, typer.Option(min=2, help="How many pictures to encode; fewer are all taken.")] = 500,
    n_queries: Annotated[
        int, typer.Option("--queries", min=1, help="How many captions, and how many logged queries, to ask at most.")
    ] = 1000,
    alpha: Annotated[float, typer.Option(min=0.0001, max=0.5, help="The largest p-value that is not luck.")] = 0.05,
    random_state: Annotated[int, typer.Option(help="Random seed of the draws.")] = 0,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a page with the pictures won and lost.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
    quiet: QuietOption = False,
) -> None:
    """Try another search model (retriever) on the collection's own captions and logged queries; change nothing."""
    from diptych.cli.arguments import load_retriever
    from diptych.collection.learning import Rehearsal
    from diptych.collection.learning.rehearsal_report import rehearsal_html

    if html is not None:
        check_writable_file(html)
    stages = Stages(quiet=quiet)
    with open_collection(collection, quiet=quiet) as opened:
        with stages.run("retriever", "preparing the search model"):
            candidate = load_retriever(retriever)
        rehearsal = Rehearsal(
            opened, candidate, sample=sample, n_queries=n_queries, alpha=alpha, random_state=random_state
        )
        with stage_by_stage(stages) as progress:
            report = rehearsal.run(_logged(opened.home), progress=progress)
        if html is not None:
            write_text(html, rehearsal_html(report, opened))
            stages.note(f"page: {shown_path(html)}")
        change = f"diptych index {shown_path(opened.root)} --retriever {retriever}"
    if as_json:
        print_json(report.to_json())
    else:
        print_rehearsal(report, change, results())


def _logged(collection: Path) -> Impressions | None:
    from diptych.collection.learning import SearchLog
    from diptych.service.clicks.export import text_query_searches
    from diptych.service.clicks.log import click_log_path

    path = click_log_path(collection)
    return SearchLog.from_searches(text_query_searches(path)).impressions() if path.is_file() else None


def print_rehearsal(report: RehearsalReport, change: str, console: Console) -> None:
    """Print the verdict, the measures, what was won and lost, and what it takes to ``change``, which is a command."""
    from diptych.collection.learning.rehearsal_report import reencoding_words, unjudged_words

    for sentence in report.verdict:
        console.print(f"{sentence}.", style="bold")
    console.print(f"Both ranked {report.sampled}.")
    for group in report.questions:
        _print_measures(report, group, console)
        _print_examples(f"Won: {group.n_won:,}", report, group.won, console)
        _print_examples(f"Lost: {group.n_lost:,}", report, group.lost, console)
    if report.overlap is not None:
        console.print(f"\n{unjudged_words(report, report.overlap)}")
    console.print()
    for note in report.notes:
        console.print(f"Note: {note}")
    console.print(f"{reencoding_words(report)} Nothing was changed; to change over: {change}")


def _print_measures(report: RehearsalReport, group: RehearsedQuestions, console: Console) -> None:
    listing = table(whole("measure"), *scores(report.old, report.new), *numbers("difference, 95 %", "p"))
    for one in group.differences:
        interval = f"{one.low:+.3f} to {one.high:+.3f}"
        listing.add_row(one.measure, f"{one.old:.3f}", f"{one.new:.3f}", interval, one.p_text)
    listing.add_row('"no good match"', f"{group.no_match_old:.1%}", f"{group.no_match_new:.1%}", "", "")
    console.print(f"\n{group.counted}", style="bold")
    console.print(listing)


def _print_examples(
    title: str, report: RehearsalReport, questions: Sequence[RehearsedQuestion], console: Console
) -> None:
    if not questions:
        return
    listing = table(folded("question"), *numbers(f"place with {report.old}", report.new), title=title)
    for question in questions[:_EXAMPLES]:
        listing.add_row(question.text, f"{question.old_rank:g}", f"{question.new_rank:g}")
    console.print()
    console.print(listing)
