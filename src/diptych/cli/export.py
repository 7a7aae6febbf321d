"""``diptych export``: a collection as a file for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from diptych.cli.choices import ExportFormat


def export(
    file: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write; its ending says the format.")],
    format: Annotated[
        ExportFormat | None,
        typer.Option("--format", help="csv, jsonl, parquet: the items; npz, safetensors: the points of the space."),
    ] = None,
    collection: Annotated[
        Path | None, typer.Option("--collection", "-c", help="The collection; by default the one here, or the last.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No remarks on stderr.")] = False,
) -> None:
    """Write what a collection knows to a file, and print the file."""
    from diptych.cli.files import check_writable_file, writing
    from diptych.cli.open_collection import open_collection
    from diptych.errors import InvalidInputError

    if not file.parent.is_dir():
        raise InvalidInputError(f"the folder {file.parent} does not exist; make it first, or choose another place")
    check_writable_file(file)
    with open_collection(collection, quiet=quiet) as opened, writing(file):
        opened.export(file, None if format is None else format.value)
    typer.echo(file)
