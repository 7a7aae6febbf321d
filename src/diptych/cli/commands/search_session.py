"""Searches of one collection, one after another, and how their answers are printed."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.cli.console.output import goes_to_a_pipe, notes, print_json, results
from diptych.cli.console.paths import printable, shown_path
from diptych.cli.options import AnswerFormat, SearchMode
from diptych.collection.searching.query import HYBRID_OF_MODE, Query
from diptych.collection.searching.request import SearchOptions
from diptych.data.picture_files import picture_suffixes, unread_reason
from diptych.errors import InvalidInputError

if TYPE_CHECKING:
    from diptych.collection import Answer, Answers, Collection, Filter, Item, Term
    from diptych.retriever import Subject

# Of ``--why``: how many answers are explained, and by how many bars at most.
_EXPLAINED, _MOST_BARS = 3, 5


@dataclass(frozen=True)
class SearchSettings(SearchOptions):
    """How to search, and how to show what was found; ``min_probability`` None leaves it to the retriever's cut-off."""

    k: int = 10
    offset: int = 0
    filter: Filter | None = None
    mode: SearchMode = "auto"
    format: AnswerFormat = "auto"


def print_answers(query: str, answers: Answers, settings: SearchSettings, collection: Collection) -> None:
    """Print the answers of one search to stdout in the format that was asked for."""
    is_text = settings.target == "texts"
    match settings.format:
        case "json":
            print_json(
                {
                    "query": query,
                    "target": settings.target,
                    "mode": answers.mode,
                    "no_good_match": answers.no_good_match,
                    "notes": list(answers.notes),
                    "did_you_mean": answers.did_you_mean,
                    "is_corrected": answers.is_corrected,
                    "considered": answers.considered,
                    "exact": answers.exact,
                    "seconds": round(answers.seconds, 4),
                    "answers": [_record(answer, collection, is_text=is_text) for answer in answers],
                }
            )
        case "jsonl":
            for answer in answers:
                print_json({"query": query, **_record(answer, collection, is_text=is_text)}, indent=None)
        case "paths":
            _print_paths(answers, "\n")
        case "paths0":
            _print_paths(answers, "\0")
        case "auto" if goes_to_a_pipe() and is_text:
            # One line each, so that the lines of a pipe are the answers.
            sys.stdout.writelines(" ".join((answer.caption or "").splitlines()) + "\n" for answer in answers)
            sys.stdout.flush()
        case "auto" if goes_to_a_pipe():
            _print_paths(answers, "\n")
        case _ if answers:
            from diptych.cli.console.answers_table import print_answers_table

            print_answers_table(answers, collection, results(), is_text=is_text)


def _record(answer: Answer, collection: Collection, *, is_text: bool) -> dict[str, Any]:
    item = collection[answer.id]
    return {
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
        **({"caption": answer.caption} if is_text else {}),
        "captions": list(item.captions),
        "labels": list(item.labels),
        "metadata": dict(item.metadata),
        "facts": dict(item.facts),
    }


def _print_paths(answers: Answers, end: str) -> None:
    # As bytes: a name that is not valid Unicode is still the name of a file.
    paths = [shown_path(answer.path) for answer in answers if answer.path is not None]
    sys.stdout.flush()
    sys.stdout.buffer.write(b"".join(os.fsencode(path + end) for path in dict.fromkeys(paths)))
    sys.stdout.buffer.flush()


class SearchSession:
    """Asks a collection, prints what it answers, and remembers both, so that the next search can build on them."""

    def __init__(
        self,
        collection: Collection,
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
        self._quiet = quiet
        self._why = why

    def search(self, query: str | Query) -> Answers:
        """Search and print."""
        if isinstance(query, str):
            _refuse_other_files(query.strip())
        self.query = Query.of(query, self._picture)
        if self.query.unwanted and isinstance(query, str) and " - " not in f" {query}":
            self.note(f"without: {', '.join(self.query.unwanted)}")
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
            notes().print(text, soft_wrap=True)

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
            filter=settings.filter,
            hybrid=HYBRID_OF_MODE[settings.mode],
            offset=settings.offset,
            # What is left out is counted and told here.
            **settings.options | {"min_probability": None},
        )
        answers = self._probable(found, settings)
        self._offset = settings.offset
        self.shown |= {answer.rank: answer for answer in answers}
        print_answers(str(query), answers, settings, self.collection)
        self._remark(answers, settings)
        # Beside the answers, so that a pipe still gets nothing but these.
        if self._why and answers:
            for line in why_lines(self.collection, query, answers[:]):
                notes().print(line, soft_wrap=True, markup=False, highlight=False)
        return answers

    def _probable(self, answers: Answers, settings: SearchSettings) -> Answers:
        """Leave out what is not probable enough; what holds the words speaks for itself."""
        least = settings.min_probability
        if least is None:
            # The cut-off says whether there is a match at all: past it, the answers are the best ``k``.
            least = math.inf if answers.no_good_match else 0.0
        # Whoever gives a probability and leaves the choice to us gets what reaches it.
        words_count = settings.min_probability is None or settings.mode != "auto"
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
        if answers.is_corrected:
            self.note(f"searched for: {answers.did_you_mean}; quotation marks search for words as they stand")
        elif answers.did_you_mean is not None:
            self.note(f"did you mean: {answers.did_you_mean}?")
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
        elif is_short and settings.min_probability is not None and not goes_to_a_pipe():
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


def why_lines(collection: Collection, query: Query, answers: Sequence[Answer]) -> list[str]:
    """Return the reasons of the first answers, a sentence each and the bars that tell most below it."""
    # Imported where something is explained: other searches do without the methods.
    from diptych.retriever import Retriever, Subject, explain

    retriever = collection.retriever
    if not isinstance(retriever, Retriever):
        raise InvalidInputError(f"a collection with a {type(retriever).__name__} cannot tell why")

    def stored_picture(item: Item) -> Subject:
        _, points = collection.points("image", [item.id])
        if not len(points):
            raise InvalidInputError(f"item {item.id} has no point to explain; index again")
        return Subject.of_stored_picture(retriever, collection.features("image", [item.id])[1], points)

    def asked(term: Term) -> Subject:
        if term.kind == "text":
            return Subject.of_text(retriever, term.value, asks=True)
        if term.kind == "picture":
            return Subject.of_picture(retriever, term.value)
        item = collection[term.value]
        return Subject.of_text(retriever, item.captions[0]) if item.path is None else stored_picture(item)

    subjects, weights = [asked(term) for term in query.terms], [term.weight for term in query.terms]
    lines = []
    for answer in answers[:_EXPLAINED]:
        text = answer.caption
        found = stored_picture(collection[answer.id]) if text is None else Subject.of_text(retriever, text)
        explanation = explain(retriever, subjects, found, weights=weights)
        lines.append(f"{answer.rank}  {printable(explanation.summary)}")
        strongest = sorted(explanation.bars, key=lambda bar: -abs(bar.contribution))[:_MOST_BARS]
        lines += [f"   {bar.contribution:+.3f}  {printable(bar.name)}" for bar in strongest]
    return lines
