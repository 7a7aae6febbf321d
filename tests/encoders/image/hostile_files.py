"""Makes a folder of more than five hundred files that no picture reader should trust."""

from __future__ import annotations

import io
import os
import random
import socket
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

from PIL import Image

Verdict = Literal["read", "refused", "either"]

FORMATS: dict[str, dict[str, object]] = {
    "jpg": {"format": "JPEG", "quality": 90},
    "progressive.jpg": {"format": "JPEG", "progressive": True},
    "png": {"format": "PNG"},
    "gif": {"format": "GIF"},
    "webp": {"format": "WEBP"},
    "lossless.webp": {"format": "WEBP", "lossless": True},
    "tif": {"format": "TIFF"},
    "deflated.tif": {"format": "TIFF", "compression": "tiff_deflate"},
    "bmp": {"format": "BMP"},
    "ppm": {"format": "PPM"},
    "avif": {"format": "AVIF"},
}
CUTS = 22
FLIPPED_COPIES = 20


class HostileFile(NamedTuple):
    """One file, what is wrong with it, and whether it must be read, must be refused or may be either."""

    path: Path
    kind: str
    verdict: Verdict


def make_hostile_files(folder: Path, seed: int = 0) -> list[HostileFile]:
    """Fill the folder and return what is in it; links, pipes and odd names only where the system has them."""
    dice = random.Random(seed)
    whole = {suffix: encoded(_photo(dice), suffix) for suffix in FORMATS}
    makers: tuple[Callable[[Path], Iterator[HostileFile]], ...] = (
        lambda here: _truncated(here, whole),
        lambda here: _flipped(here, whole, dice),
        lambda here: _empty_and_tiny(here),
        lambda here: _bombs(here),
        lambda here: _disguised(here, whole),
        lambda here: _broken_exif(here, dice),
        lambda here: _damaged_structure(here, whole),
        lambda here: _odd_names(here, whole["jpg"]),
        lambda here: _no_files(here, whole["jpg"]),
    )
    made = []
    for number, maker in enumerate(makers):
        here = folder / f"{number}"
        here.mkdir(parents=True)
        made.extend(maker(here))
    return made


def encoded(image: Image.Image, suffix: str) -> bytes:
    """Return the bytes of a picture file."""
    content = io.BytesIO()
    image.save(content, **FORMATS[suffix])
    return content.getvalue()


def png(width: int, height: int, rows: bytes, *, depth: int = 8, colour: int = 0) -> bytes:
    """Return a PNG whose header may promise more than its compressed rows hold."""
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows)) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def _photo(dice: random.Random) -> Image.Image:
    """Return something with texture, so that compressed files are long enough to be cut in many places."""
    ramp = Image.linear_gradient("L").resize((64, 48))
    noise = Image.frombytes("L", (64, 48), dice.randbytes(64 * 48))
    return Image.merge("RGB", [ramp, Image.blend(ramp, noise, 0.3), noise])


def _written(path: Path, content: bytes, kind: str, verdict: Verdict) -> HostileFile:
    path.write_bytes(content)
    return HostileFile(path, kind, verdict)


def _truncated(here: Path, whole: dict[str, bytes]) -> Iterator[HostileFile]:
    for suffix, content in whole.items():
        for cut in range(CUTS):
            # Half of the cuts fall into the headers, where the code paths are.
            length = cut + 1 if cut < CUTS // 2 else len(content) * (cut - CUTS // 2) // (CUTS - CUTS // 2)
            yield _written(here / f"cut{cut}.{suffix}", content[:length], "truncated", "either")


def _flipped(here: Path, whole: dict[str, bytes], dice: random.Random) -> Iterator[HostileFile]:
    for suffix, content in whole.items():
        for copy in range(FLIPPED_COPIES):
            damaged = bytearray(content)
            reach = len(damaged) if copy % 2 else min(200, len(damaged))
            for _ in range(1 + copy // 2):
                damaged[dice.randrange(reach)] ^= 1 << dice.randrange(8)
            yield _written(here / f"flip{copy}.{suffix}", bytes(damaged), "bits flipped", "either")


def _empty_and_tiny(here: Path) -> Iterator[HostileFile]:
    for suffix in FORMATS:
        yield _written(here / f"empty.{suffix}", b"", "empty", "refused")
        yield _written(here / f"zeros.{suffix}", bytes(5000), "only zero bytes", "refused")
        pixel = Image.new("RGB", (1, 1), (200, 30, 30))
        yield _written(here / f"pixel.{suffix}", encoded(pixel, suffix), "one pixel", "read")
    for suffix, size in (("png", (1, 60_000)), ("png", (60_000, 1)), ("jpg", (65_000, 2)), ("jpg", (2, 65_000))):
        path = here / f"strip{size[0]}x{size[1]}.{suffix}"
        yield _written(path, encoded(Image.new("RGB", size, "navy"), suffix), "a long strip", "read")


def _bombs(here: Path) -> Iterator[HostileFile]:
    side = 50_000
    rows = bytes(1_000_000)
    for colour, depth in ((0, 8), (2, 8), (3, 8), (6, 8), (0, 1), (2, 16)):
        content = png(side, side, rows, depth=depth, colour=colour)
        yield _written(here / f"bomb{colour}-{depth}.png", content, "a pixel bomb", "refused")
    jpeg = encoded(Image.new("L", (8, 8)), "jpg")
    place = jpeg.index(b"\xff\xc0") + 5
    huge = jpeg[:place] + struct.pack(">HH", 65_500, 65_500) + jpeg[place + 4 :]
    yield _written(here / "bomb.jpg", huge, "a pixel bomb", "refused")
    bmp = b"BM" + struct.pack("<IHHI", 10_000, 0, 0, 54) + struct.pack("<IiiHHIIiiII", 40, side, side, 1, 24, *[0] * 6)
    yield _written(here / "bomb.bmp", bmp + bytes(1000), "a pixel bomb", "refused")
    yield _written(here / "bomb.ppm", b"P6 50000 50000 255\n" + bytes(1000), "a pixel bomb", "refused")
    gif = b"GIF89a" + struct.pack("<HHBBB", 65_535, 65_535, 0, 0, 0)
    frame = b"," + struct.pack("<HHHHB", 0, 0, 65_535, 65_535, 0) + b"\x02\x02\x4c\x01\x00;"
    yield _written(here / "bomb.gif", gif + frame, "a pixel bomb", "refused")
    extended = b"\x10\0\0\0" + (2**24 - 1).to_bytes(3, "little") + (200).to_bytes(3, "little")
    webp = b"WEBPVP8X" + struct.pack("<I", 10) + extended
    yield _written(here / "bomb.webp", b"RIFF" + struct.pack("<I", len(webp)) + webp, "a pixel bomb", "refused")
    tags = [(256, 4, side), (257, 4, side), (258, 3, 8), (259, 3, 1), (262, 3, 1), (273, 4, 8), (278, 4, side)]
    entries = b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in tags)
    tiff = b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + bytes(1000)
    yield _written(here / "bomb.tif", tiff, "a pixel bomb", "refused")
    yield _written(here / "endless.png", png(150_000_000, 1, rows, depth=1), "a pixel bomb", "refused")
    progressive = encoded(Image.effect_noise((64, 48), 60), "progressive.jpg")
    start, _, scan = progressive[:-2].rpartition(b"\xff\xda")
    content = start + 5000 * (b"\xff\xda" + scan) + progressive[-2:]
    yield _written(here / "scans.jpg", content, "a scan bomb", "refused")
    # Within the limit, and honest: a hundred megapixels of one bit in a few kilobytes.
    honest = png(10_000, 10_000, bytes(10_000 * 1_251), depth=1)
    yield _written(here / "large.png", honest, "very large", "read")
    note = zlib.compress(bytes(80_000_000))
    start, end = png(1, 1, b"\0\0")[:33], png(1, 1, b"\0\0")[33:]
    content = start + _chunk(b"zTXt", b"note\0\0" + note) + end
    yield _written(here / "text-bomb.png", content, "a text bomb", "either")


def _disguised(here: Path, whole: dict[str, bytes]) -> Iterator[HostileFile]:
    for suffix, content in whole.items():
        for wrong in ("jpg", "png", "txt"):
            yield _written(here / f"really-{suffix}.{wrong}", content, "wrong extension", "read")
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("photo.jpg", whole["jpg"])
    others = {
        "text": b"This is not a picture.\n" * 20,
        "zip": archive.getvalue(),
        "pdf": b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog >>\nendobj\n",
        "postscript": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n(/tmp/owned) (w) file closefile\n",
        "binary-postscript": b"\xc5\xd0\xd3\xc6" + bytes(60),
        "drawing": b'<?xml version="1.0"?><!DOCTYPE svg [<!ENTITY a "b">]><svg xmlns="http://www.w3.org/2000/svg"/>',
        "page": b"<!DOCTYPE html><html><body>404</body></html>",
        "heic": b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + bytes(100),
        "video": b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom" + bytes(100),
        "avif": b"\0\0\0\x1cftypavif\0\0\0\0avifmif1miaf" + bytes(100),
        "sound": b"RIFF" + struct.pack("<I", 40) + b"WAVEfmt " + bytes(40),
        "database": b"SQLite format 3\0" + bytes(100),
        "program": b"\x7fELF\x02\x01\x01" + bytes(100),
        "gzip": b"\x1f\x8b\x08" + bytes(30),
        "jpeg2000": b"\0\0\0\x0cjP  \r\n\x87\n" + bytes(40),
        "icon": b"\0\0\1\0\1\0" + bytes(60),
        "photoshop": b"8BPS\0\x01" + bytes(40),
        "newlines": b"\n" * 1000,
        "noise": random.Random(5).randbytes(5000),
    }
    for kind, content in others.items():
        for suffix in ("jpg", "png"):
            yield _written(here / f"{kind}.{suffix}", content, f"{kind} in disguise", "refused")


def _broken_exif(here: Path, dice: random.Random) -> Iterator[HostileFile]:
    photo = encoded(_photo(dice), "jpg")
    for copy in range(16):
        notes = b"Exif\0\0" + (b"II*\0" if copy % 2 else b"MM\0*") + dice.randbytes(4 + 8 * copy)
        segment = b"\xff\xe1" + struct.pack(">H", len(notes) + 2) + notes
        yield _written(here / f"notes{copy}.jpg", photo[:2] + segment + photo[2:], "broken camera notes", "read")
    for copy, (kind, value) in enumerate([(3, 0), (3, 9), (3, 65_535), (2, 7), (4, 2**31), (5, 8), (12, 8), (99, 6)]):
        notes = b"Exif\0\0II*\0\x08\0\0\0\x01\0" + struct.pack("<HHII", 0x0112, kind, 1, value) + bytes(4)
        segment = b"\xff\xe1" + struct.pack(">H", len(notes) + 2) + notes
        yield _written(here / f"turned{copy}.jpg", photo[:2] + segment + photo[2:], "broken rotation", "read")


def _damaged_structure(here: Path, whole: dict[str, bytes]) -> Iterator[HostileFile]:
    yield _written(here / "no-width.png", png(0, 10, b""), "no width", "refused")
    yield _written(here / "no-rows.png", png(10, 10, b""), "no rows", "refused")
    yield _written(here / "odd-depth.png", png(4, 4, bytes(20), depth=7), "impossible depth", "refused")
    yield _written(here / "no-palette.png", png(4, 4, bytes(20), colour=3), "no palette", "either")
    flaw = bytearray(whole["png"])
    flaw[30] ^= 0xFF
    yield _written(here / "checksum.png", bytes(flaw), "wrong checksum", "refused")
    yield _written(here / "tail.jpg", whole["jpg"] + bytes(10_000), "bytes after the end", "read")
    yield _written(here / "twice.jpg", whole["jpg"] * 2, "two pictures", "read")
    frames = [_photo(random.Random(seed)) for seed in range(3)]
    animation = io.BytesIO()
    frames[0].save(animation, format="GIF", save_all=True, append_images=frames[1:])
    yield _written(here / "cut-animation.gif", animation.getvalue()[:-1000], "cut animation", "read")


def _odd_names(here: Path, content: bytes) -> Iterator[HostileFile]:
    names: list[str | bytes] = [
        "naïve café.jpg",
        "cafe\u0301.jpg",
        "写真.jpg",
        "صورة.jpg",
        "\u202egpj.txt",
        "🏖️🐕.jpg",
        "line\nbreak.jpg",
        "tab\tand\rreturn.jpg",
        "-rf.jpg",
        "  spaces  .jpg",
        "$(touch owned).jpg",
        "%s%n.jpg",
        "bell\a\x1b[31m.jpg",
        "no extension",
        ".hidden.jpg",
        "x" * 251 + ".jpg",
        b"not-utf8-\xff\xfe.jpg",
        b"half-\xe4\xb8.jpg",
    ]
    for name in names:
        with suppress(OSError):
            yield _written(here / os.fsdecode(name), content, "odd name", "read")


def _no_files(here: Path, content: bytes) -> Iterator[HostileFile]:
    yield HostileFile(here / "absent.jpg", "absent", "refused")
    yield HostileFile(here / ("y" * 300 + ".jpg"), "too long a name", "refused")
    yield HostileFile(here / "null\0byte.jpg", "a null byte in the name", "refused")
    (here / "folder.jpg").mkdir()
    yield HostileFile(here / "folder.jpg", "a folder", "refused")
    locked = _written(here / "locked.jpg", content, "no permission", "refused")
    locked.path.chmod(0)
    yield locked if not os.access(locked.path, os.R_OK) else locked._replace(verdict="read")
    with suppress(OSError, NotImplementedError, AttributeError):
        yield from _links_and_pipes(here, content)


def _links_and_pipes(here: Path, content: bytes) -> Iterator[HostileFile]:
    target = here / "target.jpg"
    target.write_bytes(content)
    links = {"self": "self.jpg", "there": "back.jpg", "back": "there.jpg", "dangling": "gone.jpg", "up": ".."}
    for name, aim in links.items():
        (here / f"{name}.jpg").symlink_to(aim)
        yield HostileFile(here / f"{name}.jpg", "a bad link", "refused")
    for number, device in enumerate(("/dev/zero", "/dev/random", "/dev/tty", "/dev/null")):
        (here / f"device{number}.jpg").symlink_to(device)
        yield HostileFile(here / f"device{number}.jpg", "a device", "refused")
    (here / "good-link.jpg").symlink_to(target)
    yield HostileFile(here / "good-link.jpg", "a good link", "read")
    os.mkfifo(here / "pipe.jpg")
    yield HostileFile(here / "pipe.jpg", "a pipe", "refused")
    with socket.socket(socket.AF_UNIX) as endpoint:
        endpoint.bind(str(here / "socket.jpg"))
    yield HostileFile(here / "socket.jpg", "a socket", "refused")
