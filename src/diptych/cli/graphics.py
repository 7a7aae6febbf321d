"""What kind of pictures a terminal can show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from rich.console import Console

from diptych.cli.choices import Thumbnails

Graphics = Literal["kitty", "iterm2", "blocks"]

_ITERM2_PROGRAMS = ("iTerm.app", "WezTerm", "mintty")


def choose_graphics(choice: Thumbnails, console: Console, environment: Mapping[str, str]) -> Graphics | None:
    """Return how to draw pictures on a console, or None when they should not or cannot be drawn.

    Terminals do not answer reliably when asked, so the environment decides: kitty's and iTerm2's graphics where these
    terminals announce themselves, otherwise blocks of two colours per letter, which any colour terminal can do. Left to
    itself, it wants a terminal of 16 million colours for those. What is piped never gets a picture.

    >>> from rich.console import Console
    >>> from diptych.cli.choices import Thumbnails
    >>> from diptych.cli.graphics import choose_graphics
    >>> console = Console(force_terminal=True, color_system="truecolor")
    >>> choose_graphics(Thumbnails.AUTO, console, {"TERM": "xterm-kitty"})
    'kitty'
    >>> choose_graphics(Thumbnails.AUTO, console, {"TERM": "xterm"})
    'blocks'
    >>> choose_graphics(Thumbnails.NEVER, console, {"TERM": "xterm-kitty"})
    """
    if choice is Thumbnails.NEVER or not console.is_terminal or console.is_dumb_terminal:
        return None
    if not _is_nested(environment):
        if "KITTY_WINDOW_ID" in environment or environment.get("TERM") in ("xterm-kitty", "xterm-ghostty"):
            return "kitty"
        if environment.get("TERM_PROGRAM") in _ITERM2_PROGRAMS or environment.get("LC_TERMINAL") == "iTerm2":
            return "iterm2"
    if console.no_color or console.color_system is None:
        return None
    return "blocks" if choice is Thumbnails.ALWAYS or console.color_system == "truecolor" else None


def _is_nested(environment: Mapping[str, str]) -> bool:
    """Say whether a multiplexer sits in between, which swallows graphics and inherits the outer terminal's names."""
    return "TMUX" in environment or "STY" in environment or environment.get("TERM", "").startswith(("screen", "tmux"))
