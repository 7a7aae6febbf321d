"""``diptych learn``: what people clicked teaches the collection's retriever."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


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
    alpha: Annotated[float, typer.Option(min=0.0001, max=0.5, help="How small p must be to change anything.")] = 0.01,
    seed: Annotated[int, typer.Option(help="Of the draw of that share.")] = 0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Compare only; change nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False,
) -> None:
    """Learn from clicks, compare with the present retriever on held-out queries, and keep the better."""
    from diptych.cli.learn_progress import LearnProgress
    from diptych.cli.learn_report import print_learning_report
    from diptych.cli.learn_sources import clicks_to_learn
    from diptych.cli.open_collection import open_collection
    from diptych.cli.stages import Stages
    from diptych.collection.learning import Learning

    stages = Stages(quiet=quiet)
    with open_collection(collection, quiet=quiet) as opened:
        with stages.run("read", "reading the clicks"):
            clicks = clicks_to_learn(opened.folder, log)
        learning = Learning(opened, held_out=held_out, alpha=alpha, seed=seed)
        with LearnProgress(stages) as progress:
            report = learning.run(clicks, dry_run=dry_run, progress=progress)
    print_learning_report(report, is_dry_run=dry_run, as_json=as_json)
