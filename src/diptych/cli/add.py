"""``diptych add``: a few more pictures, or words about them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def add(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Picture files and folders; none: the captions are a text of their own.")
    ] = None,
    caption: Annotated[list[str] | None, typer.Option(help="Describes the pictures; may be repeated.")] = None,
    label: Annotated[list[str] | None, typer.Option(help="A label of the pictures; may be repeated.")] = None,
    meta: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Anything else to filter by; may be repeated.")
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Forget earlier captions, labels and metadata of these pictures.")
    ] = False,
    collection: Annotated[
        Path | None, typer.Option("--collection", "-c", help="The collection; by default the one here, or the last.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False,
) -> None:
    """Add pictures to a collection, or captions, labels and metadata to pictures that are in it."""
    from diptych.cli.assignments import parse_assignments
    from diptych.cli.described_records import described_records
    from diptych.cli.index_report import in_words
    from diptych.cli.open_collection import open_collection
    from diptych.cli.skipped_files import report_skipped
    from diptych.cli.stages import Stages
    from diptych.cli.terminal import results

    stages = Stages(quiet=quiet)
    metadata = parse_assignments(meta or [], "--meta")
    with open_collection(collection, quiet=quiet) as opened:
        records = described_records(
            opened, paths or [], captions=caption or [], labels=label or [], metadata=metadata, replace=replace
        )
        with stages.count("add", f"adding {len(records):,} {'item' if len(records) == 1 else 'items'}") as advance:
            report = opened.add(records, progress=lambda step: advance(step.done, step.total))
        report_skipped(report.skipped, opened.folder / "skipped.txt", stages, verbose=False)
        results().print(f"{in_words(report)}; {len(opened):,} items in {opened.folder}", soft_wrap=True)
    if not report.changed and not report.unchanged:
        raise typer.Exit(1)
