"""Qrels files: judgements, a line for each."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from diptych.benchmark.exchange.qrels import Qrels
from diptych.benchmark.exchange.trec_lines import as_word, fields_of, open_text
from diptych.errors import InvalidInputError

_FIELDS = ("query", "iteration", "item", "grade")


def write_qrels(path: str | PathLike[str], qrels: Qrels) -> int:
    """Write judgements to a file and return the number of lines; names are written as in `write_run`.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from diptych.benchmark.exchange import Qrels, read_qrels, write_qrels
    >>> path = Path(tempfile.mkdtemp()) / "qrels.txt"
    >>> write_qrels(path, Qrels({"q1": {"a": 2, "b": 0}}))
    2
    >>> read_qrels(path)
    Qrels(grades={'q1': {'a': 2, 'b': 0}})
    """
    count = 0
    with open_text(Path(path), "wt") as file:
        for query, items in qrels.grades.items():
            file.writelines(f"{as_word(query)} 0 {as_word(item)} {grade}\n" for item, grade in items.items())
            count += len(items)
    return count


def read_qrels(path: str | PathLike[str]) -> Qrels:
    """Read the judgements of any collection; grades are whole numbers, negative ones count as irrelevant."""
    grades: dict[str, dict[str, int]] = {}
    for number, (query, _, item, grade) in fields_of(Path(path), _FIELDS):
        items = grades.setdefault(query, {})
        if item in items:
            raise InvalidInputError(f"{path}: line {number} judges {item!r} again for query {query!r}; keep one line")
        try:
            items[item] = int(grade)
        except ValueError:
            raise InvalidInputError(f"{path}: line {number} has the grade {grade!r}, expected a whole number") from None
    if not grades:
        raise InvalidInputError(f"{path} holds no line of the form '{' '.join(_FIELDS)}'")
    return Qrels(grades)
