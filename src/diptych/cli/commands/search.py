"""``diptych search``: words or a picture in, pictures or captions out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from diptych.cli.console.paths import open_collection
from diptych.cli.options import (
    AnswerFormat,
    AnswersOption,
    CollectionOption,
    DeviceOption,
    FilterOption,
    JsonOption,
    QuietOption,
    SearchModeOption,
    takes_search_options,
)
from diptych.errors import InvalidInputError


@takes_search_options
def search(
    query: Annotated[list[str], typer.Argument(help="Words, a picture file, item:ID, or several joined by + and -.")],
    collection: CollectionOption = None,
    k: AnswersOption = 10,
    filter: FilterOption = None,
    mode: SearchModeOption = "auto",
    exact: Annotated[bool, typer.Option("--exact", help="Compare everything, without the approximate index.")] = False,
    no_regions: Annotated[
        bool, typer.Option("--no-regions", help="Compare whole pictures only, where `index --regions` has made parts.")
    ] = False,
    show_all: Annotated[bool, typer.Option("--all", help="Show the nearest even if there is no good match.")] = False,
    offset: Annotated[int, typer.Option(min=0, help="Leave out that many answers, for the next page.")] = 0,
    format: Annotated[
        AnswerFormat, typer.Option("--format", help="auto: a table on a terminal, paths or captions in a pipe.")
    ] = "auto",
    as_json: JsonOption = False,
    why: Annotated[bool, typer.Option("--why", help="Explain the first answers.")] = False,
    device: DeviceOption = "auto",
    quiet: QuietOption = False,
    more: dict[str, Any] | None = None,
) -> None:
    """Search a collection with words, with a picture, or with both.

    A query may weigh and subtract: "2:golden retriever" + photo.jpg - snow
    """
    from diptych.cli.answers import search_and_print, typed_query
    from diptych.collection import Filter
    from diptych.collection.searching.query import HYBRID_OF_MODE, SearchRequest

    options = {**(more or {}), "exact": exact or None, "regions": not no_regions}
    if show_all and options["min_probability"]:
        raise InvalidInputError("--all shows everything, --min-probability does not; give one of them")
    if show_all:
        options["min_probability"] = 0.0
    with open_collection(collection, quiet=quiet) as opened:
        request = SearchRequest(
            typed_query(opened, joined_words(query)),
            k=k,
            offset=offset,
            filter=Filter.of(filter),
            hybrid=HYBRID_OF_MODE[mode],
            **options,
        )
        search_and_print(opened, request, format, as_json=as_json, quiet=quiet, why=why)


def joined_words(words: Sequence[str]) -> str:
    """Join the arguments of a command to a query; one that holds spaces gets back the quotation marks a shell took.

    >>> joined_words(["golden", "retriever"]), joined_words(["salt - pepper"])
    ('golden retriever', 'salt - pepper')
    >>> joined_words(["2:golden retriever", "+", "my photo.jpg"])
    '"2:golden retriever" + "my photo.jpg"'
    """
    if len(words) == 1:
        return words[0]
    return " ".join(f'"{word}"' if " " in word and '"' not in word else word for word in words)
