"""``diptych train``: a collection's own captions teach its retriever."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def train(
    method: Annotated[
        str | None, typer.Option("--method", "-m", help="One of `diptych methods`; by default the best linear one.")
    ] = None,
    param: Annotated[
        list[str] | None, typer.Option("--param", "-p", metavar="NAME=VALUE", help="A parameter of the method.")
    ] = None,
    captions: Annotated[
        str | None, typer.Option(help="Learn from this caption file instead of the collection's captions.")
    ] = None,
    held_out: Annotated[
        float, typer.Option(min=0.05, max=0.9, help="The share of pictures kept back for the comparison.")
    ] = 0.2,
    seed: Annotated[int, typer.Option(help="Of the draw of that share.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Take the new model even if it is not better.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Compare only; change nothing.")] = False,
    retriever_out: Annotated[
        Path | None, typer.Option("--retriever-out", help="Also save the new retriever in this folder.")
    ] = None,
    collection: Annotated[
        Path | None, typer.Option("--collection", "-c", help="The collection; by default the one here, or the last.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False,
) -> None:
    """Learn from captions or labels, compare with the present retriever on held-out pictures, and keep the better."""
    from diptych.cli.assignments import parse_assignments
    from diptych.cli.files import check_folder
    from diptych.cli.open_collection import open_collection
    from diptych.cli.stages import Stages
    from diptych.cli.training import ShownTraining, pairs_to_learn
    from diptych.cli.training_report import print_training_report

    stages = Stages(quiet=quiet)
    if retriever_out is not None:
        check_folder(retriever_out)
    with open_collection(collection, quiet=quiet) as opened:
        training = ShownTraining(opened, stages, method=method, parameters=parse_assignments(param or [], "--param"))
        learned = training.learn(pairs_to_learn(opened, captions, stages), held_out=held_out, seed=seed, force=force)
        is_taken = learned.comparison_.replaced and not dry_run
        if is_taken:
            training.install(learned)
        if learned.comparison_.replaced and retriever_out is not None:
            learned.save(retriever_out)
            stages.note(f"retriever: {retriever_out}")
    print_training_report(learned.comparison_, is_taken=is_taken, is_dry_run=dry_run, as_json=as_json)
