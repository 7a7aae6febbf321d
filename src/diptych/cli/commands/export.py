"""``diptych export``: items as tables and numbers, answers as a run, pictures as folders, zip files and galleries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.cli.console.output import check_writable_file, print_outcome, writing
from diptych.cli.console.paths import open_collection, printable
from diptych.cli.console.progress import Stages
from diptych.cli.options import CollectionOption, ExportFormat, FilterOption, JsonOption, QuietOption
from diptych.errors import InvalidInputError, counted

if TYPE_CHECKING:
    from diptych.collection import Collection

PICTURE_FORMATS = ("folder", "zip", "gallery")
RUN_SUFFIXES = (".trec", ".run")


def export(
    file: Annotated[
        Path | None, typer.Argument(metavar="OUT", help="The file to write; its ending says the format.")
    ] = None,
    format: Annotated[
        ExportFormat | None,
        typer.Option(
            "--format",
            help="csv, jsonl, parquet: the items; npz: the numbers by which they are compared; "
            "trec: answers to --queries; folder, zip, gallery: the pictures, a gallery with a page to look at them.",
        ),
    ] = None,
    search: Annotated[str | None, typer.Option("--search", help="Pictures: the answers to a query.")] = None,
    filter: FilterOption = None,
    album: Annotated[str | None, typer.Option("--album", help="Pictures: those of an album, in its order.")] = None,
    saved: Annotated[str | None, typer.Option("--saved", help="Pictures: the answers to a saved search.")] = None,
    title: Annotated[str | None, typer.Option("--title", help="The title of a gallery.")] = None,
    keep_metadata: Annotated[
        bool | None,
        typer.Option(
            "--keep-metadata/--no-metadata",
            help="The files as they are, or drawn again without what they say of place, time and camera; "
            "by default a gallery goes without.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier export of pictures.")] = False,
    xmp: Annotated[
        bool,
        typer.Option(
            "--xmp",
            help="Captions, labels and ratings as XMP files, beside the pictures or below the folder OUT; the pictures "
            "stay as they are.",
        ),
    ] = False,
    points: Annotated[
        bool, typer.Option("--points", help="In Parquet: each item with the numbers of its picture.")
    ] = False,
    queries: Annotated[
        Path | None,
        typer.Option(help="For a TREC run: a file with a query on each line, or its name, a tab and the query."),
    ] = None,
    depth: Annotated[int, typer.Option("-k", min=1, help="How many answers to each query.")] = 100,
    collection: CollectionOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Export items, pictures as a folder, zip file or gallery, or what is known of them as XMP files."""
    if xmp:
        with open_collection(collection, quiet=quiet) as opened:
            done = opened.export_xmp(file, filter=filter)
        for name in done.left_out:
            Stages(quiet=quiet).note(f"left as it is, because another program wrote it: {printable(name)}")
        print_outcome(f"{counted(done.written, 'XMP file')} written", done, as_json=as_json)
        return
    if file is None:
        raise InvalidInputError("name the file to write: diptych export OUT; only --xmp can do without")
    if not file.parent.is_dir():
        raise InvalidInputError(f"the folder {file.parent} does not exist; make it first, or choose another place")
    chosen = {"search": search, "filter": filter, "album": album, "saved": saved}
    if format in PICTURE_FORMATS or (format is None and file.suffix.lower() == ".zip"):
        with open_collection(collection, quiet=quiet) as opened, writing(file):
            facts = _export_pictures(
                opened,
                file,
                chosen,
                depth,
                Stages(quiet=quiet),
                title=title,
                gallery=format == "gallery",
                keep_metadata=keep_metadata,
                force=force,
            )
        print_outcome(str(file), facts, as_json=as_json)
        return
    if any(chosen.values()):
        raise InvalidInputError("answers are exported as pictures: --format folder, zip or gallery")
    check_writable_file(file)
    with open_collection(collection, quiet=quiet) as opened, writing(file):
        if format == "trec" or (format is None and file.suffix in RUN_SUFFIXES):
            _write_run(opened, file, queries, depth)
        else:
            opened.export(file, format, points=points)
    print_outcome(str(file), {"file": file}, as_json=as_json)


def _export_pictures(
    collection: Collection,
    target: Path,
    chosen: dict[str, str | None],
    k: int,
    stages: Stages,
    *,
    title: str | None,
    gallery: bool,
    keep_metadata: bool | None,
    force: bool,
) -> dict[str, object]:
    from diptych.collection.items_to_export import items_to_export

    search, filter, album, saved = chosen.values()
    if sum(one is not None for one in (search, album, saved)) > 1:
        raise InvalidInputError("--search, --album and --saved each say what to export; give one of them")
    if not any(chosen.values()):
        raise InvalidInputError("say which pictures: --search, --filter, --album or --saved; --filter 'id:*' has all")
    items, about = items_to_export(collection, query=search, filter=filter, album=album, saved=saved, k=k)
    if search and not items:
        raise InvalidInputError(f"there is no good match for {search!r}; nothing was exported")
    title = title or album or saved or search or "Pictures"
    done = collection.export_pictures(
        target, items, title=title, about=about, gallery=gallery, keep_metadata=keep_metadata, force=force
    )
    for name in done.left_out:
        stages.note(f"left out, because it cannot be read: {printable(name)}")
    stages.note(f"{counted(done.items, 'item')} exported")
    return {"file": done.target, "items": done.items, "left_out": list(done.left_out)}


def _write_run(collection: Collection, file: Path, queries: Path | None, depth: int) -> None:
    """Write what the collection answers to the queries of a file, as trec_eval reads it; items go by their paths."""
    from diptych.benchmark.exchange import RankedList, write_run
    from diptych.data.text_files import decode_file

    if queries is None:
        raise InvalidInputError("a TREC run answers queries; name a file of them: --queries queries.tsv")
    lines = [line.partition("\t") for line in decode_file(queries)[0].splitlines() if line.strip()]

    def ranked() -> Iterator[RankedList]:
        for number, (name, tab, query) in enumerate(lines, start=1):
            answers = collection.search(query if tab else name, k=depth, min_probability=0)
            found = {answer.item.path or answer.id: -float(answer.rank) for answer in answers if answer.item}
            yield RankedList.of(name if tab else str(number), found)

    write_run(file, ranked())
