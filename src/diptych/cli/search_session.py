"""Searches of one collection, one after another."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from diptych.cli.answers_report import AnswersReport
from diptych.cli.search_settings import SearchSettings
from diptych.cli.shown_path import printable
from diptych.cli.terminal import notes, results
from diptych.collection import Answer, Answers, Query
from diptych.data.picture_files import picture_suffixes
from diptych.errors import InvalidInputError

if TYPE_CHECKING:
    from diptych.collection import Collection


class SearchSession:
    """Asks a collection, prints what it answers, and remembers both, so that the next search can build on them."""

    def __init__(
        self, collection: Collection, settings: SearchSettings, *, quiet: bool = False, why: bool = False
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

    def ask(self, query: str | Query) -> Answers:
        """Search and print."""
        if isinstance(query, str):
            _refuse_other_files(query.strip())
        self.query = Query.of(query, self._picture)
        self.shown = {}
        return self._page(self.settings)

    def more(self) -> Answers:
        """Print the next answers of the last search."""
        self._asked()
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
        self.say(f"{direction} like answer {rank} ({name}):")
        return self.ask(self._asked() + weight * Query.item(answer.id))

    def answer(self, rank: int) -> Answer:
        """Return the answer that was shown with this rank."""
        if rank not in self.shown:
            shown = f"numbers {min(self.shown)} to {max(self.shown)}" if self.shown else "no answers"
            raise InvalidInputError(f"there is no answer {rank}: {shown} are shown")
        return self.shown[rank]

    def say(self, text: str) -> None:
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
        query = self._asked()
        found = self.collection.search(
            query,
            settings.k,
            target=settings.target.value,
            filter=settings.filter,
            hybrid=settings.hybrid or None,
            exact=settings.exact or None,
            offset=settings.offset,
            rerank=settings.rerank,
            rerank_by=settings.rerank_by.value,
        )
        answers = self._probable(found, settings)
        self._offset = settings.offset
        self.shown |= {answer.rank: answer for answer in answers}
        AnswersReport(str(query), answers, settings, self.collection.__getitem__, self.collection.thumbnail).print()
        self._remark(answers, settings)
        if self._why and answers:
            self._explain(query, answers)
        return answers

    def _explain(self, query: Query, answers: Answers) -> None:
        """Say why; beside the answers, so that a pipe still gets nothing but these."""
        from diptych.cli.why_report import why_lines

        for line in why_lines(self.collection, query, answers[:]):
            self._notes.print(line, soft_wrap=True, markup=False, highlight=False)

    def _probable(self, answers: Answers, settings: SearchSettings) -> Answers:
        """Leave out what is not probable enough; captions that hold the words speak for themselves.

        The cut-off says whether there is a match at all: past it, the answers are the best ``k``, however many of them
        reach it. A least probability that was asked for holds for every single answer.
        """
        least = settings.min_probability
        if least is None:
            least = math.inf if answers.no_good_match else 0.0
        kept = tuple(answer for answer in answers if answer.probability >= least or "words" in answer.matched_by)
        # A later page may be empty because the pages before it had everything.
        is_refused = answers.no_good_match or (settings.min_probability is not None and settings.offset == 0)
        return replace(answers, found=kept, no_good_match=is_refused and not kept)

    def _cutoff(self, settings: SearchSettings) -> float:
        return self.collection.retriever.cutoff if settings.min_probability is None else settings.min_probability

    def _asked(self) -> Query:
        if self.query is None:
            raise InvalidInputError("nothing has been searched for yet; type words or the path of a picture")
        return self.query

    def _remark(self, answers: Answers, settings: SearchSettings) -> None:
        limit = f"{100 * self._cutoff(settings):.0f} %"
        for note in answers.notes:
            self.say(note)
        if answers.considered == 0:
            self.say(self._why_nothing(settings))
        elif answers.no_good_match and settings.min_probability is None:
            self.say(f"no good match: nothing reaches a probability of {limit}; {self.ask_for_all} shows the nearest")
        elif not answers and settings.offset:
            self.say("no more answers")
        elif not answers:
            self.say(f"nothing reaches a probability of {limit}; ask for less")
        elif self._leaves_out(answers, settings) and results().is_terminal:
            self.say(f"the rest does not reach a probability of {limit}; {self.ask_for_all} shows it")

    def _leaves_out(self, answers: Answers, settings: SearchSettings) -> bool:
        is_short = len(answers) < min(settings.k, answers.considered - settings.offset)
        return is_short and settings.min_probability is not None

    def _why_nothing(self, settings: SearchSettings) -> str:
        if settings.filter is not None:
            return f"nothing meets the filter {settings.filter}"
        if settings.target == "texts":
            return "the collection has no captions; add some with: diptych index FOLDER --captions FILE"
        return "the collection is empty; fill it with: diptych index FOLDER"


def _refuse_other_files(name: str) -> None:
    """Raise where a query is the name of something here that cannot be searched with, which is a slip."""
    kind = _kind_of_other_file(name)
    if kind is not None:
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
