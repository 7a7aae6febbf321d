"""``diptych train``: a collection's own captions teach its retriever."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.cli.console.output import check_folder, numbers, print_json, print_table, results, scores, whole
from diptych.cli.console.paths import open_collection
from diptych.cli.console.progress import Stages
from diptych.cli.options import (
    CollectionOption,
    DeviceOption,
    DryRunOption,
    JsonOption,
    ParameterOption,
    QuietOption,
    SchedulerOption,
    complete_method,
)
from diptych.errors import InvalidInputError

if TYPE_CHECKING:
    from diptych.collection import Collection
    from diptych.collection.learning import TrainingReport
    from diptych.data import Pairs
    from diptych.retriever import Comparison


def train(
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            "-m",
            autocompletion=complete_method,
            help="One of `diptych methods`; by default the present model is fitted.",
        ),
    ] = None,
    param: ParameterOption = None,
    captions: Annotated[
        str | None, typer.Option(help="Learn from this caption file instead of the collection's captions.")
    ] = None,
    held_out: Annotated[
        float, typer.Option(min=0.05, max=0.5, help="The share of pictures kept back at a time.")
    ] = 0.2,
    seed: Annotated[int, typer.Option(help="Random seed of that draw.")] = 0,
    anyway: Annotated[
        bool,
        typer.Option("--anyway", help="Take the new model even if it does not pass; rollback takes it back."),
    ] = False,
    dry_run: DryRunOption = False,
    why: Annotated[bool, typer.Option("--why", help="Say what was learned from.")] = False,
    retriever_out: Annotated[
        Path | None, typer.Option("--retriever-out", help="Also save the new search model (retriever) in this folder.")
    ] = None,
    scheduler: SchedulerOption = None,
    device: DeviceOption = "auto",
    collection: CollectionOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Learn from captions or labels, and keep what is better.

    It has to be better by more than luck. Pictures that are kept back judge the new search model beside the present
    one; other photographs and queries for nothing tell whether it still knows the rest. Pictures without captions and
    logged queries are learned from as well. Where the captions are too few to tell, it names twelve pictures to
    describe next. `diptych rollback` goes back.
    """
    from diptych.cli.arguments import parse_assignments
    from diptych.collection.learning import Training, unpaired_items
    from diptych.service.clicks.exports import logged_queries

    parameters = parse_assignments(param or [], "--param")
    if method is None and parameters:
        raise InvalidInputError("--param belongs to a method; name it with --method")
    if retriever_out is not None:
        check_folder(retriever_out)
    stages = Stages(quiet=quiet)
    with open_collection(collection, quiet=quiet, scheduler=scheduler) as opened:
        training = Training(opened, method=method, parameters=parameters)
        pairs = pairs_to_learn(opened, captions, stages)
        with stages.run("learn", f"learning from {pairs.n_images:,} pictures and {pairs.n_texts:,} texts"):
            report = training.run(
                pairs,
                unpaired=unpaired_items(opened, pairs, logged_queries(opened.store)),
                held_out=held_out,
                seed=seed,
                force=anyway,
                dry_run=dry_run,
                epochs=lambda record: stages.note(str(record)),
            )
        if report.retriever is not None and retriever_out is not None:
            report.retriever.save(retriever_out)
            stages.note(f"retriever: {retriever_out}")
    print_training_report(report, is_dry_run=dry_run, as_json=as_json, why=why)


def pairs_to_learn(collection: Collection, captions: str | None, stages: Stages) -> Pairs:
    """Return the collection's pictures with their captions, those of a caption file, or their labels as words."""
    from diptych.collection.learning import training_pairs
    from diptych.data import read_captions

    if captions is None:
        return training_pairs(collection, stages.note)
    source = collection.root if captions == "sidecar" else Path(captions).expanduser()
    described = read_captions(source, collection.root)
    stages.note(f"captions: {described.describe()}")
    return described.pairs()


def print_training_report(report: TrainingReport, *, is_dry_run: bool, as_json: bool, why: bool = False) -> None:
    """Print what both search models do with held-out pictures and with the rest, and what was decided."""
    found = report.comparison
    if as_json:
        print_json({**report.record.gate, "reason": report.record.reason, "taken": report.is_taken})
        return
    console = results()
    console.print(f"{found.n_held_out:,} held-out pictures, none of which was learned from", style="bold")
    columns = [whole("measure"), *scores(found.baseline or "before", "trained"), *numbers("what is asked for")]
    print_table(columns, _gate_rows(found), console)
    if found.low is not None and found.high is not None:
        console.print(f"Difference of MAP, 95 %: {found.low:+.3f} to {found.high:+.3f}; p = {_p(found.p_value)}.")
    if why:
        console.print(f"Learned from {found.learned_from}.", soft_wrap=True)
    console.print(f"\n{_decision(report, is_dry_run=is_dry_run)}", soft_wrap=True)


def _gate_rows(found: Comparison) -> list[tuple[str, str, str, str]]:
    """Return what was measured: a name, the value before, the new one, and what the gate asks for."""
    rows = [
        ("MAP, both directions", _value(found.old), _value(found.new), f"better, p < {found.alpha:g}"),
        ("  by chance", "", _value(found.chance), ""),
    ]
    if found.rest_low is not None:
        rest = f"{found.n_rest} other photographs, MAP"
        rows.append((rest, _value(found.rest_old), _value(found.rest_new), f"-{found.margin:g} at worst, 95 % sure"))
    if found.answered_old is not None and found.refused_old is not None:
        absent = f"{found.n_absent} queries for nothing, refused"
        rows.append((absent, f"{found.refused_old:.0%}", f"{found.refused_new:.0%}", "no fewer"))
        own = "own captions and words, answered"
        rows.append((own, f"{found.answered_old:.0%}", f"{found.answered_new:.0%}", f"-{found.margin:.0%} at worst"))
    return rows


def _value(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _p(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}" if value >= 0.001 else "0.001 or less"


def _decision(report: TrainingReport, *, is_dry_run: bool) -> str:
    record, found = report.record, report.comparison
    told = f"{record.reason[0].upper()}{record.reason[1:]}."
    help_ = f" {found.advice[0].upper()}{found.advice[1:]}." if found.advice else ""
    if is_dry_run:
        return f"{told} Nothing was changed.{help_}"
    if report.is_taken:
        forced = " It was taken anyway, as you asked." if found.forced else ""
        use = f"The collection uses {record.after!r} now; `diptych rollback` goes back to {record.before!r}."
        return f"{told}{forced} {use}"
    return f"{told} The present search model stays.{help_} --anyway takes the new one in spite of it."
