"""One part of a query."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from diptych.errors import InvalidInputError


@dataclass(frozen=True, eq=False)
class Term:
    """Words, a picture or a stored item, with a weight; a negative weight asks for what is unlike it."""

    kind: Literal["text", "picture", "item"]
    value: Any
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not np.isfinite(self.weight) or self.weight == 0:
            raise InvalidInputError(f"the weight of a query term is a number other than 0, got {self.weight}")
        if self.kind in ("text", "item") and (not isinstance(self.value, str) or not self.value.strip()):
            raise InvalidInputError(f"a query term needs {'words' if self.kind == 'text' else 'an id'}, got nothing")

    def __str__(self) -> str:
        weight = "" if abs(self.weight) == 1 else f"{abs(self.weight):g}:"
        if self.kind == "item":
            return f"{weight}item:{self.value}"
        if self.kind == "text" or isinstance(self.value, (str, os.PathLike)):
            return f"{weight}{os.fspath(self.value)}"
        return f"{weight}(picture)"
