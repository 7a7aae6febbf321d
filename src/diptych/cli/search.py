"""``diptych search``: words or a picture in, pictures or captions out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from diptych.cli.choices import AnswerFormat, RerankBy, Target, Thumbnails


def search(
    query: Annotated[
        list[str] | None,
        typer.Argument(help="Words, a picture file, item:ID, or several joined by + and -. None: ask one by one."),
    ] = None,
    collection: Annotated[
        Path | None, typer.Option("--collection", "-c", help="The collection; by default the one here, or the last.")
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="How many answers.")] = 10,
    target: Annotated[Target, typer.Option(help="Search pictures, or captions.")] = Target.IMAGES,
    filter: Annotated[str | None, typer.Option("--filter", help="Only some items: 'label:dog and year>=2010'.")] = None,
    hybrid: Annotated[bool, typer.Option("--hybrid", help="Also compare the words with captions.")] = False,
    exact: Annotated[bool, typer.Option("--exact", help="Compare everything, without the approximate index.")] = False,
    min_probability: Annotated[
        float | None, typer.Option(min=0, max=1, help="Leave out every answer below; replaces the cut-off.")
    ] = None,
    rerank: Annotated[
        int | None, typer.Option(min=1, help="Score so many of the nearest binary codes again, by real numbers.")
    ] = None,
    rerank_by: Annotated[
        RerankBy, typer.Option("--rerank-by", help="Score these by their codes, or by their stored features.")
    ] = RerankBy.CODES,
    show_all: Annotated[bool, typer.Option("--all", help="Show the nearest even if there is no good match.")] = False,
    offset: Annotated[int, typer.Option(min=0, help="Leave out that many answers, for the next page.")] = 0,
    format: Annotated[
        AnswerFormat, typer.Option("--format", help="auto: a table on a terminal, paths or captions in a pipe.")
    ] = AnswerFormat.AUTO,
    why: Annotated[bool, typer.Option("--why", help="Say why the first answers are there.")] = False,
    thumbnails: Annotated[
        Thumbnails, typer.Option(help="Draw small pictures; auto: where the terminal can.")
    ] = Thumbnails.AUTO,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No remarks on stderr.")] = False,
) -> None:
    """Search a collection with words, with a picture, or with both.

    A query may weigh and subtract: "2:golden retriever" + photo.jpg - snow
    """
    from diptych.cli.open_collection import open_collection
    from diptych.cli.query_words import joined_words
    from diptych.cli.search_prompt import SearchPrompt
    from diptych.cli.search_session import SearchSession
    from diptych.cli.search_settings import SearchSettings
    from diptych.collection import Filter
    from diptych.errors import InvalidInputError

    if show_all and min_probability:
        raise InvalidInputError("--all shows everything, --min-probability does not; give one of them")
    settings = SearchSettings(
        k=k,
        offset=offset,
        target=target,
        filter=None if filter is None else Filter.parse(filter),
        hybrid=hybrid,
        exact=exact,
        min_probability=0.0 if show_all else min_probability,
        rerank=rerank,
        rerank_by=rerank_by,
        format=format,
        thumbnails=thumbnails,
    )
    with open_collection(collection, quiet=quiet) as opened:
        session = SearchSession(opened, settings, quiet=quiet, why=why)
        if query:
            session.ask(joined_words(query))
            return
        prompt = SearchPrompt(session)
        if sys.stdin.isatty():
            count = opened.status().pictures
            session.say(f"{count:,} {'picture' if count == 1 else 'pictures'}; :help explains, :quit ends")
        prompt.run()
    if prompt.n_mistakes and not sys.stdin.isatty():
        raise typer.Exit(2)
