"""``diptych index``: a folder of pictures becomes a collection."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def index(
    folder: Annotated[Path, typer.Argument(help="The folder of pictures, searched with all folders below it.")],
    captions: Annotated[
        str | None,
        typer.Option(
            help="A caption file (CSV, JSON, JSONL, COCO, Karpathy, token), or sidecar: .txt beside pictures."
        ),
    ] = None,
    captions_format: Annotated[
        str, typer.Option(help="Its format, where auto finds out wrongly: csv, tsv, json, jsonl, coco, ...")
    ] = "auto",
    label_folders: Annotated[
        bool, typer.Option("--label-folders", help="Label each picture with the name of the folder it lies in.")
    ] = False,
    collection: Annotated[
        Path | None, typer.Option("--collection", "-c", help="Where to keep it; by default FOLDER/.diptych.")
    ] = None,
    retriever: Annotated[
        str | None, typer.Option(help="default, conse, or the folder of a saved retriever or a CLIP or SigLIP model.")
    ] = None,
    keep_missing: Annotated[
        bool, typer.Option("--keep-missing", help="Keep items whose file is no longer there.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="List every skipped file.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False,
) -> None:
    """Make the pictures of a folder searchable, or bring the collection up to date.

    Only what is new or changed is read; run it again whenever the folder has changed.
    """
    from diptych.cli.index_report import print_index_report
    from diptych.cli.indexing import IndexRequest, index_folder
    from diptych.cli.stages import Stages

    stages = Stages(quiet=quiet)
    request = IndexRequest(
        folder=folder,
        captions=captions,
        captions_format=captions_format,
        label_folders=label_folders,
        collection=collection,
        retriever=retriever,
        keep_missing=keep_missing,
    )
    outcome = index_folder(request, stages)
    print_index_report(outcome, stages, verbose=verbose, as_json=as_json)
    if outcome.status.pictures == 0:
        raise typer.Exit(1)
