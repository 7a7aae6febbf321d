"""From a folder of pictures to an up-to-date collection."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from diptych.cli.collection_place import Place, is_collection, new_collection, remember
from diptych.cli.files import check_folder
from diptych.cli.picture_records import PictureRecords, picture_records
from diptych.cli.retriever_choice import load_retriever
from diptych.cli.shown_path import shown_path
from diptych.cli.stages import Stages
from diptych.collection import AddReport, Collection, Record, Status
from diptych.data import picture_suffixes
from diptych.errors import InvalidInputError

_INTERRUPTED = 130


@dataclass(frozen=True)
class IndexOutcome:
    """What became of a folder: its collection afterwards, what was done, and what its captions said."""

    folder: Path
    status: Status
    report: AddReport
    pictures: PictureRecords


@dataclass(frozen=True)
class IndexRequest:
    """What ``diptych index`` was told."""

    folder: Path
    captions: str | None = None
    captions_format: str = "auto"
    label_folders: bool = False
    collection: Path | None = None
    retriever: str | None = None
    keep_missing: bool = False


def index_folder(request: IndexRequest, stages: Stages) -> IndexOutcome:
    """Bring the collection of a folder up to date, or make it."""
    found = picture_records(
        request.folder, request.captions, request.captions_format, label_folders=request.label_folders
    )
    _report_captions(found, stages)
    place = new_collection(request.folder, request.collection)
    if place.reason:
        stages.note(f"{place.reason}, so the collection is kept in {place.folder}")
    if not found.records:
        _refuse_empty(request.folder, place)
    with _opened(place, request, stages) as collection:
        report = add_pictures(collection, found.records, stages)
        report.skipped = {**found.unreadable, **report.skipped}
        if not request.keep_missing:
            report.removed += _remove_missing(collection, request.folder)
        remember(collection.folder)
        return IndexOutcome(collection.folder, collection.status(), report, found)


def _refuse_empty(folder: Path, place: Place) -> None:
    known = ", ".join(sorted(suffix.removeprefix(".") for suffix in picture_suffixes()))
    if is_collection(place.folder):
        raise InvalidInputError(
            f"there is no picture in {folder} any more, perhaps because a disk is not there; "
            f"if they are really gone, delete {shown_path(place.folder)}"
        )
    raise InvalidInputError(f"there is no picture in {folder}; pictures are files that end in {known}")


def _opened(place: Place, request: IndexRequest, stages: Stages) -> Collection:
    if not is_collection(place.folder):
        with stages.run("retriever", "preparing the retriever"):
            retriever = load_retriever(request.retriever or "default")
        check_folder(place.folder)
        return Collection.create(place.folder, retriever, root=request.folder.absolute())
    collection = Collection.open(place.folder)
    if request.retriever is not None:
        with stages.run("retriever", "preparing the retriever"):
            retriever = load_retriever(request.retriever)
        if retriever.fingerprint == collection.status().fingerprint:
            # The same points; what may have changed is the calibration.
            collection.set_retriever(retriever)
        else:
            with stages.count("reencode", f"changing to the retriever {retriever.name}") as advance:
                collection.set_retriever(retriever, progress=lambda step: advance(step.done, step.total))
    elif collection.status().stale:
        with stages.count("reencode", "finishing the change of retriever") as advance:
            collection.reencode(progress=lambda step: advance(step.done, step.total))
    return collection


def add_pictures(collection: Collection, records: Sequence[Record], stages: Stages) -> AddReport:
    """Add records with a bar that shows pace and remaining time; an interruption keeps what is done and says so."""
    many = f"{len(records):,} {'picture' if len(records) == 1 else 'pictures'}"
    try:
        with stages.count("index", f"indexing {many}") as advance:
            return collection.add(records, progress=lambda step: advance(step.done, step.total))
    except KeyboardInterrupt:
        remember(collection.folder)
        kept = "1 picture is" if len(collection) == 1 else f"{len(collection):,} pictures are"
        stages.note(f"stopped; {kept} indexed and searchable, the same command goes on")
        raise typer.Exit(_INTERRUPTED) from None


def _remove_missing(collection: Collection, folder: Path) -> list[str]:
    base = folder.absolute()
    missing = [
        item
        for item in collection
        if (path := collection.path_of(item)) is not None and path.is_relative_to(base) and _is_gone(path)
    ]
    if missing:
        collection.remove([item.id for item in missing])
    return [str(item.path) for item in missing]


def _is_gone(path: Path) -> bool:
    """Say whether a file does not exist; one that merely cannot be reached may come back."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def _report_captions(found: PictureRecords, stages: Stages) -> None:
    if found.captioned is None:
        return
    stages.note(f"captions: {found.captioned.describe()}")
    for note in found.captioned.notes:
        stages.note(f"captions: {note}")
    for kind, names in (("not found", found.captioned.missing), ("not unique", found.captioned.ambiguous)):
        if names:
            shown = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
            stages.note(f"captions: {kind}: {shown}")
