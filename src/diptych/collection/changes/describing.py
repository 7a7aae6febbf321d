"""What the facts of photographs become in a collection: which files are read for them, and how much of it is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from diptych.collection.changes.file_facts import FileFacts, FileRequest
from diptych.collection.storage.item import PLACE_FIELDS, Item
from diptych.data.photo_facts.places import has_places, places_at
from diptych.data.photo_facts.reading import Sidecars
from diptych.errors import UnknownNameError

if TYPE_CHECKING:
    from diptych.collection.changes.adding import PendingRecord
    from diptych.encoders.image.reading_once import Square

FactsChoice = Literal["all", "no-places", "none"]
"""What a collection keeps of what photographs say: everything, everything but where they were taken, or nothing."""
FACTS_CHOICES: tuple[FactsChoice, ...] = get_args(FactsChoice)
# Read anew where it was read by an earlier one.
_READER = 1


def checked_choice(choice: str) -> FactsChoice:
    """Return a choice that there is."""
    if choice not in FACTS_CHOICES:
        raise UnknownNameError("choice of facts", choice, FACTS_CHOICES)
    return choice


def kept_facts(facts: Mapping[str, Any], choice: str) -> dict[str, Any]:
    """Return those of the facts that a collection keeps.

    >>> kept_facts({"camera": "X", "latitude": 38.7, "place": "Lisbon"}, "no-places")
    {'camera': 'X'}
    """
    dropped = {"all": (), "no-places": PLACE_FIELDS, "none": facts}[choice]
    return {name: value for name, value in facts.items() if name not in dropped}


class Describing:
    """Decides which files of one run are read for their facts, and completes what was read."""

    def __init__(self, choice: str) -> None:
        self._choice = choice
        self._sidecars = Sidecars()

    def stamp(self, path: Path) -> str:
        """Return how the facts of a picture would be read now; empty where they would not."""
        if self._choice == "none":
            return ""
        with_names = ["places"] if self._choice == "all" and has_places() else []
        return "|".join([f"{_READER} {self._choice}", *with_names, *(stamp for _, stamp in self._sidecars.of(path))])

    def is_due(self, path: Path, item: Item) -> bool:
        """Say whether the facts of a stored picture were never read, or in another way than now."""
        return item.facts_read != self.stamp(path)

    def requests(self, batch: Sequence[PendingRecord], squares: tuple[Square, ...] = ()) -> list[FileRequest]:
        """Return what is to be read of the files of a batch; of known content, the facts alone."""
        return [
            FileRequest(
                work.path,
                tuple(sidecar for sidecar, _ in self._sidecars.of(work.path)),
                work.known.content_hash if work.known and work.for_facts else None,
                squares,
            )
            for work in batch
            if work.path and work.reads
        ]

    def completed(self, read: Sequence[Any]) -> list[Any]:
        """Return what was read of files, with names of places where coordinates are, and without what is not kept."""
        found = [one for one in read if isinstance(one, FileFacts) and self._choice == "all" and "latitude" in one.said]
        latitudes, longitudes = ([one.said[name] for one in found] for name in ("latitude", "longitude"))
        names: dict[int, dict[str, str]] = {}
        for one, place in zip(found, places_at(latitudes, longitudes), strict=True):
            if place is not None:
                named = {"place": place.name, "region": place.region, "country": place.country}
                names[id(one)] = {name: text for name, text in named.items() if text}
        return [
            # What people wrote into the file is nearer to the truth than the nearest town.
            replace(one, said=kept_facts({**names.get(id(one), {}), **one.said}, self._choice))
            if isinstance(one, FileFacts)
            else one
            for one in read
        ]
