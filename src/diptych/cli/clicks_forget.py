"""``diptych clicks forget``: the click log, emptied."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def forget(
    older_than: Annotated[
        int | None, typer.Option("--older-than", metavar="DAYS", min=0, help="Only searches before that many days.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    collection: Annotated[
        Path | None, typer.Option("--collection", "-c", help="The collection; by default the one here, or the last.")
    ] = None,
) -> None:
    """Forget what was asked, shown, clicked and voted; it leaves the file for good."""
    import time

    from diptych.cli.clicks_file import open_click_log
    from diptych.cli.terminal import results
    from diptych.errors import InvalidInputError

    with open_click_log(collection) as log:
        before = log.counts().searches
        if not yes:
            part = "all" if older_than is None else f"those older than {older_than} days"
            if not sys.stdin.isatty():
                raise InvalidInputError(f"of {before:,} logged searches {part} would be forgotten; say --yes to do it")
            typer.confirm(f"Forget {part} of {before:,} logged searches?", abort=True, err=True)
        log.forget(None if older_than is None else time.time() - 86_400 * older_than)
        left = log.counts().searches
    results().print(f"{before - left:,} searches forgotten, {left:,} left")
