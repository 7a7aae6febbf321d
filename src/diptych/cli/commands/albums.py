"""``diptych album`` and ``saved``: items under titles, and searches under names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diptych.cli.console.output import folded, numbers, print_json, print_listing, print_outcome, results, whole
from diptych.cli.console.paths import open_collection, printable, shown_path
from diptych.cli.options import (
    AnswersOption,
    CollectionOption,
    DeviceOption,
    FilterOption,
    Group,
    JsonOption,
    QuietOption,
    SearchModeOption,
    takes_search_options,
)
from diptych.errors import InvalidInputError, counted

if TYPE_CHECKING:
    from diptych.collection import Collection, Item

album = typer.Typer(cls=Group, help="Keep items under a title, in an order of your own.")
saved = typer.Typer(cls=Group, help="Keep searches under names, and run them again.")

TitleArgument = Annotated[str, typer.Argument(metavar="TITLE", help="The title of the album.")]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The name of the saved search.")]
ItemsArgument = Annotated[list[str] | None, typer.Argument(metavar="[ITEMS]...", help="Picture files, or ids.")]


@album.command("list")
def list_albums(collection: CollectionOption = None, as_json: JsonOption = False) -> None:
    """List the albums with the number of their items."""
    with open_collection(collection, quiet=True) as opened:
        albums = list(opened.albums)
    print_listing(
        albums,
        [folded("album"), *numbers("items")],
        lambda each: (printable(each.title), f"{len(each):,}"),
        as_json=as_json,
        empty="There are no albums yet; make one with: diptych album add TITLE ITEMS",
    )


@album.command("show")
def show_album(title: TitleArgument, collection: CollectionOption = None, as_json: JsonOption = False) -> None:
    """Print the items of an album in its order: paths of pictures, texts of the others."""
    with open_collection(collection, quiet=True) as opened:
        if as_json:
            print_json(opened.albums[title])
        else:
            print_items(opened, opened.albums.items(title))


def print_items(collection: Collection, items: Sequence[Item]) -> None:
    """Print a line for each item: its path, or its id and the text that it is."""
    for item in items:
        path = collection.path_of(item)
        line = f"item:{item.id} {item.captions[0]}" if path is None else shown_path(path)
        results().print(printable(line), soft_wrap=True)


@album.command("add")
def add_to_album(
    title: TitleArgument,
    items: ItemsArgument = None,
    filter: FilterOption = None,
    search: Annotated[str | None, typer.Option("--search", help="The answers to a query.")] = None,
    k: AnswersOption = 10,
    device: DeviceOption = "auto",
    collection: CollectionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Put items at the end of an album: files, those of a filter, or the answers to a search; a new one is made."""
    from diptych.collection.items_to_export import items_to_export

    with open_collection(collection, quiet=True) as opened:
        chosen = list(items or [])
        if search or filter:
            chosen += [item.id for item in items_to_export(opened, query=search, filter=filter, k=k)[0]]
        before = len(opened.albums[title]) if title in opened.albums else 0
        changed = opened.albums.add(title, chosen)
    added = counted(len(changed) - before, "item")
    told = f"{added} added to {printable(changed.title)}, which has {len(changed):,} now"
    print_outcome(told, changed, as_json=as_json)


@album.command("remove")
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
        chosen = [item.id for item in opened.items(filter)] if filter is not None else []
        changed = opened.albums.remove(title, [*(items or []), *chosen])
    print_outcome(f"{printable(changed.title)} has {counted(len(changed), 'item')} now", changed, as_json=as_json)


@album.command("delete")
def delete_album(title: TitleArgument, collection: CollectionOption = None, as_json: JsonOption = False) -> None:
    """Delete an album; its items stay in the collection."""
    with open_collection(collection, quiet=True) as opened:
        deleted = opened.albums[title]
        opened.albums.delete(title)
    told = (
        f"The album {printable(deleted.title)} is deleted; its {counted(len(deleted), 'item')} stay in the collection"
    )
    print_outcome(told, deleted, as_json=as_json)


@saved.command("list")
def list_searches(collection: CollectionOption = None, as_json: JsonOption = False) -> None:
    """List the saved searches with what they ask."""
    with open_collection(collection, quiet=True) as opened:
        searches = list(opened.saved_searches)
    print_listing(
        searches,
        [folded("saved search"), folded("words"), folded("filter"), whole("mode"), whole("sort")],
        lambda each: map(printable, (each.name, each.query, each.filter or "", each.mode, each.sort)),
        as_json=as_json,
        empty="Nothing is saved yet; save a search with: diptych saved add NAME WORDS",
    )


@saved.command("add")
@takes_search_options
def save_search(
    name: NameArgument,
    query: Annotated[list[str] | None, typer.Argument(help="Words, as in a search; none: a filter alone.")] = None,
    filter: FilterOption = None,
    mode: SearchModeOption = "auto",
    retriever: Annotated[str | None, typer.Option(help="The name of a stored search model.")] = None,
    collection: CollectionOption = None,
    as_json: JsonOption = False,
    more: dict[str, Any] | None = None,
) -> None:
    """Save a search under a name; one of the same name is replaced."""
    from diptych.cli.commands.search import joined_words
    from diptych.collection import SavedSearch

    search = SavedSearch(
        name,
        joined_words(query or []),
        filter,
        mode,
        retriever=retriever,
        **(more or {}),
    )
    with open_collection(collection, quiet=True) as opened:
        opened.retriever_named(retriever)
        opened.saved_searches.save(search)
    print_outcome(f"Saved; ask it with: diptych saved run '{printable(search.name)}'", search, as_json=as_json)


@saved.command("run")
def run_search(
    name: NameArgument,
    k: AnswersOption = 10,
    device: DeviceOption = "auto",
    collection: CollectionOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run a saved search again, on what is in the collection now."""
    from diptych.cli.answers import search_and_print
    from diptych.collection import Filter, parse_query
    from diptych.collection.searching.query import HYBRID_OF_MODE, SearchRequest

    with open_collection(collection, quiet=quiet) as opened:
        search = opened.saved_searches[name]
        if search.query:
            request = SearchRequest(
                parse_query(search.query),
                k=k,
                filter=Filter.of(search.filter),
                hybrid=HYBRID_OF_MODE[search.mode],
                **search.options,
            )
            search_and_print(opened, request, as_json=as_json, quiet=quiet)
        else:
            print_items(opened, opened.items(search.filter)[:k])


@saved.command("delete")
def delete_search(name: NameArgument, collection: CollectionOption = None, as_json: JsonOption = False) -> None:
    """Delete a saved search."""
    with open_collection(collection, quiet=True) as opened:
        search = opened.saved_searches[name]
        opened.saved_searches.delete(name)
    print_outcome(f"The saved search {printable(search.name)} is deleted", search, as_json=as_json)
