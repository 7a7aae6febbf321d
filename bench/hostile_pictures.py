"""Give broken and boastful pictures to whatever decodes, and see that each is read or refused within bounds.

    python -m bench.hostile_pictures [--minutes 10] [--files 0]

Some files are made to boast: headers of a million columns, a bomb of zeros, thousands of chunks, tags that overlap,
comments without end, drawings that never finish. The others are pictures and videos of every format that are cut, with
bytes flipped, lengths exchanged and parts of one another. Each is read as indexing reads it: facts, thumbnail, moments,
and the pixels that a network sees. Whatever is said must be an error of Diptych; a process beyond 1 GB
and a file that keeps this one busy for seconds are findings, too. Then it is sent to a service as a picture to search
with, beside a client that searches four times a second: an answer 5xx other than 503 and 507 and a search of more than
two seconds are findings, and memory counts there as well. Files of findings are kept in
``bench/corpus/pictures``. Exits with 1 where there was a finding.
"""

from __future__ import annotations

import io
import itertools
import os
import random
import struct
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
from PIL import Image

from bench.campaign import add_round, arguments, next_seed
from bench.fuzz import Input, garbled, keep
from bench.hostile_requests import HEADERS, MAX_BYTES, MAX_WAIT_S, searched_service
from bench.servers import Memory
from diptych.collection.indexing.file_facts import FileRequest, file_facts
from diptych.encoders import read_picture
from diptych.errors import DiptychError
from tests.doubles.picture_samples import picture, write_picture

FAULT = "hostile pictures"
CORPUS = Path(__file__).parent / "corpus" / "pictures"
# Of the processor, in this process, where others wait; those that decode for it have bounds of their own.
MAX_SECONDS = 5.0
SUFFIXES = (
    *("jpg", "png", "gif", "webp", "tif", "bmp", "ppm", "avif", "jp2", "tga", "ico", "pcx", "dds", "sgi", "psd"),
    *("qoi", "heic", "dng", "svg", "mp4", "webm", "avi", "mkv"),
)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png(width: int, height: int, rows: bytes, *notes: bytes, depth: int = 8, colour: int = 0) -> bytes:
    """Return a picture of which the header says one size and the rows may be others."""
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    start = b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + b"".join(notes)
    return start + _chunk(b"IDAT", zlib.compress(rows, 1)) + _chunk(b"IEND", b"")


def whole_png(side: int) -> bytes:
    """Return a picture that is nothing but transparent, however large, without ever holding it."""
    packer = zlib.compressobj(1)
    rows = b"".join(packer.compress(bytes(1 + 4 * side)) for _ in range(side)) + packer.flush()
    start = png(side, side, b"", colour=6)[:33]
    return start + _chunk(b"IDAT", rows) + _chunk(b"IEND", b"")


def _jpeg(*segments: bytes, size: tuple[int, int] | None = None, **options: object) -> bytes:
    content = io.BytesIO()
    picture(3).save(content, "JPEG", **options)
    made = content.getvalue()
    if size is not None:
        place = next(made.index(mark) for mark in (b"\xff\xc0", b"\xff\xc2") if mark in made) + 5
        made = made[:place] + struct.pack(">HH", *size) + made[place + 4 :]
    return made[:2] + b"".join(segments) + made[2:]


def _exif(entries: list[tuple[int, int, int, int]], room: int) -> bytes:
    tags = struct.pack("<H", len(entries)) + b"".join(struct.pack("<HHII", *entry) for entry in entries) + bytes(4)
    notes = b"Exif\0\0II*\0\x08\0\0\0" + tags + bytes(room)
    return b"\xff\xe1" + struct.pack(">H", len(notes) + 2) + notes


def boastful() -> Iterator[Input]:
    """Yield files that are made on purpose."""
    for side, depth, colour in itertools.product((9_000, 14_000, 40_000), (1, 8, 16), (0, 2, 6)):
        if depth > 1 or colour == 0:
            yield ".png", png(side, side, bytes(3_000_000), depth=depth, colour=colour)
    # Whole, and within the limit of pixels.
    yield ".png", whole_png(13_000)
    yield ".png", png(4, 4, bytes(20), *[_chunk(b"tEXt", b"a\0b")] * 50_000)
    yield ".png", png(4, 4, bytes(20), _chunk(b"zTXt", b"note\0\0" + zlib.compress(bytes(90_000_000))))
    yield ".png", png(4, 4, bytes(20), _chunk(b"eXIf", b"II*\0\x08\0\0\0" + b"\xff" * 60_000))
    overlapping = [(40_000 + number, 7, 55_000, 8) for number in range(450)]
    yield ".jpg", _jpeg(_exif(overlapping, 59_000))
    yield ".jpg", _jpeg(*[_exif(overlapping, 59_000)] * 200)
    yield ".jpg", _jpeg(_exif([(0x8769, 4, 1, 8), (0x8825, 4, 1, 8)], 8))
    yield ".jpg", _jpeg(*[b"\xff\xfe\0\x02"] * 200_000)
    yield ".jpg", _jpeg(size=(65_500, 3_000), progressive=True)
    yield ".jpg", _jpeg(size=(14_000, 14_000), progressive=True)
    yield ".jpg", _jpeg(size=(14_000, 14_000))
    small = io.BytesIO()
    Image.new("P", (8, 8)).save(small, "GIF")
    head, tail = small.getvalue()[:13], small.getvalue()[13:]
    yield ".gif", head + b"!\xfe" + (b"\xff" + bytes(255)) * 10_000 + b"\0" + tail
    yield ".gif", head + (b"!\xfe\xff" + bytes(255) + b"\0") * 5_000 + tail
    yield ".gif", b"GIF89a" + struct.pack("<HHBBB", 65_535, 3_000, 0, 0, 0) + b","
    for size in ((16_000, 16_000), (16_383, 12_000)):
        extended = b"\x12\0\0\0" + (size[0] - 1).to_bytes(3, "little") + (size[1] - 1).to_bytes(3, "little")
        webp = b"WEBPVP8X" + struct.pack("<I", 10) + extended + b"ANIM" + struct.pack("<I", 6) + bytes(6)
        yield ".webp", b"RIFF" + struct.pack("<I", len(webp)) + webp
    for count in (60_000, 5):
        entry = struct.pack("<HHII", 40_000, 7, 2**31, 8)
        yield ".tif", b"II*\0" + struct.pack("<IH", 8, count) + entry * min(count, 60_000) + bytes(2_000_000)
    tags = [(256, 4, 14_000), (257, 4, 14_000), (258, 3, 8), (259, 3, 5), (262, 3, 1), (273, 4, 8), (278, 4, 14_000)]
    entries = b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in (*tags, (279, 4, 2**31)))
    yield ".tif", b"II*\0" + struct.pack("<IH", 8, 8) + entries + bytes(1000)
    yield ".ppm", b"P3 14000 14000 255\n" + b"1 " * 1_000_000
    yield ".ppm", b"P6\n#" + b"x" * 5_000_000
    bmp = struct.pack("<IiiHHIIiiII", 40, 14_000, 14_000, 1, 8, 1, *[0] * 5)
    yield ".bmp", b"BM" + struct.pack("<IHHI", 10_000, 0, 0, 54) + bmp
    yield ".qoi", b"qoif" + struct.pack(">IIBB", 14_000, 14_000, 4, 0) + b"\xfd" * 3_000_000
    space = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9">'
    uses = "".join(f'<g id="u{n + 1}">' + f'<use href="#u{n}"/>' * 10 + "</g>" for n in range(9)).encode()
    clouds = b'<filter id="f"><feTurbulence numOctaves="99999999"/></filter>'
    yield ".svg", space + clouds + b'<rect width="9" height="9" filter="url(#f)"/></svg>'
    yield ".svg", space + b'<rect id="u0" width="1" height="1"/>' + uses + b"</svg>"
    yield ".svg", space + b"<g>" * 200_000
    yield ".svg", space + b"<path d='M0 0" + b"L1 1" * 3_000_000 + b"'/></svg>"


def samples(folder: Path) -> list[Input]:
    """Return a good file of each format."""
    made = []
    for number, suffix in enumerate(SUFFIXES):
        try:
            write_picture(folder / f"a.{suffix}", picture(number))
            made.append((f".{suffix}", (folder / f"a.{suffix}").read_bytes()))
        except (KeyError, ValueError, OSError):
            # Not every build of the libraries writes every format.
            continue
    return made


def read(path: Path) -> str:
    """Read a file as indexing does, and say what came of it."""
    file_facts(FileRequest(path))
    try:
        read_picture(path, shortest_side=260)
    except DiptychError:
        return "refused"
    return "read"


def send(port: int, suffix: str, content: bytes) -> str:
    """Send a picture to search with; return the status, or the error that came instead of an answer."""
    try:
        files = {"picture": (f"given{suffix}", content)}
        address = f"http://127.0.0.1:{port}/v1/uploads"
        return str(httpx.post(address, headers=HEADERS, files=files, timeout=60).status_code)
    except httpx.HTTPError as error:
        return type(error).__name__


def main() -> None:
    """Read and send files until the time is over."""
    parser = arguments(__doc__, minutes=10.0)
    parser.add_argument("--files", type=int, default=0, help="stop after so many")
    options = parser.parse_args()
    seed = next_seed(options.record, FAULT)
    rng, memory = random.Random(seed), Memory(os.getpid())
    counts, answers, findings, longest = Counter[str](), Counter[str](), 0, 0.0
    with tempfile.TemporaryDirectory() as name, searched_service(Path(name), "--rate-limit=0") as (_, port, other):
        memory.start()
        begun = time.monotonic()
        good, n_heard = samples(Path(name)), 0
        made = itertools.chain(boastful(), (garbled(rng, good, 1 << 22) for _ in itertools.count()))
        for number, (suffix, content) in enumerate(made):
            if time.monotonic() - begun > 60 * options.minutes or (options.files and number >= options.files):
                break
            path = Path(name, f"given{suffix}")
            path.write_bytes(content)
            most, computed, wrong = memory.most_of_one, time.process_time(), ""
            try:
                counts[read(path)] += 1
            except Exception as error:
                wrong = f"{type(error).__name__}: {error}"
            longest = max(longest, seconds := time.process_time() - computed)
            answers[status := send(port, suffix, content)] += 1
            # While the file was read, too.
            waited = max(other.seconds[n_heard:], default=0.0)
            n_heard = len(other.seconds)
            if seconds > MAX_SECONDS:
                wrong = f"it takes {seconds:.0f} seconds of this process"
            elif not status.isdigit() or (status[0] == "5" and status not in ("503", "507")):
                wrong = f"it is answered with {status}"
            elif waited > MAX_WAIT_S:
                wrong = f"somebody else waited for {waited:.1f} seconds"
            elif memory.most_of_one > max(most, MAX_BYTES):
                wrong = f"it takes {memory.most_of_one:,} bytes of memory"
            if wrong:
                findings += 1
                print(f"{wrong}\n{keep(CORPUS, (suffix, content))}\n", file=sys.stderr)
    told = {"trials": answers.total(), "minutes": round((time.monotonic() - begun) / 60, 1), "findings": findings}
    told |= {"files": dict(counts), "own_seconds": round(longest, 2), "memory": memory.most_of_one}
    told |= {"answers": dict(sorted(answers.items())), **other.told(), "load": round(os.getloadavg()[0], 1)}
    add_round(options.record, FAULT, seed, **told)
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
