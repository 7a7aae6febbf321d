from __future__ import annotations

import io
import json
import os
import signal
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from diptych.encoders import read_picture
from diptych.encoders.image import decoding_process, picture_decoding
from diptych.encoders.image.picture_decoding import read_image, upright_rgb
from diptych.encoders.image.picture_facts import picture_facts
from diptych.encoders.image.plain_pictures import count_scans, is_plain
from diptych.errors import InvalidInputError
from tests.encoders.image.hostile_files import png

pytestmark = pytest.mark.skipif(not decoding_process.is_available(), reason="opened files cannot be handed over here")


def encoded(image: Image.Image, format: str, **options: object) -> bytes:
    content = io.BytesIO()
    image.save(content, format, **options)
    return content.getvalue()


def photo(mode: str = "RGB", size: tuple[int, int] = (90, 60)) -> Image.Image:
    return Image.effect_noise(size, 60).convert("RGB").convert(mode)


def with_exif(tags: bytes, n_segments: int = 1) -> bytes:
    content = encoded(photo(), "JPEG")
    notes = b"Exif\0\0II*\0\x08\0\0\0" + tags
    return content[:2] + n_segments * (b"\xff\xe1" + struct.pack(">H", len(notes) + 2) + notes) + content[2:]


def overlapping_tags() -> bytes:
    """Return tags that name all of their block, each of them, so that who reads them has it hundreds of times."""
    entries = b"".join(struct.pack("<HHII", 40_000 + number, 7, 60_000, 8) for number in range(450))
    return struct.pack("<H", 450) + entries + bytes(4) + bytes(60_000)


def many_chunks() -> bytes:
    note = b"\0\0\0\0tEXt" + struct.pack(">I", zlib.crc32(b"tEXt"))
    whole = png(4, 4, bytes(20))
    return whole[:33] + 1000 * note + whole[33:]


PLAIN = {
    "a photograph": encoded(photo(), "JPEG"),
    "progressive": encoded(photo(), "JPEG", progressive=True),
    "with a date": with_exif(b"\x01\0" + struct.pack("<HHII", 0x0132, 2, 20, 26) + b"2019:07:14 18:05:31\0"),
    "a drawing": encoded(photo("RGBA"), "PNG"),
    "few colours": encoded(photo("P"), "PNG"),
}
ODD = {
    "animation": encoded(photo("P"), "GIF"),
    "many chunks": many_chunks(),
    "overlapping tags": with_exif(overlapping_tags()),
    "tags twice": with_exif(b"\0\0" + bytes(4), n_segments=2),
    "tags in a circle": with_exif(b"\x01\0" + struct.pack("<HHII", 0x8769, 4, 0, 8) + bytes(4)),
    "many segments": PLAIN["a photograph"][:2] + 600 * b"\xff\xfe\0\x02" + PLAIN["a photograph"][2:],
    "no markers": PLAIN["a photograph"][:30] + bytes(50),
    "cut": PLAIN["a photograph"][:21],
    "text": b"words",
    "nothing": b"",
}


@pytest.mark.parametrize("name", [*PLAIN, *ODD])
def test_what_is_plain_is_seen_without_decoding(name: str) -> None:
    file = io.BytesIO(PLAIN.get(name) or ODD[name])
    assert is_plain(file) is (name in PLAIN)
    assert file.tell() == 0


@pytest.mark.parametrize(
    "format", ["GIF", "WEBP", "TIFF", "BMP", "PPM", "AVIF", "ICO", "TGA", "JPEG2000", "PCX", "SGI"]
)
def test_what_is_decoded_elsewhere_is_the_same(format: str, tmp_path: Path) -> None:
    path = tmp_path / "picture"
    path.write_bytes(encoded(photo(size=(64, 64)), format))
    with Image.open(path) as image:
        expected = upright_rgb(image)
    np.testing.assert_array_equal(read_picture(path), expected)
    np.testing.assert_array_equal(read_picture(path.read_bytes()), expected)
    with path.open("rb") as file:
        np.testing.assert_array_equal(read_picture(file), expected)
        assert picture_facts(file, path).width == 64


@pytest.mark.parametrize("is_clear", [False, True])
def test_an_image_comes_back_as_it_was_stored(is_clear: bool) -> None:
    stored = photo("P")
    options = {"transparency": stored.getpixel((0, 0))} if is_clear else {}
    content = encoded(stored, "GIF", **options)
    image, expected = read_image(content), Image.open(io.BytesIO(content))
    expected.load()
    assert image.mode == expected.mode == "P"
    assert image.info.get("transparency") == expected.info.get("transparency")
    assert ("transparency" in image.info) is is_clear
    np.testing.assert_array_equal(np.asarray(image.convert("RGBA")), np.asarray(expected.convert("RGBA")))


def test_a_process_that_ends_costs_its_own_picture_only(monkeypatch: pytest.MonkeyPatch) -> None:
    content = encoded(photo(), "GIF")
    expected = read_picture(content)
    process = decoding_process._pool.queue[-1]
    assert process._started is not None
    os.kill(process._started.pid, signal.SIGKILL)
    process._started.wait()
    np.testing.assert_array_equal(read_picture(content), expected)
    # The processor time of importing Pillow's plugins is more than this.
    monkeypatch.setattr(picture_decoding, "MOST_SECONDS", 1e-6)
    with pytest.raises(InvalidInputError, match=r"takes more than 1e-06 seconds of processor time or 900 MiB"):
        read_picture(encoded(photo(size=(1500, 1000)), "TIFF", compression="tiff_lzw"))
    monkeypatch.undo()
    np.testing.assert_array_equal(read_picture(content), expected)


# A process of its own, whose peak memory is that of these files alone.
READER = """
import json, resource, sys
from pathlib import Path
from diptych.collection.indexing.file_facts import FileRequest, file_facts
from diptych.encoders import read_picture
from diptych.encoders.image import decoding_process

folder = Path(sys.argv[1])
file_facts(FileRequest(folder / "plain.jpg"))
assert not any(process.n_asked for process in decoding_process._pool.queue), "plain pictures need no process"
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
facts = {path.name: file_facts(FileRequest(path)) for path in sorted(folder.iterdir())}
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
decoding_process.end_processes()
child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
seen = {name: [found.width, found.height, len(found.thumbnail)] for name, found in facts.items()}
print(json.dumps({"seen": seen, "grown": 1024 * grown, "child": 1024 * child}))
"""


def test_small_files_of_large_pictures_take_little_memory(tmp_path: Path) -> None:
    (tmp_path / "plain.jpg").write_bytes(PLAIN["a photograph"])
    (tmp_path / "bomb.png").write_bytes(png(40_000, 40_000, bytes(1_000_000)))
    (tmp_path / "large.png").write_bytes(png(6_000, 6_000, bytes(6_000 * 24_001), colour=6))
    (tmp_path / "tags.jpg").write_bytes(ODD["overlapping tags"])
    run = subprocess.run([sys.executable, "-c", READER, tmp_path], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout)
    assert report["seen"]["large.png"][:2] == [6_000, 6_000]
    assert report["seen"]["large.png"][2] > 0
    assert report["seen"]["tags.jpg"][2] > 0
    assert report["seen"]["bomb.png"] == [0, 0, 0]
    assert report["grown"] < 60_000_000
    assert report["child"] < 1_000_000_000


def test_those_who_wait_for_an_answer_come_before_decoding() -> None:
    read_picture(ODD["animation"])
    decoding = decoding_process._pool.queue[-1]._started
    assert decoding is not None
    lowest = 19
    assert os.getpriority(os.PRIO_PROCESS, decoding.pid) >= min(lowest, os.getpriority(os.PRIO_PROCESS, 0) + 10)


def test_what_was_sent_is_decoded_here_only_where_that_is_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    content = encoded(photo(), "JPEG")
    here = picture_decoding.read_sent_picture(io.BytesIO(content), shortest_side=30, max_pixels=10_000)
    before = decoding_process._pool.queue[-1].n_asked
    monkeypatch.setattr(picture_decoding, "_MOST_PIXELS_HERE", 90 * 60 - 1)
    elsewhere = picture_decoding.read_sent_picture(io.BytesIO(content), shortest_side=30, max_pixels=10_000)
    assert decoding_process._pool.queue[-1].n_asked == before + 1
    np.testing.assert_array_equal(elsewhere, here)


@given(st.lists(st.sampled_from([0xFF, 0xDA, 0]), max_size=40).map(bytes), st.integers(1, 7))
def test_scans_are_counted_wherever_a_block_ends(content: bytes, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("diptych.encoders.image.plain_pictures._COUNTED_BYTES", block)
        assert count_scans(io.BytesIO(content)) == content.count(b"\xff\xda")
