"""Searching by typing one query after another."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from types import ModuleType

import typer

from diptych.cli.choices import Target
from diptych.cli.search_session import SearchSession
from diptych.cli.viewer import show
from diptych.collection import Filter
from diptych.data.folders import cache_folder
from diptych.errors import DiptychError, InvalidInputError, UnknownNameError

_PROMPT = "search> "
_KEPT_LINES = 1000

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
:hybrid on, :all on    also by the words of captions; also below the cut-off
:help, :quit"""


class SearchPrompt:
    """Reads queries and commands, from a person or, one per line, from a pipe.

    A mistake costs one line and the next query is read; ``n_mistakes`` counts them.
    """

    def __init__(self, session: SearchSession) -> None:
        self.session = session
        self.session.ask_for_all = ":all on"
        self.n_mistakes = 0
        self._commands: dict[str, Callable[[str], object]] = {
            "k": self._set_k,
            "filter": self._set_filter,
            "target": self._set_target,
            "hybrid": self._set_hybrid,
            "all": self._set_all,
            "more": lambda _: session.more(),
            "like": lambda words: session.like(_number(words)),
            "unlike": lambda words: session.unlike(_number(words)),
            "open": self._open,
            "help": lambda _: session.say(HELP),
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
                self.session.ask(words)
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
        self._change(filter=Filter.parse(words) if words else None)

    def _set_target(self, words: str) -> None:
        if words not in list(Target):
            raise UnknownNameError("target", words, list(Target))
        self._change(target=Target(words))

    def _set_hybrid(self, words: str) -> None:
        self._change(hybrid=_switch(words, ":hybrid"))

    def _set_all(self, words: str) -> None:
        self._change(min_probability=0.0 if _switch(words, ":all") else None)

    def _change(self, **settings: object) -> None:
        """Set something, and ask the last query again if there is one."""
        self.session.settings = replace(self.session.settings, **settings)  # type: ignore[arg-type]
        if self.session.query is not None:
            self.session.ask(self.session.query)

    def _open(self, words: str) -> None:
        path = self.session.answer(_number(words)).path
        if path is None:
            raise InvalidInputError("that answer is a text without a picture")
        show(path)

    def _lines(self) -> Iterator[str]:
        if not sys.stdin.isatty():
            # Line by line, not the stream itself: giving up early would close it.
            yield from iter(sys.stdin.readline, "")
            return
        history = _history()
        try:
            while True:
                try:
                    yield input(_PROMPT)
                except KeyboardInterrupt:
                    # As in a shell: the line is given up, not the program.
                    typer.echo(err=True)
        except EOFError:
            typer.echo(err=True)
        finally:
            _keep(history)


def _number(words: str) -> int:
    try:
        return int(words)
    except ValueError:
        raise InvalidInputError(f"a number is needed here, such as 3; got {words!r}") from None


def _switch(words: str, command: str) -> bool:
    if words not in ("on", "off", ""):
        raise InvalidInputError(f"{command} takes on or off, got {words!r}")
    return words != "off"


def _history() -> ModuleType | None:
    """Let the arrow keys bring back earlier lines, where Python was built with readline."""
    try:
        import readline
    except ImportError:
        return None
    with suppress(OSError):
        readline.read_history_file(cache_folder() / "search-history")
    return readline


def _keep(readline: ModuleType | None) -> None:
    if readline is None:
        return
    # Forgetting the lines is better than ending with an error.
    with suppress(OSError):
        cache_folder().mkdir(parents=True, exist_ok=True)
        readline.set_history_length(_KEPT_LINES)
        readline.write_history_file(cache_folder() / "search-history")
