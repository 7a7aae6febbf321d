"""``diptych remove``: items leave a collection, their files stay."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from diptych.collection import Collection, Item


def remove(
    items: Annotated[
        list[str] | None, typer.Argument(metavar="[PATH|ID]...", help="Pictures, folders of pictures, or ids.")
    ] = None,
    filter: Annotated[str | None, typer.Option("--filter", help="Everything that meets it: 'label:blurred'.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    collection: Annotated[
        Path | None, typer.Option("--collection", "-c", help="The collection; by default the one here, or the last.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No remarks on stderr.")] = False,
) -> None:
    """Remove items from a collection; no file is deleted, and the next `index` of its folder adds it again."""
    from diptych.cli.open_collection import open_collection
    from diptych.cli.terminal import results
    from diptych.errors import InvalidInputError

    if (not items) == (filter is None):
        raise InvalidInputError("say what to remove: paths or ids, or --filter, not both")
    with open_collection(collection, quiet=quiet) as opened:
        chosen = opened.items(filter) if items is None or filter is not None else _named(opened, items)
        if not chosen:
            results().print("nothing to remove")
            return
        _confirm(opened, chosen, yes=yes)
        opened.remove([item.id for item in chosen])
        many = f"{len(chosen):,} {'item' if len(chosen) == 1 else 'items'}"
        results().print(f"{many} removed, {len(opened):,} left; the files stay where they are", soft_wrap=True)


def _named(collection: Collection, names: list[str]) -> list[Item]:
    chosen: dict[str, Item] = {}
    for name in names:
        folder = Path(name).absolute()
        if name not in collection and folder.is_dir():
            for item in collection:
                path = collection.path_of(item)
                if path is not None and path.is_relative_to(folder):
                    chosen[item.id] = item
        else:
            item = collection[name.removeprefix("item:")]
            chosen[item.id] = item
    return list(chosen.values())


def _confirm(collection: Collection, items: list[Item], *, yes: bool) -> None:
    from diptych.errors import InvalidInputError

    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidInputError(f"{len(items):,} of {len(collection):,} items would be removed; say --yes to do it")
    names = ", ".join(item.path or item.id for item in items[:3]) + (", …" if len(items) > 3 else "")
    typer.confirm(f"Remove {len(items):,} of {len(collection):,} items ({names})?", abort=True, err=True)
