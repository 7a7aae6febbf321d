"""Answers on a terminal: small pictures, and a table with what is known of each."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from rich.color import Color
from rich.console import Console
from rich.style import Style
from rich.text import Text

from diptych.cli.console.output import folded, numbers, scores, table, whole
from diptych.cli.console.paths import printable, shown_path
from diptych.cli.options import Target, Thumbnails
from diptych.data.picture_files import clock

if TYPE_CHECKING:
    from diptych.collection import Answer, Answers, Item

# Where captions get a column of their own instead of a line below the path.
_WIDE = 100
_SHEET_LINES = 3


@dataclass(frozen=True)
class AnswersTable:
    """The answers of one search; ``item_of`` and ``thumbnail_of`` look an id up in the collection."""

    answers: Answers
    target: Target
    thumbnails: Thumbnails
    item_of: Callable[[str], Item]
    thumbnail_of: Callable[[str], bytes | None]

    def print(self, console: Console) -> None:
        """Print to a terminal, or where somebody asks for a table."""
        self._print_sheet(console)
        self._print_table(console)

    def _print_sheet(self, console: Console) -> None:
        graphics = choose_graphics(self.thumbnails, console, os.environ)
        if graphics is None:
            return
        shown: Sequence[Answer] = self.answers
        if self.thumbnails == "auto":
            shown = self.answers[: _SHEET_LINES * tiles_per_line(console)]
        tiles = [
            (f"{answer.rank}  {_percent(answer.probability)}", picture)
            for answer in shown
            if (picture := self.thumbnail_of(answer.id))
        ]
        if tiles:
            print_sheet(tiles, graphics, console)
            console.print()

    def _print_table(self, console: Console) -> None:
        origins = [_origin(self.item_of(answer.id)) for answer in self.answers]
        is_wide = console.width >= _WIDE
        says_why = self.answers.mode != "similarity"
        captions = [self._words(answer, says_why=says_why and not is_wide) for answer in self.answers]
        columns = [*scores(""), *numbers("probability" if is_wide else "prob.", "score")]
        columns += [whole("found by")] if says_why and is_wide else []
        columns += [folded("picture"), *([folded("caption")] if is_wide and any(captions) else [])]
        listing = table(*columns)
        for answer, caption, origin in zip(self.answers, captions, origins, strict=True):
            cells: list[str | Text] = [str(answer.rank), _percent(answer.probability), f"{answer.score:.3f}"]
            if says_why and is_wide:
                cells.append(_found_by(answer))
            name = _linked(answer)
            if origin:
                name = Text.assemble(name, ("\n" + origin, "dim"))
            if is_wide and any(captions):
                cells += [name, caption]
            else:
                cells.append(Text.assemble(name, ("\n" + caption, "dim")) if caption else name)
            listing.add_row(*cells)
        console.print(listing)

    def _words(self, answer: Answer, *, says_why: bool) -> str:
        is_text = self.target is Target.TEXTS
        caption = answer.caption if is_text else next(iter(self.item_of(answer.id).captions), "")
        read = " ".join(word.text for word in answer.picture_words)
        lines = [caption, read and f"text in the picture: {read}", says_why and f"found by: {_found_by(answer)}"]
        return "\n".join(printable(line) for line in lines if line)


def _found_by(answer: Answer) -> str:
    """Return what brought an answer up: its fields with the words, and similarity."""
    similar = ("similarity",) if "points" in answer.matched_by else ()
    return ", ".join((*answer.matched_fields, *similar))


def _origin(item: Item) -> str:
    """Return when and where a picture was taken, as far as it is known.

    >>> from diptych.collection import Item
    >>> _origin(Item("1", "a.jpg", None, facts={"taken": "2019-07-14T18:05:31+02:00", "place": "Sintra"}))
    '2019-07-14 18:05, Sintra'
    """
    fields = item.fields
    taken = str(fields.get("taken") or fields.get("year") or "")
    where = [str(fields[name]) for name in ("place", "country") if fields.get(name)]
    return printable(", ".join([*([taken[:16].replace("T", " ")] if taken else []), *where]))


def _percent(probability: float) -> str:
    return f"{100 * probability:.0f} %" if probability >= 0.01 else "< 1 %"


def _linked(answer: Answer) -> Text:
    if answer.path is None:
        return Text("(a text)", style="dim")
    name = printable(shown_path(answer.path)) + ("" if answer.seconds is None else f" at {clock(answer.seconds)}")
    name += "" if answer.region is None else f" ({answer.region.place})"
    return Text(name, style=f"link {answer.path.absolute().as_uri()}")


_ITERM2_PROGRAMS = ("iTerm.app", "WezTerm", "mintty")
_LARGEST_CHUNK = 4096
_UPPER_HALF = "▀"
_COLUMNS = 19
_ROWS = 8
_GAP = 1
_SAVE, _RESTORE = "\x1b7", "\x1b8"
Graphics = Literal["kitty", "iterm2", "blocks"]
Tile = tuple[str, bytes]


def choose_graphics(choice: Thumbnails, console: Console, environment: Mapping[str, str]) -> Graphics | None:
    """Return how to draw pictures on a console, or None when they should not or cannot be drawn.

    Terminals do not answer reliably when asked, so the environment decides: kitty's and iTerm2's graphics where these
    announce themselves, otherwise blocks of two colours per letter; left to itself, only with 16 million colours.

    >>> from rich.console import Console
    >>> from diptych.cli.options import Thumbnails
    >>> console = Console(force_terminal=True, color_system="truecolor")
    >>> choose_graphics(Thumbnails.AUTO, console, {"TERM": "xterm-kitty"})
    'kitty'
    >>> choose_graphics(Thumbnails.AUTO, console, {"TERM": "xterm"})
    'blocks'
    """
    if choice is Thumbnails.NEVER or not console.is_terminal or console.is_dumb_terminal:
        return None
    if not _is_nested(environment):
        if "KITTY_WINDOW_ID" in environment or environment.get("TERM") in ("xterm-kitty", "xterm-ghostty"):
            return "kitty"
        if environment.get("TERM_PROGRAM") in _ITERM2_PROGRAMS or environment.get("LC_TERMINAL") == "iTerm2":
            return "iterm2"
    if console.no_color or console.color_system is None:
        return None
    return "blocks" if choice is Thumbnails.ALWAYS or console.color_system == "truecolor" else None


def _is_nested(environment: Mapping[str, str]) -> bool:
    """Say whether a multiplexer sits in between, which swallows graphics and inherits the outer terminal's names."""
    return "TMUX" in environment or "STY" in environment or environment.get("TERM", "").startswith(("screen", "tmux"))


def fitting_cells(width: int, height: int, columns: int, rows: int) -> tuple[int, int]:
    """Return the columns and rows a picture covers inside a box of cells, which are taken to be twice as high as wide.

    >>> fitting_cells(400, 200, columns=20, rows=8), fitting_cells(200, 400, columns=20, rows=8)
    ((20, 5), (8, 8))
    """
    scale = min(columns / width, 2 * rows / height)
    return max(1, min(columns, round(width * scale))), max(1, min(rows, round(height * scale / 2)))


def block_lines(picture: bytes, columns: int, rows: int) -> list[Text]:
    """Return a picture as lines of half blocks: each letter shows two pixels, one above the other."""
    import numpy as np
    from PIL import Image

    image = Image.open(io.BytesIO(picture)).convert("RGB")
    wide, high = fitting_cells(*image.size, columns, rows)
    resized = image.resize((wide, 2 * high), Image.Resampling.BOX)
    colours = np.asarray(resized).tolist()
    lines = []
    for row in range(high):
        line = Text(no_wrap=True, end="")
        for column in range(wide):
            upper, lower = (Color.from_rgb(*colours[2 * row + half][column]) for half in (0, 1))
            line.append(_UPPER_HALF, Style(color=upper, bgcolor=lower))
        lines.append(line)
    return lines


def kitty_sequence(picture: bytes, columns: int, rows: int) -> str:
    """Return the escape sequences of kitty's graphics protocol that draw a picture at the cursor."""
    from base64 import b64encode

    from PIL import Image

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
    from base64 import b64encode

    keys = f"inline=1;size={len(picture)};width={columns};height={rows};preserveAspectRatio=1"
    return f"\x1b]1337;File={keys}:{b64encode(picture).decode()}\x07"


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
    drawn = [block_lines(picture, _COLUMNS, _ROWS) for picture in pictures]
    for row in range(max(map(len, drawn))):
        console.print(_joined([lines[row] if row < len(lines) else Text() for lines in drawn]))


def _draw(pictures: Sequence[bytes], graphics: Graphics, console: Console) -> None:
    sequence_of = kitty_sequence if graphics == "kitty" else iterm2_sequence
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
