"""From a folder of pictures and a caption file to an up-to-date collection."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

import typer

from diptych.cli.arguments import load_retriever
from diptych.cli.console.output import check_folder
from diptych.cli.console.paths import CollectionLocation, is_collection, new_collection, remember, shown_path
from diptych.cli.console.progress import Stages
from diptych.collection import AddReport, Collection, Record, Status
from diptych.collection.indexing.add_report import AddProgress
from diptych.collection.indexing.file_facts import FactsChoice
from diptych.collection.state import recorded_root
from diptych.data import (
    CaptionedPicture,
    CaptionedPictures,
    find_pictures,
    picture_suffixes,
    read_captions,
    unpack_pictures,
)
from diptych.data.packed_pictures import CAPTIONS_FILE
from diptych.data.picture_files import describe_unread, unread_kinds
from diptych.data.remote_files import full_path, is_remote
from diptych.errors import CollectionBusyError, InvalidInputError, counted

if TYPE_CHECKING:
    from diptych.retriever import Retriever

INTERRUPTED = 130
WRITE_WAIT_S = 10.0
SKIPPED_FILE = "skipped.txt"


def unpack_into(folder: Path, packed: Path, captions: str | None) -> str:
    """Write the pictures that come packed with their captions into ``folder``, and return the file of captions."""
    if captions is not None:
        raise InvalidInputError("--from brings its own captions; leave out --captions")
    if is_remote(folder):
        raise InvalidInputError(f"--from writes pictures, and {folder} is only read; name a folder of this machine")
    unpack_pictures(packed.expanduser(), folder)
    return str(folder / CAPTIONS_FILE)


class IndexOutcome(NamedTuple):
    """What became of a folder: where its collection is, its state afterwards, and what was done."""

    place: Path | str
    skipped_file: Path  # where the skipped files are listed, if any
    status: Status
    report: AddReport


@dataclass(frozen=True)
class IndexRequest:
    """What ``diptych index`` was told; ``waits`` for another process that writes to the collection."""

    folder: Path
    captions: str | None = None
    label_folders: bool = False
    collection: Path | str | None = None
    retriever: str | None = None
    keep_missing: bool = False
    facts: str | None = None
    waits: bool = False
    scheduler: str | None = None
    precision: str = "auto"
    root: Path | None = None

    def __post_init__(self) -> None:
        if is_remote(self.folder):
            object.__setattr__(self, "folder", full_path(self.folder))
            if self.waits:
                raise InvalidInputError(f"{self.folder} tells of no changes; leave --watch out, index it by a timer")
            if self.captions == "sidecar":
                raise InvalidInputError(f"captions beside pictures of {self.folder} are not read; name a caption file")

    def named_root(self, collection: Path | str) -> Path | None:
        """Return the folder of pictures that the command names for a collection: ``root``, or the recorded one."""
        folder = full_path(self.folder)
        if self.root is None and recorded_root(collection).folder == folder:
            return folder
        return self.root

    def read_captions(self, pictures: Sequence[Path] | None = None) -> CaptionedPictures:
        """Read the captions of the folder; of sidecars, only those beside ``pictures`` if these are given."""
        folder, captions = self.folder, self.captions or ""
        if captions == "sidecar" and not Path(captions).exists():
            return read_captions(folder, folder, format="sidecar", pictures=pictures)
        return read_captions(Path(captions).expanduser(), folder)

    def records(
        self,
        pictures: Iterable[Path],
        known: Mapping[Path, CaptionedPicture],
        pass_over: Callable[[Path, str], None],
    ) -> list[Record]:
        """Return what is to be indexed; what is None leaves what the collection already knows."""
        records = []
        for path in pictures:
            about = known.get(path) or CaptionedPicture(path)
            labels = list(about.labels)
            if self.label_folders and path.parent != self.folder and path.parent.name not in labels:
                labels.append(path.parent.name)
            try:
                records.append(Record(path.absolute(), about.captions or None, labels or None, about.metadata or None))
            except InvalidInputError as reason:
                # One bad line of a caption file must not cost the others.
                pass_over(path, str(reason))
        return records


def index_folder(request: IndexRequest, stages: Stages) -> IndexOutcome:
    """Bring the collection of a folder up to date, or make it."""
    unreadable: dict[str, str] = {}

    def pass_over(path: Path, reason: str) -> None:
        unreadable[str(path)] = reason

    place = new_collection(request.folder, request.collection)
    pictures = list(find_pictures(request.folder, on_unreadable=pass_over))
    records = request.records(pictures, _captions(request, stages), pass_over)
    if place.reason:
        stages.note(f"{place.reason}, so the collection is kept in {place.place}")
    if not records:
        _refuse_empty(request.folder, place, unread_kinds(unreadable))
    while True:
        try:
            return _bring_up_to_date(place, request, records, unreadable, stages)
        except CollectionBusyError:
            if not request.waits:
                raise
            stages.note(f"another process is writing to {shown_path(place.place)}; waiting for it")


def _captions(request: IndexRequest, stages: Stages) -> Mapping[Path, CaptionedPicture]:
    """Return the captions of the folder, and say what was found and what could not be used."""
    if request.captions is None:
        return {}
    found = request.read_captions()
    if not found:
        example = f", {found.missing[0]} for example" if found.missing else ""
        raise InvalidInputError(
            f"{request.captions} describes no picture of {request.folder}{example}; name the folder that its file "
            "names start from"
        )
    for note in (found.describe(), *found.notes):
        stages.note(f"captions: {note}")
    for kind, names in (("not found", found.missing), ("not unique", found.ambiguous)):
        if names:
            stages.note(f"captions: {kind}: {', '.join(names[:3])}{', …' if len(names) > 3 else ''}")
    return found


def _bring_up_to_date(
    place: CollectionLocation,
    request: IndexRequest,
    records: Sequence[Record],
    unreadable: Mapping[str, str],
    stages: Stages,
) -> IndexOutcome:
    with _opened(place, request, stages, records) as collection:
        if request.facts is not None:
            collection.keep_facts(cast(FactsChoice, request.facts))
        report = add_pictures(collection, records, stages, elsewhere=request.scheduler is not None)
        report.skipped = {**unreadable, **report.skipped}
        if not request.keep_missing:
            report.removed += collection.remove_missing(request.folder)
        if not (report.added or report.updated):
            # Nothing was encoded, so nobody has seen yet whether its points are still made: loading it says.
            _ = collection.retriever
        remember(place.place)
        return IndexOutcome(place.place, collection.folder / SKIPPED_FILE, collection.status(), report)


def _refuse_empty(folder: Path, place: CollectionLocation, unread: dict[str, int]) -> None:
    known = ", ".join(sorted(suffix.removeprefix(".") for suffix in picture_suffixes()))
    if unread:
        raise InvalidInputError(f"there is no picture in {folder} that can be read; {describe_unread(unread)}")
    if is_collection(place.place):
        raise InvalidInputError(
            f"there is no picture in {folder} any more, perhaps because a disk is not there; "
            f"if they are really gone, delete {shown_path(place.place)}"
        )
    raise InvalidInputError(f"there is no picture in {folder}; pictures are files that end in {known}")


def _opened(place: CollectionLocation, request: IndexRequest, stages: Stages, records: Sequence[Record]) -> Collection:
    if not is_collection(place.place):
        retriever = _retriever(request, records, stages)
        if isinstance(place.place, Path):
            check_folder(place.place)
        pictures = request.folder.absolute() if request.root is None else request.root
        return Collection.create(place.place, retriever, root=pictures, scheduler=request.scheduler)
    write_wait, root = WRITE_WAIT_S if request.waits else None, request.named_root(place.place)
    collection = Collection.open(place.place, write_wait=write_wait, scheduler=request.scheduler, root=root)
    status = collection.status()
    if request.retriever is not None:
        retriever = _retriever(request, records, stages, stored=status.fingerprint)
        if retriever.fingerprint == status.fingerprint:
            # The same points; what may have changed is the calibration.
            collection.set_retriever(retriever)
        else:
            with stages.run("reencode", f"changing to the search model {retriever.name}") as advance:
                collection.set_retriever(retriever, progress=lambda step: advance(step.done, step.total))
        return collection
    if request.precision != "auto":
        from diptych.retriever.precision import check_precision

        check_precision(collection.retriever, request.precision)
    if status.stale:
        with stages.run("reencode", "finishing the change of search model") as advance:
            collection.reencode(progress=lambda step: advance(step.done, step.total))
    return collection


def _retriever(
    request: IndexRequest, records: Sequence[Record], stages: Stages, stored: str | None = None
) -> Retriever:
    # A collection that is only brought up to date needs no encoder before there is something to encode.
    from diptych.retriever.precision import in_precision

    with stages.run("retriever", "preparing the search model"):
        # Other machines of a cluster may lack the instructions for eight bits.
        n_encoded_here = 0 if request.scheduler else len(records)
        return in_precision(load_retriever(request.retriever or "default"), request.precision, n_encoded_here, stored)


def add_pictures(
    collection: Collection, records: Sequence[Record], stages: Stages, *, elsewhere: bool = False
) -> AddReport:
    """Add records with a bar that shows pace and remaining time; an interruption keeps what is done and says so.

    What encodes them is told first, unless other machines do.
    """
    from diptych.retriever.precision import describe_encoding

    try:
        with stages.run("index", f"indexing {counted(len(records), 'picture')}") as advance:

            def show(step: AddProgress) -> None:
                if not step.slowest and step.done < step.total and not elsewhere:
                    for line in describe_encoding(collection.retriever):
                        stages.note(line)
                advance(step.done, step.total, f", mostly {step.slowest}" if step.slowest else "")

            return collection.add(records, progress=show)
    except KeyboardInterrupt:
        remember(collection.place)
        stages.note(f"stopped; {searchable(collection)} indexed and searchable, the same command goes on")
        raise typer.Exit(INTERRUPTED) from None


def searchable(collection: Collection) -> str:
    """Say how many pictures are kept."""
    return "1 picture is" if len(collection) == 1 else f"{len(collection):,} pictures are"
