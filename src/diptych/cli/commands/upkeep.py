"""``diptych status``, ``verify``, ``repair``, ``backup``, ``restore``: how a collection is, kept safe."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.cli.console.output import facts_table, print_json, print_outcome, results
from diptych.cli.console.paths import find_collection, open_collection, place_of, printable, shown_path
from diptych.cli.console.progress import Stages
from diptych.cli.options import CollectionOption, JsonOption, QuietOption, folder_or_address
from diptych.errors import InvalidInputError, counted

if TYPE_CHECKING:
    from diptych.collection import CheckReport, Status


def status(collection: CollectionOption = None, as_json: JsonOption = False) -> None:
    """Show what a collection holds, and what could not be read."""
    with open_collection(collection, quiet=True) as opened:
        state = opened.status()
    if as_json:
        print_json(state)
        return
    results().print(facts_table(_facts(state)))


def _facts(state: Status) -> dict[str, str]:
    facts = {
        "collection": printable(state.folder),
        "pictures from": printable(state.root),
        "pictures": f"{state.pictures:,}",
        "captions": f"{state.captions:,}",
        "search model": f"{state.retriever} ({state.fingerprint[:12]})",
        "on disk": f"{_size(state.store_bytes)}, index {_size(state.index_bytes)}",
    }
    if state.point_bytes:
        form = f"codes of {8 * state.point_bytes:,} bits" if state.is_codes else f"{state.point_bytes // 2:,} numbers"
        facts["kept of each"] = f"{form}, {_size(state.point_bytes)}; {_size(state.memory_bytes)} in memory for all"
    if state.texts_read:
        facts["text in pictures"] = f"read in {state.texts_read:,}"
    if state.with_regions:
        facts["parts searched"] = f"of {counted(state.with_regions, 'picture')}"
    if state.recall is not None:
        facts["search index"] = f"finds {100 * state.recall:.1f} % of the ten nearest"
    if state.items > state.pictures:
        facts["texts alone"] = f"{state.items - state.pictures:,}"
    if state.stale:
        facts["unfinished"] = (
            f"the change to search model {state.pending}: {state.pending_done:,} of "
            f"{counted(state.pictures, 'picture')}; diptych index {printable(state.root)} finishes it"
        )
    if state.unsearchable:
        facts["not searchable"] = f"{counted(state.unsearchable, 'picture')}, which could not be read"
    if state.failures:
        path, reason = next(iter(state.failures.items()))
        many = "1 file" if len(state.failures) == 1 else f"{len(state.failures):,} files, first"
        # Some reasons begin with the path, which is said already.
        facts["last skipped"] = f"{many} {printable(path)}: {printable(reason.removeprefix(path).lstrip(' :'))}"
    if state.warnings:
        facts["warning"] = printable("; ".join(state.warnings))
    return facts


def verify(
    collection: CollectionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find damaged and missing data by checksums.

    The exit status is 1 if anything is wrong; `diptych repair` makes again what can be made again.
    """
    with open_collection(collection, quiet=True) as opened:
        _report(opened.verify(), opened.place, as_json=as_json)


def repair(
    collection: CollectionOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Make damaged data again where that is possible.

    What nothing uses is dropped. What searches compare, thumbnails and indexes are made again from pictures and
    captions. What cannot be made again is named, and the exit status is 1: restore it from a backup.
    """
    with open_collection(collection, quiet=quiet) as opened:
        _report(opened.repair(), opened.place, as_json=as_json)


def _report(report: CheckReport, name: str, *, as_json: bool) -> None:
    if as_json:
        print_json(report)
    else:
        for problem in (*report.problems, *report.warnings):
            results().print(printable(problem), markup=False, soft_wrap=True)
        if report.is_whole:
            results().print(f"{shown_path(place_of(name))} is whole", markup=False, soft_wrap=True)
    if not report.is_whole:
        raise typer.Exit(1)


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
        list[str],
        typer.Argument(
            metavar="[COLLECTION] TARGET",
            help="The collection, or the folder of pictures that holds it; and the new folder to write.",
        ),
    ],
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write a collection to a new folder, as it is at one moment.

    Others may search it and write to it meanwhile. Pictures are not copied: back them up as all your files. Neither
    are caches, which are made again when they are needed. The folder appears when it is whole; `diptych restore`
    makes a collection of it. Collections in PostgreSQL are backed up by its own programs (pg_dump).
    """
    from diptych.collection import backup_collection

    if len(places) > _MOST_PLACES:
        raise InvalidInputError(f"backup takes a collection and a target, got {len(places)} names")
    place = find_collection(places[0] if len(places) == _MOST_PLACES else None)
    stages = Stages(quiet=quiet)
    if place.reason:
        stages.note(f"collection: {shown_path(place.place)} ({place.reason})")
    with stages.run("backup", f"backing up {printable(shown_path(place.place))}"):
        report = backup_collection(place.place, places[-1])
    log = " and the click log" if report.has_click_log else ""
    print_outcome(
        f"{counted(report.items, 'item')}{log} in {shown_path(report.target)}, {report.bytes / 1e6:,.1f} MB; "
        "the pictures themselves are not in it",
        report,
        as_json=as_json,
    )


def restore(
    source: Annotated[Path, typer.Argument(help="A folder that `diptych backup` wrote.")],
    target: Annotated[
        Path, typer.Argument(metavar="PATH", help="The new folder of the collection, such as PICTURES/.diptych.")
    ],
    root: Annotated[
        Path | None,
        typer.Option(
            help="The folder of the pictures; files are opened only below it.",
            parser=folder_or_address,
            metavar="<dir>",
        ),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Make a collection of a backup, and check it."""
    from diptych.collection import restore_collection
    from diptych.collection.root import untrusted_root

    stages = Stages(quiet=quiet)
    with stages.run("restore", f"restoring {printable(shown_path(source))}"):
        report = restore_collection(source, target, root=root)
    for problem in report.problems:
        stages.note(problem)
    if report.pictures and not report.is_root_trusted:
        stages.note(str(untrusted_root(report.target)))
    print_outcome(
        f"{counted(report.pictures, 'picture')} and {counted(report.captions, 'caption')} in "
        f"{shown_path(report.target)}, with pictures from {printable(str(report.root))}",
        report,
        as_json=as_json,
    )
