"""``diptych index``: a folder becomes a collection."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.addresses import without_password
from diptych.cli.console.output import print_json, results, write_text
from diptych.cli.console.paths import printable, shown_path
from diptych.cli.console.progress import Stages
from diptych.cli.options import (
    DeviceOption,
    JsonOption,
    KeptFacts,
    ModelOption,
    Precision,
    QuietOption,
    SchedulerOption,
    folder_or_address,
)
from diptych.data.picture_files import describe_unread, unread_kinds, unread_reason
from diptych.errors import InvalidInputError, counted

if TYPE_CHECKING:
    from diptych.cli.indexing import IndexOutcome
    from diptych.collection import AddReport, ReadingReport

INTERRUPTED = 130
MAX_SHOWN = 10
CAPTIONS_WORTH_TRAINING = 200  # Our choice for when the hint is worth a line; training itself tells if it helps.


def index(
    folder: Annotated[
        Path,
        typer.Argument(
            help="The folder of pictures, searched with all folders below it, or an address such as s3://bucket/photos."
        ),
    ],
    captions: Annotated[
        str | None,
        typer.Option(
            help="A caption file (CSV, JSON, JSONL, COCO, Karpathy, token), or sidecar: .txt beside pictures."
        ),
    ] = None,
    packed: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="Fill FOLDER first, with the pictures and captions of a Hugging Face data set on disk, of Parquet "
            "files or of WebDataset shards.",
        ),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN",
            help="Leave out what a pattern, as in .gitignore, names; FOLDER/.diptychignore keeps it for later runs. "
            "Repeatable.",
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
    read_text: Annotated[
        bool,
        typer.Option(
            "--read-text", help="Then read the words that stand in the pictures: signs, screenshots, receipts."
        ),
    ] = False,
    regions: Annotated[
        bool | None,
        typer.Option(
            "--regions/--no-regions",
            help="Then look at thirteen parts of each picture, so that small things are found, which takes thirteen "
            "times as long; or delete these parts.",
        ),
    ] = None,
    precision: Annotated[
        Precision,
        typer.Option(
            help="The numbers that image networks compute with: auto takes int8 for a new collection of 500 pictures "
            "or more where the processor has instructions for it (VNNI, dot products)."
        ),
    ] = "auto",
    device: DeviceOption = "auto",
    scheduler: SchedulerOption = None,
    root: Annotated[
        Path | None,
        typer.Option(
            help="The folder of the pictures of a collection that was copied, moved or restored; files are opened only "
            "below it. By default FOLDER.",
            parser=folder_or_address,
            metavar="<dir>",
        ),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Make the pictures of a folder searchable.

    A collection that is there is brought up to date: only what is new or changed is read. Run it again whenever the
    folder has changed, or let it --watch.
    """
    from diptych.cli.indexing import IndexRequest, index_folder, unpack_into
    from diptych.data.ignore_files import add_patterns
    from diptych.data.remote_files import is_remote

    stages = Stages(quiet=quiet)
    if exclude:
        if is_remote(folder):
            raise InvalidInputError(
                "--exclude writes FOLDER/.diptychignore, and an address cannot have it; leave it out"
            )
        add_patterns(folder, exclude)
    if packed is not None:
        captions = unpack_into(folder, packed, captions)
    request = IndexRequest(
        folder=folder,
        captions=captions,
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
    print_index_report(outcome, stages, as_json=as_json)
    if (read_text or regions is not None) and outcome.status.pictures:
        from diptych.collection import Collection

        with Collection.open(outcome.place, root=request.named_root(outcome.place)) as opened:
            if read_text:
                _look_closer("reading the text in pictures", opened.read_text, stages)
            if regions:
                _look_closer("looking at parts of pictures", opened.add_regions, stages)
            elif regions is False:
                opened.remove_regions()
    if watch:
        from diptych.cli.watching import watch_folder

        show = partial(print_changes, stages=stages, as_json=as_json)
        watch_folder(request, outcome, stages, show)
    elif outcome.status.pictures == 0:
        raise typer.Exit(1)


def report_skipped(skipped: Mapping[str, str], listing: Path, stages: Stages) -> None:
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
    lines = [_reason_line(path, reason) for path, reason in skipped.items() if not unread_reason(path)]
    if lines:
        stages.note(f"skipped {counted(len(lines), 'file')} that cannot be used:")
    for line in lines[:MAX_SHOWN]:
        stages.note(f"  {line}")
    if len(lines) > MAX_SHOWN:
        stages.note(f"  and {len(lines) - MAX_SHOWN:,} more")
    stages.note(f"all of them are listed in {shown_path(listing)}")


def _reason_line(path: str, reason: str) -> str:
    # Some reasons begin with the path, which is said already.
    return f"{printable(shown_path(Path(path)))}: {printable(reason.removeprefix(path).lstrip(' :'))}"


def print_index_report(outcome: IndexOutcome, stages: Stages, *, as_json: bool) -> None:
    """Print the counts, list what was skipped, and say what to do next."""
    status, report = outcome.status, outcome.report
    report_skipped(report.skipped, outcome.skipped_file, stages)
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
    if status.captions >= CAPTIONS_WORTH_TRAINING and report.changed:
        stages.note("the captions can make answers better: diptych train")
    stages.note('search them: diptych search "two dogs on a beach"')


def print_changes(report: AddReport, stages: Stages, *, as_json: bool) -> None:
    """Print what became of a batch of changes, on one line."""
    for path, reason in islice(report.skipped.items(), MAX_SHOWN):
        stages.note(_reason_line(path, reason))
    if as_json:
        print_json(counts(report), indent=None)
    else:
        results().print(summarise(replace(report, unchanged=0)), soft_wrap=True)


def _look_closer(doing: str, read: Callable[..., ReadingReport], stages: Stages) -> None:
    """Read what earlier runs have not read, each picture once; an interruption keeps what is done."""
    try:
        with stages.run("read", doing) as advance:
            report = read(progress=lambda step: advance(step.done, step.total))
    except KeyboardInterrupt:
        stages.note("stopped; what was read is kept and searchable, the same command goes on")
        raise typer.Exit(INTERRUPTED) from None
    for path, reason in islice(report.skipped.items(), MAX_SHOWN):
        stages.note(f"  {_reason_line(path, reason)}")
    with_text = getattr(report, "with_text", None)
    found = "" if with_text is None else f", {with_text:,} of them have text"
    left = f"; {len(report.skipped):,} could not be read" if report.skipped else ""
    stages.note(f"{counted(report.read, 'picture')} read{found}{left}")


def summarise(report: AddReport) -> str:
    """Return what was done in a few words.

    >>> from diptych.collection import AddReport
    >>> summarise(AddReport(added=12, renamed=1, unchanged=1000))
    '12 added, 1 renamed, 1,000 unchanged'
    """
    return ", ".join(f"{count:,} {name}" for name, count in report.counts.items() if count) or "nothing to do"


def counts(report: AddReport) -> dict[str, object]:
    """Return what became of the pictures as JSON values."""
    named = {field.name: getattr(report, field.name) for field in fields(report)}
    return {**named, "unread_kinds": unread_kinds(report.skipped), "seconds": round(report.seconds, 3)}
