"""``diptych migrate``: a collection of a former format is brought to the present one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from diptych.cli.console.output import results
from diptych.cli.console.paths import find_collection, shown_path


def migrate(
    collection: Annotated[
        Path | None, typer.Argument(help="The collection, or the folder of pictures that holds it.", show_default=False)
    ] = None,
) -> None:
    """Bring a collection that a former Diptych wrote to the present format; nothing is encoded again.

    What is there stays until everything is done, and an interrupted run is simply repeated. Former versions of Diptych
    refuse the collection afterwards.
    """
    from diptych.collection import migrate_collection

    report = migrate_collection(find_collection(collection).folder, write_wait=10.0)
    done = f"from format {report.before} to {report.after}" if report.has_changed else "in the present format already"
    results().print(f"{shown_path(report.folder)}: {done}", soft_wrap=True)
