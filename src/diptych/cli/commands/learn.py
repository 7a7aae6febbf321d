"""``diptych learn``, ``history``, ``rollback`` and ``rehearse``: other search models, judged before they are used."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.cli.console.output import (
    folded,
    numbers,
    or_dash,
    print_json,
    print_listing,
    print_outcome,
    print_table,
    results,
    scores,
    whole,
)
from diptych.cli.console.paths import open_collection, shown_path
from diptych.cli.console.progress import Stages, stage_by_stage
from diptych.cli.options import (
    AlphaOption,
    CollectionArgument,
    DeviceOption,
    DryRunOption,
    JsonOption,
    QuietOption,
    RequiredModelOption,
)
from diptych.errors import InvalidInputError

if TYPE_CHECKING:
    from diptych.collection import Collection
    from diptych.collection.learning import (
        LearningRecord,
        LearningReport,
        RehearsalReport,
        RehearsedQuestions,
        SearchLog,
    )
    from diptych.data.clicks import ClickLog

SHOWN_POSITIONS = (1, 2, 3, 5, 10, 20)
MAX_EXAMPLES = 5
GATE_PARTS = {"repeated": "asked before", "new": "new", "held_out": "kept back, by similar ones"}
ACTIONS = {
    "promoted": "{0.before} → {0.after}",
    "changed": "{0.before} → {0.after}",
    "kept": "{0.before} stays",
    "rolled back": "back to {0.after}",
}
ORIGINS = {"clicks": "learn", "captions": "train", "switch": "--retriever", "choice": "chosen"}


def learn(
    collection: CollectionArgument = None,
    log: Annotated[
        Path | None,
        typer.Option("--log", metavar="FILE", help="A table of query, item, clicks instead of what was served here."),
    ] = None,
    held_out: Annotated[
        float, typer.Option(min=0.05, max=0.5, help="The share of searches, the latest, that judge what was learned.")
    ] = 0.3,
    alpha: AlphaOption = 0.01,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Learn from clicks, and keep what is better.

    Later searches of other people compare it with the present search model.
    """
    from diptych.collection.learning import Learning

    stages = Stages(quiet=quiet)
    with open_collection(collection, quiet=quiet) as opened:
        with stages.run("read", "reading the clicks"):
            clicks = clicks_to_learn(opened, log)
        learning = Learning(opened, held_out=held_out, alpha=alpha)
        with stage_by_stage(stages) as progress:
            report = learning.run(clicks, dry_run=dry_run, progress=progress)
    print_learning_report(report, is_dry_run=dry_run, as_json=as_json)


def clicks_to_learn(collection: Collection, log: Path | None) -> SearchLog | ClickLog:
    """Return the searches of the service, or the triads of a file, which know no positions."""
    from diptych.data.clicks import read_clicks

    if log is not None:
        return read_clicks(log)
    seen = _logged_searches(collection)
    if seen is None:
        raise InvalidInputError(
            f"nothing was logged for {collection.place}; search and click in `diptych serve` first, "
            "or pass a table of clicks with --log FILE"
        )
    if not seen.n_clicks:
        raise InvalidInputError(
            f"the log of {collection.place} has no click on a picture that was found by words; search and click in "
            "`diptych serve` first"
        )
    return seen


def _logged_searches(collection: Collection) -> SearchLog | None:
    from diptych.collection.learning import SearchLog
    from diptych.service.clicks.exports import has_searches, text_query_searches

    store = collection.store
    return SearchLog.from_searches(text_query_searches(store)) if has_searches(store) else None


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
        _print_comparison(record)
    console.print(f"\n{_decision(record, is_better=report.is_better, is_dry_run=is_dry_run)}")


def _positions(report: LearningReport) -> str:
    found = report.positions
    if found is None:
        return "The log tells no positions, so the clicks are taken as they are: items shown first seem better."
    shares = [
        f"{share:.2f} at {place}" for place, share in enumerate(found.propensities_, 1) if place in SHOWN_POSITIONS
    ]
    told = f"Looked at, compared with the first position: {', '.join(shares)}"
    told = f"{told}; {found.after_click_:.2f} of that below a click."
    if not found.is_assumed_:
        return told
    return f"{told} Items never changed their positions, so this is assumed (1/rank^{found.eta_:.2f}), not measured."


def _print_comparison(record: LearningRecord) -> None:
    console = results()
    rows = []
    for name, title in GATE_PARTS.items():
        found = record.gate.get(name)
        if found and found["n_searches"]:
            counts = (or_dash(found[each], ",") for each in ("n_queries", "n_searches", "n_people"))
            gains = (f"{found['old']:.3f}", f"{found['new']:.3f}", f"{found['relative']:+.1%}", f"{found['low']:+.1%}")
            rows.append((title, *counts, *gains, f"{found['p_value']:.2g}"))
    console.print("\nHow far up later searches of others find what they wanted (discounted gain)", style="bold")
    columns = numbers("queries", "searches", "people", record.before, "learned", "gain", "at worst", "p")
    print_table([whole("queries"), *columns], rows, console)
    consistency = record.gate.get("visual_consistency")
    if consistency:
        console.print(
            f"\nWhat is clicked looks alike and scores high, in {consistency['z']:.1f} standard deviations beyond luck "
            f"({consistency['n_queries']:,} queries). This comparison may use p < {record.alpha:.2g} of the error "
            "budget."
        )
    for title, queries in (("Gained most", record.gained), ("Lost most", record.lost)):
        examples = [(query, f"{old:.4f}", f"{new:.4f}") for query, old, new in queries]
        _print_examples(title, ("query", "before", "after"), examples)


def _print_examples(title: str, headings: tuple[str, str, str], examples: Sequence[tuple[str, str, str]]) -> None:
    if examples:
        results().print()
        print_table([folded(headings[0]), *numbers(*headings[1:])], examples, results(), title)


def _decision(record: LearningRecord, *, is_better: bool, is_dry_run: bool) -> str:
    told = f"{record.reason[0].upper()}{record.reason[1:]}"
    if record.p_value is not None and is_better:
        chance = f"p = {record.p_value:.4f}" if record.p_value >= 0.0001 else "p < 0.0001"
        told = f"{told} ({chance})"
    if is_dry_run:
        return f"{told}. Nothing was changed."
    if not is_better:
        return f"{told}. The present search model stays."
    return f"{told}. The collection uses {record.after!r} now; `diptych rollback` goes back to {record.before!r}."


def history(collection: CollectionArgument = None, as_json: JsonOption = False) -> None:
    """List the changes of the search model, the latest last.

    Comparisons that changed nothing are in it, too. Items have no history: `backup` and `restore` go back to an earlier
    state.
    """
    from diptych.collection.learning.retriever_training import rolls_back_to

    with open_collection(collection) as opened:
        records = opened.retriever_history()
        earlier = rolls_back_to(opened)
    if as_json:
        print_json({"steps": [record.to_json() for record in records], "rolls_back_to": earlier})
        return
    print_listing(
        records,
        [whole("when"), folded("what happened"), whole("how"), *numbers("before", "after", "p"), folded("why")],
        _history_cells,
        as_json=False,
        empty="The search model has not been changed yet.",
    )
    results().print(f"`diptych rollback` goes back to {earlier!r}." if earlier else "There is nothing to roll back to.")


def _history_cells(record: LearningRecord) -> list[str]:
    measured = ["" if value is None else f"{value:.3f}" for value in (record.old, record.new, record.p_value)]
    when = record.time[:16].replace("T", " ")
    return [when, ACTIONS[record.action].format(record), ORIGINS[record.origin], *measured, record.reason]


def rollback(
    collection: CollectionArgument = None,
    as_json: JsonOption = False,
) -> None:
    """Go back to the search model before the last change."""
    from diptych.collection.learning import rollback as roll_back

    with open_collection(collection) as opened:
        record = roll_back(opened)
    done = f"The collection uses {record.after!r} again; {record.before!r} stays stored."
    print_outcome(done, record.to_json(), as_json=as_json)


def rehearse(
    retriever: RequiredModelOption,
    collection: CollectionArgument = None,
    sample: Annotated[int, typer.Option(min=2, help="How many pictures to encode; fewer are all taken.")] = 500,
    n_queries: Annotated[
        int, typer.Option("--queries", min=1, help="How many captions, and how many logged queries, to ask at most.")
    ] = 1000,
    alpha: AlphaOption = 0.05,
    random_state: Annotated[int, typer.Option(help="Random seed of the draws.")] = 0,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Try another search model (retriever); change nothing.

    It answers the collection's own captions and logged queries beside the present one.
    """
    from diptych.cli.arguments import load_retriever
    from diptych.collection.learning import Rehearsal

    stages = Stages(quiet=quiet)
    with open_collection(collection, quiet=quiet) as opened:
        with stages.run("retriever", "preparing the search model"):
            candidate = load_retriever(retriever)
        rehearsal = Rehearsal(
            opened, candidate, sample=sample, n_queries=n_queries, alpha=alpha, random_state=random_state
        )
        logged = _logged_searches(opened)
        with stage_by_stage(stages) as progress:
            report = rehearsal.run(logged, progress=progress)
        change = f"diptych index {shown_path(opened.root)} --retriever {retriever}"
    if as_json:
        print_json(report.to_json())
    else:
        print_rehearsal(report, change)


def print_rehearsal(report: RehearsalReport, change: str) -> None:
    """Print the verdict, the measures, what was won and lost, and what it takes to ``change``, which is a command."""
    from diptych.collection.learning.rehearsal_report import reencoding_words, unjudged_words

    console = results()
    for sentence in report.verdict:
        console.print(f"{sentence}.", style="bold")
    console.print(f"Both ranked {report.sampled}.")
    for group in report.questions:
        _print_measures(report, group)
        headings = ("question", f"place with {report.old}", report.new)
        for title, questions in ((f"Won: {group.n_won:,}", group.won), (f"Lost: {group.n_lost:,}", group.lost)):
            examples = [(one.text, f"{one.old_rank:g}", f"{one.new_rank:g}") for one in questions[:MAX_EXAMPLES]]
            _print_examples(title, headings, examples)
    if report.overlap is not None:
        console.print(f"\n{unjudged_words(report, report.overlap)}")
    console.print()
    for note in report.notes:
        console.print(f"Note: {note}")
    console.print(f"{reencoding_words(report)} Nothing was changed; to change over: {change}")


def _print_measures(report: RehearsalReport, group: RehearsedQuestions) -> None:
    rows = [
        (one.measure, f"{one.old:.3f}", f"{one.new:.3f}", f"{one.low:+.3f} to {one.high:+.3f}", one.p_text)
        for one in group.differences
    ]
    rows.append(('"no good match"', f"{group.no_match_old:.1%}", f"{group.no_match_new:.1%}", "", ""))
    results().print(f"\n{group.counted}", style="bold")
    columns = [whole("measure"), *scores(report.old, report.new), *numbers("difference, 95 %", "p")]
    print_table(columns, rows, results())
