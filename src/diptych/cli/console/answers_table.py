"""Answers on a terminal: a table with what is known of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from diptych.cli.console.output import folded, numbers, scores, table, whole
from diptych.cli.console.paths import printable, shown_path
from diptych.data.picture_files import clock

if TYPE_CHECKING:
    from diptych.collection import Answer, Answers, Collection, Item

# Where captions get a column of their own instead of a line below the path.
_WIDE = 100


def print_answers_table(answers: Answers, collection: Collection, console: Console, *, is_text: bool) -> None:
    """Print the answers of one search; with ``is_text`` they are captions."""
    is_wide = console.width >= _WIDE
    says_why = answers.mode != "similarity"
    items = [collection[answer.id] for answer in answers]
    captions = [
        _words(answer, item, is_text=is_text, says_why=says_why and not is_wide)
        for answer, item in zip(answers, items, strict=True)
    ]
    columns = [*scores(""), *numbers("probability" if is_wide else "prob.", "score")]
    columns += [whole("found by")] if says_why and is_wide else []
    columns += [folded("picture"), *([folded("caption")] if is_wide and any(captions) else [])]
    listing = table(*columns)
    for answer, item, caption in zip(answers, items, captions, strict=True):
        cells: list[str | Text] = [str(answer.rank), _percent(answer.probability), f"{answer.score:.3f}"]
        if says_why and is_wide:
            cells.append(_found_by(answer))
        name = _linked(answer)
        if origin := _origin(item):
            name = Text.assemble(name, ("\n" + origin, "dim"))
        if is_wide and any(captions):
            cells += [name, caption]
        else:
            cells.append(Text.assemble(name, ("\n" + caption, "dim")) if caption else name)
        listing.add_row(*cells)
    console.print(listing)


def _words(answer: Answer, item: Item, *, is_text: bool, says_why: bool) -> str:
    caption = answer.caption if is_text else next(iter(item.captions), "")
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
