"""Searches of one collection, and how their answers are printed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, replace
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
from diptych.cli.options import AnswerFormat
from diptych.collection.searching.query import Query, SearchRequest
from diptych.data.picture_files import clock, picture_suffixes, unread_reason
from diptych.errors import InvalidInputError

if TYPE_CHECKING:
    from diptych.collection import Answer, Answers, Collection, Item

EXPLAINED = 3  # Answers that --why explains.
MAX_BARS = 5


def typed_query(collection: Collection, typed: str) -> Query:
    """Return the query that was typed; names of pictures are looked up here, then in the folder of the collection."""
    path = Path(typed.strip()).expanduser()
    if (reason := unread_reason(path)) and os.path.isfile(path):
        raise InvalidInputError(f"{printable(typed)} cannot be searched with: {reason}")
    # A plain word may well be the name of a file here too; then it is a word.
    if path.suffix and path.suffix.lower() not in picture_suffixes() and os.path.isfile(path):
        name = printable(typed)
        raise InvalidInputError(f"{name} is a file and no picture; give a picture, or quote it as words: '\"{name}\"'")

    def find_picture(name: str) -> Path | None:
        for path in (Path(name).expanduser(), collection.root / name):
            with suppress(OSError, ValueError):
                if path.is_file():
                    return path
        return None

    return Query.of(typed, find_picture)


def search_and_print(
    collection: Collection,
    request: SearchRequest,
    format: AnswerFormat = "auto",
    *,
    as_json: bool = False,
    quiet: bool = False,
    why: bool = False,
) -> None:
    """Search once: print the answers to stdout, and remarks on them to stderr unless ``quiet``."""
    answers = collection.answer(request)
    if answers.no_good_match and request.min_probability is None:
        # What holds the words is shown even where nothing is similar.
        kept = tuple(answer for answer in answers if "words" in answer.matched_by)
        answers = replace(answers, found=kept, no_good_match=not kept)
    if as_json:
        _print_document(answers, request, collection)
    else:
        _print_answers(answers, request, format, collection)
    for remark in () if quiet else _remarks(answers, request):
        notes().print(remark, soft_wrap=True)
    # Beside the answers, so that a pipe gets nothing but these.
    for line in why_lines(collection, request.query, answers) if why else ():
        notes().print(line, soft_wrap=True)


def _remarks(answers: Answers, request: SearchRequest) -> Iterator[str]:
    if request.query.unwanted:
        yield f"without: {', '.join(request.query.unwanted)}"
    if answers.is_corrected:
        yield f"searched for: {answers.did_you_mean}; quotation marks search for words as they stand"
    elif answers.did_you_mean is not None:
        yield f"did you mean: {answers.did_you_mean}?"
    yield from answers.notes
    least = answers.cutoff if request.min_probability is None else request.min_probability
    limit = f"{100 * least:.2g} %"
    is_short = len(answers) < min(request.k, answers.considered - request.offset)
    if answers.considered == 0 and request.filter is not None:
        yield f"nothing meets the filter {request.filter}"
    elif answers.considered == 0 and request.target == "texts":
        yield "the collection has no captions; add some with: diptych index FOLDER --captions FILE"
    elif answers.considered == 0:
        yield "the collection is empty; fill it with: diptych index FOLDER"
    elif answers.no_good_match and request.min_probability is None:
        yield f"no good match: nothing reaches a probability of {limit}; --all shows the nearest"
    elif not answers and request.offset:
        yield "no more answers"
    elif not answers:
        yield f"nothing reaches a probability of {limit}; ask for less"
    elif is_short and request.min_probability is not None and not goes_to_a_pipe():
        yield f"the rest does not reach a probability of {limit}; --all shows it"


def _print_document(answers: Answers, request: SearchRequest, collection: Collection) -> None:
    names = ("mode", "no_good_match", "notes", "did_you_mean", "is_corrected", "considered", "exact")
    about = {"query": str(request.query), "target": request.target, **{name: getattr(answers, name) for name in names}}
    listed = [_record(answer, collection) for answer in answers]
    print_json({**about, "seconds": round(answers.seconds, 4), "answers": listed})


def _record(answer: Answer, collection: Collection) -> dict[str, Any]:
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
        **({} if answer.caption is None else {"caption": answer.caption}),
        **{name: getattr(item, name) for name in ("captions", "labels", "metadata", "facts")},
    }


def _print_answers(answers: Answers, request: SearchRequest, format: AnswerFormat, collection: Collection) -> None:
    is_text = request.target == "texts"
    if format == "table" or (format == "auto" and not goes_to_a_pipe()):
        if answers:
            _print_table(answers, collection, is_text=is_text)
    elif format == "auto" and is_text:
        # One line each, so that the lines of a pipe are the answers.
        sys.stdout.writelines(" ".join((answer.caption or "").splitlines()) + "\n" for answer in answers)
    else:
        _print_paths(answers, "\0" if format == "paths0" else "\n")


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


def why_lines(collection: Collection, query: Query, answers: Answers) -> Iterator[str]:
    """Yield the reasons of the first answers: a sentence each, and the strongest bars below it."""
    from diptych.collection.searching.explaining import explain_answer

    for answer in answers[:EXPLAINED]:
        item = answer.item or collection[answer.id]
        explanation = explain_answer(collection, query, item, caption=answer.caption)
        yield f"{answer.rank}  {printable(explanation.summary)}"
        for bar in sorted(explanation.bars, key=lambda bar: -abs(bar.contribution))[:MAX_BARS]:
            yield f"   {bar.contribution:+.3f}  {printable(bar.name)}"
