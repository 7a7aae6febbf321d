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

import hashlib
import io
import itertools
import os
import random
import resource
import struct
import sys
import tempfile
import threading
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
from PIL import Image

from bench.campaign import add_round, arguments, next_seed
from bench.hostile_requests import HEADERS, LONGEST_WAIT, MOST_BYTES, OtherClient, make_collection, start_service
from diptych.collection.changes.file_facts import FileRequest, file_facts
from diptych.encoders import read_picture
from diptych.errors import DiptychError
from tests.doubles.picture_samples import picture, write_picture

FAULT = "hostile pictures"
CORPUS = Path(__file__).parent / "corpus" / "pictures"
# Of the processor, in this process, where others wait; those that decode for it have bounds of their own.
LONGEST_SECONDS = 5.0
SUFFIXES = (
    *("jpg", "png", "gif", "webp", "tif", "bmp", "ppm", "avif", "jp2", "tga", "ico", "pcx", "dds", "sgi", "psd"),
    *("qoi", "heic", "dng", "svg", "mp4", "webm", "avi", "mkv"),
)
NUMBERS = (0, 1, 0x7F, 0xFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 65_500, 50_000)

Input = tuple[str, bytes]
"""The ending of a file, and what is in it."""


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


def garbled(rng: random.Random, inputs: list[Input]) -> Input:
    """Return one of the inputs, cut, flipped, with other lengths, or with a part of another."""
    suffix, content = rng.choice(inputs)
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 4, 12))):
        # Half of the places fall into the headers, where the code paths are.
        place = rng.randrange(max(1, len(changed) if rng.random() < 0.5 else min(len(changed), 300)))
        way = rng.randrange(5)
        if way == 0:
            changed[place : place + 1] = bytes([rng.randrange(256)])
        elif way == 1:
            width = rng.choice((1, 2, 4, 8))
            number = rng.choice(NUMBERS) % 256**width
            changed[place : place + width] = number.to_bytes(width, rng.choice(("little", "big")))
        elif way == 2 and rng.random() < 0.3:
            del changed[place:]
        elif way == 3:
            other = rng.choice(inputs)[1]
            start = rng.randrange(len(other))
            changed[place : place + 50] = other[start : start + rng.choice((8, 50, 500))]
        else:
            changed[place:place] = changed[place : place + 40] * rng.choice((1, 3, 200))
    return suffix, bytes(changed[: 1 << 22])


class Watch(threading.Thread):
    """Remembers the most memory that this process and all that it led to have taken, and which those were."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most = self.most_elsewhere = 0
        self.seen: set[str] = set()

    def run(self) -> None:
        """Look many times a second."""
        while True:
            here = list(_started_by("self"))
            self.seen.update(here)
            self.most_elsewhere = max(self.most_elsewhere, *map(_memory, here), 0)
            self.most = max(self.most, self.most_elsewhere, _memory("self"))
            time.sleep(0.02)


def _started_by(pid: str) -> Iterator[str]:
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        # Threads and processes end meanwhile.
        with suppress(OSError):
            for child in file.read_text().split():
                yield child
                yield from _started_by(child)


def _memory(pid: str) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return 0


def read(path: Path) -> str:
    """Read a file as indexing does, and say what came of it."""
    file_facts(FileRequest(path))
    try:
        read_picture(path, shortest_side=260)
    except DiptychError:
        return "refused"
    return "read"


class Service:
    """A service that gets the files as pictures to search with, while somebody else searches."""

    def __init__(self, folder: Path) -> None:
        make_collection(folder)
        self._process, self._url = start_service(folder, "--rate-limit", "0")
        self._other = OtherClient(self._url)
        self._other.start()
        self._answers: Counter[str] = Counter()
        self._n_heard = 0

    def send(self, suffix: str, content: bytes) -> str:
        """Send a file; return what is wrong with the answer, or nothing."""
        try:
            files = {"picture": (f"given{suffix}", content)}
            status = str(httpx.post(f"{self._url}/v1/uploads", headers=HEADERS, files=files, timeout=60).status_code)
        except httpx.HTTPError as error:
            status = type(error).__name__
        self._answers[status] += 1
        # While the file was read, too.
        waits = self._other.seconds[self._n_heard :]
        self._n_heard += len(waits)
        if max(waits, default=0.0) > LONGEST_WAIT:
            return f"somebody else waited for {max(waits):.1f} seconds"
        is_right = status.isdigit() and (status[0] != "5" or status in ("503", "507"))
        return "" if is_right else f"it is answered with {status}"

    def end(self) -> dict[str, Any]:
        """Return what came of it, and end."""
        self._other.is_ending.set()
        self._other.join(timeout=70)
        told = {"answers": dict(sorted(self._answers.items())), **self._other.told()}
        told |= {"is_alive": self._process.poll() is None}
        self._process.terminate()
        self._process.wait(timeout=30)
        return told


def main() -> None:
    """Read and send files until the time is over."""
    parser = arguments(__doc__, minutes=10.0)
    parser.add_argument("--files", type=int, default=0, help="stop after so many")
    options = parser.parse_args()
    seed, begun = next_seed(options.record, FAULT), time.monotonic()
    rng, watch, ends = random.Random(seed), Watch(), begun + 60 * options.minutes
    counts, findings, slowest, longest = {"read": 0, "refused": 0}, 0, (0.0, ""), 0.0
    with tempfile.TemporaryDirectory() as name:
        service = Service(Path(name))
        watch.start()
        good = samples(Path(name))
        made = itertools.chain(boastful(), (garbled(rng, good) for _ in itertools.count()))
        for number, (suffix, content) in enumerate(made):
            if time.monotonic() > ends or (options.files and number >= options.files):
                break
            path = Path(name, f"given{suffix}")
            path.write_bytes(content)
            before, started, computed, wrong = watch.most, time.monotonic(), time.process_time(), ""
            try:
                counts[read(path)] += 1
            except Exception as error:
                wrong = f"{type(error).__name__}: {error}"
            slowest = max(slowest, (round(time.monotonic() - started, 1), f"{suffix} {number}"))
            longest = max(longest, seconds := time.process_time() - computed)
            if seconds > LONGEST_SECONDS:
                wrong = f"it takes {seconds:.0f} seconds of this process"
            wrong = wrong or service.send(suffix, content)
            if watch.most > max(before, MOST_BYTES):
                wrong = f"it takes {watch.most:,} bytes of memory"
            if wrong:
                findings += 1
                kept = CORPUS / f"{hashlib.sha256(content).hexdigest()[:16]}{suffix}"
                kept.parent.mkdir(parents=True, exist_ok=True)
                kept.write_bytes(content)
                print(f"{wrong}\n{kept}\n", file=sys.stderr)
        sent = service.end()
    findings += not sent["is_alive"]
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    told = {"trials": sum(counts.values()), "minutes": round((time.monotonic() - begun) / 60, 1), "findings": findings}
    told |= {"files": counts, "slowest": slowest, "own_seconds": round(longest, 2), "own_memory": own}
    told |= {"memory_elsewhere": watch.most_elsewhere, "processes": len(watch.seen), **sent}
    add_round(options.record, FAULT, seed, **told, load=round(os.getloadavg()[0], 1))
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
