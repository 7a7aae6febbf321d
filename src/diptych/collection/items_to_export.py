"""What an export of pictures takes: answers, the items of an album or of a filter."""

from __future__ import annotations

from typing import Any

from diptych.collection.item import Item
from diptych.collection.reading import CollectionReader
from diptych.collection.searching.query import Query


def items_to_export(
    collection: CollectionReader,
    *,
    query: Query | str | None = None,
    filter: str | None = None,
    album: str | None = None,
    saved: str | None = None,
    k: int = 100,
    **how: Any,
) -> tuple[list[Item], str]:
    """Return the items of good answers to a query or a saved search, of an album or a filter, and a line about them.

    ``how`` is passed to the search of a query; a saved search has a filter of its own.
    """
    search = None if saved is None else collection.saved_searches[saved]
    if search is not None:
        query, filter = search.query, search.filter
    if query:
        if search is not None:
            found = collection.saved_searches.run(search.name, k)
        else:
            found = collection.search(query, k, filter=filter, **how)
        # With a least probability the search has left out what is not wanted.
        least = how.get("min_probability") if search is None else search.min_probability
        is_good = [least is not None or one.probability >= found.cutoff or one.has_words for one in found]
        narrowed = f", only {filter}" if filter else ""
        items = [one.item for one, good in zip(found, is_good, strict=True) if good and one.item is not None]
        return items, f"Answers to \u201c{query}\u201d{narrowed}"
    items = collection.items(filter)
    if album is None:
        return items, f"Items with {filter}" if filter else ""
    kept = {item.id for item in items}
    return [item for item in collection.albums.items(album) if item.id in kept], "Album"
