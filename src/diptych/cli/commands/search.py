"""``diptych search``: words or a picture in, pictures or captions out, once or one query after another."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diptych.cli.console.paths import find_collection, open_collection, say_which
from diptych.cli.options import (
    AnswerFormat,
    CollectionOption,
    Device,
    DeviceOption,
    JsonOption,
    NoRemarksOption,
    RerankBy,
    SearchMode,
    Target,
    Thumbnails,
)
from diptych.errors import DiptychError, InvalidInputError, UnknownNameError, counted

if TYPE_CHECKING:
    from diptych.cli.commands.search_session import SearchSession, SearchSettings
    from diptych.collection import Filter

_SECONDS_TO_FAIL = 2.0
_KEPT_LINES = 1000


def search(
    query: Annotated[
        list[str] | None,
        typer.Argument(
            help="Words, a picture file, item:ID, or several joined by + and -. None: read queries one by one."
        ),
    ] = None,
    collection: CollectionOption = None,
    k: Annotated[int, typer.Option("-k", min=1, help="How many answers.")] = 10,
    target: Annotated[Target, typer.Option(help="Search pictures, or captions.")] = Target.IMAGES,
    filter: Annotated[str | None, typer.Option("--filter", help="Only some items: 'label:dog and year>=2010'.")] = None,
    mode: Annotated[
        SearchMode,
        typer.Option(
            help="Look for what the query means (similarity), for its words in captions, names, keywords and pictures, "
            "or for both; auto: by meaning, and names, numbers and quoted words by their words."
        ),
    ] = SearchMode.AUTO,
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
    ] = RerankBy.CODES,
    show_all: Annotated[bool, typer.Option("--all", help="Show the nearest even if there is no good match.")] = False,
    offset: Annotated[int, typer.Option(min=0, help="Leave out that many answers, for the next page.")] = 0,
    format: Annotated[
        AnswerFormat, typer.Option("--format", help="auto: a table on a terminal, paths or captions in a pipe.")
    ] = AnswerFormat.AUTO,
    as_json: JsonOption = False,
    why: Annotated[bool, typer.Option("--why", help="Explain the first answers.")] = False,
    thumbnails: Annotated[
        Thumbnails, typer.Option(help="Draw small pictures; auto: where the terminal can.")
    ] = Thumbnails.AUTO,
    as_of: Annotated[
        str | None,
        typer.Option(
            metavar="VERSION|DAY", help="The collection as it was: a number of `diptych history`, or 2026-11-01 (UTC)."
        ),
    ] = None,
    local: Annotated[
        bool, typer.Option("--local", help="Search in this process even where `diptych serve` has the collection open.")
    ] = False,
    device: DeviceOption = Device.AUTO,
    quiet: NoRemarksOption = False,
) -> None:
    """Search a collection with words, with a picture, or with both.

    A query may weigh and subtract: "2:golden retriever" + photo.jpg - snow
    """
    from diptych.cli.commands.search_session import SearchSession, SearchSettings

    if as_json:
        format = AnswerFormat.JSON
    if hybrid and mode not in (SearchMode.AUTO, SearchMode.BOTH):
        raise InvalidInputError(f"--hybrid is --mode both, but --mode {mode} is asked for; give one of them")
    if show_all and min_probability:
        raise InvalidInputError("--all shows everything, --min-probability does not; give one of them")
    settings = SearchSettings(
        k=k,
        offset=offset,
        target=target,
        filter=None if filter is None else _parsed(filter),
        mode=SearchMode.BOTH if hybrid else mode,
        exact=exact,
        min_probability=0.0 if show_all else min_probability,
        regions=not no_regions,
        rerank=rerank,
        rerank_by=rerank_by,
        format=format,
        thumbnails=thumbnails,
    )
    if query and not (why or local or as_of):
        _search_once(joined_words(query), collection, settings, quiet=quiet)
        return
    with open_collection(collection, quiet=quiet, as_of=as_of) as opened:
        session = SearchSession(opened, settings, quiet=quiet, why=why)
        if opened.as_of is not None:
            session.note(f"as of {opened.as_of.time}, version {opened.as_of.number}, {counted(len(opened), 'item')}")
        if query:
            session.search(joined_words(query))
            return
        prompt = SearchPrompt(session)
        if sys.stdin.isatty():
            session.note(f"{counted(opened.status().pictures, 'picture')}; :help explains, :quit ends")
        prompt.run()
    if prompt.n_mistakes and not sys.stdin.isatty():
        raise typer.Exit(2)


def _parsed(filter: str) -> Filter:
    from diptych.collection import Filter

    return Filter.parse(filter)


def _search_once(words: str, named: Path | None, settings: SearchSettings, *, quiet: bool) -> None:
    """Answer one query, by the service that has the collection open if there is one."""
    from diptych.cli.commands.search_session import SearchSession
    from diptych.cli.commands.served_collection import ServedCollection

    place = find_collection(named)
    say_which(place, quiet=quiet)
    with closing(ServedCollection(place.folder, lambda: open_collection(place.folder))) as asked:
        SearchSession(asked, settings, quiet=quiet).search(words)


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


def open_in_viewer(path: Path) -> None:
    """Open a picture as a double click would, without waiting for the program to end."""
    if not path.is_file():
        raise InvalidInputError(f"{path} is no longer there; bring the collection up to date with: diptych index")
    if sys.platform == "win32":
        os.startfile(path)
        return
    program = "open" if sys.platform == "darwin" else "xdg-open"
    try:
        started = subprocess.Popen(
            [program, os.fspath(path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        failed = started.wait(_SECONDS_TO_FAIL) != 0
    except subprocess.TimeoutExpired:
        # It is still running, so it is showing the picture.
        failed = False
    except OSError:
        failed = True
    if failed:
        raise InvalidInputError(f"no program for pictures was found here; the file is {path}")


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


class SearchPrompt:
    """Reads queries and commands, from a person or a pipe; a mistake costs one line, ``n_mistakes`` counts them."""

    def __init__(self, session: SearchSession) -> None:
        self.session = session
        self.session.ask_for_all = ":all on"
        self.n_mistakes = 0
        self._commands: dict[str, Callable[[str], object]] = {
            "k": self._set_k,
            "filter": self._set_filter,
            "target": self._set_target,
            "mode": self._set_mode,
            "hybrid": lambda words: self._change(
                mode=SearchMode.BOTH if _switch(words, ":hybrid") else SearchMode.SIMILARITY
            ),
            "all": lambda words: self._change(min_probability=0.0 if _switch(words, ":all") else None),
            "more": lambda _: session.more(),
            "like": lambda words: session.like(_number(words)),
            "unlike": lambda words: session.unlike(_number(words)),
            "open": self._open,
            "help": lambda _: session.note(HELP),
        }

    def run(self) -> None:
        """Read until the end of input or ``:quit``."""
        for line in self._lines():
            words = line.strip()
            if words in (":quit", ":q", ":exit"):
                return
            if words:
                self._answer(words)

    def _answer(self, words: str) -> None:
        try:
            if words.startswith(":"):
                self._command(words)
            else:
                self.session.search(words)
        except DiptychError as error:
            self.n_mistakes += 1
            typer.echo(f"error: {' '.join(str(error).split())}", err=True)
        except KeyboardInterrupt:
            typer.echo("stopped", err=True)

    def _command(self, words: str) -> None:
        name, _, rest = words[1:].partition(" ")
        if name not in self._commands:
            raise UnknownNameError("command", f":{name}", [*(f":{known}" for known in self._commands), ":quit"])
        self._commands[name](rest.strip())

    def _set_k(self, words: str) -> None:
        k = _number(words)
        if k < 1:
            raise InvalidInputError(f":k takes a number from 1 on, got {k}")
        self._change(k=k)

    def _set_filter(self, words: str) -> None:
        from diptych.collection import Filter

        self._change(filter=Filter.parse(words) if words else None)

    def _set_target(self, words: str) -> None:
        if words not in list(Target):
            raise UnknownNameError("target", words, list(Target))
        self._change(target=Target(words))

    def _set_mode(self, words: str) -> None:
        if words not in list(SearchMode):
            raise UnknownNameError("mode", words, list(SearchMode))
        self._change(mode=SearchMode(words))

    def _change(self, **settings: Any) -> None:
        """Set something, and ask the last query again if there is one."""
        self.session.settings = replace(self.session.settings, **settings)
        if self.session.query is not None:
            self.session.search(self.session.query)

    def _open(self, words: str) -> None:
        path = self.session.answer(_number(words)).path
        if path is None:
            raise InvalidInputError("that answer is a text without a picture")
        open_in_viewer(path)

    def _lines(self) -> Iterator[str]:
        if not sys.stdin.isatty():
            # Line by line, not the stream itself: giving up early would close it.
            yield from iter(sys.stdin.readline, "")
            return
        with _line_history():
            while True:
                try:
                    yield input("search> ")
                except KeyboardInterrupt:
                    # As in a shell: the line is given up, not the program.
                    typer.echo(err=True)
                except EOFError:
                    typer.echo(err=True)
                    return


def _number(words: str) -> int:
    try:
        return int(words)
    except ValueError:
        raise InvalidInputError(f"a number is needed here, such as 3; got {words!r}") from None


def _switch(words: str, command: str) -> bool:
    if words not in ("on", "off", ""):
        raise InvalidInputError(f"{command} takes on or off, got {words!r}")
    return words != "off"


@contextmanager
def _line_history() -> Iterator[None]:
    """Let the arrow keys bring back earlier lines, where Python was built with readline."""
    from diptych.data.folders import cache_folder

    try:
        import readline
    except ImportError:
        yield
        return
    with suppress(OSError):
        readline.read_history_file(cache_folder() / "search-history")
    try:
        yield
    finally:
        # Forgetting the lines is better than ending with an error.
        with suppress(OSError):
            cache_folder().mkdir(parents=True, exist_ok=True)
            readline.set_history_length(_KEPT_LINES)
            readline.write_history_file(cache_folder() / "search-history")
