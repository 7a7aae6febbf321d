"""Searches of one collection, one after another, and how their answers are printed."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rich.console import Console
from rich.text import Text

from diptych.cli.console.output import folded, notes, numbers, print_json, results, scores, table, whole
from diptych.cli.console.paths import printable, shown_path
from diptych.cli.console.thumbnails import choose_graphics, print_sheet, tiles_per_line
from diptych.cli.options import AnswerFormat, RerankBy, SearchMode, Target, Thumbnails
from diptych.collection.search.answers import HYBRID_OF_MODE
from diptych.collection.search.query import Query
from diptych.data.picture_files import clock, picture_suffixes, unread_reason
from diptych.errors import InvalidInputError

if TYPE_CHECKING:
    from diptych.cli.commands.served_collection import ServedCollection
    from diptych.collection import Answer, Answers, Collection, Filter, Item

# Where captions get a column of their own instead of a line below the path.
_WIDE = 100
_SHEET_LINES = 3


@dataclass(frozen=True)
class SearchSettings:
    """How to search, and how to show what was found; ``min_probability`` None leaves it to the retriever's cut-off."""

    k: int = 10
    offset: int = 0
    target: Target = Target.IMAGES
    filter: Filter | None = None
    mode: SearchMode = SearchMode.AUTO
    exact: bool = False
    min_probability: float | None = None
    regions: bool = True
    rerank: int | None = None
    rerank_by: RerankBy = RerankBy.CODES
    retriever: str | None = None
    format: AnswerFormat = AnswerFormat.AUTO
    thumbnails: Thumbnails = Thumbnails.AUTO


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
                print_json(self._document())
            case AnswerFormat.JSONL:
                for answer in self.answers:
                    print_json({"query": self.query, **self._record(answer)}, indent=None)
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
            "mode": self.answers.mode,
            "no_good_match": self.answers.no_good_match,
            "notes": list(self.answers.notes),
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
            **({} if answer.seconds is None else {"seconds": answer.seconds}),
            "probability": round(answer.probability, 6),
            "score": round(answer.score, 6),
            "matched_by": list(answer.matched_by),
            "matched_fields": list(answer.matched_fields),
            "has_words": answer.has_words,
            "picture_words": [{"text": word.text, "corners": word.corners} for word in answer.picture_words],
            "region": None if answer.region is None else {**asdict(answer.region), "place": answer.region.place},
        }
        if self.settings.target is Target.TEXTS:
            record["caption"] = answer.caption
        lists = {"captions": list(item.captions), "labels": list(item.labels)}
        return {**record, **lists, "metadata": dict(item.metadata), "facts": dict(item.facts)}

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
        is_text = self.settings.target is Target.TEXTS
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


class SearchSession:
    """Asks a collection, prints what it answers, and remembers both, so that the next search can build on them."""

    def __init__(
        self,
        collection: Collection | ServedCollection,
        settings: SearchSettings,
        *,
        quiet: bool = False,
        why: bool = False,
    ) -> None:
        self.collection = collection
        self.settings = settings
        self.query: Query | None = None
        self.shown: dict[int, Answer] = {}
        self.ask_for_all = "--all"
        self._offset = settings.offset
        self._notes = notes()
        self._quiet = quiet
        self._why = why

    def search(self, query: str | Query) -> Answers:
        """Search and print."""
        if isinstance(query, str):
            _refuse_other_files(query.strip())
        self.query = Query.of(query, self._picture)
        self.shown = {}
        return self._page(self.settings)

    def more(self) -> Answers:
        """Print the next answers of the last search."""
        self._last_query()
        return self._page(replace(self.settings, offset=self._offset + self.settings.k))

    def like(self, rank: int) -> Answers:
        """Search for the last query together with one of its answers."""
        return self._beside(rank, 1.0, "more")

    def unlike(self, rank: int) -> Answers:
        """Search for the last query away from one of its answers."""
        # Less than the query itself: an answer is near the query, and taking it away whole would leave nothing.
        return self._beside(rank, -0.5, "less")

    def _beside(self, rank: int, weight: float, direction: str) -> Answers:
        answer = self.answer(rank)
        name = answer.id if answer.path is None else printable(answer.path.name)
        self.note(f"{direction} like answer {rank} ({name}):")
        return self.search(self._last_query() + weight * Query.item(answer.id))

    def answer(self, rank: int) -> Answer:
        """Return the answer that was shown with this rank."""
        if rank not in self.shown:
            shown = f"numbers {min(self.shown)} to {max(self.shown)}" if self.shown else "no answers"
            raise InvalidInputError(f"there is no answer {rank}: {shown} are shown")
        return self.shown[rank]

    def note(self, text: str) -> None:
        """Say something beside the answers."""
        if not self._quiet:
            self._notes.print(text, soft_wrap=True)

    def _picture(self, name: str) -> Path | None:
        """Return a picture file of that name, seen from here or from the folder of the collection's pictures."""
        for path in (Path(name).expanduser(), self.collection.root / name):
            with suppress(OSError, ValueError):
                if path.is_file():
                    return path
        return None

    def _page(self, settings: SearchSettings) -> Answers:
        query = self._last_query()
        found = self.collection.search(
            query,
            settings.k,
            target=settings.target.value,
            filter=settings.filter,
            hybrid=HYBRID_OF_MODE[settings.mode],
            exact=settings.exact or None,
            offset=settings.offset,
            regions=settings.regions,
            rerank=settings.rerank,
            rerank_by=settings.rerank_by.value,
            retriever=settings.retriever,
        )
        answers = self._probable(found, settings)
        self._offset = settings.offset
        self.shown |= {answer.rank: answer for answer in answers}
        AnswersReport(str(query), answers, settings, self.collection.__getitem__, self.collection.thumbnail).print()
        self._remark(answers, settings)
        # Beside the answers, so that a pipe still gets nothing but these.
        if self._why and answers:
            from diptych.cli.commands.search_reasons import why_lines

            # Only a collection that is open here is asked for reasons.
            for line in why_lines(cast("Collection", self.collection), query, answers[:]):
                self._notes.print(line, soft_wrap=True, markup=False, highlight=False)
        return answers

    def _probable(self, answers: Answers, settings: SearchSettings) -> Answers:
        """Leave out what is not probable enough; what holds the words speaks for itself."""
        least = settings.min_probability
        if least is None:
            # The cut-off says whether there is a match at all: past it, the answers are the best ``k``.
            least = math.inf if answers.no_good_match else 0.0
        # Whoever gives a probability and leaves the choice to us gets what reaches it.
        words_count = settings.min_probability is None or settings.mode is not SearchMode.AUTO
        kept = tuple(
            answer
            for answer in answers
            if answer.probability >= least or (words_count and "words" in answer.matched_by)
        )
        # A later page may be empty because the pages before it had everything.
        is_refused = answers.no_good_match or (settings.min_probability is not None and settings.offset == 0)
        return replace(answers, found=kept, no_good_match=is_refused and not kept)

    def _last_query(self) -> Query:
        if self.query is None:
            raise InvalidInputError("nothing has been searched for yet; type words or the path of a picture")
        return self.query

    def _remark(self, answers: Answers, settings: SearchSettings) -> None:
        least = answers.cutoff if settings.min_probability is None else settings.min_probability
        limit = f"{100 * least:.2g} %"
        is_short = len(answers) < min(settings.k, answers.considered - settings.offset)
        for note in answers.notes:
            self.note(note)
        if answers.considered == 0:
            self.note(self._why_nothing(settings))
        elif answers.no_good_match and settings.min_probability is None:
            self.note(f"no good match: nothing reaches a probability of {limit}; {self.ask_for_all} shows the nearest")
        elif not answers and settings.offset:
            self.note("no more answers")
        elif not answers:
            self.note(f"nothing reaches a probability of {limit}; ask for less")
        elif is_short and settings.min_probability is not None and results().is_terminal:
            self.note(f"the rest does not reach a probability of {limit}; {self.ask_for_all} shows it")

    def _why_nothing(self, settings: SearchSettings) -> str:
        if settings.filter is not None:
            return f"nothing meets the filter {settings.filter}"
        if settings.target == "texts":
            return "the collection has no captions; add some with: diptych index FOLDER --captions FILE"
        return "the collection is empty; fill it with: diptych index FOLDER"


def _refuse_other_files(name: str) -> None:
    """Raise where a query is the name of something here that cannot be searched with, which is a slip."""
    if (reason := unread_reason(name)) and Path(name).expanduser().is_file():
        raise InvalidInputError(f"{printable(name)} cannot be searched with: {reason}")
    if kind := _kind_of_other_file(name):
        raise InvalidInputError(
            f"{printable(name)} is {kind} and no picture; give a picture, or search for the words with quotation marks "
            f"of their own: '\"{printable(name)}\"'"
        )


def _kind_of_other_file(name: str) -> str | None:
    with suppress(OSError, ValueError, RuntimeError):
        path = Path(name).expanduser()
        # A plain word may well be the name of a folder here too; then it is a word.
        if not (path.suffix or "/" in name or "\\" in name):
            return None
        if path.is_dir():
            return "a folder"
        if path.is_file() and path.suffix.lower() not in picture_suffixes():
            return "a file"
    return None
