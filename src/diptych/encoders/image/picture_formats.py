"""Files that may hold a picture: opened without ever waiting, and recognised by their first bytes."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from typing import BinaryIO

from PIL import (
    AvifImagePlugin,
    BmpImagePlugin,
    GifImagePlugin,
    ImageFile,
    JpegImagePlugin,
    PngImagePlugin,
    PpmImagePlugin,
    TiffImagePlugin,
    WebPImagePlugin,
)

from diptych.errors import InvalidInputError

_LARGEST_FILE = 2**30
_LARGEST_FILE_READ_WHOLE = 2**28
_SNIFFED_BYTES = 512
_COUNTED_BYTES = 2**20
_MOST_SCANS = 500

# Formats are opened by their own class: Image.open would try every format there is, and one of them runs Ghostscript.
_FORMATS: dict[str, Callable[[BinaryIO], ImageFile.ImageFile]] = {
    "JPEG": JpegImagePlugin.JpegImageFile,
    "PNG": PngImagePlugin.PngImageFile,
    "GIF": GifImagePlugin.GifImageFile,
    "WebP": WebPImagePlugin.WebPImageFile,
    "AVIF": AvifImagePlugin.AvifImageFile,
    "TIFF": TiffImagePlugin.TiffImageFile,
    "BMP": BmpImagePlugin.BmpImageFile,
    "PPM": PpmImagePlugin.PpmImageFile,
}

_READ_WHOLE = ("WebP", "AVIF")
PICTURE_FORMATS: tuple[str, ...] = tuple(_FORMATS)
"""The formats that can be read."""

_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"\xff\xd8\xff", "JPEG"),
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    *((mark, "GIF") for mark in (b"GIF87a", b"GIF89a")),
    *((mark, "TIFF") for mark in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")),
    (b"BM", "BMP"),
    *((b"P%d" % number, "PPM") for number in range(1, 7)),
)

_FOREIGN_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"%PDF", "a PDF document"),
    (b"%!PS", "a PostScript document"),
    (b"\xc5\xd0\xd3\xc6", "a PostScript document"),
    (b"PK\3\4", "a ZIP archive or office document"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"8BPS", "a Photoshop document"),
    (b"\0\0\1\0", "a Windows icon"),
    (b"\0\0\0\x0cjP  ", "a JPEG 2000 picture"),
    (b"\xff\x4f\xff\x51", "a JPEG 2000 picture"),
    (b"\xff\x0a", "a JPEG XL picture"),
    (b"\0\0\0\x0cJXL ", "a JPEG XL picture"),
    (b"RIFF", "a video or sound file"),
    (b"\x1aE\xdf\xa3", "a video"),
)

_ISO_BRANDS = {
    **dict.fromkeys((b"avif", b"avis"), "AVIF"),
    **dict.fromkeys((b"heic", b"heix", b"hevc", b"mif1", b"msf1"), "a HEIC picture"),
}


def open_regular_file(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file for reading, or raise why not; pipes and devices are refused before they can make anyone wait.

    The error names the file with everything unprintable escaped, so it can be shown as it is.

    >>> from diptych.encoders.image.picture_formats import open_regular_file
    >>> open_regular_file("nowhere.jpg")
    Traceback (most recent call last):
    diptych.errors.InvalidInputError: nowhere.jpg does not exist; pass the path of a picture file
    """
    name = shown_name(os.fspath(path))
    try:
        _check_kind(os.stat(path).st_mode, name)
        file: BinaryIO = open(path, "rb", opener=_open_at_once)  # noqa: SIM115 - the caller closes it
    except FileNotFoundError as error:
        raise InvalidInputError(f"{name} does not exist; pass the path of a picture file") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InvalidInputError(f"{name} cannot be opened: {reason}; check the path and its permissions") from error
    try:
        _check_kind(os.fstat(file.fileno()).st_mode, name)
    except InvalidInputError:
        file.close()
        raise
    return file


def open_image(file: BinaryIO) -> ImageFile.ImageFile:
    """Return the still undecoded picture in a file of a known format; ValueError says why there is none."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    start = file.read(_SNIFFED_BYTES)
    file.seek(0)
    kind = _kind(start)
    if kind not in _FORMATS:
        raise ValueError(f"it is {kind}, not one of {', '.join(_FORMATS)}")
    limit = _LARGEST_FILE_READ_WHOLE if kind in _READ_WHOLE else _LARGEST_FILE
    if size > limit:
        raise ValueError(f"the file has {size:,} bytes, and at most {limit:,} are read")
    if kind == "JPEG":
        _check_scans(file)
    return _FORMATS[kind](file)


def shown_name(path: str) -> str:
    """Return a path as text that any terminal can show: odd bytes and control characters become escapes."""
    text = path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def _check_scans(file: BinaryIO) -> None:
    """Refuse a JPEG that passes over the picture so often that a small file would keep the decoder busy for hours."""
    scans, last = 0, b""
    while block := file.read(_COUNTED_BYTES):
        scans += (last + block).count(b"\xff\xda")
        last = block[-1:]
    file.seek(0)
    if scans > _MOST_SCANS:
        raise ValueError(f"it has {scans:,} scans, and no honest JPEG has more than {_MOST_SCANS}")


def _check_kind(mode: int, name: str) -> None:
    if stat.S_ISDIR(mode):
        raise InvalidInputError(f"{name} is a folder; pass the paths of the picture files in it")
    if not stat.S_ISREG(mode):
        raise InvalidInputError(f"{name} is a pipe, a socket or a device; pass the path of a picture file")


def _open_at_once(path: str, flags: int) -> int:
    # Should the file turn into a pipe after it was looked at, opening must still not wait for someone to write.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _kind(start: bytes) -> str:
    """Return the format that the first bytes betray, or what else the file is."""
    if not start:
        return "empty"
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "WebP"
    if start[4:8] == b"ftyp":
        return _iso_kind(start)
    for signature, kind in _SIGNATURES + _FOREIGN_SIGNATURES:
        if start.startswith(signature):
            return kind
    return _text_kind(start)


def _iso_kind(start: bytes) -> str:
    length = min(int.from_bytes(start[:4], "big"), len(start))
    brands = [start[8:12], *(start[place : place + 4] for place in range(16, length, 4))]
    kinds = [_ISO_BRANDS[brand] for brand in brands if brand in _ISO_BRANDS]
    # A still picture may call itself by the general brand and only list the special one.
    return "AVIF" if "AVIF" in kinds else kinds[0] if kinds else "a video"


def _text_kind(start: bytes) -> str:
    head = start.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if b"<svg" in head:
        return "an SVG drawing"
    if head.startswith((b"<!doctype html", b"<html")):
        return "a web page"
    if all(byte >= 32 or byte in b"\t\r\n" for byte in start) and b"\x7f" not in start:
        return "text"
    return "in an unknown format"
