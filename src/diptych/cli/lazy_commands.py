"""Commands that are a name and a line of help until they are used, so that asking for help imports none of them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command


def _without_types_of_flags(parameters: list[Any]) -> list[Any]:
    """Return parameters whose flags show no type in the help: nobody types a value after them."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters


class _Command(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return _without_types_of_flags(super().get_params(ctx))


class LazyCommand(TyperCommand):
    """Stands for a function of the command line, ``module:function`` under ``diptych.cli``, until it is called."""

    def __init__(self, name: str, source: str, summary: str, panel: str | None = None) -> None:
        super().__init__(name, help=summary, rich_help_panel=panel)
        self._source = source

    @cached_property
    def loaded(self) -> Any:
        """The command itself."""
        module, _, function = self._source.partition(":")
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        alone.command(self.name, cls=_Command)(getattr(import_module(f"diptych.cli.{module}"), function))
        return get_command(alone)

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Return the context of the command itself."""
        return self.loaded.make_context(info_name, args, parent=parent, **extra)


class LazyGroup(TyperGroup):
    """A group of commands; called without one, it explains itself."""

    def __init__(self, *, lazy: Iterable[TyperCommand | TyperGroup] = (), **options: Any) -> None:
        super().__init__(**options)
        self.commands.update({str(command.name): command for command in lazy})

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options as the help shows them."""
        return _without_types_of_flags(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Ask for help where nothing is asked for."""
        return super().parse_args(ctx, args if args or ctx.resilient_parsing else ["--help"])


class DefaultCommandGroup(LazyGroup):
    """Takes what is not a command for arguments of its first one: ``bench wikipedia`` runs ``bench task wikipedia``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the name of the command first where it was left out."""
        asks_for_help = bool(args) and all(word in ("-h", "--help") for word in args)
        completes_name = ctx.resilient_parsing and not args
        if not (asks_for_help or completes_name or (args and args[0] in self.commands)):
            args = [next(iter(self.commands)), *args]
        return super().parse_args(ctx, args)


_WITH_DEFAULT = ("bench", "datasets")


@cache
def lazy_commands() -> tuple[TyperCommand | TyperGroup, ...]:
    """Return the commands and groups of ``commands.tsv``; a line there without a function is a group."""
    lines = Path(__file__).with_name("commands.tsv").read_text(encoding="utf-8").splitlines()[1:]
    members: dict[str, list[TyperCommand | TyperGroup]] = {}
    # From the last: the commands of a group come after it.
    for panel, words, source, summary in reversed([line.split("\t") for line in lines]):
        group, _, name = words.rpartition(" ")
        if source:
            command: TyperCommand | TyperGroup = LazyCommand(name, source, summary, panel or None)
        else:
            kind = DefaultCommandGroup if name in _WITH_DEFAULT else LazyGroup
            command = kind(name=name, help=summary, rich_help_panel=panel or None, lazy=members[words])
        members.setdefault(group, []).insert(0, command)
    return tuple(members[""])
