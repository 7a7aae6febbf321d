from __future__ import annotations

import base64
import io
import re

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from diptych.cli.console import answers_table
from diptych.cli.console.answers_table import choose_graphics, print_sheet, tiles_per_line
from diptych.cli.options import Thumbnails

CONTROL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|\x1b[78]|\x1b_G[^\x1b]*\x1b\\|\x1b\]1337;[^\x07]*\x07")


def terminal(color_system: str = "truecolor", width: int = 80, **options: bool) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, color_system=color_system, width=width, **options)  # type: ignore[arg-type]


def picture(width: int, height: int, *colours: tuple[int, int, int]) -> bytes:
    """Return a PNG of horizontal stripes."""
    rows = np.array(colours, dtype=np.uint8)[np.arange(height) * len(colours) // height]
    stream = io.BytesIO()
    Image.fromarray(np.repeat(rows[:, None, :], width, axis=1)).save(stream, "PNG")
    return stream.getvalue()


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"TERM": "xterm-kitty"}, "kitty"),
        ({"TERM": "xterm-ghostty"}, "kitty"),
        ({"TERM": "xterm-256color", "KITTY_WINDOW_ID": "1"}, "kitty"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, "iterm2"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "WezTerm"}, "iterm2"),
        ({"TERM": "xterm-256color"}, "blocks"),
        ({"TERM": "tmux-256color", "KITTY_WINDOW_ID": "1", "TMUX": "/tmp/x"}, "blocks"),
        ({"TERM": "screen", "TERM_PROGRAM": "iTerm.app"}, "blocks"),
    ],
)
def test_the_environment_names_the_terminal(environment: dict[str, str], expected: str) -> None:
    assert choose_graphics(Thumbnails.AUTO, terminal(), environment) == expected


def test_few_colours_get_blocks_only_when_asked() -> None:
    assert choose_graphics(Thumbnails.AUTO, terminal("256"), {}) is None
    assert choose_graphics(Thumbnails.ALWAYS, terminal("256"), {}) == "blocks"


def test_no_picture_where_none_can_be_seen() -> None:
    pipe = Console(file=io.StringIO(), force_terminal=False)
    assert choose_graphics(Thumbnails.ALWAYS, pipe, {"TERM": "xterm-kitty"}) is None
    assert choose_graphics(Thumbnails.ALWAYS, terminal(no_color=True), {}) is None
    assert choose_graphics(Thumbnails.NEVER, terminal(), {"TERM": "xterm-kitty"}) is None


@pytest.mark.parametrize("size", [(10, 10), (400, 20), (20, 400), (3, 3000), (1, 1)])
def test_a_picture_fits_its_box_and_keeps_its_shape(size: tuple[int, int]) -> None:
    columns, rows = answers_table.fitting_cells(*size, columns=19, rows=8)
    assert 1 <= columns <= 19
    assert 1 <= rows <= 8
    # A cell is as high as two are wide; what is left of rounding is less than one cell.
    scale = min(19 / size[0], 16 / size[1])
    assert abs(columns - max(1, size[0] * scale)) <= 0.5
    assert abs(rows - max(1, size[1] * scale / 2)) <= 0.5


def test_a_block_shows_two_pixels() -> None:
    lines = answers_table.block_lines(picture(4, 4, (255, 0, 0), (0, 0, 255)), columns=4, rows=2)
    assert [line.plain for line in lines] == ["▀▀▀▀", "▀▀▀▀"]
    colours = [
        [(tuple(span.style.color.triplet), tuple(span.style.bgcolor.triplet)) for span in line.spans]  # type: ignore[union-attr]
        for line in lines
    ]
    assert set(colours[0]) == {((255, 0, 0), (255, 0, 0))}
    assert set(colours[1]) == {((0, 0, 255), (0, 0, 255))}


def test_kitty_gets_the_same_picture_in_chunks() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (60, 80, 3), dtype=np.uint8)
    stream = io.BytesIO()
    Image.fromarray(noise).save(stream, "PNG")
    chunks = re.findall(r"\x1b_G([^;]*);([^\x1b]*)\x1b\\", answers_table.kitty_sequence(stream.getvalue(), 19, 8))
    assert len(chunks) > 1
    assert all(len(data) <= 4096 for _, data in chunks)
    assert [keys[-3:] for keys, _ in chunks] == ["m=1"] * (len(chunks) - 1) + ["m=0"]
    assert "c=19,r=7" in chunks[0][0]
    sent = Image.open(io.BytesIO(base64.b64decode("".join(data for _, data in chunks))))
    assert (np.asarray(sent) == noise).all()


def test_iterm2_gets_the_same_bytes() -> None:
    original = picture(8, 8, (1, 2, 3))
    sequence = answers_table.iterm2_sequence(original, 19, 8)
    assert base64.b64decode(sequence.partition(":")[2].removesuffix("\x07")) == original


@pytest.mark.parametrize("width", [19, 60, 80])
def test_a_sheet_fits_the_terminal(width: int) -> None:
    console = terminal(width=width)
    tiles = [(f"{number}  50 %", picture(30, 20, (9, 9, 9))) for number in range(1, 6)]
    print_sheet(tiles, "blocks", console)
    lines = CONTROL.sub("", console.file.getvalue()).splitlines()  # type: ignore[attr-defined]
    assert max(map(len, lines)) <= width
    across = tiles_per_line(console)
    assert across == {19: 1, 60: 3, 80: 4}[width]
    # A line of words and 6 lines of picture (19 × 2/3 ÷ 2) for each row of tiles.
    assert len(lines) == -(-5 // across) * 7


@pytest.mark.parametrize("graphics", ["kitty", "iterm2"])
def test_drawn_pictures_leave_the_cursor_below_them(graphics: str) -> None:
    """Each picture is drawn at its own column from a saved cursor, and the rows taken up are those set free first."""
    console = terminal()
    print_sheet([("1", picture(8, 8, (0, 0, 0))), ("2", picture(8, 8, (0, 0, 0)))], graphics, console)  # type: ignore[arg-type]
    written = console.file.getvalue()  # type: ignore[attr-defined]
    assert written.count("\x1b7") == written.count("\x1b8") == 2
    assert "\x1b[1G" in written
    assert "\x1b[21G" in written
    assert written.count("\n") == 1 + 8
    assert "\x1b[8A" in written
    assert written.endswith("\x1b[8B")
