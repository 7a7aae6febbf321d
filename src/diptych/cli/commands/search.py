"""``diptych search``: words or a picture in, pictures or captions out."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diptych.cli.console.paths import open_collection
from diptych.cli.options import (
    AnswerFormat,
    AnswersOption,
    CollectionOption,
    DeviceOption,
    FilterOption,
    JsonOption,
    MinProbabilityOption,
    QuietOption,
    SearchModeOption,
    takes_search_options,
)
from diptych.errors import DiptychError, InvalidInputError, counted

if TYPE_CHECKING:
    from diptych.collection import Collection


@takes_search_options
def search(
    query: Annotated[
        list[str] | None,
        typer.Argument(
            help="Words, a picture file, item:ID, or several joined by + and -. None: read queries line by line."
        ),
    ] = None,
    collection: CollectionOption = None,
    k: AnswersOption = 10,
    filter: FilterOption = None,
    mode: SearchModeOption = "auto",
    exact: Annotated[bool, typer.Option("--exact", help="Compare everything, without the approximate index.")] = False,
    min_probability: MinProbabilityOption = None,
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
    from diptych.cli.answers import SearchSettings, search_and_print
    from diptych.collection import Filter

    if show_all and min_probability:
        raise InvalidInputError("--all shows everything, --min-probability does not; give one of them")
    settings = SearchSettings(
        k=k,
        offset=offset,
        filter=Filter.of(filter),
        mode=mode,
        exact=exact or None,
        min_probability=0.0 if show_all else min_probability,
        regions=not no_regions,
        format="json" if as_json else format,
        **(more or {}),
    )
    with open_collection(collection, quiet=quiet) as opened:
        if query:
            search_and_print(opened, joined_words(query), settings, quiet=quiet, why=why)
            return
        n_mistakes = 0
        for line in _typed_queries(opened, quiet=quiet):
            try:
                search_and_print(opened, line, settings, quiet=quiet, why=why)
            except DiptychError as error:
                n_mistakes += 1
                typer.echo(f"error: {' '.join(str(error).split())}", err=True)
    if n_mistakes and not sys.stdin.isatty():
        raise typer.Exit(2)


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


def _typed_queries(collection: Collection, *, quiet: bool) -> Iterator[str]:
    """Read queries from a person or a pipe."""
    if not sys.stdin.isatty():
        # Line by line, not the stream itself: giving up early would close it.
        yield from filter(None, map(str.strip, iter(sys.stdin.readline, "")))
        return
    with suppress(ImportError):
        import readline  # noqa: F401  input() uses it: arrow keys bring back earlier lines
    if not quiet:
        typer.echo(f"{counted(collection.status().pictures, 'picture')}; Ctrl-D ends", err=True)
    with suppress(EOFError, KeyboardInterrupt):
        while True:
            if line := input("search> ").strip():
                yield line
    typer.echo(err=True)
