"""Queries for painted scenes, and what their answers have to show."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from diptych.data.datasets.scenes import CLASS_NAMES, COLOURS, TEXTURES, Scene, SceneObject
from diptych.data.datasets.scenes.composition import SIZES

QUERIES = Path(__file__).with_name("scene_queries.tsv")
RECALL_BAR = 0.95
_LOOKS = {"kind": CLASS_NAMES, "colour": tuple(COLOURS), "texture": TEXTURES, "size": tuple(SIZES)}


class SceneQuery(NamedTuple):
    """A query and what its answers have to show: a place, None for any, and things in words such as ``2 red ball``."""

    words: str
    place: str | None
    things: tuple[str, ...]

    def is_answered_by(self, scene: Scene) -> bool:
        """Say whether a scene shows everything that is asked for."""
        return self.place in (None, scene.background) and all(_shows(scene, thing) for thing in self.things)


def read_queries() -> list[SceneQuery]:
    """Read the queries from the file beside this program."""
    with QUERIES.open(encoding="utf-8", newline="") as file:
        return [
            SceneQuery(
                row["query"],
                None if row["place"] == "-" else row["place"],
                tuple(part for part in row["things"].split("; ") if part),
            )
            for row in csv.DictReader(file, delimiter="\t")
        ]


def _shows(scene: Scene, thing: str) -> bool:
    words = thing.split()
    number = int(words.pop(0)) if words[0].isdigit() else None
    count = sum(all(_is(each, word) for word in words) for each in scene.objects)
    return count > 0 if number is None else count == number


def _is(thing: SceneObject, word: str) -> bool:
    look = next(name for name, values in _LOOKS.items() if word in values)
    return bool(getattr(thing, look) == word)


def is_right(query: SceneQuery, ranked: Sequence[Scene], among: Sequence[Scene]) -> bool:
    """Say whether the first three answers, or as many as exist, show what is asked for."""
    existing = sum(query.is_answered_by(scene) for scene in among)
    if existing == 0:
        raise ValueError(f"nothing is painted that answers {query.words!r}")
    return all(query.is_answered_by(scene) for scene in ranked[: min(3, existing)])


def descriptions(scenes: Sequence[Scene]) -> list[str]:
    """Return the five captions of each scene as one text."""
    return [" ".join(scene.captions) for scene in scenes]
