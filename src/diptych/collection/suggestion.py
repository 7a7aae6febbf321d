"""What a query may go on with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SuggestionKind = Literal["label", "caption", "query"]


@dataclass(frozen=True)
class Suggestion:
    """A whole query, where its last words come from, and how often they occur there."""

    text: str
    kind: SuggestionKind
    count: int
