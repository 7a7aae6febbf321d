"""``diptych clicks export``: the click log as a table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.cli.choices import ClickTable, ClickTableFormat

if TYPE_CHECKING:
    from diptych.service.clicks import ClickLog


def export(
    file: Annotated[
        Path, typer.Argument(metavar="OUT", help="The file to write; its ending says the format. -: to stdout.")
    ],
    what: Annotated[
        ClickTable,
        typer.Option(
            "--what",
            help="triads: query, item, number of clicks; events: every click with its position; "
            "impressions: everything shown, clicked or not, by position.",
        ),
    ] = ClickTable.TRIADS,
    format: Annotated[
        ClickTableFormat | None, typer.Option("--format", help="By default the ending of the file, or csv.")
    ] = None,
    collection: Annotated[
        Path | None, typer.Option("--collection", "-c", help="The collection; by default the one here, or the last.")
    ] = None,
) -> None:
    """Write what was clicked to a file, and print the file."""
    from diptych.cli.clicks_file import open_click_log
    from diptych.cli.files import check_writable_file, writing
    from diptych.errors import UnknownNameError

    is_stdout = str(file) == "-"
    name = format.value if format else "csv" if is_stdout else file.suffix.removeprefix(".").lower()
    if name not in list(ClickTableFormat):
        raise UnknownNameError("export format", name, [known.value for known in ClickTableFormat])
    with open_click_log(collection) as log:
        if is_stdout:
            log.export(sys.stdout.buffer, what.value, ClickTableFormat(name).value)
            return
        check_writable_file(file)
        with writing(file):
            _write_whole(log, file, what, ClickTableFormat(name))
    typer.echo(file)


def _write_whole(log: ClickLog, file: Path, what: ClickTable, format: ClickTableFormat) -> None:
    """Write beside the target and rename, so that a file of that name is always a whole one."""
    draft = file.with_name(f".{file.name}.part")
    try:
        with draft.open("wb") as stream:
            log.export(stream, what.value, format.value)
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)
