"""What a picture, or a file beside it, says of itself, as fields: EXIF and IPTC of cameras and older programs, and XMP.

A document of XMP that could unfold or fetch anything is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from typing import Any
from xml.parsers import expat

Fields = dict[str, Any]
"""Names and values: texts, numbers, lists of texts."""

_EXIF_IFD, _GPS_IFD = 0x8769, 0x8825
EXPOSURE = ("exposure", "aperture", "iso", "focal_length")
_EXPOSURE_TAGS = (0x829A, 0x829D, 0x8827, 0x920A)
_FIRST_PHOTOGRAPH = 1826
_LONGEST_TEXT, MOST_KEYWORDS = 2000, 200
_LARGEST_NUMBER = 1e9
_QUARTER_SECONDS, _FIX_SECONDS, _FARTHEST_HOURS = 900, 300, 14


def exif_fields(exif: Mapping[int, Any], directory: Callable[[int], Mapping[int, Any]]) -> Fields:
    """Return the fields of an EXIF block; ``directory`` gives those within it, as :meth:`PIL.Image.Exif.get_ifd` does.

    What makes no sense is left out: dates before photography, coordinates that no place has, divisions by zero.
    """
    camera, gps = directory(_EXIF_IFD), directory(_GPS_IFD)
    local = _exif_time(camera.get(0x9003) or camera.get(0x9004))
    utc = _gps_time(gps)
    fields = {
        "camera": camera_name(text_of(exif.get(0x010F)), text_of(exif.get(0x0110))),
        "lens": text_of(camera.get(0xA434)),
        **{name: positive(camera.get(tag)) for name, tag in zip(EXPOSURE, _EXPOSURE_TAGS, strict=True)},
        "rating": rating_of(exif.get(0x4746)),
        "keyword": _windows_texts(exif.get(0x9C9E)),
        "title": next(iter(_windows_texts(exif.get(0x9C9B)) or ()), None),
        "description": text_of(exif.get(0x010E)),
        "altitude": _altitude(gps),
        **coordinates(_degrees(gps.get(2), gps.get(1)), _degrees(gps.get(4), gps.get(3))),
    }
    if local is not None:
        zone = _zone(camera.get(0x9011) or camera.get(0x9012)) or _zone_between(local, utc)
        fields |= {"taken": local.replace(tzinfo=zone).isoformat(), "taken_from": "exif"}
    elif utc is not None:
        fields |= {"taken": utc.isoformat(), "taken_from": "gps"}
    return {name: value for name, value in fields.items() if value is not None}


def iptc_fields(records: Mapping[tuple[int, int], Any]) -> Fields:
    """Return the fields of IPTC records, as :func:`PIL.IptcImagePlugin.getiptcinfo` gives them."""

    def texts(number: int) -> list[str]:
        found = records.get((2, number), [])
        return [text for one in (found if isinstance(found, list) else [found]) if (text := text_of(one))]

    def first(number: int) -> str | None:
        return next(iter(texts(number)), None)

    fields: Fields = {"keyword": texts(25)[:MOST_KEYWORDS] or None, "title": first(5), "description": first(120)}
    fields |= {"place": first(90), "region": first(95), "country": first(101)}
    taken = _iptc_time(first(55) or "", first(60) or "")
    if taken is not None:
        fields |= {"taken": taken, "taken_from": "iptc"}
    return {name: value for name, value in fields.items() if value is not None}


def text_of(value: Any) -> str | None:
    """Return a text without what terminals and tables cannot show, None where nothing is left.

    >>> text_of(b"Caf\\xc3\\xa9\\0\\0"), text_of("CafÃ©"), text_of("  ")
    ('Café', 'Café', None)
    """
    if isinstance(value, str):
        # Pillow reads letters of EXIF as Latin-1, and phones write UTF-8.
        with suppress(UnicodeError):
            value = value.encode("latin-1").decode("utf-8")
    elif isinstance(value, bytes):
        try:
            value = value.decode("utf-8")
        except UnicodeDecodeError:
            value = value.decode("latin-1")
    else:
        return None
    text = "".join(letter for letter in value[:_LONGEST_TEXT] if letter.isprintable() or letter in "\n\t").strip()
    return text or None


def rating_of(value: Any) -> int | None:
    """Return a rating from −1, rejected, to 5."""
    number = _number(value)
    return int(number) if number is not None and -1 <= number <= 5 else None


def coordinates(latitude: float | None, longitude: float | None) -> Fields:
    """Return both coordinates, or nothing where one is missing or both are 0, as receivers without a fix say."""
    if latitude is None or longitude is None or abs(latitude) > 90 or abs(longitude) > 180:
        return {}
    # Seven digits are a centimetre.
    return {"latitude": round(latitude, 7), "longitude": round(longitude, 7)} if latitude or longitude else {}


def valid_time(parts: Iterator[str | None] | tuple[str | None, ...]) -> datetime | None:
    """Return a time of year, month, day and as much of the clock as is given; None for one that never was."""
    with suppress(ValueError):
        found = datetime(*(int(part) for part in parts if part is not None))  # type: ignore[arg-type]
        if _FIRST_PHOTOGRAPH <= found.year <= datetime.now(UTC).year + 1:
            return found
    return None


_EXIF_TIME = re.compile(r"(\d{4})[:/.-](\d\d)[:/.-](\d\d)[ T](\d\d)[:.](\d\d)(?:[:.](\d\d))?")
_ZONE = re.compile(r"([+-])(\d\d):?(\d\d)")


def _exif_time(value: Any) -> datetime | None:
    match = _EXIF_TIME.match(text_of(value) or "")
    return valid_time(match.groups()) if match else None


def _zone(value: Any) -> timezone | None:
    match = _ZONE.match(text_of(value) or "")
    if match is None:
        return UTC if (text_of(value) or "") == "Z" else None
    offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
    return timezone(offset if match[1] == "+" else -offset) if offset < timedelta(hours=24) else None


def _zone_between(local: datetime, utc: datetime | None) -> timezone | None:
    """Return the zone of a clock from the satellites' time of the same moment, as far as it may be the same."""
    if utc is None:
        return None
    seconds = (local - utc.replace(tzinfo=None)).total_seconds()
    # Zones differ by quarters of an hour; a fix may be minutes older than the picture.
    offset = round(seconds / _QUARTER_SECONDS) * _QUARTER_SECONDS
    is_zone = abs(seconds - offset) <= _FIX_SECONDS and abs(offset) <= _FARTHEST_HOURS * 3600
    return timezone(timedelta(seconds=offset)) if is_zone else None


def _gps_time(gps: Mapping[int, Any]) -> datetime | None:
    match = re.match(r"(\d{4})[:-](\d\d)[:-](\d\d)", text_of(gps.get(29)) or "")
    clock = [_number(part) for part in gps.get(7) or ()]
    if match is None or len(clock) != 3 or None in clock:
        return None
    found = valid_time((*match.groups(), *(str(int(part or 0)) for part in clock)))
    return None if found is None else found.replace(tzinfo=UTC)


def _iptc_time(day: str, clock: str) -> str | None:
    date = re.match(r"(\d{4})-?(\d\d)-?(\d\d)", day)
    if date is None or valid_time(date.groups()) is None:
        return None
    time = re.match(r"(\d\d):?(\d\d):?(\d\d)([+-]\d\d:?\d\d)?", clock)
    found = valid_time((*date.groups(), *time.groups()[:3])) if time else None
    if time is None or found is None:
        return "-".join(date.groups())
    return found.replace(tzinfo=_zone(time[4])).isoformat()


def camera_name(make: str | None, model: str | None) -> str | None:
    """Return maker and model as one name.

    >>> camera_name("Google", "Pixel 6"), camera_name("NIKON CORPORATION", "NIKON D70")
    ('Google Pixel 6', 'NIKON D70')
    """
    if make is None or model is None:
        return model or make
    return model if model.casefold().startswith(make.split()[0].casefold()) else f"{make} {model}"


def _number(value: Any) -> float | None:
    if isinstance(value, (tuple, list)) and value:
        value = value[0]
    try:
        number = float(value)
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def positive(value: Any) -> float | int | None:
    """Return a number above zero to six digits, whole where it is, None for anything else."""
    number = _number(value)
    if number is None or not 0 < number < _LARGEST_NUMBER:
        return None
    return int(number) if number == int(number) else float(f"{number:.6g}")


def _degrees(parts: Any, side: Any) -> float | None:
    numbers = [_number(part) for part in parts] if isinstance(parts, (tuple, list)) else []
    if len(numbers) != 3 or numbers[0] is None:
        return None
    degrees: float = sum((number or 0.0) / 60**place for place, number in enumerate(numbers))
    return -degrees if (text_of(side) or "").upper() in ("S", "W") else degrees


def _altitude(gps: Mapping[int, Any]) -> float | None:
    metres = _number(gps.get(6))
    if metres is None:
        return None
    below = gps.get(5) in (1, b"\x01")
    return round(-metres if below else metres, 1)


def _windows_texts(value: Any) -> list[str] | None:
    """Return the texts that Windows writes, in UTF-16 with semicolons between them."""
    if isinstance(value, (tuple, list)):
        with suppress(TypeError, ValueError):
            value = bytes(value)
    if not isinstance(value, bytes):
        return None
    texts = (text_of(part) for part in value.decode("utf-16-le", "ignore").split(";"))
    return [text for text in texts if text][:MOST_KEYWORDS] or None


LARGEST_XMP = 1 << 22
_DEEPEST = 64
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_NAMESPACES = {
    "http://ns.adobe.com/xap/1.0/": "xmp",
    "http://purl.org/dc/elements/1.1/": "dc",
    "http://ns.adobe.com/exif/1.0/": "exif",
    "http://cipa.jp/exif/1.0/": "exif",
    "http://ns.adobe.com/exif/1.0/aux/": "aux",
    "http://ns.adobe.com/tiff/1.0/": "tiff",
    "http://ns.adobe.com/photoshop/1.0/": "photoshop",
}
_TEXTS = {
    "lens": ("exif LensModel", "aux Lens"),
    "title": ("dc title",),
    "description": ("dc description",),
    "place": ("photoshop City",),
    "region": ("photoshop State",),
    "country": ("photoshop Country",),
}
_EXPOSURE = ("ExposureTime", "FNumber", "ISOSpeedRatings", "FocalLength")
_DATES = ("exif DateTimeOriginal", "photoshop DateCreated", "xmp CreateDate")
_DATE = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d))?(?:\.\d+)?(Z|[+-]\d\d:\d\d)?)?)?)?\Z")
_RATIO = re.compile(r"-?[0-9]{1,20}(?:\.[0-9]{1,20}|/[0-9]{1,20})?\Z")
_DEGREES = re.compile(r"(\d{1,3}),(\d{1,2}(?:\.\d+)?)(?:,(\d{1,2}(?:\.\d+)?))?([NSEWnsew])\Z")


def xmp_fields(document: bytes) -> Fields:
    """Return the fields of an XMP document; ValueError says why it cannot be read.

    >>> rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    >>> about = '<rdf:Description xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmp:Rating="4"/>'
    >>> xmp_fields(f'<rdf:RDF xmlns:rdf="{rdf}">{about}</rdf:RDF>'.encode())
    {'rating': 4}
    """
    found = _Properties(document).values
    fields: Fields = {
        name: next((found[source][0] for source in sources if found.get(source)), None)
        for name, sources in _TEXTS.items()
    }
    first = {name: values[0] for name, values in found.items() if values}
    fields |= {"rating": rating_of(first.get("xmp Rating")), "keyword": found.get("dc subject")}
    fields |= {"camera": camera_name(first.get("tiff Make"), first.get("tiff Model"))}
    for name, source in zip(EXPOSURE, _EXPOSURE, strict=True):
        fields[name] = positive(_ratio(first.get(f"exif {source}")))
    fields["altitude"] = _ratio(first.get("exif GPSAltitude"))
    fields |= coordinates(
        _degrees_in_words(first.get("exif GPSLatitude")), _degrees_in_words(first.get("exif GPSLongitude"))
    )
    taken = next((date for name in _DATES if (date := _date(first.get(name, "")))), None)
    if taken is not None:
        fields |= {"taken": taken, "taken_from": "xmp"}
    return {name: value for name, value in fields.items() if value is not None}


class _Properties:
    """The values of the properties in a document, by short names; those of lists one by one."""

    def __init__(self, document: bytes) -> None:
        if len(document) > LARGEST_XMP:
            raise ValueError(f"its XMP has {len(document):,} bytes, and at most {LARGEST_XMP:,} are read")
        self.values: dict[str, list[str]] = {}
        self._stack: list[str] = []
        self._text: list[str] = []
        parser = expat.ParserCreate(namespace_separator=" ")
        # Entities could unfold without end or name files: a document that declares anything is not read.
        parser.StartDoctypeDeclHandler = _refuse
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._text.append
        try:
            parser.Parse(document.rstrip(b"\0 \r\n"), True)
        except expat.ExpatError as problem:
            raise ValueError(f"its XMP cannot be read ({problem})") from None

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self._stack) >= _DEEPEST:
            raise ValueError("its XMP is nested without need")
        self._stack.append(name)
        self._text.clear()
        if name == f"{_RDF} Description":
            for key, value in attributes.items():
                self._add(key, value)

    def _end(self, name: str) -> None:
        self._stack.pop()
        text = "".join(self._text)
        self._text.clear()
        owner = next((one for one in reversed([*self._stack, name]) if not one.startswith(_RDF)), "")
        if name in (f"{_RDF} li", owner):
            self._add(owner, text)

    def _add(self, name: str, value: str) -> None:
        space, _, local = name.rpartition(" ")
        text = text_of(value.encode())
        if space in _NAMESPACES and text is not None:
            self.values.setdefault(f"{_NAMESPACES[space]} {local}", []).append(text)


def _refuse(*_: Any) -> None:
    raise ValueError("its XMP declares entities, which are not read")


def _date(text: str) -> str | None:
    """Return a date as far as it is known, without fractions of seconds."""
    match = _DATE.match(text)
    if match is None:
        return None
    year, month, day, *clock, zone = match.groups()
    if valid_time((year, month or "1", day or "1", *clock)) is None:
        return None
    date = "-".join(part for part in (year, month, day) if part)
    zone = "+00:00" if zone == "Z" else zone or ""
    return f"{date}T{clock[0]}:{clock[1]}:{clock[2] or '00'}{zone}" if clock[0] else date


def _ratio(text: str | None) -> float | None:
    # With an exponent, a few letters could name a number that takes hours to write out.
    if not _RATIO.match(text or ""):
        return None
    try:
        return float(Fraction(text or ""))
    except (ValueError, ZeroDivisionError):
        return None


def _degrees_in_words(text: str | None) -> float | None:
    match = _DEGREES.match(text or "")
    if match is None:
        return None
    degrees = int(match[1]) + float(match[2]) / 60 + float(match[3] or 0) / 3600
    return -degrees if match[4].upper() in "SW" else degrees
