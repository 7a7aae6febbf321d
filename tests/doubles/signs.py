"""A picture of a white sign, with the place of each of its words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont


def plain_sign(lines: Sequence[str]) -> tuple[Image.Image, list[tuple[float, float, float, float]]]:
    """Return a small white sign, and the box (left, top, right, bottom) in pixels of each of its words."""
    font, boxes = ImageFont.truetype(font_file("DejaVuSans"), 28), []
    sign = Image.new("RGB", (320, 30 + 50 * len(lines)), "white")
    canvas = ImageDraw.Draw(sign)
    for number, line in enumerate(lines):
        x, y = 20.0, 15.0 + 50 * number
        for word in line.split():
            canvas.text((x, y), word, fill="black", font=font)
            boxes.append(canvas.textbbox((x, y), word, font=font))
            x += canvas.textlength(f"{word} ", font=font)
    return sign, boxes


def font_file(name: str) -> str:
    """Return the path of a font of matplotlib."""
    import matplotlib

    return str(Path(matplotlib.__file__).parent / "mpl-data" / "fonts" / "ttf" / f"{name}.ttf")
