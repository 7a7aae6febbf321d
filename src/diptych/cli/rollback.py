"""``diptych rollback``: the retriever from before the last learning."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def rollback(
    collection: Annotated[
        Path | None, typer.Argument(metavar="[COLLECTION]", help="By default the collection here, or the last.")
    ] = None,
) -> None:
    """Go back to the retriever that was in use before `diptych learn` promoted another one."""
    from diptych.cli.open_collection import open_collection
    from diptych.cli.terminal import results
    from diptych.collection.learning import rollback as roll_back

    with open_collection(collection) as opened:
        record = roll_back(opened)
    results().print(f"The collection uses {record.after!r} again; {record.before!r} stays stored.")
