"""A console whose reader may leave early."""

from __future__ import annotations

from typing import NoReturn

from rich.console import Console


class ResultConsole(Console):
    """Prints to a stream that may be closed from the other side, as ``head`` does.

    Rich would end the process with an error status; here the program decides, see
    :class:`~diptych.cli.command_group.CommandGroup`.
    """

    def on_broken_pipe(self) -> NoReturn:
        """Pass the news on."""
        raise BrokenPipeError
