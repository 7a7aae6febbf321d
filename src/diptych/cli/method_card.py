"""What a method says about itself, read from its class and its docstring."""

from __future__ import annotations

import inspect
from dataclasses import asdict, dataclass
from typing import Any

from diptych.cli.docstrings import meanings, one_line, sections
from diptych.models import CrossModalModel, method_name


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
        described = sections(inspect.getdoc(method) or "")
        known = meanings(method)
        defaults = {name: value.default for name, value in inspect.signature(method).parameters.items()}
        return cls(
            name=method_name(method),
            class_name=method.__name__,
            needs=tuple(sorted(method.needs, key=("pairs", "labels", "clicks").index)),
            when_to_use=method.when_to_use,
            summary=one_line(described[""].partition("\n\n")[0]),
            parameters=tuple(Parameter(name, default, known.get(name, "")) for name, default in defaults.items()),
            reference=one_line(described.get("References", "")),
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
