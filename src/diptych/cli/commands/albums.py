"""``diptych album``, ``saved`` and ``export``: items under titles, searches under names, and all of it as files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diptych.cli.console.output import (
    check_writable_file,
    folded,
    numbers,
    print_json,
    print_outcome,
    results,
    table,
    whole,
    writing,
)
from diptych.cli.console.paths import open_collection, printable, shown_path
from diptych.cli.console.progress import Stages
from diptych.cli.options import (
    AnswerOrder,
    CollectionOption,
    DeviceOption,
    ExportFormat,
    JsonOption,
    NoRemarksOption,
    SearchMode,
    Target,
)
from diptych.errors import InvalidInputError, counted

if TYPE_CHECKING:
    from diptych.collection import Collection, Item

TitleArgument = Annotated[str, typer.Argument(metavar="TITLE", help="The title of the album.")]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The name of the saved search.")]
ItemsArgument = Annotated[list[str] | None, typer.Argument(metavar="[ITEMS]...", help="Picture files, or ids.")]
FilterOption = Annotated[str | None, typer.Option("--filter", help="Those that meet a filter: 'label:dog'.")]


def list_albums(collection: CollectionOption = None, as_json: JsonOption = False) -> None:
    """List the albums with the number of their items."""
    with open_collection(collection, quiet=True) as opened:
        albums = list(opened.albums)
    if as_json:
        print_json([asdict(album) for album in albums])
        return
    listing = table(folded("album"), *numbers("items"))
    for album in albums:
        listing.add_row(printable(album.title), f"{len(album):,}")
    results().print(listing if albums else "There are no albums yet; make one with: diptych album add TITLE ITEMS")


def show_album(title: TitleArgument, collection: CollectionOption = None, as_json: JsonOption = False) -> None:
    """Print the items of an album in its order: paths of pictures, texts of the others."""
    with open_collection(collection, quiet=True) as opened:
        album, items = opened.albums[title], opened.albums.items(title)
        if as_json:
            print_json(asdict(album))
        else:
            print_items(opened, items)


def print_items(collection: Collection, items: list[Item]) -> None:
    """Print a line for each item: its path, or the text that it is."""
    for item in items:
        path = collection.path_of(item)
        results().print(printable(shown_path(path) if path is not None else item.captions[0]), soft_wrap=True)


def add_to_album(
    title: TitleArgument,
    items: ItemsArgument = None,
    filter: FilterOption = None,
    search: Annotated[str | None, typer.Option("--search", help="The answers to a query.")] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="How many answers.")] = 10,
    device: DeviceOption = "auto",
    collection: CollectionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Put items at the end of an album: files, those of a filter, or the answers to a search; a new one is made."""
    with open_collection(collection, quiet=True) as opened:
        if search is not None:
            found = opened.search(search, k, filter=filter)
            which = [] if found.no_good_match else [answer.id for answer in found]
        else:
            which = [item.id for item in opened.items(filter)] if filter is not None else []
        before = len(opened.albums[title]) if title in opened.albums else 0
        album = opened.albums.add(title, [*(items or []), *which])
    told = f"{counted(len(album) - before, 'item')} added to {printable(album.title)}, which has {len(album):,} now"
    print_outcome(told, asdict(album), as_json=as_json)


def remove_from_album(
    title: TitleArgument,
    items: ItemsArgument = None,
    filter: FilterOption = None,
    collection: CollectionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take items out of an album; they stay in the collection."""
    if not items and filter is None:
        raise InvalidInputError("name the items to take out, or a --filter; `diptych album delete` deletes the album")
    with open_collection(collection, quiet=True) as opened:
        which = [item.id for item in opened.items(filter)] if filter is not None else []
        album = opened.albums.remove(title, [*(items or []), *which])
    print_outcome(f"{printable(album.title)} has {counted(len(album), 'item')} now", asdict(album), as_json=as_json)


def rename_album(
    title: TitleArgument,
    new: Annotated[str, typer.Argument(metavar="NEW", help="Its new title.")],
    collection: CollectionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give an album another title."""
    with open_collection(collection, quiet=True) as opened:
        album = opened.albums.rename(title, new)
    print_outcome(f"The album is called {printable(album.title)} now", asdict(album), as_json=as_json)


def delete_album(title: TitleArgument, collection: CollectionOption = None, as_json: JsonOption = False) -> None:
    """Delete an album; its items stay in the collection."""
    with open_collection(collection, quiet=True) as opened:
        album = opened.albums[title]
        opened.albums.delete(title)
    told = f"The album {printable(album.title)} is deleted; its {counted(len(album), 'item')} stay in the collection"
    print_outcome(told, asdict(album), as_json=as_json)


def list_searches(collection: CollectionOption = None, as_json: JsonOption = False) -> None:
    """List the saved searches with what they ask."""
    with open_collection(collection, quiet=True) as opened:
        searches = list(opened.saved_searches)
    if as_json:
        print_json([asdict(search) for search in searches])
        return
    listing = table(folded("saved search"), folded("words"), folded("filter"), whole("mode"), whole("sort"))
    for search in searches:
        listing.add_row(*map(printable, (search.name, search.query, search.filter or "", search.mode, search.sort)))
    results().print(listing if searches else "Nothing is saved yet; save a search with: diptych saved add NAME WORDS")


def save_search(
    name: NameArgument,
    query: Annotated[list[str] | None, typer.Argument(help="Words, as in a search; none: a filter alone.")] = None,
    filter: FilterOption = None,
    target: Annotated[Target, typer.Option(help="Search pictures, or captions.")] = "images",
    mode: Annotated[SearchMode, typer.Option(help="As in a search.")] = "auto",
    retriever: Annotated[str | None, typer.Option(help="The name of a stored search model.")] = None,
    min_probability: Annotated[
        float | None, typer.Option(min=0, max=1, help="Leave out answers less likely than this.")
    ] = None,
    sort: Annotated[AnswerOrder, typer.Option(help="The order of the good answers.")] = "relevance",
    collection: CollectionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Save a search under a name; one of the same name is replaced."""
    from diptych.cli.commands.search import joined_words
    from diptych.collection import SavedSearch

    how: dict[str, Any] = {"retriever": retriever, "min_probability": min_probability, "sort": sort}
    search = SavedSearch(name, joined_words(query or []), filter, mode, target=target, **how)
    with open_collection(collection, quiet=True) as opened:
        opened.retriever_named(retriever)
        opened.saved_searches.save(search)
    print_outcome(f"Saved; ask it with: diptych saved run '{printable(search.name)}'", asdict(search), as_json=as_json)


def run_search(
    name: NameArgument,
    k: Annotated[int, typer.Option("-k", min=1, help="How many answers.")] = 10,
    device: DeviceOption = "auto",
    collection: CollectionOption = None,
    as_json: JsonOption = False,
    quiet: NoRemarksOption = False,
) -> None:
    """Run a saved search again, on what is in the collection now."""
    from diptych.cli.commands.search_session import SearchSession, SearchSettings
    from diptych.collection import Filter

    with open_collection(collection, quiet=quiet) as opened:
        search = opened.saved_searches[name]
        if not search.query:
            print_items(opened, opened.items(search.filter)[:k])
            return
        settings = SearchSettings(
            k=k,
            filter=Filter.of(search.filter),
            mode=search.mode,
            format="json" if as_json else "auto",
            **search.options,
        )
        SearchSession(opened, settings, quiet=quiet).search(search.query)


def rename_search(
    name: NameArgument,
    new: Annotated[str, typer.Argument(metavar="NEW", help="Its new name.")],
    collection: CollectionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give a saved search another name."""
    with open_collection(collection, quiet=True) as opened:
        search = opened.saved_searches.rename(name, new)
    print_outcome(f"The saved search is called {printable(search.name)} now", asdict(search), as_json=as_json)


def delete_search(name: NameArgument, collection: CollectionOption = None, as_json: JsonOption = False) -> None:
    """Delete a saved search."""
    with open_collection(collection, quiet=True) as opened:
        search = opened.saved_searches[name]
        opened.saved_searches.delete(name)
    print_outcome(f"The saved search {printable(search.name)} is deleted", asdict(search), as_json=as_json)


_PICTURES = ("folder", "zip", "gallery")


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
        from diptych.collection.items_to_export import items_to_export

        if sum(one is not None for one in (search, album, saved)) > 1:
            raise InvalidInputError("--search, --album and --saved each say what to export; give one of them")
        if not (search or filter or album or saved):
            raise InvalidInputError(
                "say which pictures: --search, --filter, --album or --saved; --filter 'id:*' has all"
            )
        with open_collection(collection, quiet=quiet) as opened, writing(file):
            chosen, about = items_to_export(opened, query=search, filter=filter, album=album, saved=saved, k=depth)
            if search and not chosen:
                raise InvalidInputError(f"there is no good match for {search!r}; nothing was exported")
            done = opened.export_pictures(
                file,
                chosen,
                title=title or album or saved or search or "Pictures",
                about=about,
                gallery=format == "gallery",
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
        if format == "trec" or (format is None and file.suffix in (".trec", ".run")):
            _write_run(opened, file, queries, depth)
        else:
            opened.export(file, format, points=points)
    print_outcome(str(file), {"file": file}, as_json=as_json)


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
