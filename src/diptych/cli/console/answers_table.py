"""Answers on a terminal: small pictures, and a table with what is known of each."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from diptych.cli.console.output import folded, numbers, scores, table, whole
from diptych.cli.console.paths import printable, shown_path
from diptych.cli.console.thumbnails import choose_graphics, print_sheet, tiles_per_line
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
