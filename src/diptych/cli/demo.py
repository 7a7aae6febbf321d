"""``diptych demo``: a collection to try searching with."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from diptych.cli.choices import AnswerFormat, DemoData


def demo(
    data: Annotated[
        DemoData, typer.Option(help="Which pictures; auto: photographs if they are on this machine, else scenes.")
    ] = DemoData.AUTO,
    everything: Annotated[
        bool, typer.Option("--all", help="All photographs instead of the 1,000 of the test part.")
    ] = False,
    page: Annotated[bool, typer.Option(help="Serve the web page at the end.")] = True,
    terminal: Annotated[bool, typer.Option("--terminal", help="Search in the terminal instead of the page.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False,
) -> None:
    """Index a demonstration collection, show three searches, and open a page to search it."""
    from diptych.cli.collection_place import last_collection, remember
    from diptych.cli.demo_choice import choose_demo
    from diptych.cli.demo_page import serve_page
    from diptych.cli.search_prompt import SearchPrompt
    from diptych.cli.search_session import SearchSession
    from diptych.cli.search_settings import SearchSettings
    from diptych.cli.serve_packages import check_packages
    from diptych.cli.stages import Stages
    from diptych.cli.terminal import results

    stages = Stages(quiet=quiet)
    shown = choose_demo(data, stages, everything=everything)
    # Someone's own collection stays the one that commands mean.
    is_own = last_collection() in (None, shown.folder.resolve())
    console = results()
    with shown.open(stages) as collection:
        if is_own:
            remember(shown.folder)
        console.print(f"{shown.title}: {collection.status().pictures:,} pictures", style="bold", soft_wrap=True)
        option = "" if is_own else f" --collection {shown.folder}"
        session = SearchSession(collection, SearchSettings(k=3, format=AnswerFormat.TABLE), quiet=quiet)
        for query in shown.examples:
            console.print(f"\n$ diptych search '{query}' -k 3{option}\n", style="bold", soft_wrap=True)
            session.ask(query)
        if terminal and sys.stdin.isatty() and console.is_terminal:
            console.print("\nYour turn; :help explains, :quit ends.", style="bold")
            session = SearchSession(collection, SearchSettings(), quiet=quiet)
            SearchPrompt(session).run()
    console.print("\nGo on:", style="bold")
    for command in (
        f"diptych search 'your words'{option}",
        f"diptych search photo.jpg{option}",
        "diptych index FOLDER",
        "diptych serve FOLDER",
    ):
        console.print(f"  {command}", soft_wrap=True)
    if page and not terminal:
        check_packages()
        is_watched = sys.stdin.isatty() and console.is_terminal
        serve_page(shown.name, shown.folder.absolute(), open_page=is_watched, quiet=quiet)
