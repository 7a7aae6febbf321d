"""``diptych index``, ``read-text`` and ``regions``: a folder becomes a collection, and is looked at more closely."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from diptych.addresses import without_password
from diptych.cli.console.output import print_json, print_outcome, results, write_text
from diptych.cli.console.paths import open_collection, printable, shown_path
from diptych.cli.console.progress import Stages
from diptych.cli.options import (
    CollectionOption,
    DeviceOption,
    DurabilityOption,
    JsonOption,
    KeptFacts,
    ModelOption,
    Precision,
    QuietOption,
    SchedulerOption,
)
from diptych.data.picture_files import describe_unread, unread_kinds, unread_reason
from diptych.errors import counted

if TYPE_CHECKING:
    from diptych.cli.indexing import IndexOutcome
    from diptych.collection import AddReport, Collection, ReadingReport, TextReport

ReportT = TypeVar("ReportT", bound="ReadingReport")
_INTERRUPTED = 130
_SHOWN = 10

# A choice of ours for when the hint is worth a line; training itself tells whether it helps.
_WORTH_TRAINING = 200


def index(
    folder: Annotated[Path, typer.Argument(help="The folder of pictures, searched with all folders below it.")],
    captions: Annotated[
        str | None,
        typer.Option(
            help="A caption file (CSV, JSON, JSONL, COCO, Karpathy, token), or sidecar: .txt beside pictures."
        ),
    ] = None,
    captions_format: Annotated[
        str, typer.Option(help="Its format, if auto guesses wrongly: csv, tsv, json, jsonl, coco, ...")
    ] = "auto",
    packed: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="Fill FOLDER first, with the pictures and captions of a Hugging Face data set on disk, of Parquet "
            "files or of WebDataset shards.",
        ),
    ] = None,
    label_folders: Annotated[
        bool, typer.Option("--label-folders", help="Label each picture with the name of the folder it lies in.")
    ] = False,
    collection: Annotated[
        str | None,
        typer.Option(
            "--collection",
            "-c",
            metavar="PATH",
            help="Where to keep it: a folder, by default FOLDER/.diptych, or an address of PostgreSQL, "
            "postgresql://user@host/database?schema=name.",
        ),
    ] = None,
    retriever: ModelOption = None,
    keep_missing: Annotated[
        bool, typer.Option("--keep-missing", help="Keep items whose file is no longer there.")
    ] = False,
    facts: Annotated[
        KeptFacts | None,
        typer.Option(
            help="What to keep of what photographs say of date, camera and place; by default all, or what was chosen "
            "before. no-places keeps no coordinates."
        ),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Then follow the folder and bring in what changes, until Ctrl-C.")
    ] = False,
    reads_text: Annotated[
        bool, typer.Option("--read-text", help="Then read the words that stand in the pictures, too.")
    ] = False,
    with_regions: Annotated[
        bool, typer.Option("--regions", help="Then look at parts of the pictures, too, so that small things are found.")
    ] = False,
    precision: Annotated[
        Precision,
        typer.Option(
            help="The numbers that image networks compute with: auto takes int8 for a new collection of 500 pictures "
            "or more where the processor has instructions for it (VNNI, dot products)."
        ),
    ] = "auto",
    device: DeviceOption = "auto",
    scheduler: SchedulerOption = None,
    durability: DurabilityOption = "power",
    root: Annotated[
        Path | None,
        typer.Option(
            help="The folder of the pictures of a collection that was copied, moved or restored; files are opened only "
            "below it. By default FOLDER.",
            file_okay=False,
            exists=True,
        ),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="List every skipped file.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
    quiet: QuietOption = False,
) -> None:
    """Make the pictures of a folder searchable, or bring the collection up to date.

    Only what is new or changed is read; run it again whenever the folder has changed, or let it --watch.
    """
    from diptych.cli.indexing import IndexRequest, index_folder, unpack_into, watch_folder

    stages = Stages(quiet=quiet)
    if packed is not None:
        captions = unpack_into(folder, packed, captions)
    request = IndexRequest(
        folder=folder,
        captions=captions,
        captions_format=captions_format,
        label_folders=label_folders,
        collection=collection,
        retriever=retriever,
        keep_missing=keep_missing,
        facts=facts,
        waits=watch,
        scheduler=scheduler,
        precision=precision,
        root=root,
    )
    outcome = index_folder(request, stages)
    print_index_report(outcome, stages, verbose=verbose, as_json=as_json)
    if (reads_text or with_regions) and outcome.status.pictures:
        from diptych.collection import Collection

        with Collection.open(outcome.place, root=request.named_root(outcome.place)) as opened:
            if reads_text:
                stages.note(_read_texts(opened, stages)[1])
            if with_regions:
                stages.note(_read_regions(opened, stages)[1])
    if watch:
        show = partial(print_changes, stages=stages, verbose=verbose, as_json=as_json)
        watch_folder(request, outcome, stages, show)
    elif outcome.status.pictures == 0:
        raise typer.Exit(1)


def report_skipped(skipped: Mapping[str, str], listing: Path, stages: Stages, *, verbose: bool) -> None:
    """Say which files were skipped and why: the first ten or all, and all of them in the file ``listing``.

    Files of kinds that cannot be read are counted by kind, in one line.
    """
    if not skipped:
        listing.unlink(missing_ok=True)
        return
    lines = [_reason_line(path, reason) for path, reason in skipped.items()]
    write_text(listing, "\n".join(lines) + "\n")
    kinds = unread_kinds(skipped)
    if kinds:
        stages.note(describe_unread(kinds))
    if not verbose:
        lines = [_reason_line(path, reason) for path, reason in skipped.items() if not unread_reason(path)]
    if lines:
        stages.note(f"skipped {counted(len(lines), 'file')} that cannot be used:")
    for line in lines if verbose else lines[:_SHOWN]:
        stages.note(f"  {line}")
    if len(lines) > _SHOWN and not verbose:
        stages.note(f"  and {len(lines) - _SHOWN:,} more")
    stages.note(f"all of them are listed in {shown_path(listing)}")


def _reason_line(path: str, reason: str) -> str:
    # Some reasons begin with the path, which is said already.
    return f"{printable(shown_path(Path(path)))}: {printable(reason.removeprefix(path).lstrip(' :'))}"


def print_index_report(outcome: IndexOutcome, stages: Stages, *, verbose: bool, as_json: bool) -> None:
    """Print the counts, list what was skipped, and say what to do next."""
    status, report = outcome.status, outcome.report
    report_skipped(report.skipped, outcome.skipped_file, stages, verbose=verbose)
    if as_json:
        facts = {name: getattr(status, name) for name in ("pictures", "captions", "retriever")}
        print_json({"collection": without_password(outcome.place), **facts, **counts(report)})
        return
    console = results()
    if status.pictures == 0:
        console.print("nothing could be indexed", soft_wrap=True)
        return
    found = counted(status.pictures, "picture")
    if status.captions:
        found += f" and {counted(status.captions, 'caption')}"
    verb = "is" if status.pictures == 1 and not status.captions else "are"
    console.print(f"{found} {verb} searchable: {summarise(report)}.", soft_wrap=True)
    stages.note(f"collection: {shown_path(outcome.place)}")
    if report.described:
        stages.note(f"{counted(report.described, 'picture')} got what the file says of date, camera and place")
    if report.unclear:
        path, reason = next(iter(report.unclear.items()))
        more = f", and so for {len(report.unclear) - 1:,} more" if len(report.unclear) > 1 else ""
        stages.note(f"not all facts could be read: {_reason_line(path, reason)}{more}")
    if report.duplicates:
        stages.note(f"{len(report.duplicates):,} of them are copies of others: diptych duplicates")
    if status.captions >= _WORTH_TRAINING and report.changed:
        stages.note("the captions can make answers better: diptych train")
    stages.note('search them: diptych search "two dogs on a beach"')


def print_changes(report: AddReport, stages: Stages, *, verbose: bool, as_json: bool) -> None:
    """Print what became of a batch of changes, on one line."""
    for path, reason in islice(report.skipped.items(), None if verbose else _SHOWN):
        stages.note(_reason_line(path, reason))
    if as_json:
        print_json(counts(report), indent=None)
    else:
        results().print(summarise(replace(report, unchanged=0)), soft_wrap=True)


def summarise(report: AddReport) -> str:
    """Return what was done in a few words.

    >>> from diptych.collection import AddReport
    >>> summarise(AddReport(added=12, renamed=1, unchanged=1000))
    '12 added, 1 renamed, 1,000 unchanged'
    """
    return ", ".join(f"{count:,} {name}" for name, count in report.counts.items() if count) or "nothing to do"


def counts(report: AddReport) -> dict[str, object]:
    """Return what became of the pictures as JSON values."""
    return {**asdict(report), "unread_kinds": unread_kinds(report.skipped), "seconds": round(report.seconds, 3)}


def read_text(collection: CollectionOption = None, as_json: JsonOption = False, quiet: QuietOption = False) -> None:
    """Read the words that stand in the pictures (signs, screenshots, receipts), so that searches find them.

    Each picture is read once, in the background of everything else; stop it at any time, the same command goes on.
    """
    with open_collection(collection, quiet=quiet) as opened:
        report, done = _read_texts(opened, Stages(quiet=quiet))
    print_outcome(done, asdict(report), as_json=as_json)


def regions(
    collection: CollectionOption = None,
    retriever: Annotated[
        str | None, typer.Option(help="The search model that looks at them, by its name in the collection.")
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Delete the regions again.")] = False,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Look at thirteen parts of every picture as well, so that searches find small things and say where they are.

    It takes thirteen times as long as indexing, in the background of everything else; stop it at any time, the same
    command goes on.
    """
    with open_collection(collection, quiet=quiet) as opened:
        if remove:
            opened.remove_regions(retriever)
            results().print("regions are searched no more", soft_wrap=True)
            return
        report, done = _read_regions(opened, Stages(quiet=quiet), retriever)
    print_outcome(done, asdict(report), as_json=as_json)


def _read_texts(collection: Collection, stages: Stages) -> tuple[TextReport, str]:
    """Read the text that is unread, and return what was done, also in words."""
    report = _read("reading the text in pictures", collection.read_text, stages)
    return report, f"{counted(report.read, 'picture')} read, {report.with_text:,} of them have text{_rest(report)}"


def _read_regions(collection: Collection, stages: Stages, retriever: str | None = None) -> tuple[ReadingReport, str]:
    """Look at the regions of pictures that lack them, and return what was done, also in words."""
    report = _read("looking at parts of pictures", partial(collection.add_regions, retriever), stages)
    return report, f"parts of {counted(report.read, 'picture')} are searchable{_rest(report)}"


def _read(doing: str, read: Callable[..., ReportT], stages: Stages) -> ReportT:
    """Read with a bar that shows pace and remaining time; an interruption keeps what is done."""
    try:
        with stages.count("read", doing) as advance:
            report = read(progress=lambda step: advance(step.done, step.total))
    except KeyboardInterrupt:
        stages.note("stopped; what was read is kept and searchable, the same command goes on")
        raise typer.Exit(_INTERRUPTED) from None
    for path, reason in list(report.skipped.items())[:_SHOWN]:
        stages.note(f"  {printable(path)}: {printable(reason)}")
    return report


def _rest(report: ReadingReport) -> str:
    known = f"; {report.known:,} had been read before" if report.known else ""
    return known + (f"; {len(report.skipped):,} could not be read" if report.skipped else "")
