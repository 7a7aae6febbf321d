"""How answers are printed: for people, for programs, and as pictures."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.text import Text

from diptych.cli.choices import AnswerFormat, Target
from diptych.cli.contact_sheet import print_sheet, tiles_per_line
from diptych.cli.graphics import choose_graphics
from diptych.cli.search_settings import SearchSettings
from diptych.cli.shown_path import printable, shown_path
from diptych.cli.terminal import print_json, results, table
from diptych.collection import Answer, Answers, Item

# Where captions get a column of their own instead of a line below the path.
_WIDE = 100
_SHEET_LINES = 3


@dataclass(frozen=True)
class AnswersReport:
    """Prints the answers of one search; ``item_of`` and ``thumbnail_of`` look an id up in the collection."""

    query: str
    answers: Answers
    settings: SearchSettings
    item_of: Callable[[str], Item]
    thumbnail_of: Callable[[str], bytes | None]

    def print(self) -> None:
        """Print to stdout in the format that was asked for."""
        console = results()
        match self.settings.format:
            case AnswerFormat.JSON:
                print_json(json.dumps(self._document(), indent=2, ensure_ascii=False))
            case AnswerFormat.JSONL:
                for answer in self.answers:
                    print_json(json.dumps({"query": self.query, **self._record(answer)}, ensure_ascii=False))
            case AnswerFormat.PATHS:
                self._print_paths("\n")
            case AnswerFormat.PATHS0:
                self._print_paths("\0")
            case AnswerFormat.AUTO if not console.is_terminal:
                if self.settings.target is Target.TEXTS:
                    self._print_captions()
                else:
                    self._print_paths("\n")
            case _ if self.answers:
                self._print_sheet(console)
                self._print_table(console)

    def _document(self) -> dict[str, Any]:
        return {
            "query": self.query,
            "target": self.settings.target.value,
            "no_good_match": self.answers.no_good_match,
            "considered": self.answers.considered,
            "exact": self.answers.exact,
            "seconds": round(self.answers.seconds, 4),
            "answers": [self._record(answer) for answer in self.answers],
        }

    def _record(self, answer: Answer) -> dict[str, Any]:
        item = self.item_of(answer.id)
        record: dict[str, Any] = {
            "rank": answer.rank,
            "id": answer.id,
            "path": None if answer.path is None else os.fspath(answer.path),
            "probability": round(answer.probability, 6),
            "score": round(answer.score, 6),
            "matched_by": list(answer.matched_by),
        }
        if self.settings.target is Target.TEXTS:
            record["caption"] = answer.caption
        return {**record, "captions": list(item.captions), "labels": list(item.labels), "metadata": dict(item.metadata)}

    def _print_paths(self, end: str) -> None:
        # As bytes: a name that is not valid Unicode is still the name of a file.
        paths = [shown_path(answer.path) for answer in self.answers if answer.path is not None]
        sys.stdout.flush()
        sys.stdout.buffer.write(b"".join(os.fsencode(path + end) for path in dict.fromkeys(paths)))
        sys.stdout.buffer.flush()

    def _print_captions(self) -> None:
        # One line each, so that the lines of a pipe are the answers.
        sys.stdout.writelines(" ".join((answer.caption or "").splitlines()) + "\n" for answer in self.answers)
        sys.stdout.flush()

    def _print_sheet(self, console: Console) -> None:
        graphics = choose_graphics(self.settings.thumbnails, console, os.environ)
        if graphics is None:
            return
        shown: Sequence[Answer] = self.answers
        if self.settings.thumbnails == "auto":
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
        captions = [self._words(answer) for answer in self.answers]
        is_wide = console.width >= _WIDE
        listing = table()
        listing.add_column("", justify="right", no_wrap=True, style="bold")
        listing.add_column("probability" if is_wide else "prob.", justify="right", no_wrap=True)
        listing.add_column("score", justify="right", no_wrap=True)
        if self.settings.hybrid:
            listing.add_column("found by", no_wrap=True)
        listing.add_column("picture", overflow="fold")
        if is_wide and any(captions):
            listing.add_column("caption", overflow="fold")
        for answer, caption in zip(self.answers, captions, strict=True):
            cells: list[str | Text] = [str(answer.rank), _percent(answer.probability), f"{answer.score:.3f}"]
            if self.settings.hybrid:
                cells.append(" + ".join(answer.matched_by))
            name = _linked(answer)
            if is_wide and any(captions):
                cells += [name, caption]
            else:
                cells.append(Text.assemble(name, ("\n" + caption, "dim")) if caption else name)
            listing.add_row(*cells)
        console.print(listing)

    def _words(self, answer: Answer) -> str:
        if self.settings.target is Target.TEXTS:
            return printable(answer.caption or "")
        return printable(next(iter(self.item_of(answer.id).captions), ""))


def _percent(probability: float) -> str:
    return f"{100 * probability:.0f} %" if probability >= 0.01 else "< 1 %"


def _linked(answer: Answer) -> Text:
    if answer.path is None:
        return Text("(a text)", style="dim")
    return Text(printable(shown_path(answer.path)), style=f"link {answer.path.absolute().as_uri()}")
