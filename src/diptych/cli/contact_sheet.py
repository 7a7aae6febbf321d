"""Small pictures side by side in a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from diptych.cli import drawing
from diptych.cli.graphics import Graphics

_COLUMNS = 19
_ROWS = 8
_GAP = 1
_SAVE, _RESTORE = "\x1b7", "\x1b8"

Tile = tuple[str, bytes]


def tiles_per_line(console: Console) -> int:
    """Return how many pictures stand side by side."""
    return max(1, (console.width + _GAP) // (_COLUMNS + _GAP))


def print_sheet(tiles: Sequence[Tile], graphics: Graphics, console: Console) -> None:
    """Print pictures with a line of words above each; a tile is the words and the bytes of a picture file."""
    across = tiles_per_line(console)
    for start in range(0, len(tiles), across):
        line = tiles[start : start + across]
        console.print(_joined([Text(words, style="bold") for words, _ in line]))
        if graphics == "blocks":
            _print_blocks([picture for _, picture in line], console)
        else:
            _draw([picture for _, picture in line], graphics, console)


def _print_blocks(pictures: Sequence[bytes], console: Console) -> None:
    drawn = [drawing.block_lines(picture, _COLUMNS, _ROWS) for picture in pictures]
    for row in range(max(map(len, drawn))):
        console.print(_joined([lines[row] if row < len(lines) else Text() for lines in drawn]))


def _draw(pictures: Sequence[bytes], graphics: Graphics, console: Console) -> None:
    sequence_of = drawing.kitty_sequence if graphics == "kitty" else drawing.iterm2_sequence
    # Room first: at the foot of the screen a picture would scroll, and what was saved of the cursor be wrong.
    parts = ["\n" * _ROWS, f"\x1b[{_ROWS}A"]
    for number, picture in enumerate(pictures):
        column = number * (_COLUMNS + _GAP) + 1
        parts += [_SAVE, f"\x1b[{column}G", sequence_of(picture, _COLUMNS, _ROWS), _RESTORE]
    console.file.write("".join([*parts, f"\x1b[{_ROWS}B"]))
    console.file.flush()


def _joined(cells: Sequence[Text]) -> Text:
    line = Text(no_wrap=True, overflow="crop")
    for number, cell in enumerate(cells):
        cell = cell.copy()
        cell.truncate(_COLUMNS, pad=number + 1 < len(cells))
        line.append_text(cell)
        if number + 1 < len(cells):
            line.append(" " * _GAP)
    return line
