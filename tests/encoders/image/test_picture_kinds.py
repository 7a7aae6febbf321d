"""Pictures that other packages than Pillow read: upright, in bounds, and refused in one sentence."""

from __future__ import annotations

import base64
import io
import json
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from diptych.encoders import read_picture
from diptych.encoders.image.picture_formats import PICTURE_FORMATS, open_image
from diptych.encoders.image.videos import find_moments
from diptych.errors import InvalidInputError
from tests.doubles.picture_samples import dng_file, picture, write_picture, write_video

SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="{size}" height="{size}">{inside}</svg>'


def unlike(path: Path | bytes, image: Image.Image) -> float:
    pixels = read_picture(path, size=image.size).astype(int)
    return float(np.abs(pixels - np.asarray(image)).mean())


def drawing(inside: str, size: str = "40") -> bytes:
    return SVG.format(size=size, inside=inside).encode()


def test_a_sensor_that_lies_on_its_side_gives_an_upright_photograph() -> None:
    for orientation, turn in ((6, Image.Transpose.ROTATE_90), (8, Image.Transpose.ROTATE_270)):
        content = dng_file(picture(3).transpose(turn), orientation=orientation)
        image = open_image(io.BytesIO(content))
        assert image.format == "RAW"
        assert image.width > image.height
        assert image.getexif()[0x010F] == "Diptych"
        assert image.getexif()[0x0112] == 1
        # The development chooses the brightness; where things are is the same.
        assert unlike(content, picture(3)) < unlike(content, picture(3).transpose(Image.Transpose.ROTATE_180))


def test_a_preview_is_taken_where_it_is_large_enough(tmp_path: Path) -> None:
    """The preview stands in the first place, and the sensors' values below it; a camera's file is known by that."""
    shown = picture(5, (800, 600))
    jpeg = io.BytesIO()
    shown.save(jpeg, "JPEG", quality=95)
    path = tmp_path / "photo.nef"
    path.write_bytes(with_preview(dng_file(picture(9)), jpeg.getvalue()))
    assert unlike(path, shown) < 3
    jpeg = io.BytesIO()
    shown.resize((160, 120)).save(jpeg, "JPEG")
    path.write_bytes(with_preview(dng_file(picture(9)), jpeg.getvalue()))
    assert unlike(path, picture(9)) < unlike(path, picture(5)) / 2


def with_preview(content: bytes, jpeg: bytes) -> bytes:
    """Return a RAW photograph whose further list of tags is that of a preview."""
    n_tags = struct.unpack_from("<H", content, 8)[0]
    end = 10 + 12 * n_tags
    width, height = Image.open(io.BytesIO(jpeg)).size
    tags = [(254, 4, 1), (256, 4, width), (257, 4, height), (258, 3, 8), (259, 3, 7), (262, 3, 6)]
    tags += [(273, 4, len(content) + 2 + 12 * 9 + 4), (278, 4, height), (279, 4, len(jpeg))]
    listed = struct.pack("<H", 9) + b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in tags)
    return content[:end] + struct.pack("<I", len(content)) + content[end + 4 :] + listed + bytes(4) + jpeg


def test_a_drawing_is_as_large_as_it_is_drawn() -> None:
    red = '<rect width="100%" height="100%" fill="#f00"/>'
    for size in ("40", "1e9"):
        pixels = read_picture(drawing(red, size))
        assert pixels.shape == (1024, 1024, 3)
        assert pixels[500, 500].tolist() == [255, 0, 0]
    for size in ("100%", "40mm", "0.001"):
        assert open_image(io.BytesIO(drawing(red, size))).size == (1024, 1024)
    wide = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 200 50"/>'
    assert open_image(io.BytesIO(wide)).size == (1024, 256)


def test_a_drawing_reads_nothing_but_itself(tmp_path: Path) -> None:
    secret = tmp_path / "secret.png"
    Image.new("RGB", (40, 40), "red").save(secret)
    outside = "".join(
        f'<{tag} {name}="{where}" width="40" height="40"/>'
        for tag in ("image", "feImage", "use")
        for name in ("href", "xlink:href")
        for where in (
            secret,
            secret.as_uri(),
            f"  {secret}",
            "http://127.0.0.1:9/x.png",
            "data:image/svg+xml;base64,AA==",
        )
    )
    content = drawing(outside).replace(b"<svg ", b'<svg xmlns:xlink="http://www.w3.org/1999/xlink" ')
    assert read_picture(content).min() == 255
    held = base64.b64encode(secret.read_bytes()).decode()
    inside = drawing(f'<image href="data:image/png;base64,{held}" width="40" height="40"/>')
    assert read_picture(inside)[500, 500].tolist() == [255, 0, 0]


def turned_video(path: Path, image: Image.Image) -> None:
    """Write a video as a phone does that is held upright: lying, with a note how to turn it."""
    write_video(path, [image.transpose(Image.Transpose.ROTATE_90)])
    content = bytearray(path.read_bytes())
    plain = struct.pack(">9i", 1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30)
    place = content.index(plain, content.index(b"tkhd"))
    content[place : place + 36] = struct.pack(">9i", 0, 1 << 16, 0, -(1 << 16), 0, 0, 96 << 16, 0, 1 << 30)
    path.write_bytes(content)


def test_a_video_is_upright(tmp_path: Path) -> None:
    turned_video(tmp_path / "phone.mov", picture(4))
    assert open_image(io.BytesIO((tmp_path / "phone.mov").read_bytes())).size == picture(4).size
    assert unlike(tmp_path / "phone.mov", picture(4)) < 5


@pytest.mark.parametrize("suffix", ["mp4", "webm", "avi"])
def test_moments_are_where_something_else_begins(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"clip.{suffix}"
    black = Image.new("RGB", (128, 96))
    scenes = [black, picture(1), picture(2), black, picture(2), picture(3)]
    write_video(path, scenes, seconds=2)
    with path.open("rb") as file:
        moments = find_moments(file)
    # What is blank is no moment, and what was there before the blank is none again.
    assert [int(seconds) for seconds in moments] == [4, 10]
    # The beginning is the first frame that shows something.
    assert unlike(path, picture(1)) < 5
    for seconds, number in zip(moments, (2, 3), strict=True):
        assert unlike(Path(f"{path}#t={seconds:.3f}"), picture(number)) < 5
    # After the end there is the last frame.
    assert unlike(Path(f"{path}#t=99"), picture(3)) < 5


def test_there_are_never_too_many_moments(tmp_path: Path) -> None:
    path = tmp_path / "restless.avi"
    write_video(path, [picture(number % 12) for number in range(60)], seconds=1)
    with path.open("rb") as file:
        assert 10 <= len(find_moments(file)) < 40


def heic(image: Image.Image, folder: Path) -> bytes:
    write_picture(folder / "a.heic", image)
    return (folder / "a.heic").read_bytes()


def lying_video(folder: Path) -> bytes:
    """Return a video of a container that says 60,000 × 60,000 pixels, and frames that say otherwise."""
    write_video(folder / "lying.mp4", [picture(0)])
    content = (folder / "lying.mp4").read_bytes()
    begin = content.index(b"avc1", content.index(b"stsd"))
    return content[: begin + 28] + struct.pack(">HH", 60_000, 60_000) + content[begin + 32 :]


def huge_video(folder: Path, side: int, *, said: bool) -> bytes:
    """Return a video whose frames are as large as that, and whose container says so too or keeps quiet."""
    write_video(folder / "huge.avi", [picture(0)])
    content = (folder / "huge.avi").read_bytes()
    width, height = picture(0).size
    content = content.replace(struct.pack(">BHH", 8, height, width), struct.pack(">BHH", 8, side, side))
    shown = struct.pack("<II", side, side) if said else struct.pack("<II", width, height)
    return content.replace(struct.pack("<II", width, height), shown)


def hostile_files(folder: Path) -> dict[str, tuple[bytes, str]]:
    """Return the contents of files that are damaged on purpose, each with words that say what is wrong."""
    photo = heic(picture(1, (640, 480)), folder)
    laughs = "".join(f'<!ENTITY l{n + 1} "{f"&l{n};" * 10}">' for n in range(9))
    uses = "".join(f'<g id="u{n + 1}">' + f'<use href="#u{n}"/>' * 10 + "</g>" for n in range(9))
    write_video(folder / "short.mp4", [picture(0)])
    video = (folder / "short.mp4").read_bytes()
    bomb = io.BytesIO()
    Image.new("L", (9000, 9000)).save(bomb, "PNG")
    inside = base64.b64encode(bomb.getvalue()).decode()
    no_frames = video[: video.index(b"mdat") + 4] + bytes(len(video))
    return {
        "half.heic": (photo[: len(photo) // 2], "cannot be read"),
        "head.heic": (photo[:200], "cannot be read"),
        "huge.dng": (dng_file(picture(1), claimed=(60_000, 60_000)), "60,000 × 60,000 pixels"),
        "huger.dng": (dng_file(picture(1), claimed=(2**20, 2**20)), "cannot be read"),
        "half.dng": (dng_file(picture(1))[:20_000], "cannot be read"),
        "laughs.svg": (
            f'<!DOCTYPE svg [<!ENTITY l0 "ha">{laughs}]>'.encode() + drawing("<text>&l9;</text>"),
            "it declares entities",
        ),
        "utf16.svg": (
            f'<!DOCTYPE svg [<!ENTITY l0 "ha">]>{drawing("<text>&l0;</text>").decode()}'.encode("utf-16"),
            "cannot be read",
        ),
        "cut.svg": (drawing("<rect/>")[:-4], "it is no XML"),
        "no-size.svg": (drawing("", size="0"), "cannot be read"),
        "octaves.svg": (
            drawing(
                '<filter id="f"><feTurbulence numOctaves="99999999"/></filter>'
                '<rect width="40" height="40" filter="url(#f)"/>'
            ),
            "decoding it takes more than",
        ),
        "uses.svg": (drawing(f'<rect id="u0" width="1" height="1"/>{uses}'), "cannot be read"),
        "no-frames.mp4": (no_frames, "cannot be"),
        "cut.mp4": (video[: video.index(b"moov") if video.index(b"moov") > 100 else 100], "cannot be"),
        "lying.mp4": (lying_video(folder), ""),
        "huge.avi": (huge_video(folder, 16_000, said=True), "16,000 × 16,000 pixels"),
        "quiet.avi": (huge_video(folder, 16_000, said=False), "cannot be read"),
        "playlist.mp4": (b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n", "it is text"),
        "bomb.svg": (drawing(f'<image href="data:image/png;base64,{inside}" width="9" height="9"/>'), ""),
    }


# A process of its own: its peak memory is that of these files alone.
READER = """
import json, resource, sys
from pathlib import Path
from diptych.encoders import read_picture
from diptych.errors import InvalidInputError

from diptych.encoders.image import picture_decoding

outcomes = {}
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for path in sorted(Path(sys.argv[1]).iterdir()):
    # The one file that never ends need not be waited for as long as the others may take.
    picture_decoding.MOST_SECONDS = 1 if path.name == "octaves.svg" else 2
    try:
        read_picture(path)
        outcomes[path.name] = ""
    except InvalidInputError as reason:
        outcomes[path.name] = str(reason)
peaks = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(json.dumps({"outcomes": outcomes, "grown": 1024 * (peaks[0] - before), "child": 1024 * peaks[1]}))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="peak memory is asked of a POSIX system")
def test_hostile_files_cost_one_sentence_and_little_memory(tmp_path: Path) -> None:
    made = hostile_files(tmp_path)
    folder = tmp_path / "hostile"
    folder.mkdir()
    for name, (content, _) in made.items():
        (folder / name).write_bytes(content)
    run = subprocess.run(
        [sys.executable, "-c", READER, folder], capture_output=True, text=True, timeout=300, check=False
    )
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout)
    for name, (_, words) in made.items():
        said = report["outcomes"][name]
        assert words in said, f"{name}: {said}"
        assert "\n" not in said
        assert bool(said) == bool(words)
    assert report["grown"] < 250_000_000
    assert report["child"] < 1_100_000_000


@pytest.mark.parametrize("kind", ["heic", "dng"])
def test_a_damaged_file_is_named_once(kind: str, tmp_path: Path) -> None:
    """Also where another process has said so already."""
    whole, half = tmp_path / f"whole.{kind}", tmp_path / f"half.{kind}"
    write_picture(whole, picture(3))
    half.write_bytes(whole.read_bytes()[:200])
    with pytest.raises(InvalidInputError, match="cannot be read as a picture") as refused:
        read_picture(half)
    assert str(refused.value).count(half.name) == str(refused.value).count("repair it or leave it out") == 1


def test_what_is_no_picture_names_all_that_could_be_one() -> None:
    with pytest.raises(InvalidInputError, match=r"JPEG 2000, TGA.*HEIC, RAW, SVG, video"):
        read_picture(b"words")
    assert len(PICTURE_FORMATS) == 21
