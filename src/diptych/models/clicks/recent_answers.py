"""The latest answers to what is asked again and again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Any, Generic, Self, TypeVar

Answer = TypeVar("Answer")


class RecentAnswers(Generic[Answer]):
    """Remembers the ``limit`` answers that were used last; several threads may ask. Copies start empty.

    >>> from diptych.models.clicks.recent_answers import RecentAnswers
    >>> answers = RecentAnswers(2)
    >>> for word in ("a", "b", "c"):
    ...     answers.keep(word, word.upper())
    >>> answers.get("a"), answers.get("c")
    (None, 'C')
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._answers: OrderedDict[Hashable, Answer] = OrderedDict()
        self._lock = Lock()

    def get(self, question: Hashable) -> Answer | None:
        """Return the answer if it is remembered."""
        with self._lock:
            if question in self._answers:
                self._answers.move_to_end(question)
            return self._answers.get(question)

    def keep(self, question: Hashable, answer: Answer) -> None:
        """Remember an answer, and forget the one that was not used for longest when there are too many."""
        with self._lock:
            self._answers[question] = answer
            self._answers.move_to_end(question)
            if len(self._answers) > self.limit:
                self._answers.popitem(last=False)

    def __len__(self) -> int:
        return len(self._answers)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return type(self)(self.limit)

    def __reduce__(self) -> tuple[type[Self], tuple[int]]:
        return type(self), (self.limit,)
