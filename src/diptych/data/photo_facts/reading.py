"""The facts of a photograph from its header, the files beside it and its name, without decoding the picture."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from diptych.data.photo_facts.fields import (
    EXPOSURE,
    LARGEST_XMP,
    MOST_KEYWORDS,
    Fields,
    exif_fields,
    iptc_fields,
    valid_time,
    xmp_fields,
)

_ORIENTATION = 0x0112
_ON_ITS_SIDE = (5, 6, 7, 8)
_LARGEST_EXIF = 1 << 22
_TIFF_STARTS = (b"II*\0", b"MM\0*")
# What a camera knows best, against what people write, where a later program is right.
_OF_THE_CAMERA = ("taken", "taken_from", "camera", "lens", "latitude", "longitude", "altitude", *EXPOSURE)

# Of damaged EXIF what can be read is read; a line on every tag of every file would be of no use to anybody.
warnings.filterwarnings("ignore", category=UserWarning, module=r"PIL\.TiffImagePlugin")


@dataclass(frozen=True)
class PhotoFacts:
    """Fields of a photograph, whether it lies on its side in the file, and what of it could not be read."""

    fields: Fields = field(default_factory=dict)
    on_its_side: bool = False
    trouble: str = ""


def read_photo_facts(image: Any, file: BinaryIO, path: Path, sidecars: Sequence[Path] = ()) -> PhotoFacts:
    """Return what a photograph says of itself.

    ``image`` is a Pillow image that was opened and not decoded, ``file`` the file it is in, ``sidecars`` the XMP files
    beside it. Camera data come from EXIF before XMP, descriptions from XMP before IPTC before EXIF, and a sidecar wins
    over all of them. Nothing damaged raises: it is named in ``trouble``, and the rest counts.
    """
    troubles: list[str] = []
    blocks = _png_blocks(file) if image.format == "PNG" else image.info
    turned, exif = _parsed(troubles, "EXIF", lambda: _exif(image, file, blocks), (False, Fields()))
    xmp = _parsed(troubles, "XMP", lambda: _xmp(image, blocks), Fields())
    iptc = _parsed(troubles, "IPTC", lambda: _iptc(image), Fields())
    fields = {**exif, **iptc, **xmp, **{name: exif[name] for name in _OF_THE_CAMERA if name in exif}}
    keywords = [*xmp.get("keyword", ()), *iptc.get("keyword", ()), *exif.get("keyword", ())]
    for sidecar in sidecars:
        beside = _parsed(troubles, sidecar.name, partial(_sidecar_fields, sidecar), Fields())
        keywords += beside.get("keyword", ())
        fields |= beside
    if keywords:
        fields["keyword"] = list(dict.fromkeys(keywords))[:MOST_KEYWORDS]
    if "taken" not in fields and (named := date_in_name(path.name)) is not None:
        fields |= {"taken": named, "taken_from": "file name"}
    width, height = image.size[::-1] if turned else image.size
    fields["orientation"] = "square" if width == height else "landscape" if width > height else "portrait"
    return PhotoFacts(fields, turned, "; ".join(troubles))


Read = TypeVar("Read")


def _parsed(troubles: list[str], what: str, read: Callable[[], Read], nothing: Read) -> Read:
    # Readers of what anyone may have written fail in every way they can, and each of them means: not this part.
    try:
        return read()
    except Exception as problem:
        troubles.append(f"its {what} cannot be read ({problem or type(problem).__name__})")
        return nothing


def _exif(image: Any, file: BinaryIO, blocks: Any) -> tuple[bool, Fields]:
    from PIL import Image

    exif = Image.Exif()
    if image.format != "PNG":
        exif = image.getexif()
    elif "exif" in blocks:
        # Of a PNG, Pillow decodes the whole picture to look behind it.
        exif.load(blocks["exif"])
    if blocks.get("exif") and not len(exif):
        raise ValueError("there is nothing in it")
    # Pillow turns TIFF by itself.
    is_turned = image.format != "TIFF" and exif.get(_ORIENTATION, 1) in _ON_ITS_SIDE
    file.seek(0)
    if not len(exif) and file.read(4) in _TIFF_STARTS:
        # What a camera has not developed is a TIFF around the picture, which comes upright out of its decoder.
        file.seek(0)
        exif.load_from_fp(file)
    return is_turned, exif_fields(exif, exif.get_ifd)


def _xmp(image: Any, blocks: Any) -> Fields:
    raw = blocks.get("xmp") or (getattr(image, "tag_v2", None) or {}).get(700)
    raw = raw.encode() if isinstance(raw, str) else raw
    return xmp_fields(raw) if isinstance(raw, bytes) and raw else {}


def _iptc(image: Any) -> Fields:
    from PIL import IptcImagePlugin

    if not ("photoshop" in image.info or hasattr(image, "tag_v2")):
        return {}
    return iptc_fields(IptcImagePlugin.getiptcinfo(image) or {})


def _sidecar_fields(path: Path) -> Fields:
    with path.open("rb") as file:
        return xmp_fields(file.read(LARGEST_XMP + 1))


def _png_blocks(file: BinaryIO) -> dict[str, bytes]:
    """Return EXIF and XMP of a PNG, which may stand behind the picture: chunks are passed over by their lengths."""
    blocks: dict[str, bytes] = {}
    file.seek(8)
    while len(head := file.read(8)) == 8:
        length, kind = int.from_bytes(head[:4], "big"), head[4:]
        if kind in (b"eXIf", b"iTXt") and length <= _LARGEST_EXIF:
            content = file.read(length)
            file.seek(4, os.SEEK_CUR)
            if kind == b"eXIf":
                blocks["exif"] = content
            elif content.startswith(b"XML:com.adobe.xmp\0\0"):
                blocks["xmp"] = content.split(b"\0", 5)[5]
        elif kind == b"IEND":
            break
        else:
            file.seek(length + 4, os.SEEK_CUR)
    return blocks


# IMG_20190714_180531, PXL_20210714_180531123, 2019-07-14 18.05.31, IMG-20190714-WA0001, Screenshot_2019-07-14-18-05-31
_DATE_IN_NAME = re.compile(
    r"(?<!\d)(\d{4})([-_.]?)(\d\d)\2(\d\d)"
    r"(?:(?:[-_. T]|\sat\s){1,3}(\d\d)[-_.h:]?(\d\d)[-_.m:]?(\d\d)(?:\d{3})?)?(?!\d)"
)


def date_in_name(name: str) -> str | None:
    """Return the date, with the time where it is there too, in the name of a file.

    >>> date_in_name("IMG_20190714_180531.jpg"), date_in_name("IMG-20190714-WA0001.jpg"), date_in_name("P1050443.JPG")
    ('2019-07-14T18:05:31', '2019-07-14', None)
    """
    for match in _DATE_IN_NAME.finditer(name):
        year, _, month, day, *clock = match.groups()
        if clock[0] is not None and (found := valid_time((year, month, day, *clock))) is not None:
            return found.isoformat()
        if (found := valid_time((year, month, day))) is not None:
            return found.date().isoformat()
    return None


class Sidecars:
    """The XMP files beside pictures, by one look at each folder: ``photo.xmp`` and, before it, ``photo.jpg.xmp``."""

    def __init__(self) -> None:
        self._folders: dict[str, dict[str, tuple[Path, str]]] = {}

    def of(self, picture: Path) -> Iterator[tuple[Path, str]]:
        """Yield the sidecars of a picture, the most particular last, each with a text that changes when it does."""
        folder = os.path.dirname(picture)
        beside = self._folders.get(folder)
        if beside is None:
            beside = self._folders[folder] = _sidecars_in(picture.parent)
        for name in (picture.stem, picture.name) if beside else ():
            if (found := beside.get(f"{name}.xmp".casefold())) is not None:
                yield found


def _sidecars_in(folder: Path) -> dict[str, tuple[Path, str]]:
    try:
        with os.scandir(folder) as entries:
            found = [entry for entry in entries if entry.name.lower().endswith(".xmp") and entry.is_file()]
        stated = [(entry, entry.stat()) for entry in found]
    except OSError:
        return {}
    return {
        entry.name.casefold(): (Path(entry.path), f"{entry.name}:{status.st_size}:{status.st_mtime_ns}")
        for entry, status in stated
    }
