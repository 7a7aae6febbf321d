"""Searches of one collection, and how their answers are printed."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from diptych.cli.console.output import (
    folded,
    goes_to_a_pipe,
    notes,
    numbers,
    print_json,
    print_table,
    results,
    scores,
)
from diptych.cli.console.paths import printable, shown_path
from diptych.cli.options import AnswerFormat, SearchMode
from diptych.collection.searching.options import SearchOptions
from diptych.collection.searching.query import HYBRID_OF_MODE, Query, SearchRequest
from diptych.data.picture_files import clock, picture_suffixes, unread_reason
from diptych.errors import InvalidInputError

if TYPE_CHECKING:
    from diptych.collection import Answer, Answers, Collection, Filter, Item, Term
    from diptych.retriever import Subject

EXPLAINED = 3  # Answers that --why explains.
MAX_BARS = 5


@dataclass(frozen=True)
class SearchSettings(SearchOptions):
    """How to search, and how to show what was found; ``min_probability`` None leaves it to the retriever's cut-off."""

    k: int = 10
    offset: int = 0
    filter: Filter | None = None
    mode: SearchMode = "auto"
    format: AnswerFormat = "auto"


def search_and_print(
    collection: Collection, query: str, settings: SearchSettings, *, quiet: bool = False, why: bool = False
) -> None:
    """Search once: print the answers to stdout, and remarks on them to stderr unless ``quiet``."""
    _refuse_other_files(query.strip())

    def find_picture(name: str) -> Path | None:
        # As seen from here, or from the folder of the collection's pictures.
        for path in (Path(name).expanduser(), collection.root / name):
            with suppress(OSError, ValueError):
                if path.is_file():
                    return path
        return None

    asked = Query.of(query, find_picture)
    if asked.unwanted and " - " not in f" {query}":
        note(f"without: {', '.join(asked.unwanted)}", quiet=quiet)
    request = SearchRequest(
        asked,
        k=settings.k,
        filter=settings.filter,
        hybrid=HYBRID_OF_MODE[settings.mode],
        offset=settings.offset,
        # Answers below it are counted and left out here.
        **settings.options | {"min_probability": None},
    )
    answers = _probable(collection.answer(request), settings)
    print_answers(str(asked), answers, settings, collection)
    for remark in _remarks(answers, settings):
        note(remark, quiet=quiet)
    # Beside the answers, so that a pipe gets nothing but these.
    for line in why_lines(collection, asked, answers[:EXPLAINED]) if why and answers else ():
        notes().print(line, soft_wrap=True)


def note(text: str, *, quiet: bool) -> None:
    """Say something beside the answers."""
    if not quiet:
        notes().print(text, soft_wrap=True)


def _probable(answers: Answers, settings: SearchSettings) -> Answers:
    """Leave out answers that are not probable enough; those that hold the words are kept."""
    least = settings.min_probability
    if least is None:
        # The cut-off says whether there is a match at all: past it, the answers are the best ``k``.
        least = math.inf if answers.no_good_match else 0.0
    words_count = settings.min_probability is None or settings.mode != "auto"
    kept = tuple(
        answer for answer in answers if answer.probability >= least or (words_count and "words" in answer.matched_by)
    )
    # A later page may be empty because the pages before it had everything.
    is_refused = answers.no_good_match or (settings.min_probability is not None and settings.offset == 0)
    return replace(answers, found=kept, no_good_match=is_refused and not kept)


def _remarks(answers: Answers, settings: SearchSettings) -> Iterator[str]:
    if answers.is_corrected:
        yield f"searched for: {answers.did_you_mean}; quotation marks search for words as they stand"
    elif answers.did_you_mean is not None:
        yield f"did you mean: {answers.did_you_mean}?"
    yield from answers.notes
    least = answers.cutoff if settings.min_probability is None else settings.min_probability
    limit = f"{100 * least:.2g} %"
    is_short = len(answers) < min(settings.k, answers.considered - settings.offset)
    if answers.considered == 0 and settings.filter is not None:
        yield f"nothing meets the filter {settings.filter}"
    elif answers.considered == 0 and settings.target == "texts":
        yield "the collection has no captions; add some with: diptych index FOLDER --captions FILE"
    elif answers.considered == 0:
        yield "the collection is empty; fill it with: diptych index FOLDER"
    elif answers.no_good_match and settings.min_probability is None:
        yield f"no good match: nothing reaches a probability of {limit}; --all shows the nearest"
    elif not answers and settings.offset:
        yield "no more answers"
    elif not answers:
        yield f"nothing reaches a probability of {limit}; ask for less"
    elif is_short and settings.min_probability is not None and not goes_to_a_pipe():
        yield f"the rest does not reach a probability of {limit}; --all shows it"


def print_answers(query: str, answers: Answers, settings: SearchSettings, collection: Collection) -> None:
    """Print the answers of one search to stdout in the format that was asked for."""
    is_text = settings.target == "texts"
    match settings.format:
        case "json":
            facts = {field: getattr(answers, field) for field in ("mode", "no_good_match", "notes", "did_you_mean")}
            facts |= {field: getattr(answers, field) for field in ("is_corrected", "considered", "exact")}
            listed = [_record(answer, collection, is_text=is_text) for answer in answers]
            about = {"query": query, "target": settings.target, **facts, "seconds": round(answers.seconds, 4)}
            print_json({**about, "answers": listed})
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
            _print_table(answers, collection, is_text=is_text)


def _record(answer: Answer, collection: Collection, *, is_text: bool) -> dict[str, Any]:
    item = answer.item or collection[answer.id]
    return {
        "rank": answer.rank,
        "id": answer.id,
        "path": None if answer.path is None else os.fspath(answer.path),
        **({} if answer.seconds is None else {"seconds": answer.seconds}),
        "probability": round(answer.probability, 6),
        "score": round(answer.score, 6),
        **{name: getattr(answer, name) for name in ("matched_by", "matched_fields", "has_words", "picture_words")},
        "region": None if answer.region is None else {**asdict(answer.region), "place": answer.region.place},
        **({"caption": answer.caption} if is_text else {}),
        **{name: getattr(item, name) for name in ("captions", "labels", "metadata", "facts")},
    }


def _print_paths(answers: Answers, end: str) -> None:
    # As bytes: a name that is not valid Unicode is still the name of a file.
    paths = [shown_path(answer.path) for answer in answers if answer.path is not None]
    sys.stdout.flush()
    sys.stdout.buffer.write(b"".join(os.fsencode(path + end) for path in dict.fromkeys(paths)))
    sys.stdout.buffer.flush()


def _print_table(answers: Answers, collection: Collection, *, is_text: bool) -> None:
    """Print a row for each answer, with what is known of it below its path."""
    rows = []
    for answer in answers:
        item = answer.item or collection[answer.id]
        read = " ".join(word.text for word in answer.picture_words)
        lines = [
            _origin(item),
            answer.caption if is_text else next(iter(item.captions), ""),
            read and f"text in the picture: {read}",
            f"found by: {_found_by(answer)}" if answers.mode != "similarity" else "",
        ]
        about = "".join(f"\n{printable(line)}" for line in lines if line)
        percent = f"{100 * answer.probability:.0f} %" if answer.probability >= 0.01 else "< 1 %"
        shown = Text.assemble(_linked(answer), (about, "dim"))
        rows.append((str(answer.rank), percent, f"{answer.score:.3f}", shown))
    print_table([*scores(""), *numbers("prob.", "score"), folded("picture")], rows, results())


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
    taken = str(fields.get("taken") or fields.get("year") or "")[:16].replace("T", " ")
    return ", ".join(str(part) for part in (taken, fields.get("place"), fields.get("country")) if part)


def _linked(answer: Answer) -> Text:
    if answer.path is None:
        return Text("(a text)", style="dim")
    name = printable(shown_path(answer.path)) + ("" if answer.seconds is None else f" at {clock(answer.seconds)}")
    name += "" if answer.region is None else f" ({answer.region.place})"
    return Text(name, style=f"link {answer.path.absolute().as_uri()}")


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
    """Return the reasons of answers: a sentence each, and the strongest bars below it."""
    # Imported lazily: other searches do without the methods.
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
    for answer in answers:
        text = answer.caption
        found = stored_picture(collection[answer.id]) if text is None else Subject.of_text(retriever, text)
        explanation = explain(retriever, subjects, found, weights=weights)
        lines.append(f"{answer.rank}  {printable(explanation.summary)}")
        strongest = sorted(explanation.bars, key=lambda bar: -abs(bar.contribution))[:MAX_BARS]
        lines += [f"   {bar.contribution:+.3f}  {printable(bar.name)}" for bar in strongest]
    return lines
