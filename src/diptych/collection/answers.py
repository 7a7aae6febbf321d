"""All answers of a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

from diptych.collection.answer import Answer


@dataclass(frozen=True)
class Answers(Sequence[Answer]):
    """The answers of a search, best first, and what can be said about all of them.

    ``no_good_match`` is true when no answer of the collection reaches the probability that counts as a match.
    ``considered`` counts the items or captions that the filter left, ``exact`` says whether all of them were compared,
    ``seconds`` is the whole time, encoding the query included. ``notes`` are remarks for the person who asked, such as
    that no item has a field of the filter. ``retriever`` is the stored name of the retriever that answered, with its
    ``fingerprint`` and ``cutoff``.
    """

    found: tuple[Answer, ...]
    no_good_match: bool
    considered: int
    exact: bool
    seconds: float
    notes: tuple[str, ...] = ()
    retriever: str = ""
    fingerprint: str = ""
    cutoff: float = 0.0

    def __len__(self) -> int:
        return len(self.found)

    @overload
    def __getitem__(self, place: int) -> Answer: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Answer, ...]: ...

    def __getitem__(self, place: int | slice) -> Answer | tuple[Answer, ...]:
        return self.found[place]
