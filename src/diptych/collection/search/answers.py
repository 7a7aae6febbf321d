"""What a search found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, overload

from diptych.collection.storage.item import Item
from diptych.encoders.image.picture_regions import PictureRegion
from diptych.encoders.image.text_in_pictures import PictureWord


@dataclass(frozen=True)
class Answer:
    """One item that a search found.

    ``score`` is the similarity in the space of the retriever, larger is better; ``probability`` the calibrated
    probability that the answer is relevant. ``caption`` is the text that was found when texts are searched, None when
    pictures are. ``matched_by`` says what brought the answer up: "points" of the space, "words" that it holds.
    ``matched_fields`` says where these stand ("caption", "file name", "label", "keyword", "text in picture", or the
    name of a metadata field), ``has_words`` that all the words are there that were looked for, and ``picture_words``
    where they stand in the picture. ``region`` is the part of the picture that answers better than the whole; None
    where the whole does, or regions were not asked for. ``item`` is the whole item as it was when it was found.
    """

    rank: int
    id: str
    path: Path | None
    score: float
    probability: float
    caption: str | None = None
    caption_id: str | None = None
    matched_by: tuple[str, ...] = ("points",)
    labels: tuple[str, ...] = ()
    metadata: Mapping[str, Any] | None = None
    matched_fields: tuple[str, ...] = ()
    has_words: bool = False
    picture_words: tuple[PictureWord, ...] = ()
    region: PictureRegion | None = None
    item: Item | None = field(default=None, repr=False, compare=False)

    @property
    def seconds(self) -> float | None:
        """Where in a video the answer is; None for what is no video."""
        return None if self.item is None else self.item.seconds


Mode = Literal["similarity", "words", "both"]
# What can be asked for, and what it is called among the options of a search.
HYBRID_OF_MODE: Mapping[str, float | bool | None] = {"auto": None, "similarity": False, "words": 1.0, "both": 0.5}


@dataclass(frozen=True)
class Answers(Sequence[Answer]):
    """The answers of a search, best first, and what can be said about all of them.

    ``no_good_match`` is true when no answer of the collection reaches the probability that counts as a match or has all
    the words that were looked for. ``mode`` says what was compared: "similarity", "words" or "both".
    ``considered`` counts the items or captions that the filter left, ``exact`` says whether all of them were compared,
    ``seconds`` includes encoding the query. ``notes`` are remarks for the person who asked. ``retriever`` is the stored
    name of the retriever that answered, with its ``fingerprint`` and ``cutoff``.
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
    mode: Mode = "similarity"

    def __len__(self) -> int:
        return len(self.found)

    @overload
    def __getitem__(self, place: int) -> Answer: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Answer, ...]: ...

    def __getitem__(self, place: int | slice) -> Answer | tuple[Answer, ...]:
        return self.found[place]
