"""``diptych search``: words or a picture in, pictures or captions out, once or one query after another."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from diptych.cli.console.paths import open_collection
from diptych.cli.options import (
    AnswerFormat,
    AnswerOrder,
    CollectionOption,
    DeviceOption,
    JsonOption,
    NoRemarksOption,
    RerankBy,
    SearchMode,
    Target,
)
from diptych.errors import DiptychError, InvalidInputError, UnknownNameError, counted

if TYPE_CHECKING:
    from diptych.cli.commands.search_session import SearchSession


def search(
    query: Annotated[
        list[str] | None,
        typer.Argument(
            help="Words, a picture file, item:ID, or several joined by + and -. None: read queries one by one."
        ),
    ] = None,
    collection: CollectionOption = None,
    k: Annotated[int, typer.Option("-k", min=1, help="How many answers.")] = 10,
    target: Annotated[Target, typer.Option(help="Search pictures, or captions.")] = "images",
    filter: Annotated[str | None, typer.Option("--filter", help="Only some items: 'label:dog and year>=2010'.")] = None,
    mode: Annotated[
        SearchMode,
        typer.Option(
            help="Look for what the query means (similarity), for its words in captions, names, keywords and pictures, "
            "or for both; auto: by meaning, and names, numbers and quoted words by their words."
        ),
    ] = "auto",
    hybrid: Annotated[bool, typer.Option("--hybrid", help="The same as --mode both.")] = False,
    exact: Annotated[bool, typer.Option("--exact", help="Compare everything, without the approximate index.")] = False,
    min_probability: Annotated[
        float | None, typer.Option(min=0, max=1, help="Leave out answers less likely than this.")
    ] = None,
    no_regions: Annotated[
        bool, typer.Option("--no-regions", help="Compare whole pictures only, where `diptych regions` has made parts.")
    ] = False,
    rerank: Annotated[
        int | None, typer.Option(min=1, help="Score so many of the nearest binary codes again, by real numbers.")
    ] = None,
    rerank_by: Annotated[
        RerankBy, typer.Option("--rerank-by", help="Score these by their codes, or by their stored features.")
    ] = "codes",
    show_all: Annotated[bool, typer.Option("--all", help="Show the nearest even if there is no good match.")] = False,
    sort: Annotated[
        AnswerOrder,
        typer.Option(help="The order of the good answers: the best first, the latest first, or by name."),
    ] = "relevance",
    offset: Annotated[int, typer.Option(min=0, help="Leave out that many answers, for the next page.")] = 0,
    format: Annotated[
        AnswerFormat, typer.Option("--format", help="auto: a table on a terminal, paths or captions in a pipe.")
    ] = "auto",
    as_json: JsonOption = False,
    why: Annotated[bool, typer.Option("--why", help="Explain the first answers.")] = False,
    device: DeviceOption = "auto",
    quiet: NoRemarksOption = False,
) -> None:
    """Search a collection with words, with a picture, or with both.

    A query may weigh and subtract: "2:golden retriever" + photo.jpg - snow
    """
    from diptych.cli.commands.search_session import SearchSession, SearchSettings
    from diptych.collection import Filter

    if as_json:
        format = "json"
    if hybrid and mode not in ("auto", "both"):
        raise InvalidInputError(f"--hybrid is --mode both, but --mode {mode} is asked for; give one of them")
    if show_all and min_probability:
        raise InvalidInputError("--all shows everything, --min-probability does not; give one of them")
    settings = SearchSettings(
        k=k,
        offset=offset,
        target=target,
        filter=Filter.of(filter),
        mode="both" if hybrid else mode,
        exact=exact or None,
        min_probability=0.0 if show_all else min_probability,
        regions=not no_regions,
        rerank=rerank,
        rerank_by=rerank_by,
        sort=sort,
        format=format,
    )
    with open_collection(collection, quiet=quiet) as opened:
        session = SearchSession(opened, settings, quiet=quiet, why=why)
        if query:
            session.search(joined_words(query))
            return
        if sys.stdin.isatty():
            session.note(f"{counted(opened.status().pictures, 'picture')}; :help explains, :quit ends")
        n_mistakes = run_prompt(session)
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


HELP = """\
two dogs on a beach    search with words
photo.jpg              search with a picture
2:dog + photo.jpg - snow
                       several together, with weights; - asks for what is unlike
:more                  the next answers
:like 3, :unlike 3     go on towards answer 3, or away from it
:open 3                show answer 3 with the system's own program
:k 20                  how many answers
:filter label:dog      only some items; :filter alone lifts it
:target texts          search captions; :target images searches pictures
:mode words            by similarity, by words, by both, or auto
:hybrid on, :all on    by both; also unlikely ones
:help, :quit"""


_COMMANDS = ("k", "filter", "target", "mode", "hybrid", "all", "more", "like", "unlike", "open", "help", "quit")


def run_prompt(session: SearchSession) -> int:
    """Read queries and commands, from a person or a pipe, and return how many lines were mistakes."""
    session.ask_for_all = ":all on"
    n_mistakes = 0
    for words in map(str.strip, _lines()):
        if words in (":quit", ":q", ":exit"):
            break
        try:
            if words.startswith(":"):
                _run_command(session, words)
            elif words:
                session.search(words)
        except DiptychError as error:
            n_mistakes += 1
            typer.echo(f"error: {' '.join(str(error).split())}", err=True)
        except KeyboardInterrupt:
            typer.echo("stopped", err=True)
    return n_mistakes


def _lines() -> Iterator[str]:
    if not sys.stdin.isatty():
        # Line by line, not the stream itself: giving up early would close it.
        yield from iter(sys.stdin.readline, "")
        return
    with suppress(ImportError):
        import readline  # noqa: F401  input() uses it: arrow keys bring back earlier lines
    while True:
        try:
            yield input("search> ")
        except KeyboardInterrupt:
            # As in a shell: the line is given up, not the program.
            typer.echo(err=True)
        except EOFError:
            typer.echo(err=True)
            return


def _run_command(session: SearchSession, words: str) -> None:
    from diptych.collection import Filter

    name, _, value = words[1:].partition(" ")
    value = value.strip()
    settings = session.settings
    match name:
        case "help":
            session.note(HELP)
        case "more":
            session.more()
        case "like":
            session.like(_number(value))
        case "unlike":
            session.unlike(_number(value))
        case "open":
            _open(session, _number(value))
        case "k":
            if (k := _number(value)) < 1:
                raise InvalidInputError(f":k takes a number from 1 on, got {k}")
            settings = replace(settings, k=k)
        case "filter":
            settings = replace(settings, filter=Filter.parse(value) if value else None)
        case "target" | "mode":
            choices = get_args(Target if name == "target" else SearchMode)
            if value not in choices:
                raise UnknownNameError(name, value, choices)
            chosen: Any = {name: value}
            settings = replace(settings, **chosen)
        case "hybrid":
            settings = replace(settings, mode="both" if _switch(name, value) else "similarity")
        case "all":
            settings = replace(settings, min_probability=0.0 if _switch(name, value) else None)
        case _:
            raise UnknownNameError("command", f":{name}", [f":{known}" for known in _COMMANDS])
    if settings is not session.settings:
        session.settings = settings
        if session.query is not None:
            session.search(session.query)


def _open(session: SearchSession, rank: int) -> None:
    path = session.answer(rank).path
    if path is None:
        raise InvalidInputError("that answer is a text without a picture")
    if not path.is_file():
        raise InvalidInputError(f"{path} is no longer there; bring the collection up to date with: diptych index")
    if typer.launch(str(path)):
        raise InvalidInputError(f"no program for pictures was found here; the file is {path}")


def _number(words: str) -> int:
    try:
        return int(words)
    except ValueError:
        raise InvalidInputError(f"a number is needed here, such as 3; got {words!r}") from None


def _switch(command: str, words: str) -> bool:
    if words not in ("on", "off", ""):
        raise InvalidInputError(f":{command} takes on or off, got {words!r}")
    return words != "off"
