"""``diptych album`` and ``diptych saved``: items under titles, and searches under names."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.cli.console.output import folded, numbers, print_json, print_outcome, results, table, whole
from diptych.cli.console.paths import open_collection, printable, shown_path
from diptych.cli.options import CollectionOption, JsonOption, NoRemarksOption, SearchMode, Target
from diptych.errors import InvalidInputError, counted

if TYPE_CHECKING:
    from diptych.collection import Album, Collection, Item

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
    _print_album(f"{printable(album.title)} has {counted(len(album), 'item')} now", album, as_json=as_json)


def rename_album(
    title: TitleArgument,
    new: Annotated[str, typer.Argument(metavar="NEW", help="Its new title.")],
    collection: CollectionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give an album another title."""
    with open_collection(collection, quiet=True) as opened:
        album = opened.albums.rename(title, new)
    _print_album(f"The album is called {printable(album.title)} now", album, as_json=as_json)


def delete_album(title: TitleArgument, collection: CollectionOption = None, as_json: JsonOption = False) -> None:
    """Delete an album; its items stay in the collection."""
    with open_collection(collection, quiet=True) as opened:
        album = opened.albums[title]
        opened.albums.delete(title)
    told = f"The album {printable(album.title)} is deleted; its {counted(len(album), 'item')} stay in the collection"
    _print_album(told, album, as_json=as_json)


def _print_album(told: str, album: Album, *, as_json: bool) -> None:
    print_outcome(told, asdict(album), as_json=as_json)


def list_searches(collection: CollectionOption = None, as_json: JsonOption = False) -> None:
    """List the saved searches with what they ask."""
    with open_collection(collection, quiet=True) as opened:
        searches = list(opened.saved_searches)
    if as_json:
        print_json([asdict(search) for search in searches])
        return
    listing = table(folded("saved search"), folded("words"), folded("filter"), whole("mode"))
    for search in searches:
        listing.add_row(*map(printable, (search.name, search.query, search.filter or "", search.mode)))
    results().print(listing if searches else "Nothing is saved yet; save a search with: diptych saved add NAME WORDS")


def save_search(
    name: NameArgument,
    query: Annotated[list[str] | None, typer.Argument(help="Words, as in a search; none: a filter alone.")] = None,
    filter: FilterOption = None,
    target: Annotated[Target, typer.Option(help="Search pictures, or captions.")] = Target.IMAGES,
    mode: Annotated[SearchMode, typer.Option(help="As in a search.")] = SearchMode.AUTO,
    retriever: Annotated[str | None, typer.Option(help="The name of a stored search model.")] = None,
    min_probability: Annotated[
        float | None, typer.Option(min=0, max=1, help="Leave out answers less likely than this.")
    ] = None,
    collection: CollectionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Save a search under a name; one of the same name is replaced."""
    from diptych.cli.commands.search import joined_words
    from diptych.collection import SavedSearch

    search = SavedSearch(name, joined_words(query or []), filter, target.value, mode.value, retriever, min_probability)
    with open_collection(collection, quiet=True) as opened:
        opened.retriever_named(retriever)
        opened.saved_searches.save(search)
    print_outcome(f"Saved; ask it with: diptych saved run '{printable(search.name)}'", asdict(search), as_json=as_json)


def run_search(
    name: NameArgument,
    k: Annotated[int, typer.Option("-k", min=1, help="How many answers.")] = 10,
    collection: CollectionOption = None,
    as_json: JsonOption = False,
    quiet: NoRemarksOption = False,
) -> None:
    """Run a saved search again, on what is in the collection now."""
    from diptych.cli.commands.search_session import SearchSession, SearchSettings
    from diptych.cli.options import AnswerFormat
    from diptych.collection import Filter

    with open_collection(collection, quiet=quiet) as opened:
        search = opened.saved_searches[name]
        if not search.query:
            print_items(opened, opened.items(search.filter)[:k])
            return
        settings = SearchSettings(
            k=k,
            target=Target(search.target),
            filter=Filter.of(search.filter),
            mode=SearchMode(search.mode),
            min_probability=search.min_probability,
            retriever=search.retriever,
            format=AnswerFormat.JSON if as_json else AnswerFormat.AUTO,
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
