"""Pictures with words in them, painted in many fonts, sizes, colours, turns and on many grounds.

The words are known, and the same seed paints the same picture wherever matplotlib has the same fonts.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from diptych.data.sample_photographs import sample_photographs
from tests.doubles.signs import font_file

_SIZE = (640, 480)
_FONTS = (
    "DejaVuSans",
    "DejaVuSans-Bold",
    "DejaVuSans-Oblique",
    "DejaVuSerif",
    "DejaVuSerif-Bold",
    "DejaVuSansMono",
    "STIXGeneral",
    "STIXGeneralBol",
)
_SIZES = (18, 24, 32, 44, 60)
_TURNS = (0, 0, 0, 0, 5, -5, 12, -12, 20, -20, 90)
_GROUNDS = ("plain", "gradient", "noise", "photograph")
_SYLLABLES = (
    "ba",
    "be",
    "ki",
    "ko",
    "la",
    "li",
    "ma",
    "mo",
    "na",
    "ne",
    "ra",
    "ro",
    "sa",
    "si",
    "ta",
    "te",
    "ver",
    "mont",
)
_SHOWN = ("exit", "open", "closed", "station", "museum", "library", "bakery", "pharmacy", "welcome", "parking")
_SHOWN += ("reserved", "sale", "ticket", "platform", "harbour", "emergency", "invoice", "receipt", "total", "delivery")
_SHOWN += ("monday", "friday", "december", "menu", "breakfast", "hotel", "airport", "gate", "boarding", "notice")
_SHOWN += ("warning", "danger", "school", "hospital", "theatre", "garden", "market", "street", "avenue", "bridge")
_SHOWN += ("express", "central", "north", "south", "police")


@dataclass(frozen=True)
class Sign:
    """What is written in one picture: its lines of words."""

    lines: tuple[tuple[str, ...], ...]

    @property
    def words(self) -> tuple[str, ...]:
        """All words in their order."""
        return tuple(word for line in self.lines for word in line)


def words_of(seed: int) -> Sign:
    """Return what picture number ``seed`` says: ordinary words of signs, a name that nobody has, and a number."""
    draw = random.Random(seed)
    name = "".join(draw.choice(_SYLLABLES) for _ in range(3)).capitalize()
    ordinary = draw.sample(_SHOWN, 3)
    return Sign(((ordinary[0].upper(), name), (ordinary[1], str(draw.randrange(1000, 9999))), (ordinary[2],)))


def paint(seed: int) -> Image.Image:
    """Paint picture number ``seed``."""
    draw, sign = random.Random(seed + 1_000_000), words_of(seed)
    ground = _ground(draw)
    font = ImageFont.truetype(font_file(draw.choice(_FONTS)), draw.choice(_SIZES))
    text = "\n".join(" ".join(line) for line in sign.lines)
    box = ImageDraw.Draw(ground).multiline_textbbox((0, 0), text, font=font, spacing=font.size // 2)
    layer = Image.new("L", (int(box[2]) + 20, int(box[3]) + 20))
    ImageDraw.Draw(layer).multiline_text((10, 10), text, fill=255, font=font, spacing=font.size // 2)
    layer = layer.rotate(draw.choice(_TURNS), expand=True, resample=Image.Resampling.BICUBIC)
    scale = min(1.0, 0.96 * ground.width / layer.width, 0.96 * ground.height / layer.height)
    if scale < 1:
        layer = layer.resize((int(layer.width * scale), int(layer.height * scale)), Image.Resampling.LANCZOS)
    left = draw.randint(0, ground.width - layer.width)
    top = draw.randint(0, ground.height - layer.height)
    under = np.asarray(ground.crop((left, top, left + layer.width, top + layer.height)).convert("L"))
    ground.paste(_colour_on(float(under.mean()), draw), (left, top), layer)
    return ground


def _ground(draw: random.Random) -> Image.Image:
    kind = draw.choice(_GROUNDS)
    if kind == "photograph":
        photographs = [photograph.path for photograph in sample_photographs()]
        picture = Image.open(draw.choice(photographs)).convert("RGB").resize(_SIZE)
        # A dark or light veil, as designers put under words on photographs.
        return Image.blend(picture, Image.new("RGB", _SIZE, draw.choice(("black", "white"))), 0.45)
    first, second = (tuple(draw.randrange(256) for _ in range(3)) for _ in range(2))
    if kind == "gradient":
        share = np.linspace(0, 1, _SIZE[0])[None, :, None]
        near = 0.6 * np.array(first) + 0.4 * np.array(second)
        pixels = np.broadcast_to((1 - share) * np.array(first) + share * near, (_SIZE[1], _SIZE[0], 3))
    else:
        pixels = np.broadcast_to(np.array(first, dtype=np.float64), (_SIZE[1], _SIZE[0], 3))
    if kind == "noise":
        pixels = pixels + np.random.default_rng(draw.randrange(2**31)).normal(0, 18, pixels.shape)
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


def _colour_on(brightness: float, draw: random.Random) -> tuple[int, int, int]:
    """Return a colour that can be read on a ground of this brightness."""
    low, high = (0, 60) if brightness > 128 else (195, 256)
    red, green, blue = (draw.randrange(low, high) for _ in range(3))
    return red, green, blue
