"""Methods from a file of one's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any

from diptych.errors import InvalidInputError
from diptych.models import CrossModalModel


@dataclass(frozen=True)
class Plugin:
    """A Python file with methods; its text travels to the workers, so that they need not have the file.

    >>> from diptych.benchmark.running import Plugin
    >>> text = '''
    ... import numpy as np
    ... from diptych.models import CrossModalModel
    ... class Sums(CrossModalModel):
    ...     "Compares the sums of the features."
    ...     def __init__(self, *, metric="euclidean"):
    ...         self.metric = metric
    ...     def _fit(self, images, texts, targets):
    ...         pass
    ...     def _encode_images(self, images):
    ...         return images.sum(axis=1, keepdims=True)
    ...     _encode_texts = _encode_images
    ... '''
    >>> [cls.__name__ for cls in Plugin("sums.py", text).classes()]
    ['Sums']
    """

    name: str
    text: str

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Plugin:
        """Read a file, whose code runs when its classes are asked for."""
        try:
            return cls(Path(path).name, Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as problem:
            raise InvalidInputError(f"the plugin {path} cannot be read ({problem}); name a Python file") from None

    def classes(self) -> list[type[CrossModalModel]]:
        """Run the file and return the methods that it defines, in its order."""
        module = ModuleType(f"diptych_plugin_{Path(self.name).stem}")
        try:
            exec(compile(self.text, self.name, "exec"), module.__dict__)
        except Exception as problem:
            raise InvalidInputError(f"the plugin {self.name} cannot be run: {problem!r}") from problem
        found = [
            value
            for value in vars(module).values()
            if isinstance(value, type) and issubclass(value, CrossModalModel) and value.__module__ == module.__name__
        ]
        if not found:
            raise InvalidInputError(f"the plugin {self.name} defines no subclass of diptych.models.CrossModalModel")
        return found


def plugin_grid(cls: type[CrossModalModel]) -> Sequence[Mapping[str, Sequence[Any]]]:
    """Return the settings that the class declares in an attribute ``grid``, or the single setting it has."""
    grid = getattr(cls, "grid", {})
    return [grid] if isinstance(grid, Mapping) else list(grid)
