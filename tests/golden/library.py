"""The one place where the golden tests touch the library: it makes the collections and asks them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diptych import Retriever
from diptych.collection import Collection, Filter, Record
from diptych.data import load_dataset
from diptych.errors import DiptychError

N_PHOTOGRAPHS = 240
# Texts without a picture, then photographs that are only asked with.
N_TEXTS, N_ASKED = 20, 20
# Thirteen parts of each of these are encoded as well.
N_WITH_REGIONS = 8
LABELS = ("ball", "beach", "boy", "child", "dog", "girl", "grass", "man", "snow", "street", "water", "woman")
CAMERAS = ("Pixel 6", "Canon EOS 5D", "X T")
# Latitude and longitude: Lisbon, Prague, Sintra.
PLACES = ((38.72, -9.14), (50.09, 14.42), (38.80, -9.38))
ALBUM = "Dogs outside"


@dataclass(frozen=True)
class Found:
    """One answer: the id of an item or ``id#caption``, its numbers, and where it matches."""

    id: str
    probability: float
    score: float
    place: str = ""


@dataclass(frozen=True)
class Reply:
    """All that a search returns, without times; ``error`` instead of answers where it was refused."""

    answers: Sequence[Found] = ()
    mode: str = ""
    no_good_match: bool = False
    cutoff: float = 0.0
    considered: int = 0
    notes: Sequence[str] = ()
    error: str = ""


@dataclass(frozen=True)
class Photographs:
    """The collections, by their names, and how many searches they have answered."""

    folder: Path
    collections: dict[str, Collection]

    def close(self) -> None:
        """Close every collection."""
        for collection in self.collections.values():
            collection.close()

    def ask(self, name: str, query: str, options: dict[str, Any]) -> Reply:
        """Search a collection; ``<250>`` in a query is the file of photograph 250, which is not in a collection."""
        words = re.sub(r"<(\d+)>", lambda number: str(self.folder / "asked" / f"{number[1]}.jpg"), query)
        collection = self.collections[name]
        try:
            answers = collection.search(words, **options)
        except DiptychError as error:
            return Reply(error=str(error).replace(str(self.folder), "FOLDER"))
        return Reply(
            answers=[_found(answer) for answer in answers],
            mode=answers.mode,
            no_good_match=answers.no_good_match,
            cutoff=round(answers.cutoff, 4),
            considered=answers.considered,
            notes=[note.replace(str(self.folder), "FOLDER") for note in answers.notes],
        )


def _found(answer: Any) -> Found:
    number = "" if answer.caption is None else f"#{answer.item.captions.index(answer.caption)}"
    places = [*answer.matched_fields, *([answer.region.place] if answer.region else [])]
    return Found(answer.id + number, round(answer.probability, 4), round(answer.score, 4), ", ".join(places))


def make_photographs(folder: Path, place_of: Callable[[str], Path | str] | None = None) -> Photographs:
    """Index photographs with the default retriever, in float32: captions, labels, dates, places, an album.

    ``place_of`` gives the place of the collection of a name, by default a folder.
    """
    place_of = place_of or folder.joinpath
    pairs = load_dataset("flickr8k").test.select(range(N_PHOTOGRAPHS + N_TEXTS + N_ASKED))
    captions: list[list[str]] = [[] for _ in pairs.images]
    for owner, caption in zip(pairs.owners.tolist(), pairs.texts, strict=True):
        captions[owner].append(caption)
    (folder / "asked").mkdir(parents=True)
    for number in range(N_PHOTOGRAPHS + N_TEXTS, len(pairs.images)):
        shutil.copyfile(pairs.images[number], folder / "asked" / f"{number}.jpg")
    records = [_record(folder, number, pairs.images[number], captions[number]) for number in range(N_PHOTOGRAPHS)]
    texts = [
        Record(id=f"{number}", captions=captions[number][:2], labels=["text"], metadata={"rating": number % 5 + 1})
        for number in range(N_PHOTOGRAPHS, N_PHOTOGRAPHS + N_TEXTS)
    ]
    retriever = Retriever.ready_made("default")
    collections = {
        "photographs": Collection.create(place_of("whole"), retriever, root=folder),
        "regions": Collection.create(place_of("parts"), retriever, root=folder),
    }
    made = collections["photographs"]
    made.add([*records, *texts])
    made.albums.add(ALBUM, Filter.parse("label:dog and label:grass"))
    collections["regions"].add(records[:: N_PHOTOGRAPHS // N_WITH_REGIONS])
    collections["regions"].add_regions()
    return Photographs(folder, collections)


def _record(folder: Path, number: int, source: Path, captions: Sequence[str]) -> Record:
    """Describe a photograph: every second has a caption, every tenth five; labels are words of the first one."""
    year = 2015 + number % 6
    path = folder / f"{year}" / f"photo-{number:03}.jpg"
    path.parent.mkdir(exist_ok=True)
    shutil.copyfile(source, path)
    words = captions[0].lower().split()
    metadata: dict[str, Any] = {
        "taken": f"{year}-{number % 12 + 1:02}-{number % 28 + 1:02}",
        "camera": CAMERAS[number % len(CAMERAS)],
        "rating": number % 5 + 1,
    }
    if number % 4 == 0:
        latitude, longitude = PLACES[number // 4 % len(PLACES)]
        metadata |= {"latitude": latitude, "longitude": longitude}
    return Record(
        path,
        id=f"{number:03}",
        captions=captions if number % 10 == 0 else captions[: 1 - number % 2],
        labels=[label for label in LABELS if label in words],
        metadata=metadata,
    )


def openapi(folder: Path) -> dict[str, Any]:
    """Return the OpenAPI document of a service, without the version; errors, which are all alike, in one table."""
    from diptych.service.api.openapi import openapi_document
    from diptych.service.app import create_app
    from diptych.service.settings import Settings

    document = openapi_document(create_app(Settings(collections={"photographs": folder})))
    del document["info"]["version"]
    # It is named after the collections.
    document["components"]["securitySchemes"]["page"]["name"] = "diptych_SESSION"
    errors: dict[str, set[str]] = {}
    for operation in (operation for path in document["paths"].values() for operation in path.values()):
        responses = operation["responses"]
        refused = [
            status for status, each in responses.items() if "application/problem+json" in each.get("content", ())
        ]
        for status in refused:
            errors.setdefault(status, set()).add(responses.pop(status)["description"])
        operation["errors"] = " ".join(sorted(refused))
    document["errors"] = {status: sorted(meanings) for status, meanings in errors.items()}
    return document
