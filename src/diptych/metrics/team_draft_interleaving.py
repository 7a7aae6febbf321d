"""Two rankings in one list, so that clicks tell which is better."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Literal, TypeVar

from diptych.errors import InvalidInputError

Team = Literal["a", "b"]
Item = TypeVar("Item", bound=Hashable)


def team_draft(a: Sequence[Item], b: Sequence[Item], k: int, *, seed: int | bytes) -> list[tuple[Item, Team]]:
    """Merge two rankings as two captains pick their teams, and return the first ``k`` items with their teams.

    In each round a fair coin says which ranking picks first; then each adds its best item that is not in the list yet.
    A click counts for the team of its item (see :func:`draft_winner`). Both teams are as large and stand as high, on
    average, so that a person who clicks without looking prefers neither, whatever the places are worth to them
    (Radlinski, Kurup and Joachims, "How does clickthrough data reflect retrieval quality?", CIKM 2008). Where one
    ranking has nothing more to add, the other goes on alone.

    The list for a larger ``k`` begins with that for a smaller one, if the rankings do and have at least ``k`` items or
    all there are: pages of one ``seed`` fit together. Use it to compare two methods on live traffic, where every person
    sees both; it needs far fewer searches than showing one method to each half of them (Chapelle et al., "Large-scale
    validation and analysis of interleaved search evaluation", TOIS 2012).

    >>> from diptych.metrics import team_draft
    >>> team_draft(["cat", "dog", "owl"], ["owl", "cat", "dog"], 3, seed=0)
    [('owl', 'b'), ('cat', 'a'), ('dog', 'b')]
    """
    if not isinstance(k, int) or k < 0:
        raise InvalidInputError(f"k is a number of items, got {k!r}")
    coin = random.Random(seed)
    drafted: dict[Item, Team] = {}
    places: dict[Team, int] = {"a": 0, "b": 0}
    rankings: dict[Team, Sequence[Item]] = {"a": a, "b": b}
    while len(drafted) < k:
        order: tuple[Team, Team] = ("a", "b") if coin.random() < 0.5 else ("b", "a")
        before = len(drafted)
        for team in order:
            ranking, place = rankings[team], places[team]
            while place < len(ranking) and ranking[place] in drafted:
                place += 1
            if place < len(ranking):
                drafted[ranking[place]] = team
            places[team] = place
        if len(drafted) == before:
            break
    return list(drafted.items())[:k]


def draft_winner(clicked: Iterable[Team]) -> Team | None:
    """Return the team with more of the clicked items of one search, or None where both have as many.

    Over many searches the sign test on the teams that won says whether one ranking is better; searches without a click
    and ties are left out.

    >>> from diptych.metrics import draft_winner
    >>> draft_winner(["a", "b", "b"]), draft_winner(["a", "b"])
    ('b', None)
    """
    counts = Counter(clicked)
    if not counts.keys() <= {"a", "b"}:
        raise InvalidInputError(f"teams are 'a' and 'b', got {sorted(map(str, counts))}")
    if counts["a"] == counts["b"]:
        return None
    return "a" if counts["a"] > counts["b"] else "b"
