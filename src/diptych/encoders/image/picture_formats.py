"""Files that may hold a picture: opened without ever waiting, and recognised by their first bytes."""

from __future__ import annotations

import math
import os
import stat
from abc import abstractmethod
from importlib import import_module
from importlib.util import find_spec
from typing import Any, BinaryIO, cast

from PIL import Image, ImageFile

from diptych.data.picture_files import EXTRA, is_raw, split_moment
from diptych.data.remote_files import RemotePath
from diptych.encoders.image.plain_pictures import MOST_SCANS, count_scans
from diptych.errors import InvalidInputError

_LARGEST_FILE = 2**30
_SNIFFED_BYTES = 1024

# Formats are opened by their own class: Image.open would try every format there is, and one of them runs Ghostscript.
_PILLOW = {
    "JPEG": "Jpeg",
    "PNG": "Png",
    "GIF": "Gif",
    "WebP": "WebP",
    "AVIF": "Avif",
    "TIFF": "Tiff",
    "BMP": "Bmp",
    "PPM": "Ppm",
    "JPEG 2000": "Jpeg2K",
    "TGA": "Tga",
    "ICO": "Ico",
    "ICNS": "Icns",
    "PCX": "Pcx",
    "DDS": "Dds",
    "QOI": "Qoi",
    "SGI": "Sgi",
    "PSD": "Psd",
}
# What other packages read, which come with an extra: the package, and the class that reads with it.
_OTHERS = {
    "HEIC": ("pillow_heif", "pillow_heif.as_plugin", "HeifImageFile"),
    "RAW": ("rawpy", "diptych.encoders.image.raw_photographs", "RawImageFile"),
    "SVG": ("resvg_py", "diptych.encoders.image.drawings", "SvgImageFile"),
    "video": ("av", "diptych.encoders.image.videos", "VideoImageFile"),
}
# Bytes where a file is read whole, and where Pillow decodes in Python; pixels where decoding takes many bytes for each.
_LARGEST_FILES = {
    **dict.fromkeys(("WebP", "AVIF", "HEIC", "RAW", "JPEG 2000", "ICNS"), 2**28),
    "QOI": 2**24,
    "SVG": 2**24,
    "video": 2**36,
}
_MOST_PIXELS = {"JPEG 2000": 2**26}
PICTURE_FORMATS: tuple[str, ...] = (*_PILLOW, *_OTHERS)
"""The formats that can be read, the last four of them with the extra ``diptych[formats]``."""

_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"\xff\xd8\xff", "JPEG"),
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    *((mark, "GIF") for mark in (b"GIF87a", b"GIF89a")),
    *((mark, "TIFF") for mark in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")),
    (b"BM", "BMP"),
    *((b"P%d" % number, "PPM") for number in range(1, 7)),
    *((mark, "JPEG 2000") for mark in (b"\0\0\0\x0cjP  ", b"\xff\x4f\xff\x51")),
    (b"\0\0\1\0", "ICO"),
    (b"icns", "ICNS"),
    (b"DDS ", "DDS"),
    (b"qoif", "QOI"),
    (b"\x01\xda", "SGI"),
    (b"8BPS\0\1", "PSD"),
    *((mark, "RAW") for mark in (b"IIRO", b"IIRS", b"MMOR", b"IIU\0", b"FUJIFILMCCD-RAW", b"FOVb", b"\0MRM")),
    *((mark, "video") for mark in (b"\x1aE\xdf\xa3", b"\0\0\1\xba", b"0&\xb2u", b"FLV\1", b"OggS")),
)

_FOREIGN_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"%PDF", "a PDF document"),
    (b"%!PS", "a PostScript document"),
    (b"\xc5\xd0\xd3\xc6", "a PostScript document"),
    (b"PK\3\4", "a ZIP archive or office document"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"8BPS", "a large Photoshop document"),
    (b"\xff\x0a", "a JPEG XL picture"),
    (b"\0\0\0\x0cJXL ", "a JPEG XL picture"),
    (b"RIFF", "a sound file"),
)

_ISO_BRANDS = {
    **dict.fromkeys((b"avif", b"avis"), "AVIF"),
    **dict.fromkeys((b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"), "HEIC"),
    b"crx ": "RAW",
}
_TITLES = {"HEIC": "a HEIC picture", "RAW": "a RAW photograph", "SVG": "an SVG drawing", "video": "a video"}


class LateImageFile(ImageFile.ImageFile):
    """A picture that another package reads: the size is known when it is opened, pixels are made when wanted."""

    @abstractmethod
    def _decoded(self) -> Image.Image: ...

    def load(self) -> Any:
        """Make the pixels."""
        if self._im is None:
            image = self._decoded()
            image.load()
            self.im, self._mode, self._size, self.tile = image.im, image.mode, image.size, []
        return Image.Image.load(self)


def open_regular_file(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file for reading, or raise why not; pipes and devices are refused before they can make anyone wait.

    The error names the file with everything unprintable escaped, so it can be shown as it is. Of a moment of a video,
    it is the video that is opened.

    >>> from diptych.encoders.image.picture_formats import open_regular_file
    >>> open_regular_file("nowhere.jpg")
    Traceback (most recent call last):
    diptych.errors.InvalidInputError: nowhere.jpg does not exist; pass the path of a picture file
    """
    name = shown_name(os.fspath(path))
    path, _ = split_moment(path)
    try:
        if isinstance(path, RemotePath):
            return path.open("rb")
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


def open_image(file: BinaryIO, seconds: float | None = None, *, to_decode: bool = True) -> ImageFile.ImageFile:
    """Return the still undecoded picture in a file of a known format; ValueError says why there is none.

    Of a video it is a frame: the one at that many ``seconds`` from its beginning, or else the first that shows
    something. Whoever will not decode it need not wait for a check of what that would take.
    """
    kind = picture_format(file)
    if kind == "TIFF" and _is_raw_tiff(file):
        kind = "RAW"
    check_format(file, kind)
    if kind == "JPEG" and to_decode:
        # A small file that passes over the picture again and again would keep the decoder busy for hours.
        if (scans := count_scans(file)) > MOST_SCANS:
            raise ValueError(f"it has {scans:,} scans, and no honest JPEG has more than {MOST_SCANS}")
        file.seek(0)
    opener = _opener(kind)
    image = cast(ImageFile.ImageFile, opener(file, seconds) if kind == "video" else opener(file))
    if image.width * image.height > _MOST_PIXELS.get(kind, math.inf):
        most = f"{_MOST_PIXELS[kind]:,}"
        raise ValueError(f"it has {image.width:,} × {image.height:,} pixels, and {kind} may have {most}")
    return image


def picture_format(file: BinaryIO) -> str:
    """Return the format of a picture file by its first bytes, or what else it is; a camera's own may be called TIFF."""
    file.seek(0)
    start = file.read(_SNIFFED_BYTES)
    file.seek(0)
    return _kind(start)


def check_format(file: BinaryIO, kind: str) -> None:
    """Raise ValueError where a file of a kind is no picture, is too large for one, or lacks a package to read it."""
    if kind not in PICTURE_FORMATS:
        raise ValueError(f"it is {kind}, not one of {', '.join(PICTURE_FORMATS)}")
    size, limit = file.seek(0, os.SEEK_END), _LARGEST_FILES.get(kind, _LARGEST_FILE)
    file.seek(0)
    if size > limit:
        raise ValueError(f"the file has {size:,} bytes, and at most {limit:,} are read")
    if kind in _OTHERS and find_spec(_OTHERS[kind][0]) is None:
        raise ValueError(f"it is {_TITLES[kind]}, which {EXTRA} reads: pip install '{EXTRA}'")


def _opener(kind: str) -> type:
    """Return the class that reads a format."""
    if kind in _PILLOW:
        name = _PILLOW[kind]
        return cast(type, getattr(import_module(f"PIL.{name}ImagePlugin"), f"{name}ImageFile"))
    _, module, name = _OTHERS[kind]
    return cast(type, getattr(import_module(module), name))


def _is_raw_tiff(file: BinaryIO) -> bool:
    """Return True if a TIFF file is what a camera writes: by its name, its mark, or tags that only such files have."""
    try:
        if file.read(10)[8:] == b"CR" or is_raw(str(getattr(file, "name", ""))):
            return True
        file.seek(0)
        tags = Image.Exif()
        tags.load_from_fp(file)
        # A version of DNG; or the first picture is a small one, and the others stand below it.
        return _DNG_VERSION in tags or (_BELOW in tags and tags.get(_PURPOSE, 0) == _SMALL_COPY)
    except Exception:
        # Pillow's own reader has the words for what is wrong.
        return False
    finally:
        file.seek(0)


_PURPOSE, _SMALL_COPY, _BELOW, _DNG_VERSION = 254, 1, 330, 50706


def shown_name(path: str) -> str:
    """Return a path as text that any terminal can show: odd bytes and control characters become escapes."""
    text = path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


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
    if start[:4] == b"RIFF" and start[8:12] in (b"WEBP", b"AVI "):
        return "WebP" if start[8:12] == b"WEBP" else "video"
    if start[4:8] == b"ftyp":
        return _iso_kind(start)
    # Older films begin without that mark; packets of a broadcast begin with the same byte, in some files after a time.
    is_film = start[4:8] in (b"moov", b"mdat", b"wide")
    if is_film or start[0:377:188] == b"GGG" or start[4:389:192] == b"GGG":
        return "video"
    for signature, kind in _SIGNATURES + _FOREIGN_SIGNATURES:
        if start.startswith(signature):
            return kind
    return _unmarked_kind(start)


def _iso_kind(start: bytes) -> str:
    length = min(int.from_bytes(start[:4], "big"), len(start))
    brands = [start[8:12], *(start[place : place + 4] for place in range(16, length, 4))]
    kinds = [_ISO_BRANDS[brand] for brand in brands if brand in _ISO_BRANDS]
    # A still picture may call itself by the general brand and only list the special one.
    return "AVIF" if "AVIF" in kinds else kinds[0] if kinds else "video"


def _unmarked_kind(start: bytes) -> str:
    head = start.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if b"<svg" in head:
        return "SVG"
    if head.startswith((b"<!doctype html", b"<html")):
        return "a web page"
    if all(byte >= 32 or byte in b"\t\r\n" for byte in start) and b"\x7f" not in start:
        # Drawings may begin with long remarks.
        return "SVG" if head.startswith(b"<?xml") and b"svg" in head else "text"
    if start[0] == 10 and start[1] in (0, 2, 3, 4, 5) and start[2:4] in (b"\1\1", b"\1\2", b"\1\4", b"\1\x08"):
        return "PCX"
    # No mark at all, but hardly anything else has numbers like these in its first 18 bytes.
    if len(start) >= 18 and start[1] < 2 and start[2] in (1, 2, 3, 9, 10, 11) and start[16] in (8, 16, 24, 32):
        return "TGA"
    return "in an unknown format"
