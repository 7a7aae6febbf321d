"""Fifty photographs with known dates, cameras and places: every filter finds exactly what it should."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from PIL.TiffImagePlugin import IFDRational

from diptych.collection import Collection, Filter, Record
from diptych.collection.root import trust_root
from diptych.errors import InvalidInputError, UnknownNameError
from tests.doubles import ToyRetriever

CAMERAS = (("Google", "Pixel 6"), ("Canon", "Canon EOS 5D"), ("Apple", "iPhone 12"), ("Google", "Pixel 6 Pro"))
# Both sides of the date line, both poles, and neighbours at several distances.
PLACES = (
    (38.7223, -9.1393),
    (38.8029, -9.3817),
    (41.1579, -8.6291),
    (-16.8, 179.95),
    (-16.8, -179.95),
    (89.9, 0.0),
    (89.9, 179.0),
    (-90.0, 12.0),
    (52.52, 13.405),
    (0.0, -179.9999),
)
NAMED = {0: "Lisbon", 1: "Sintra", 2: "Porto"}


@dataclass(frozen=True)
class Photo:
    name: str
    taken: datetime
    zone: str
    camera: str
    latitude: float
    longitude: float
    rating: int
    keywords: tuple[str, ...]


def make_photo(folder: Path, number: int) -> Photo:
    rng = np.random.default_rng(number)
    taken = datetime(2004, 1, 1) + timedelta(seconds=int(rng.integers(20 * 365 * 86400)))
    zone, (make, model) = ("", "+02:00", "-09:30")[number % 3], CAMERAS[number % len(CAMERAS)]
    latitude, longitude = PLACES[number % len(PLACES)]
    rating, keywords = number % 6, ("holiday", "beach")[: number % 3]
    exif = Image.Exif()
    exif[0x010F], exif[0x0110], exif[0x4746] = make, model, rating
    exif[0x9C9E] = ";".join(keywords).encode("utf-16-le")
    inner = exif.get_ifd(0x8769)
    inner[0x9003] = f"{taken:%Y:%m:%d %H:%M:%S}"
    if zone:
        inner[0x9011] = zone
    gps = exif.get_ifd(0x8825)
    gps[1], gps[2] = "S" if latitude < 0 else "N", degrees(latitude)
    gps[3], gps[4] = "W" if longitude < 0 else "E", degrees(longitude)
    name = f"{number:02}.jpg"
    picture = Image.new("RGB", (8, 6), (number * 5, 255 - number * 5, 90))
    picture.save(folder / name, exif=exif)
    camera = model if model.startswith(make) else f"{make} {model}"
    return Photo(name, taken, zone, camera, latitude, longitude, rating, keywords)


def degrees(number: float) -> tuple[IFDRational, ...]:
    whole, minutes = divmod(round(abs(number) * 36_000_000), 36_000_000)
    minutes, seconds = divmod(minutes, 600_000)
    return IFDRational(whole), IFDRational(minutes), IFDRational(seconds, 10_000)


class CountingRetriever(ToyRetriever):
    encoded = 0

    def stream_image_features(self, items):  # type: ignore[no-untyped-def]
        CountingRetriever.encoded += len(items)
        return super().stream_image_features(items)


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Photo]]:
    folder = tmp_path_factory.mktemp("fifty")
    return folder, [make_photo(folder, number) for number in range(50)]


@pytest.fixture(scope="module")
def collection(photos: tuple[Path, list[Photo]]) -> Iterator[Collection]:
    with Collection.create(photos[0] / ".diptych", CountingRetriever(), load_retriever=CountingRetriever.load) as made:
        assert made.add(photos[0]).added == 50
        yield made


def found(collection: Collection, wanted: str) -> set[str]:
    return {str(item.path) for item in collection.items(wanted)}


def expected(photos: tuple[Path, list[Photo]], is_wanted) -> set[str]:  # type: ignore[no-untyped-def]
    return {photo.name for photo in photos[1] if is_wanted(photo)}


def haversine(photo: Photo, latitude: float, longitude: float) -> float:
    north, south = math.radians(photo.latitude), math.radians(latitude)
    east = math.radians(photo.longitude - longitude)
    level = math.cos(north) * math.cos(south) * math.sin(east / 2) ** 2
    return 2 * 6371.0088 * math.asin(min(1.0, math.sqrt(math.sin((north - south) / 2) ** 2 + level)))


def test_what_a_photograph_says_becomes_fields(collection: Collection, photos: tuple[Path, list[Photo]]) -> None:
    for photo in photos[1]:
        fields = collection[photo.name].fields
        assert fields["taken"] == photo.taken.isoformat() + photo.zone
        assert (fields["year"], fields["month"], fields["camera"]) == (
            photo.taken.year,
            photo.taken.month,
            photo.camera,
        )
        assert (fields["rating"], tuple(fields.get("keyword", ()))) == (photo.rating, photo.keywords)
        assert fields["latitude"] == pytest.approx(photo.latitude, abs=1e-6)
        assert fields["longitude"] == pytest.approx(photo.longitude, abs=1e-6)
    assert {number: collection[f"{number:02}.jpg"].fields["place"] for number in NAMED} == NAMED
    assert collection["00.jpg"].fields["country"] == "Portugal"
    assert "place" not in collection["07.jpg"].fields


@pytest.mark.parametrize(
    ("wanted", "is_wanted"),
    [
        ("year>=2010", lambda photo: photo.taken.year >= 2010),
        ("month:1", lambda photo: photo.taken.month == 1),
        ('camera:"Pixel 6"', lambda photo: "Pixel 6" in photo.camera),
        ('camera="Google Pixel 6"', lambda photo: photo.camera == "Google Pixel 6"),
        ("keyword:holiday", lambda photo: "holiday" in photo.keywords),
        ("rating>=4", lambda photo: photo.rating >= 4),
        ("rating:4 and not keyword:beach", lambda photo: photo.rating == 4 and "beach" not in photo.keywords),
        ('near:"Lisbon"', lambda photo: haversine(photo, 38.725, -9.15) <= 25),
        ("near:Porto or year<2006", lambda photo: photo.latitude == 41.1579 or photo.taken.year < 2006),
        ("within:20km of -16.8,180", lambda photo: photo.latitude == -16.8),
        ("within:50km of 90,0", lambda photo: photo.latitude > 89),
        ("within:1 m of -90,-100", lambda photo: photo.latitude == -90),
        ('within:"-20,179 to -10,-179"', lambda photo: photo.latitude == -16.8),
        ("country:portugal", lambda photo: 38 < photo.latitude < 42),
    ],
)
def test_filters_find_exactly_what_is_meant(collection: Collection, photos, wanted: str, is_wanted) -> None:  # type: ignore[no-untyped-def]
    names = expected(photos, is_wanted)
    assert found(collection, wanted) == names != set()
    # What is compiled to columns is what a look at each item says.
    each = Filter.parse(wanted)
    assert {str(item.path) for item in collection if each.matches(item.fields.get)} == names


@settings(max_examples=30)
@given(st.datetimes(datetime(2003, 1, 1), datetime(2025, 1, 1)), st.sampled_from(["%Y", "%Y-%m", "%Y-%m-%d"]))
def test_dates_compare_as_far_as_they_are_written(collection: Collection, photos, moment: datetime, form: str) -> None:  # type: ignore[no-untyped-def]
    given_date = f"{moment:{form}}"
    for sign, holds in ((">=", str.__ge__), ("<", str.__lt__), ("=", str.__eq__), (":", str.__eq__)):
        names = expected(photos, lambda photo, holds=holds: holds(f"{photo.taken:{form}}", given_date))
        assert found(collection, f"taken{sign}{given_date}") == names


@given(st.one_of(st.tuples(st.floats(-90, 90), st.floats(-180, 180)), st.sampled_from(PLACES)), st.floats(0.01, 20_000))
def test_distances_hold_across_the_date_line_and_at_the_poles(  # type: ignore[no-untyped-def]
    collection: Collection, photos, centre: tuple[float, float], kilometres: float
) -> None:
    latitude, longitude, kilometres = round(centre[0], 4), round(centre[1], 4), round(kilometres, 3)
    distances = {photo.name: haversine(photo, latitude, longitude) for photo in photos[1]}
    names = found(collection, f"within:{kilometres:f}km of {latitude:f},{longitude:f}")
    # A centimetre is what coordinates are stored to.
    assert names >= {name for name, distance in distances.items() if distance < kilometres - 1e-4}
    assert names <= {name for name, distance in distances.items() if distance <= kilometres + 1e-4}


def test_the_time_line_and_the_map_count_what_their_filters_find(collection: Collection) -> None:
    periods, cells = collection.timeline(), collection.map_cells()
    assert sum(period.count for period in periods) == sum(cell.count for cell in cells) == 50
    for part in (*periods, *cells, *collection.map_cells(south=38, west=-10, north=39, east=-9)):
        assert len(collection.items(part.filter)) == part.count
    assert [period.period for period in periods] == sorted(period.period for period in periods)
    assert sum(period.count for period in collection.timeline("year>=2010")) == len(collection.items("year>=2010"))
    assert {cell.place for cell in collection.map_cells("near:Lisbon")} == {"Lisbon"}
    with pytest.raises(InvalidInputError, match="west to east"):
        collection.map_cells(west=170, east=-170)
    assert collection.map_cells("year=1900") == ()


def test_facets_of_photographs_stay_sensible(collection: Collection) -> None:
    facets = {facet.field: facet for facet in collection.facets(limit=8)}
    assert facets["year"].kind == facets["month"].kind == "range"
    assert [value.count for value in facets["camera"].values] == [13, 13, 12, 12]
    assert {value.value for value in facets["keyword"].values} == {"holiday", "beach"}
    assert {"taken", "latitude", "longitude", "altitude"}.isdisjoint(facets)
    for value in facets["place"].values:
        assert len(collection.items(value.filter)) == value.count


@pytest.mark.parametrize(
    ("wanted", "advice"),
    [
        ("near:Lisbn", "did you mean 'Lisbon'"),
        ("within:5km", "write within:20km of 38.7,-9.1"),
        ("within:5km of 99,0", "latitude, from -90 to 90"),
        ('within:"39,0 to 38,1"', "swap them"),
    ],
)
def test_mistakes_name_the_fix(wanted: str, advice: str) -> None:
    with pytest.raises(InvalidInputError, match=advice.replace(".", r"\.")):
        Filter.parse(wanted)


def opened(folder: Path) -> Collection:
    return Collection.open(folder / ".diptych", load_retriever=CountingRetriever.load)


@pytest.fixture
def copy(tmp_path: Path, collection: Collection) -> Path:
    """The folder of the photographs with their collection, to be changed."""
    folder = tmp_path / "copy"
    shutil.copytree(collection.root, folder, copy_function=shutil.copy2)
    trust_root(folder / ".diptych", folder)
    return folder


def test_what_people_gave_wins(copy: Path) -> None:
    with opened(copy) as collection:
        given_fields = {"camera": "mine", "taken": "1999-12-31", "latitude": 52.52, "longitude": 13.405}
        rated = Record(copy / "01.jpg", metadata={"rating": 9})
        collection.add([Record(copy / "00.jpg", metadata=given_fields), rated])
        fields = collection["00.jpg"].fields
        assert {name: fields[name] for name in given_fields} == given_fields
        assert (fields["year"], fields["month"]) == (1999, 12)
        assert {"place", "country", "taken_from"}.isdisjoint(fields)
        assert [str(item.path) for item in collection.items("year=1999 and near:Berlin")] == ["00.jpg"]
        assert [str(item.path) for item in collection.items("rating>5")] == ["01.jpg"]
        # A file that changes does not take it back.
        make_photo(copy, 2)
        (copy / "02.jpg").replace(copy / "00.jpg")
        collection.refresh()
        assert collection["00.jpg"].fields["camera"] == "mine"
        assert collection["00.jpg"].facts["camera"] != "mine"


def test_sidecars_are_read_when_they_come_change_and_go(copy: Path) -> None:
    sidecar = copy / "03.jpg.xmp"
    document = (
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description '
        'xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmp:Rating="RATING"/></rdf:RDF>'
    )
    with opened(copy) as collection:
        before = collection["03.jpg"].facts["rating"]
        for rating in ("5", "-1"):
            sidecar.write_text(document.replace("RATING", rating))
            report = collection.add(copy)
            assert (report.described, collection["03.jpg"].facts["rating"]) == (1, int(rating))
        sidecar.write_text("<!DOCTYPE x []><x/>")
        assert "03.jpg.xmp" in next(iter(collection.add(copy).unclear.values()))
        sidecar.unlink()
        collection.add(copy)
        assert collection["03.jpg"].facts["rating"] == before


def test_places_or_everything_can_be_left_out_and_come_back(copy: Path) -> None:
    with opened(copy) as collection:
        assert collection.keep_facts("no-places") == 50
        assert collection.items("near:Lisbon") == collection.items("country:portugal") == []
        assert len(collection.items("year>=2004")) == 50
        assert "latitude" not in str([item.facts for item in collection])
        collection.refresh()
        assert collection.items("near:Lisbon") == []
        assert collection.keep_facts("none") == 50
        assert collection.refresh().described == 0
        assert all(item.facts == {} for item in collection)
    with opened(copy) as collection:
        make_photo(copy, 51)
        collection.refresh()
        assert collection["51.jpg"].facts == {}
        assert collection.keep_facts("all") == 0
        assert collection.refresh().described == 51
        assert len(collection.items("near:Lisbon")) == 11
        with pytest.raises(UnknownNameError, match="no-places"):
            collection.keep_facts("some")  # type: ignore[arg-type]


def test_a_folder_and_a_date_in_a_name_are_facts_too(copy: Path) -> None:
    (copy / "2011" / "Rome").mkdir(parents=True)
    Image.new("RGB", (9, 9)).save(copy / "2011" / "Rome" / "IMG_20110504_101112.jpg")
    with opened(copy) as collection:
        collection.refresh()
        (item,) = collection.items("folder:2011/rome")
        assert item.facts == {
            "taken": "2011-05-04T10:11:12",
            "taken_from": "file name",
            "orientation": "square",
            "folder": "2011/Rome",
        }
