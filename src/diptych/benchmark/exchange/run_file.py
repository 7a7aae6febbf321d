"""Run files: rankings of items, a line for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import IO, Literal, get_args

import numpy as np

from diptych.benchmark.exchange.ranked_list import RankedList
from diptych.benchmark.exchange.trec_lines import as_word, fields_of, open_text
from diptych.errors import InvalidInputError

Scores = Literal["rank", "model"]

_FIELDS = ("query", "Q0", "item", "rank", "score", "tag")


def write_run(
    path: str | PathLike[str], rankings: Iterable[RankedList], *, tag: str = "diptych", scores: Scores = "rank"
) -> int:
    """Write rankings to a run file, one after another, and return the number of lines.

    Each list is written best first, equal scores in trec_eval's order (`RankedList.in_order`). ``scores="rank"`` writes
    whole numbers that fall by one with every rank, so that there are no ties left, and every tool, whatever its rule
    for ties and its precision, sees this one order. ``"model"`` writes the scores themselves, for fusion and
    thresholds; tools then break ties as they like. White space in a name is written as ``%20``. A path that ends in
    ``.gz`` is compressed.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from diptych.benchmark.exchange import RankedList, write_run
    >>> path = Path(tempfile.mkdtemp()) / "run.txt"
    >>> write_run(path, [RankedList.of("q1", {"a": 0.2, "b": 0.7})], tag="cca")
    2
    >>> print(path.read_text(), end="")
    q1 Q0 b 1 2 cca
    q1 Q0 a 2 1 cca
    """
    if scores not in get_args(Scores):
        raise InvalidInputError(f"scores must be one of {', '.join(get_args(Scores))}, got {scores!r}")
    with open_text(Path(path), "wt") as file:
        return sum(_write_list(file, ranking.in_order(), as_word(tag), scores) for ranking in rankings)


def _write_list(file: IO[str], ranking: RankedList, tag: str, scores: Scores) -> int:
    query, count = as_word(ranking.query), len(ranking.items)
    values = range(count, 0, -1) if scores == "rank" else map(repr, ranking.scores.tolist())
    file.writelines(
        f"{query} Q0 {as_word(item)} {rank} {value} {tag}\n"
        for rank, (item, value) in enumerate(zip(ranking.items.tolist(), values, strict=True), start=1)
    )
    return count


def read_run(path: str | PathLike[str]) -> dict[str, RankedList]:
    """Read a run file of any tool: for each query its items and scores.

    The order is that of the scores; the column of ranks is not used, as in trec_eval. Lines of a query need not follow
    one another.
    """
    found: dict[str, dict[str, float]] = {}
    for number, (query, _, item, _, score, _) in _lines(Path(path)):
        items = found.setdefault(query, {})
        if item in items:
            raise InvalidInputError(f"{path}: line {number} ranks {item!r} again for query {query!r}; keep one line")
        items[item] = _number(score, path, number)
    if not found:
        raise InvalidInputError(f"{path} holds no line of the form '{' '.join(_FIELDS)}'")
    return {query: RankedList.of(query, items) for query, items in found.items()}


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    return fields_of(path, _FIELDS)


def _number(text: str, path: str | PathLike[str], line: int) -> float:
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise InvalidInputError(f"{path}: line {line} has the score {text!r}, which is not a finite number")
    return value
