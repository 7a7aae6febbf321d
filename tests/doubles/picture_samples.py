"""One file of each kind of picture that can be read, made by the libraries that know the kind, or by hand."""

from __future__ import annotations

import base64
import colorsys
import io
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import av
import numpy as np
import pillow_heif
from PIL import Image, ImageDraw

SIZE = (128, 96)
RATE = 10
ORIENTATION = 0x0112


def picture(number: int, size: tuple[int, int] = SIZE) -> Image.Image:
    """Return a picture that is unlike those of other numbers: two colours, and where the second one is."""
    width, height = size
    colours = [
        tuple(round(255 * part) for part in colorsys.hsv_to_rgb((number * 0.381 + turn) % 1, 0.85, shade))
        for turn, shade in ((0, 0.35 + 0.6 * (number % 3) / 2), (0.45, 1.0 - 0.6 * (number % 4) / 3))
    ]
    image = Image.new("RGB", size, colours[0])
    left, top = (number * 5 % 7) / 10, (number * 3 % 5) / 8
    box = (left * width, top * height, (left + 0.35) * width, (top + 0.45) * height)
    ImageDraw.Draw(image).rectangle(box, fill=colours[1])
    return image


def phone_notes() -> Image.Exif:
    """Return what a phone notes: its maker, the time, and that it was held upright."""
    notes = Image.Exif()
    notes[ORIENTATION] = 6
    notes[0x010F], notes[0x0110], notes[0x0132] = "Apple", "iPhone 15", "2026:05:04 12:30:00"
    notes.get_ifd(0x8769)[0x9003] = "2026:05:04 12:30:00"
    return notes


def on_its_side(image: Image.Image) -> Image.Image:
    """Return a picture as the sensor of an upright phone sees it."""
    return image.transpose(Image.Transpose.ROTATE_90)


def write_picture(path: Path, image: Image.Image) -> None:
    """Write a picture in the format that the ending names."""
    suffix = path.suffix.removeprefix(".")
    if suffix in _BY_HAND:
        _BY_HAND[suffix](path, image)
    elif suffix in CODECS:
        write_video(path, [image])
    elif suffix in ("jpg", "tif"):
        on_its_side(image).save(path, exif=phone_notes().tobytes(), quality=92)
    else:
        image.save(path, **({"sizes": [image.size]} if suffix == "ico" else {}))


def _heic(path: Path, image: Image.Image) -> None:
    pillow_heif.from_pillow(on_its_side(image)).save(path, quality=90, exif=phone_notes().tobytes())


def _psd(path: Path, image: Image.Image) -> None:
    planes = np.asarray(image).transpose(2, 0, 1).tobytes()
    head = struct.pack(">4sH6xHIIHH", b"8BPS", 1, 3, image.height, image.width, 8, 3)
    path.write_bytes(head + bytes(12) + b"\0\0" + planes)


def _svg(path: Path, image: Image.Image) -> None:
    content = io.BytesIO()
    image.save(content, "PNG")
    width, height = image.size
    inside = base64.b64encode(content.getvalue()).decode()
    path.write_text(
        f'<?xml version="1.0" encoding="UTF-8"?>\n<!-- drawn by hand -->\n'
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">'
        f'<image width="{width}" height="{height}" href="data:image/png;base64,{inside}"/></svg>'
    )


def _dng(path: Path, image: Image.Image) -> None:
    path.write_bytes(dng_file(image))


def dng_file(image: Image.Image, *, orientation: int = 1, claimed: tuple[int, int] | None = None) -> bytes:
    """Return a RAW photograph: of four neighbouring sensors, one sees red, two green and one blue.

    ``claimed`` is the size that the file says it has, where that is a lie.
    """
    doubled = image.resize((2 * image.width, 2 * image.height), Image.Resampling.NEAREST)
    shades = np.asarray(doubled, dtype=np.float64) / 255
    light = np.where(shades <= 0.04045, shades / 12.92, ((shades + 0.055) / 1.055) ** 2.4)
    sensors = light[:, :, 1].copy()
    sensors[::2, ::2], sensors[1::2, 1::2] = light[::2, ::2, 0], light[1::2, 1::2, 2]
    data = np.rint(60_000 * sensors).astype("<u2").tobytes()
    width, height = claimed or doubled.size
    # From the colours of the world to those of a screen.
    matrix = [3.2406, -1.5372, -0.4986, -0.9689, 1.8758, 0.0415, 0.0557, -0.2040, 1.0570]
    short, long, fraction, signed = "H", "I", "II", "ii"
    tags: list[tuple[int, str, Sequence[int] | bytes]] = [
        (254, long, [0]),
        (256, long, [width]),
        (257, long, [height]),
        (258, short, [16]),
        (259, short, [1]),
        (262, short, [32803]),
        (271, "s", b"Diptych\0"),
        (272, "s", b"Sensor 1\0"),
        (273, long, [0]),
        (274, short, [orientation]),
        (277, short, [1]),
        (278, long, [height]),
        (279, long, [len(data)]),
        (33421, short, [2, 2]),
        (33422, "B", [0, 1, 1, 2]),
        (50706, "B", [1, 4, 0, 0]),
        (50708, "s", b"Diptych Sensor 1\0"),
        (50717, long, [60_000]),
        (50721, signed, [part for value in matrix for part in (round(10_000 * value), 10_000)]),
        (50728, fraction, [1, 1, 1, 1, 1, 1]),
        (50778, short, [21]),
    ]
    return _tiff(tags, data)


_KINDS = {"B": 1, "s": 2, "H": 3, "I": 4, "II": 5, "ii": 10}


def _tiff(tags: Sequence[tuple[int, str, Sequence[int] | bytes]], data: bytes) -> bytes:
    begins = 8 + 2 + 12 * len(tags) + 4
    packed = {
        tag: values if isinstance(values, bytes) else struct.pack(f"<{len(values)}{kind[0]}", *values)
        for tag, kind, values in tags
    }
    ends = begins + sum(len(raw) for raw in packed.values() if len(raw) > 4)
    packed[273] = struct.pack("<I", ends)
    rows, beside = b"", b""
    for tag, kind, _ in tags:
        raw = packed[tag]
        rows += struct.pack("<HHI", tag, _KINDS[kind], len(raw) // struct.calcsize(f"<{kind}"))
        rows += raw.ljust(4, b"\0") if len(raw) <= 4 else struct.pack("<I", begins + len(beside))
        beside += raw if len(raw) > 4 else b""
    return struct.pack("<2sHIH", b"II", 42, 8, len(tags)) + rows + bytes(4) + beside + data


CODECS = {**dict.fromkeys(("mp4", "mov", "mkv"), "libx264"), "webm": "libvpx-vp9", "avi": "mjpeg", "mpg": "mpeg2video"}


def write_video(path: Path, scenes: Sequence[Image.Image], seconds: float = 1.0) -> None:
    """Write a video that shows pictures one after the other."""
    codec = CODECS[path.suffix.removeprefix(".")]
    rate = 25 if codec == "mpeg2video" else RATE
    with av.open(path, "w") as container:
        stream = container.add_stream(codec, rate=rate)
        stream.width, stream.height = scenes[0].size
        stream.pix_fmt = "yuvj420p" if codec == "mjpeg" else "yuv420p"
        for scene in scenes:
            for _ in range(round(seconds * rate)):
                container.mux(stream.encode(av.VideoFrame.from_image(scene)))
        container.mux(stream.encode())


_BY_HAND: dict[str, Callable[[Path, Image.Image], None]] = {"heic": _heic, "psd": _psd, "svg": _svg, "dng": _dng}
PILLOW_KINDS: tuple[str, ...] = ("jpg", "png", "gif", "webp", "avif", "tif", "bmp", "ppm", "jp2", "tga", "ico")
PILLOW_KINDS += ("icns", "pcx", "dds", "qoi", "sgi", "psd")
KINDS = (*PILLOW_KINDS, "heic", "dng", "svg", *CODECS)
