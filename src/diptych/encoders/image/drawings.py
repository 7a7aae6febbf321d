"""SVG drawings: nothing outside of the file is read.

Whoever draws can be kept busy for hours by a file of a few lines, and has no limits of its own: drawings are decoded in
a process that has.
"""

from __future__ import annotations

import base64
import binascii
import io
import re
from xml.etree import ElementTree

# The package of an extra: this module is imported when a file needs it.
import resvg_py
from PIL import Image, PngImagePlugin

from diptych.encoders.image.picture_formats import LateImageFile, open_image

_SIDE = 1024
_MOST_PIXELS_INSIDE = 2**25
# What may stand in a drawing: parts of itself, and pictures that it holds.
_PICTURE_INSIDE = re.compile(r"data:image/(?:png|jpeg|jpg|gif|webp);base64,(?P<content>.*)", re.DOTALL | re.IGNORECASE)
_NUMBER = re.compile(r"\s*(\d*\.?\d+(?:e[+-]?\d+)?)\s*(?:px|pt|mm|cm|in|pc)?\s*", re.IGNORECASE)


class SvgImageFile(LateImageFile):
    """A drawing as Pillow's own formats are; its longest side gets 1,024 pixels, whatever it says of its size."""

    format = "SVG"
    format_description = "SVG drawing"

    def _open(self) -> None:
        assert self.fp is not None
        root = _parsed(self.fp.read())
        self._drawing = ElementTree.tostring(_closed(root), encoding="unicode")
        width, height = _proportions(root)
        scale = _SIDE / max(width, height)
        self._size = max(1, round(width * scale)), max(1, round(height * scale))
        self._mode = "RGBA"

    def _decoded(self) -> Image.Image:
        no_text = "<text" not in self._drawing and ":text" not in self._drawing
        width, height = (_SIDE, None) if self.width >= self.height else (None, _SIDE)
        made = resvg_py.svg_to_bytes(self._drawing, skip_system_fonts=no_text, width=width, height=height)
        return PngImagePlugin.PngImageFile(io.BytesIO(bytes(made)))


def _parsed(content: bytes) -> ElementTree.Element:
    """Return the elements of a drawing; one that declares entities, which can be made to explode, is refused."""
    text = content.decode("utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    if re.search(r"<!ENTITY", text, re.IGNORECASE):
        raise ValueError("it declares entities; save it without them")
    # The text has been decoded, so what the file says of its encoding holds no longer.
    text = re.sub(r"^\s*<\?xml[^>]*\?>", "", text)
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as problem:
        raise ValueError(f"it is no XML: {problem}") from None
    if _local(root.tag) != "svg":
        raise ValueError("its XML is no SVG")
    return root


def _closed(root: ElementTree.Element) -> ElementTree.Element:
    """Return a drawing without whatever leads out of it."""
    left = _MOST_PIXELS_INSIDE
    for element in root.iter():
        for name, value in list(element.attrib.items()):
            if _local(name) != "href" or value.strip().startswith("#"):
                continue
            inside = _PICTURE_INSIDE.fullmatch(value.strip())
            left -= _pixels_inside(inside["content"]) if inside else 0
            if not inside or left < 0:
                del element.attrib[name]
    return root


def _pixels_inside(content: str) -> int:
    try:
        image = open_image(io.BytesIO(base64.b64decode(content)))
    except (binascii.Error, ValueError, SyntaxError, OSError):
        return _MOST_PIXELS_INSIDE + 1
    return image.width * image.height if image.format in ("PNG", "JPEG", "GIF", "WEBP") else _MOST_PIXELS_INSIDE + 1


def _proportions(root: ElementTree.Element) -> tuple[float, float]:
    box = [float(found) for found in re.findall(r"-?\d*\.?\d+(?:[eE][+-]?\d+)?", root.get("viewBox", ""))]
    said = [_NUMBER.fullmatch(root.get(name, "")) for name in ("width", "height")]
    width, height = (float(found[1]) if found else 0.0 for found in said)
    if not (width > 0 and height > 0) and len(box) == 4:
        width, height = box[2:]
    if not (0 < width < 1e9 and 0 < height < 1e9):
        return 1.0, 1.0
    # Of a line that is longer than any screen, a thousandth of its width is drawn.
    return max(width, height / _SIDE), max(height, width / _SIDE)


def _local(name: object) -> str:
    return str(name).rpartition("}")[2]
