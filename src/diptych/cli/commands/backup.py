"""``diptych backup`` and ``diptych restore``: a collection of one moment in another folder, and the way back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from diptych.cli.console.output import results
from diptych.cli.console.paths import find_collection, printable, shown_path
from diptych.cli.console.progress import Stages
from diptych.cli.options import QuietOption
from diptych.errors import InvalidInputError, counted

_MOST_PLACES = 2


def backup(
    places: Annotated[
        list[Path],
        typer.Argument(
            metavar="[COLLECTION] TARGET",
            help="The collection, or the folder of pictures that holds it; and the new folder to write.",
        ),
    ],
    quiet: QuietOption = False,
) -> None:
    """Write a collection, as it is at one moment, to a new folder; others may search it and write to it meanwhile.

    Pictures are not copied: back them up as all your files. Neither are search files, which are made again when they
    are needed. The folder appears when it is whole; `diptych restore` makes a collection of it.
    """
    from diptych.collection import backup_collection

    if len(places) > _MOST_PLACES:
        raise InvalidInputError(f"backup takes a collection and a target, got {len(places)} names")
    place = find_collection(places[0] if len(places) == _MOST_PLACES else None)
    stages = Stages(quiet=quiet)
    if place.reason:
        stages.note(f"collection: {shown_path(place.folder)} ({place.reason})")
    with stages.count("backup", f"backing up {printable(shown_path(place.folder))}") as advance:
        report = backup_collection(place.folder, places[-1], progress=lambda step: advance(step.done, step.total))
    log = " and the click log" if report.has_click_log else ""
    results().print(
        f"{counted(report.items, 'item')}{log} in {shown_path(report.target)}, {report.bytes / 1e6:,.1f} MB; "
        "the pictures themselves are not in it",
        soft_wrap=True,
    )


def restore(
    source: Annotated[Path, typer.Argument(help="A folder that `diptych backup` wrote.")],
    target: Annotated[Path, typer.Argument(help="The new folder of the collection, such as PICTURES/.diptych.")],
    root: Annotated[
        Path | None,
        typer.Option(help="The folder of the pictures, if they have moved.", file_okay=False, exists=True),
    ] = None,
    quiet: QuietOption = False,
) -> None:
    """Make a collection of a backup, check every file of it, and say what it holds."""
    from diptych.collection import restore_collection

    stages = Stages(quiet=quiet)
    with stages.count("restore", f"restoring {printable(shown_path(source))}") as advance:
        report = restore_collection(source, target, root=root, progress=lambda step: advance(step.done, step.total))
    for problem in report.problems:
        stages.note(problem)
    if not report.root.is_dir():
        stages.note(f"the pictures are not in {printable(str(report.root))}; name their folder with --root")
    results().print(
        f"{counted(report.pictures, 'picture')} and {counted(report.captions, 'caption')} in "
        f"{shown_path(report.target)}, with pictures from {printable(str(report.root))}",
        soft_wrap=True,
    )
