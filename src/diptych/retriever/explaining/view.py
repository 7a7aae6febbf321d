"""One way to look at a match."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from diptych.retriever.explaining.contribution import Contribution

ViewKind = Literal["parts", "classes", "labels", "words", "pairs"]


@dataclass(frozen=True)
class View:
    """The bars of one idea, a sentence that sums them up, and what they leave out.

    ``bars`` of words come in the order of the text, all others with the weightiest first. Where ``additive``, the bars
    and the ``remainder`` (what was not worth a bar of its own) sum to the score; elsewhere the remainder is None.
    """

    kind: ViewKind
    title: str
    sentence: str
    bars: tuple[Contribution, ...]
    note: str
    remainder: float | None = None

    @property
    def additive(self) -> bool:
        """Whether bars and remainder sum to the score."""
        return self.remainder is not None

    @property
    def weight(self) -> float:
        """How much of the score the bars speak about."""
        return sum(abs(bar.contribution) for bar in self.bars)

    def document(self) -> dict[str, Any]:
        """Return the view as plain values."""
        return {
            "kind": self.kind,
            "title": self.title,
            "sentence": self.sentence,
            "bars": [bar.document() for bar in self.bars],
            "additive": self.additive,
            "remainder": self.remainder,
            "note": self.note,
        }
