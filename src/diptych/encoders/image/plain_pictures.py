"""Which picture files are so plain that decoding them here can do no harm; all others are decoded elsewhere.

JPEG and PNG are nearly all that people have, and their decoders are those of every browser. What is left to hostile
files of these formats is to be long, large or contradictory, and that can be seen in their structure, without decoding.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
from PIL import Image

_MOST_MEMORY = 96 * 2**20
# Honest files have a few dozen; Pillow spends microseconds on each, and a file could have millions.
_MOST_SEGMENTS, _MOST_CHUNKS, _MOST_NOTES = 500, 50_000, 200
_LARGEST_NOTES = 2**24
_COUNTED_BYTES = 2**20
# Where entropy-coded data pass over all pixels again and again.
_MOST_SCANNED_PIXELS = 2_000_000_000
MOST_SCANS, _ORDINARY_SCANS = 500, 20
_UNIT_SIZES = (0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8)
_DIRECTORIES = (0x8769, 0x8825, 0xA005)
_MOST_TAGS = 500


def is_plain(file: BinaryIO) -> bool:
    """Return True if a file is a JPEG or PNG without anything odd in its structure; nothing is decoded."""
    file.seek(0)
    start = file.read(8)
    try:
        if start.startswith(b"\xff\xd8\xff"):
            return _is_plain_jpeg(file)
        return start == b"\x89PNG\r\n\x1a\n" and _is_plain_png(file)
    except struct.error:
        return False
    finally:
        file.seek(0)


def takes_little_memory(image: Image.Image, whole: tuple[int, int]) -> bool:
    """Return True if a picture can be decoded beside others: as it will come out, and as it is stored, ``whole``."""
    bands = len(image.getbands())
    pixels = image.width * image.height * (1 if bands == 1 and image.mode not in "IF" else 4)
    # What is progressive is held whole, whatever size it comes out with.
    held = whole[0] * whole[1] * 2 * bands if "progressive" in image.info else 0
    return pixels + held <= _MOST_MEMORY


def count_scans(file: BinaryIO) -> int:
    """Return how often a JPEG passes over its picture, from wherever the file is."""
    scans, last = 0, b""
    while block := file.read(_COUNTED_BYTES):
        scans += _count_pairs(last + block, b"\xff\xda")
        last = block[-1:]
    return scans


def _count_pairs(content: bytes, pair: bytes) -> int:
    """Return how often two bytes follow one another; as numbers they are found in a quarter of the time of a text."""
    if len(content) < len(pair):
        return 0
    wanted = int.from_bytes(pair, "little")
    both = (np.frombuffer(content, "<u2", (len(content) - start) // 2, start) for start in (0, 1))
    return sum(int(np.count_nonzero(numbers == wanted)) for numbers in both)


def _is_plain_jpeg(file: BinaryIO) -> bool:
    file.seek(2)
    notes = pixels = 0
    for _ in range(_MOST_SEGMENTS):
        marker, length = struct.unpack(">HH", file.read(4))
        # Anything but a marker, or a length that is none.
        if marker < 0xFFC0 or length < 2:
            return False
        if marker == 0xFFDA:
            scans = count_scans(file)
            return pixels > 0 and scans <= MOST_SCANS and pixels * (scans - _ORDINARY_SCANS) < _MOST_SCANNED_PIXELS
        content = file.read(length - 2) if marker in (0xFFC0, 0xFFC1, 0xFFC2, 0xFFE1) else b""
        if marker in (0xFFC0, 0xFFC1, 0xFFC2):
            height, width = struct.unpack(">HH", content[1:5])
            pixels = width * height
        elif content.startswith(b"Exif\0\0"):
            notes += 1
            if notes > 1 or not _is_plain_exif(content[6:]):
                return False
        elif not content:
            file.seek(length - 2, os.SEEK_CUR)
    return False


def _is_plain_png(file: BinaryIO) -> bool:
    n_notes = n_bytes = 0
    for number, (kind, length) in enumerate(_chunks(file)):
        if kind == b"IEND":
            return n_notes <= _MOST_NOTES and n_bytes <= _LARGEST_NOTES
        if kind not in (b"IDAT", b"PLTE"):
            n_notes, n_bytes = n_notes + 1, n_bytes + length
        if number > _MOST_CHUNKS or n_notes > _MOST_NOTES or kind in (b"acTL", b"fcTL", b"fdAT"):
            return False
        if kind == b"eXIf" and not (length < 2**16 and _is_plain_exif(file.read(length))):
            return False
    # It ends before its end: Pillow has the words.
    return n_notes <= _MOST_NOTES and n_bytes <= _LARGEST_NOTES


def _chunks(file: BinaryIO) -> Iterator[tuple[bytes, int]]:
    place = 8
    while len(head := file.read(8)) == 8:
        length = int.from_bytes(head[:4], "big")
        yield head[4:], length
        place += length + 12
        file.seek(place)


def _is_plain_exif(content: bytes) -> bool:
    """Return True if tags take no more than the block they are in: overlapping ones would be copied again and again."""
    order = {b"II": "<", b"MM": ">"}.get(content[:2])
    if order is None:
        return len(content) < 2**16
    places, taken = [struct.unpack_from(order + "I", content, 4)[0]], 0
    for _ in range(1 + len(_DIRECTORIES)):
        if not places:
            break
        place = places.pop()
        n_tags = struct.unpack_from(order + "H", content, place)[0] if place + 2 <= len(content) else 0
        if n_tags > _MOST_TAGS:
            return False
        for number in range(n_tags):
            entry = content[place + 2 + 12 * number :][:12]
            if len(entry) == 12:
                tag, kind, count, value = struct.unpack(order + "HHII", entry)
                taken += count * (_UNIT_SIZES[kind] if kind < len(_UNIT_SIZES) else 0)
                places += [value] if tag in _DIRECTORIES else []
    return not places and taken <= 2 * len(content)
