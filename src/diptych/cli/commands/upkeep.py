"""``diptych status``, ``backup``, ``restore`` and ``migrate``: how a collection is, kept safe and up to date."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.cli.console.output import facts_table, print_json, results
from diptych.cli.console.paths import find_collection, open_collection, printable, shown_path
from diptych.cli.console.progress import Stages
from diptych.cli.options import CollectionOption, JsonOption, QuietOption
from diptych.errors import InvalidInputError, counted

if TYPE_CHECKING:
    from diptych.collection import Status


def status(collection: CollectionOption = None, as_json: JsonOption = False) -> None:
    """Show what a collection holds, which retriever it uses, and what the last run could not read."""
    from dataclasses import asdict

    with open_collection(collection, quiet=True) as opened:
        state = opened.status()
    if as_json:
        print_json(asdict(state))
        return
    results().print(facts_table(_facts(state)))


def _facts(state: Status) -> dict[str, str]:
    facts = {
        "collection": printable(state.folder),
        "pictures from": printable(state.root),
        "pictures": f"{state.pictures:,}",
        "captions": f"{state.captions:,}",
        "retriever": f"{state.retriever} ({state.fingerprint[:12]})",
        "on disk": f"{_size(state.store_bytes)}, index {_size(state.index_bytes)}",
    }
    if state.point_bytes:
        form = f"codes of {8 * state.point_bytes:,} bits" if state.is_codes else f"{state.point_bytes // 4:,} numbers"
        facts["points"] = f"{form}, {_size(state.point_bytes)} each, {_size(state.memory_bytes)} in memory"
    if state.recall is not None:
        facts["search index"] = f"finds {100 * state.recall:.1f} % of the ten nearest"
    if state.storage_away_seconds is not None:
        facts["storage"] = f"not reached for {state.storage_away_seconds:.0f} s; what is shown may be older than that"
    if state.items > state.pictures:
        facts["texts alone"] = f"{state.items - state.pictures:,}"
    if state.stale:
        facts["unfinished"] = (
            f"the change to retriever {state.pending}: {state.pending_done:,} of {counted(state.pictures, 'picture')}; "
            f"diptych index {printable(state.root)} finishes it"
        )
    if state.unsearchable:
        facts["not searchable"] = f"{counted(state.unsearchable, 'picture')}, which could not be read"
    if state.failures:
        path, reason = next(iter(state.failures.items()))
        many = "1 file" if len(state.failures) == 1 else f"{len(state.failures):,} files, first"
        facts["last skipped"] = f"{many} {printable(path)}: {printable(reason)}"
    return facts


def _size(count: int) -> str:
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


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
    target: Annotated[
        Path, typer.Argument(help="The new folder of the collection, such as PICTURES/.diptych, or s3://BUCKET/NAME.")
    ],
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
