"""``diptych duplicates``: pictures that are there twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.cli.terminal import print_json, results

if TYPE_CHECKING:
    from diptych.collection import Collection, DuplicateGroup


def duplicates(
    threshold: Annotated[
        float, typer.Option(min=-1, max=1, help="Least cosine of the features of nearly equal pictures.")
    ] = 0.97,
    only_exact: Annotated[
        bool, typer.Option("--only-exact", help="Only pictures that are equal byte for byte.")
    ] = False,
    collection: Annotated[
        Path | None, typer.Option("--collection", "-c", help="The collection; by default the one here, or the last.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a list.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No remarks on stderr.")] = False,
) -> None:
    """List pictures that show the same: copies, and nearly equal ones."""
    from dataclasses import asdict

    from diptych.cli.open_collection import open_collection

    with open_collection(collection, quiet=quiet) as opened:
        groups = opened.duplicates(None if only_exact else threshold)
        if as_json:
            print_json(json.dumps([asdict(group) for group in groups], indent=2, ensure_ascii=False))
            return
        _list(groups, opened)


def _list(groups: list[DuplicateGroup], collection: Collection) -> None:
    from diptych.cli.shown_path import printable, shown_path

    console = results()
    if not groups:
        console.print("no two pictures are the same")
        return
    for group in groups:
        console.print("copies:" if group.exact else f"nearly the same (cosine {group.similarity:.3f}):", style="bold")
        for item_id in group.ids:
            path = collection.path_of(collection[item_id])
            if path is not None:
                console.print(f"  {printable(shown_path(path))}", soft_wrap=True)
