"""What photographs say of themselves is read wherever it stands, and nothing damaged is believed."""

from __future__ import annotations

import io
import math
import struct
import zlib
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from PIL.TiffImagePlugin import IFDRational

from diptych.data.photo_facts.fields import exif_fields, xmp_fields
from diptych.data.photo_facts.places import distance_km, find_place, places_at
from diptych.data.photo_facts.reading import PhotoFacts, Sidecars, date_in_name, read_photo_facts
from diptych.encoders.image.picture_formats import open_image
from diptych.errors import InvalidInputError

XMP = """<?xpacket begin="" id="W5M0MpCehiHzreSzNTczkc9d"?><x:xmpmeta xmlns:x="adobe:ns:meta/">
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about=""
 xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/"
 xmlns:exif="http://ns.adobe.com/exif/1.0/" xmlns:photoshop="http://ns.adobe.com/photoshop/1.0/"
 xmp:Rating="{rating}" exif:DateTimeOriginal="2001-02-03T04:05:06.78Z" photoshop:City="Évora">
<exif:GPSLatitude>38,34.2N</exif:GPSLatitude><exif:GPSLongitude>7,54.5W</exif:GPSLongitude>
<exif:ExposureTime>1/250</exif:ExposureTime>
<dc:subject><rdf:Bag><rdf:li>holiday</rdf:li><rdf:li>temple</rdf:li></rdf:Bag></dc:subject>
<dc:description><rdf:Alt><rdf:li xml:lang="x-default">Roman columns</rdf:li></rdf:Alt></dc:description>
</rdf:Description></rdf:RDF></x:xmpmeta><?xpacket end="w"?>"""


def phone_exif(**camera: Any) -> Image.Exif:
    exif = Image.Exif()
    exif[0x010F], exif[0x0110], exif[0x0112] = "Google", "Pixel 6", 6
    inner = exif.get_ifd(0x8769)
    inner[0x9003], inner[0x829D], inner[0x829A] = "2019:07:14 18:05:31", IFDRational(185, 100), IFDRational(1, 250)
    inner[0x8827], inner[0x920A], inner[0xA434] = 125, IFDRational(681, 100), "Pixel 6 back camera 6.81mm f/1.85"
    inner.update({int(tag[1:], 16): value for tag, value in camera.items()})
    gps = exif.get_ifd(0x8825)
    gps[1], gps[2] = "N", (IFDRational(38), IFDRational(42), IFDRational(3600, 100))
    gps[3], gps[4] = "W", (IFDRational(9), IFDRational(8), IFDRational(0))
    gps[5], gps[6] = b"\1", IFDRational(125, 10)
    return exif


def read(content: bytes, name: str = "photo.jpg", folder: Path = Path("nowhere")) -> PhotoFacts:
    file = io.BytesIO(content)
    sidecars = [path for path, _ in Sidecars().of(folder / name)]
    return read_photo_facts(open_image(file, to_decode=False), file, folder / name, sidecars)


def saved(kind: str, **options: Any) -> bytes:
    content = io.BytesIO()
    Image.new("RGB", (8, 4)).save(content, kind, **options)
    return content.getvalue()


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_a_phone_says_when_where_and_how(kind: str) -> None:
    facts = read(saved(kind, exif=phone_exif(x9011="+01:00").tobytes()))
    assert facts.trouble == ""
    assert facts.on_its_side == (kind != "TIFF")
    assert facts.fields == {
        "taken": "2019-07-14T18:05:31+01:00",
        "taken_from": "exif",
        "camera": "Google Pixel 6",
        "lens": "Pixel 6 back camera 6.81mm f/1.85",
        "exposure": 0.004,
        "aperture": 1.85,
        "iso": 125,
        "focal_length": 6.81,
        "latitude": 38.71,
        "longitude": -9.1333333,
        "altitude": -12.5,
        "orientation": "portrait",
    }


def test_the_picture_itself_is_not_decoded() -> None:
    """Damaged pixels do not matter, and EXIF behind them is found all the same."""
    whole = saved("PNG", exif=phone_exif())
    place = whole.index(b"IDAT") - 4
    length = int.from_bytes(whole[place : place + 4], "big")
    pixels, rest = whole[place : place + length + 12], whole[place + length + 12 :]
    start = whole[:place].index(b"eXIf") - 4
    end = start + int.from_bytes(whole[start : start + 4], "big") + 12
    damaged = pixels[:8] + bytes(length) + pixels[-4:]
    assert read(whole[:start] + damaged + whole[start:end] + rest).fields["camera"] == "Google Pixel 6"


def test_xmp_iptc_and_sidecars_add_to_exif(tmp_path: Path) -> None:
    jpeg = saved("JPEG", exif=phone_exif(), xmp=XMP.format(rating=3).encode())
    iptc = b"\x1c\x02\x19\0\x05beach\x1c\x02\x65\0\x08Portugal"
    resource = b"8BIM\x04\x04\0\0" + struct.pack(">I", len(iptc)) + iptc
    segment = b"Photoshop 3.0\0" + resource
    jpeg = jpeg[:2] + b"\xff\xed" + struct.pack(">H", len(segment) + 2) + segment + jpeg[2:]
    fields = read(jpeg, folder=tmp_path).fields
    # The camera knows the moment and the place, people know what it shows.
    assert (fields["taken"], fields["latitude"]) == ("2019-07-14T18:05:31", 38.71)
    assert (fields["rating"], fields["description"], fields["place"]) == (3, "Roman columns", "Évora")
    assert (fields["keyword"], fields["country"]) == (["holiday", "temple", "beach"], "Portugal")
    (tmp_path / "photo.XMP").write_text(XMP.format(rating=4))
    (tmp_path / "photo.jpg.xmp").write_text(XMP.format(rating=5))
    fields = read(jpeg, folder=tmp_path).fields
    assert (fields["rating"], fields["taken"]) == (5, "2001-02-03T04:05:06+00:00")
    assert fields["latitude"] == pytest.approx(38.57)


def test_xmp_unfolds_nothing_and_reads_no_file(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    for entity in ('<!ENTITY e "ha">', f'<!ENTITY e SYSTEM "file://{tmp_path}/secret">'):
        hostile = f"<!DOCTYPE x [{entity}]>{XMP.format(rating='&e;').partition('?>')[2]}"
        for encoded in (hostile.encode(), hostile.encode("utf-16")):
            with pytest.raises(ValueError, match="entities"):
                xmp_fields(encoded)
    with pytest.raises(ValueError, match="nested"):
        xmp_fields(b"<a>" * 100_000)
    with pytest.raises(ValueError, match="bytes"):
        xmp_fields(b" " * (1 << 23))
    assert "declares entities" in read(saved("JPEG", xmp=f"<!DOCTYPE x []>{XMP}".encode())).trouble


@pytest.mark.filterwarnings("ignore::UserWarning:PIL")
@given(st.data())
def test_damaged_exif_never_raises_and_is_named(data: st.DataObject) -> None:
    exif = bytearray(phone_exif().tobytes())
    for place in data.draw(st.lists(st.integers(6, len(exif) - 1), max_size=20)):
        exif[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(8, len(exif)))
    facts = read(saved("JPEG", exif=bytes(exif[:cut])))
    assert set(facts.fields) >= {"orientation"}
    latitude, longitude = facts.fields.get("latitude", 0), facts.fields.get("longitude", 0)
    assert abs(latitude) <= 90
    assert abs(longitude) <= 180
    if "taken" in facts.fields:
        assert datetime.fromisoformat(facts.fields["taken"]).year >= 1826


@pytest.mark.parametrize(
    ("gps", "zone"),
    [((16, 4, 2), "+02:00"), ((18, 5, 31), "+00:00"), ((12, 35, 30), "+05:30"), ((17, 57, 0), ""), ((2, 0, 0), "")],
)
def test_the_time_of_satellites_tells_the_zone(gps: tuple[int, ...], zone: str) -> None:
    inner = {0x9003: "2019:07:14 18:05:31"}
    satellites = {7: tuple(map(IFDRational, gps)), 29: "2019:07:14"}
    fields = exif_fields({}, lambda tag: satellites if tag == 0x8825 else inner)
    assert fields["taken"] == f"2019-07-14T18:05:31{zone}"
    alone = exif_fields({}, lambda tag: satellites if tag == 0x8825 else {})
    assert (alone["taken_from"], alone["taken"][-6:]) == ("gps", "+00:00")


@given(st.datetimes(datetime(1900, 1, 1), datetime(2026, 1, 1)))
def test_dates_in_names_are_read_as_they_are_written(moment: datetime) -> None:
    moment = moment.replace(microsecond=0)
    for form in ("IMG_%Y%m%d_%H%M%S", "PXL_%Y%m%d_%H%M%S123.MP", "Screenshot_%Y-%m-%d-%H-%M-%S", "%Y-%m-%d %H.%M.%S"):
        assert date_in_name(f"{moment:{form}}.jpg") == moment.isoformat()
    assert date_in_name(f"IMG-{moment:%Y%m%d}-WA0001.jpg") == moment.date().isoformat()
    facts = read(saved("JPEG"), f"{moment:IMG_%Y%m%d_%H%M%S}.jpg").fields
    assert (facts["taken"], facts["taken_from"]) == (moment.isoformat(), "file name")


@pytest.mark.parametrize("name", ["P1050443", "20191399_1200", "12345678901234", "1234-56-78", "DSC_0142", "99991231"])
def test_other_numbers_in_names_are_no_dates(name: str) -> None:
    assert date_in_name(f"{name}.jpg") is None


def test_receivers_without_a_fix_and_divisions_by_zero_say_nothing() -> None:
    zero = (IFDRational(0), IFDRational(0), IFDRational(0))
    gps = {1: "N", 2: zero, 3: "E", 4: zero, 6: IFDRational(1, 0)}
    inner = {0x829A: IFDRational(1, 0), 0x9003: "0000:00:00 00:00:00", 0x8827: "?"}
    assert exif_fields({0x4746: 99}, lambda tag: gps if tag == 0x8825 else inner) == {}


def test_places_have_names_near_them_and_none_at_sea() -> None:
    lisbon, sea, fiji = places_at([38.71, 0.0, -16.5], [-9.14, -30.0, 179.4])
    assert lisbon is not None
    assert fiji is not None
    assert (lisbon.name, lisbon.country, sea, fiji.country) == ("Lisbon", "Portugal", None, "Fiji")
    assert find_place("paris, texas").region == "Texas"
    with pytest.raises(InvalidInputError, match="'Lisbon'"):
        find_place("Lisbn")


COORDINATES = st.tuples(st.floats(-90, 90), st.floats(-180, 180))


@given(COORDINATES, COORDINATES)
def test_distances_are_those_of_the_sphere(one: tuple[float, float], other: tuple[float, float]) -> None:
    (north, east), (south, west) = (map(math.radians, place) for place in (one, other))
    level = math.cos(north) * math.cos(south) * math.sin((east - west) / 2) ** 2
    expected = 2 * 6371.0088 * math.asin(min(1.0, math.sqrt(math.sin((north - south) / 2) ** 2 + level)))
    assert float(distance_km(*one, *other)) == pytest.approx(expected, abs=1e-3)


def test_an_oversized_block_of_a_png_is_passed_over() -> None:
    whole = saved("PNG")
    large = bytes(5 << 20)
    chunk = struct.pack(">I", len(large)) + b"eXIf" + large + struct.pack(">I", zlib.crc32(b"eXIf" + large))
    assert read(whole[:33] + chunk + whole[33:]).fields == {"orientation": "landscape"}
