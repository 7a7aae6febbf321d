"""``diptych export``: items, points and runs as files for programs, answers as pictures for people."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.cli.console.output import check_writable_file, print_outcome, writing
from diptych.cli.console.paths import open_collection, printable
from diptych.cli.console.progress import Stages
from diptych.cli.options import CollectionOption, ExportFormat, JsonOption, NoRemarksOption
from diptych.errors import InvalidInputError, counted

if TYPE_CHECKING:
    from diptych.collection import Answer, Collection, Item

_PICTURES = (ExportFormat.FOLDER, ExportFormat.ZIP, ExportFormat.GALLERY)


def export(
    file: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write; its ending says the format.")],
    format: Annotated[
        ExportFormat | None,
        typer.Option(
            "--format",
            help="csv, jsonl, parquet: the items; npz, safetensors, faiss: the numbers by which they are compared; "
            "trec: answers to --queries; folder, zip, gallery: the pictures, a gallery with a page to look at them.",
        ),
    ] = None,
    search: Annotated[str | None, typer.Option("--search", help="Pictures: the answers to a query.")] = None,
    filter: Annotated[str | None, typer.Option("--filter", help="Pictures: those that meet a filter.")] = None,
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
    quiet: NoRemarksOption = False,
) -> None:
    """Export items, or pictures as a folder, a zip file or a gallery for a browser, and print where they are."""
    if not file.parent.is_dir():
        raise InvalidInputError(f"the folder {file.parent} does not exist; make it first, or choose another place")
    if format in _PICTURES or (format is None and file.suffix.lower() == ".zip"):
        with open_collection(collection, quiet=quiet) as opened, writing(file):
            chosen, about = _chosen(opened, search, filter, album, saved, depth)
            done = opened.export_pictures(
                file,
                chosen,
                title=title or album or saved or search or "Pictures",
                about=about,
                gallery=format is ExportFormat.GALLERY,
                keep_metadata=keep_metadata,
                force=force,
            )
        stages = Stages(quiet=quiet)
        for name in done.left_out:
            stages.note(f"left out, because it cannot be read: {printable(name)}")
        stages.note(f"{counted(done.items, 'item')} exported")
        facts = {"file": done.target, "items": done.items, "left_out": list(done.left_out)}
        print_outcome(str(file), facts, as_json=as_json)
        return
    if search or filter or album or saved:
        raise InvalidInputError("answers are exported as pictures: --format folder, zip or gallery")
    check_writable_file(file)
    with open_collection(collection, quiet=quiet) as opened, writing(file):
        if format is ExportFormat.TREC or (format is None and file.suffix in (".trec", ".run")):
            _write_run(opened, file, queries, depth)
        else:
            opened.export(file, None if format is None else format.value, points=points)
    print_outcome(str(file), {"file": file}, as_json=as_json)


def _chosen(
    collection: Collection, search: str | None, filter: str | None, album: str | None, saved: str | None, k: int
) -> tuple[list[Answer] | list[Item], str]:
    """Return what is to be exported, and a line that says what it is."""
    if sum(one is not None for one in (search, album, saved)) > 1:
        raise InvalidInputError("--search, --album and --saved each say what to export; give one of them")
    if saved is not None:
        kept = collection.saved_searches[saved]
        if kept.query:
            return list(collection.saved_searches.run(saved, k)), f"Answers to \u201c{kept.query}\u201d"
        return collection.items(kept.filter)[:k], f"Items with {kept.filter}"
    narrowed = f", only {filter}" if filter is not None else ""
    if search is not None:
        found = collection.search(search, k, filter=filter)
        if found.no_good_match:
            raise InvalidInputError(f"there is no good match for {search!r}; nothing was exported")
        return [one for one in found if one.probability >= found.cutoff or one.has_words], (
            f"Answers to \u201c{search}\u201d{narrowed}"
        )
    if album is not None:
        kept_ids = None if filter is None else {item.id for item in collection.items(filter)}
        items = collection.albums.items(album)
        return [item for item in items if kept_ids is None or item.id in kept_ids], f"Album{narrowed}"
    if filter is None:
        raise InvalidInputError("say which pictures: --search, --filter, --album or --saved; --filter 'id:*' has all")
    return collection.items(filter), f"Items with {filter}"


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
