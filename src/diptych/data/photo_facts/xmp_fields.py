"""XMP, in a picture or in a file beside it, as fields; a document that could unfold or fetch anything is refused."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any
from xml.parsers import expat

from diptych.data.photo_facts.exif_fields import (
    EXPOSURE,
    Fields,
    camera_name,
    coordinates,
    positive,
    rating_of,
    text_of,
    valid_time,
)

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
    fields |= coordinates(_degrees(first.get("exif GPSLatitude")), _degrees(first.get("exif GPSLongitude")))
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


def _degrees(text: str | None) -> float | None:
    match = _DEGREES.match(text or "")
    if match is None:
        return None
    degrees = int(match[1]) + float(match[2]) / 60 + float(match[3] or 0) / 3600
    return -degrees if match[4].upper() in "SW" else degrees
