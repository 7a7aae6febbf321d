"""Small pictures in the languages of terminals."""

from __future__ import annotations

import io
from base64 import b64encode

from PIL import Image
from rich.color import Color
from rich.style import Style
from rich.text import Text

_LARGEST_CHUNK = 4096
_UPPER_HALF = "▀"


def fitting_cells(width: int, height: int, columns: int, rows: int) -> tuple[int, int]:
    """Return the columns and rows a picture covers inside a box of cells, which are taken to be twice as high as wide.

    >>> from diptych.cli.drawing import fitting_cells
    >>> fitting_cells(400, 200, columns=20, rows=8), fitting_cells(200, 400, columns=20, rows=8)
    ((20, 5), (8, 8))
    """
    scale = min(columns / width, 2 * rows / height)
    return max(1, min(columns, round(width * scale))), max(1, min(rows, round(height * scale / 2)))


def block_lines(picture: bytes, columns: int, rows: int) -> list[Text]:
    """Return a picture as lines of half blocks: each letter shows two pixels, one above the other."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    wide, high = fitting_cells(*image.size, columns, rows)
    pixels = image.resize((wide, 2 * high), Image.Resampling.BOX).load()
    lines = []
    for row in range(high):
        line = Text(no_wrap=True, end="")
        for column in range(wide):
            upper, lower = (Color.from_rgb(*pixels[column, 2 * row + half]) for half in (0, 1))  # type: ignore[index,misc]
            line.append(_UPPER_HALF, Style(color=upper, bgcolor=lower))
        lines.append(line)
    return lines


def kitty_sequence(picture: bytes, columns: int, rows: int) -> str:
    """Return the escape sequences of kitty's graphics protocol that draw a picture at the cursor."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    wide, high = fitting_cells(*image.size, columns, rows)
    content = io.BytesIO()
    image.save(content, format="PNG")
    data = b64encode(content.getvalue()).decode()
    chunks = [data[start : start + _LARGEST_CHUNK] for start in range(0, len(data), _LARGEST_CHUNK)]
    sequences = []
    for number, chunk in enumerate(chunks):
        # q=2: the terminal must not answer, its answers would be read as typed words.
        keys = f"a=T,f=100,q=2,c={wide},r={high}," if number == 0 else ""
        sequences.append(f"\x1b_G{keys}m={int(number + 1 < len(chunks))};{chunk}\x1b\\")
    return "".join(sequences)


def iterm2_sequence(picture: bytes, columns: int, rows: int) -> str:
    """Return the escape sequence of iTerm2's inline pictures that draws a picture at the cursor."""
    keys = f"inline=1;size={len(picture)};width={columns};height={rows};preserveAspectRatio=1"
    return f"\x1b]1337;File={keys}:{b64encode(picture).decode()}\x07"
