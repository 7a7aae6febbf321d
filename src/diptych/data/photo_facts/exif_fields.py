"""EXIF and IPTC: what cameras and older programs write into a picture, as fields."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

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
