"""Where items are, as filters ask: around a place, around coordinates, between two corners."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from diptych.arrays import BoolArray
from diptych.data.photo_facts.places import distance_km, find_place
from diptych.errors import InvalidInputError

GEOGRAPHIC_FIELDS = ("near", "within")
"""Fields of filters that no item has: they compare its ``latitude`` and ``longitude``."""
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
