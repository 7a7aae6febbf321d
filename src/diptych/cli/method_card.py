"""What a method says about itself, read from its class and its docstring."""

from __future__ import annotations

import inspect
import re
from dataclasses import asdict, dataclass
from typing import Any

from diptych.models import CrossModalModel, method_name

_HEADING = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)
_ENTRY = re.compile(r"^(?P<names>\S[^:\n]*?)(?: ?:[^\n]*)?\n(?P<text>(?:[ ]+[^\n]*\n?|\n)+)", re.MULTILINE)


@dataclass(frozen=True)
class Parameter:
    """One parameter of a method."""

    name: str
    default: Any
    meaning: str


@dataclass(frozen=True)
class MethodCard:
    """A method for a reader who has to choose.

    >>> from diptych.cli.method_card import MethodCard
    >>> from diptych.models import CFA
    >>> card = MethodCard.of(CFA)
    >>> card.name, card.needs_text
    ('cfa', 'pairs')
    """

    name: str
    class_name: str
    needs: tuple[str, ...]
    when_to_use: str
    summary: str
    parameters: tuple[Parameter, ...]
    reference: str

    @classmethod
    def of(cls, method: type[CrossModalModel]) -> MethodCard:
        """Read the card of a class."""
        sections = _sections(inspect.getdoc(method) or "")
        meanings = _meanings(method)
        defaults = {name: value.default for name, value in inspect.signature(method).parameters.items()}
        return cls(
            name=method_name(method),
            class_name=method.__name__,
            needs=tuple(sorted(method.needs, key=("pairs", "labels", "clicks").index)),
            when_to_use=method.when_to_use,
            summary=_one_line(sections[""].partition("\n\n")[0]),
            parameters=tuple(Parameter(name, default, meanings.get(name, "")) for name, default in defaults.items()),
            reference=_one_line(sections.get("References", "")),
        )

    @property
    def needs_text(self) -> str:
        """What the method learns from, in words."""
        return ", ".join(self.needs) or "nothing"

    def outline(self) -> dict[str, Any]:
        """Return what a list of methods shows."""
        return {
            "name": self.name,
            "class": self.class_name,
            "needs": list(self.needs),
            "when_to_use": self.when_to_use,
        }

    def detail(self) -> dict[str, Any]:
        """Return everything."""
        parameters = [asdict(parameter) for parameter in self.parameters]
        return {**self.outline(), "summary": self.summary, "parameters": parameters, "reference": self.reference}


def _sections(docstring: str) -> dict[str, str]:
    """Split a docstring at its underlined headings; what comes before the first is called ""."""
    parts = _HEADING.split(docstring)
    return dict(zip(["", *parts[1::2]], [part.strip("\n") for part in parts[0::2]], strict=True))


def _meanings(method: type[CrossModalModel]) -> dict[str, str]:
    """Return what each parameter means.

    An entry for many names at once ("as in the other method") gives way to what a base class says of fewer.
    """
    meanings: dict[str, tuple[int, str]] = {}
    for cls in reversed(method.__mro__):
        section = _sections(inspect.cleandoc(cls.__doc__ or "")).get("Parameters", "")
        for entry in _ENTRY.finditer(section + "\n"):
            names = [name.strip() for name in entry["names"].split(",")]
            for name in names:
                if name not in meanings or len(names) <= meanings[name][0]:
                    meanings[name] = len(names), _one_line(entry["text"])
    return {name: meaning for name, (_, meaning) in meanings.items()}


def _one_line(text: str) -> str:
    return " ".join(text.replace("``", "").replace("`", "").split())
